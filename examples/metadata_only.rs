//! Metadata-only informers, for programs that read labels, owners and versions. They need a
//! fraction of the memory of other informers. They do not hold the field `data` of a Secret, but do
//! hold its annotations, in which `kubectl apply` stores a copy of the data.
//!
//! ```text
//! cargo run --example metadata_only
//! ```

mod server;

use std::error::Error;
use std::time::Duration;

use informer_factory::{SharedInformerFactory, WaitOutcome, parse_selector};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::core::PartialObjectMeta;
use serde_json::json;
use server::Server;

fn owners(object: &PartialObjectMeta<Secret>) -> Vec<String> {
    let owners = object.metadata.owner_references.iter().flatten();
    owners.map(|owner| owner.uid.clone()).collect()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::start().await?;
    let owner = server.create::<ConfigMap>(json!({ "metadata": { "name": "shop" } })).await?;
    let uid = owner.metadata.uid.ok_or("the created object has no UID")?;
    let reference = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "shop", "uid": uid });

    let factory = SharedInformerFactory::new(server.client.clone()).in_namespace(&server.namespace);
    // The type parameter selects the kind. The server sends only the metadata of each object.
    let secrets = factory.metadata().of::<Secret>();
    let by_owner = secrets.add_index("owner", owners)?;
    factory.start();
    factory.wait_for_cache_sync().await?;

    for name in ["password", "certificate"] {
        let labels = json!({ "tier": "back" });
        let metadata = json!({ "name": name, "labels": labels, "ownerReferences": [reference] });
        let secret = json!({ "metadata": metadata, "stringData": { "value": "not visible here" } });
        let written = server.create::<Secret>(secret).await?;
        let version = written.metadata.resource_version.as_deref().into();
        assert_eq!(secrets.wait_until(&version, Duration::from_secs(60)).await, WaitOutcome::Reached);
    }
    for secret in &by_owner.get(&uid) {
        println!("{} belongs to {}", secret.key(), owner.metadata.name.as_deref().unwrap_or_default());
    }
    assert_eq!(by_owner.count(&uid), 2);
    let back = secrets.lister().namespace(&server.namespace).list(&parse_selector("tier=back")?);
    assert_eq!(back.len(), 2);

    factory.shutdown().await;
    drop((secrets, factory));
    server.shutdown().await
}
