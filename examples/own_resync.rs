//! Several handlers on one informer, each with its own resync period. A resync delivers each
//! stored object to the handler again, unless a change of the object is queued. It sends no request
//! to the server.
//!
//! ```text
//! cargo run --example own_resync
//! ```

mod server;

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use informer_factory::{HandlerOptions, Handlers, Resync, SharedInformerFactory};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use server::Server;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// Returns a handler that counts the resyncs of objects, and sends a message for each to `sender`.
fn counting(count: &Arc<AtomicUsize>, sender: Option<UnboundedSender<()>>) -> Handlers<ConfigMap> {
    let count = Arc::clone(count);
    Handlers::<ConfigMap>::new().on_update(move |old, new| {
        // A resync is an update from a version to itself.
        if old.resource_version() == new.resource_version() {
            count.fetch_add(1, Ordering::Relaxed);
            if let Some(sender) = &sender {
                // Sending fails only when the program ends.
                _ = sender.send(());
            }
        }
    })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::start().await?;
    server.create::<ConfigMap>(json!({ "metadata": { "name": "a" } })).await?;

    // Most handlers need no resync: the watch reports every change, and a work queue retries failures. Resyncs are for
    // external state that can change on its own.
    let factory = SharedInformerFactory::builder(server.client.clone())
        .default_resync(Duration::from_secs(3600))
        .build()
        .in_namespace(&server.namespace);
    let maps = factory.core().v1().config_maps();
    let [often, rarely, never, default] = [(); 4].map(|()| Arc::new(AtomicUsize::new(0)));
    let (sender, mut resyncs) = unbounded_channel();
    let add = |name: &str, resync, handler| {
        maps.add_event_handler_with(handler, &HandlerOptions::new().name(name).resync(resync))
    };
    let handlers = [
        add("often", Resync::Every(Duration::from_secs(1)), counting(&often, Some(sender))),
        // Periods are rounded up to a multiple of the shortest period that is set before the start.
        add("rarely", Resync::Every(Duration::from_secs(2)), counting(&rarely, None)),
        add("never", Resync::Never, counting(&never, None)),
        add("default", Resync::Default, counting(&default, None)),
    ];
    factory.start();
    factory.wait_for_cache_sync().await?;

    // Wait until the handler with the shortest period has received three times as many resyncs as
    // there are objects now.
    for _ in 0..3 * maps.indexer().len() {
        resyncs.recv().await.ok_or("the informer has stopped")?;
    }
    let count = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
    println!(
        "often: {}, rarely: {}, never: {}, by default: {}",
        count(&often),
        count(&rarely),
        count(&never),
        count(&default)
    );
    assert!(count(&often) >= 3 && count(&rarely) <= count(&often));
    assert_eq!((count(&never), count(&default)), (0, 0));
    for handler in &handlers {
        println!("{}: {:?}", handler.name(), handler.stats());
    }

    factory.shutdown().await;
    drop((handlers, maps, factory));
    server.shutdown().await
}
