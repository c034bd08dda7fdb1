//! The whole pipeline against the API server simulator over real HTTP, from the socket to the
//! handlers.

mod bad_input;
mod factory;
mod groups;
mod http2;
mod kinds;
mod namespaces;
mod pipeline;
mod signals;
mod streams;
mod trace;
mod verifying;
mod waiting;

use std::collections::BTreeMap;
use std::time::Duration;

use informer_factory::SharedInformerFactory;
use informer_testing::Simulator;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

/// Longer than any wait of a passing test.
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
        "metadata": { "namespace": "shop", "name": name, "managedFields": [{ "manager": "test" }] },
        "spec": { "nodeName": node, "containers": [{ "name": "main" }] },
    })
}

fn node_of(pod: &Pod) -> Option<String> {
    pod.spec.as_ref().and_then(|spec| spec.node_name.clone())
}

/// Returns the keys and resource versions of the server's pods.
fn versions_of_pods(simulator: &Simulator) -> BTreeMap<String, String> {
    let pods = simulator.list_all::<Pod>().expect("pods are registered");
    let version = |pod: Pod| {
        let (namespace, name) = (pod.metadata.namespace?, pod.metadata.name?);
        Some((format!("{namespace}/{name}"), pod.metadata.resource_version?))
    };
    pods.into_iter().filter_map(version).collect()
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(TIMEOUT, future).await.expect("the wait ends in time")
}
