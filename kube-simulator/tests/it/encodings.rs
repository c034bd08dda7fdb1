//! Responses in encodings other than JSON: faults, and values that an encoding cannot represent.

use bytes::Bytes;
use flate2::read::GzDecoder;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use kube_simulator::{
    Fault, FaultPlan, FaultPlanOptions, Gate, RequestFilter, ResourceKind, ResponseBody, ServerFault,
    Simulator, Verb, WatchInjection,
};
use serde_json::json;
use std::io::Read;

use crate::support::{MAPS, WATCH, config_map, send};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const CBOR: &str = "application/cbor";
const YAML: &str = "application/yaml";

async fn simulator() -> Simulator {
    Simulator::builder().built_in_kinds().serve_cbor().start().await.expect("a loopback port")
}

fn request_as(path: &str, accept: &str) -> Request<Full<Bytes>> {
    Request::get(path).header("accept", accept).body(Full::default()).expect("a request")
}

async fn open(simulator: &Simulator, path: &str, accept: &str) -> ResponseBody {
    let response = send(simulator, request_as(path, accept)).await;
    assert_eq!(response.status(), StatusCode::OK);
    response.into_body()
}

/// Reads a body to its end, and returns whether the end was clean.
async fn read(mut body: ResponseBody) -> (Vec<u8>, bool) {
    let mut read = Vec::new();
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => read.extend_from_slice(&frame.into_data().expect("data")),
            Err(error) => {
                assert_eq!(error.kind(), std::io::ErrorKind::ConnectionAborted);
                assert!(body.frame().await.is_none());
                return (read, false);
            }
        }
    }
    (read, true)
}

