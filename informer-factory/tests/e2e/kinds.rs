//! Metadata-only and dynamic objects, `verify`, and compressed lists, against the real server.
//! `verify` compares a store with the server at exactly the store's version.

use std::sync::Arc;

use informer_factory::status::VerifyError;
use informer_factory::{Cached, InformerOptions, SharedIndexInformer, WaitOutcome, wait_for_cache_sync};
use informer_reflector::KubeListWatch;
use informer_testing::Replica;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::Resource;
use kube::api::{Api, ListParams};
use kube::core::{ApiResource, DynamicObject, PartialObjectMeta};
use serde_json::json;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::cluster::{Cluster, Versions, caught_up, create, delete, patch, versions};
use crate::custom_resources::{Widget, install, widget};
use crate::objects::{config_map, pod};
use crate::{TIMEOUT, eventually};

fn run<K>(
    list_watch: KubeListWatch<K>,
    options: InformerOptions<K>,
) -> (SharedIndexInformer<K>, Replica<K>, DropGuard)
where
    K: Resource + serde::de::DeserializeOwned + Clone + Send + Sync + 'static,
{
    let (informer, task) = SharedIndexInformer::new(Arc::new(list_watch), options);
    let replica = Replica::new();
    informer.add_event_handler(replica.clone()).detach();
    let shutdown = CancellationToken::new();
    tokio::spawn(task.run(shutdown.clone()));
    (informer, replica, shutdown.drop_guard())
}

/// Waits until a handler has exactly the objects that the server lists.
async fn agree<K: Send + Sync + 'static>(replica: &Replica<K>, list: impl AsyncFn() -> Versions) {
    eventually(async || (replica.versions() == list().await).then_some(())).await;
    assert_eq!(replica.violations(), Vec::<String>::new());
}

#[tokio::test]
#[ignore = "needs a kube-apiserver: cargo xtask e2e"]
async fn pods_are_watched_as_metadata() {
    let cluster = Cluster::connect("metadata").await;
    cluster.wait_for_pods_to_be_allowed().await;
    let server = cluster.api::<Pod>();
    let [node] = cluster.nodes().await;
    create(&server, &pod("old", &node)).await;
    create(&server, &pod("goes", &node)).await;
    let list_watch =
        KubeListWatch::<PartialObjectMeta<Pod>>::namespaced(cluster.client.clone(), &cluster.namespace);
    let (pods, replica, _running) = run(list_watch, InformerOptions::new());
    let by_label = pods
        .add_index("label", |pod| pod.metadata.labels.as_ref().and_then(|labels| labels.get("e2e")).cloned())
        .expect("a new index");
    wait_for_cache_sync(&[&pods], TIMEOUT).await.expect("synced");
    let changed = json!({ "metadata": { "labels": { "e2e": "changed" } } });
    patch(&server, "old", changed).await;
    let _: Pod = create(&server, &pod("new", &node)).await;
    delete(&server, "goes").await;
    agree(&replica, async || versions(&server, &ListParams::default()).await).await;
    assert_eq!(by_label.get("changed").iter().map(Cached::name).collect::<Vec<_>>(), ["old"]);
    assert!(pods.indexer().list().iter().all(|pod| pod.metadata.managed_fields.is_none()));
}

