//! Runs a simulated cluster that `kubectl` can use.
//!
//! ```sh
//! cargo run -p kube-simulator --example simulator
//! kubectl --server http://127.0.0.1:PORT get pods -A -w
//! ```
//!
//! The simulator prints the `kubectl` command with the port.

use kube_simulator::{ClusterSpec, Simulator};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let simulator = Simulator::builder().built_in_kinds().require_namespaces().start().await?;
    let cluster = simulator.populate(&ClusterSpec { nodes: 5, pods: 50, ..ClusterSpec::default() })?;
    println!("kubectl --server {} get pods -A -w", simulator.url());
    // One change per second, until Ctrl-C.
    cluster.churn(1.0).run_until(async { tokio::signal::ctrl_c().await.unwrap_or_default() }).await?;
    simulator.shutdown().await;
    Ok(())
}
