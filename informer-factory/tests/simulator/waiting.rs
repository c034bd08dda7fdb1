//! Waits for own writes, and concurrent informers of one type with different namespaces and
//! selectors.

use std::sync::Arc;
use std::time::Duration;

use informer_controller::WriteTracker;
use informer_factory::{InformerOptions, ObjectKey, SharedIndexInformer, WaitOutcome, wait_for_cache_sync};
use informer_reflector::KubeListWatch;
use informer_testing::StoredObject;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{TIMEOUT, pod, simulator};

fn run(lister_watcher: KubeListWatch<Pod>) -> SharedIndexInformer<Pod> {
    let (informer, task) = SharedIndexInformer::new(Arc::new(lister_watcher), InformerOptions::new());
    tokio::spawn(task.run(CancellationToken::new()));
    informer
}

fn labelled(name: &str, app: &str) -> serde_json::Value {
    let mut pod = pod(name, "n1");
    pod["metadata"]["labels"] = json!({ "app": app });
    pod
}

/// Returns the object of a write as a client receives it.
fn pod_of(written: &StoredObject) -> Pod {
    written.parse().expect("the object is a pod")
}

#[tokio::test]
async fn i9_write_outside_the_scope_is_not_waited_for() {
    let simulator = simulator().await;
    let client = simulator.client().expect("a client");
    let all = run(KubeListWatch::all(client.clone()));
    let elsewhere = run(KubeListWatch::namespaced(client.clone(), "else"));
    let databases = run(KubeListWatch::all(client.clone()).label_selector("app in (db, cache)"));
    let one = run(KubeListWatch::all(client).field_selector("metadata.name=other"));
    let informers = [&all, &elsewhere, &databases, &one];
    wait_for_cache_sync(&informers.map(|informer| informer as _), TIMEOUT).await.expect("synced");

    let pod = pod_of(&simulator.create(&labelled("p", "web")).expect("a new pod"));
    // These informers never receive the pod, so the wait ends at once.
    for informer in [&elsewhere, &databases, &one] {
        assert_eq!(informer.wait_for_write(&pod, Duration::MAX).await, WaitOutcome::NotCovered);
    }
    assert_eq!(all.wait_for_write(&pod, TIMEOUT).await, WaitOutcome::Reached);
    assert!(all.indexer().get_by_key("shop/p").is_some());
}

#[tokio::test]
async fn i9_write_that_leaves_the_selector_is_waited_for() {
    let simulator = simulator().await;
    let databases = run(KubeListWatch::all(simulator.client().expect("a client")).label_selector("app=db"));
    wait_for_cache_sync(&[&databases], TIMEOUT).await.expect("synced");
    let pod = pod_of(&simulator.create(&labelled("p", "db")).expect("a new pod"));
    assert_eq!(databases.wait_for_write(&pod, TIMEOUT).await, WaitOutcome::Reached);
    let changed = pod_of(&simulator.update(&labelled("p", "web")).expect("the object exists"));
    assert_eq!(databases.wait_for_write(&changed, TIMEOUT).await, WaitOutcome::Reached);
    assert!(databases.indexer().is_empty());
}

#[tokio::test]
async fn i9_write_outside_the_selector_does_not_delay_waits() {
    let simulator = simulator().await;
    let databases = run(KubeListWatch::all(simulator.client().expect("a client")).label_selector("app=db"));
    wait_for_cache_sync(&[&databases], TIMEOUT).await.expect("synced");
    for name in ["waited", "tracked"] {
        let pod = pod_of(&simulator.create(&labelled(name, "db")).expect("a new pod"));
        assert_eq!(databases.wait_for_write(&pod, TIMEOUT).await, WaitOutcome::Reached);
        // The test does not await between the writes, so the informer still has the old pod. The
        // first update removes the pod from the selector, so the informer receives a deletion. The
        // informer does not receive the second update.
        simulator.update(&labelled(name, "web")).expect("the object exists");
        let last = pod_of(&simulator.update(&labelled(name, "front")).expect("the object exists"));
        let key = ObjectKey::namespaced("shop", name);
        assert!(databases.get(&key).is_some());
        if name == "waited" {
            assert_eq!(databases.wait_for_write(&last, TIMEOUT).await, WaitOutcome::Reached);
        } else {
            let tracker = WriteTracker::new();
            let writes = tracker.of(&key);
            writes.wrote(&databases, &last);
            assert!(!writes.is_ready() && writes.ready().await, "the deadline ended the wait");
        }
        assert!(databases.get(&key).is_none());
    }
}
