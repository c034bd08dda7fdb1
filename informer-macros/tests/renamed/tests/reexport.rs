//! A crate that reaches informer-factory only through another crate's re-export.

use informer_testing::{ResourceKind, Simulator};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{CustomResource, Resource};
use renamed::door::informers::{Informer, SharedIndexInformer, SharedInformerFactory};
use renamed::{CarInformers, Engine, EngineIndices, EngineInformers, PodNameIndices, PodNameInformers};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// A kind that shares a group with a kind of another crate.
#[derive(Informer, Deserialize)]
#[informer(crate = renamed::door::informers, group = "renamed.example.com", version = "v1", kind = "Door", namespaced)]
#[informer(no_accessor)]
struct Door {
    metadata: ObjectMeta,
}

renamed::door::informers::group! {
    trait AllInformers {
        fn all() -> All {
            fn v1() -> AllV1 { doors: Door, engines: Engine }
        }
    }
}

#[derive(CustomResource, Informer, Deserialize, Serialize, Clone, Debug)]
#[kube(group = "handed.example.com", version = "v1", kind = "Part", namespaced, schema = "disabled")]
#[informer(crate = ::renamed::door::informers, index(name = "by_maker", path = "spec.maker"))]
struct PartSpec {
    maker: String,
}

/// A type whose `kube::Resource` comes from kube's `#[derive(Resource)]`.
#[derive(Resource, Informer, Deserialize, Clone, Debug)]
#[resource(inherit = k8s_openapi::api::core::v1::Node)]
#[informer(crate = renamed::door::informers, own_resource, group = "", version = "v1", accessor = "machines")]
struct Machine {
    metadata: ObjectMeta,
}

fn description<K: Send + Sync + 'static>(informer: &SharedIndexInformer<K>) -> String {
    informer.status().description().to_owned()
}

#[tokio::test]
async fn derive_works_with_a_renamed_informer_factory() {
    let simulator = Simulator::builder().built_in_kinds().start_in_process();
    simulator.register(ResourceKind::namespaced("renamed.example.com", "v1", "Engine", "engines"));
    let engine = json!({
        "apiVersion": "renamed.example.com/v1", "kind": "Engine", "metadata": { "namespace": "a", "name": "b" },
        "spec": { "fuel": "wood", "power": 3 },
    });
    simulator.create(&engine).expect("a new object");
    let factory = SharedInformerFactory::new(simulator.client().expect("a client"));
    let engines = factory.renamed().v1().engines();
    factory.start();
    factory.wait_for_cache_sync().await.expect("the informers sync");
    let found = [engines.by_fuel("wood").len(), engines.by_name("b").len(), engines.by_power(&3).len()];
    assert_eq!(found, [1, 1, 1]);
    assert!(factory.core().v1().pod_names().by_app("web").is_empty());
    for (description, plural) in [
        (description(&factory.cars().v1().wheels()), "wheels.renamed"),
        (description(&factory.all().v1().doors()), "doors.renamed"),
        (description(&factory.all().v1().engines()), "engines.renamed"),
        (description(&factory.handed().v1().parts()), "parts.handed"),
        (description(&factory.core().v1().machines()), "nodes"),
    ] {
        assert!(description.starts_with(plural), "{description}");
    }
    assert!(factory.handed().v1().parts().by_maker("x").is_empty());
    factory.shutdown().await;
}
