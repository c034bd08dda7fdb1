//! Handles with another scope: one informer per scope, whatever the accessor.

use informer_factory::{Informer, SharedIndexInformer};
use informer_testing::RequestFilter;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::discovery::{ApiResource, Scope};
use serde::Deserialize;

use crate::{builder, factory, keys, synced, watches, with_pods, within};

#[derive(Informer, Deserialize)]
#[informer(group = "", version = "v1", kind = "Pod", namespaced)]
#[informer(index(name = "by_app", path = "metadata.labels[\"app\"]"))]
struct SlimPod {
    metadata: ObjectMeta,
}

#[tokio::test(start_paused = true)]
async fn each_scope_has_one_shared_informer() {
    let simulator = with_pods();
    let factory = factory(&simulator);
    let all = factory.core().v1().pods();
    let shop = factory.in_namespace("shop").core().v1().pods();
    let web = factory.with_labels("app=web").core().v1().pods();
    let web_of_shop = factory.in_namespace("shop").with_labels(" app=web ").core().v1().pods();
    let named = factory.with_fields("metadata.name=db").core().v1().pods();
    let again = factory.with_labels("app=web").in_namespace("shop").informer::<Pod>();
    synced(&factory).await;
    assert_eq!(keys(&all), ["else/web", "shop/db", "shop/web"]);
    assert_eq!(keys(&shop), ["shop/db", "shop/web"]);
    assert_eq!(keys(&web), ["else/web", "shop/web"]);
    assert_eq!(
        (keys(&web_of_shop), keys(&again)),
        (vec!["shop/web".to_owned()], vec!["shop/web".to_owned()])
    );
    assert_eq!(keys(&named), ["shop/db"]);
    assert_eq!(simulator.open_watches(&watches()), 5);
    let description = |informer: &SharedIndexInformer<Pod>| informer.status().description().to_owned();
    assert_eq!(description(&again), "pods in namespace \"shop\" with labels \"app=web\"");
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn handles_of_all_scopes_share_one_factory() {
    let simulator = with_pods();
    let factory = factory(&simulator);
    let shop = factory.in_namespace("shop");
    let (own, other) = (factory.core().v1().pods(), shop.core().v1().pods());
    // Starting or shutting down through one handle affects the informers of both handles.
    shop.start();
    within(shop.wait_for_cache_sync()).await.expect("synced");
    assert!(own.has_synced() && other.has_synced());
    assert_eq!(keys(&shop.in_all_namespaces().core().v1().pods()).len(), 3);
    drop(factory);
    simulator.create(&crate::pod("shop", "new", "new")).expect("a new pod");
    within(async {
        while own.indexer().len() < 4 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    shop.shutdown().await;
    assert_eq!(simulator.open_watches(&RequestFilter::any()), 0);
}

#[tokio::test(start_paused = true)]
async fn cluster_scoped_resources_are_the_same_in_every_namespace() {
    let simulator = with_pods();
    let factory = builder(&simulator).build().in_namespace("shop");
    let (one, other) = (factory.core().v1().nodes(), factory.in_namespace("else").informer::<Node>());
    synced(&factory).await;
    assert_eq!(one.status().description(), other.status().description());
    assert_eq!(factory.informers().len(), 1);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn all_accessors_use_the_scope_of_their_handle() {
    let simulator = with_pods();
    let factory = factory(&simulator);
    let web = factory.in_namespace("shop").with_labels("app=web");
    let slim = web.core().v1().slim_pods();
    let dynamic = web.dynamic().resource(&ApiResource::erase::<Pod>(&()), &Scope::Namespaced);
    let metadata = web.metadata().of::<Pod>();
    let whole = web.core().v1().pods();
    synced(&factory).await;
    assert_eq!(keys(&slim), ["shop/web"]);
    assert_eq!((keys(&dynamic), keys(&metadata), keys(&whole)), (keys(&slim), keys(&slim), keys(&slim)));
    assert_eq!(slim.by_app("web").len(), 1);
    assert_eq!(slim.indexer().list().iter().filter(|pod| pod.metadata.uid.is_some()).count(), 1);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn selector_of_a_handle_replaces_the_factory_selector() {
    let simulator = with_pods();
    let factory =
        builder(&simulator).tweak_list_options(|options| options.label_selector = "app=web".into()).build();
    let own = factory.core().v1().pods();
    let db = factory.with_labels("app=db").core().v1().pods();
    let all = factory.with_labels("").core().v1().pods();
    synced(&factory).await;
    assert_eq!(keys(&own), ["else/web", "shop/web"]);
    assert_eq!(keys(&db), ["shop/db"]);
    assert_eq!(keys(&all).len(), 3);
    factory.shutdown().await;
}

#[tokio::test]
async fn handles_without_restrictions_share_the_default_informer() {
    let simulator = with_pods();
    let factory = factory(&simulator);
    let handles = [
        factory.clone(),
        factory.in_all_namespaces(),
        factory.in_namespace("shop").in_namespace(""),
        factory.with_labels("app=web").with_labels(""),
        factory.with_fields(" "),
    ];
    for handle in handles {
        drop(handle.core().v1().pods());
    }
    assert_eq!(factory.informers().len(), 1, "{factory:?}");
}
