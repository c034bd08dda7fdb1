//! An informer without the factory: the program chooses the source of the objects and runs the informer.
//!
//! ```text
//! cargo run --example informer_alone
//! ```

mod server;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use informer_factory::informer_reflector::{KubeListWatch, ReflectorConfig};
use informer_factory::{InformerOptions, PrunePaths, SharedIndexInformer, WaitOutcome};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use server::Server;
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::start().await?;
    for name in ["web", "db"] {
        let labels = json!({ "tier": if name == "web" { "front" } else { "back" } });
        server
            .create::<ConfigMap>(
                json!({ "metadata": { "name": name, "labels": labels }, "data": { "size": "1" } }),
            )
            .await?;
    }

    // The source: one namespace, one selector, and one pruned field besides the managed fields.
    let source = KubeListWatch::<ConfigMap>::namespaced(server.client.clone(), &server.namespace)
        .label_selector("tier=front")
        .prune(PrunePaths::default().with_path("metadata.annotations")?);
    // The settings, and a transform that changes each object before it is stored.
    let options = InformerOptions::new()
        .reflector(ReflectorConfig::new().page_size(100))
        .verify_every(Duration::from_secs(3600))
        .transform(|map: &mut ConfigMap| {
            map.binary_data = None;
            Ok::<_, std::convert::Infallible>(())
        });
    let (maps, task) = SharedIndexInformer::new(Arc::new(source), options);
    let handler = maps.add_handlers(|handlers| handlers.on_add(|map, _| println!("+ {}", map.key())));

    // The task does the informer's work and ends after cancellation. The program chooses where to run the
    // task.
    let shutdown = CancellationToken::new();
    let running = tokio::spawn(task.run(shutdown.clone()));
    maps.synced().wait().await?;
    handler.synced().wait().await?;
    assert_eq!(maps.indexer().len(), 1, "only one config map has the tier `front`");

    let labels = json!({ "tier": "front" });
    let written =
        server.create::<ConfigMap>(json!({ "metadata": { "name": "cache", "labels": labels } })).await?;
    assert_eq!(maps.wait_for_write(&written, Duration::from_secs(60)).await, WaitOutcome::Reached);
    // This wait ends at once, because the object is new and outside the informer's scope.
    let elsewhere = server.create::<ConfigMap>(json!({ "metadata": { "name": "queue" } })).await?;
    assert_eq!(maps.wait_for_write(&elsewhere, Duration::from_secs(60)).await, WaitOutcome::NotCovered);
    println!("{} config maps of the front tier", maps.indexer().len());

    shutdown.cancel();
    running.await?;
    println!("the informer has stopped: {:?}", maps.stopped().await);
    drop((handler, maps));
    server.shutdown().await
}
