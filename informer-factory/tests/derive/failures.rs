//! Errors at run time: a kind that the server does not serve, and a kind with the wrong scope.

use informer_factory::status::Health;
use informer_factory::{Informer, SharedIndexInformer, SharedInformerFactory};
use informer_testing::{ResourceKind, Simulator};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::json;

use crate::{start, synced, within};

#[derive(Informer, Deserialize)]
#[informer(group = "absent.example.com", version = "v1", kind = "Absent", namespaced)]
struct Absent {
    metadata: ObjectMeta,
}

/// A view of nodes that wrongly claims to be namespaced.
#[derive(Informer, Deserialize)]
#[informer(group = "", version = "v1", kind = "Node", namespaced)]
struct MisplacedNode {
    metadata: ObjectMeta,
}

async fn not_served<K: kube::Resource + Send + Sync + 'static>(informer: &SharedIndexInformer<K>) -> Health {
    let mut status = informer.status().clone();
    within(async {
        let mut health = status.health();
        while !matches!(health, Health::NotServed { .. }) {
            health = status.health_changed().await.expect("the informer runs");
        }
        health
    })
    .await
}

#[tokio::test]
async fn missing_kind_is_reported_not_served_until_installed() {
    let (simulator, factory) = start(Simulator::builder()).await;
    let absent = factory.absent().v1().absents();
    factory.start();
    let health = not_served(&absent).await;
    assert!(health.to_string().contains("404"), "{health}");
    simulator.register(ResourceKind::of::<Absent>());
    simulator
        .create(&json!({
            "apiVersion": "absent.example.com/v1", "kind": "Absent", "metadata": { "namespace": "a", "name": "b" },
        }))
        .expect("a new object");
    within(absent.synced().wait()).await.expect("synced");
    assert_eq!(absent.indexer().len(), 1);
    factory.shutdown().await;
}

#[tokio::test]
async fn namespaced_view_of_a_cluster_kind_works_in_all_namespaces() {
    let (simulator, everywhere) = start(Simulator::builder().built_in_kinds()).await;
    let client = simulator.client().expect("a client");
    let shop = SharedInformerFactory::new(client).in_namespace("shop");
    let misplaced = shop.core().v1().misplaced_nodes();
    shop.start();
    not_served(&misplaced).await;
    let whole = everywhere.core().v1().misplaced_nodes();
    synced(&everywhere).await;
    assert!(whole.has_synced());
    shop.shutdown().await;
    everywhere.shutdown().await;
}
