//! `#[derive(Informer)]` on each form of type, against the API server simulator or an in-memory
//! source.

mod custom_resource;
mod failures;
mod indexes;
#[path = "../memory/log.rs"]
mod log;
mod own_names;
mod own_resource;
mod several_kinds;
mod taken_name;
mod views;

use std::time::Duration;

use informer_factory::{Cached, Objects, SharedInformerFactory};
use informer_testing::{Simulator, SimulatorBuilder};

/// The timeout of each wait.
const TIMEOUT: Duration = Duration::from_secs(30);

async fn start(builder: SimulatorBuilder) -> (Simulator, SharedInformerFactory) {
    let simulator = builder.start().await.expect("a free port");
    let factory = SharedInformerFactory::new(simulator.client().expect("a client"));
    (simulator, factory)
}

async fn synced(factory: &SharedInformerFactory) {
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(TIMEOUT, future).await.expect("the wait ends in time")
}

/// Returns the names of the objects, sorted.
fn names<K: 'static>(objects: &Objects<K>) -> Vec<String> {
    let mut names: Vec<String> =
        objects.iter().map(|object: &Cached<K>| object.key().name().to_owned()).collect();
    names.sort_unstable();
    names
}
