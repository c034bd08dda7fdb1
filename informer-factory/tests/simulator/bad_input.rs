//! Servers that refuse requests or send invalid responses: the health shows each error with its
//! cause, and the informer recovers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::StatusCode;
use informer_factory::status::Health;
use informer_factory::{SharedIndexInformer, SharedInformerFactory, WaitOutcome};
use informer_reflector::ReflectorConfig;
use informer_testing::{CannedResponse, RequestFilter, ShutdownAnswer, Simulator, Verb};
use k8s_openapi::api::core::v1::Pod;

use crate::{TIMEOUT, pod, simulator, within};

/// Starts an informer of pods whose first list gets `response`. Returns the resulting health, and
/// the text of its error.
async fn health_after(simulator: &Simulator, response: CannedResponse) -> (Health, String) {
    simulator.fail_next(1, RequestFilter::verb(Verb::List), response);
    let client = simulator.client().expect("a client");
    let factory = SharedInformerFactory::builder(client)
        .reflector(ReflectorConfig::new().streaming_lists(false))
        .build();
    let pods = factory.core().v1().pods();
    factory.start();
    let health = health_with_error(&pods).await;
    let message = health.error().map(ToString::to_string).unwrap_or_default();
    // The next request, after the backoff, succeeds.
    within(factory.wait_for_cache_sync()).await.expect("the informer recovers");
    assert_eq!(pods.indexer().len(), 1);
    factory.shutdown().await;
    (health, message)
}

async fn health_with_error(pods: &SharedIndexInformer<Pod>) -> Health {
    let mut status = pods.status().clone();
    within(async {
        let mut health = status.health();
        while health.error().is_none() {
            health = status.health_changed().await.expect("the informer runs");
        }
        health
    })
    .await
}

#[tokio::test]
async fn refusals_and_invalid_responses_are_reported_and_retried() {
    let failure = |code, reason: &str| CannedResponse::failure(code, reason, "because");
    let table = [
        (failure(StatusCode::UNAUTHORIZED, "Unauthorized"), "the server returned 401 Unauthorized: because"),
        (failure(StatusCode::FORBIDDEN, "Forbidden"), "the server returned 403 Forbidden: because"),
        (failure(StatusCode::NOT_FOUND, "NotFound"), "the server returned 404 NotFound: because"),
        (
            failure(StatusCode::INTERNAL_SERVER_ERROR, "InternalError"),
            "the server returned 500 InternalError: because",
        ),
        (CannedResponse::raw(StatusCode::OK, "<html>It works!</html>"), "the response is invalid: "),
        (
            CannedResponse::raw(StatusCode::OK, r#"{"kind":"PodList","items":[{"#),
            "the response is incomplete: ",
        ),
    ];
    for (response, expected) in table {
        let simulator = simulator().await;
        simulator.create(&pod("p", "n1")).expect("a new pod");
        let (health, message) = health_after(&simulator, response).await;
        assert!(message.starts_with(expected), "{message}");
        let is_as_expected = match health {
            Health::Forbidden { .. } => expected.contains(" 403 "),
            Health::NotServed { .. } => expected.contains(" 404 "),
            Health::BackingOff { .. } => !expected.contains(" 403 ") && !expected.contains(" 404 "),
            _ => false,
        };
        assert!(is_as_expected, "{health}");
    }
}

#[tokio::test]
async fn unreachable_server_is_reported_with_its_cause() {
    let simulator = simulator().await;
    let config = simulator.kube_config();
    simulator.shutdown().await;
    let client = kube::Client::try_from(config).expect("the configuration is valid");
    let factory = SharedInformerFactory::new(client);
    let pods = factory.core().v1().pods();
    factory.start();
    let health = health_with_error(&pods).await;
    let message = health.error().map(ToString::to_string).unwrap_or_default();
    assert!(message.starts_with("no response from the server: client error (Connect): "), "{message}");
    assert!(message.contains("refused"), "{message}");
    factory.shutdown().await;
}

#[tokio::test]
async fn client_with_own_retries_works() {
    let simulator = simulator().await;
    simulator.create(&pod("before", "n1")).expect("a new pod");
    let of_pods = RequestFilter::any().path("/api/v1/pods");
    let overloaded =
        CannedResponse::failure(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", "because");
    simulator.fail_next(3, of_pods.clone(), overloaded);
    // By default, kube's client retries failed requests.
    let mut config = simulator.kube_config();
    config.default_retry = true;
    let client = kube::Client::try_from(config).expect("a client");
    let failures = Arc::new(AtomicUsize::new(0));
    let recorded = Arc::clone(&failures);
    let factory = SharedInformerFactory::builder(client)
        .reflector(ReflectorConfig::new().on_failure(move |_| _ = recorded.fetch_add(1, Ordering::Relaxed)))
        .build();
    let pods = factory.core().v1().pods();
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");
    assert_eq!(failures.load(Ordering::Relaxed), 0, "the client's own retries hide the failures");
    assert!(simulator.request_count(&of_pods) > 3);
    let created = simulator.create(&pod("after", "n1")).expect("a new pod");
    let outcome = pods.wait_for_write(&created.parse().expect("the object is a pod"), TIMEOUT).await;
    assert_eq!((outcome, pods.indexer().len()), (WaitOutcome::Reached, 2));
    factory.shutdown().await;
}

#[tokio::test]
async fn informer_waits_for_unready_and_stopping_servers() {
    let simulator = simulator().await;
    simulator.create(&pod("before", "n1")).expect("a new pod");
    simulator.set_watch_cache_ready(false);
    // The watch cache serves a list with a selector, so the list needs a ready cache.
    let factory = SharedInformerFactory::builder(simulator.client().expect("a client"))
        .tweak_list_options(|options| options.label_selector = "app!=cache".to_owned())
        .build();
    let pods = factory.core().v1().pods();
    factory.start();
    let health = health_with_error(&pods).await;
    let message = health.error().map(ToString::to_string).unwrap_or_default();
    assert!(message.contains("storage is (re)initializing"), "{message}");
    simulator.set_watch_cache_ready(true);
    within(factory.wait_for_cache_sync()).await.expect("synced");

    for (answer, name) in
        [(ShutdownAnswer::TooManyRequests, "429"), (ShutdownAnswer::ServiceUnavailable, "503")]
    {
        simulator.begin_shutdown(answer);
        // A server that answers with 503 keeps open watches for a minute. Close them now.
        simulator.close_watches();
        health_with_error(&pods).await;
        simulator.restart();
        let created = simulator.create(&pod(name, "n1")).expect("a new pod");
        let outcome = pods.wait_for_write(&created.parse().expect("the object is a pod"), TIMEOUT).await;
        assert_eq!(outcome, WaitOutcome::Reached);
    }
    assert_eq!(pods.indexer().len(), 3);
    factory.shutdown().await;
}