/// Returns the next frame of the body of a watch. Each event is one frame.
async fn piece(body: &mut ResponseBody) -> Bytes {
    body.frame().await.expect("the stream continues").expect("no error").into_data().expect("data")
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[tokio::test]
async fn bodies_can_end_at_any_byte_in_every_encoding() {
    let simulator = simulator().await;
    simulator.create(&config_map("a", "one")).unwrap();
    for accept in ["application/json", PROTOBUF, CBOR, YAML] {
        let (whole, _) = read(open(&simulator, MAPS, accept).await).await;
        for bytes in 0..whole.len() {
            let faults = [Fault::close_body_after(bytes as u64), Fault::abort_body_after(bytes as u64)];
            for (fault, cleanly) in faults.into_iter().zip([true, false]) {
                simulator.fail_next(1, RequestFilter::any(), fault);
                let cut = read(open(&simulator, MAPS, accept).await).await;
                assert_eq!(cut, (whole[..bytes].to_vec(), cleanly), "{accept} after {bytes}");
            }
        }
        simulator.fail_next(1, RequestFilter::any(), Fault::close_body_after(whole.len() as u64 + 1));
        assert_eq!(
            read(open(&simulator, MAPS, accept).await).await,
            (whole, true),
            "without a fault the body must be complete"
        );
    }
}

#[tokio::test]
async fn watches_can_stall_within_an_event_in_every_encoding() {
    let simulator = simulator().await;
    simulator.create(&config_map("a", "one")).unwrap();
    for accept in [PROTOBUF, CBOR] {
        let event = piece(&mut open(&simulator, WATCH, accept).await).await;
        let gate = Gate::new();
        simulator.fail_next(1, RequestFilter::any(), Fault::stall_body_after(2, &gate));
        let mut watch = open(&simulator, WATCH, accept).await;
        assert_eq!(piece(&mut watch).await, event[..2]);
        gate.release();
        assert_eq!(piece(&mut watch).await, event[2..]);
    }
}

#[tokio::test]
async fn errors_are_injected_in_the_encoding_of_each_stream() {
    let simulator = simulator().await;
    let mut protobuf = open(&simulator, WATCH, PROTOBUF).await;
    let mut cbor = open(&simulator, WATCH, CBOR).await;
    let mut json = open(&simulator, WATCH, "application/json").await;
    simulator.inject(&RequestFilter::verb(Verb::Watch), &WatchInjection::expired());
    let error = piece(&mut protobuf).await;
    let length = u32::from_be_bytes(error[..4].try_into().unwrap());
    assert_eq!(length as usize, error.len() - 4);
    assert!(
        error[4..].starts_with(b"\x0a\x05ERROR\x12")
            && contains(&error, "k8s\0")
            && contains(&error, "Expired")
    );
    let error = piece(&mut cbor).await;
    assert!(error.starts_with(b"\xd9\xd9\xf7\xa2\x44type\x45ERROR\x46object\xd9\xd9\xf7"), "{error:x?}");
    assert!(piece(&mut json).await.starts_with(br#"{"type":"ERROR","object":{"kind":"Status""#));
    for mut stream in [protobuf, cbor, json] {
        assert!(stream.frame().await.is_none());
    }
}

async fn inject(simulator: &Simulator, fault: ServerFault) {
    let options = FaultPlanOptions { faults: vec![fault], count: 1, ..FaultPlanOptions::default() };
    FaultPlan::from_seed(0, &options).run(simulator, |_| {}).await;
}

#[tokio::test(start_paused = true)]
async fn planned_event_faults_fit_the_encoding() {
    for (accept, no_event) in [
        (PROTOBUF, &b"\0\0\0\x02\x08\x07"[..]),
        (CBOR, b"\xd9\xd9\xf7\xa1\x44type\x07"),
        ("application/json", b"{\"type\":7}\n"),
    ] {
        let simulator = Simulator::builder().built_in_kinds().serve_cbor().start_in_process();
        let mut watch = open(&simulator, WATCH, accept).await;
        inject(&simulator, ServerFault::GarbleNextEvent).await;
        simulator.create(&config_map("a", "one")).unwrap();
        assert_eq!(piece(&mut watch).await, no_event, "{accept}");

        inject(&simulator, ServerFault::CutNextEvent).await;
        let from = simulator.resource_version();
        simulator.create(&config_map("a", "two")).unwrap();
        let (cut, cleanly) = read(watch).await;
        let path = format!("{MAPS}?watch=1&resourceVersion={from}");
        let whole = piece(&mut open(&simulator, &path, accept).await).await;
        assert_eq!((&cut[..], cleanly), (&whole[..whole.len() / 2], false), "{accept}");
    }
}

#[tokio::test]
async fn protobuf_streaming_list_is_compressed() {
    let simulator = Simulator::builder().built_in_kinds().compress_streaming_lists().start_in_process();
    simulator.create(&config_map("a", "one")).unwrap();
    let path = format!(
        "{MAPS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    );
    let mut request = request_as(&path, PROTOBUF);
    request.headers_mut().insert("accept-encoding", "gzip".parse().unwrap());
    let response = send(&simulator, request).await;
    assert_eq!(response.headers()["content-encoding"], "gzip");
    assert_eq!(response.headers()["content-type"], "application/vnd.kubernetes.protobuf;stream=watch");
    let member = piece(&mut response.into_body()).await;
    let mut events = Vec::new();
    GzDecoder::new(&member[..]).read_to_end(&mut events).unwrap();
    assert!(contains(&events, "ADDED") && contains(&events, "BOOKMARK"));
}

#[tokio::test]
async fn invalid_values_are_omitted_from_protobuf() {
    let simulator = simulator().await;
    let mut odd = config_map("a", "odd");
    odd["data"] = json!({ "number": 7 });
    odd["binaryData"] = json!({ "k": "QUFB" });
    odd["immutable"] = json!("perhaps");
    odd["unheard-of"] = json!({ "x": 1 });
    simulator.create(&odd).unwrap();
    let (body, _) = read(open(&simulator, &format!("{MAPS}/odd"), PROTOBUF).await).await;
    assert!(contains(&body, "odd") && contains(&body, "AAA"), "the valid values must be encoded");
    for omitted in ["number", "perhaps", "unheard-of"] {
        assert!(!contains(&body, omitted), "{omitted}");
    }
}

#[tokio::test]
async fn kind_without_message_is_served_in_json() {
    let kind = ResourceKind::cluster_scoped("example.com", "v1", "Widget", "widgets");
    let simulator = Simulator::builder().resource(kind).start_in_process();
    let path = "/apis/example.com/v1/widgets";
    let response = send(&simulator, request_as(path, &format!("{PROTOBUF},application/json"))).await;
    assert_eq!(response.headers()["content-type"], "application/json");
    assert_eq!(send(&simulator, request_as(path, PROTOBUF)).await.status(), StatusCode::NOT_ACCEPTABLE);
}
