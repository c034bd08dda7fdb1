//! A controller written with kube-runtime, whose objects come from informers: one informer for the
//! reconciled kind, and one for each owned kind. So the process has only one watch for each kind.
//! The reconciled objects are in memory twice, because kube-runtime's `Controller` has its own
//! store.
//!
//! ```text
//! cargo run --example kube_runtime
//! ```

mod server;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use informer_factory::SharedInformerFactory;
use informer_factory::kube_runtime::{StoreReader, watcher_events};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, Resource, ResourceExt};
use kube_runtime::controller::{Action, Controller};
use kube_runtime::reflector::ObjectRef;
use kube_runtime::{WatchStreamExt, reflector};
use serde_json::json;
use server::Server;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// The shared state of reconcile calls.
struct Context {
    client: Client,
    secrets: StoreReader<Secret>,
    done: UnboundedSender<()>,
}

/// Creates a secret for a config map, if the config map has the label `wants-secret`.
async fn reconcile(map: Arc<ConfigMap>, context: Arc<Context>) -> Result<Action, kube::Error> {
    if !map.labels().contains_key("wants-secret") {
        return Ok(Action::await_change());
    }
    let (name, namespace) = (map.name_any(), map.namespace().unwrap_or_default());
    if context.secrets.get(&ObjectRef::new(&name).within(&namespace)).is_some() {
        // Sending fails only when the program ends.
        _ = context.done.send(());
        return Ok(Action::await_change());
    }
    let owner = map.controller_owner_ref(&()).into_iter().collect::<Vec<_>>();
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "name": name, "ownerReferences": owner },
        "stringData": { "made-for": name },
    });
    let secrets = Api::<Secret>::namespaced(context.client.clone(), &namespace);
    secrets.patch(&name, &PatchParams::apply("kube-runtime-example"), &Patch::Apply(secret)).await?;
    // The new secret arrives through the informer of secrets and triggers another reconcile call.
    Ok(Action::requeue(Duration::from_secs(60)))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::start().await?;
    let factory = SharedInformerFactory::new(server.client.clone()).in_namespace(&server.namespace);
    let (maps, secrets) = (factory.core().v1().config_maps(), factory.core().v1().secrets());
    factory.start();
    factory.wait_for_cache_sync().await?;

    // `watcher_events` replaces kube's `watcher(api, config)`, and sends no requests to the server.
    let (reader, writer) = reflector::store();
    let objects = watcher_events(&maps).reflect(writer).touched_objects();
    let owned = watcher_events(&secrets).touched_objects();
    let (done, mut reconciled) = unbounded_channel();
    let context = Context { client: server.client.clone(), secrets: StoreReader::new(&secrets), done };
    let controller = Controller::for_stream(objects, reader)
        .owns_stream(owned)
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_secs(1)), Arc::new(context))
        .for_each(async |outcome| {
            if let Err(error) = outcome {
                println!("reconciling failed, retrying: {error}");
            }
        });
    let controller = tokio::spawn(controller);

    let labels = json!({ "wants-secret": "yes" });
    server.create::<ConfigMap>(json!({ "metadata": { "name": "web", "labels": labels } })).await?;
    reconciled.recv().await.ok_or("the controller has stopped")?;
    let names: Vec<_> = secrets.indexer().keys();
    println!("secrets: {names:?}");
    assert!(names.iter().any(|key| key.name() == "web"));

    controller.abort();
    // The task was aborted, so the result is always an error.
    _ = controller.await;
    factory.shutdown().await;
    drop((maps, secrets, factory));
    server.shutdown().await
}
