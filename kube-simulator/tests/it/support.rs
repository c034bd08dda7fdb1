//! Shared helpers: simulators, objects, raw requests, and a reader of watch lines.

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use kube_simulator::{ResponseBody, Service, Simulator};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tower::Service as _;

pub(crate) const MAPS: &str = "/api/v1/namespaces/a/configmaps";

/// The path of a watch that starts before the first write of a test.
pub(crate) const WATCH: &str = "/api/v1/namespaces/a/configmaps?watch=1&resourceVersion=1000";

pub(crate) async fn simulator() -> Simulator {
    Simulator::builder().built_in_kinds().start().await.expect("a loopback port")
}

pub(crate) fn config_map(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "namespace": namespace, "name": name },
        "data": { "answer": "42" },
    })
}

pub(crate) fn pod(name: &str, node: &str, app: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "namespace": "default", "name": name, "labels": { "app": app } },
        "spec": { "nodeName": node, "containers": [{ "name": "main", "image": "example" }] },
        "status": { "phase": "Running" },
    })
}

/// Opens a connection to the socket of a simulator.
pub(crate) async fn connect(simulator: &Simulator) -> TcpStream {
    TcpStream::connect(simulator.url().trim_start_matches("http://")).await.expect("the port is open")
}

/// Returns an event of the core group in the namespace `a`.
pub(crate) fn event(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": { "namespace": "a", "name": name },
        "involvedObject": { "namespace": "a" },
    })
}

/// Sends a request in process and returns the response.
pub(crate) async fn send(
    simulator: &Simulator,
    request: Request<Full<Bytes>>,
) -> http::Response<ResponseBody> {
    let mut service: Service = simulator.service();
    service.call(request).await.expect("the service never fails")
}

pub(crate) fn request(method: Method, path_and_query: &str, body: &Value) -> Request<Full<Bytes>> {
    let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    Request::builder().method(method).uri(path_and_query).body(Full::new(body)).expect("a request")
}

/// Sends a request in process and returns code and JSON body.
pub(crate) async fn call(
    simulator: &Simulator,
    method: Method,
    path_and_query: &str,
    body: &Value,
) -> (StatusCode, Value) {
    let response = send(simulator, request(method, path_and_query, body)).await;
    (response.status(), body_of(response).await)
}

/// Sends a patch in process. `kind` is the type of the patch, such as `merge-patch`.
pub(crate) async fn patch(
    simulator: &Simulator,
    path_and_query: &str,
    kind: &str,
    body: &Value,
) -> (StatusCode, Value) {
    let format = if kind == "apply-patch" { "yaml" } else { "json" };
    let request = Request::patch(path_and_query)
        .header("content-type", format!("application/{kind}+{format}"))
        .body(Full::new(Bytes::from(body.to_string())))
        .expect("a request");
    let response = send(simulator, request).await;
    (response.status(), body_of(response).await)
}

pub(crate) async fn body_of(response: http::Response<ResponseBody>) -> Value {
    let bytes = response.into_body().collect().await.expect("a body").to_bytes();
    serde_json::from_slice(&bytes).expect("JSON")
}

/// Returns a field of each element of a list.
pub(crate) fn names_of(list: &Value, field: &str) -> Vec<String> {
    let items = list.as_array().expect("a list");
    items.iter().map(|item| item[field].as_str().unwrap_or_default().to_owned()).collect()
}

pub(crate) async fn get(simulator: &Simulator, path_and_query: &str) -> (StatusCode, Value) {
    call(simulator, Method::GET, path_and_query, &Value::Null).await
}

/// A reader of the lines of a watch.
pub(crate) struct Lines {
    body: ResponseBody,
    buffer: Vec<u8>,
}

impl Lines {
    pub(crate) async fn open(simulator: &Simulator, path_and_query: &str) -> Self {
        let response = send(simulator, request(Method::GET, path_and_query, &Value::Null)).await;
        assert_eq!(response.status(), StatusCode::OK);
        Self::of(response)
    }

    pub(crate) fn of(response: http::Response<ResponseBody>) -> Self {
        Self { body: response.into_body(), buffer: Vec::new() }
    }

    /// Returns the next line, or `None` at the clean end of the stream.
    pub(crate) async fn next_line(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                return Some(self.buffer.drain(..=end).collect());
            }
            let frame = self.body.frame().await?.expect("no transport error");
            self.buffer.extend_from_slice(&frame.into_data().expect("data"));
        }
    }

    pub(crate) async fn next(&mut self) -> Option<Value> {
        let line = self.next_line().await?;
        Some(serde_json::from_slice(&line).expect("an event"))
    }

    /// Returns the type, object name and resource version of the next event, or `None` at the clean
    /// end of the stream.
    pub(crate) async fn brief(&mut self) -> Option<(String, String, u64)> {
        let event = self.next().await?;
        let metadata = &event["object"]["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let version = text(&metadata["resourceVersion"]).parse().unwrap_or(0);
        Some((text(&event["type"]), text(&metadata["name"]), version))
    }
}

pub(crate) fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().expect("items");
    items.iter().map(|item| item["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect()
}
