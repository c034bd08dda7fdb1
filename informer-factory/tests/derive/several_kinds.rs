//! Several kinds of one group, listed in `group!`.

use informer_factory::Informer;
use informer_testing::Simulator;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use crate::start;
use elsewhere::{Gizmo, GizmoIndices};

#[derive(Informer, Deserialize)]
#[informer(group = "several.example.com", version = "v1", kind = "Engine", namespaced, no_accessor)]
pub(crate) struct Engine {
    metadata: ObjectMeta,
}

#[derive(Informer, Deserialize)]
#[informer(group = "several.example.com", version = "v2alpha1", kind = "Engine", cluster, no_accessor)]
pub(crate) struct NewEngine {
    metadata: ObjectMeta,
}

/// A kind that is defined in another module.
pub(crate) mod elsewhere {
    use informer_factory::Informer;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use serde::Deserialize;

    #[derive(Informer, Deserialize)]
    #[informer(group = "several.example.com", version = "v1", kind = "Gizmo", namespaced, no_accessor)]
    #[informer(index(name = "by_app", path = "metadata.labels[\"app\"]"))]
    pub(crate) struct Gizmo {
        metadata: ObjectMeta,
    }
}

informer_factory::group! {
    /// The accessor of the kinds in this module.
    pub(crate) trait SeveralInformers {
        fn several() -> Several {
            fn v1() -> SeveralV1 { engines: Engine, gizmos: elsewhere::Gizmo }
            fn v2alpha1() -> SeveralV2alpha1 { engines: NewEngine }
        }
    }
}

#[tokio::test]
async fn kinds_of_one_group_share_its_accessors() {
    let (simulator, factory) = start(Simulator::builder()).await;
    let v1: SeveralV1<'_> = factory.several().v1();
    let gizmos: informer_factory::SharedIndexInformer<Gizmo> = v1.gizmos();
    assert!(gizmos.by_app("web").is_empty());
    let descriptions = [
        (v1.engines().status().description().to_owned(), "engines.several.example.com"),
        (gizmos.status().description().to_owned(), "gizmos.several.example.com"),
        (
            factory.several().v2alpha1().engines().status().description().to_owned(),
            "engines.several.example.com",
        ),
    ];
    for (description, expected) in descriptions {
        assert!(description.starts_with(expected), "{description}");
    }
    assert_eq!(factory.informers().len(), 3, "each type has its own informer");
    drop(simulator);
}
