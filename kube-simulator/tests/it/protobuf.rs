//! Protobuf bodies, like those that Go programs send for built-in kinds.

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use kube_messages::put_bytes;
use kube_simulator::Simulator;
use serde_json::{Value, json};

use crate::support::{body_of, get, send, simulator};

/// Encodes a length-delimited field. All fields of these tests are short, so their length fits into
/// one byte.
fn bytes(number: u8, content: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, u8::try_from(content.len()).expect("short content")], content].concat()
}

fn text(number: u8, content: &str) -> Vec<u8> {
    bytes(number, content.as_bytes())
}

/// Encodes a varint field with a small number.
fn number(number: u8, value: u8) -> Vec<u8> {
    vec![number << 3, value]
}

fn envelope(api_version: &str, kind: &str, object: &[u8]) -> Vec<u8> {
    let type_meta = [text(1, api_version), text(2, kind)].concat();
    [b"k8s\0".to_vec(), bytes(1, &type_meta), bytes(2, object)].concat()
}

fn metadata(name: &str) -> Vec<u8> {
    // Go also encodes empty fields that are not pointers.
    let label = [text(1, "app"), text(2, "web")].concat();
    bytes(1, &[text(1, name), text(3, ""), bytes(11, &label)].concat())
}

async fn post(simulator: &Simulator, method: Method, path: &str, body: Vec<u8>) -> (StatusCode, Value) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/vnd.kubernetes.protobuf")
        .body(Full::new(Bytes::from(body)))
        .expect("a request");
    let response = send(simulator, request).await;
    (response.status(), body_of(response).await)
}

#[tokio::test]
async fn built_in_kinds_are_decoded_from_protobuf() {
    let simulator = simulator().await;
    let entry = [text(1, "colour"), text(2, "blue")].concat();
    let map = [metadata("settings"), bytes(2, &entry)].concat();
    let path = "/api/v1/namespaces/a/configmaps";
    let (code, created) = post(&simulator, Method::POST, path, envelope("v1", "ConfigMap", &map)).await;
    assert_eq!(code, StatusCode::CREATED, "{created}");
    assert_eq!(created["data"], json!({ "colour": "blue" }));
    assert_eq!(created["metadata"]["labels"], json!({ "app": "web" }));

    // A service with one numeric and one named port.
    let by_number = [number(3, 80), bytes(4, &[number(1, 0), number(2, 8)].concat())].concat();
    let by_name = [number(3, 81), bytes(4, &[number(1, 1), text(3, "web")].concat())].concat();
    let spec = bytes(2, &[bytes(1, &by_number), bytes(1, &by_name)].concat());
    let service = [metadata("front"), spec].concat();
    let path = "/api/v1/namespaces/a/services";
    let (_, created) = post(&simulator, Method::POST, path, envelope("v1", "Service", &service)).await;
    let ports = json!([{ "port": 80, "targetPort": 8 }, { "port": 81, "targetPort": "web" }]);
    assert_eq!(created["spec"]["ports"], ports, "{created}");
}

#[tokio::test]
async fn protobuf_times_and_absent_pointers_decode_like_in_go() {
    let simulator = simulator().await;
    let renewed = bytes(4, &[number(1, 5), vec![2 << 3, 0xc0, 0x84, 0x3d]].concat());
    let transitions = number(5, 0);
    let lease = [metadata("leader"), bytes(2, &[text(1, "one"), renewed, transitions].concat())].concat();
    let path = "/apis/coordination.k8s.io/v1/namespaces/a/leases";
    let (code, created) =
        post(&simulator, Method::POST, path, envelope("coordination.k8s.io/v1", "Lease", &lease)).await;
    assert_eq!(code, StatusCode::CREATED, "{created}");
    let expected =
        json!({ "holderIdentity": "one", "renewTime": "1970-01-01T00:00:05.001000Z", "leaseTransitions": 0 });
    assert_eq!(created["spec"], expected);
}

#[tokio::test]
async fn delete_options_are_decoded_from_protobuf() {
    let simulator = simulator().await;
    simulator.create(&crate::support::config_map("a", "one")).unwrap();
    let path = "/api/v1/namespaces/a/configmaps/one";
    let other = bytes(2, &text(1, "another"));
    let (code, _) = post(&simulator, Method::DELETE, path, envelope("v1", "DeleteOptions", &other)).await;
    assert_eq!(code, StatusCode::CONFLICT);
    assert_eq!(get(&simulator, path).await.0, StatusCode::OK);
}

#[tokio::test]
async fn unknown_kind_in_protobuf_is_refused() {
    let simulator = simulator().await;
    let path = "/api/v1/namespaces/a/configmaps";
    for body in
        [envelope("example.com/v1", "Thing", &[]), envelope("v1", "ConfigMap", &[0xff]), b"k8s".to_vec()]
    {
        assert_eq!(post(&simulator, Method::POST, path, body).await.0, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }
}

#[tokio::test]
async fn protobuf_that_is_nested_too_deeply_is_refused() {
    let nested = |fields: &[u64], content: Vec<u8>| {
        fields.iter().fold(content, |content, field| {
            let mut outer = Vec::new();
            put_bytes(&mut outer, *field, &content);
            outer
        })
    };
    let type_meta = [text(1, "apiextensions.k8s.io/v1"), text(2, "CustomResourceDefinition")].concat();
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let simulator = simulator().await;
    for (levels, is_decoded) in [(90, true), (10_000, false)] {
        // Each schema is in the field `not` of its parent. The outermost schema is in
        // `spec.versions[0].schema.openAPIV3Schema`.
        let schema = nested(&[28_u64].repeat(levels), Vec::new());
        let object = nested(&[1, 4, 7, 2, 2], schema);
        let body = [b"k8s\0".to_vec(), bytes(1, &type_meta), object].concat();
        let (code, answer) = post(&simulator, Method::POST, path, body).await;
        assert_eq!(code != StatusCode::UNSUPPORTED_MEDIA_TYPE, is_decoded, "{levels}: {answer}");
    }
}
