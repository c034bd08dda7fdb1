//! The derive on a spec with `#[derive(CustomResource)]`.

use std::sync::Arc;
use std::time::Duration;

use informer_factory::{Informer, InformerOptions};
use informer_reflector::KubeListWatch;
use informer_testing::{MemorySource, RequestFilter, Simulator, Verb};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{names, start, synced, within};

#[derive(CustomResource, Informer, Deserialize, Serialize, Clone, Debug, JsonSchema)]
#[kube(group = "stable.example.com", version = "v1", kind = "CronTab", namespaced)]
#[kube(status = "CronTabStatus", printcolumn(name = "Image", type_ = "string", json_path = ".spec.image"))]
#[informer(
    index(name = "by_image", path = "spec.image"),
    index(name = "by_owner", with = owners),
    prune("spec.history"),
    default_resync = "10m"
)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CronTabSpec {
    pub(crate) image: String,
    #[serde(default)]
    pub(crate) history: Vec<String>,
}

#[derive(Deserialize, Serialize, Clone, Debug, Default, JsonSchema)]
pub(crate) struct CronTabStatus {
    ready: bool,
}

fn owners(tab: &CronTab) -> Vec<String> {
    tab.metadata.owner_references.iter().flatten().map(|owner| owner.uid.clone()).collect()
}

fn cron_tab(name: &str, image: &str) -> Value {
    json!({
        "apiVersion": "stable.example.com/v1", "kind": "CronTab",
        "metadata": {
            "namespace": "shop", "name": name,
            "ownerReferences": [{ "apiVersion": "v1", "kind": "Node", "name": "n", "uid": format!("uid-of-{name}") }],
        },
        "spec": { "image": image, "history": ["yesterday"] },
    })
}

pub(crate) fn create(simulator: &Simulator) {
    for (name, image) in [("a", "nginx"), ("b", "nginx"), ("c", "redis")] {
        simulator.create(&cron_tab(name, image)).expect("a new object");
    }
}

#[tokio::test]
async fn custom_resource_has_accessor_and_index_methods() {
    let (simulator, factory) = start(Simulator::builder().resource_of::<CronTab>()).await;
    create(&simulator);
    let cron_tabs = factory.stable().v1().cron_tabs();
    assert_eq!(cron_tabs.indexer().index_names(), ["namespace", "by_image", "by_owner"]);
    synced(&factory).await;
    assert_eq!(names(&cron_tabs.by_image("nginx")), ["a", "b"]);
    assert_eq!(names(&cron_tabs.by_owner("uid-of-c")), ["c"]);
    assert!(cron_tabs.by_image("postgres").is_empty());
    assert_eq!(cron_tabs.by_image_index().count("redis"), 1);
    factory.shutdown().await;
}

#[tokio::test]
async fn fields_that_the_derive_prunes_are_not_decoded() {
    let (simulator, factory) = start(Simulator::builder().resource_of::<CronTab>()).await;
    create(&simulator);
    let cron_tabs = factory.stable().v1().cron_tabs();
    synced(&factory).await;
    assert!(cron_tabs.indexer().list().iter().all(|tab| tab.spec.history.is_empty()));
    factory.shutdown().await;
}

#[tokio::test]
async fn request_by_type_returns_the_informer_of_the_accessor() {
    let (simulator, factory) = start(Simulator::builder().resource_of::<CronTab>()).await;
    create(&simulator);
    let by_type = factory.informer::<CronTab>();
    assert_eq!(by_type.indexer().index_names(), ["namespace"]);
    let by_accessor = factory.stable().v1().cron_tabs();
    assert_eq!(by_type.indexer().index_names(), ["namespace", "by_image", "by_owner"]);
    synced(&factory).await;
    assert_eq!(names(&by_type.by_image("nginx")), names(&by_accessor.by_image("nginx")));
    assert_eq!(simulator.request_count(&RequestFilter::verb(Verb::Watch)), 1);
    factory.shutdown().await;
}

#[tokio::test]
async fn index_is_added_by_the_first_use_of_its_method() {
    let (simulator, factory) = start(Simulator::builder().resource_of::<CronTab>()).await;
    create(&simulator);
    let cron_tabs = factory.informer::<CronTab>();
    synced(&factory).await;
    assert_eq!(names(&cron_tabs.by_image("nginx")), ["a", "b"]);
    assert_eq!(cron_tabs.indexer().index_names(), ["namespace", "by_image"]);
    cron_tabs.indexer().remove_index("by_image").expect("the index exists");
    assert_eq!(names(&cron_tabs.by_image("nginx")), ["a", "b"]);
    factory.shutdown().await;
}

#[tokio::test]
async fn new_informer_without_factory_has_indices_and_prunes() {
    let (simulator, factory) = start(Simulator::builder().resource_of::<CronTab>()).await;
    create(&simulator);
    let client = simulator.client().expect("a client");
    let list_watch = KubeListWatch::namespaced(client, "shop").field_selector("metadata.name!=b");
    let (cron_tabs, task) = CronTab::new_informer(list_watch, InformerOptions::new());
    assert_eq!(cron_tabs.indexer().index_names(), ["namespace", "by_image", "by_owner"]);
    let shutdown = CancellationToken::new();
    let running = tokio::spawn(task.run(shutdown.clone()));
    within(cron_tabs.synced().wait()).await.expect("synced");
    assert_eq!(names(&cron_tabs.by_image("nginx")), ["a"]);
    assert!(cron_tabs.indexer().list().iter().all(|tab| tab.spec.history.is_empty()));
    shutdown.cancel();
    within(running).await.expect("no panic");
    factory.shutdown().await;
}

/// Returns the seconds, on a paused clock, until an informer with these options resyncs an
/// unchanged object.
async fn first_resync(options: InformerOptions<CronTab>) -> u64 {
    let source = MemorySource::new("cron tabs");
    source
        .create(serde_json::from_value(cron_tab("a", "nginx")).expect("the JSON is a cron tab"))
        .expect("a new object");
    let (cron_tabs, task) = CronTab::new_informer_from(Arc::new(source), options);
    let (sender, mut resyncs) = mpsc::unbounded_channel();
    let handlers = cron_tabs.add_handlers(|handlers| handlers.on_update(move |_, _| _ = sender.send(())));
    let started = Instant::now();
    let shutdown = CancellationToken::new();
    let running = tokio::spawn(task.run(shutdown.clone()));
    resyncs.recv().await.expect("the handler is registered");
    assert_eq!(names(&cron_tabs.by_image("nginx")), ["a"]);
    drop(handlers);
    shutdown.cancel();
    running.await.expect("no panic");
    started.elapsed().as_secs()
}

#[tokio::test(start_paused = true)]
async fn derived_resync_period_applies_without_an_option() {
    assert_eq!(first_resync(InformerOptions::new()).await, 600);
    assert_eq!(first_resync(InformerOptions::new().resync_period(Duration::from_secs(90))).await, 90);
}
