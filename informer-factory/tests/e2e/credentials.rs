//! Users without permissions and unknown users: the health shows the error and recovers.

use std::time::Duration;

use informer_factory::status::Health;
use informer_factory::{SharedIndexInformer, SharedInformerFactory};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::rbac::v1::{ClusterRole, RoleBinding};
use kube::Config;
use kube::api::{Api, ListParams};
use serde_json::json;

use crate::cluster::{Cluster, client, config, create, health_that};
use crate::objects::object;
use crate::within;
use crate::witnesses::Witnesses;

fn factory(config: Config, namespace: &str) -> SharedInformerFactory {
    SharedInformerFactory::new(client(config)).in_namespace(namespace)
}

async fn health_with_error(informer: &SharedIndexInformer<Pod>) -> (Health, String) {
    let health = health_that(informer, |health| health.error().is_some()).await;
    let message = health.to_string();
    (health, message)
}

/// Allows the user `nobody` to list and watch pods in the cluster's namespace.
pub(crate) async fn grant(cluster: &Cluster) {
    let name = &cluster.namespace;
    let role: ClusterRole = object(json!({
        "metadata": { "name": name },
        "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"] }],
    }));
    create(&Api::all(cluster.client.clone()), &role).await;
    let binding: RoleBinding = object(json!({
        "metadata": { "name": name },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "nobody" }],
    }));
    create(&cluster.api(), &binding).await;
}

#[tokio::test]
#[ignore = "needs a kube-apiserver: cargo xtask e2e"]
async fn missing_rights_are_named_and_granted_without_restart() {
    let cluster = Cluster::connect("forbidden").await;
    cluster.wait_for_pods_to_be_allowed().await;
    let factory = factory(config("nobody").await, &cluster.namespace);
    let pods = factory.core().v1().pods();
    let witnesses = Witnesses::new(&pods, &cluster.api(), ListParams::default());
    factory.start();
    let (health, message) = health_with_error(&pods).await;
    assert!(matches!(health, Health::Forbidden { .. }), "{message}");
    let refusal = "pods is forbidden: User \"nobody\" cannot list resource \"pods\"";
    assert!(message.contains(refusal), "{message}");
    let error = factory.wait_for_cache_sync_within(Duration::ZERO).await.expect_err("forbidden");
    assert!(error.to_string().starts_with("these caches are not synced: pods in namespace"), "{error}");
    assert!(error.to_string().contains(refusal), "{error}");

    grant(&cluster).await;
    within(factory.wait_for_cache_sync()).await.expect("synced");
    let [node] = cluster.nodes().await;
    create(&cluster.api(), &crate::objects::pod("granted", &node)).await;
    witnesses.agree().await;
    factory.shutdown().await;
}

#[tokio::test]
#[ignore = "needs a kube-apiserver: cargo xtask e2e"]
async fn unknown_token_is_reported_as_unauthorized() {
    let mut config = config("nobody").await;
    config.auth_info.token = Some("wrong".to_owned().into());
    let factory = factory(config, "default");
    let pods = factory.core().v1().pods();
    factory.start();
    let (health, message) = health_with_error(&pods).await;
    assert!(health.error().is_some_and(informer_factory::ListWatchError::is_unauthorized), "{message}");
    let error = factory.wait_for_cache_sync_within(Duration::ZERO).await.expect_err("the token is unknown");
    assert!(error.to_string().contains("401 Unauthorized"), "{error}");
    factory.shutdown().await;
}
