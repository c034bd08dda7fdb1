//! Lists: their state, order, and paging.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, ListParams};
use kube_simulator::{Simulator, StoredObject};
use serde_json::{Value, json};

use crate::support::{call, config_map, get, names, pod, send, simulator};

const MAPS: &str = "/api/v1/namespaces/a/configmaps";

async fn with_maps(names: &[&str]) -> Simulator {
    let simulator = simulator().await;
    for name in names {
        simulator.create(&config_map("a", name)).unwrap();
    }
    simulator
}

fn version_of(list: &Value) -> String {
    list["metadata"]["resourceVersion"].as_str().expect("a resource version").to_owned()
}

fn token_of(list: &Value) -> String {
    list["metadata"]["continue"].as_str().expect("a continue token").to_owned()
}

#[tokio::test]
async fn lists_are_in_key_order_and_say_their_resource_version() {
    let simulator = simulator().await;
    for (namespace, name) in [("b", "x"), ("a", "z"), ("a-b", "y"), ("a", "c")] {
        simulator.create(&config_map(namespace, name)).unwrap();
    }
    let (_, list) = get(&simulator, "/api/v1/configmaps").await;
    // Bytewise, so `a-b/` comes before `a/`.
    assert_eq!(names(&list), ["y", "c", "z", "x"]);
    assert_eq!(version_of(&list), simulator.resource_version().to_string());
    assert_eq!(names(&get(&simulator, MAPS).await.1), ["c", "z"]);
}

#[tokio::test]
async fn an_empty_list_has_empty_items() {
    let simulator = simulator().await;
    let (code, list) = get(&simulator, MAPS).await;
    assert_eq!((code, &list["kind"], &list["items"]), (StatusCode::OK, &json!("ConfigMapList"), &json!([])));
}

#[tokio::test]
async fn the_items_of_builtin_lists_do_not_say_their_type() {
    let simulator = with_maps(&["one"]).await;
    let (_, list) = get(&simulator, MAPS).await;
    assert!(list["items"][0].get("kind").is_none());
    assert!(list["items"][0].get("apiVersion").is_none());
}

#[tokio::test]
async fn pages_show_the_state_of_the_first_page() {
    let simulator = with_maps(&["a", "b", "c", "d"]).await;
    let (_, first) = get(&simulator, &format!("{MAPS}?limit=2")).await;
    assert_eq!(names(&first), ["a", "b"]);
    assert_eq!(first["metadata"]["remainingItemCount"], 2);
    let json = BASE64_URL_SAFE_NO_PAD.decode(token_of(&first)).unwrap();
    let token: Value = serde_json::from_slice(&json).unwrap();
    assert_eq!((&token["v"], &token["start"]), (&json!("meta.k8s.io/v1"), &json!("/b\u{0}")));

    simulator.delete::<ConfigMap>("a/c").unwrap();
    simulator.create(&config_map("a", "bb")).unwrap();
    let (_, second) = get(&simulator, &format!("{MAPS}?limit=2&continue={}", token_of(&first))).await;
    assert_eq!(names(&second), ["c", "d"]);
    assert_eq!(version_of(&second), version_of(&first));
    assert!(second["metadata"].get("continue").is_none());
}

#[tokio::test]
async fn an_expired_page_offers_the_remainder_at_the_latest_state() {
    let simulator = with_maps(&["a", "b", "c"]).await;
    let (_, first) = get(&simulator, &format!("{MAPS}?limit=1")).await;
    simulator.delete::<ConfigMap>("a/b").unwrap();
    simulator.compact();
    let (code, refusal) = get(&simulator, &format!("{MAPS}?limit=1&continue={}", token_of(&first))).await;
    assert_eq!((code, &refusal["reason"]), (StatusCode::GONE, &json!("Expired")));
    let (_, rest) = get(&simulator, &format!("{MAPS}?limit=1&continue={}", token_of(&refusal))).await;
    assert_eq!(names(&rest), ["c"]);
    assert_eq!(version_of(&rest), simulator.resource_version().to_string());
}

#[tokio::test]
async fn no_remaining_count_with_selectors() {
    let simulator = simulator().await;
    for (name, app) in [("a", "web"), ("b", "db"), ("c", "web"), ("d", "web")] {
        simulator.create(&pod(name, "n1", app)).unwrap();
    }
    let (_, list) = get(&simulator, "/api/v1/pods?limit=2&labelSelector=app%3Dweb").await;
    assert_eq!(names(&list), ["a", "c"]);
    assert!(list["metadata"].get("continue").is_some());
    assert!(list["metadata"].get("remainingItemCount").is_none());
}

#[tokio::test]
async fn limit_is_ignored_for_any_and_exact_lists_show_the_past() {
    let simulator = with_maps(&["a", "b"]).await;
    let then = simulator.resource_version();
    simulator.delete::<ConfigMap>("a/a").unwrap();
    simulator.create(&config_map("a", "c")).unwrap();
    assert_eq!(names(&get(&simulator, &format!("{MAPS}?limit=1&resourceVersion=0")).await.1), ["b", "c"]);
    let exact = format!("{MAPS}?resourceVersion={then}&resourceVersionMatch=Exact");
    assert_eq!(names(&get(&simulator, &exact).await.1), ["a", "b"]);
    let legacy = format!("{MAPS}?resourceVersion={then}&limit=5");
    assert_eq!(names(&get(&simulator, &legacy).await.1), ["a", "b"]);
    let newer = format!("{MAPS}?resourceVersion={then}&resourceVersionMatch=NotOlderThan");
    assert_eq!(names(&get(&simulator, &newer).await.1), ["b", "c"]);
    simulator.compact();
    assert_eq!(get(&simulator, &exact).await.0, StatusCode::GONE);
}

