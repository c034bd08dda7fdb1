//! Interrupted lists: the store receives the parts of an initial list, but nothing of an
//! interrupted later list.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use informer_core::{Batch, Cached, Delta, DeltaFifo, KnownObjects, ListWatchError, ObjectKey};
use informer_reflector::{Health, Reflector, ReflectorConfig, ReflectorStatus};
use k8s_openapi::api::core::v1::ConfigMap;
use parking_lot::Mutex;
use tokio::sync::mpsc::UnboundedReceiver;

use super::script::*;

/// The store of the queue's consumer: the objects by their keys.
#[derive(Default)]
struct Store(Mutex<BTreeMap<ObjectKey, Cached<ConfigMap>>>);

impl KnownObjects<ConfigMap> for Store {
    fn known(&self, key: &ObjectKey) -> Option<Cached<ConfigMap>> {
        self.0.lock().get(key).cloned()
    }

    fn for_each_known(&self, visit: &mut dyn FnMut(&Cached<ConfigMap>)) -> Option<Box<dyn Any + Send>> {
        self.0.lock().values().for_each(visit);
        None
    }
}

/// A reflector, its queue, and the store that the test fills from the queue.
struct Pipeline {
    queue: DeltaFifo<ConfigMap>,
    store: Arc<Store>,
    status: ReflectorStatus,
    requests: UnboundedReceiver<String>,
}

impl Pipeline {
    fn new(lines: Vec<Line>) -> Self {
        let (script, requests) = Script::new(lines);
        Self::over(script, requests)
    }

    fn streaming(lines: Vec<Line>) -> Self {
        let (script, requests) = Script::new(lines);
        Self::over(script.streaming(), requests)
    }

    fn over(script: Script, requests: UnboundedReceiver<String>) -> Self {
        let store = Arc::new(Store::default());
        let queue = DeltaFifo::with_known_objects(Arc::clone(&store) as Arc<dyn KnownObjects<ConfigMap>>);
        let reflector = Reflector::new(Arc::new(script), Arc::new(queue.clone()), ReflectorConfig::new());
        let status = reflector.status();
        tokio::spawn(reflector.run(Default::default()));
        Self { queue, store, status, requests }
    }

    /// Applies the next batch to the store and describes it: `a@1` is a stored object and its
    /// version, `a!` a removed object.
    async fn process(&self) -> String {
        let batch = self.queue.pop_batch().await.expect("not closed");
        let shown: Vec<_> = batch.items().iter().map(|pending| self.apply(&pending.deltas)).collect();
        describe(&batch, &shown.join(" "))
    }

    fn apply(&self, deltas: &[Delta<ConfigMap>]) -> String {
        let mut objects = self.store.0.lock();
        for delta in deltas {
            match delta {
                Delta::Deleted(deleted) => _ = objects.remove(deleted.key()),
                other => {
                    _ = other.object().map(|object| objects.insert(object.key().clone(), object.clone()));
                }
            }
        }
        let key = deltas[0].key();
        objects.get(key).map_or(format!("{key}!"), |object| format!("{key}@{}", object.resource_version()))
    }

    async fn expect_requests(&mut self, expected: &[&str]) {
        for expected in expected {
            assert_eq!(self.requests.recv().await.as_deref(), Some(*expected));
        }
    }
}

fn describe(batch: &Batch<ConfigMap>, shown: &str) -> String {
    let initial = batch.items().iter().any(informer_core::Pending::is_in_initial_list);
    let marks = [(initial, " initial"), (batch.completes_initial_list(), " complete")];
    let marks: String = marks.into_iter().filter_map(|(holds, mark)| holds.then_some(mark)).collect();
    format!("{shown}{marks}")
}