#[tokio::test]
#[ignore = "needs a kube-apiserver: cargo xtask e2e"]
async fn custom_resource_is_watched_dynamic_and_as_metadata() {
    const TEST: u8 = 90;
    let cluster = Cluster::connect("dynamic").await;
    install::<TEST>(&cluster.client).await;
    let server = cluster.api::<Widget<TEST>>();
    eventually(async || server.list(&ListParams::default()).await.ok()).await;
    create(&server, &widget("old")).await;
    let resource = ApiResource::erase::<Widget<TEST>>(&());
    let (client, namespace) = (&cluster.client, &cluster.namespace);
    let dynamic = KubeListWatch::<DynamicObject>::namespaced_with(client.clone(), namespace, &resource);
    let (widgets, replica, _running) = run(dynamic, InformerOptions::new());
    let metadata = KubeListWatch::<PartialObjectMeta>::namespaced_with(client.clone(), namespace, &resource);
    let (_, by_metadata, _running_too) = run(metadata, InformerOptions::new());
    let by_size =
        widgets.add_index("size", |widget| widget.data["spec"]["size"].as_u64()).expect("a new index");
    wait_for_cache_sync(&[&widgets], TIMEOUT).await.expect("synced");
    create(&server, &widget("new")).await;
    patch(&server, "new", json!({ "spec": { "size": 7 } })).await;
    agree(&replica, async || versions(&server, &ListParams::default()).await).await;
    agree(&by_metadata, async || versions(&server, &ListParams::default()).await).await;
    assert_eq!(by_size.get(&7).iter().map(Cached::name).collect::<Vec<_>>(), ["new"]);
    for widget in widgets.indexer().list().iter() {
        assert_eq!(widget.types.as_ref().map(|types| types.kind.as_str()), Some("Widget"));
    }
}

#[tokio::test]
#[ignore = "needs a kube-apiserver: cargo xtask e2e"]
async fn i9_store_after_churn_equals_the_server() {
    let cluster = Cluster::connect("verify").await;
    let server: Api<ConfigMap> = cluster.api();
    for n in 0..30 {
        create(&server, &config_map(&format!("map-{n}"))).await;
    }
    let list_watch = KubeListWatch::<ConfigMap>::namespaced(cluster.client.clone(), &cluster.namespace);
    let (maps, _, _running) = run(list_watch, InformerOptions::new());
    wait_for_cache_sync(&[&maps], TIMEOUT).await.expect("synced");
    let churn = async {
        let mut last = None;
        for round in 0..20 {
            patch(&server, &format!("map-{round}"), json!({ "data": { "step": round.to_string() } })).await;
            delete(&server, &format!("map-{}", 29 - round % 9)).await;
            last = Some(create(&server, &config_map(&format!("map-{}", 29 - round % 9))).await);
        }
        last.expect("there are rounds")
    };
    let verify = async {
        let mut verified = 0;
        while verified < 10 {
            match maps.verify().await {
                Ok(verification) => {
                    assert!(verification.is_equal(), "{verification:?}");
                    verified += 1;
                }
                Err(VerifyError::Expired { .. }) => {}
                Err(error) => panic!("the verification failed: {error}"),
            }
        }
    };
    let (last, ()) = tokio::join!(churn, verify);
    assert_eq!(maps.wait_for_write(&last, TIMEOUT).await, WaitOutcome::Reached);
    let verification = maps.verify().await.expect("the state is recent");
    assert!(verification.is_equal(), "{verification:?}");
    assert!(verification.objects >= 30, "{verification:?}");
}

#[tokio::test]
#[ignore = "needs a kube-apiserver: cargo xtask e2e"]
async fn long_lists_are_compressed_and_complete() {
    let cluster = Cluster::connect("gzip").await;
    let server: Api<ConfigMap> = cluster.api();
    let text = "A server compresses responses above a certain size. ".repeat(1000);
    let mut last = None;
    for n in 0..5 {
        let mut map = config_map(&format!("long-{n}"));
        map.data = Some([("text".to_owned(), text.clone())].into());
        last = Some(create(&server, &map).await);
    }
    // The first list comes from the watch cache, which can lag.
    caught_up(&server, &last.and_then(|map| map.metadata.resource_version).as_deref().into()).await;
    for compressed in [true, false] {
        let mut list_watch =
            KubeListWatch::<ConfigMap>::namespaced(cluster.client.clone(), &cluster.namespace)
                .field_selector("metadata.name!=kube-root-ca.crt");
        if !compressed {
            list_watch = list_watch.disable_compression();
        }
        let (maps, _, _running) = run(list_watch, InformerOptions::new());
        wait_for_cache_sync(&[&maps], TIMEOUT).await.expect("synced");
        let stored = maps.indexer().list();
        assert_eq!(stored.len(), 5);
        assert!(stored.iter().all(|map| map.data.as_ref().is_some_and(|data| data["text"] == text)));
    }
}
