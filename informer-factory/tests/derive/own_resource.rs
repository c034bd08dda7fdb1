//! The derive on a type that implements `kube::Resource` itself.

use std::borrow::Cow;

use informer_factory::{Informer, InformerOptions};
use informer_reflector::KubeListWatch;
use informer_testing::Simulator;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Deserialize;
use serde_json::json;

use crate::{names, start, synced};

#[derive(Informer, Deserialize, Debug)]
#[informer(own_resource, group = "widgets.example.com", version = "v1beta1")]
#[informer(index(name = "by_size", path = "spec.size", value = u32))]
struct Widget {
    metadata: ObjectMeta,
    spec: WidgetSpec,
}

#[derive(Deserialize, Debug)]
struct WidgetSpec {
    size: u32,
}

impl Resource for Widget {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Widget".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "widgets.example.com".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1beta1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "widgets".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// A type whose `kube::Resource` comes from kube's derive. It has no accessor.
#[derive(Resource, Informer, Deserialize, Clone, Debug)]
#[resource(inherit = k8s_openapi::api::core::v1::ConfigMap)]
#[informer(own_resource, index(name = "by_app", path = "metadata.labels[\"app\"]"))]
struct Config {
    metadata: ObjectMeta,
}

#[tokio::test]
async fn handwritten_resource_has_an_accessor_and_indices() {
    let (simulator, factory) = start(Simulator::builder().resource_of::<Widget>()).await;
    for (name, size) in [("a", 1), ("b", 2), ("c", 2)] {
        let widget = json!({
            "apiVersion": "widgets.example.com/v1beta1", "kind": "Widget",
            "metadata": { "namespace": "shop", "name": name }, "spec": { "size": size },
        });
        simulator.create(&widget).expect("a new object");
    }
    let widgets = factory.widgets().v1beta1().widgets();
    synced(&factory).await;
    assert_eq!(names(&widgets.by_size(&2)), ["b", "c"]);
    factory.shutdown().await;
}

#[tokio::test]
async fn derive_without_a_group_generates_indices_and_no_accessor() {
    let (simulator, factory) = start(Simulator::builder().built_in_kinds()).await;
    let client = simulator.client().expect("a client");
    let (configs, _task) = Config::new_informer(KubeListWatch::all(client), InformerOptions::new());
    assert_eq!(configs.indexer().index_names(), ["namespace", "by_app"]);
    let configs = factory.informer::<Config>();
    assert!(configs.by_app("web").is_empty());
}
