//! Controllers over informers with a changing set of namespaces.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use informer_controller::{
    ControllerRunner, ReconcileRequest, Reconciled, RunnerMonitor, Workqueue, own_key,
};
use informer_factory::{InformerOptions, NotSynced, ObjectKey};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::fixture::{Running, config_map, source};
use crate::log::Log;
use crate::server::Server;

fn queue() -> Workqueue<ObjectKey> {
    Workqueue::builder().name("parents").build()
}

/// A controller that reports the key of each call.
struct Controller {
    called: UnboundedReceiver<String>,
    monitor: RunnerMonitor,
    shutdown: CancellationToken,
    task: JoinHandle<Result<(), NotSynced>>,
}

impl Controller {
    /// Starts a controller that watches `parents` and also reads `children`.
    fn start(parents: &Running, children: &Running) -> Self {
        let runner = ControllerRunner::new(queue())
            .watches(&parents.informer, own_key)
            .waits_for(children.informer.clone());
        Self::run(runner, |_| Reconciled::Done)
    }

    /// Starts a controller whose calls end at once with the result of `reconcile`.
    fn run(
        runner: ControllerRunner<ObjectKey>,
        reconcile: impl Fn(&ReconcileRequest) -> Reconciled + Send + Sync + 'static,
    ) -> Self {
        let (sender, called) = unbounded_channel();
        let reconcile = move |request: ReconcileRequest| {
            _ = sender.send(request.key().to_string());
            std::future::ready(Ok::<_, Infallible>(reconcile(&request)))
        };
        let (monitor, shutdown) = (runner.monitor(), CancellationToken::new());
        let task = tokio::spawn(runner.run(reconcile, shutdown.clone()));
        Self { called, monitor, shutdown, task }
    }

    async fn next(&mut self) -> String {
        let called = timeout(Duration::from_secs(3_600), self.called.recv()).await;
        called.expect("no call before the timeout").expect("the controller runs")
    }

    /// Waits until all tasks are idle, which takes 1 ms of virtual time. Returns the sorted keys of the
    /// calls.
    async fn settled(&mut self) -> Vec<String> {
        sleep(Duration::from_millis(1)).await;
        let mut called: Vec<_> = std::iter::from_fn(|| self.called.try_recv().ok()).collect();
        called.sort();
        called
    }

    async fn stop(self) {
        self.shutdown.cancel();
        self.task.await.expect("no panic").expect("synced");
    }
}

/// Returns a server with a parent in namespace `c`, and informers of parents and children, which
/// watch namespace `a`. The first list of children in `c` is refused.
async fn with_children_refused_in_c() -> (Server, Running, Running) {
    let (of_parents, of_children) = (Server::new(), Server::new());
    of_parents.put("c", "late", "1");
    of_children.put("c", "child", "1");
    of_children.of("c").fail_next_list(refusal());
    let (parents, children) = (of_parents.start(&["a"]), of_children.start(&["a"]));
    (of_parents, parents.synced().await, children.synced().await)
}

#[tokio::test(start_paused = true)]
async fn i6_key_of_later_namespace_waits_for_all_caches() {
    let (of_parents, parents, children) = with_children_refused_in_c().await;
    let mut controller = Controller::start(&parents, &children);
    children.informer.add_namespace("c").expect("a valid name");
    add(&parents, "c").await;
    assert!(!children.informer.synced_in("c").has_synced() && children.informer.synced_in("a").has_synced());
    of_parents.put("a", "other", "1");
    assert_eq!(controller.settled().await, ["a/other"]);
    assert_eq!(controller.monitor.stats().parked_now, 1);

    assert_eq!(controller.next().await, "c/late");
    assert!(children.informer.get(&"c/child".parse().expect("a key")).is_some());
    controller.stop().await;
    parents.stop().await;
    children.stop().await;
}

