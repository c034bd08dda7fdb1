//! Objects for scenarios, and accessors of objects and lists.

use serde_json::{Value, json};

/// Returns a secret. Scenarios use secrets, because no component of a cluster creates, changes or
/// deletes secrets on its own.
pub(crate) fn secret(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name } })
}

pub(crate) fn labelled(name: &str, label: &str, value: &str) -> Value {
    let mut secret = secret(name);
    secret["metadata"]["labels"][label] = value.into();
    secret
}

/// Returns a pod that no component schedules or runs.
pub(crate) fn pod(name: &str) -> Value {
    let containers = json!([{ "name": "main", "image": "example.test/image" }]);
    let spec = json!({ "schedulerName": "nobody", "containers": containers });
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name }, "spec": spec })
}

/// Returns a Deployment without pods. If controllers run, the deployment controller still writes to
/// it.
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

/// Returns an Ingress: it has a generation and a status, and no controller of a plain cluster
/// manages it.
pub(crate) fn ingress(name: &str) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": { "name": name },
        "spec": { "defaultBackend": { "service": { "name": "backend", "port": { "number": 80 } } } },
    })
}

/// Returns the name, image and `tty` of each container of a Deployment.
pub(crate) fn containers(deployment: &Value) -> Vec<Value> {
    let containers = deployment["spec"]["template"]["spec"]["containers"].as_array().expect("containers");
    containers
        .iter()
        .map(|container| json!([container["name"], container["image"], container["tty"]]))
        .collect()
}

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

pub(crate) fn version(value: &Value) -> u64 {
    let text = value["metadata"]["resourceVersion"].as_str().expect("a resource version");
    text.parse().expect("a number")
}

/// Returns a list's continue token, or an empty string on the last page.
pub(crate) fn token(list: &Value) -> &str {
    list["metadata"]["continue"].as_str().unwrap_or_default()
}
