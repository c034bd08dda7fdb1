//! A controller of endpoint slices, as in Kubernetes: the addresses of the pods that a service selects. Pods find their
//! services through one index, services their pods through another. In the midst of it the controller is killed, and another
//! goes on.
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

/// Keeps the endpoint slices of services, kills the controller in the midst of it, and compares with full lists in the end.
#[derive(Debug, Parser)]
struct Args {
    /// How many pods there are
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u16).range(1..))]
    pods: u16,

    /// How many services there are
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u16).range(2..))]
    services: u16,

    /// How much happens to them
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
    println!("killed with {made} slices made for {} services", workload.services);
    first.kill();

    // What happens while there is no controller the next one finds; what happens after that it is told.
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
        "{} endpoints of {} services are as full lists of services and pods have it",
        endpoints.values().map(Vec::len).sum::<usize>(),
        endpoints.len()
    );
    second.shutdown().await?;
    witness.end().await;
    Ok(())
}