#[tokio::test(start_paused = true)]
async fn key_stops_waiting_for_a_removed_namespace() {
    let (_, parents, children) = with_children_refused_in_c().await;
    let mut controller = Controller::start(&parents, &children);
    children.informer.add_namespace("c").expect("a valid name");
    add(&parents, "c").await;
    assert!(controller.settled().await.is_empty());
    children.informer.remove_namespace("c").expect("a valid name");
    assert_eq!(controller.settled().await, ["c/late"]);
    controller.stop().await;
    parents.stop().await;
    children.stop().await;
}

#[tokio::test(start_paused = true)]
async fn key_of_removed_namespace_waits_for_no_other_cache() {
    let (_, parents, children) = with_children_refused_in_c().await;
    let mut controller = Controller::start(&parents, &children);
    children.informer.add_namespace("c").expect("a valid name");
    add(&parents, "c").await;
    assert!(controller.settled().await.is_empty());
    assert_eq!(controller.monitor.stats().parked_now, 1);
    remove(&parents, "c").await;
    assert!(controller.settled().await.is_empty());
    let stats = controller.monitor.stats();
    assert_eq!((stats.dropped, stats.parked_now), (1, 0));
    controller.stop().await;
    parents.stop().await;
    children.stop().await;
}

#[tokio::test(start_paused = true)]
async fn cache_of_one_namespace_delays_only_its_keys() {
    let (of_parents, parents, children) = with_children_refused_in_c().await;
    let runner = ControllerRunner::new(queue())
        .watches(&parents.informer, own_key)
        .waits_for(children.informer.cache_in("c"));
    let mut controller = Controller::run(runner, |_| Reconciled::Done);
    assert!(controller.settled().await.is_empty());
    children.informer.add_namespace("c").expect("a valid name");
    add(&parents, "c").await;
    of_parents.put("a", "other", "1");
    assert_eq!(controller.settled().await, ["a/other"]);
    assert_eq!(controller.monitor.stats().parked_now, 1);
    assert_eq!(controller.next().await, "c/late");
    controller.stop().await;
    parents.stop().await;
    children.stop().await;
}

#[tokio::test(start_paused = true)]
async fn key_of_unlisted_namespace_is_dropped_when_informer_stops() {
    let (_, parents, children) = with_children_refused_in_c().await;
    let mut controller = Controller::start(&parents, &children);
    children.informer.add_namespace("c").expect("a valid name");
    add(&parents, "c").await;
    assert!(controller.settled().await.is_empty());
    children.stop().await;
    assert!(controller.settled().await.is_empty(), "a call would treat the unlisted child as missing");
    let stats = controller.monitor.stats();
    assert_eq!((stats.dropped, stats.parked_now), (1, 0));
    controller.stop().await;
    parents.stop().await;
}

#[tokio::test(start_paused = true)]
async fn released_objects_queue_no_keys() {
    let (of_parents, of_children) = (Server::new(), Server::new());
    of_parents.put("b", "one", "1");
    let (parents, children) =
        (of_parents.start(&["a", "b"]).synced().await, of_children.start(&["a"]).synced().await);
    let mut controller = Controller::start(&parents, &children);
    assert_eq!(controller.next().await, "b/one");
    remove(&parents, "b").await;
    assert!(parents.informer.get(&"b/one".parse().expect("a key")).is_none());
    assert!(controller.settled().await.is_empty(), "a call would treat the released object as deleted");
    controller.stop().await;
    parents.stop().await;
    children.stop().await;
}

const MINUTE: Duration = Duration::from_secs(60);

/// Returns a server with one parent in each of the namespaces `a` and `b`, and an informer of both
/// namespaces.
async fn parents_in_a_and_b() -> (Server, Running) {
    let server = Server::new();
    server.put("a", "one", "1");
    server.put("b", "two", "1");
    let parents = server.start(&["a", "b"]).synced().await;
    (server, parents)
}

async fn remove(running: &Running, namespace: &str) {
    running
        .informer
        .remove_namespace(namespace)
        .expect("a valid name")
        .wait()
        .await
        .expect("the informer runs");
}

async fn add(running: &Running, namespace: &str) {
    running
        .informer
        .add_namespace(namespace)
        .expect("a valid name")
        .wait()
        .await
        .expect("the namespace is listed");
}

