//! Streaming lists over HTTP: the reflector uses them if the server supports them, and otherwise
//! lists in pages.

use std::time::Duration;

use http::StatusCode;
use informer_factory::{InformerOptions, SharedIndexInformer, SharedInformerFactory, WaitOutcome};
use informer_reflector::{KubeListWatch, ReflectorConfig};
use informer_testing::{CannedResponse, RequestFilter, Simulator, StreamingLists, Verb};
use k8s_openapi::api::core::v1::Pod;
use kube::core::PartialObjectMeta;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{factory, pod, simulator, versions_of_pods, within};

async fn with_pods(count: usize) -> Simulator {
    let simulator = simulator().await;
    for number in 0..count {
        simulator.create(&pod(&format!("p-{number}"), "n1")).expect("a new pod");
    }
    simulator
}

async fn synced(simulator: &Simulator) -> (SharedInformerFactory, SharedIndexInformer<Pod>) {
    let factory = factory(simulator);
    let pods = factory.core().v1().pods();
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");
    (factory, pods)
}

fn versions(pods: &SharedIndexInformer<Pod>) -> std::collections::BTreeMap<String, String> {
    let version =
        |pod: &informer_factory::Cached<Pod>| (pod.key().to_string(), pod.resource_version().to_string());
    pods.indexer().list().iter().map(version).collect()
}

/// Returns the number of list requests that the server received, and the number of watch requests,
/// which include streaming lists.
fn request_counts(simulator: &Simulator) -> (usize, usize) {
    let count = |verb| simulator.request_count(&RequestFilter::verb(verb));
    (count(Verb::List), count(Verb::Watch))
}

#[tokio::test]
async fn streaming_list_and_watch_are_one_request() {
    let simulator = with_pods(700).await;
    let (factory, pods) = synced(&simulator).await;
    assert_eq!(versions(&pods), versions_of_pods(&simulator));
    let created = simulator.create(&pod("later", "n1")).expect("a new pod");
    let outcome =
        pods.wait_until(&created.resource_version().to_string().as_str().into(), crate::TIMEOUT).await;
    assert_eq!(outcome, WaitOutcome::Reached);
    assert_eq!(versions(&pods), versions_of_pods(&simulator));
    assert_eq!(request_counts(&simulator), (0, 1));
    factory.shutdown().await;
}

#[tokio::test]
async fn server_without_streaming_lists_gets_paged_requests() {
    let refusals = [
        CannedResponse::failure(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", "sendInitialEvents: Forbidden"),
        CannedResponse::failure(StatusCode::BAD_REQUEST, "BadRequest", "unknown parameter"),
        CannedResponse::failure(StatusCode::FORBIDDEN, "Forbidden", "no watches"),
        CannedResponse::raw(StatusCode::OK, "<html>It works!</html>"),
        CannedResponse::raw(StatusCode::OK, r#"{"kind":"PodList","items":[]}"#),
    ];
    for refusal in refusals {
        let simulator = with_pods(3).await;
        simulator.fail_next(1, RequestFilter::verb(Verb::Watch), refusal);
        let (factory, pods) = synced(&simulator).await;
        assert_eq!(versions(&pods), versions_of_pods(&simulator));
        within(simulator.wait_for_watches(&RequestFilter::any(), 1)).await;
        assert_eq!(request_counts(&simulator), (1, 2));
        factory.shutdown().await;
    }
}

#[tokio::test]
async fn two_streams_closed_early_cause_a_paged_list() {
    // The server treats the streaming list as a plain watch: it closes the watch, and never sends the
    // bookmark that ends a list.
    let events = format!("{}\n", json!({ "type": "ADDED", "object": pod("gone-by-now", "n1") }));
    for watch in [events, String::new()] {
        let simulator = with_pods(3).await;
        simulator.fail_next(2, RequestFilter::verb(Verb::Watch), CannedResponse::raw(StatusCode::OK, watch));
        let builder = SharedInformerFactory::builder(simulator.client().expect("a client"));
        let wait = Duration::from_millis(10);
        let factory = builder.reflector(ReflectorConfig::new().backoff(wait, wait)).build();
        let pods = factory.core().v1().pods();
        factory.start();
        within(factory.wait_for_cache_sync()).await.expect("synced");
        assert_eq!(versions(&pods), versions_of_pods(&simulator));
        within(simulator.wait_for_watches(&RequestFilter::any(), 1)).await;
        assert_eq!(request_counts(&simulator), (1, 3));
        factory.shutdown().await;
    }
}

#[tokio::test]
async fn servers_without_streaming_lists_work() {
    for how in [StreamingLists::Refused, StreamingLists::Ignored] {
        let simulator =
            Simulator::builder().built_in_kinds().streaming_lists(how).start().await.expect("a free port");
        simulator.create(&pod("p", "n1")).expect("a new pod");
        let list_watch = KubeListWatch::<Pod>::all(simulator.client().expect("a client"));
        let config = ReflectorConfig::new().list_stall_timeout(Duration::from_secs(1));
        let options = InformerOptions::new().reflector(config);
        let (pods, task) = SharedIndexInformer::new(std::sync::Arc::new(list_watch), options);
        let shutdown = CancellationToken::new();
        let task = tokio::spawn(task.run(shutdown.clone()));
        within(pods.synced().wait()).await.expect("synced");
        assert_eq!(versions(&pods), versions_of_pods(&simulator));
        within(simulator.wait_for_watches(&RequestFilter::any(), 1)).await;
        assert_eq!(request_counts(&simulator), (1, 2));
        shutdown.cancel();
        task.await.expect("no panic");
    }
}

#[tokio::test]
async fn factory_remembers_missing_streaming_lists() {
    let builder = Simulator::builder().built_in_kinds().streaming_lists(StreamingLists::Refused);
    let simulator = builder.start().await.expect("a free port");
    simulator.create(&pod("p", "n1")).expect("a new pod");
    let (factory, _pods) = synced(&simulator).await;
    within(simulator.wait_for_watches(&RequestFilter::any(), 1)).await;
    assert_eq!(request_counts(&simulator), (1, 2));
    let metadata = factory.informer::<PartialObjectMeta<Pod>>();
    factory.start();
    within(metadata.synced().wait()).await.expect("synced");
    within(simulator.wait_for_watches(&RequestFilter::any(), 2)).await;
    assert_eq!(request_counts(&simulator), (2, 3));
    factory.shutdown().await;
}

#[tokio::test]
async fn factory_can_disable_streaming_lists() {
    let simulator = with_pods(1).await;
    let client = simulator.client().expect("a client");
    let factory = SharedInformerFactory::builder(client)
        .reflector(ReflectorConfig::new().streaming_lists(false))
        .build();
    let _pods = factory.core().v1().pods();
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");
    within(simulator.wait_for_watches(&RequestFilter::any(), 1)).await;
    assert_eq!(request_counts(&simulator), (1, 1));
    factory.shutdown().await;
}