#[tokio::test(start_paused = true)]
async fn future_resource_version_times_out_with_a_cause() {
    let simulator = simulator().await;
    let started = tokio::time::Instant::now();
    let request =
        crate::support::request(Method::GET, &format!("{MAPS}?resourceVersion=999999"), &Value::Null);
    let response = send(&simulator, request).await;
    assert_eq!(started.elapsed().as_secs(), 3);
    assert_eq!(response.status(), StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(response.headers()["retry-after"], "1");
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let refusal: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(refusal["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
}

#[tokio::test]
async fn list_waits_for_a_version_that_is_reached_soon() {
    let simulator = simulator().await;
    let next = simulator.resource_version() + 1;
    let path = format!("{MAPS}?resourceVersion={next}");
    let write = async { simulator.create(&config_map("a", "one")).unwrap() };
    let ((code, list), _) = tokio::join!(get(&simulator, &path), write);
    assert_eq!(code, StatusCode::OK);
    assert_eq!(names(&list), ["one"]);
}

#[tokio::test]
async fn invalid_options_are_refused() {
    let simulator = simulator().await;
    for (query, code) in [
        ("resourceVersionMatch=Exact", 422),
        ("resourceVersion=0&resourceVersionMatch=Exact", 422),
        ("resourceVersion=5&resourceVersionMatch=Sometimes", 422),
        ("sendInitialEvents=true", 422),
        ("limit=many", 400),
        ("resourceVersion=later", 400),
        ("continue=%21%21", 400),
        ("labelSelector=a%20b", 400),
        ("fieldSelector=spec.color%3Dred", 400),
        ("watch=1&sendInitialEvents=true", 422),
        ("watch=1&resourceVersionMatch=NotOlderThan", 422),
        ("watch=1&resourceVersion=later", 500),
    ] {
        let (actual, refusal) = get(&simulator, &format!("{MAPS}?{query}")).await;
        assert_eq!(actual.as_u16(), code, "{query}: {refusal}");
        assert_eq!(refusal["kind"], "Status");
    }
}

#[tokio::test]
async fn selectors_select_pods_by_label_and_field() {
    let simulator = simulator().await;
    for (name, node, app) in [("a", "n1", "web"), ("b", "n2", "web"), ("c", "n1", "db")] {
        simulator.create(&pod(name, node, app)).unwrap();
    }
    let pods: Api<Pod> = Api::all(simulator.client().unwrap());
    let params = ListParams::default().labels("app in (web)").fields("spec.nodeName=n1,status.phase=Running");
    let found = pods.list(&params).await.unwrap();
    assert_eq!(found.items.len(), 1);
    assert_eq!(found.items[0].metadata.name.as_deref(), Some("a"));
}

#[tokio::test]
async fn metadata_only_list_is_served_on_request() {
    let simulator = simulator().await;
    simulator.create(&pod("a", "n1", "web")).unwrap();
    let pods: Api<Pod> = Api::default_namespaced(simulator.client().unwrap());
    let list = pods.list_metadata(&ListParams::default()).await.unwrap();
    assert_eq!(list.items[0].metadata.name.as_deref(), Some("a"));
    let (_, full) = call(&simulator, Method::GET, "/api/v1/namespaces/default/pods/a", &Value::Null).await;
    assert!(full.get("spec").is_some());
    let request = Request::get("/api/v1/namespaces/default/pods/a")
        .header("accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
        .body(Full::default())
        .unwrap();
    let body = send(&simulator, request).await.into_body().collect().await.unwrap().to_bytes();
    let partial: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((&partial["kind"], partial.get("spec")), (&json!("PartialObjectMetadata"), None));
    let request = Request::get(MAPS).header("accept", "text/html").body(Full::default()).unwrap();
    assert_eq!(send(&simulator, request).await.status(), StatusCode::NOT_ACCEPTABLE);
}

#[tokio::test]
async fn long_lists_are_sent_in_pieces_and_complete() {
    let simulator = simulator().await;
    let maps = simulator.objects_of::<ConfigMap>().unwrap();
    for index in 0..300 {
        let mut map = config_map("a", &format!("m{index:03}"));
        map["data"]["filler"] = "x".repeat(1024).into();
        maps.create(&map).unwrap();
    }
    let listed: Api<ConfigMap> = Api::all(simulator.client().unwrap());
    assert_eq!(listed.list(&ListParams::default()).await.unwrap().items.len(), 300);
}

#[tokio::test]
async fn every_past_state_can_be_listed_exactly() {
    let simulator = simulator().await;
    let maps = simulator.objects_of::<ConfigMap>().unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    let mut states = Vec::new();
    for round in 0..200 {
        let (namespace, name) = (["a", "a-b", "b"][random.usize(..3)], format!("m{}", random.u8(..8)));
        let mut map = config_map(namespace, &name);
        map["data"]["round"] = round.to_string().into();
        if random.u8(..3) == 0 && maps.get(&format!("{namespace}/{name}")).is_ok() {
            maps.delete(&format!("{namespace}/{name}")).unwrap();
        } else {
            maps.apply(&map).unwrap();
        }
        let state: Vec<u64> = maps.list().iter().map(StoredObject::resource_version).collect();
        states.push((simulator.resource_version(), state));
    }
    for (version, state) in states {
        let path = format!("/api/v1/configmaps?resourceVersion={version}&resourceVersionMatch=Exact");
        let (_, list) = get(&simulator, &path).await;
        let items = list["items"].as_array().unwrap().iter();
        let listed: Vec<u64> = items
            .map(|item| item["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap())
            .collect();
        assert_eq!(listed, state, "at {version}");
    }
}
