//! Informers as the source of events for programs with kube-runtime: for consumers of watcher
//! events, for kube-runtime's store, and for its controller. Also [`StoreReader`].

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::ready;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, Stream, StreamExt};
use informer_factory::kube_runtime::{StoreReader, object_ref, watcher_events};
use informer_factory::{InformerOptions, ObjectKey, SharedIndexInformer, WaitOutcome};
use informer_testing::MemorySource;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::{Expression, Selector};
use kube_runtime::controller::Action;
use kube_runtime::reflector::ObjectRef;
use kube_runtime::watcher::Event;
use kube_runtime::{Controller, WatchStreamExt, reflector, watcher};
use tokio::sync::mpsc::unbounded_channel;
use tokio_util::sync::{CancellationToken, DropGuard};

fn config_map(name: &str, value: &str) -> ConfigMap {
    let mut object = ConfigMap::default();
    object.metadata.namespace = Some("shop".into());
    object.metadata.name = Some(name.into());
    object.metadata.labels = Some([("value".to_owned(), value.to_owned())].into());
    object
}

fn create(source: &MemorySource<ConfigMap>, name: &str, value: &str) {
    source.create(config_map(name, value)).expect("a new object");
}

/// Runs an informer until the guard is dropped.
async fn running(source: &MemorySource<ConfigMap>) -> (SharedIndexInformer<ConfigMap>, DropGuard) {
    let (informer, task) = SharedIndexInformer::new(Arc::new(source.clone()), InformerOptions::new());
    let shutdown = CancellationToken::new();
    tokio::spawn(task.run(shutdown.clone()));
    informer.synced().wait().await.expect("synced");
    (informer, shutdown.drop_guard())
}

/// Waits until the informer has the source's state.
async fn caught_up(informer: &SharedIndexInformer<ConfigMap>, source: &MemorySource<ConfigMap>) {
    let reached = informer.wait_until(&source.resource_version(), Duration::from_secs(5)).await;
    assert_eq!(reached, WaitOutcome::Reached);
}

/// Formats an event as its type and the name of the object.
fn shown(event: watcher::Result<Event<ConfigMap>>) -> String {
    let name = |object: ConfigMap| object.metadata.name.unwrap_or_default();
    match event.expect("informers' events have no errors") {
        Event::Init => "Init".to_owned(),
        Event::InitApply(object) => format!("InitApply {}", name(object)),
        Event::InitDone => "InitDone".to_owned(),
        Event::Apply(object) => format!("Apply {}", name(object)),
        Event::Delete(object) => format!("Delete {}", name(object)),
    }
}

async fn next(events: &mut (impl Stream<Item = watcher::Result<Event<ConfigMap>>> + Unpin)) -> String {
    shown(events.next().await.expect("the informer runs"))
}

#[tokio::test(start_paused = true)]
async fn initial_objects_are_init_and_later_ones_apply() {
    let source = MemorySource::new("configmaps");
    create(&source, "a", "1");
    let (informer, _running) = running(&source).await;
    let mut events = watcher_events(&informer);
    assert_eq!([next(&mut events).await, next(&mut events).await], ["Init", "InitApply a"]);
    assert_eq!(next(&mut events).await, "InitDone");
    assert!(events.next().now_or_never().is_none(), "no event before a change");
    create(&source, "b", "1");
    assert_eq!(next(&mut events).await, "Apply b");
    source.update(config_map("a", "2")).expect("the object exists");
    assert_eq!(next(&mut events).await, "Apply a");
    source.delete(&ObjectKey::namespaced("shop", "a")).expect("the object exists");
    assert_eq!(next(&mut events).await, "Delete a");
}

#[tokio::test(start_paused = true)]
async fn informer_started_later_delivers_its_list_as_init() {
    let source = MemorySource::new("configmaps");
    create(&source, "a", "1");
    let (informer, task) = SharedIndexInformer::new(Arc::new(source.clone()), InformerOptions::new());
    let mut events = watcher_events(&informer);
    assert_eq!(next(&mut events).await, "Init");
    assert!(events.next().now_or_never().is_none(), "no event before the start");
    let shutdown = CancellationToken::new();
    let running = tokio::spawn(task.run(shutdown.clone()));
    assert_eq!([next(&mut events).await, next(&mut events).await], ["InitApply a", "InitDone"]);
    shutdown.cancel();
    assert!(events.next().await.is_none(), "the stream ends with the informer");
    running.await.expect("no panic");
}

#[tokio::test(start_paused = true)]
async fn object_deleted_during_the_initial_list_is_deleted_after_it() {
    let source = MemorySource::new("configmaps");
    for name in ["a", "b", "c"] {
        create(&source, name, "1");
    }
    let (informer, _running) = running(&source).await;
    let mut events = watcher_events(&informer);
    let mut recorded = vec![next(&mut events).await, next(&mut events).await];
    let first = recorded[1].strip_prefix("InitApply ").expect("one of the three objects").to_owned();
    source.delete(&ObjectKey::namespaced("shop", &first)).expect("the object exists");
    caught_up(&informer, &source).await;
    for _ in 0..4 {
        recorded.push(next(&mut events).await);
    }
    assert_eq!(recorded[4..], ["InitDone".to_owned(), format!("Delete {first}")], "{recorded:?}");
}

