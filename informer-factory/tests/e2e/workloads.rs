//! Objects that controllers keep changing: a Deployment that is scaled and rolled out.

use informer_factory::SharedIndexInformer;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Node, Pod, ServiceAccount};
use kube::api::{Api, ListParams};
use serde_json::{Value, json};

use crate::cluster::{Cluster, create, patch};
use crate::objects::deployment;
use crate::witnesses::Witnesses;
use crate::{TIMEOUT, within};

fn is_scheduled(pod: &Pod) -> bool {
    node_of(pod).is_some()
}

fn node_of(pod: &Pod) -> Option<String> {
    pod.spec.as_ref()?.node_name.clone()
}

/// Returns whether a Deployment matches its specification and has no old pods.
fn is_rolled_out(deployment: &Deployment) -> bool {
    let Some((spec, status)) = deployment.spec.as_ref().zip(deployment.status.as_ref()) else { return false };
    let is_current = status.observed_generation == deployment.metadata.generation;
    let counts = [status.replicas, status.updated_replicas, status.ready_replicas];
    is_current && counts.iter().all(|count| *count == spec.replicas)
}

/// Returns whether the cluster has the nodes, scheduler and controller-manager that a Deployment
/// needs.
async fn has_controllers(cluster: &Cluster, pods: &Witnesses<Pod>) -> bool {
    let nodes = Api::<Node>::all(cluster.client.clone());
    let simulated =
        nodes.list(&ListParams::default().labels("type=kwok")).await.expect("the server returns a list");
    // The controller-manager creates this account before any test begins.
    let accounts = Api::<ServiceAccount>::namespaced(cluster.client.clone(), "default");
    let account = accounts.get_opt("default").await.expect("the server responds");
    if simulated.items.is_empty() || account.is_none() {
        return false;
    }
    // Only the decisions of a scheduler show that it runs.
    let scheduled = pods.early().wait_until(|objects| objects.values().any(|object| is_scheduled(object)));
    tokio::time::timeout(TIMEOUT, scheduled).await.is_ok()
}

/// Changes the Deployment, and waits until the change is rolled out.
async fn roll_out(server: &Api<Deployment>, deployments: &Witnesses<Deployment>, change: Value) {
    let generation = patch(server, "web", change).await.metadata.generation;
    let is_done =
        |deployment: &Deployment| deployment.metadata.generation >= generation && is_rolled_out(deployment);
    within(deployments.early().wait_until(|objects| objects.values().all(|object| is_done(object)))).await;
}

fn replicas(count: u32) -> Value {
    json!({ "spec": { "replicas": count } })
}

#[tokio::test]
#[ignore = "needs a kube-apiserver: cargo xtask e2e"]
async fn scaled_and_rolled_deployment_is_watched_completely() {
    let cluster = Cluster::connect("workloads").await;
    let (factory, all) = (cluster.factory(), ListParams::default);
    let informer: SharedIndexInformer<Pod> = factory.core().v1().pods();
    let by_node = informer.add_index("node", node_of).expect("a free index name");
    let mut pods = Witnesses::new(&informer, &cluster.api(), all());
    let sets = Witnesses::new(&factory.apps().v1().replica_sets(), &cluster.api::<ReplicaSet>(), all());
    let server = cluster.api::<Deployment>();
    let deployments = Witnesses::new(&factory.apps().v1().deployments(), &server, all());
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");
    create(&server, &deployment("web", 60)).await;
    if !has_controllers(&cluster, &pods).await {
        eprintln!(
            "skipped: the test needs `cargo xtask e2e --with controller-manager,scheduler,kwok --nodes 5`"
        );
        return;
    }
    roll_out(&server, &deployments, replicas(60)).await;
    roll_out(&server, &deployments, replicas(20)).await;
    pods.join("late");
    roll_out(&server, &deployments, replicas(60)).await;
    let image = json!([{ "name": "main", "image": "none.example/none:2" }]);
    let roll = json!({ "spec": { "template": { "spec": { "containers": image } } } });
    roll_out(&server, &deployments, roll).await;
    // A Deployment does not count a terminating pod, which the kubelet removes later.
    within(pods.early().wait_until(|objects| objects.len() == 60)).await;

    deployments.agree().await;
    sets.agree().await;
    pods.agree().await;
    let scheduled = informer.indexer().list().iter().filter(|pod| is_scheduled(pod)).count();
    let by_node: usize = by_node.values().iter().map(|node| by_node.count(node)).sum();
    assert_eq!((by_node, scheduled), (60, 60));
    factory.shutdown().await;
}
