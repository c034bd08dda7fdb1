//! The derive on slim views: types with only some of a resource's fields.

use std::borrow::Cow;

use informer_factory::groups::CoreV1;
use informer_factory::{Informer, ObjectKey, SharedIndexInformer, SharedInformerFactory};
use informer_testing::{RequestFilter, Simulator, Verb};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{names, start, synced};

/// A view of pods with only the node name.
#[derive(Informer, Deserialize, Clone, Debug)]
#[informer(group = "", version = "v1", kind = "Pod", namespaced)]
#[informer(
    index(name = "by_node", path = "spec.node_name"),
    index(name = "by_app", path = "metadata.labels[\"app\"]")
)]
struct PodPlacement {
    metadata: ObjectMeta,
    spec: Placement,
}

#[derive(Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
struct Placement {
    node_name: Option<String>,
}

/// Another view of the same kind, in the same module.
#[derive(Informer, Deserialize)]
#[informer(
    group = "",
    version = "v1",
    kind = "Pod",
    namespaced,
    accessor = "pod_images",
    index(name = "by_image", path = "spec.containers.image")
)]
struct PodImages {
    metadata: ObjectMeta,
    spec: Images,
}

#[derive(Deserialize)]
struct Images {
    containers: Vec<Image>,
}

#[derive(Deserialize)]
struct Image {
    image: Option<String>,
}

#[derive(Informer, Deserialize)]
#[informer(
    group = "",
    version = "v1",
    kind = "Node",
    cluster,
    accessor = "node_names",
    prune("metadata.annotations")
)]
struct Node {
    metadata: ObjectMeta,
}

#[derive(Informer, Deserialize)]
#[informer(group = "apps", version = "v1", kind = "Deployment", namespaced, no_accessor)]
struct DeploymentName {
    metadata: ObjectMeta,
}

informer_factory::group! {
    trait SlimInformers {
        fn slim() -> Slim {
            fn v1() -> SlimV1 { deployments: DeploymentName }
        }
    }
}

fn pod(name: &str, node: &str, images: &[&str]) -> Value {
    let containers: Vec<Value> =
        images.iter().map(|image| json!({ "name": image, "image": image })).collect();
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "namespace": "shop", "name": name, "labels": { "app": node } },
        "spec": { "nodeName": node, "containers": containers, "volumes": [{ "name": "v" }] },
    })
}

#[tokio::test]
async fn view_has_its_fields_and_a_built_in_accessor() {
    let (simulator, factory) = start(Simulator::builder().built_in_kinds()).await;
    simulator.create(&pod("p", "n1", &["nginx", "envoy"])).expect("a new pod");
    simulator.create(&pod("q", "n2", &["redis", "envoy"])).expect("a new pod");
    let placements = factory.core().v1().pod_placements();
    let images = factory.core().v1().pod_images();
    let whole = factory.core().v1().pods();
    synced(&factory).await;
    assert_eq!(names(&placements.by_node("n1")), ["p"]);
    assert_eq!(names(&placements.by_app("n2")), ["q"]);
    assert_eq!(names(&images.by_image("envoy")), ["p", "q"]);
    assert_eq!(names(&images.by_image("redis")), ["q"]);
    let placed = placements.get(&ObjectKey::namespaced("shop", "p")).expect("the object exists");
    assert_eq!(placed.spec.node_name.as_deref(), Some("n1"));
    assert_eq!(whole.indexer().len(), 2);
    assert_eq!(
        simulator.request_count(&RequestFilter::verb(Verb::Watch)),
        3,
        "each type has its own informer"
    );
    factory.shutdown().await;
}

#[tokio::test]
async fn view_named_like_its_kind_sets_accessor_and_prunes() {
    let (simulator, factory) = start(Simulator::builder().built_in_kinds()).await;
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n1", "annotations": { "a": "b" } } });
    simulator.create(&node).expect("a new node");
    let nodes = factory.core().v1().node_names();
    synced(&factory).await;
    let node = nodes.get(&ObjectKey::cluster_scoped("n1")).expect("the object exists");
    assert_eq!(node.metadata.annotations, None);
    factory.shutdown().await;
}

#[tokio::test]
async fn views_of_a_built_in_group_can_have_a_group_accessor() {
    let (_simulator, factory) = start(Simulator::builder().built_in_kinds()).await;
    let deployments = factory.slim().v1().deployments();
    synced(&factory).await;
    assert!(deployments.has_synced() && deployments.indexer().is_empty());
    factory.shutdown().await;
}

#[test]
fn view_implements_resource_as_its_attributes_say() {
    let names = |kind: &str, group: &str, version: &str, plural: &str| {
        [kind, group, version, plural].map(str::to_owned)
    };
    fn of<K: Resource<DynamicType = ()>>() -> [String; 4] {
        [K::kind(&()), K::group(&()), K::version(&()), K::plural(&())].map(Cow::into_owned)
    }
    assert_eq!(of::<PodPlacement>(), names("Pod", "", "v1", "pods"));
    assert_eq!(of::<DeploymentName>(), names("Deployment", "apps", "v1", "deployments"));
    assert_eq!(Node::url_path(&(), None), "/api/v1/nodes");
}

#[tokio::test]
async fn handwritten_accessor_coexists_with_generated_ones() {
    trait HandwrittenAccessor {
        fn placements(&self) -> SharedIndexInformer<PodPlacement>;
    }
    impl HandwrittenAccessor for CoreV1<'_> {
        fn placements(&self) -> SharedIndexInformer<PodPlacement> {
            let factory: &SharedInformerFactory = self.factory();
            factory.informer()
        }
    }
    let (_simulator, factory) = start(Simulator::builder().built_in_kinds()).await;
    assert!(factory.core().v1().placements().indexer().is_empty());
}
