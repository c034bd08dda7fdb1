//! The factory as a registry, against the real server: resources by name, untyped forms, and
//! several scopes.

use informer_factory::dynamic::ForResourceError;
use informer_factory::status::StopCause;
use informer_factory::{Cached, SharedIndexInformer};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Secret};
use kube::Resource;
use kube::api::ListParams;
use kube::core::discovery::{ApiResource, Scope};
use kube::core::{DynamicObject, GroupVersionResource};
use serde_json::json;

use crate::cluster::{Cluster, Versions, create, delete, patch, versions};
use crate::custom_resources::{Widget, install, widget};
use crate::objects::{LABEL, config_map, labelled_config_map, object};
use crate::witnesses::Witnesses;
use crate::{eventually, within};

/// Returns the keys and resource versions of an informer's objects.
fn stored<K: Send + Sync + 'static>(informer: &SharedIndexInformer<K>) -> Versions {
    let version = |object: &Cached<K>| (object.key().to_string(), object.resource_version().to_string());
    informer.indexer().list().iter().map(version).collect()
}

/// Waits until an informer has exactly the objects that the server lists.
async fn agree<K: Send + Sync + 'static>(
    informer: &SharedIndexInformer<K>,
    list: impl AsyncFn() -> Versions,
) {
    eventually(async || (stored(informer) == list().await).then_some(())).await;
}

#[tokio::test]
#[ignore = "needs a kube-apiserver: cargo xtask e2e"]
async fn custom_resource_is_found_by_name_once_installed() {
    const TEST: u8 = 70;
    let cluster = Cluster::connect("by-name").await;
    let (factory, server) = (cluster.factory(), cluster.api::<Widget<TEST>>());
    let wanted = GroupVersionResource::gvr(&Widget::<TEST>::group(&()), "v1", "widgets");
    let error = within(factory.for_resource(&wanted)).await.expect_err("the resource is not installed");
    assert!(matches!(error, ForResourceError::VersionNotServed { .. }), "{error}");
    install::<TEST>(&cluster.client).await;
    let widgets = eventually(async || factory.for_resource(&wanted).await.ok()).await;
    let by_size =
        widgets.add_index("size", |widget| widget.data["spec"]["size"].as_i64()).expect("a new index name");
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");
    for name in ["stays", "changes", "goes"] {
        create(&server, &widget(name)).await;
    }
    patch(&server, "changes", json!({ "spec": { "size": 2 } })).await;
    delete(&server, "goes").await;
    agree(&widgets, async || versions(&server, &ListParams::default()).await).await;
    assert_eq!((by_size.get(&1).len(), by_size.get(&2).len()), (1, 1));
    let misnamed = GroupVersionResource::gvr(&Widget::<TEST>::group(&()), "v1", "Widget");
    let error = within(factory.for_resource(&misnamed)).await.expect_err("a kind is not a plural");
    assert!(error.to_string().ends_with("use the plural \"widgets\""), "{error}");
    let reviews = GroupVersionResource::gvr("authorization.k8s.io", "v1", "selfsubjectaccessreviews");
    let error = within(factory.for_resource(&reviews)).await.expect_err("these reviews can only be created");
    assert!(matches!(error, ForResourceError::NotWatchable { .. }), "{error}");
    factory.shutdown().await;
}

#[tokio::test]
#[ignore = "needs a kube-apiserver: cargo xtask e2e"]
async fn secrets_are_watched_as_metadata() {
    let cluster = Cluster::connect("meta-factory").await;
    let (factory, server) = (cluster.factory(), cluster.api::<Secret>());
    let secret =
        |name: &str| object(json!({ "metadata": { "name": name }, "stringData": { "key": "value" } }));
    create::<Secret>(&server, &secret("old")).await;
    let (typed, found) = (factory.metadata().of::<Secret>(), GroupVersionResource::gvr("", "v1", "secrets"));
    let found = within(factory.metadata().for_resource(&found)).await.expect("the resource is served");
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");
    create::<Secret>(&server, &secret("new")).await;
    patch(&server, "old", json!({ "metadata": { "annotations": { "a": "b" } } })).await;
    agree(&typed, async || versions(&server, &ListParams::default()).await).await;
    agree(&found, async || versions(&server, &ListParams::default()).await).await;
    let old = found.lister().namespace(&cluster.namespace).get("old").expect("the object exists");
    assert_eq!(old.metadata.annotations.as_ref().and_then(|all| all.get("a")).map(String::as_str), Some("b"));
    assert!(within(typed.verify()).await.expect("the informer is synced").is_equal());
    factory.shutdown().await;
}

#[tokio::test]
#[ignore = "needs a kube-apiserver: cargo xtask e2e"]
async fn config_maps_and_nodes_are_watched_as_dynamic_objects() {
    let cluster = Cluster::connect("dyn-factory").await;
    let (factory, server) = (cluster.factory(), cluster.api::<ConfigMap>());
    create(&server, &config_map("old")).await;
    let described = ApiResource::erase::<ConfigMap>(&());
    let maps: SharedIndexInformer<DynamicObject> = factory.dynamic().resource(&described, &Scope::Namespaced);
    // The factory's namespace does not affect cluster-scoped resources.
    let nodes = factory.dynamic().resource(&ApiResource::erase::<Node>(&()), &Scope::Cluster);
    let by_step = maps
        .add_index("step", |map| map.data["data"]["step"].as_str().map(str::to_owned))
        .expect("a new index name");
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");
    create(&server, &config_map("new")).await;
    patch(&server, "old", json!({ "data": { "step": "1" } })).await;
    agree(&maps, async || versions(&server, &ListParams::default()).await).await;
    assert_eq!(by_step.get("1").iter().map(Cached::name).collect::<Vec<_>>(), ["old"]);
    assert!(nodes.has_synced() && nodes.status().quarantined().is_empty());
    factory.shutdown().await;
}

#[tokio::test]
#[ignore = "needs a kube-apiserver: cargo xtask e2e"]
async fn one_of_two_scopes_stops_and_the_other_continues() {
    let cluster = Cluster::connect("scopes").await;
    let (factory, server) = (cluster.factory(), cluster.api::<ConfigMap>());
    for (name, label) in [("a", "blue"), ("b", "green")] {
        create(&server, &labelled_config_map(name, label)).await;
    }
    let labelled = |label: &str| factory.with_labels(&format!("{LABEL}={label}")).core().v1().config_maps();
    let (blue, green) = (labelled("blue"), labelled("green"));
    let params = ListParams::default().labels(&format!("{LABEL}=green"));
    let witnesses = Witnesses::new(&green, &server, params);
    factory.start();
    within(factory.wait_for_cache_sync_of::<ConfigMap>()).await.expect("synced");
    assert_eq!((blue.indexer().len(), green.indexer().len()), (1, 1));
    assert!(within(factory.stop(&blue)).await);
    assert_eq!(within(blue.stopped()).await, StopCause::Shutdown);
    for n in 0..5 {
        create(&server, &labelled_config_map(&format!("blue-{n}"), "blue")).await;
        create(&server, &labelled_config_map(&format!("green-{n}"), "green")).await;
    }
    patch(&server, "b", json!({ "metadata": { "labels": { LABEL: "blue" } } })).await;
    witnesses.agree().await;
    assert_eq!((blue.indexer().len(), green.indexer().len()), (1, 5));
    let again = labelled("blue");
    factory.start();
    within(again.synced().wait()).await.expect("synced");
    assert_eq!(again.indexer().len(), 7);
    factory.shutdown().await;
}
