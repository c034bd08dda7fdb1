//! Forms of responses: tables, metadata only, and compressed.

use std::io::Read;

use flate2::read::{GzDecoder, MultiGzDecoder};
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt;
use kube_simulator::Simulator;
use serde_json::{Value, json};

use crate::definitions::{cron_tab, cron_tabs, define};
use crate::support::{Lines, body_of, call, config_map, pod, send, simulator};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

fn asking(path: &str, header: (&str, &str)) -> Request<http_body_util::Full<bytes::Bytes>> {
    Request::get(path).header(header.0, header.1).body(Default::default()).expect("a request")
}

async fn table(simulator: &Simulator, path: &str) -> Value {
    body_of(send(simulator, asking(path, ("accept", TABLE))).await).await
}

fn columns(table: &Value) -> Vec<&str> {
    let columns = table["columnDefinitions"].as_array().expect("columns");
    columns.iter().filter(|c| c["priority"] == 0).map(|c| c["name"].as_str().expect("a name")).collect()
}

#[tokio::test]
async fn list_is_served_as_a_table() {
    let simulator = simulator().await;
    simulator.create(&pod("web", "n1", "web")).unwrap();
    let pods = table(&simulator, "/api/v1/namespaces/default/pods").await;
    assert_eq!((&pods["kind"], &pods["apiVersion"]), (&json!("Table"), &json!("meta.k8s.io/v1")));
    assert_eq!(columns(&pods), ["Name", "Ready", "Status", "Restarts", "Age"]);
    let row = &pods["rows"][0];
    assert_eq!(
        row["cells"].as_array().unwrap()[..4],
        [json!("web"), json!("0/1"), json!("Running"), json!("0")]
    );
    assert_eq!(row["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(row["object"]["metadata"]["name"], "web");
    assert!(row["object"].get("spec").is_none());
}

#[tokio::test]
async fn include_object_controls_the_content_of_table_rows() {
    let simulator = simulator().await;
    simulator.create(&pod("web", "n1", "web")).unwrap();
    let path = "/api/v1/pods?includeObject=";
    assert!(table(&simulator, &format!("{path}None")).await["rows"][0].get("object").is_none());
    assert_eq!(
        table(&simulator, &format!("{path}Object")).await["rows"][0]["object"]["spec"]["nodeName"],
        "n1"
    );
    assert_eq!(table(&simulator, &format!("{path}Some")).await["code"], 400);
}

#[tokio::test]
async fn printer_columns_of_a_definition_define_its_table() {
    let simulator = simulator().await;
    define(&simulator, &cron_tabs()).await;
    let path = "/apis/stable.example.com/v1/namespaces/a/crontabs";
    call(&simulator, Method::POST, path, &cron_tab("one")).await;
    let tabs = table(&simulator, path).await;
    assert_eq!(columns(&tabs), ["Name", "Spec", "Replicas"]);
    assert_eq!(tabs["rows"][0]["cells"], json!(["one", "* * *", 2]));
}

#[tokio::test]
async fn only_the_first_table_of_a_watch_names_the_columns() {
    let simulator = simulator().await;
    simulator.create(&pod("one", "n1", "web")).unwrap();
    let request = asking("/api/v1/pods?watch=true&resourceVersion=0", ("accept", TABLE));
    let mut watch = Lines::of(send(&simulator, request).await);
    let first = watch.next().await.unwrap();
    assert_eq!((&first["type"], &first["object"]["kind"]), (&json!("ADDED"), &json!("Table")));
    assert_eq!(columns(&first["object"]).len(), 5);
    simulator.create(&pod("two", "n1", "web")).unwrap();
    let second = watch.next().await.unwrap();
    assert_eq!(second["object"]["columnDefinitions"], json!([]));
    assert_eq!(second["object"]["rows"][0]["cells"][0], "two");
}

#[tokio::test]
async fn a_single_object_can_be_a_table_or_metadata() {
    let simulator = simulator().await;
    simulator.create(&config_map("a", "one")).unwrap();
    let path = "/api/v1/namespaces/a/configmaps/one";
    assert_eq!(table(&simulator, path).await["rows"][0]["cells"][1], 1);
    let wanted = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let metadata = body_of(send(&simulator, asking(path, ("accept", wanted))).await).await;
    assert_eq!(metadata["kind"], "PartialObjectMetadata");
    assert!(metadata.get("data").is_none());
}

#[tokio::test]
async fn unknown_forms_are_not_acceptable() {
    let simulator = simulator().await;
    for accept in [
        "text/html",
        "application/json;as=Table;g=example.com;v=v1",
        "application/json;as=Table;g=meta.k8s.io;v=v2",
    ] {
        let response = send(&simulator, asking("/api/v1/pods", ("accept", accept))).await;
        assert_eq!(response.status(), StatusCode::NOT_ACCEPTABLE, "{accept}");
    }
}

#[tokio::test]
async fn large_lists_are_compressed_on_request() {
    let simulator = simulator().await;
    for n in 0..400 {
        let mut map = config_map("a", &format!("map-{n}"));
        map["data"]["text"] = "x".repeat(1000).into();
        simulator.create(&map).unwrap();
    }
    let path = "/api/v1/namespaces/a/configmaps";
    let compressed = send(&simulator, asking(path, ("accept-encoding", "deflate, gzip;q=0.8"))).await;
    assert_eq!(compressed.headers()["content-encoding"], "gzip");
    let bytes = compressed.into_body().collect().await.unwrap().to_bytes();
    assert!(bytes.len() < 128 * 1024);
    let mut text = String::new();
    // There is only one member: this decoder stops after it.
    GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
    let list: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(list["items"].as_array().map(Vec::len), Some(400));

    let small = send(&simulator, asking(&format!("{path}?limit=1"), ("accept-encoding", "gzip"))).await;
    assert!(!small.headers().contains_key("content-encoding"));
    let plain = send(&simulator, asking(path, ("accept-encoding", "identity"))).await;
    assert!(!plain.headers().contains_key("content-encoding"));
}

#[tokio::test]
async fn a_streaming_list_can_be_compressed_piece_by_piece() {
    let simulator = Simulator::builder().built_in_kinds().compress_streaming_lists().start().await.unwrap();
    simulator.create(&config_map("a", "one")).unwrap();
    let path = "/api/v1/configmaps?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan\
        &allowWatchBookmarks=true";
    let mut response = send(&simulator, asking(path, ("accept-encoding", "gzip"))).await;
    assert_eq!(response.headers()["content-encoding"], "gzip");
    let mut received = Vec::new();
    for expected in [["ADDED", "BOOKMARK"].as_slice(), &["ADDED"]] {
        let piece = response.body_mut().frame().await.unwrap().unwrap().into_data().unwrap();
        let mut text = String::new();
        MultiGzDecoder::new(&piece[..]).read_to_string(&mut text).unwrap();
        let types: Vec<Value> =
            text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["type"].clone()).collect();
        assert_eq!(types, expected);
        received.extend_from_slice(&piece);
        simulator.apply(&config_map("a", "two")).unwrap();
    }
    let plain = send(&simulator, asking("/api/v1/configmaps?watch=true", ("accept-encoding", "gzip"))).await;
    assert!(!plain.headers().contains_key("content-encoding"), "a plain watch");
}
