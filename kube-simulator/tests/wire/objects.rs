//! Objects to make, and what scenarios read of objects and lists.

use serde_json::{Value, json};

/// A secret: nothing in a cluster makes, changes or deletes secrets of its own accord.
pub(crate) fn secret(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name } })
}

/// A secret with one label.
pub(crate) fn labelled(name: &str, label: &str, value: &str) -> Value {
    let mut secret = secret(name);
    secret["metadata"]["labels"][label] = value.into();
    secret
}

/// A pod that nobody schedules or runs.
pub(crate) fn pod(name: &str) -> Value {
    let containers = json!([{ "name": "main", "image": "example.test/image" }]);
    let spec = json!({ "schedulerName": "nobody", "containers": containers });
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name }, "spec": spec })
}

/// A Deployment that makes no pods. Where there are controllers, one of them writes to it all the same.
pub(crate) fn deployment(name: &str) -> Value {
    let labels = json!({ "app": name });
    let template = json!({ "metadata": { "labels": labels }, "spec": pod(name)["spec"] });
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": name },
        "spec": { "replicas": 0, "paused": true, "selector": { "matchLabels": labels }, "template": template },
    })
}

/// An Ingress: a kind with generations and a status, of which no controller of a plain cluster takes care.
pub(crate) fn ingress(name: &str) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": { "name": name },
        "spec": { "defaultBackend": { "service": { "name": "backend", "port": { "number": 80 } } } },
    })
}

/// The names in a list, in its order.
pub(crate) fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().expect("a list has items");
    items.iter().map(name).collect()
}

pub(crate) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().expect("a name")
}

pub(crate) fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().expect("a UID")
}

/// The resource version of an object or a list.
pub(crate) fn version(value: &Value) -> u64 {
    let text = value["metadata"]["resourceVersion"].as_str().expect("a resource version");
    text.parse().expect("a number")
}

/// A list's continue token, empty on the last page.
pub(crate) fn token(list: &Value) -> &str {
    list["metadata"]["continue"].as_str().unwrap_or_default()
}
