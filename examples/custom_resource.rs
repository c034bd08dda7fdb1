//! `#[derive(Informer)]` on a custom resource: its accessor on the factory, and a method for each of its indices.
//!
//! ```text
//! cargo run --example custom_resource
//! ```

use std::error::Error;
use std::time::Duration;

use informer_factory::{Informer, SharedInformerFactory, WaitOutcome};
use informer_testing::Simulator;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, CustomResource};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// A job that is run again and again. kube's derive makes the type `CronTab` of it, ours makes its informers.
#[derive(CustomResource, Informer, Deserialize, Serialize, Clone, Debug, JsonSchema)]
#[kube(group = "stable.example.com", version = "v1", kind = "CronTab", namespaced)]
#[informer(
    index(name = "by_image", path = "spec.image"),
    index(name = "by_schedule", with = schedules),
    default_resync = "10m"
)]
struct CronTabSpec {
    image: String,
    /// Minute, hour, day, month, weekday.
    schedule: String,
}

/// An index function may fail; the object is then in the store, and its error among `index_failures`.
fn schedules(tab: &CronTab) -> Result<Option<String>, String> {
    let schedule = &tab.spec.schedule;
    match schedule.split_whitespace().count() {
        5 => Ok(Some(schedule.clone())),
        n => Err(format!("a schedule has 5 parts, and \"{schedule}\" has {n}")),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // An API server in this process. A real one needs the CRD: `CronTab::crd()` is what to apply.
    let simulator = Simulator::builder().resource_of::<CronTab>().start().await?;
    let client = simulator.client()?;
    let server = Api::<CronTab>::namespaced(client.clone(), "shop");
    for (name, image, schedule) in [
        ("backup", "restic", "0 3 * * *"),
        ("report", "python", "0 6 * * 1"),
        ("cleanup", "restic", "every now and then"),
    ] {
        let spec = CronTabSpec { image: image.to_owned(), schedule: schedule.to_owned() };
        server.create(&PostParams::default(), &CronTab::new(name, spec)).await?;
    }

    let factory = SharedInformerFactory::new(client);
    let cron_tabs = factory.stable().v1().cron_tabs();
    let handler = cron_tabs.add_handlers(|handlers| {
        handlers.on_update(|old, new| println!("{}: {} -> {}", new.key(), old.spec.image, new.spec.image))
    });
    factory.start();
    factory.wait_for_cache_sync().await?;

    for tab in cron_tabs.by_image("restic") {
        println!("{} runs restic", tab.key());
    }
    for failure in cron_tabs.indexer().index_failures() {
        println!("not in every index: {failure}");
    }

    // A change is in the store, and in its indices, as soon as the write has come back.
    let patch = Patch::Merge(json!({ "spec": { "image": "borg" } }));
    let written = server.patch("backup", &PatchParams::default(), &patch).await?;
    let outcome = cron_tabs.wait_for_write(&written, Duration::from_secs(10)).await;
    assert_eq!(outcome, WaitOutcome::Reached);
    assert_eq!(cron_tabs.by_image("borg").len(), 1);
    assert_eq!(cron_tabs.by_schedule("0 6 * * 1").len(), 1);

    factory.shutdown().await;
    drop((handler, factory, server));
    simulator.shutdown().await;
    Ok(())
}
