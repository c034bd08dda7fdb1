//! One test for each cause of `reflector_failures_total` and of `reflector_relists_total`.
//!
//! The server runs in the process, and the clock is paused, so that backoffs take no real time.

use std::time::Duration;

use axum::http::StatusCode;
use informer_factory::informer_reflector::ReflectorConfig;
use informer_factory::{SharedIndexInformer, SharedInformerFactory, WaitOutcome};
use informer_monitor::InformerMetrics;
use informer_testing::{
    CannedResponse, Fault, RequestFilter, Simulator, SimulatorBuilder, StreamingLists, Verb, WatchInjection,
};
use k8s_openapi::api::core::v1::ConfigMap;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

const TIMEOUT: Duration = Duration::from_secs(600);

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(TIMEOUT, future).await.expect("timed out")
}

fn config_map(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "namespace": "shop", "name": name } })
}

/// A server, an informer of its config maps, and the metrics.
struct World {
    simulator: Simulator,
    factory: SharedInformerFactory,
    informer: SharedIndexInformer<ConfigMap>,
    registry: Registry,
    /// Receives a message after the metrics have counted a failed request of the informer.
    failures: UnboundedReceiver<()>,
}

impl World {
    fn new() -> Self {
        Self::with(|simulator| simulator, ReflectorConfig::new(), "")
    }

    fn with(
        build: impl FnOnce(SimulatorBuilder) -> SimulatorBuilder,
        reflector: ReflectorConfig,
        labels: &str,
    ) -> Self {
        let simulator = build(Simulator::builder().built_in_kinds()).start_in_process();
        let (failed, failures) = unbounded_channel();
        let reflector = reflector.on_failure(move |_| _ = failed.send(()));
        let client = simulator.client().expect("a client");
        let factory = SharedInformerFactory::builder(client).reflector(reflector).build();
        let informer = factory.with_labels(labels).core().v1().config_maps();
        let mut registry = Registry::default();
        registry.register_collector(Box::new(InformerMetrics::new(&factory)));
        Self { simulator, factory, informer, registry, failures }
    }

    /// Starts the informer, and waits until its watch is open.
    async fn sync(&self) {
        self.factory.start();
        within(self.factory.wait_for_cache_sync()).await.expect("the informer syncs");
        within(self.simulator.wait_for_watches(&RequestFilter::any(), 1)).await;
    }

    /// Returns the value of the label `cause` and the count of each series of the counter `metric`.
    fn by_cause(&self, metric: &str) -> Vec<(String, String)> {
        let mut page = String::new();
        encode(&mut page, &self.registry).expect("a string");
        let samples = page.lines().filter(|line| line.starts_with(&format!("{metric}{{")));
        let sample = |line: &str| {
            let (series, value) = line.rsplit_once(' ')?;
            let cause = series.split("cause=\"").nth(1)?.trim_end_matches("\"}");
            Some((cause.to_owned(), value.to_owned()))
        };
        samples.filter_map(sample).collect()
    }

    fn assert_counted(&self, metric: &str, cause: &str) {
        assert_eq!(self.by_cause(metric), [(cause.to_owned(), "1.0".to_owned())], "{metric}");
    }
}

async fn check_failure(fault: impl Into<Fault>, cause: &str) {
    let mut world = World::new();
    world.simulator.fail_next(1, RequestFilter::any(), fault);
    world.factory.start();
    within(world.failures.recv()).await.expect("the informer runs");
    world.assert_counted("reflector_failures_total", cause);
}

fn failure(code: StatusCode, reason: &str) -> CannedResponse {
    CannedResponse::failure(code, reason, "the fault of the test")
}

#[tokio::test(start_paused = true)]
async fn failure_with_an_expired_version_is_counted() {
    check_failure(CannedResponse::expired(), "expired").await;
}

#[tokio::test(start_paused = true)]
async fn unauthorized_failure_is_counted() {
    check_failure(failure(StatusCode::UNAUTHORIZED, "Unauthorized"), "unauthorized").await;
}

#[tokio::test(start_paused = true)]
async fn forbidden_failure_is_counted() {
    check_failure(failure(StatusCode::FORBIDDEN, "Forbidden"), "forbidden").await;
}

#[tokio::test(start_paused = true)]
async fn not_found_failure_is_counted() {
    check_failure(failure(StatusCode::NOT_FOUND, "NotFound"), "not-found").await;
}

#[tokio::test(start_paused = true)]
async fn too_many_requests_failure_is_counted() {
    check_failure(CannedResponse::too_many_requests(1), "too-many-requests").await;
}

#[tokio::test(start_paused = true)]
async fn unavailable_failure_is_counted() {
    check_failure(Fault::refuse(), "unavailable").await;
}

#[tokio::test(start_paused = true)]
async fn failure_with_another_status_is_counted() {
    check_failure(failure(StatusCode::INTERNAL_SERVER_ERROR, "InternalError"), "other-status").await;
}

#[tokio::test(start_paused = true)]
async fn interrupted_failure_is_counted() {
    check_failure(Fault::abort_body_after(10), "interrupted").await;
}

#[tokio::test(start_paused = true)]
async fn protocol_failure_is_counted() {
    check_failure(CannedResponse::raw(StatusCode::OK, "this is not JSON\n"), "protocol").await;
}

