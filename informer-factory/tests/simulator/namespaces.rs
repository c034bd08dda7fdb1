//! An informer of a changing set of namespaces over real HTTP: one list and one watch per watched
//! namespace.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::StatusCode;
use informer_factory::status::Health;
use informer_factory::{SharedIndexInformer, SharedInformerFactory, WaitOutcome};
use informer_reflector::KubeListWatch;
use informer_testing::{CannedResponse, Replica, RequestFilter, Simulator, Verb};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use crate::{TIMEOUT, factory, pod, simulator, versions_of_pods, within};

fn pod_in(namespace: &str, name: &str) -> Value {
    let mut pod = pod(name, "n1");
    pod["metadata"]["namespace"] = json!(namespace);
    pod
}

/// Returns the factory's informer of pods in these namespaces.
fn pods_in(
    factory: &SharedInformerFactory,
    simulator: &Simulator,
    namespaces: &[&str],
) -> SharedIndexInformer<Pod> {
    let client = simulator.client().expect("a client");
    factory.informer_with::<Pod>(|_, options| {
        let make = move |namespace: &str| {
            Arc::new(KubeListWatch::<Pod>::namespaced(client.clone(), namespace)) as Arc<_>
        };
        SharedIndexInformer::new_in_namespaces(make, namespaces.iter().copied(), options)
            .expect("valid names")
    })
}

/// Returns the keys and resource versions of the server's pods in these namespaces.
fn versions_in(simulator: &Simulator, namespaces: &[&str]) -> BTreeMap<String, String> {
    let is_in = |key: &str| namespaces.iter().any(|namespace| key.starts_with(&format!("{namespace}/")));
    versions_of_pods(simulator).into_iter().filter(|(key, _)| is_in(key)).collect()
}

#[tokio::test]
async fn changing_namespaces_survive_closed_watches() {
    let simulator = simulator().await;
    for namespace in ["a", "b", "c"] {
        simulator.create(&pod_in(namespace, "first")).expect("a new pod");
    }
    let factory = factory(&simulator);
    let pods = pods_in(&factory, &simulator, &["a", "b"]);
    let replica = Replica::<Pod>::new();
    let _registration = pods.add_event_handler(replica.clone());
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");
    let mut watched = vec!["a", "b"];
    for round in 0..12 {
        let (other, kept) = (watched[round % 2], watched[(round + 1) % 2]);
        let next = ["a", "b", "c"]
            .into_iter()
            .find(|name| !watched.contains(name))
            .expect("one of three namespaces is not watched");
        simulator.create(&pod_in(other, &format!("before-{round}"))).expect("a new pod");
        let removed = pods.remove_namespace(other).expect("a valid name");
        let added = pods.add_namespace(next).expect("a valid name");
        match round % 3 {
            0 => simulator.close_watches(),
            1 => simulator.compact(),
            _ => {}
        }
        let written = simulator.create(&pod_in(next, &format!("after-{round}"))).expect("a new pod");
        simulator.create(&pod_in(kept, &format!("kept-{round}"))).expect("a new pod");
        within(removed.wait()).await.expect("the informer runs");
        within(added.wait()).await.expect("the namespace is listed");
        let written: Pod = serde_json::from_value(written.value()).expect("the object is a pod");
        assert_eq!(pods.wait_for_write(&written, TIMEOUT).await, WaitOutcome::Reached);
        watched = vec![kept, next];
        within(replica.wait_until(|_| replica.versions() == versions_in(&simulator, &watched))).await;
    }
    assert!(replica.violations().is_empty(), "{:?}", replica.violations());
    assert!(within(pods.verify()).await.expect("the informer is synced").is_equal());
    let in_all = RequestFilter::verb(Verb::Watch);
    within(simulator.wait_for_watches(&in_all, 2)).await;
    factory.shutdown().await;
}

#[tokio::test]
async fn forbidden_namespace_is_named_and_others_continue() {
    let simulator = simulator().await;
    simulator.create(&pod_in("open", "seen")).expect("a new pod");
    let no = CannedResponse::failure(
        StatusCode::FORBIDDEN,
        "Forbidden",
        "pods is forbidden: not in that namespace",
    );
    let closed = RequestFilter::any().path("/api/v1/namespaces/closed/pods");
    let _refused = simulator.fail_while(closed, no);
    let factory = factory(&simulator);
    let pods = pods_in(&factory, &simulator, &["open", "closed"]);
    factory.start();
    // The namespace is already watched, so this completion is set when its list is in the store.
    let open = pods.add_namespace("open").expect("a valid name");
    within(open.wait()).await.expect("the namespace is not refused");
    assert_eq!(pods.indexer().len(), 1);
    let mut status = pods.status().clone();
    within(async {
        while !matches!(status.health(), Health::Forbidden { .. }) {
            _ = status.health_changed().await;
        }
    })
    .await;
    let error = factory.wait_for_cache_sync_within(std::time::Duration::from_millis(10)).await;
    let message = error.expect_err("namespace closed is refused").to_string();
    assert!(
        message.contains("pods (namespace \"closed\": forbidden") && !message.contains("open"),
        "{message}"
    );
    let written = simulator.create(&pod_in("open", "later")).expect("a new pod");
    let written: Pod = serde_json::from_value(written.value()).expect("the object is a pod");
    assert_eq!(pods.wait_for_write(&written, TIMEOUT).await, WaitOutcome::Reached);
    let removed = pods.remove_namespace("closed").expect("a valid name");
    within(removed.wait()).await.expect("the removal completes");
    within(factory.wait_for_cache_sync()).await.expect("all watched namespaces are synced");
    factory.shutdown().await;
}