#[tokio::test(start_paused = true)]
async fn initial_list_is_delivered_in_parts_and_syncs_at_its_end() {
    let (events, line) = stream_of(vec![vec![added("a", "1")]]);
    let pipeline = Pipeline::streaming(vec![line]);
    assert_eq!(pipeline.process().await, "a@1 initial");
    assert!(!pipeline.queue.has_synced());
    send(&events, vec![added("b", "2")]);
    assert_eq!(pipeline.process().await, "b@2 initial");
    assert!(!pipeline.queue.has_synced() && matches!(pipeline.status.health(), Health::Syncing { .. }));
    send(&events, vec![end("7")]);
    assert_eq!(pipeline.process().await, " complete");
    assert!(pipeline.queue.has_synced());
}

#[tokio::test(start_paused = true)]
async fn pages_of_the_initial_list_are_applied_one_by_one() {
    let lines = vec![Line::Page(vec![item("a", "1")], "7", Some("t")), Line::Silence];
    let mut pipeline = Pipeline::new(lines);
    pipeline.expect_requests(&["list 0 500", "list newest 500 from t"]).await;
    assert_eq!(pipeline.process().await, "a@1 initial");
}

#[tokio::test(start_paused = true)]
async fn retried_initial_stream_deletes_missing_objects() {
    let (events, broken) = stream_of(vec![vec![added("a", "1"), added("b", "2"), added("c", "3")]]);
    let (_goes_on, next) =
        stream_of(vec![vec![added("a", "1"), added("b", "5"), added("d", "6")], vec![end("7")]]);
    let mut pipeline = Pipeline::streaming(vec![broken, next]);
    assert_eq!(pipeline.process().await, "a@1 b@2 c@3 initial");
    events
        .unbounded_send(Err(ListWatchError::Interrupted("reset".into())))
        .expect("the reflector reads the stream");
    pipeline.expect_requests(&["stream newest", "stream newest"]).await;
    let mut rest = vec![pipeline.process().await];
    while !pipeline.queue.has_synced() {
        rest.push(pipeline.process().await);
    }
    assert_eq!(rest, ["b@5 d@6 c! initial complete"]);
}

#[tokio::test(start_paused = true)]
async fn i1_list_after_an_interrupted_list_requests_the_newest() {
    let lines = vec![
        Line::Page(vec![item("a", "5")], "7", Some("t")),
        Line::ListFails(ListWatchError::Interrupted("reset".into())),
        page(vec![item("a", "6")], "8"),
    ];
    let mut pipeline = Pipeline::new(lines);
    // `0` would return any version that the server's cache has, which may be older than the first
    // page.
    pipeline.expect_requests(&["list 0 500", "list newest 500 from t", "list newest 500", "watch 8"]).await;
}

#[tokio::test(start_paused = true)]
async fn i9_interrupted_relist_changes_nothing() {
    let (first, first_line) = stream_of(vec![vec![added("a", "1"), added("b", "2"), end("7")]]);
    let (second, second_line) = stream_of(vec![vec![added("b", "9"), added("c", "8")]]);
    let (_third, third_line) =
        stream_of(vec![vec![added("b", "9"), added("c", "8"), added("a", "1"), end("12")]]);
    let mut pipeline = Pipeline::streaming(vec![first_line, second_line, third_line]);
    assert_eq!(pipeline.process().await, "a@1 b@2 initial complete");
    send(&first, vec![error(410, "Expired")]);
    pipeline.expect_requests(&["stream newest", "stream 7"]).await;
    let before = pipeline.store.0.lock().clone();
    second
        .unbounded_send(Err(ListWatchError::Interrupted("reset".into())))
        .expect("the reflector reads the stream");
    // Both relists together cause only this change: the interrupted relist causes none, and
    // unchanged objects cause none.
    let mut changes = pipeline.process().await;
    while changes.is_empty() {
        changes = pipeline.process().await;
    }
    assert_eq!(changes, "b@9 c@8");
    let after = pipeline.store.0.lock().clone();
    let a = ObjectKey::cluster_scoped("a");
    assert!(after[&a].ptr_eq(&before[&a]), "an unchanged object keeps its allocation");
}