#[tokio::test(start_paused = true)]
async fn invalid_request_failure_is_counted() {
    // A URL can have at most 65,534 bytes.
    let values: Vec<_> = (0..10_000).map(|n| format!("value-{n}")).collect();
    let labels = format!("app in ({})", values.join(","));
    let mut world = World::with(|simulator| simulator, ReflectorConfig::new(), &labels);
    world.factory.start();
    within(world.failures.recv()).await.expect("the informer runs");
    // The retry without a resource version follows at once, and fails, too.
    let causes: Vec<_> = world.by_cause("reflector_failures_total").into_iter().map(|it| it.0).collect();
    assert_eq!(causes, ["invalid-request"]);
}

fn streaming_lists() -> RequestFilter {
    RequestFilter::any().has_parameter("sendInitialEvents")
}

#[tokio::test(start_paused = true)]
async fn first_list_is_no_relist() {
    let world = World::new();
    world.sync().await;
    assert!(world.by_cause("reflector_relists_total").is_empty());
}

#[tokio::test(start_paused = true)]
async fn relist_after_an_expired_version_is_counted() {
    let world = World::new();
    world.sync().await;
    world.simulator.inject(&RequestFilter::any(), &WatchInjection::expired());
    within(world.simulator.wait_for_requests(&streaming_lists(), 2)).await;
    world.assert_counted("reflector_relists_total", "expired");
}

#[tokio::test(start_paused = true)]
async fn relist_after_a_found_difference_is_counted() {
    let world = World::new();
    world.sync().await;
    let lost = WatchInjection::bytes("").instead_of_next_event();
    world.simulator.inject(&RequestFilter::any(), &lost);
    world.simulator.create(&config_map("lost")).expect("a new object");
    let seen = world.simulator.create(&config_map("seen")).expect("a new object").resource_version();
    let reached = world.informer.wait_until(&seen.to_string().as_str().into(), TIMEOUT).await;
    assert_eq!(reached, WaitOutcome::Reached);
    let verification = within(world.informer.verify()).await.expect("the informer is synced");
    assert!(!verification.is_equal());
    within(world.simulator.wait_for_requests(&streaming_lists(), 2)).await;
    world.assert_counted("reflector_relists_total", "requested");
}

#[tokio::test(start_paused = true)]
async fn paged_list_after_a_refused_streaming_list_is_counted() {
    let refuse = |simulator: SimulatorBuilder| simulator.streaming_lists(StreamingLists::Refused);
    let world = World::with(refuse, ReflectorConfig::new(), "");
    world.sync().await;
    world.assert_counted("reflector_relists_total", "fallback");
}

#[tokio::test(start_paused = true)]
async fn relist_after_a_failed_list_is_counted() {
    let world = World::new();
    let fault = failure(StatusCode::INTERNAL_SERVER_ERROR, "InternalError");
    world.simulator.fail_next(1, RequestFilter::any(), fault);
    world.sync().await;
    world.assert_counted("reflector_relists_total", "list-failed");
}

#[tokio::test(start_paused = true)]
async fn relist_after_a_failed_watch_is_counted() {
    let world = World::new();
    world.sync().await;
    let fault = WatchInjection::error(StatusCode::NOT_FOUND, "NotFound", "the resource is gone");
    world.simulator.inject(&RequestFilter::any(), &fault);
    within(world.simulator.wait_for_requests(&streaming_lists(), 2)).await;
    world.assert_counted("reflector_relists_total", "watch-failed");
}

#[tokio::test(start_paused = true)]
async fn relist_on_a_server_without_versions_is_counted() {
    let refuse = |simulator: SimulatorBuilder| simulator.streaming_lists(StreamingLists::Refused);
    let world = World::with(refuse, ReflectorConfig::new().streaming_lists(false), "");
    let list = r#"{"apiVersion":"v1","kind":"ConfigMapList","metadata":{},"items":[]}"#;
    let lists = RequestFilter::verb(Verb::List);
    world.simulator.fail_next(1, lists.clone(), CannedResponse::raw(StatusCode::OK, list));
    world.sync().await;
    // A watch that ends within a second counts as failed.
    tokio::time::sleep(Duration::from_secs(2)).await;
    world.simulator.close_watches();
    within(world.simulator.wait_for_requests(&lists, 2)).await;
    world.assert_counted("reflector_relists_total", "no-version");
}

#[tokio::test(start_paused = true)]
async fn relist_after_an_incomplete_list_is_counted() {
    let refuse = |simulator: SimulatorBuilder| simulator.streaming_lists(StreamingLists::Refused);
    let world = World::with(refuse, ReflectorConfig::new().streaming_lists(false), "");
    let version = world.simulator.resource_version();
    let list = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMapList","metadata":{{"resourceVersion":"{version}"}},"items":[{{"metadata":{{"name":"\ud800"}}}}]}}"#
    );
    let lists = RequestFilter::verb(Verb::List);
    world.simulator.fail_next(1, lists.clone(), CannedResponse::raw(StatusCode::OK, list));
    world.sync().await;
    // An incomplete list is repeated only after the duration of a watch.
    tokio::time::sleep(Duration::from_secs(5 * 60)).await;
    world.simulator.close_watches();
    within(world.simulator.wait_for_requests(&lists, 2)).await;
    world.assert_counted("reflector_relists_total", "incomplete-list");
}
