//! Lists in many pages.

use std::ops::Range;

use futures::{StreamExt, stream};
use informer_core::{ListOptions, ListerWatcher};
use informer_factory::{InformerOptions, SharedIndexInformer};
use informer_reflector::{KubeListWatch, ReflectorConfig};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ListParams;
use tokio_util::sync::DropGuard;

use crate::cluster::{Cluster, create, run};
use crate::interruptions::Interruptions;
use crate::objects::config_map;
use crate::witnesses::Witnesses;

/// Creates many objects at once.
async fn populate(cluster: &Cluster, numbers: Range<usize>) {
    let server = cluster.api();
    stream::iter(numbers)
        .for_each_concurrent(32, async |number| {
            _ = create(&server, &config_map(&format!("map-{number}"))).await;
        })
        .await;
}

/// Starts an informer that lists in pages, and counts the requests.
async fn paging_informer(cluster: &Cluster, page_size: u32) -> Paging {
    let interruptions = Interruptions::default();
    // The server answers an initial list from its watch cache, always without pages. After a 410,
    // the reflector requests the latest state, which the server returns in pages.
    interruptions.expire_next_list();
    let list_watch = KubeListWatch::namespaced(interruptions.client().await, &cluster.namespace);
    let config = ReflectorConfig::new().streaming_lists(false).page_size(page_size);
    let (informer, running) = run(list_watch, InformerOptions::new().reflector(config));
    let witnesses = Witnesses::new(&informer, &cluster.api(), ListParams::default());
    Paging { interruptions, informer, witnesses, _running: running }
}

struct Paging {
    interruptions: Interruptions,
    informer: SharedIndexInformer<ConfigMap>,
    witnesses: Witnesses<ConfigMap>,
    _running: DropGuard,
}

#[tokio::test]
#[ignore = "needs a kube-apiserver: cargo xtask e2e"]
async fn paged_list_is_complete_during_concurrent_creates() {
    let cluster = Cluster::connect("paging").await;
    populate(&cluster, 0..1_000).await;
    let paging = paging_informer(&cluster, 100).await;
    populate(&cluster, 1_000..1_200).await;
    paging.witnesses.agree().await;
    assert!(paging.informer.indexer().len() >= 1_200);
    // The requests are the rejected list and ten pages, plus one page if the namespace has other
    // objects.
    assert!(paging.interruptions.lists() > 10, "{} lists", paging.interruptions.lists());
}

#[tokio::test]
#[ignore = "needs a kube-apiserver: cargo xtask e2e"]
async fn expired_page_restarts_the_list_without_pages() {
    let cluster = Cluster::connect("expired-page").await;
    populate(&cluster, 0..50).await;
    let paging = paging_informer(&cluster, 10).await;
    paging.interruptions.expire_next_page();
    paging.witnesses.agree().await;
    // The requests are the rejected list, the first page, the rejected second page, and the full list.
    assert_eq!(paging.interruptions.lists(), 4);
}

#[tokio::test]
#[ignore = "needs a kube-apiserver: cargo xtask e2e"]
async fn invalid_continue_token_is_refused_by_the_server() {
    let cluster = Cluster::connect("bogus-token").await;
    let list_watch = KubeListWatch::<ConfigMap>::namespaced(cluster.client.clone(), &cluster.namespace);
    let options = ListOptions { continue_token: Some("bogus".into()), ..ListOptions::default() };
    let Err(error) = list_watch.list(options).await else {
        panic!("the server accepted an invalid continue token")
    };
    assert!(error.to_string().contains("continue"), "{error}");
    assert!(error.status().is_some_and(|status| status.code == 400) && !error.is_expired(), "{error}");
}
