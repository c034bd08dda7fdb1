//! `#[derive(Informer)]` on a custom resource: an accessor on the factory, and a method for each index.
//!
//! ```text
//! cargo run --example custom_resource
//! ```

mod server;

use std::error::Error;
use std::time::Duration;

use informer_factory::{Informer, SharedInformerFactory, WaitOutcome};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, CustomResource, CustomResourceExt, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use server::Server;

/// A job that runs periodically. kube's derive generates the type `CronTab`, and `Informer` generates its informers.
#[derive(CustomResource, Informer, Deserialize, Serialize, Clone, Debug, JsonSchema)]
#[kube(group = "stable.example.com", version = "v1", kind = "CronTab", namespaced)]
#[informer(
    index(name = "by_image", path = "spec.image"),
    index(name = "by_schedule", with = schedules),
    default_resync = "10m"
)]
struct CronTabSpec {
    image: String,
    /// The schedule in cron's format: minute, hour, day, month, weekday.
    schedule: String,
}

/// The function of the index `by_schedule`. The store keeps an object for which the function fails,
/// and `index_failures` returns the error.
fn schedules(tab: &CronTab) -> Result<Option<String>, String> {
    let schedule = &tab.spec.schedule;
    match schedule.split_whitespace().count() {
        5 => Ok(Some(schedule.clone())),
        n => Err(format!("a schedule has 5 parts, and \"{schedule}\" has {n}")),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::start().await?;
    let client = server.client.clone();
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    definitions.create(&PostParams::default(), &CronTab::crd()).await?;

    // An informer can start before the server serves its resource. Until then, the informer
    // retries, and its status shows that the resource is missing.
    let factory = SharedInformerFactory::new(client.clone()).in_namespace(&server.namespace);
    let cron_tabs = factory.stable().v1().cron_tabs();
    let handler = cron_tabs.add_handlers(|handlers| {
        handlers.on_update(|old, new| println!("{}: {} -> {}", new.key(), old.spec.image, new.spec.image))
    });
    factory.start();
    factory.wait_for_cache_sync().await?;

    let api = Api::<CronTab>::namespaced(client, &server.namespace);
    for (name, image, schedule) in [
        ("backup", "restic", "0 3 * * *"),
        ("report", "python", "0 6 * * 1"),
        ("cleanup", "restic", "every now and then"),
    ] {
        let spec = CronTabSpec { image: image.to_owned(), schedule: schedule.to_owned() };
        let written: CronTab = server.create(CronTab::new(name, spec)).await?;
        // Wait until the store contains the write. Its indexes are then up to date, too.
        let outcome = cron_tabs.wait_for_write(&written, Duration::from_secs(60)).await;
        assert_eq!(outcome, WaitOutcome::Reached);
    }

    for tab in cron_tabs.by_image("restic") {
        println!("{} runs restic", tab.key());
    }
    for failure in cron_tabs.indexer().index_failures() {
        println!("index failure: {failure}");
    }

    let patch = Patch::Merge(json!({ "spec": { "image": "borg" } }));
    let written = api.patch("backup", &PatchParams::default(), &patch).await?;
    let outcome = cron_tabs.wait_for_write(&written, Duration::from_secs(60)).await;
    assert_eq!(outcome, WaitOutcome::Reached);
    assert_eq!(cron_tabs.by_image("borg").len(), 1);
    assert_eq!(cron_tabs.by_schedule("0 6 * * 1").len(), 1);

    factory.shutdown().await;
    drop((handler, cron_tabs, factory, api));
    definitions.delete(&CronTab::crd().name_any(), &DeleteParams::default()).await?;
    drop(definitions);
    server.shutdown().await
}
