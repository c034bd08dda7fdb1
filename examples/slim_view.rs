//! A slim view of a built-in kind: a type with only the fields that a program needs, here of pods.
//!
//! ```text
//! cargo run --example slim_view
//! ```

#[path = "server/pods.rs"]
mod pods;
mod server;

use std::error::Error;

use informer_factory::{Informer, SharedInformerFactory};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use server::Server;

/// The metadata, node and images of a pod. The decoder skips all other fields, so they use no memory.
#[derive(Informer, Deserialize, Clone, Debug)]
#[informer(group = "", version = "v1", kind = "Pod", namespaced)]
#[informer(
    index(name = "by_node", path = "spec.node_name"),
    index(name = "by_image", path = "spec.containers.image")
)]
// Metadata can be pruned too.
#[informer(prune("metadata.annotations"))]
struct PodPlacement {
    metadata: ObjectMeta,
    spec: Placement,
}

#[derive(Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
struct Placement {
    node_name: Option<String>,
    containers: Vec<Container>,
}

#[derive(Deserialize, Clone, Debug)]
struct Container {
    image: Option<String>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::start().await?;
    pods::create(&server, 5, 30).await?;

    let factory = SharedInformerFactory::new(server.client.clone()).in_namespace(&server.namespace);
    // The accessor is named after the type; `pods()` returns the informer of whole pods.
    let placements = factory.core().v1().pod_placements();
    factory.start();
    factory.wait_for_cache_sync().await?;

    let by_node = placements.by_node_index();
    let mut nodes = by_node.values();
    nodes.sort_unstable();
    for node in nodes {
        println!("{node}: {} pods", by_node.count(&node));
    }
    let images = placements.by_image_index().values();
    println!("{} pods with {} images", placements.indexer().len(), images.len());

    let objects = placements.indexer().list();
    assert_eq!(objects.len(), 30);
    assert!(objects.iter().all(|pod| pod.metadata.annotations.is_none() && !pod.spec.containers.is_empty()));
    assert!(objects.iter().any(|pod| pod.spec.containers.iter().any(|container| container.image.is_some())));

    factory.shutdown().await;
    drop((placements, factory));
    server.shutdown().await
}