#[tokio::test(start_paused = true)]
async fn delayed_key_of_removed_namespace_is_dropped() {
    let (_, parents) = parents_in_a_and_b().await;
    let runner = ControllerRunner::new(queue()).watches(&parents.informer, own_key);
    let mut controller = Controller::run(runner, |_| Reconciled::RequeueAfter(MINUTE));
    assert_eq!(controller.settled().await, ["a/one", "b/two"]);
    remove(&parents, "b").await;
    sleep(MINUTE).await;
    assert_eq!(controller.settled().await, ["a/one"], "a call would treat b/two as deleted");
    assert_eq!(controller.monitor.stats().dropped, 1);
    sleep(MINUTE).await;
    assert_eq!((controller.settled().await, controller.monitor.stats().dropped), (vec!["a/one".into()], 1));
    controller.stop().await;
    parents.stop().await;
}

#[tokio::test(start_paused = true)]
async fn delayed_key_of_namespace_added_again_is_reconciled() {
    let (_, parents) = parents_in_a_and_b().await;
    let runner = ControllerRunner::new(queue()).watches(&parents.informer, own_key);
    let mut controller = Controller::run(runner, |_| Reconciled::RequeueAfter(MINUTE));
    assert_eq!(controller.settled().await, ["a/one", "b/two"]);
    remove(&parents, "b").await;
    add(&parents, "b").await;
    assert_eq!(controller.settled().await, ["b/two"], "the namespace is watched again");
    sleep(MINUTE).await;
    assert_eq!(controller.settled().await, ["a/one", "b/two"]);
    assert_eq!(controller.monitor.stats().dropped, 0);
    controller.stop().await;
    parents.stop().await;
}

/// A key of another type than [`ObjectKey`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Tenant {
    home: String,
    name: String,
}

#[tokio::test(start_paused = true)]
async fn custom_key_of_removed_namespace_is_dropped() {
    let (_, parents) = parents_in_a_and_b().await;
    let queue = Workqueue::<Tenant>::builder().name("tenants").build();
    let runner = ControllerRunner::with_keys(queue.clone(), |tenant: &Tenant| Some(&tenant.home)).watches(
        &parents.informer,
        |object| {
            let home = object.namespace()?.to_owned();
            Some(Tenant { home, name: object.name().to_owned() })
        },
    );
    let (sender, mut called) = unbounded_channel();
    let (monitor, shutdown) = (runner.monitor(), CancellationToken::new());
    let reconcile = move |request: ReconcileRequest<Tenant>| {
        _ = sender.send(request.key().name.clone());
        std::future::ready(Ok::<_, Infallible>(Reconciled::Done))
    };
    let task = tokio::spawn(runner.run(reconcile, shutdown.clone()));
    assert_eq!((called.recv().await.as_deref(), called.recv().await.as_deref()), (Some("one"), Some("two")));
    queue.add_after(Tenant { home: "b".into(), name: "two".into() }, MINUTE);
    remove(&parents, "b").await;
    sleep(MINUTE * 2).await;
    assert_eq!((called.try_recv().ok(), monitor.stats().dropped), (None, 1));
    shutdown.cancel();
    task.await.expect("no panic").expect("synced");
    parents.stop().await;
}

