//! Controllers and tracked writes against the API server simulator, over real HTTP.

mod late_cache;
mod own_writes;

use std::time::Duration;

use informer_factory::SharedInformerFactory;
use informer_testing::Simulator;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

/// The timeout of each wait in these tests.
const TIMEOUT: Duration = Duration::from_secs(30);

async fn simulator() -> Simulator {
    Simulator::builder().built_in_kinds().start().await.expect("a free port")
}

fn factory(simulator: &Simulator) -> SharedInformerFactory {
    SharedInformerFactory::new(simulator.client().expect("a client"))
}

fn pod(name: &str, node: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "namespace": "shop", "name": name },
        "spec": { "nodeName": node, "containers": [{ "name": "main" }] },
    })
}

fn node_of(pod: &Pod) -> Option<String> {
    pod.spec.as_ref().and_then(|spec| spec.node_name.clone())
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(TIMEOUT, future).await.expect("no result before the timeout")
}
