//! Dynamic objects and metadata: informers of the same factory, which can be requested by resource
//! name.

use std::time::Duration;

use informer_factory::{Cached, SharedIndexInformer};
use informer_testing::{RequestFilter, ResourceKind};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::core::discovery::{ApiResource, Scope};
use kube::core::{DynamicObject, GroupVersionResource};
use serde_json::json;

use crate::{builder, factory, keys, synced, watches, with_pods, within};

fn pods() -> GroupVersionResource {
    GroupVersionResource::gvr("", "v1", "pods")
}

fn widgets() -> GroupVersionResource {
    GroupVersionResource::gvr("forms.example.com", "v1", "widgets")
}

#[tokio::test(start_paused = true)]
async fn each_form_of_a_resource_has_one_shared_informer() {
    let simulator = with_pods();
    let factory = builder(&simulator).build().in_namespace("shop");
    let described = ApiResource::erase::<Pod>(&());
    let typed = factory.core().v1().pods();
    let dynamic = factory.dynamic().resource(&described, &Scope::Namespaced);
    let of_type = factory.metadata().of::<Pod>();
    let metadata = factory.metadata().resource(&described, &Scope::Namespaced);
    let by_name = within(factory.for_resource(&pods())).await.expect("the resource is served");
    let metadata_by_name =
        within(factory.metadata().for_resource(&pods())).await.expect("the resource is served");
    synced(&factory).await;
    assert_eq!(simulator.open_watches(&watches()), 4);
    for keys in [
        keys(&typed),
        keys(&dynamic),
        keys(&of_type),
        keys(&metadata),
        keys(&by_name),
        keys(&metadata_by_name),
    ] {
        assert_eq!(keys, ["shop/db", "shop/web"]);
    }
    let nodes: Vec<_> =
        dynamic.indexer().list().iter().map(|pod| pod.data["spec"]["nodeName"].clone()).collect();
    assert!(nodes.contains(&json!("node-of-web")), "{nodes:?}");
    let requests = simulator.requests(&watches().path("/api/v1/namespaces/shop/pods"));
    let only_metadata =
        requests.iter().filter(|it| it.headers["accept"].to_str().is_ok_and(|it| it.contains("Partial")));
    assert_eq!(only_metadata.count(), 2);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn resources_of_one_form_have_separate_informers() {
    let simulator = with_pods();
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n" } });
    simulator.create(&node).expect("a new node");
    let factory = builder(&simulator).build().in_namespace("shop");
    let nodes = factory.dynamic().resource(&ApiResource::erase::<Node>(&()), &Scope::Cluster);
    let pods = factory.dynamic().resource(&ApiResource::erase::<Pod>(&()), &Scope::Namespaced);
    let found = within(factory.for_resource(&GroupVersionResource::gvr("", "v1", "nodes")))
        .await
        .expect("the resource is served");
    synced(&factory).await;
    assert_eq!((keys(&nodes), keys(&found)), (vec!["n".to_owned()], vec!["n".to_owned()]));
    assert_eq!(keys(&pods).len(), 2);
    let kinds = |informer: &SharedIndexInformer<DynamicObject>| {
        let kind = |object: &Cached<DynamicObject>| object.types.as_ref().map(|it| it.kind.clone());
        informer.indexer().list().iter().filter_map(kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&found), ["Node"]);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn resource_is_found_once_served_and_then_cached() {
    let simulator = with_pods();
    let factory = factory(&simulator);
    let discovery = RequestFilter::any().path("/apis/forms.example.com/v1");
    let discovery_requests = || simulator.request_count(&discovery);
    within(factory.for_resource(&widgets())).await.expect_err("the resource is not served");
    simulator.register(ResourceKind::namespaced("forms.example.com", "v1", "Widget", "widgets"));
    within(factory.for_resource(&widgets())).await.expect("the resource is served now");
    assert_eq!(discovery_requests(), 2);
    within(factory.in_namespace("shop").for_resource(&widgets())).await.expect("the resource is served");
    within(factory.metadata().for_resource(&widgets())).await.expect("the resource is served");
    assert_eq!(discovery_requests(), 2, "the discovery response is cached");
    // A resource that is missing in the cached response may have been installed since.
    let gadgets = GroupVersionResource::gvr("forms.example.com", "v1", "gadgets");
    within(factory.for_resource(&gadgets)).await.expect_err("the resource is not served");
    simulator.register(ResourceKind::cluster_scoped("forms.example.com", "v1", "Gadget", "gadgets"));
    within(factory.for_resource(&gadgets)).await.expect("the resource is served now");
    assert_eq!(discovery_requests(), 4);
    tokio::time::sleep(Duration::from_secs(601)).await;
    within(factory.for_resource(&widgets())).await.expect("the resource is served");
    assert_eq!(discovery_requests(), 5);
    let widget = json!({
        "apiVersion": "forms.example.com/v1", "kind": "Widget",
        "metadata": { "namespace": "shop", "name": "w" }, "spec": { "size": 3 },
    });
    simulator.create(&widget).expect("a new widget");
    let informer = within(factory.for_resource(&widgets())).await.expect("the resource is served");
    synced(&factory).await;
    assert_eq!(informer.indexer().get_by_key("shop/w").expect("the object exists").data["spec"]["size"], 3);
    factory.shutdown().await;
}
