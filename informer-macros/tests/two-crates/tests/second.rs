//! The second of two crates: adds kinds to a group that the first crate opens.

use informer_factory::{Informer, SharedIndexInformer, SharedInformerFactory};
use informer_testing::{ResourceKind, Simulator};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::json;

use two_crates::{Ship, ShipIndices, ShipInformers};

#[derive(Informer, Deserialize)]
#[informer(group = "fleet.example.com", version = "v1", kind = "Harbour", cluster, beside = two_crates::Ship)]
#[informer(index(name = "by_coast", path = "metadata.labels[\"coast\"]"))]
struct Harbour {
    metadata: ObjectMeta,
}

#[derive(Informer, Deserialize)]
#[informer(group = "fleet.example.com", version = "v2", kind = "Ship", namespaced, group_of = Ship)]
#[informer(plural = "ships", accessor = "ships")]
struct NewShip {
    metadata: ObjectMeta,
}

#[derive(Informer, Deserialize)]
#[informer(group = "fleet.example.com", version = "v2", kind = "Crew", namespaced, beside = NewShip)]
struct Crew {
    metadata: ObjectMeta,
}

/// Opens the group again, without the other crate's traits in scope.
mod apart {
    use informer_factory::{Informer, SharedInformerFactory};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use serde::Deserialize;

    #[derive(Informer, Deserialize)]
    #[informer(group = "fleet.example.com", version = "v1", kind = "Anchor", namespaced)]
    pub(super) struct Anchor {
        metadata: ObjectMeta,
    }

    pub(super) fn description(factory: &SharedInformerFactory) -> String {
        factory.fleet().v1().anchors().status().description().to_owned()
    }
}

fn simulator() -> Simulator {
    let simulator = Simulator::builder().start_in_process();
    simulator.register(ResourceKind::namespaced("fleet.example.com", "v1", "Ship", "ships"));
    simulator.register(ResourceKind::cluster_scoped("fleet.example.com", "v1", "Harbour", "harbours"));
    simulator
}

fn description<K: Send + Sync + 'static>(informer: &SharedIndexInformer<K>) -> String {
    format!("{} {}", informer.status().description(), std::any::type_name::<K>())
}

#[tokio::test]
async fn kinds_of_two_crates_share_a_group() {
    let simulator = simulator();
    for (kind, name, label) in [("Ship", "s", "flag"), ("Harbour", "h", "coast")] {
        let mut object = json!({
            "apiVersion": "fleet.example.com/v1", "kind": kind,
            "metadata": { "name": name, "labels": { label: "north" } },
        });
        if kind == "Ship" {
            object["metadata"]["namespace"] = "sea".into();
        }
        simulator.create(&object).expect("a new object");
    }
    let factory = SharedInformerFactory::new(simulator.client().expect("a client"));
    let (ships, harbours) = (factory.fleet().v1().ships(), factory.fleet().v1().harbours());
    factory.start();
    factory.wait_for_cache_sync().await.expect("the informers sync");
    assert_eq!((ships.by_flag("north").len(), harbours.by_coast("north").len()), (1, 1));
    factory.shutdown().await;
}

#[tokio::test]
async fn second_crate_adds_version_to_first_crates_group() {
    let factory = SharedInformerFactory::new(simulator().client().expect("a client"));
    let (old, new) = (factory.fleet().v1().ships(), factory.fleet().v2().ships());
    assert_ne!(description(&old), description(&new));
    assert!(factory.fleet().v2().crews().status().description().starts_with("crews.fleet.example.com"));
}

#[tokio::test]
async fn group_opened_by_two_crates_works_with_one_import() {
    let factory = SharedInformerFactory::new(simulator().client().expect("a client"));
    assert_eq!(apart::description(&factory), "anchors.fleet.example.com");
}
