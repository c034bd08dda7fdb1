//! Resources whose names are known only at run time: dynamic objects, found through discovery.
//!
//! ```text
//! cargo run --example dynamic -- apps/v1/deployments
//! ```

mod server;

use std::error::Error;

use informer_factory::SharedInformerFactory;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::{DynamicObject, GroupVersionResource};
use serde_json::json;
use server::Server;

/// Parses the name of a resource: `apps/v1/deployments`, or `v1/configmaps` for the core group.
fn parse(text: &str) -> Option<GroupVersionResource> {
    let parts: Vec<_> = text.split('/').collect();
    match parts[..] {
        [version, resource] => Some(GroupVersionResource::gvr("", version, resource)),
        [group, version, resource] => Some(GroupVersionResource::gvr(group, version, resource)),
        _ => None,
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::start().await?;
    for (name, size) in [("web", "large"), ("db", "large"), ("cache", "small")] {
        let object = json!({ "metadata": { "name": name }, "data": { "size": size } });
        server.create::<ConfigMap>(object).await?;
    }
    let name = std::env::args().nth(1).unwrap_or_else(|| "v1/configmaps".to_owned());
    let resource =
        parse(&name).ok_or("invalid argument: expected version/resource or group/version/resource")?;

    let factory = SharedInformerFactory::new(server.client.clone()).in_namespace(&server.namespace);
    // Fails if the server does not have the resource, or does not support list and watch for it.
    let objects = factory.for_resource(&resource).await?;
    // A dynamic object is a tree of JSON values, which an index function can read.
    let by_size = objects.add_index("size", |object: &DynamicObject| {
        object.data.pointer("/data/size").and_then(|size| size.as_str()).map(str::to_owned)
    })?;
    factory.start();
    factory.wait_for_cache_sync().await?;
    for object in &objects.indexer().list() {
        println!("{} {}", object.types.as_ref().map_or("?", |types| &types.kind), object.key());
    }
    println!("{} are large", by_size.count("large"));
    if name == "v1/configmaps" {
        assert_eq!(by_size.count("large"), 2);
    }

    let unknown = GroupVersionResource::gvr("example.com", "v1", "flying-carpets");
    match factory.for_resource(&unknown).await {
        Ok(_) => return Err("expected an error for an unknown resource".into()),
        Err(error) => println!("{error}"),
    }
    factory.shutdown().await;
    drop((objects, factory));
    server.shutdown().await
}
