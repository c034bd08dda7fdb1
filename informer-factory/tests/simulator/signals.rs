//! The spans and log lines of lists, watches, batches and changes of state.
//!
//! The server runs in this process, and the clock is paused, so that backoffs take no real time.

use http::StatusCode;
use informer_factory::informer_reflector::ReflectorConfig;
use informer_factory::{Handlers, SharedIndexInformer, SharedInformerFactory, Storage, WaitOutcome};
use informer_testing::{CannedResponse, RequestFilter, Simulator, WatchInjection};
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};
use tokio::sync::mpsc::unbounded_channel;
use tracing::Level;

use crate::trace::Trace;
use crate::{TIMEOUT, within};

fn simulator() -> Simulator {
    Simulator::builder().built_in_kinds().start_in_process()
}

fn factory(simulator: &Simulator) -> SharedInformerFactory {
    SharedInformerFactory::new(simulator.client().expect("a client"))
}

fn config_map(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "namespace": "shop", "name": name } })
}

async fn reach<K: Send + Sync + 'static>(informer: &SharedIndexInformer<K>, version: u64) {
    let version = version.to_string().as_str().into();
    assert_eq!(informer.wait_until(&version, TIMEOUT).await, WaitOutcome::Reached);
}

#[tokio::test(start_paused = true)]
async fn spans_of_list_watch_and_batch_have_their_fields() {
    let (trace, simulator) = (Trace::default(), simulator());
    let _recording = trace.start();
    for name in ["a", "b"] {
        simulator.create(&config_map(name)).expect("a new object");
    }
    let listed = simulator.resource_version().to_string();
    let factory = factory(&simulator);
    let informer = factory.core().v1().config_maps();
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("the informer syncs");
    let created = simulator.create(&config_map("c")).expect("a new object").resource_version();
    reach(&informer, created).await;
    simulator.close_watches();
    within(simulator.wait_for_requests(&RequestFilter::any(), 2)).await;

    let created = created.to_string();
    let fields = |span: &str, names: &[&'static str]| {
        let span = &trace.spans(span)[0];
        assert_eq!(span.level, Level::DEBUG);
        names.iter().map(|name| span.field(name).to_owned()).collect::<Vec<_>>()
    };
    let names = ["resource", "from", "is_streaming", "resource_version", "objects", "outcome"];
    assert_eq!(fields("list", &names), ["configmaps", "", "true", &listed, "2", "complete"]);
    let names = ["resource", "from", "resource_version", "events", "outcome"];
    assert_eq!(fields("watch", &names), ["configmaps", &listed, &created, "1", "closed"]);
    let batches = trace.spans("batch");
    let sum = |field: &str| batches.iter().map(|it| it.field(field).parse().unwrap_or(0)).sum::<usize>();
    assert_eq!((sum("items"), sum("events")), (3, 3), "{batches:?}");
    let last = batches.last().expect("there are batches");
    assert_eq!((last.level, last.field("resource")), (Level::TRACE, "configmaps"));
    assert_eq!(last.field("resource_version"), created);
}

#[tokio::test(start_paused = true)]
async fn failed_list_has_its_cause_as_outcome() {
    let (trace, simulator) = (Trace::default(), simulator());
    let _recording = trace.start();
    simulator.fail_next(1, RequestFilter::any(), CannedResponse::too_many_requests(1));
    let factory = factory(&simulator);
    let _informer = factory.core().v1().config_maps();
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("the informer syncs");
    let lists = trace.spans("list");
    let outcomes: Vec<_> = lists.iter().map(|list| list.field("outcome")).collect();
    assert_eq!(outcomes, ["too-many-requests", "complete"]);
}

