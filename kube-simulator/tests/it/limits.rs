//! The cost of requests: a small request must not use much memory or time.

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use kube_simulator::Simulator;
use serde_json::{Value, json};

use crate::definitions::{cron_tabs, define};
use crate::support::{config_map, get, patch, send};

const MAP: &str = "/api/v1/namespaces/a/configmaps/one";
const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/a/deployments/web";
const REJECTED: &str = "the server rejected our request due to an error in our request";

fn with_a_map() -> Simulator {
    let simulator = Simulator::builder().built_in_kinds().start_in_process();
    simulator.create(&config_map("a", "one")).unwrap();
    simulator
}

async fn json_patch(simulator: &Simulator, operations: Value) -> (StatusCode, Value) {
    patch(simulator, MAP, "json-patch", &operations).await
}

/// Sends a body, and returns the code and the length of the whole response.
async fn post(simulator: &Simulator, path: &str, media_type: &str, body: String) -> (StatusCode, usize) {
    let request = Request::post(path).header("content-type", media_type).body(Full::new(Bytes::from(body)));
    let response = send(simulator, request.unwrap()).await;
    let headers: usize =
        response.headers().iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    let code = response.status();
    (code, headers + response.into_body().collect().await.unwrap().to_bytes().len())
}

#[tokio::test]
async fn json_patch_with_exponential_growth_is_refused() {
    let simulator = with_a_map();
    // Each copy doubles the data, so a patch of less than two kilobytes multiplies it by 268
    // million.
    let copies = (0..28).map(|at| json!({ "op": "copy", "from": "/data", "path": format!("/data/x{at}") }));
    let (code, refusal) = json_patch(&simulator, copies.collect()).await;
    assert_eq!((code, &refusal["message"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!(REJECTED)));
    assert_eq!(get(&simulator, MAP).await.1["data"], json!({ "answer": "42" }));
}

#[tokio::test]
async fn json_patch_that_nests_too_deeply_is_refused() {
    let simulator = with_a_map();
    let mut path = "/data".to_owned();
    let mut operations = Vec::new();
    for _ in 0..150 {
        path.push_str("/a");
        operations.push(json!({ "op": "add", "path": path, "value": {} }));
    }
    let (code, refusal) = json_patch(&simulator, operations.clone().into()).await;
    assert_eq!(code, StatusCode::BAD_REQUEST, "{refusal}");
    operations.truncate(90);
    assert_eq!(json_patch(&simulator, operations.into()).await.0, StatusCode::OK);
    // The patch copies the value into itself in one operation.
    let deepest = format!("/data{}/b", "/a".repeat(90));
    let copy = json!([{ "op": "copy", "from": "/data", "path": deepest }]);
    assert_eq!(json_patch(&simulator, copy).await.0, StatusCode::BAD_REQUEST);
    let moved = json!([{ "op": "move", "from": "/data", "path": "/metadata/annotations/x/y/z/1/2/3/4" }]);
    assert!(json_patch(&simulator, moved).await.0.is_client_error());
    assert!(get(&simulator, MAP).await.1["data"]["a"].is_object());
}

#[tokio::test]
async fn object_that_is_nested_too_deeply_is_refused() {
    let simulator = with_a_map();
    let nested = format!("{}1{}", "{\"a\":".repeat(110), "}".repeat(110));
    let body = format!(r#"{{"metadata":{{"name":"deep"}},"data":{nested}}}"#);
    let path = "/api/v1/namespaces/a/configmaps";
    let (code, _) = post(&simulator, path, "application/json", body).await;
    assert_eq!(code, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn direct_write_that_is_nested_too_deeply_is_refused() {
    let simulator = with_a_map();
    let nested = |levels| (0..levels).fold(json!(1), |inner, _| json!({ "a": inner }));
    let mut map = config_map("a", "one");
    map["data"] = nested(130);
    assert!(simulator.update(&map).is_err());
    map["metadata"]["name"] = "two".into();
    assert!(simulator.create(&map).is_err());
    map["data"] = nested(90);
    let stored = simulator.create(&map).unwrap();
    assert_eq!(stored.value()["data"], nested(90));
}

#[tokio::test]
async fn many_controlling_owners_lead_to_a_short_error() {
    let simulator = with_a_map();
    let owner = |at| json!({ "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": format!("{at}"), "controller": true });
    let owners: Vec<Value> = (0..2_000).map(owner).collect();
    let body = json!({ "metadata": { "name": "owned", "ownerReferences": owners } });
    let path = "/api/v1/namespaces/a/configmaps";
    let (code, length) = post(&simulator, path, "application/json", body.to_string()).await;
    assert_eq!(code, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(length < 2_000_000, "{length}");
}

#[tokio::test]
async fn errors_below_a_long_path_lead_to_a_short_error() {
    let simulator = with_a_map();
    let mut definition = cron_tabs();
    let numbers = json!({ "type": "array", "items": { "type": "integer" } });
    let by_name = json!({ "type": "object", "additionalProperties": numbers });
    let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["properties"]["lists"] = by_name;
    define(&simulator, &definition).await;
    let body = json!({
        "apiVersion": "stable.example.com/v1",
        "kind": "CronTab",
        "metadata": { "name": "t" },
        "spec": { "cronSpec": "* * * * *", "lists": { "x".repeat(50_000): vec!["wrong"; 20_000] } },
    });
    let path = "/apis/stable.example.com/v1/namespaces/a/crontabs";
    let (code, length) = post(&simulator, path, "application/json", body.to_string()).await;
    assert_eq!(code, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(length < 2_000_000, "{length}");
}

#[tokio::test]
async fn warnings_that_are_too_long_are_shortened() {
    let simulator = with_a_map();
    define(&simulator, &cron_tabs()).await;
    let mut body = json!({
        "apiVersion": "stable.example.com/v1",
        "kind": "CronTab",
        "metadata": { "name": "t" },
        "spec": { "cronSpec": "* * * * *" },
    });
    for at in 0..500 {
        body["spec"][format!("{at}{}", "y".repeat(1_000))] = 1.into();
    }
    let path = "/apis/stable.example.com/v1/namespaces/a/crontabs";
    let (code, length) = post(&simulator, path, "application/json", body.to_string()).await;
    assert_eq!(code, StatusCode::CREATED);
    assert!(length < 10_000, "{length}");
}

#[tokio::test]
async fn yaml_whose_aliases_multiply_is_refused() {
    let simulator = with_a_map();
    let mut yaml = "metadata: {name: laughs}\na: &a [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for (inner, outer) in ('a'..='i').zip('b'..='j') {
        yaml.push_str(&format!("{outer}: &{outer} [{}]\n", vec![format!("*{inner}"); 10].join(", ")));
    }
    let path = "/api/v1/namespaces/a/configmaps";
    let (code, _) = post(&simulator, path, "application/yaml", yaml).await;
    assert_eq!(code, StatusCode::BAD_REQUEST);
}

/// A merge that compares all pairs of elements would take minutes.
#[tokio::test]
async fn long_keyed_lists_are_merged_in_linear_time() {
    const LENGTH: usize = 3_000;
    let simulator = with_a_map();
    let deployment = |count: usize, value: &str| {
        let env: Vec<Value> =
            (0..count).map(|at| json!({ "name": format!("v{at}"), "value": value })).collect();
        let containers = json!([{ "name": "main", "env": env }]);
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": { "name": "web" },
            "spec": { "template": { "spec": { "containers": containers } } },
        })
    };
    let path = format!("{DEPLOYMENT}?fieldManager=one");
    for (count, value, code) in [(LENGTH, "a", 201), (LENGTH, "b", 200), (1, "c", 200)] {
        let (given, applied) = patch(&simulator, &path, "apply-patch", &deployment(count, value)).await;
        assert_eq!(given.as_u16(), code, "{}", applied["message"]);
        let env = &applied["spec"]["template"]["spec"]["containers"][0]["env"];
        assert_eq!(env.as_array().map(Vec::len), Some(count));
    }
    for value in ["d", "e"] {
        let (code, merged) =
            patch(&simulator, DEPLOYMENT, "strategic-merge-patch", &deployment(LENGTH, value)).await;
        assert_eq!(code, StatusCode::OK, "{}", merged["message"]);
    }
}
