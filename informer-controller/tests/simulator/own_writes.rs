//! Reads of own writes: from a mutation cache without a wait, or from the store after a wait with a
//! `WriteTracker`.

use std::time::Duration;

use informer_controller::WriteTracker;
use informer_factory::{Cached, ObjectKey, SharedInformerFactory, WaitOutcome};
use informer_store::{MutationCache, MutationCacheOptions};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

use super::{TIMEOUT, factory, node_of, pod, simulator, within};

fn cached(pod: Pod) -> Cached<Pod> {
    Cached::new(pod).expect("the object has a name")
}

#[tokio::test]
async fn mutation_cache_reads_writes_and_ends_empty() {
    let simulator = simulator().await;
    let factory = factory(&simulator);
    let pods = factory.informer::<Pod>();
    let by_node = pods.add_index("node", |pod: &Pod| node_of(pod)).expect("a free index name");
    let options = MutationCacheOptions::new().include_adds(true);
    let cache = MutationCache::with_options(pods.indexer().clone(), options);
    let _registration = pods.add_event_handler(cache.clone());
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");

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
    let last = last.expect("at least one write");
    assert_eq!(pods.wait_until(last.resource_version(), TIMEOUT).await, WaitOutcome::Reached);
    assert_eq!(cache.by_index(&by_node, "node-1").len(), 30);
    assert!(cache.is_empty(), "{cache:?}");
    factory.shutdown().await;
}

#[tokio::test]
async fn object_deleted_by_others_leaves_the_mutation_cache() {
    let simulator = simulator().await;
    let factory = factory(&simulator);
    let pods = factory.informer::<Pod>();
    // No handler is needed: the cache compares its entries with the informer's store.
    let options = MutationCacheOptions::new().include_adds(true);
    let cache = MutationCache::with_options(pods.indexer().clone(), options);
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");

    let api = Api::<Pod>::namespaced(simulator.client().expect("a client"), "shop");
    let new: Pod = serde_json::from_value(pod("brief", "node-1")).expect("a pod");
    let created = cached(api.create(&PostParams::default(), &new).await.expect("created"));
    cache.record(created.clone());
    api.delete("brief", &DeleteParams::default().grace_period(0)).await.expect("deleted");
    let deletion = simulator.resource_version().into();
    assert_eq!(pods.wait_until(&deletion, TIMEOUT).await, WaitOutcome::Reached);
    assert!(cache.get(created.key()).is_none());
    assert!(!cache.record(created), "a late record of a deleted object must be rejected");
    factory.shutdown().await;
}

#[tokio::test]
async fn write_outside_the_informer_delays_no_key() {
    let simulator = simulator().await;
    let client = simulator.client().expect("a client");
    let factory = SharedInformerFactory::new(client.clone()).in_namespace("elsewhere");
    let pods = factory.informer::<Pod>();
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");

    let tracker = WriteTracker::new();
    let writes = tracker.of(&ObjectKey::namespaced("shop", "parent"));
    let api = Api::<Pod>::namespaced(client, "shop");
    let new: Pod = serde_json::from_value(pod("web", "node-1")).expect("a pod");
    let params = PostParams::default();
    let created = cached(writes.track(&pods, &new, api.create(&params, &new)).await.expect("created"));
    assert!(writes.is_ready());
    let params = DeleteParams::default();
    let deletion = writes.track_deletion(&pods, &created, api.delete("web", &params));
    deletion.await.expect("deleted");
    assert!(writes.is_ready());
    assert_eq!(tracker.timed_out(), 0);
    factory.shutdown().await;
}

/// Returns a pod whose label `app` has this value.
fn labelled(name: &str, app: &str) -> serde_json::Value {
    let mut new = pod(name, "node-1");
    new["metadata"]["labels"] = json!({ "app": app });
    new
}

#[tokio::test]
async fn i9_late_cache_is_awaited_if_an_object_leaves_its_selector() {
    let simulator = simulator().await;
    let replica = simulator.lagging_replica();
    let factory = SharedInformerFactory::new(replica.client()).with_labels("app=db");
    let pods = factory.informer::<Pod>();
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");
    replica.hold();

    let tracker = WriteTracker::with_deadline(TIMEOUT * 10);
    let [leaving, outside] =
        ["leaving", "outside"].map(|name| tracker.of(&ObjectKey::namespaced("shop", name)));
    let created = simulator.create(&labelled("web", "db")).expect("a new object");
    let left = simulator.update(&labelled("web", "front")).expect("the object exists");
    let never_seen = simulator.create(&labelled("other", "front")).expect("a new object");
    let lag = simulator.resource_version() - created.resource_version();
    let [created, left, never_seen] =
        [created, left, never_seen].map(|stored| cached(stored.parse().expect("a pod")));
    leaving.wrote(&pods, &*created);
    leaving.wrote(&pods, &*left);
    outside.wrote(&pods, &*created);
    outside.wrote(&pods, &*never_seen);

    replica.lag(lag);
    assert_eq!(pods.wait_until(created.resource_version(), TIMEOUT).await, WaitOutcome::Reached);
    assert!(pods.get(created.key()).is_some() && !leaving.is_ready());
    assert!(outside.is_ready(), "the informer never receives the last write of this key");
    replica.catch_up();
    assert!(within(leaving.ready()).await);
    assert!(pods.get(created.key()).is_none());
    factory.shutdown().await;
}

