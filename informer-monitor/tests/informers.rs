//! The metrics of informers, on the API server simulator.

use std::collections::BTreeSet;
use std::time::Duration;

use informer_core::HandlerOptions;
use informer_factory::{Handlers, SharedInformerFactory, Storage, WaitOutcome};
use informer_monitor::InformerMetrics;
use informer_testing::Simulator;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use kube::core::discovery::{ApiResource, Scope};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};

fn config_map(name: &str, colour: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "namespace": "shop", "name": name }, "data": { "colour": colour },
    })
}

fn page(registry: &Registry) -> String {
    let mut page = String::new();
    encode(&mut page, registry).expect("a string");
    page
}

/// Returns the value of a series, which is the line that begins with `metric` and has `labels`.
fn value(page: &str, metric: &str, labels: &[&str]) -> Option<f64> {
    let is_it = |line: &&str| {
        line.starts_with(&format!("{metric}{{")) && labels.iter().all(|label| line.contains(label))
    };
    page.lines().find(is_it)?.rsplit(' ').next()?.parse().ok()
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    let wait = async {
        while !condition() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), wait).await.unwrap_or_else(|_| panic!("{what}"));
}

#[tokio::test]
async fn encoded_bytes_follow_the_objects_of_the_store() {
    let simulator = Simulator::builder().built_in_kinds().start_in_process();
    let client = simulator.client().expect("a client");
    let factory = SharedInformerFactory::builder(client)
        .configure::<ConfigMap>(|config_maps| config_maps.storage(Storage::Encoded))
        .build();
    let mut registry = Registry::default();
    registry.register_collector(Box::new(InformerMetrics::new(&factory)));
    let informer = factory.core().v1().config_maps();
    factory.start();
    factory.wait_for_cache_sync().await.expect("the informer syncs");
    let bytes_at = async |version: u64| {
        let version = version.to_string().as_str().into();
        assert_eq!(informer.wait_until(&version, Duration::from_secs(30)).await, WaitOutcome::Reached);
        value(&page(&registry), "informer_store_encoded_bytes", &[]).unwrap_or_default()
    };
    let created = simulator.create(&config_map("a", "green")).expect("a new object");
    let green = bytes_at(created.resource_version()).await;
    assert!(green > 20.0, "{green}");
    let changed = simulator.apply(&config_map("a", "light green")).expect("the object exists");
    assert_eq!(bytes_at(changed.resource_version()).await, green + 6.0);
    let again = simulator.create(&config_map("b", "green")).expect("a new object");
    assert_eq!(bytes_at(again.resource_version()).await, 2.0 * green + 6.0);
    for name in ["shop/a", "shop/b"] {
        let left = if name == "shop/a" { green } else { 0.0 };
        let deleted = simulator.delete::<ConfigMap>(name).expect("the object exists");
        assert_eq!(bytes_at(deleted.resource_version()).await, left);
    }
}