#[tokio::test(start_paused = true)]
async fn kube_runtime_store_equals_the_informer() {
    let source = MemorySource::new("configmaps");
    create(&source, "a", "1");
    create(&source, "b", "1");
    let (informer, _running) = running(&source).await;
    let (store, writer) = reflector::store();
    let mut events = pin!(watcher_events(&informer).reflect(writer));
    for _ in 0..4 {
        events.next().await.expect("an event").expect("no error");
    }
    store.wait_until_ready().await.expect("the store is ready");
    source.delete(&ObjectKey::namespaced("shop", "a")).expect("the object exists");
    create(&source, "c", "1");
    for _ in 0..2 {
        events.next().await.expect("an event").expect("no error");
    }
    let versions =
        |object: &ConfigMap| (object.metadata.name.clone(), object.metadata.resource_version.clone());
    let theirs: BTreeMap<_, _> = store.state().iter().map(|object| versions(object)).collect();
    let ours: BTreeMap<_, _> = informer.indexer().list().iter().map(|object| versions(object)).collect();
    assert_eq!(theirs, ours);
    assert_eq!(theirs.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn reader_behaves_like_kube_runtimes_store() {
    let source = MemorySource::new("configmaps");
    create(&source, "a", "1");
    create(&source, "b", "2");
    let (informer, _running) = running(&source).await;
    let reader = StoreReader::new(&informer);
    reader.wait_until_ready().await.expect("the reader has synced");
    assert_eq!((reader.len(), reader.is_empty(), reader.state().len()), (2, false, 2));
    let found = reader.get(&ObjectRef::new("a").within("shop")).expect("the object exists");
    assert_eq!(*found.key(), ObjectKey::namespaced("shop", "a"));
    assert!(reader.get(&ObjectRef::new("a")).is_none(), "the object is namespaced");
    let is_b = |object: &ConfigMap| object.metadata.name.as_deref() == Some("b");
    assert_eq!(reader.find(is_b).expect("the object exists").key().name(), "b");
    assert_eq!(reader.state_filter(is_b).len(), 1);
    let selector: Selector = Expression::Equal("value".into(), "2".into()).into();
    let selected = reader.state_filter_selector(&selector);
    assert_eq!(selected.iter().map(|object| object.key().name()).collect::<Vec<_>>(), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn cluster_scoped_object_is_found_in_any_namespace() {
    let source = MemorySource::<k8s_openapi::api::core::v1::Node>::new("nodes");
    let mut node = k8s_openapi::api::core::v1::Node::default();
    node.metadata.name = Some("n1".into());
    source.create(node).expect("a new object");
    let (informer, task) = SharedIndexInformer::new(Arc::new(source), InformerOptions::new());
    let shutdown = CancellationToken::new();
    tokio::spawn(task.run(shutdown.clone()));
    let _running = shutdown.drop_guard();
    let reader = StoreReader::new(&informer);
    reader.wait_until_ready().await.expect("synced");
    assert!(reader.get(&ObjectRef::new("n1").within("anything")).is_some());
    assert!(reader.get(&object_ref(&ObjectKey::cluster_scoped("n1"))).is_some());
}

#[tokio::test(start_paused = true)]
async fn kube_runtime_controller_reconciles_informer_events() {
    let source = MemorySource::new("configmaps");
    create(&source, "a", "1");
    let (informer, _running) = running(&source).await;
    let (store, writer) = reflector::store();
    let objects = watcher_events(&informer).reflect(writer).touched_objects();
    let (reconciled, mut seen) = unbounded_channel();
    let reconcile = move |object: Arc<ConfigMap>, _: Arc<()>| {
        let value = object.metadata.labels.as_ref().and_then(|labels| labels.get("value").cloned());
        reconciled.send((object.metadata.name.clone(), value)).expect("the receiver is open");
        ready(Ok::<_, Infallible>(Action::await_change()))
    };
    let controller = Controller::for_stream(objects, store)
        .run(reconcile, |_, error: &Infallible, _| match *error {}, Arc::new(()))
        .for_each(async |_| {});
    let controller = tokio::spawn(controller);
    let shown = |name: &str, value: &str| Some((Some(name.to_owned()), Some(value.to_owned())));
    assert_eq!(seen.recv().await, shown("a", "1"));
    create(&source, "b", "1");
    assert_eq!(seen.recv().await, shown("b", "1"));
    source.update(config_map("a", "2")).expect("the object exists");
    assert_eq!(seen.recv().await, shown("a", "2"));
    controller.abort();
}
