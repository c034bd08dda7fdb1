//! Reading one's own writes without waiting: a mutation cache over an informer's store.

use informer_factory::{Cached, MutationCache, MutationCacheOptions, WaitOutcome};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

use super::{PATIENCE, factory, node_of, pod, simulator, within};

fn cached(pod: Pod) -> Cached<Pod> {
    Cached::new(pod).expect("the server has given it a name")
}

#[tokio::test]
async fn each_write_can_be_read_at_once_and_nothing_is_left_when_all_have_come_back() {
    let simulator = simulator().await;
    let factory = factory(&simulator);
    let pods = factory.informer::<Pod>();
    let by_node = pods.add_index("node", |pod: &Pod| node_of(pod)).expect("a free name");
    let options = MutationCacheOptions::new().include_adds(true);
    let cache = MutationCache::with_options(pods.indexer().clone(), options);
    let _registration = pods.add_event_handler(cache.clone());
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("it syncs");

    let api = Api::<Pod>::namespaced(simulator.client().expect("a client"), "shop");
    let mut last = None;
    for n in 0..30 {
        let name = format!("web-{n}");
        let new: Pod = serde_json::from_value(pod(&name, "node-1")).expect("a pod");
        let created = cached(api.create(&PostParams::default(), &new).await.expect("created"));
        let key = created.key().clone();
        cache.record(created.clone());
        let read = cache.get(&key).expect("just created");
        assert!(read.resource_version().is_at_least(created.resource_version()), "{read:?}");

        let patch = Patch::Merge(json!({ "metadata": { "labels": { "written": n.to_string() } } }));
        let patched = cached(api.patch(&name, &PatchParams::default(), &patch).await.expect("patched"));
        cache.record(patched.clone());
        let read = cache.get(&key).expect("just written");
        assert!(read.resource_version().is_at_least(patched.resource_version()), "{read:?}");
        assert_eq!(cache.by_index(&by_node, "node-1").len(), n + 1);
        last = Some(patched);
    }
    let last = last.expect("there were some");
    assert_eq!(pods.wait_until(last.resource_version(), PATIENCE).await, WaitOutcome::Reached);
    assert_eq!(cache.by_index(&by_node, "node-1").len(), 30);
    assert!(cache.is_empty(), "{cache:?}");
    factory.shutdown().await;
}

#[tokio::test]
async fn what_others_have_deleted_meanwhile_does_not_stay() {
    let simulator = simulator().await;
    let factory = factory(&simulator);
    let pods = factory.informer::<Pod>();
    // No handler: what the informer's store says is enough.
    let options = MutationCacheOptions::new().include_adds(true);
    let cache = MutationCache::with_options(pods.indexer().clone(), options);
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("it syncs");

    let api = Api::<Pod>::namespaced(simulator.client().expect("a client"), "shop");
    let new: Pod = serde_json::from_value(pod("brief", "node-1")).expect("a pod");
    let created = cached(api.create(&PostParams::default(), &new).await.expect("created"));
    cache.record(created.clone());
    api.delete("brief", &DeleteParams::default().grace_period(0)).await.expect("deleted");
    let deletion = simulator.resource_version().into();
    assert_eq!(pods.wait_until(&deletion, PATIENCE).await, WaitOutcome::Reached);
    assert!(cache.get(created.key()).is_none());
    assert!(!cache.record(created), "nor is it believed when it is told late");
    factory.shutdown().await;
}
