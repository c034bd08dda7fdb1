//! Informers watch real objects from creation to deletion, with several forms of handlers.

use std::collections::BTreeSet;

use futures::StreamExt;
use futures::stream;
use informer_factory::InformerOptions;
use informer_reflector::KubeListWatch;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use serde_json::json;

use crate::cluster::{Cluster, Object, admin, create, delete, patch, relabel, run};
use crate::objects::{LABEL, config_map, node, pod};
use crate::witnesses::Witnesses;
use crate::{eventually, within};

/// The number of objects of each test.
const COUNT: usize = 30;

/// The number of concurrent writes.
const AT_ONCE: usize = 8;

fn name(prefix: &str, number: usize) -> String {
    format!("{prefix}-{number}")
}

/// Runs an action for each number, several at a time.
async fn each(numbers: impl Iterator<Item = usize>, action: impl AsyncFn(usize)) {
    stream::iter(numbers).for_each_concurrent(AT_ONCE, |number| action(number)).await;
}

/// Creates, updates, patches, deletes and recreates objects. A handler that records its events (a
/// witness) is added halfway. Another witness blocks in its first call until the end.
async fn change_objects_in_every_way<K: Object>(
    server: &Api<K>,
    make: impl Fn(&str) -> K,
    prefix: &str,
    witnesses: &mut Witnesses<K>,
) {
    witnesses.join_stuck();
    each(0..COUNT, async |number| _ = create(server, &make(&name(prefix, number))).await).await;
    each((0..COUNT).step_by(2), async |number| {
        relabel(server, &name(prefix, number), "round", "1").await;
    })
    .await;
    witnesses.join("late");
    each((0..COUNT).step_by(3), async |number| {
        let annotations = json!({ "metadata": { "annotations": { "note": "patched" } } });
        patch(server, &name(prefix, number), annotations).await;
    })
    .await;
    each((0..COUNT).step_by(5), async |number| delete(server, &name(prefix, number)).await).await;
    each((0..COUNT).step_by(10), async |number| _ = create(server, &make(&name(prefix, number))).await).await;
    witnesses.release().await;
    witnesses.agree().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "needs a kube-apiserver: cargo xtask e2e"]
async fn pods_are_watched_and_indexed_by_node() {
    let cluster = Cluster::connect("pods").await;
    cluster.wait_for_pods_to_be_allowed().await;
    let nodes = cluster.nodes::<2>().await;
    let (factory, server) = (cluster.factory(), cluster.api::<Pod>());
    let pods = factory.core().v1().pods();
    let by_node =
        pods.add_index("node", |pod: &Pod| pod.spec.as_ref()?.node_name.clone()).expect("a free index name");
    let mut witnesses = Witnesses::new(&pods, &server, ListParams::default());
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");
    let node_of = |name: &str| &nodes[usize::from(name.ends_with(['1', '3', '5', '7', '9']))];
    change_objects_in_every_way(&server, |name| pod(name, node_of(name)), "pod", &mut witnesses).await;

    for node in &nodes {
        let params = ListParams::default().fields(&format!("spec.nodeName={node}"));
        // The simulated kubelet may still delete a pod that was recreated with the same name.
        eventually(async || {
            let listed = server.list(&params).await.expect("the server returns a list");
            let listed: BTreeSet<_> = listed.iter().map(ResourceExt::name_any).collect();
            let indexed: BTreeSet<_> = by_node.get(node).iter().map(|pod| pod.name().to_owned()).collect();
            (indexed == listed).then_some(())
        })
        .await;
    }
    factory.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "needs a kube-apiserver: cargo xtask e2e"]
async fn config_maps_are_watched_and_indexed_by_label() {
    let cluster = Cluster::connect("config-maps").await;
    let (factory, server) = (cluster.factory(), cluster.api::<ConfigMap>());
    let config_maps = factory.core().v1().config_maps();
    let by_round = config_maps
        .add_index("round", |object: &ConfigMap| object.labels().get("round").cloned())
        .expect("a free index name");
    let mut witnesses = Witnesses::new(&config_maps, &server, ListParams::default());
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");
    change_objects_in_every_way(&server, config_map, "map", &mut witnesses).await;
    let listed = server
        .list(&ListParams::default().labels("round=1"))
        .await
        .expect("the server returns a list")
        .items
        .len();
    assert_eq!(by_round.count("1"), listed);
    let own =
        config_maps.indexer().list().iter().filter(|object| object.labels().contains_key(LABEL)).count();
    assert_eq!(own, COUNT - COUNT / 5 + COUNT / 10);
    factory.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "needs a kube-apiserver: cargo xtask e2e"]
async fn nodes_are_watched() {
    let client = admin().await;
    // Nodes are cluster-scoped, so a label distinguishes them from those of other tests.
    let label = Cluster::connect("nodes").await.namespace;
    let selector = format!("{LABEL}={label}");
    let server = Api::<Node>::all(client.clone());
    let list_watch = KubeListWatch::all(client).label_selector(selector.clone());
    let (nodes, _running) = run(list_watch, InformerOptions::new());
    let mut witnesses = Witnesses::new(&nodes, &server, ListParams::default().labels(&selector));
    within(nodes.synced().wait()).await.expect("synced");
    change_objects_in_every_way(&server, |name| node(name, &label), &label, &mut witnesses).await;
    assert_eq!(nodes.indexer().len(), COUNT - COUNT / 5 + COUNT / 10);
}