#[tokio::test(start_paused = true)]
async fn change_of_state_logs_exactly_one_line() {
    let (trace, simulator) = (Trace::default(), simulator());
    let _recording = trace.start();
    let refused = CannedResponse::failure(StatusCode::FORBIDDEN, "Forbidden", "configmaps is forbidden");
    let refusal = simulator.fail_while(RequestFilter::any(), refused);
    let (failed, mut failures) = unbounded_channel();
    let reflector = ReflectorConfig::new().on_failure(move |_| _ = failed.send(()));
    let client = simulator.client().expect("a client");
    let factory = SharedInformerFactory::builder(client).reflector(reflector).build();
    let informer = factory.core().v1().config_maps();
    factory.start();
    for _ in 0..10 {
        within(failures.recv()).await.expect("the informer runs");
    }
    let messages = || {
        let lines = trace.lines(Level::INFO);
        lines.iter().map(|line| line.field("message").to_owned()).collect::<Vec<_>>()
    };
    let failed = "list or watch failed; retrying (repeats are logged at debug level)";
    assert_eq!(messages(), [failed]);
    refusal.end();
    within(informer.synced().wait()).await.expect("the informer syncs");
    // The failure counts as ended after ten seconds of watching.
    tokio::time::sleep(std::time::Duration::from_secs(11)).await;
    assert_eq!(messages(), [failed, "list and watch recovered"]);
}

#[tokio::test(start_paused = true)]
async fn events_of_a_live_watch_log_no_line() {
    let (trace, simulator) = (Trace::default(), simulator());
    let _recording = trace.start();
    let factory = factory(&simulator);
    let informer = factory.core().v1().config_maps();
    let _registration = informer.add_event_handler(Handlers::new());
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("the informer syncs");
    trace.clear_lines();
    let spans = || (trace.spans("list").len(), trace.spans("watch").len());
    let before = spans();
    for number in 0..100 {
        let created = simulator.create(&config_map(&format!("c{number}"))).expect("a new object");
        reach(&informer, created.resource_version()).await;
    }
    let lines = trace.lines(Level::DEBUG);
    assert!(lines.is_empty(), "{lines:?}");
    assert_eq!(spans(), before);
}

/// Runs an informer of Secrets through faults whose spans and log lines mention objects.
async fn watch_secrets(simulator: &Simulator, factory: &SharedInformerFactory) {
    let secret = |value: &str| {
        let metadata = json!({ "namespace": "shop", "name": "key", "annotations": { "copy": value } });
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": { "key": value } })
    };
    simulator.apply(&secret("hunter2-first")).expect("the Secret is valid");
    let informer = factory.core().v1().secrets();
    let registration = informer.add_handlers(|handlers| handlers.on_add(|_, _| panic!("the handler panics")));
    informer
        .add_index("panics", |_: &Secret| -> Vec<String> { panic!("the index function panics") })
        .expect("a new index");
    let reveals = |secret: &Secret| Err::<Option<String>, _>(format!("unexpected {:?}", secret.metadata));
    informer.indexer().try_add_index("reveals", reveals).expect("a new index");
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("the informer syncs");
    let changed = simulator.apply(&secret("hunter2-second")).expect("the Secret is valid");
    reach(&informer, changed.resource_version()).await;
    for broken in [
        r#"{"type":"MODIFIED","object":{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"shop",
            "name":"key","resourceVersion":"9000"},"data":"hunter2-in-a-wrong-type"}}"#,
        r#"{"type":"MODIFIED","object":{"data":{"key":"hunter2 is not base64"}}}"#,
        "hunter2 is not JSON",
    ] {
        let requests = simulator.request_count(&RequestFilter::any());
        simulator.inject(&RequestFilter::any(), &WatchInjection::bytes(format!("{broken}\n")).then_close());
        within(simulator.wait_for_requests(&RequestFilter::any(), requests + 1)).await;
        within(simulator.wait_for_watches(&RequestFilter::any(), 1)).await;
    }
    simulator.delete::<Secret>("shop/key").expect("the object exists");
    reach(&informer, simulator.resource_version()).await;
    drop(registration);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn spans_and_lines_never_have_the_data_of_a_secret() {
    for storage in [Storage::Decoded, Storage::Encoded, Storage::Compressed] {
        let (trace, simulator) = (Trace::default(), simulator());
        let _recording = trace.start();
        let client = simulator.client().expect("a client");
        let factory = SharedInformerFactory::builder(client)
            .configure::<Secret>(move |secrets| secrets.storage(storage))
            .build();
        watch_secrets(&simulator, &factory).await;
        let text = trace.text();
        assert!(text.contains("secrets") && text.contains("panicked"), "{text}");
        // In base64, "hunter2" begins with "aHVudGVy".
        let leaked = text.split('}').find(|entry| entry.contains("hunter2") || entry.contains("aHVudGVy"));
        assert_eq!(leaked, None);
    }
}