#[tokio::test]
async fn metrics_follow_an_informer_from_its_list_to_its_end() {
    let simulator = Simulator::builder().built_in_kinds().start().await.expect("a free port");
    let client = simulator.client().expect("a client");
    for name in ["a", "b"] {
        simulator.create(&config_map(name, "green")).expect("a new object");
    }
    let factory = SharedInformerFactory::new(client.clone());
    let mut registry = Registry::default();
    registry.register_collector(Box::new(InformerMetrics::new(&factory)));
    let informer = factory.core().v1().config_maps();
    let options = HandlerOptions::default().name("colours");
    informer.add_event_handler_with(Handlers::new(), &options).detach();
    let number = |metric: &str, labels: &[&str]| value(&page(&registry), metric, labels);
    assert_eq!(number("informer_synced", &["resource=\"configmaps\""]), Some(0.0));
    assert_eq!(number("informer_health", &["state=\"connecting\""]), Some(1.0));

    factory.start();
    factory.wait_for_cache_sync().await.expect("the informer syncs");
    let api = Api::<ConfigMap>::namespaced(client, "shop");
    let patch = Patch::Merge(json!({ "data": { "colour": "red" } }));
    api.patch("a", &PatchParams::default(), &patch).await.expect("the object exists");
    let handler = ["resource=\"configmaps\"", "handler=\"colours\""];
    until("timed out: the handler did not get all events", || {
        number("informer_handler_delivered_events_total", &handler) == Some(3.0)
    })
    .await;

    let resource_version: f64 = informer.watermark().to_string().parse().expect("a number");
    for (metric, labels, expected) in [
        ("informer_synced", &[][..], 1.0),
        ("informer_health", &["state=\"live\""], 1.0),
        ("informer_store_objects", &["object=\"ConfigMap\""], 2.0),
        ("informer_store_resource_version", &[], resource_version),
        ("informer_queued_items", &[], 0.0),
        ("informer_batched_items_total", &[], 3.0),
        ("informer_quarantined_objects", &[], 0.0),
        ("informer_handler_pending_events", &handler, 0.0),
        ("informer_handler_panics_total", &handler, 0.0),
        ("reflector_lists_total", &[], 1.0),
        ("reflector_listed_objects_total", &[], 2.0),
        ("reflector_watches_total", &[], 1.0),
        ("reflector_watch_events_total", &["type=\"MODIFIED\""], 1.0),
    ] {
        assert_eq!(number(metric, labels), Some(expected), "{metric} {labels:?} in\n{}", page(&registry));
    }
    for age in ["informer_last_event_age_seconds", "informer_watermark_age_seconds"] {
        assert!(number(age, &[]).is_some_and(|seconds| seconds < 30.0), "{age}");
    }
    assert!(number("informer_batches_total", &[]).is_some_and(|batches| (2.0..=3.0).contains(&batches)));
    assert!(number("reflector_received_bytes_total", &[]).is_some_and(|bytes| bytes > 100.0));
    assert_eq!(number("informer_store_encoded_bytes", &[]), None, "the objects are stored decoded");

    factory.stop(&informer).await;
    drop(informer);
    assert!(!page(&registry).contains("configmaps"), "the informer was dropped:\n{}", page(&registry));
}

#[tokio::test]
async fn counters_keep_removed_handlers_of_the_same_name() {
    let simulator = Simulator::builder().built_in_kinds().start_in_process();
    simulator.create(&config_map("a", "green")).expect("a new object");
    let factory = SharedInformerFactory::new(simulator.client().expect("a client"));
    let mut registry = Registry::default();
    registry.register_collector(Box::new(InformerMetrics::new(&factory)));
    let informer = factory.core().v1().config_maps();
    let options = HandlerOptions::default().name("colours");
    let [removed, remaining] = [(); 2].map(|()| informer.add_event_handler_with(Handlers::new(), &options));
    let delivered =
        || value(&page(&registry), "informer_handler_delivered_events_total", &["handler=\"colours\""]);
    factory.start();
    until("timed out: a handler did not get its event", || delivered() == Some(2.0)).await;
    removed.remove_and_wait().await;
    assert_eq!(delivered(), Some(2.0));
    remaining.remove_and_wait().await;
    assert_eq!(delivered(), None);
}

#[tokio::test]
async fn informers_of_the_same_name_have_separate_series() {
    let simulator = Simulator::builder().built_in_kinds().start_in_process();
    let factory = SharedInformerFactory::new(simulator.client().expect("a client"));
    let mut registry = Registry::default();
    registry.register_collector(Box::new(InformerMetrics::new(&factory)));
    // Both have the same description, and object types of the same name without its parameters.
    let described = ApiResource::erase::<ConfigMap>(&());
    let metadata = factory.metadata();
    let _informers = (metadata.of::<ConfigMap>(), metadata.resource(&described, &Scope::Namespaced));
    let page = page(&registry);
    let samples = page.lines().filter(|line| !line.starts_with('#'));
    let series: Vec<_> = samples.filter_map(|line| Some(line.rsplit_once(' ')?.0)).collect();
    let different: BTreeSet<_> = series.iter().collect();
    assert_eq!(different.len(), series.len(), "{page}");
    for object in ["PartialObjectMeta", "PartialObjectMeta 2"] {
        let label = format!("object=\"{object}\"");
        assert_eq!(value(&page, "informer_synced", &[&label]), Some(0.0), "{label} in\n{page}");
    }
}
