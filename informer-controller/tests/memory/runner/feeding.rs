//! How informers fill the queue: which keys, in which order, and when workers start.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use informer_controller::{ControllerRunner, ReconcileRequest, controller_key, keys_in_index, own_key};
use informer_factory::{
    Cached, HandlerOptions, InformerOptions, NotSynced, ObjectKey, Resync, SharedIndexInformer,
};
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::Status;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{Controller, done, queue, settled, soon, watched};
use crate::{Running, config_map, create, idle, source, update, value_of};

#[tokio::test(start_paused = true)]
async fn workers_begin_when_all_informers_are_synced_and_not_before() {
    let (here, there) = (source(), source());
    create(&here, "a", "1");
    let ready = Running::start(&here, InformerOptions::new()).synced().await;
    let late = idle(&there);
    let (reconcile, mut called) = done();
    let runner = ControllerRunner::new(queue()).watches(&ready.informer, own_key).waits_for(late.0.clone());
    let controller = Controller::start(runner, reconcile);
    settled().await;
    assert!(called.rest().is_empty(), "no call must be made before all caches are synced");
    let late = Running::run(late);
    assert_eq!(called.next().await, "a");
    controller.stop().await;
    ready.stop().await;
    late.stop().await;
}

#[tokio::test(start_paused = true)]
async fn unsynced_informer_is_named_with_reason() {
    let source = source();
    for _ in 0..100 {
        source.fail_next_list(Box::new(Status { code: 403, ..Status::default() }).into());
    }
    let running = Running::start(&source, InformerOptions::new());
    let runner = ControllerRunner::new(queue())
        .watches(&running.informer, own_key)
        .sync_timeout(Duration::from_secs(20));
    let (reconcile, _called) = done();
    let outcome: Result<(), NotSynced> = soon(runner.run(reconcile, CancellationToken::new())).await;
    let message = outcome.expect_err("an informer that never syncs").to_string();
    assert!(message.contains("configmaps") && message.contains("maps"), "{message}");
    assert!(message.to_lowercase().contains("forbidden"), "{message}");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn shutdown_before_sync_ends_the_wait() {
    let source = source();
    let (informer, _task) = idle(&source);
    let (reconcile, mut called) = done();
    let queue = queue();
    let controller =
        Controller::start(ControllerRunner::new(queue.clone()).watches(&informer, own_key), reconcile);
    settled().await;
    controller.stop().await;
    assert!(called.rest().is_empty());
    assert!(queue.is_shut_down(), "the queue must be shut down, so that no worker takes a key");
}

#[tokio::test(start_paused = true)]
async fn change_overtakes_initial_objects() {
    let source = source();
    for name in ["a", "b", "c", "d"] {
        create(&source, name, "1");
    }
    let running = Running::start(&source, InformerOptions::new()).synced().await;
    let late = idle(&crate::source());
    let runner = ControllerRunner::new(queue()).watches(&running.informer, own_key).waits_for(late.0.clone());
    let (reconcile, mut called) = done();
    let controller = Controller::start(runner, reconcile);
    settled().await;
    running.reach(&update(&source, "c", "2")).await;
    settled().await;
    let late = Running::run(late);
    for name in ["c", "a", "b", "d"] {
        assert_eq!(called.next().await, name);
    }
    controller.stop().await;
    running.stop().await;
    late.stop().await;
}

#[tokio::test(start_paused = true)]
async fn change_overtakes_resynced_objects() {
    let source = source();
    for name in ["a", "b", "c"] {
        create(&source, name, "1");
    }
    let options = InformerOptions::new().resync_period(Duration::from_secs(30));
    let running = Running::start(&source, options).synced().await;
    let queue = queue();
    let runner = ControllerRunner::new(queue.clone()).watches(&running.informer, own_key);
    let (done, mut called) = done();
    let go_on = Arc::new(Notify::new());
    let (held_up, done) = (Arc::clone(&go_on), Arc::new(done));
    let controller = Controller::start(runner, move |request: ReconcileRequest| {
        let (held_up, done) = (Arc::clone(&held_up), Arc::clone(&done));
        async move {
            if request.key().name() == "gate" {
                held_up.notified().await;
            }
            done(request).await
        }
    });
    for name in ["a", "b", "c"] {
        assert_eq!(called.next().await, name);
    }
    queue.add(crate::key("gate"));
    sleep(Duration::from_secs(31)).await;
    assert_eq!(queue.len(), 3, "a resync must queue every object again");
    running.reach(&update(&source, "c", "2")).await;
    settled().await;
    go_on.notify_one();
    for name in ["gate", "c", "a", "b"] {
        assert_eq!(called.next().await, name);
    }
    controller.stop().await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn resync_queues_every_object_again() {
    let source = source();
    create(&source, "a", "1");
    let running =
        Running::start(&source, InformerOptions::new().resync_period(Duration::from_secs(30))).synced().await;
    let runner = ControllerRunner::new(queue()).watches(&running.informer, own_key);
    let (reconcile, mut called) = done();
    let controller = Controller::start(runner, reconcile);
    for _ in 0..3 {
        assert_eq!(called.next().await, "a");
    }
    controller.stop().await;
    running.stop().await;
}

/// Returns the key of the object's owner, whose name is the object's value.
fn named_by_value(object: &Cached<ConfigMap>) -> [ObjectKey; 1] {
    [ObjectKey::namespaced("shop", value_of(object))]
}

#[tokio::test(start_paused = true)]
async fn owner_change_or_deletion_queues_all_owners() {
    let source = source();
    let running = Running::start(&source, InformerOptions::new()).synced().await;
    let runner = ControllerRunner::new(queue()).watches(&running.informer, named_by_value);
    let (reconcile, mut called) = done();
    let controller = Controller::start(runner, reconcile);
    create(&source, "child", "mother");
    assert_eq!(called.next().await, "mother");
    update(&source, "child", "father");
    assert_eq!([called.next().await, called.next().await], ["mother", "father"]);
    source.delete(&ObjectKey::namespaced("shop", "child")).expect("the object exists");
    assert_eq!(called.next().await, "father");
    settled().await;
    assert!(called.rest().is_empty(), "no other owner must be queued");
    controller.stop().await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn key_from_several_informers_is_queued_once() {
    let (parents, children) = (source(), source());
    let of_parents = Running::start(&parents, InformerOptions::new()).synced().await;
    let of_children = Running::start(&children, InformerOptions::new()).synced().await;
    let runner = ControllerRunner::new(queue())
        .watches(&of_parents.informer, own_key)
        .watches(&of_children.informer, named_by_value);
    of_parents.reach(&create(&parents, "a", "")).await;
    of_children.reach(&create(&children, "x", "a")).await;
    of_children.reach(&create(&children, "y", "b")).await;
    settled().await;
    let (reconcile, mut called) = done();
    let controller = Controller::start(runner, reconcile);
    settled().await;
    assert_eq!(called.rest(), ["a", "b"]);
    controller.stop().await;
    of_parents.stop().await;
    of_children.stop().await;
}

#[tokio::test(start_paused = true)]
async fn change_queues_the_keys_found_in_an_index() {
    let (secrets, users) = (source(), source());
    create(&users, "one", "token");
    create(&users, "two", "token");
    create(&users, "three", "other");
    let of_secrets = Running::start(&secrets, InformerOptions::new()).synced().await;
    let of_users = Running::start(&users, InformerOptions::new()).synced().await;
    let index = of_users.informer.add_index("secret", |user: &ConfigMap| Some(value_of(user).to_owned()));
    let users_of = keys_in_index(&index.expect("a free index name"), |secret: &Cached<ConfigMap>| {
        [secret.name().to_owned()]
    });
    let runner = ControllerRunner::new(queue()).watches(&of_secrets.informer, users_of);
    let (reconcile, mut called) = done();
    let controller = Controller::start(runner, reconcile);
    create(&secrets, "token", "");
    settled().await;
    assert_eq!(called.rest(), ["one", "two"]);
    controller.stop().await;
    of_secrets.stop().await;
    of_users.stop().await;
}

fn owned_by(api_version: &str, kind: &str, controller: Option<bool>) -> Cached<Pod> {
    let mut pod = Pod::default();
    pod.metadata.namespace = Some("shop".into());
    pod.metadata.name = Some("web-1".into());
    pod.metadata.owner_references = Some(vec![
        OwnerReference { kind: "ReplicaSet".into(), name: "not-this".into(), ..OwnerReference::default() },
        OwnerReference {
            api_version: api_version.into(),
            kind: kind.into(),
            name: "web".into(),
            controller,
            ..OwnerReference::default()
        },
    ]);
    Cached::new(pod).expect("a valid name")
}

#[test]
fn controller_key_matches_kind_and_group_in_any_version() {
    let of = |pod: &Cached<Pod>| controller_key::<ReplicaSet, Pod>(pod).map(|key| key.to_string());
    let web = Some("shop/web".to_owned());
    assert_eq!(of(&owned_by("apps/v1", "ReplicaSet", Some(true))), web);
    assert_eq!(of(&owned_by("apps/v1beta2", "ReplicaSet", Some(true))), web);
    assert_eq!(of(&owned_by("apps/v1", "ReplicaSet", None)), None);
    assert_eq!(of(&owned_by("apps/v1", "ReplicaSet", Some(false))), None);
    assert_eq!(of(&owned_by("example.com/v1", "ReplicaSet", Some(true))), None);
    assert_eq!(of(&owned_by("apps/v1", "DaemonSet", Some(true))), None);
    let mirror = owned_by("v1", "Node", Some(true));
    let node = controller_key::<Node, Pod>(&mirror).map(|key| key.to_string());
    assert_eq!(node.as_deref(), Some("web"), "nodes are cluster-scoped");
}

#[tokio::test(start_paused = true)]
async fn other_handlers_receive_all_events() {
    let (source, running, runner) = watched().await;
    let options = HandlerOptions::new().resync(Resync::Never);
    let (_registration, mut recorded) = crate::listen(&running.informer, &options);
    let (reconcile, mut called) = done();
    let controller = Controller::start(runner, reconcile);
    source.create(config_map("a", "1")).expect("a new object");
    assert_eq!((called.next().await, recorded.next().await), ("a".to_owned(), "+a=1".to_owned()));
    controller.stop().await;
    // Only the controller's handler was removed.
    source.create(config_map("b", "1")).expect("a new object");
    assert_eq!(recorded.next().await, "+b=1");
    let _: SharedIndexInformer<ConfigMap> = running.informer.clone();
    running.stop().await;
}

/// Returns a function for `ControllerRunner::watches` that reports each call and blocks until the
/// sender of `release` is dropped.
fn values_once_released(
    called: Sender<()>,
    release: Receiver<()>,
) -> impl Fn(&Cached<ConfigMap>) -> [ObjectKey; 1] + Send + Sync + 'static {
    let (called, release) = (Mutex::new(called), Mutex::new(release));
    move |map| {
        // Only the first message is received; a send error is ignored.
        _ = called.lock().send(());
        _ = release.lock().recv();
        [crate::key(value_of(map))]
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_change_is_queued_even_if_undone_later() {
    let source = source();
    create(&source, "first", "first");
    let running = Running::start(&source, InformerOptions::new()).synced().await;
    let ((sender, release), (calls, is_called)) = (channel(), channel());
    let values = values_once_released(calls, release);
    let runner = ControllerRunner::new(queue()).watches(&running.informer, values);
    let (reconcile, mut called) = done();
    let controller = Controller::start(runner, reconcile);
    // Wait until the handler runs, because it does not receive objects that are deleted before its start.
    is_called.recv().expect("the function is called");
    create(&source, "changing", "before");
    update(&source, "changing", "between");
    update(&source, "changing", "after");
    // More events than the default threshold, above which a slow handler coalesces its events.
    for n in 0..1_500 {
        let short_lived = create(&source, &format!("short-lived-{n}"), &format!("value-{n}"));
        source.delete(short_lived.key()).expect("the object exists");
    }
    running.reach(&create(&source, "last", "last")).await;
    drop(sender);
    let mut keys = HashSet::new();
    while !keys.contains("last") || !keys.contains("first") {
        keys.insert(called.next().await);
    }
    let missing: Vec<_> = (0..1_500).filter(|n| !keys.contains(&format!("value-{n}"))).collect();
    assert!(missing.is_empty(), "{} keys of short-lived objects are missing", missing.len());
    assert!(
        ["before", "between", "after"].iter().all(|value| keys.contains(*value)),
        "every change must be queued, not only the last"
    );
    controller.stop().await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn keys_of_both_states_are_queued_in_one_step() {
    let source = source();
    let running = Running::start(&source, InformerOptions::new()).synced().await;
    let queue = queue();
    let (sender, mut lengths) = tokio::sync::mpsc::unbounded_channel();
    let runner = ControllerRunner::new(queue.clone()).watches(&running.informer, move |map| {
        _ = sender.send(queue.len());
        own_key(map)
    });
    let (reconcile, mut called) = done();
    let controller = Controller::start(runner, reconcile);
    create(&source, "a", "1");
    assert_eq!(called.next().await, "a");
    update(&source, "a", "2");
    assert_eq!(called.next().await, "a");
    source.delete(&crate::key("a")).expect("the object exists");
    assert_eq!(called.next().await, "a");
    settled().await;
    let lengths: Vec<_> = std::iter::from_fn(|| lengths.try_recv().ok()).collect();
    assert_eq!(lengths, [0; 5], "the keys of both states must be queued in one step");
    controller.stop().await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_change_of_an_object_leads_to_one_call() {
    const CHANGES: usize = 300;
    let source = source();
    create(&source, "a", "0");
    let running = Running::start(&source, InformerOptions::new()).synced().await;
    let queue = queue();
    let runner = ControllerRunner::new(queue).workers(2).watches(&running.informer, own_key);
    let (reconcile, mut called) = done();
    let controller = Controller::start(runner, reconcile);
    assert_eq!(called.next().await, "a");
    for change in 0..CHANGES {
        update(&source, "a", &change.to_string());
        assert_eq!(called.next().await, "a");
    }
    let monitor = controller.monitor.clone();
    controller.stop().await;
    assert_eq!((monitor.stats().succeeded, called.rest().len()), (1 + CHANGES as u64, 0));
    running.stop().await;
}
