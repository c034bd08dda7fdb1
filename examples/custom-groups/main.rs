//! Informers of custom resources whose types and accessors are generated.
//!
//! `cargo xtask codegen --crd examples/custom-groups/crds/*.yaml --out examples/custom-groups/groups` generates the
//! folder `groups`. The selectable fields of these definitions get indexes. A program with such a folder needs
//! informer-factory, kube with its feature `derive`, k8s-openapi, serde, and `serde_json`, which kube's derive
//! requires.

mod groups;

use std::error::Error;
use std::time::Duration;

use informer_factory::{SharedIndexInformer, SharedInformerFactory};
use informer_testing::Simulator;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::Client;
use kube::api::{Api, PostParams};

use crate::groups::CustomGroups as _;
use crate::groups::build_v1beta1::Pipeline;
use crate::groups::build_v1beta1::pipeline::{PipelineSpec, PipelineSteps};
use crate::groups::data_v1::backup::BackupSpec;
use crate::groups::data_v1::sql_database::SqlDatabaseSpec;
use crate::groups::data_v1::{Backup, SqlDatabase};
use crate::groups::edge_fleet_v1::k8s_cluster::K8sClusterSpec;
use crate::groups::edge_fleet_v1::zone::{ZoneSpec, ZoneTier};
use crate::groups::edge_fleet_v1::{K8sCluster, K8sClusterIndices as _, Zone};
use crate::groups::networking_example_v1::Firewall;
use crate::groups::networking_example_v1::firewall::FirewallSpec;
use crate::groups::stable_v1::cron_tab::CronTabSpec;
use crate::groups::stable_v1::{CronTab, CronTabIndices as _};
use crate::groups::{data_v1, data_v1beta1};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let simulator = Simulator::builder()
        .built_in_kinds()
        .resource_of::<CronTab>()
        .resource_of::<Zone>()
        .resource_of::<K8sCluster>()
        .resource_of::<Pipeline>()
        .resource_of::<data_v1::SqlDatabase>()
        .resource_of::<data_v1beta1::SqlDatabase>()
        .resource_of::<Backup>()
        .resource_of::<Firewall>()
        .start()
        .await?;
    let client = simulator.client()?;
    create(&client).await?;

    let factory = SharedInformerFactory::new(client).in_namespace("shop");
    let cron_tabs = factory.stable().v1().cron_tabs();
    let zones = factory.edge_fleet().v1().zones();
    let clusters = factory.edge_fleet().v1().k8s_clusters();
    let pipelines = factory.build().v1beta1().pipelines();
    let databases = factory.data().v1().databases();
    let backups = factory.data().v1().backups();
    let firewalls = factory.networking_example().v1().firewalls();
    // Each version of a kind is a separate type with its own informer.
    let old_databases = factory.data().v1beta1().databases();
    // The accessors of Kubernetes' own groups do not conflict with generated accessors.
    let pods = factory.core().v1().pods();
    let by_tier =
        zones.add_index("tier", |zone: &Zone| zone.spec.tier.as_ref().map(|tier| format!("{tier:?}")))?;
    factory.start();
    factory.wait_for_cache_sync_within(Duration::from_secs(30)).await?;

    for (informer, found) in [
        ("cron tabs of the image `backup`", cron_tabs.by_image("backup").len()),
        ("zones near the edge", by_tier.get("NearEdge").len()),
        ("clusters in the zone `north-1`", clusters.by_zone("north-1").len()),
        (
            "pipelines with a port",
            count(&pipelines, |it| it.spec.steps.iter().any(|step| step.port.is_some())),
        ),
        ("databases with two replicas", count(&databases, |it| it.spec.replicas == Some(2))),
        ("backups of the database `orders`", count(&backups, |it| it.spec.database == "orders")),
        ("firewalls with an open port 443", count(&firewalls, |it| it.spec.open.contains(&443))),
    ] {
        println!("{found} {informer}");
        if found != 1 {
            return Err(format!("expected one object: {informer}").into());
        }
    }
    println!("{} databases in v1beta1, {} pods", old_databases.indexer().len(), pods.indexer().len());
    factory.shutdown().await;
    Ok(())
}

/// Creates one object of each kind from the generated types.
async fn create(client: &Client) -> Result<(), Box<dyn Error>> {
    let default = PostParams::default();
    let spec = CronTabSpec { schedule: "0 3 * * *".into(), image: "backup".into(), ..CronTabSpec::default() };
    let cron_tab = CronTab::new("nightly", spec);
    Api::namespaced(client.clone(), "shop").create(&default, &cron_tab).await?;
    let spec = ZoneSpec { region: "north".into(), tier: Some(ZoneTier::NearEdge) };
    Api::all(client.clone()).create(&default, &Zone::new("north-1", spec)).await?;
    let cluster = K8sCluster::new("north-1-a", K8sClusterSpec { zone: "north-1".into() });
    Api::all(client.clone()).create(&default, &cluster).await?;
    let port = Some(IntOrString::String("http".into()));
    let step = PipelineSteps { name: "serve".into(), port, ..PipelineSteps::default() };
    let pipeline = Pipeline::new("web", PipelineSpec { steps: vec![step], ..PipelineSpec::default() });
    Api::namespaced(client.clone(), "shop").create(&default, &pipeline).await?;
    let database = SqlDatabase::new("orders", SqlDatabaseSpec { engine: "sql".into(), replicas: Some(2) });
    Api::namespaced(client.clone(), "shop").create(&default, &database).await?;
    let backup = Backup::new("orders-1", BackupSpec { database: "orders".into(), keep_days: Some(7) });
    Api::namespaced(client.clone(), "shop").create(&default, &backup).await?;
    let firewall = Firewall::new("front", FirewallSpec { open: vec![80, 443] });
    Api::namespaced(client.clone(), "shop").create(&default, &firewall).await?;
    Ok(())
}

fn count<K: Send + Sync + 'static>(informer: &SharedIndexInformer<K>, is: impl Fn(&K) -> bool) -> usize {
    informer.indexer().list().into_iter().filter(|object| is(object)).count()
}
