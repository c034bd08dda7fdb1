//! Streaming lists: the reflector uses them, and their content equals paged lists.

use futures::{StreamExt, stream};
use informer_factory::{InformerOptions, ResourceVersion, SharedIndexInformer};
use informer_reflector::{KubeListWatch, ReflectorConfig};
use k8s_openapi::api::core::v1::{ConfigMap, Event};
use kube::ResourceExt;
use kube::api::{Api, ListParams};

use crate::cluster::{Cluster, Object, Versions, caught_up, create, run};
use crate::interruptions::Interruptions;
use crate::objects::{LABEL, config_map};
use crate::within;
use crate::witnesses::Witnesses;

fn content<K: Object>(informer: &SharedIndexInformer<K>) -> Versions {
    let version = |object: &informer_factory::Cached<K>| {
        (object.key().to_string(), object.resource_version().to_string())
    };
    informer.indexer().list().iter().map(version).collect()
}

/// Creates many objects concurrently, and returns the highest of their resource versions.
async fn populate(server: &Api<ConfigMap>) -> ResourceVersion {
    let versions = stream::iter(0..700).map(async |number| {
        let created = create(server, &config_map(&format!("map-{number}"))).await;
        ResourceVersion::from(created.resource_version().as_deref())
    });
    let versions: Vec<_> = versions.buffer_unordered(32).collect().await;
    let newer = |one: ResourceVersion, other: ResourceVersion| {
        if other.is_newer_than(&one) { other } else { one }
    };
    versions.into_iter().reduce(newer).expect("there are versions")
}

#[tokio::test]
#[ignore = "needs a kube-apiserver: cargo xtask e2e"]
async fn streaming_list_equals_pages_and_continues_as_watch() {
    let cluster = Cluster::connect("streams").await;
    let server = cluster.api::<ConfigMap>();
    let newest = populate(&server).await;
    // The first list in pages comes from the watch cache, which can lag.
    caught_up(&server, &newest).await;
    let (streaming, paging) = (Interruptions::default(), Interruptions::default());
    let list_watch = async |interruptions: &Interruptions| {
        KubeListWatch::<ConfigMap>::namespaced(interruptions.client().await, &cluster.namespace)
            .label_selector(LABEL)
    };
    let (streamed, _streams) = run(list_watch(&streaming).await, InformerOptions::new());
    let in_pages =
        InformerOptions::new().reflector(ReflectorConfig::new().streaming_lists(false).page_size(50));
    let (paged, _pages) = run(list_watch(&paging).await, in_pages);
    within(streamed.synced().wait()).await.expect("synced");
    within(paged.synced().wait()).await.expect("synced");
    assert_eq!(content(&streamed).len(), 700);
    assert_eq!(content(&streamed), content(&paged));
    assert_eq!((streaming.streams(), streaming.lists()), (1, 0));
    assert!(paging.streams() == 0 && paging.lists() >= 1);
    let witnesses = Witnesses::new(&streamed, &server, ListParams::default().labels(LABEL));
    create(&server, &config_map("later")).await;
    witnesses.agree().await;
    assert_eq!((streaming.streams(), streaming.lists()), (1, 0), "the streaming list continues as the watch");
}

#[tokio::test]
#[ignore = "needs a kube-apiserver: cargo xtask e2e"]
async fn streaming_list_works_without_a_watch_cache() {
    let cluster = Cluster::connect("uncached").await;
    let interruptions = Interruptions::default();
    let events = KubeListWatch::<Event>::namespaced(interruptions.client().await, &cluster.namespace);
    let (informer, _running) = run(events, InformerOptions::new());
    within(informer.synced().wait()).await.expect("synced");
    assert_eq!((interruptions.streams(), interruptions.lists()), (1, 0));
    assert!(!informer.watermark().is_empty());
}
