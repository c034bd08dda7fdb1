//! A controller of endpoint slices, as in Kubernetes: the addresses of the pods that a service selects. One index leads
//! from pods to services, another from services to pods. The controller is killed during its work, and a second one
//! continues.
//!
//! ```text
//! cargo run --example endpoint-slices
//! cargo run --example endpoint-slices -- --pods 1000 --services 100
//! ```

mod controller;
#[allow(dead_code, reason = "objects are created many at a time here")]
#[path = "../server/mod.rs"]
mod server;
mod slices;
mod views;
mod witness;
mod workload;

use std::error::Error;
use std::sync::Arc;

use clap::Parser;
use controller::Controller;
use server::Server;
use witness::Witness;
use workload::Workload;

pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// Keeps the endpoint slices of services, kills the controller during its work, and compares the result with full lists
#[derive(Debug, Parser)]
struct Args {
    /// Number of pods
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u16).range(1..))]
    pods: u16,

    /// Number of services
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u16).range(2..))]
    services: u16,

    /// Number of changes
    #[arg(long, default_value_t = 400)]
    changes: usize,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let server = Server::start().await?;
    let workload = Workload {
        client: server.client.clone(),
        namespace: server.namespace.clone(),
        pods: args.pods.into(),
        services: args.services.into(),
        addresses: Arc::default(),
    };
    run(&workload, args.changes).await.map_err(|error| -> Box<dyn Error> { error })?;
    drop(workload);
    server.shutdown().await
}

async fn run(workload: &Workload, changes: usize) -> Result<(), Failure> {
    let (client, namespace) = (&workload.client, workload.namespace.as_str());
    let mut witness = Witness::start(client.clone(), namespace).await?;
    workload.create().await?;

    let first = Controller::start(client.clone(), namespace)?;
    let made = witness.made(workload.services / 2).await?;
    println!("killed the controller after {made} slices for {} services", workload.services);
    first.kill();

    // The next controller finds the first half of the changes in its initial lists, and receives the rest as events.
    for step in 0..changes / 2 {
        workload.change(step).await?;
    }
    let second = Controller::start(client.clone(), namespace)?;
    for step in changes / 2..changes {
        workload.change(step).await?;
    }

    let endpoints = witness.settled().await?;
    let stats = second.monitor().stats();
    println!(
        "{} calls, {} of them failed; {} waited for a write",
        stats.succeeded, stats.failed, stats.parked
    );
    println!(
        "{} endpoints of {} services agree with full lists of services and pods",
        endpoints.values().map(Vec::len).sum::<usize>(),
        endpoints.len()
    );
    second.shutdown().await?;
    witness.end().await;
    Ok(())
}
