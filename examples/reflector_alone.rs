//! The reflector alone: a local copy for lookups, without queue, handlers or informer.
//!
//! ```text
//! cargo run --example reflector_alone
//! ```

mod server;

use std::error::Error;
use std::sync::Arc;

use informer_factory::informer_reflector::{KubeListWatch, Reflector, ReflectorConfig};
use informer_factory::informer_store::{ReflectedStore, store};
use informer_factory::{Lister, parse_selector};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use server::Server;
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::start().await?;
    for (name, tier) in [("web", "front"), ("cart", "front"), ("db", "back")] {
        server
            .create::<ConfigMap>(json!({ "metadata": { "name": name, "labels": { "tier": tier } } }))
            .await?;
    }

    let (writer, maps) = store::<ConfigMap>();
    let by_tier = maps.add_index("tier", |map: &ConfigMap| {
        map.metadata.labels.as_ref().and_then(|labels| labels.get("tier").cloned())
    })?;
    let reflected = Arc::new(ReflectedStore::new(writer));
    let synced = reflected.synced();

    // The reflector lists, watches, resumes and backs off, and writes the objects to the store.
    let source = KubeListWatch::<ConfigMap>::namespaced(server.client.clone(), &server.namespace);
    let config = ReflectorConfig::new().on_failure(|failure| println!("{failure:?}"));
    let reflector = Reflector::new(Arc::new(source), reflected, config);
    let status = reflector.status();
    let shutdown = CancellationToken::new();
    let running = tokio::spawn(reflector.run(shutdown.clone()));

    synced.wait().await?;
    println!("{} at resource version {}", status.description(), maps.watermark());
    for map in &by_tier.get("front") {
        println!("front: {}", map.key());
    }
    assert_eq!(by_tier.count("front"), 2);
    // A real cluster can have other config maps in the namespace, such as the cluster's CA certificate.
    let selector = parse_selector("tier in (front, back)")?;
    let ours = Lister::new(maps.clone()).namespace(&server.namespace).list(&selector);
    assert_eq!(ours.len(), 3);

    shutdown.cancel();
    running.await?;
    drop(status);
    server.shutdown().await
}
