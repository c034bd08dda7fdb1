//! Informers of several namespaces, which are added and removed at run time: for a program that may access only some
//! namespaces, and not the whole cluster.
//!
//! ```text
//! cargo run --example multi_namespace
//! ```

mod server;

use std::error::Error;
use std::time::Duration;

use informer_factory::{SharedInformerFactory, WaitOutcome};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{DeleteParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use server::Server;
use tokio::sync::mpsc::unbounded_channel;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::start().await?;
    let client = server.client.clone();
    let namespaces = Api::<Namespace>::all(client.clone());
    let other = serde_json::from_value(json!({ "metadata": { "generateName": "example-other-" } }))?;
    let other = namespaces.create(&PostParams::default(), &other).await?.name_any();
    server.create::<ConfigMap>(json!({ "metadata": { "name": "here" } })).await?;
    let there = serde_json::from_value(json!({ "metadata": { "name": "there" } }))?;
    Api::<ConfigMap>::namespaced(client.clone(), &other).create(&PostParams::default(), &there).await?;

    // Each namespace has its own list and watch. They share the store, the indexes and the handlers.
    let factory = SharedInformerFactory::builder(client.clone()).namespaces([&server.namespace])?.build();
    let maps = factory.core().v1().config_maps();
    let (sender, mut released) = unbounded_channel();
    let handler = maps.add_handlers(|handlers| {
        handlers
            .on_add(|map, _| println!("+ {}", map.key()))
            .on_delete(|map| println!("- {}", map.key()))
            // Called for each object of a namespace that was removed from the informer. The object can still
            // exist on the server, so do not clean up as after a delete.
            .on_release(move |map| {
                println!("released {}", map.key());
                // Sending fails only when the program ends.
                _ = sender.send(map.key().clone());
            })
    });
    factory.start();
    factory.wait_for_cache_sync().await?;
    assert!(maps.lister().namespace(&other).get("there").is_none());

    // `add_namespace` returns a `Completion` for each informer. Its `wait` returns when the informer has
    // listed the namespace.
    for completion in factory.add_namespace(&other)? {
        completion.wait().await?;
    }
    assert!(maps.lister().namespace(&other).get("there").is_some());
    println!("watching {:?}", maps.namespaces());

    // The wait covers only the namespace of the write; other namespaces can lag.
    let written = server.create::<ConfigMap>(json!({ "metadata": { "name": "later" } })).await?;
    assert_eq!(maps.wait_for_write(&written, Duration::from_secs(60)).await, WaitOutcome::Reached);

    for completion in factory.remove_namespace(&other)? {
        completion.wait().await?;
    }
    assert!(maps.lister().namespace(&other).get("there").is_none());
    while released.recv().await.ok_or("the informer has stopped")?.name() != "there" {}

    factory.shutdown().await;
    namespaces.delete(&other, &DeleteParams::background()).await?;
    drop((handler, maps, factory, namespaces, client));
    server.shutdown().await
}
