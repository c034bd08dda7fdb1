//! A crate that imports informer-factory as `front` and re-exports it. It uses every form of the
//! derive with `crate = …`, and has no dependency named `informer_factory`.

use front::Informer;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

/// Re-exports informer-factory for crates that do not depend on informer-factory themselves.
pub mod door {
    pub use front as informers;
}

/// A kind that uses most attributes of `#[informer(...)]`.
#[derive(Informer, Deserialize, Debug)]
#[informer(crate = front, group = "renamed.example.com", version = "v1", kind = "Engine", namespaced)]
#[informer(index(name = "by_fuel", path = "spec.fuel"), index(name = "by_name", with = name))]
#[informer(index(name = "by_power", path = "spec.power", value = i64))]
#[informer(prune("spec.history"), default_resync = "10m")]
pub struct Engine {
    metadata: ObjectMeta,
    spec: EngineSpec,
}

#[derive(Deserialize, Debug)]
struct EngineSpec {
    fuel: Option<String>,
    power: Option<i64>,
}

fn name(engine: &Engine) -> Result<Option<String>, String> {
    Ok(engine.metadata.name.clone())
}

/// A kind with accessors from `group!`, through the re-export of this crate.
#[derive(Informer, Deserialize, Debug)]
#[informer(crate = crate::door::informers, group = "renamed.example.com", version = "v1", kind = "Wheel", namespaced)]
#[informer(no_accessor)]
pub struct Wheel {
    metadata: ObjectMeta,
}

front::group! {
    pub trait CarInformers {
        fn cars() -> Cars {
            fn v1() -> CarsV1 { wheels: Wheel }
        }
    }
}

/// A view of a built-in kind.
#[derive(Informer, Deserialize, Debug)]
#[informer(crate = front, group = "", version = "v1", kind = "Pod", namespaced)]
#[informer(index(name = "by_app", path = "metadata.labels[\"app\"]"))]
pub struct PodName {
    metadata: ObjectMeta,
}
