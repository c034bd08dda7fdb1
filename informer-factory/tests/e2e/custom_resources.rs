//! Custom resources whose definitions are created and deleted while their informers run.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::SystemTime;

use informer_factory::status::Health;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::core::TypeMeta;
use kube::{Client, Resource};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::cluster::{Cluster, create, delete, health_that, patch};
use crate::objects::{config_map, object};
use crate::witnesses::Witnesses;
use crate::{eventually, within};

/// A custom resource. Each `TEST` has a separate group.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Widget<const TEST: u8> {
    #[serde(flatten)]
    types: TypeMeta,
    metadata: ObjectMeta,
    spec: Value,
}

/// A number in the names of the API groups. It distinguishes this run from other runs against the
/// same server.
static RUN: LazyLock<u64> = LazyLock::new(|| {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
});

impl<const TEST: u8> Resource for Widget<TEST> {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Widget".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        format!("e2e-{TEST}-{}.example.com", *RUN).into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
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

pub(crate) fn widget<const TEST: u8>(name: &str) -> Widget<TEST> {
    let group = Widget::<TEST>::group(&());
    object(json!({
        "apiVersion": format!("{group}/v1"), "kind": "Widget",
        "metadata": { "name": name }, "spec": { "size": 1 },
    }))
}

/// Returns the name of the definition of widgets.
pub(crate) fn definition<const TEST: u8>() -> String {
    format!("widgets.{}", Widget::<TEST>::group(&()))
}

/// Returns the version `v1` of the definition, as JSON.
pub(crate) fn served_version() -> Value {
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    json!({ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } })
}

/// Waits until an earlier definition of widgets is deleted, and creates a new one.
pub(crate) async fn install<const TEST: u8>(client: &Client) {
    let definition: CustomResourceDefinition = object(json!({
        "metadata": { "name": definition::<TEST>() },
        "spec": {
            "group": Widget::<TEST>::group(&()),
            "scope": "Namespaced",
            "names": { "kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList" },
            "versions": [served_version()],
        },
    }));
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    eventually(async || match definitions.create(&PostParams::default(), &definition).await {
        Ok(_) => Some(()),
        Err(kube::Error::Api(status)) if status.code == 409 => None,
        Err(error) => panic!("failed to create the definition: {error}"),
    })
    .await;
}

fn is_not_served(health: &Health) -> bool {
    matches!(health, Health::NotServed { .. })
}

#[tokio::test]
#[ignore = "needs a kube-apiserver: cargo xtask e2e"]
async fn custom_resource_is_watched_whenever_it_is_defined() {
    let cluster = Cluster::connect("custom").await;
    let (factory, server) = (cluster.factory(), cluster.api::<Widget<1>>());
    let widgets = factory.informer::<Widget<1>>();
    let config_maps = factory.core().v1().config_maps();
    let others = Witnesses::new(&config_maps, &cluster.api::<ConfigMap>(), ListParams::default());
    let witnesses = Witnesses::new(&widgets, &server, ListParams::default());
    factory.start();
    let health = health_that(&widgets, is_not_served).await;
    assert!(health.to_string().contains("404"), "{health}");
    assert!(!widgets.has_synced());

    install::<1>(&cluster.client).await;
    health_that(&widgets, Health::is_live).await;
    for name in ["stays", "changes", "goes"] {
        create(&server, &widget(name)).await;
    }
    patch(&server, "changes", json!({ "spec": { "size": 2 } })).await;
    delete(&server, "goes").await;
    witnesses.agree().await;
    assert_eq!(widgets.indexer().len(), 2);

    let definitions = Api::<CustomResourceDefinition>::all(cluster.client.clone());
    definitions.delete(&definition::<1>(), &DeleteParams::default()).await.expect("the object exists");
    within(witnesses.early().wait_until(BTreeMap::is_empty)).await;
    health_that(&widgets, is_not_served).await;
    assert!(widgets.indexer().is_empty() && witnesses.early().violations().is_empty());
    create(&cluster.api(), &config_map("unaffected")).await;
    others.agree().await;

    install::<1>(&cluster.client).await;
    health_that(&widgets, Health::is_live).await;
    create(&server, &widget("recreated")).await;
    witnesses.agree().await;
    assert_eq!(widgets.indexer().len(), 1);
    factory.shutdown().await;
}
