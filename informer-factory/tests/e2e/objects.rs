//! The objects of the tests.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Creates a typed object from JSON, which is shorter than a struct literal.
pub(crate) fn object<K: DeserializeOwned>(json: Value) -> K {
    serde_json::from_value(json).expect("the JSON is an object of this kind")
}

/// The label that separates a test's objects from those of controllers.
pub(crate) const LABEL: &str = "e2e";

pub(crate) fn config_map(name: &str) -> ConfigMap {
    labelled_config_map(name, "own")
}

pub(crate) fn labelled_config_map(name: &str, label: &str) -> ConfigMap {
    object(json!({ "metadata": { "name": name, "labels": { LABEL: label } }, "data": { "step": "0" } }))
}

pub(crate) fn pod(name: &str, node: &str) -> Pod {
    object(json!({
        "metadata": { "name": name, "labels": { LABEL: "own" } },
        "spec": { "nodeName": node, "containers": [{ "name": "main", "image": "none.example/none:1" }] },
    }))
}

/// Returns a node of this test. It is unschedulable, so that no other test's pods are placed on it.
pub(crate) fn node(name: &str, label: &str) -> Node {
    object(json!({
        "metadata": { "name": name, "labels": { LABEL: label } },
        "spec": { "unschedulable": true },
    }))
}

pub(crate) fn deployment(name: &str, replicas: u32) -> Deployment {
    object(json!({
        "metadata": { "name": name },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{ "name": "main", "image": "none.example/none:1" }] },
            },
        },
    }))
}
