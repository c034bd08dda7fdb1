//! A controller of endpoint slices, as in Kubernetes: slices contain the addresses of the pods that
//! a service selects. One index maps pods to services, another maps services to pods. The test
//! kills the controller during its work, and a second controller continues.
//!
//! By default, the server is simulated. `INFORMER_E2E_KUBECONFIG` selects a real server.

mod controller;
#[allow(dead_code, reason = "this test does not use all helpers of the examples")]
#[path = "../../../examples/server/mod.rs"]
mod server;
mod slice_checker;
mod slices;
mod views;
mod workload;

use std::error::Error;
use std::sync::Arc;

use controller::Controller;
use server::Server;
use slice_checker::SliceChecker;
use workload::Workload;

pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// The number of changes to services and pods, half of them while no controller runs.
const CHANGES: usize = 400;

#[tokio::test(flavor = "multi_thread")]
async fn second_controller_continues_with_correct_slices() -> Result<(), Box<dyn Error>> {
    let server = Server::start().await?;
    let workload = Workload {
        client: server.client.clone(),
        namespace: server.namespace.clone(),
        pods: 500,
        services: 40,
        addresses: Arc::default(),
    };
    run(&workload, CHANGES).await.map_err(|error| -> Box<dyn Error> { error })?;
    drop(workload);
    server.shutdown().await
}

async fn run(workload: &Workload, changes: usize) -> Result<(), Failure> {
    let (client, namespace) = (&workload.client, workload.namespace.as_str());
    let mut checker = SliceChecker::start(client.clone(), namespace).await?;
    workload.create().await?;

    let first = Controller::start(client.clone(), namespace)?;
    let made = checker.made(workload.services / 2).await?;
    println!("killed the controller after {made} slices for {} services", workload.services);
    first.kill();

    // The next controller finds the first half of the changes in its initial lists, and receives
    // the rest as events.
    for step in 0..changes / 2 {
        workload.change(step).await?;
    }
    let second = Controller::start(client.clone(), namespace)?;
    for step in changes / 2..changes {
        workload.change(step).await?;
    }

    let endpoints = checker.settled().await?;
    let stats = second.monitor.stats();
    println!(
        "{} calls succeeded, {} failed; keys were parked {} times",
        stats.succeeded, stats.failed, stats.parked
    );
    println!(
        "{} endpoints of {} services agree with full lists of services and pods",
        endpoints.values().map(Vec::len).sum::<usize>(),
        endpoints.len()
    );
    second.shutdown().await?;
    checker.end().await;
    Ok(())
}
