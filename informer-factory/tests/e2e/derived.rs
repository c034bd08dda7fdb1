//! `#[derive(Informer)]` against the real server: a custom resource, whose definition comes from
//! the Rust type, and a slim view.

use std::collections::BTreeSet;

use informer_factory::status::Health;
use informer_factory::{Cached, Informer, Objects, ResourceVersion, WaitOutcome};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::{Api, CustomResource, CustomResourceExt, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::TIMEOUT;
use crate::cluster::{Cluster, create, delete, health_that, patch};
use crate::objects::pod;

#[derive(CustomResource, Informer, Deserialize, Serialize, Clone, Debug, JsonSchema)]
#[kube(group = "derived.example.com", version = "v1", kind = "CronTab", namespaced)]
#[informer(index(name = "by_image", path = "spec.image"), prune("spec.history"), default_resync = "1h")]
struct CronTabSpec {
    image: String,
    #[serde(default)]
    history: Vec<String>,
}

#[derive(Informer, Deserialize, Clone, Debug)]
#[informer(
    group = "",
    version = "v1",
    kind = "Pod",
    namespaced,
    index(name = "by_node", path = "spec.node_name")
)]
#[informer(index(name = "by_image", path = "spec.containers.image"))]
struct PodPlacement {
    metadata: ObjectMeta,
    spec: Placement,
}

#[derive(Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
struct Placement {
    node_name: Option<String>,
    containers: Vec<Container>,
}

#[derive(Deserialize, Clone, Debug)]
struct Container {
    image: Option<String>,
}

fn names<K: 'static>(objects: &Objects<K>) -> BTreeSet<&str> {
    objects.iter().map(|object: &Cached<K>| object.key().name()).collect()
}

fn cron_tab(name: &str, image: &str) -> CronTab {
    CronTab::new(name, CronTabSpec { image: image.to_owned(), history: vec!["yesterday".to_owned()] })
}

#[tokio::test]
#[ignore = "needs a kube-apiserver: cargo xtask e2e"]
async fn derived_resource_is_indexed_and_pruned_once_installed() {
    let cluster = Cluster::connect("derived").await;
    let (factory, server) = (cluster.factory(), cluster.api::<CronTab>());
    let cron_tabs = factory.derived().v1().cron_tabs();
    factory.start();
    health_that(&cron_tabs, |health| matches!(health, Health::NotServed { .. })).await;
    let definitions = Api::<CustomResourceDefinition>::all(cluster.client.clone());
    definitions.create(&PostParams::default(), &CronTab::crd()).await.expect("a new definition");
    health_that(&cron_tabs, Health::is_live).await;

    for (name, image) in [("a", "nginx"), ("b", "nginx"), ("c", "redis")] {
        create(&server, &cron_tab(name, image)).await;
    }
    let written = patch(&server, "a", json!({ "spec": { "image": "redis" } })).await;
    assert_eq!(written.spec.history, ["yesterday"], "the server stores the pruned field");
    assert_eq!(cron_tabs.wait_for_write(&written, TIMEOUT).await, WaitOutcome::Reached);
    assert_eq!(names(&cron_tabs.by_image("nginx")), BTreeSet::from(["b"]));
    assert_eq!(names(&cron_tabs.by_image("redis")), BTreeSet::from(["a", "c"]));
    assert!(cron_tabs.indexer().list().iter().all(|tab| tab.spec.history.is_empty()));

    delete(&server, "c").await;
    let written = patch(&server, "a", json!({ "spec": { "image": "envoy" } })).await;
    assert_eq!(cron_tabs.wait_for_write(&written, TIMEOUT).await, WaitOutcome::Reached);
    assert_eq!(cron_tabs.by_image_index().count("redis"), 0);
    factory.shutdown().await;
}

#[tokio::test]
#[ignore = "needs a kube-apiserver: cargo xtask e2e"]
async fn slim_view_of_pods_agrees_with_whole_pods() {
    let cluster = Cluster::connect("slim").await;
    cluster.wait_for_pods_to_be_allowed().await;
    let (factory, server) = (cluster.factory(), cluster.api::<Pod>());
    let (slim, whole) = (factory.core().v1().pod_placements(), factory.core().v1().pods());
    factory.start();
    let [one, two] = cluster.nodes().await;
    for (name, node) in [("a", &one), ("b", &two), ("c", &one)] {
        create(&server, &pod(name, node)).await;
    }
    let last = create(&server, &pod("last", &two)).await;
    let version: ResourceVersion = last.resource_version().as_deref().into();
    assert_eq!(slim.wait_until(&version, TIMEOUT).await, WaitOutcome::Reached);
    assert_eq!(whole.wait_until(&version, TIMEOUT).await, WaitOutcome::Reached);
    assert_eq!(names(&slim.by_node(&one)), BTreeSet::from(["a", "c"]));
    assert_eq!(slim.by_image("none.example/none:1").len(), 4);
    for pod in &whole.indexer().list() {
        let placed = slim.get(pod.key()).expect("the view has the pod");
        assert_eq!(placed.metadata.uid, pod.metadata.uid);
        assert!(placed.spec.containers.iter().all(|container| container.image.is_some()));
    }
    factory.shutdown().await;
}