#[tokio::test(start_paused = true)]
async fn request_distinguishes_released_from_deleted_objects() {
    let (server, parents) = parents_in_a_and_b().await;
    let queue = queue();
    let runner = ControllerRunner::new(queue.clone()).watches(&parents.informer, own_key).workers(2);
    let (sender, mut receiver) = unbounded_channel();
    let (begun, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let shutdown = CancellationToken::new();
    let task = tokio::spawn(runner.run(
        {
            let (informer, begun, go_on) = (parents.informer.clone(), Arc::clone(&begun), Arc::clone(&go_on));
            move |request: ReconcileRequest| {
                let (sender, informer) = (sender.clone(), informer.clone());
                let (begun, go_on) = (Arc::clone(&begun), Arc::clone(&go_on));
                async move {
                    assert!(request.is_namespace_watched());
                    begun.notify_one();
                    go_on.notified().await;
                    let exists = informer.get(request.key()).is_some();
                    _ = sender.send((request.key().to_string(), exists, request.is_namespace_watched()));
                    Ok::<_, Infallible>(Reconciled::Done)
                }
            }
        },
        shutdown.clone(),
    ));
    begun.notified().await;
    sleep(Duration::from_millis(1)).await;
    // While both calls are in flight, one object is deleted, and the namespace of the other object is
    // removed.
    server.delete("a", "one");
    sleep(Duration::from_millis(1)).await;
    remove(&parents, "b").await;
    go_on.notify_waiters();
    let mut both = [receiver.recv().await, receiver.recv().await];
    both.sort();
    let expected = [("a/one", false, true), ("b/two", false, false)];
    assert_eq!(both, expected.map(|(key, exists, is_watched)| Some((key.to_owned(), exists, is_watched))));
    shutdown.cancel();
    go_on.notify_waiters();
    task.abort();
    parents.stop().await;
}

/// Starts a controller of parents and children, both watched in the namespaces `a` and `b`. A child
/// has the key of its parent.
async fn families() -> (Server, Running, Running, Controller) {
    let (server, parents) = parents_in_a_and_b().await;
    let children = Server::new().start(&["a", "b"]).synced().await;
    let runner = ControllerRunner::new(queue())
        .watches(&parents.informer, own_key)
        .watches(&children.informer, own_key);
    let mut controller = Controller::run(runner, |_| Reconciled::Done);
    assert_eq!(controller.settled().await, ["a/one", "b/two"]);
    (server, parents, children, controller)
}

#[tokio::test(start_paused = true)]
async fn key_waits_while_only_some_informers_watch_its_namespace() {
    let (server, parents, children, mut controller) = families().await;
    remove(&children, "b").await;
    server.put("b", "two", "2");
    server.put("a", "one", "2");
    assert_eq!(controller.settled().await, ["a/one"], "a call would treat the children of b/two as deleted");
    assert_eq!(controller.monitor.stats().parked_now, 1);
    add(&children, "b").await;
    assert_eq!(controller.settled().await, ["b/two"]);
    assert_eq!(controller.monitor.stats().dropped, 0);
    controller.stop().await;
    parents.stop().await;
    children.stop().await;
}

#[tokio::test(start_paused = true)]
async fn key_waits_while_another_informer_watches_all_namespaces() {
    let everywhere = source();
    let parents = Running::start(&everywhere, InformerOptions::new()).synced().await;
    let children = Server::new().start(&["a", "b"]).synced().await;
    let runner = ControllerRunner::new(queue())
        .watches(&parents.informer, own_key)
        .watches(&children.informer, own_key);
    let mut controller = Controller::run(runner, |_| Reconciled::Done);
    assert!(controller.settled().await.is_empty());
    remove(&children, "b").await;
    let mut parent = config_map("two", "1");
    parent.metadata.namespace = Some("b".into());
    everywhere.create(parent).expect("a new object");
    assert!(controller.settled().await.is_empty(), "a call would treat the children of b/two as deleted");
    assert_eq!(controller.monitor.stats().parked_now, 1);
    add(&children, "b").await;
    assert_eq!(controller.settled().await, ["b/two"]);
    assert_eq!(controller.monitor.stats().dropped, 0);
    controller.stop().await;
    parents.stop().await;
    children.stop().await;
}

#[tokio::test(start_paused = true)]
async fn request_shows_removal_from_a_cache_of_one_namespace() {
    let (server, parents) = parents_in_a_and_b().await;
    let children = Server::new().start(&["b"]).synced().await;
    let runner = ControllerRunner::new(queue())
        .watches(&parents.informer, own_key)
        .waits_for(children.informer.cache_in("b"));
    let (sender, mut receiver) = unbounded_channel();
    let mut controller = Controller::run(runner, move |request| {
        _ = sender.send(request.is_namespace_watched());
        Reconciled::Done
    });
    assert_eq!(controller.settled().await, ["a/one", "b/two"]);
    remove(&children, "b").await;
    server.put("b", "two", "2");
    assert_eq!(controller.settled().await, ["b/two"]);
    let answers: Vec<_> = std::iter::from_fn(|| receiver.try_recv().ok()).collect();
    assert_eq!(answers, [true, true, false]);
    controller.stop().await;
    parents.stop().await;
    children.stop().await;
}

#[tokio::test(start_paused = true)]
async fn parked_key_is_dropped_when_its_namespace_is_unwatched() {
    let (server, parents, children, mut controller) = families().await;
    remove(&children, "b").await;
    server.put("b", "two", "2");
    assert!(controller.settled().await.is_empty());
    remove(&parents, "b").await;
    assert!(controller.settled().await.is_empty());
    let stats = controller.monitor.stats();
    assert_eq!((stats.dropped, stats.parked_now, stats.parked_timed_out), (1, 0, 0));
    controller.stop().await;
    parents.stop().await;
    children.stop().await;
}

#[tokio::test(start_paused = true)]
async fn key_of_namespace_never_watched_is_reconciled() {
    let (_, parents) = parents_in_a_and_b().await;
    let queue = queue();
    let runner = ControllerRunner::new(queue.clone()).watches(&parents.informer, own_key);
    let mut controller = Controller::run(runner, |_| Reconciled::Done);
    assert_eq!(controller.settled().await.len(), 2);
    queue.add(ObjectKey::namespaced("elsewhere", "x"));
    queue.add(ObjectKey::cluster_scoped("y"));
    assert_eq!(controller.settled().await, ["elsewhere/x", "y"]);
    controller.stop().await;
    parents.stop().await;
}

fn refusal() -> informer_factory::ListWatchError {
    Box::new(kube::core::Status::failure("not for you", "Forbidden").with_code(403)).into()
}

/// Returns a server with an object in each of the namespaces `a` and `b`. The server rejects the
/// first `times` lists of `b`.
fn refusing(times: usize) -> Server {
    let server = Server::new();
    server.put("a", "one", "1");
    server.put("b", "two", "1");
    (0..times).for_each(|_| server.of("b").fail_next_list(refusal()));
    server
}

#[tokio::test(start_paused = true)]
async fn controller_works_without_refused_namespace() {
    let (warnings, _logging) = Log::keep(tracing::Level::WARN);
    let server = refusing(20);
    let parents = server.start(&["a", "b"]);
    let queue = queue();
    let runner = ControllerRunner::new(queue.clone()).watches(&parents.informer, own_key);
    let mut controller = Controller::run(runner, |_| Reconciled::Done);
    assert_eq!(controller.next().await, "a/one");

    // A call for a key of the refused namespace would treat the object as deleted. Such keys stay
    // parked, with a log line every two minutes.
    queue.add("b/two".parse().expect("a key"));
    queue.add("b/three".parse().expect("a key"));
    sleep(3 * MINUTE).await;
    assert!(controller.settled().await.is_empty());
    assert_eq!(controller.monitor.stats().parked_now, 2);
    let lines = warnings.with("stay parked");
    let [line] = lines.as_slice() else { panic!("expected one log line: {lines:?}") };
    assert!(line.contains("namespace=\"b\"") && line.contains("forbidden"), "{line}");
    sleep(2 * MINUTE).await;
    assert_eq!(warnings.with("stay parked").len(), 2);

    parents.informer.synced_in("b").wait().await.expect("the namespace is listed");
    assert_eq!(controller.settled().await, ["b/three", "b/two"]);
    controller.stop().await;
    parents.stop().await;
}

#[tokio::test(start_paused = true)]
async fn required_namespace_that_is_refused_ends_the_controller() {
    let server = refusing(100);
    let parents = server.start(&["a", "b"]);
    let runner = ControllerRunner::new(queue())
        .watches(&parents.informer, own_key)
        .waits_for(parents.informer.cache_in("b"));
    let controller = Controller::run(runner, |_| Reconciled::Done);
    let message = controller.task.await.expect("no panic").expect_err("a refusal").to_string();
    assert!(message.contains("namespace \"b\": forbidden"), "{message}");
    parents.stop().await;
}
