//! User errors with a factory, and the error messages; docs/errors.md lists them in a table.

use std::error::Error;

use informer_factory::dynamic::ForResourceError;
use informer_factory::status::Health;
use informer_factory::{IndexError, SharedIndexInformer};
use informer_testing::{CannedResponse, RequestFilter, ResourceKind};
use k8s_openapi::api::core::v1::Pod;
use kube::core::discovery::{ApiResource, Scope};
use kube::core::{DynamicObject, GroupVersionKind, GroupVersionResource};

use crate::{factory, keys, synced, with_pods, within};

/// Returns the error for a resource that cannot be watched.
async fn refused(group: &str, version: &str, resource: &str) -> ForResourceError {
    let simulator = with_pods();
    let factory = factory(&simulator);
    let wanted = GroupVersionResource::gvr(group, version, resource);
    let error = within(factory.for_resource(&wanted)).await.expect_err("the resource can't be watched");
    assert!(factory.informers().is_empty(), "no informer was created");
    error
}

async fn health_that<K: Send + Sync + 'static>(
    informer: &SharedIndexInformer<K>,
    is_expected: impl Fn(&Health) -> bool,
) -> Health {
    let mut status = informer.status().clone();
    within(async {
        let mut health = status.health();
        while !is_expected(&health) {
            health = status.health_changed().await.expect("the informer runs");
        }
        health
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn unwatchable_resource_is_an_error_with_a_remedy() {
    for ((group, version, resource), expected) in [
        (
            ("stable.example.com", "v1", "crontabs"),
            "the server does not serve stable.example.com/v1, the group version of \"crontabs\"; check group and version, \
             or install the CustomResourceDefinition",
        ),
        (
            ("", "v7", "pods"),
            "the server does not serve v7, the group version of \"pods\"; check group and version, or install the \
             CustomResourceDefinition",
        ),
        (("", "v1", "Pod"), "v1 has no resource \"Pod\"; use the plural \"pods\""),
        (("", "v1", "no"), "v1 has no resource \"no\"; use the plural \"nodes\""),
        (
            ("authorization.k8s.io", "v1", "selfsubjectaccessreviews"),
            "\"selfsubjectaccessreviews\" of authorization.k8s.io/v1 cannot have an informer: the server does not support \
             list and watch; use kube::Api for requests of this resource",
        ),
    ] {
        assert_eq!(refused(group, version, resource).await.to_string(), expected);
    }
    let unknown = refused("apps", "v1", "deploymints").await;
    assert!(
        unknown.to_string().starts_with("apps/v1 has no resource \"deploymints\"; existing resources: "),
        "{unknown}"
    );
    assert!(
        matches!(&unknown, ForResourceError::UnknownResource { existing, .. } if existing.contains(&"deployments".into())),
        "{unknown:?}"
    );
    assert!(matches!(refused("", "v1", "pods/status").await, ForResourceError::NotWatchable { .. }));
}

#[tokio::test(start_paused = true)]
async fn failed_discovery_is_an_error_with_its_cause() {
    let simulator = with_pods();
    let refusal = CannedResponse::failure(http::StatusCode::FORBIDDEN, "Forbidden", "not for you");
    simulator.fail_next(1, RequestFilter::any().path("/api/v1"), refusal);
    let factory = factory(&simulator);
    let pods = GroupVersionResource::gvr("", "v1", "pods");
    let error = within(factory.for_resource(&pods)).await.expect_err("discovery is refused");
    assert_eq!(error.to_string(), "failed to discover the resources of v1");
    assert!(error.source().expect("the error has a cause").to_string().contains("not for you"));
    within(factory.for_resource(&pods)).await.expect("the error is not cached");
}

#[tokio::test(start_paused = true)]
async fn unknown_kind_or_scope_is_not_served_until_installed() {
    let simulator = with_pods();
    let factory = factory(&simulator).in_namespace("shop");
    let kind = GroupVersionKind::gvk("bad.example.com", "v1", "Widget");
    let widgets = factory.dynamic().resource(&ApiResource::from_gvk(&kind), &Scope::Namespaced);
    // Pods are namespaced, and nodes are cluster-scoped.
    let nodes = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Node"));
    let namespaced_nodes: SharedIndexInformer<DynamicObject> =
        factory.dynamic().resource(&nodes, &Scope::Namespaced);
    factory.start();
    let health = health_that(&widgets, |health| matches!(health, Health::NotServed { .. })).await;
    assert!(health.to_string().contains("404"), "{health}");
    health_that(&namespaced_nodes, |health| matches!(health, Health::NotServed { .. })).await;
    simulator.register(ResourceKind::namespaced("bad.example.com", "v1", "Widget", "widgets"));
    health_that(&widgets, Health::is_live).await;
    assert!(widgets.has_synced() && !namespaced_nodes.has_synced());
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn invalid_selector_shows_only_in_its_informers_health() {
    let simulator = with_pods();
    let factory = factory(&simulator);
    let (bad, good) = (factory.with_labels("app in (").core().v1().pods(), factory.core().v1().pods());
    factory.start();
    let health = health_that(&bad, |health| health.error().is_some()).await;
    assert!(health.to_string().contains("400"), "{health}");
    within(good.synced().wait()).await.expect("synced");
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn second_index_with_the_same_name_is_an_error() {
    let simulator = with_pods();
    let factory = factory(&simulator);
    let pods = factory.core().v1().pods();
    let by_app = |pod: &Pod| pod.metadata.labels.as_ref()?.get("app").cloned();
    let first = pods.add_index("app", by_app).expect("a new index name");
    let second = factory.core().v1().pods().add_index("app", by_app);
    assert!(matches!(&second, Err(IndexError::Duplicate { name }) if name == "app"), "{second:?}");
    synced(&factory).await;
    assert_eq!(first.get("web").len(), 2);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn i10_failed_index_function_keeps_other_indices() {
    let simulator = with_pods();
    let factory = factory(&simulator);
    let pods = factory.core().v1().pods();
    let panics = pods
        .add_index("panics", |pod: &Pod| match pod.metadata.name.as_deref() {
            Some("db") => panic!("test panic"),
            name => name.map(str::to_owned),
        })
        .expect("a new index name");
    let fails = pods
        .indexer()
        .try_add_index("fails", |pod: &Pod| match pod.metadata.name.as_deref() {
            Some("db") => Err("test failure".to_owned()),
            name => Ok(name.map(str::to_owned)),
        })
        .expect("a new index name");
    synced(&factory).await;
    assert_eq!(keys(&pods), ["else/web", "shop/db", "shop/web"]);
    assert_eq!((panics.get("web").len(), fails.get("web").len()), (2, 2));
    let mut failures: Vec<_> = pods.indexer().index_failures().iter().map(ToString::to_string).collect();
    failures.sort_unstable();
    assert_eq!(failures.len(), 2);
    assert!(
        failures[0].contains("\"fails\" lacks object shop/db") && failures[0].contains("test failure"),
        "{failures:?}"
    );
    assert!(failures[1].contains("\"panics\" lacks object shop/db"), "{failures:?}");
    factory.shutdown().await;
}
