//! Lookups by content: indexes with values of any type, and several queries on one state of the store.
//!
//! ```text
//! cargo run --example index_lookup
//! ```

#[path = "server/pods.rs"]
mod pods;
mod server;

use std::collections::BTreeMap;
use std::error::Error;

use informer_factory::SharedInformerFactory;
use k8s_openapi::api::core::v1::Pod;
use server::Server;

/// The values of the index `phase`. Index values can be of any type that can be hashed, compared,
/// cloned and shared between threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Phase {
    Waiting,
    Running,
    Ended,
}

fn phase_of(pod: &Pod) -> Option<Phase> {
    let phase = pod.status.as_ref()?.phase.as_deref()?;
    Some(match phase {
        "Running" => Phase::Running,
        "Succeeded" | "Failed" => Phase::Ended,
        _ => Phase::Waiting,
    })
}

/// Returns the images of a pod's containers, without init containers, for the index `image`: an
/// object can have several index values.
fn images_of(pod: &Pod) -> Vec<String> {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    containers.filter_map(|container| container.image.clone()).collect()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::start().await?;
    pods::create(&server, 3, 30).await?;

    let factory = SharedInformerFactory::new(server.client.clone()).in_namespace(&server.namespace);
    let pods = factory.core().v1().pods();
    let by_node = pods.add_index("node", |pod: &Pod| pod.spec.as_ref()?.node_name.clone())?;
    let by_phase = pods.add_index("phase", phase_of)?;
    factory.start();
    factory.wait_for_cache_sync().await?;

    // Indexes can also be added after the informer has synced.
    let by_image = pods.add_index("image", images_of)?;

    // Each query sees one state of the store. A snapshot gives several queries the same state.
    let snapshot = pods.indexer().snapshot();
    let mut nodes = by_node.values();
    nodes.sort_unstable();
    for node in nodes {
        let mut phases = BTreeMap::new();
        for pod in &by_node.get_in(&snapshot, &node) {
            *phases.entry(phase_of(pod)).or_insert(0) += 1;
        }
        println!("{node}: {phases:?}");
    }
    println!("{} pending pods with {} images", by_phase.count(&Phase::Waiting), by_image.values().len());

    // Count the pods that share an image with this pod.
    if let Some(pod) = snapshot.list().iter().next() {
        println!("{} pods run an image of {}", by_image.with_common_value(pod)?.len(), pod.key());
    }
    let on_nodes: usize = by_node.values().iter().map(|node| by_node.count(node)).sum();
    assert_eq!(on_nodes, 30);
    assert_eq!(by_image.count("redis"), 10);
    assert!(pods.indexer().index_failures().is_empty());

    factory.shutdown().await;
    drop((pods, factory));
    server.shutdown().await
}
