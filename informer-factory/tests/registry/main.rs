//! The factory as a registry: how informers are created, shared, started and stopped, and the
//! errors. The simulator runs in this process, so that the tests can pause time.

mod bad_input;
mod forms;
mod idle;
#[path = "../memory/log.rs"]
mod log;
mod namespaces;
mod scopes;
mod settings;
mod stopping;
mod waiting;

use std::time::Duration;

use informer_factory::{Cached, FactoryBuilder, SharedIndexInformer, SharedInformerFactory};
use informer_testing::{RequestFilter, Simulator, Verb};
use serde_json::{Value, json};

/// Longer than any wait of a passing test, in paused time.
const TIMEOUT: Duration = Duration::from_secs(3_600);

fn simulator() -> Simulator {
    Simulator::builder().built_in_kinds().start_in_process()
}

fn builder(simulator: &Simulator) -> FactoryBuilder {
    SharedInformerFactory::builder(simulator.client().expect("a client"))
}

fn factory(simulator: &Simulator) -> SharedInformerFactory {
    builder(simulator).build()
}

fn pod(namespace: &str, name: &str, app: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "namespace": namespace, "name": name, "labels": { "app": app }, "annotations": { "note": "long" } },
        "spec": { "nodeName": format!("node-of-{name}"), "containers": [{ "name": "main" }] },
    })
}

/// A server with three pods: `shop/web`, `shop/db` and `else/web`.
fn with_pods() -> Simulator {
    let simulator = simulator();
    for (namespace, name) in [("shop", "web"), ("shop", "db"), ("else", "web")] {
        simulator.create(&pod(namespace, name, name)).expect("a new pod");
    }
    simulator
}

async fn synced(factory: &SharedInformerFactory) {
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");
}

/// Returns the sorted keys of an informer's objects.
fn keys<K: Send + Sync + 'static>(informer: &SharedIndexInformer<K>) -> Vec<String> {
    let mut keys: Vec<_> =
        informer.indexer().list().iter().map(|object: &Cached<K>| object.key().to_string()).collect();
    keys.sort_unstable();
    keys
}

fn watches() -> RequestFilter {
    RequestFilter::verb(Verb::Watch)
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(TIMEOUT, future).await.expect("the wait ends in time")
}
