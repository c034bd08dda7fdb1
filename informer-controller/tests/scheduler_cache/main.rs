//! A scheduler's cache, as in kube-scheduler: the handlers of two informers maintain the used
//! resources of each node, and a loop binds pods to the nodes with the most room. The test kills the
//! scheduler during its work, and a second scheduler continues.
//!
//! By default, the server is simulated. `INFORMER_E2E_KUBECONFIG` selects a real server.

mod bind;
mod cache;
mod move_detector;
mod quantity;
mod recount;
mod resources;
mod scheduler;
#[allow(dead_code, reason = "this test does not use all helpers of the examples")]
#[path = "../../../examples/server/mod.rs"]
mod server;
mod views;
mod workload;

use std::error::Error;

use move_detector::MoveDetector;
use recount::Recount;
use scheduler::Scheduler;
use server::Server;
use tokio::time::Instant;
use workload::Workload;

/// The average number of pods per node: the test creates one node for every 50 pods.
const PODS_PER_NODE: usize = 50;

#[tokio::test(flavor = "multi_thread")]
async fn second_scheduler_continues_with_correct_sums() -> Result<(), Box<dyn Error>> {
    let pods = if server::is_real() { 10_000 } else { 2_000 };
    let server = Server::start().await?;
    let workload = Workload { client: server.client.clone(), namespace: server.namespace.clone() };
    let outcome = run(&workload, pods, pods / PODS_PER_NODE).await;
    // Also runs after a failure, because nodes are not deleted with the namespace.
    let removed = workload.remove_nodes().await;
    drop(workload);
    outcome?;
    removed?;
    server.shutdown().await
}

async fn run(workload: &Workload, pods: usize, nodes: usize) -> Result<(), Box<dyn Error>> {
    let (client, namespace) = (&workload.client, workload.namespace.as_str());
    let began = Instant::now();
    let mut detector = MoveDetector::start(client.clone(), namespace).await?;
    // Some nodes are added later; until then the first nodes have enough room for all pods.
    let first_nodes = (nodes * 3).div_ceil(4);
    workload.ensure_service_account().await?;
    workload.add_nodes(0..first_nodes).await?;
    let create = tokio::spawn({
        let workload = workload.clone();
        async move { workload.add_pods(0..pods).await }
    });

    let first = Scheduler::start(client.clone(), namespace).await?;
    let bound = detector.bound(pods / 2).await?;
    println!("killed the scheduler after {bound} of {pods} pods were bound, {:?}", first.shared.counts);
    first.kill();

    // The second scheduler starts from lists, without the state of the first.
    let second = Scheduler::start(client.clone(), namespace).await?;
    create.await??;
    workload.add_nodes(first_nodes..nodes).await?;
    // Replace some pods by new ones.
    let gone = detector.every(20);
    workload.delete_pods(&gone).await?;
    workload.add_pods(pods..pods + gone.len()).await?;
    let bound = detector.bound(pods + gone.len()).await?;
    println!("{bound} pods bound after {:.1?}, {:?}", began.elapsed(), second.shared.counts);

    let recount = Recount::take(client, namespace).await?;
    recount.equals(&second.shared).await?;
    second.shutdown().await;
    let moved = detector.end().await;
    ensure((recount.pods, recount.waiting) == (pods, 0), "every pod has a node")?;
    ensure(bound == pods + gone.len() && moved.is_empty(), "each pod was bound once and did not move")?;
    ensure(recount.overfull().is_empty(), "no node has more pods than fit")?;
    println!("the sums of {} nodes equal a recount, {:.1?} in all", recount.sums.len(), began.elapsed());
    Ok(())
}

fn ensure(holds: bool, what: &str) -> Result<(), Box<dyn Error>> {
    if holds { Ok(()) } else { Err(format!("check failed: {what}").into()) }
}
