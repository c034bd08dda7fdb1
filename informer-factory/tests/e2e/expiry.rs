//! A watch that expires on a real server, because its version is too old.
//!
//! A server keeps the recent history of each resource in its watch cache. A change of a CRD clears
//! this cache, as a restart does for all resources. Watches from earlier versions then end with
//! 410.

use std::pin::pin;

use futures::StreamExt;
use informer_factory::InformerOptions;
use informer_factory::status::Health;
use informer_reflector::{KubeListWatch, ReflectorConfig};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use serde_json::json;

use crate::cluster::{Cluster, Object, caught_up, create, delete, health_that, patch, run};
use crate::custom_resources::{Widget, definition, install, served_version, widget};
use crate::eventually;
use crate::interruptions::Interruptions;
use crate::journal::journal;
use crate::witnesses::Witnesses;

/// Makes the server drop the history of widgets, and waits until the history is dropped. Widgets
/// must have changed since the version `known`.
async fn drop_history<const TEST: u8>(cluster: &Cluster, known: &str) {
    let definitions = Api::<CustomResourceDefinition>::all(cluster.client.clone());
    // The columns are changed and not the resource's names, because new names would restart the
    // watch cache twice: when the names change, and when the server accepts them.
    let mut version = served_version();
    version["additionalPrinterColumns"] =
        json!([{ "name": "Size", "type": "integer", "jsonPath": ".spec.size" }]);
    patch(&definitions, &definition::<TEST>(), json!({ "spec": { "versions": [version] } })).await;
    let server = cluster.api::<Widget<TEST>>();
    eventually(async || is_dropped(&server, known).await.then_some(())).await;
}

/// Returns whether the server has dropped the changes since a version. If it has not, the watch
/// returns a change at once.
async fn is_dropped<K: Object>(server: &Api<K>, version: &str) -> bool {
    // The watch cache may be restarting.
    let Ok(events) = server.watch(&WatchParams::default(), version).await else { return false };
    let first = pin!(events).next().await;
    matches!(first, Some(Ok(WatchEvent::Error(status))) if status.code == 410)
}

/// Changes widgets during an outage, and makes the server drop the history of these changes. Checks
/// that the informer gets the changes with one list.
async fn check_dropped_history<const TEST: u8>(config: ReflectorConfig) {
    let cluster = Cluster::connect("expiry").await;
    let (interruptions, server) = (Interruptions::default(), cluster.api::<Widget<TEST>>());
    install::<TEST>(&cluster.client).await;
    let list_watch = KubeListWatch::namespaced(interruptions.client().await, &cluster.namespace);
    let (widgets, _running) = run(list_watch, InformerOptions::new().reflector(config));
    let witnesses = Witnesses::new(&widgets, &server, ListParams::default());
    let (journal, mut lines) = journal();
    widgets.add_event_handler(journal).detach();
    health_that(&widgets, Health::is_live).await;
    for name in ["stays", "changes"] {
        create(&server, &widget(name)).await;
    }
    let known =
        create(&server, &widget("goes")).await.resource_version().expect("the server sets the version");
    assert_eq!(lines.next(3).await, ["+changes", "+goes", "+stays"]);

    let lists = || interruptions.lists() + interruptions.streams();
    let (before, outage) = (lists(), interruptions.outage());
    delete(&server, "goes").await;
    drop_history::<TEST>(&cluster, &known).await;
    let last = patch(&server, "changes", json!({ "spec": { "size": 2 } })).await;
    caught_up(&server, &last.resource_version().as_deref().into()).await;
    drop(outage);
    assert_eq!(lines.next(2).await, ["-goes (missed)", "~changes"]);
    witnesses.agree().await;
    assert!(lines.is_at_end());
    assert_eq!(lists(), before + 1, "one list is enough");
}

#[tokio::test]
#[ignore = "needs a kube-apiserver: cargo xtask e2e"]
async fn dropped_history_leads_to_one_list() {
    check_dropped_history::<2>(ReflectorConfig::new()).await;
}

#[tokio::test]
#[ignore = "needs a kube-apiserver: cargo xtask e2e"]
async fn dropped_history_leads_to_one_paged_list() {
    check_dropped_history::<3>(ReflectorConfig::new().streaming_lists(false).page_size(100)).await;
}