#[tokio::test]
async fn each_kind_of_write_is_in_the_store_after_the_wait() {
    let simulator = simulator().await;
    let factory = factory(&simulator);
    let pods = factory.informer::<Pod>();
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");
    let tracker = WriteTracker::new();
    let writes = tracker.of(&ObjectKey::namespaced("shop", "parent"));
    let api = Api::<Pod>::namespaced(simulator.client().expect("a client"), "shop");
    for n in 0..30 {
        let mut new: Pod = serde_json::from_value(pod(&format!("web-{n}"), "node-1")).expect("a pod");
        new.metadata.finalizers = (n % 2 == 0).then(|| vec!["example.com/later".to_owned()]);
        let params = PostParams::default();
        let created = cached(writes.track(&pods, &new, api.create(&params, &new)).await.expect("created"));
        assert!(within(writes.ready()).await);
        assert!(pods.get(created.key()).is_some());

        let patch = Patch::Merge(json!({ "metadata": { "labels": { "written": n.to_string() } } }));
        let params = PatchParams::default();
        let request = api.patch(created.name(), &params, &patch);
        let patched = cached(writes.track(&pods, &*created, request).await.expect("patched"));
        assert!(within(writes.ready()).await);
        let read = pods.get(created.key()).expect("the object exists");
        assert!(read.resource_version().is_at_least(patched.resource_version()), "{read:?}");

        let params = DeleteParams::default().grace_period(0);
        let request = api.delete(created.name(), &params);
        writes.track_deletion(&pods, &read, request).await.expect("deleted");
        assert!(within(writes.ready()).await);
        let left = pods.get(created.key());
        assert_eq!(left.is_some(), n % 2 == 0);
        assert!(left.is_none_or(|left| left.metadata.deletion_timestamp.is_some()));
    }
    assert_eq!((tracker.timed_out(), tracker.keys()), (0, 0));
    factory.shutdown().await;
}

#[tokio::test]
async fn failed_write_is_settled_by_a_read_of_its_object() {
    let simulator = simulator().await;
    let factory = factory(&simulator);
    let pods = factory.informer::<Pod>();
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");
    let tracker = WriteTracker::with_deadline(TIMEOUT * 10);
    let writes = tracker.of(&ObjectKey::namespaced("shop", "parent"));
    let api = Api::<Pod>::namespaced(simulator.client().expect("a client"), "shop");
    let (new, params): (Pod, _) =
        (serde_json::from_value(pod("web", "node-1")).expect("a pod"), PostParams::default());
    let key = ObjectKey::namespaced("shop", "web");
    for is_applied in [false, true] {
        let request = async {
            if is_applied {
                api.create(&params, &new).await?;
            }
            Err::<Pod, _>(kube::Error::Service("connection reset".into()))
        };
        writes.track(&pods, &new, request).await.expect_err("an unknown outcome");
        assert!(within(writes.ready()).await, "the wait must end before the deadline");
        assert_eq!(pods.get(&key).is_some(), is_applied);
    }
    factory.shutdown().await;
}

/// Returns a pod without a namespace. The API server takes the namespace from the URL.
fn without_namespace(name: &str) -> Pod {
    let mut new: Pod = serde_json::from_value(pod(name, "node-1")).expect("a pod");
    new.metadata.namespace = None;
    new
}

#[tokio::test]
async fn failed_write_is_read_in_the_only_namespace() {
    let simulator = simulator().await;
    let client = simulator.client().expect("a client");
    let factory = SharedInformerFactory::new(client.clone()).in_namespace("shop");
    let pods = factory.informer::<Pod>();
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");
    let tracker = WriteTracker::with_deadline(TIMEOUT * 10);
    let writes = tracker.of(&ObjectKey::namespaced("shop", "parent"));
    let api = Api::<Pod>::namespaced(client, "shop");
    let (new, params) = (without_namespace("web"), PostParams::default());
    let request = async {
        api.create(&params, &new).await?;
        Err::<Pod, _>(kube::Error::Service("connection reset".into()))
    };
    writes.track(&pods, &new, request).await.expect_err("an unknown outcome");
    assert!(within(writes.ready()).await, "the wait must end before the deadline");
    assert!(pods.get(&ObjectKey::namespaced("shop", "web")).is_some());
    factory.shutdown().await;
}

#[tokio::test]
async fn failed_write_to_an_ambiguous_name_waits_for_deadline() {
    let simulator = simulator().await;
    let client = simulator.client().expect("a client");
    let factory = factory(&simulator);
    let pods = factory.informer::<Pod>();
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");
    let (new, params) = (without_namespace("web"), PostParams::default());
    for namespace in ["shop", "zoo"] {
        let api = Api::<Pod>::namespaced(client.clone(), namespace);
        api.create(&params, &new).await.expect("created");
    }
    let written = simulator.resource_version().into();
    assert_eq!(pods.wait_until(&written, TIMEOUT).await, WaitOutcome::Reached);
    let tracker = WriteTracker::with_deadline(Duration::from_millis(500));
    let writes = tracker.of(&ObjectKey::namespaced("shop", "parent"));
    let answer = async { Err::<Pod, _>(kube::Error::Service("connection reset".into())) };
    writes.track(&pods, &new, answer).await.expect_err("an unknown outcome");
    assert!(!within(writes.ready()).await, "either pod can be the written one");
    factory.shutdown().await;
}
