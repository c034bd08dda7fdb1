//! Several kinds of one group: in one module, in another, in another version; one of them opens the
//! group.

use informer_factory::{Informer, SharedInformerFactory};
use informer_testing::Simulator;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Deserialize;

use crate::start;
use elsewhere::{GizmoIndices, GizmoInformers};

#[derive(Informer, Deserialize)]
#[informer(group = "several.example.com", version = "v1", kind = "Engine", namespaced)]
pub(crate) struct Engine {
    metadata: ObjectMeta,
}

#[derive(Informer, Deserialize)]
#[informer(group = "several.example.com", version = "v1", kind = "Wheel", cluster, beside = Engine)]
pub(crate) struct Wheel {
    metadata: ObjectMeta,
}

#[derive(Informer, Deserialize)]
#[informer(group = "several.example.com", version = "v2alpha1", kind = "Engine", namespaced, group_of = Engine)]
#[informer(plural = "engines", accessor = "engines")]
pub(crate) struct NewEngine {
    metadata: ObjectMeta,
}

#[derive(Informer, Deserialize)]
#[informer(group = "several.example.com", version = "v2alpha1", kind = "Wheel", cluster, beside = NewEngine)]
pub(crate) struct NewWheel {
    metadata: ObjectMeta,
}

/// Kinds of a group that another module has opened, and of one of its own.
pub(crate) mod elsewhere {
    use informer_factory::Informer;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use serde::Deserialize;

    #[derive(Informer, Deserialize)]
    #[informer(group = "several.example.com", version = "v1", kind = "Gizmo", namespaced, beside = super::Wheel)]
    #[informer(index(name = "by_app", path = "metadata.labels[\"app\"]"))]
    pub(crate) struct Gizmo {
        metadata: ObjectMeta,
    }

    #[derive(Informer, Deserialize)]
    #[informer(
        group = "several.example.org",
        version = "v1",
        kind = "Gadget",
        cluster,
        group_accessor = "org"
    )]
    pub(crate) struct Gadget {
        metadata: ObjectMeta,
    }
}

fn path_of<K: Resource<DynamicType = ()>>() -> String {
    K::url_path(&(), None)
}

#[tokio::test]
async fn kinds_of_one_group_share_its_accessors() {
    let (_simulator, factory) = start(Simulator::builder()).await;
    let (engines, wheels) = (factory.several().v1().engines(), factory.several().v1().wheels());
    let gizmos = factory.several().v1().gizmos();
    let version = factory.several().v2alpha1();
    let (new_engines, new_wheels) = (version.engines(), version.new_wheels());
    for (informer, description) in [
        (engines.status().description(), path_of::<Engine>()),
        (wheels.status().description(), path_of::<Wheel>()),
        (gizmos.status().description(), path_of::<elsewhere::Gizmo>()),
        (new_engines.status().description(), path_of::<NewEngine>()),
        (new_wheels.status().description(), path_of::<NewWheel>()),
    ] {
        let plural = description.rsplit('/').next().expect("a path");
        assert!(informer.contains(plural), "{informer} {description}");
    }
    assert_eq!(path_of::<NewWheel>(), "/apis/several.example.com/v2alpha1/wheels");
    assert!(gizmos.by_app("web").is_empty());
}

#[tokio::test]
async fn a_group_of_the_same_first_label_is_called_otherwise() {
    use elsewhere::GadgetInformers as _;
    let (_simulator, factory) = start(Simulator::builder()).await;
    assert!(factory.org().v1().gadgets().indexer().is_empty());
}

/// Only that it compiles: what an accessor returns outlives the way to it.
fn _the_way_is_borrowed_from_the_factory_alone(
    factory: &SharedInformerFactory,
) -> EngineInformersVersion<'_> {
    let group = factory.several();
    let (version, new) = (group.v1(), group.v2alpha1());
    assert!(std::ptr::eq(version.factory(), new.factory()));
    version
}

const FOUND_FIRST: &str = "which would be found in place of this one";

#[test]
fn beside_with_another_group_names_the_remedy() {
    use informer_factory::__private::{other_version, same_version};
    let told = |check: fn(&str, &str), group: &'static str, version: &'static str| {
        let panic = std::panic::catch_unwind(|| check(group, version)).err()?;
        panic.downcast_ref::<&str>().map(|message| (*message).to_owned())
    };
    let (group, other_group) = ("several.example.com", "several.example.org");
    let beside_engine: fn(&str, &str) = |group, version| same_version::<Engine>(group, version, "pistons");
    assert_eq!(told(beside_engine, group, "v1"), None);
    assert_eq!(told(other_version::<Engine>, group, "v2"), None);
    for (check, group, version, expected) in [
        (beside_engine, other_group, "v1", "`beside` names a kind of another group"),
        (beside_engine, group, "v2", "write `group_of` for the first kind of a version"),
        // Those that the opening kinds have themselves, which would be found first, however far
        // away they are.
        (|group, version| same_version::<Engine>(group, version, "engines"), group, "v1", FOUND_FIRST),
        (
            |group, version| same_version::<elsewhere::Gizmo>(group, version, "engines"),
            group,
            "v1",
            FOUND_FIRST,
        ),
        (
            |group, version| same_version::<NewWheel>(group, version, "engines"),
            group,
            "v2alpha1",
            FOUND_FIRST,
        ),
        (other_version::<NewWheel>, group, "v1", "the kind that has opened this group is of this version"),
        (other_version::<Engine>, other_group, "v2", "`group_of` names a kind of another group"),
        (other_version::<Engine>, group, "v1", "write `beside` in its place"),
    ] {
        let message = told(check, group, version).expect("it is refused");
        assert!(message.contains(expected), "{message}");
    }
}
