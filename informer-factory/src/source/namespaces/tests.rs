//! Tests of a race between the removal and the addition of a namespace, of removals after the
//! informer's end, and of the description.

use futures::FutureExt;
use informer_store::store;
use informer_testing::MemorySource;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::PartialObjectMeta;

use super::*;

#[tokio::test(start_paused = true)]
async fn relist_after_release_keeps_new_objects() {
    let source = MemorySource::<ConfigMap>::new("configmaps of shop");
    let mut object = ConfigMap::default();
    (object.metadata.namespace, object.metadata.name) = (Some("shop".into()), Some("one".into()));
    source.create(object).expect("the object does not exist yet");
    let queue = DeltaFifo::with_known_objects(Arc::new(store::<ConfigMap>().1));
    let make = move |_: &str| Arc::new(source.clone()) as Arc<dyn ListerWatcher<ConfigMap>>;
    let config = (ReflectorConfig::new(), Ingest::of::<ConfigMap>());
    let namespaces = Namespaces::new(Box::new(make), &["shop".to_owned()], queue.clone(), config);
    let namespaces = Arc::new(namespaces.expect("the name is valid"));
    let shutdown = CancellationToken::new();
    let task = NamespacesTask { namespaces: Arc::clone(&namespaces) };
    task.begin();
    let task = tokio::spawn(task.run(shutdown.clone()));
    let settled = || tokio::time::sleep(std::time::Duration::from_millis(1));
    settled().await;

    // Simulates two threads: one removes the namespace, and the other adds the namespace again
    // before the first thread has stopped the reflector.
    let (member, work) = namespaces.take_out("shop").expect("the namespace is watched");
    let again = namespaces.add("shop").expect("the name is valid");
    settled().await;
    let gone = namespaces.end_member(&member, work);
    settled().await;

    let batch = queue.pop_batch().now_or_never().flatten().expect("a batch is pending");
    let deltas: Vec<_> = batch.items().iter().flat_map(|pending| pending.deltas.iter()).collect();
    assert!(deltas.last().is_some_and(|last| !last.is_end()), "{deltas:?}");
    drop(batch);
    assert!(gone.has_synced() && again.has_synced());
    shutdown.cancel();
    task.await.expect("the task does not panic");
}

#[tokio::test]
async fn ended_informer_keeps_no_pending_removals() {
    let source = MemorySource::<ConfigMap>::new("configmaps");
    let make = move |_: &str| Arc::new(source.clone()) as Arc<dyn ListerWatcher<ConfigMap>>;
    let config = (ReflectorConfig::new(), Ingest::of::<ConfigMap>());
    let queue = DeltaFifo::new();
    let namespaces = Namespaces::new(Box::new(make), &["shop".to_owned()], queue.clone(), config);
    let namespaces = Arc::new(namespaces.expect("the name is valid"));
    drop(NamespacesTask { namespaces: Arc::clone(&namespaces) });
    queue.abandon();
    for name in ["shop", "other"] {
        namespaces.add(name).expect("the name is valid");
        for _ in 0..2 {
            let removed = namespaces.remove(name).expect("the name is valid");
            assert!(removed.wait().await.is_err(), "{name}: the informer has ended");
        }
    }
    assert!(namespaces.state.lock().leaving.is_empty());
}

#[test]
fn description_without_namespaces_is_the_type_name() {
    let make = |_: &str| -> Arc<dyn ListerWatcher<ConfigMap>> { unreachable!("there are no namespaces") };
    let config = (ReflectorConfig::new(), Ingest::of::<PartialObjectMeta<ConfigMap>>());
    let namespaces = Namespaces::new(Box::new(make), &[], DeltaFifo::new(), config);
    let status = namespaces.expect("there are no invalid names").status();
    assert_eq!(status.description(), "PartialObjectMeta");
}
