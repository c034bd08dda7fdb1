//! The initial objects of every cluster: namespaces, and the service by which pods find the API
//! server.
//!
//! Counterparts: the controllers of these objects in `k8s.io/kubernetes/pkg/controlplane`.

use serde_json::{Value, json};

use crate::api::Api;
use crate::api::writes::{Body, WriteOptions, WriteSource, Writer};

const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// The target port of the `kubernetes` service if the server has no socket.
const DEFAULT_PORT: u16 = 6443;

/// Creates the initial objects whose kinds are served. `port` is the port of the server's socket,
/// if any.
pub(crate) fn create(api: &Api, port: Option<u16>) {
    for name in NAMESPACES {
        create_object(api, "/api/v1/namespaces", None, json!({ "metadata": { "name": name } }));
    }
    let port = port.unwrap_or(DEFAULT_PORT);
    let ports = json!([{ "name": "https", "port": port, "protocol": "TCP" }]);
    create_object(api, "/api/v1/services", Some("default"), service(port));
    let endpoints = json!({
        "metadata": { "name": "kubernetes", "labels": { "endpointslice.kubernetes.io/skip-mirror": "true" } },
        "subsets": [{ "addresses": [{ "ip": "127.0.0.1" }], "ports": ports }],
    });
    create_object(api, "/api/v1/endpoints", Some("default"), endpoints);
    let slice = json!({
        "metadata": { "name": "kubernetes", "labels": { "kubernetes.io/service-name": "kubernetes" } },
        "addressType": "IPv4",
        "endpoints": [{ "addresses": ["127.0.0.1"], "conditions": { "ready": true } }],
        "ports": ports,
    });
    create_object(api, "/apis/discovery.k8s.io/v1/endpointslices", Some("default"), slice);
}

fn service(port: u16) -> Value {
    json!({
        "metadata": { "name": "kubernetes", "labels": { "component": "apiserver", "provider": "kubernetes" } },
        "spec": {
            "clusterIP": "10.0.0.1",
            "clusterIPs": ["10.0.0.1"],
            "internalTrafficPolicy": "Cluster",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "ports": [{ "name": "https", "port": 443, "protocol": "TCP", "targetPort": port }],
            "sessionAffinity": "None",
            "type": "ClusterIP",
        },
    })
}

fn create_object(api: &Api, path: &str, namespace: Option<&str>, object: Value) {
    let (Some(served), Value::Object(body)) = (api.catalogue.at(path), object) else {
        return;
    };
    let options = WriteOptions { manager: Some("kube-apiserver".to_owned()), ..WriteOptions::default() };
    let writer = Writer { api, served: &served, namespace, options };
    // Cannot fail: the storage is empty, and the objects are valid.
    let _ = writer.create(Body::from_iter(body), WriteSource::Client);
}
