//! An event stream: prints the changes of the deployments of a cluster.
//!
//! ```text
//! cargo run --example event_stream      # with the current context of the kubeconfig, until Ctrl-C
//! ```

use std::error::Error;

use futures::StreamExt;
use informer_factory::{Event, HandlerOptions, SharedInformerFactory};
use kube::Client;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let factory = SharedInformerFactory::new(Client::try_default().await?);
    let events = factory.apps().v1().deployments().events(&HandlerOptions::new().name("printer"));
    factory.start();
    let mut events = events.take_until(Box::pin(tokio::signal::ctrl_c()));
    while let Some(event) = events.next().await {
        match event {
            Event::Added { object, is_in_initial_list } => {
                println!("+ {} {is_in_initial_list}", object.key());
            }
            Event::Updated { old, new } => println!("~ {} since {}", new.key(), old.resource_version()),
            Event::Deleted(deleted) => println!("- {}", deleted.key()),
            // These events do not occur, because this factory has no resyncs and watches all namespaces.
            Event::Resynced(_) | Event::Released(_) => {}
        }
    }
    factory.shutdown().await;
    Ok(())
}
