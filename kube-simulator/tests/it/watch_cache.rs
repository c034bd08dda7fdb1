//! A server whose watch cache is not ready: its errors, the lists from etcd, and the recovery.

use std::time::Duration;

use http::{Method, StatusCode};
use http_body_util::{BodyExt, Empty};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, WatchParams};
use kube_simulator::{RequestFilter, Simulator};
use serde_json::{Value, json};
use tower::Service as _;

use crate::support::{Lines, config_map, get, names, request, send, simulator};

const MAPS: &str = "/api/v1/namespaces/a/configmaps";

async fn with_three_maps() -> Simulator {
    let simulator = simulator().await;
    for name in ["one", "two", "three"] {
        simulator.create(&config_map("a", name)).unwrap();
    }
    simulator
}

async fn code(simulator: &Simulator, query: &str) -> StatusCode {
    send(simulator, request(Method::GET, &format!("{MAPS}?{query}"), &Value::Null)).await.status()
}

#[tokio::test(start_paused = true)]
async fn unready_cache_raises_retry_after() {
    let simulator = Simulator::builder().built_in_kinds().start_in_process();
    simulator.set_watch_cache_ready(false);
    for (seconds, retry_after) in [(0, 1), (11, 1), (1, 2), (8, 3), (36, 28), (1, 30), (3600, 30)] {
        tokio::time::advance(Duration::from_secs(seconds)).await;
        // A second call has no effect.
        simulator.set_watch_cache_ready(false);
        for query in ["resourceVersion=0", "watch=1&resourceVersion=1000"] {
            let path = format!("{MAPS}?{query}");
            let response = send(&simulator, request(Method::GET, &path, &Value::Null)).await;
            assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
            assert_eq!(response.headers()["retry-after"], retry_after.to_string());
            let status = crate::support::body_of(response).await;
            let expected = json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 429,
                "reason": "TooManyRequests", "message": "storage is (re)initializing",
                "details": { "retryAfterSeconds": retry_after },
            });
            assert_eq!(status, expected, "{query}");
        }
    }
    simulator.set_watch_cache_ready(true);
    simulator.set_watch_cache_ready(false);
    let status = get(&simulator, MAPS).await.1;
    assert_eq!(status["details"]["retryAfterSeconds"], 1, "it begins anew");
}

#[tokio::test]
async fn unready_cache_refuses_its_lists_and_watches() {
    let simulator = with_three_maps().await;
    simulator.set_watch_cache_ready(false);
    for query in [
        "",
        "resourceVersion=0",
        "resourceVersion=0&resourceVersionMatch=NotOlderThan",
        "resourceVersion=1001",
        "resourceVersion=1001&resourceVersionMatch=NotOlderThan",
        "limit=2&labelSelector=a%3Db",
        "resourceVersion=0&limit=2&fieldSelector=metadata.name%3Done",
        "watch=1",
        "watch=1&resourceVersion=0",
        "watch=1&resourceVersion=1",
        "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
    ] {
        assert_eq!(code(&simulator, query).await, StatusCode::TOO_MANY_REQUESTS, "{query}");
    }
    // Errors in the request take precedence.
    let wrong = "watch=1&resourceVersionMatch=NotOlderThan";
    assert_eq!(code(&simulator, wrong).await, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(code(&simulator, "resourceVersion=x").await, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn limited_lists_bypass_an_unready_cache() {
    let simulator = with_three_maps().await;
    let (_, whole) = get(&simulator, &format!("{MAPS}?resourceVersion=0&limit=2")).await;
    assert_eq!(names(&whole), ["one", "three", "two"], "the cache ignores the limit");
    simulator.set_watch_cache_ready(false);
    for version in ["resourceVersion=0&", ""] {
        let (code, page) = get(&simulator, &format!("{MAPS}?{version}limit=2")).await;
        assert_eq!((code, names(&page)), (StatusCode::OK, vec!["one".to_owned(), "three".to_owned()]));
        assert_eq!(page["metadata"]["remainingItemCount"], 1);
        let token = page["metadata"]["continue"].as_str().unwrap();
        let next = format!("{MAPS}?limit=2&continue={token}");
        assert_eq!(names(&get(&simulator, &next).await.1), ["two"]);
        simulator.set_watch_cache_ready(true);
        assert_eq!(names(&get(&simulator, &next).await.1), ["two"], "the cache takes the token too");
        simulator.set_watch_cache_ready(false);
    }
}

#[tokio::test(start_paused = true)]
async fn other_requests_bypass_an_unready_cache() {
    let simulator = Simulator::builder().built_in_kinds().start_in_process();
    simulator.create(&config_map("a", "one")).unwrap();
    simulator.set_watch_cache_ready(false);
    for query in ["resourceVersion=1000&resourceVersionMatch=Exact", "resourceVersion=1000&limit=5"] {
        let (code, list) = get(&simulator, &format!("{MAPS}?{query}")).await;
        assert_eq!((code, names(&list)), (StatusCode::OK, Vec::new()), "{query}");
    }
    for query in ["", "?resourceVersion=0", "?resourceVersion=1001"] {
        assert_eq!(get(&simulator, &format!("{MAPS}/one{query}")).await.0, StatusCode::OK, "{query}");
    }
    let began = tokio::time::Instant::now();
    for path in
        ["/one?resourceVersion=5000", "?resourceVersion=5000&resourceVersionMatch=NotOlderThan&limit=1"]
    {
        let (code, status) = get(&simulator, &format!("{MAPS}{path}")).await;
        assert_eq!(code, StatusCode::GATEWAY_TIMEOUT);
        assert_eq!(status["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
        assert_eq!(status["details"].get("retryAfterSeconds"), None);
    }
    assert_eq!(began.elapsed(), Duration::ZERO, "etcd does not wait");
    let events = "/api/v1/namespaces/a/events";
    assert_eq!(get(&simulator, events).await.0, StatusCode::OK);
    drop(Lines::open(&simulator, &format!("{events}?watch=1")).await);
    let (code, _) = crate::support::call(&simulator, Method::POST, MAPS, &config_map("a", "two")).await;
    assert_eq!(code, StatusCode::CREATED);
}

#[tokio::test]
async fn client_resumes_once_the_cache_is_ready() {
    let simulator = simulator().await;
    let maps: Api<ConfigMap> = Api::namespaced(simulator.client().unwrap(), "a");
    let mut before = Lines::open(&simulator, &format!("{MAPS}?watch=1&resourceVersion=1000")).await;
    simulator.set_watch_cache_ready(false);
    assert_eq!(before.next().await, None, "its watches end");
    simulator.create(&config_map("a", "meanwhile")).unwrap();
    match maps.watch(&WatchParams::default(), "1000").await.map(|_| ()).unwrap_err() {
        kube::Error::Api(status) => assert_eq!(status.code, 429),
        other => panic!("{other}"),
    }
    assert!(maps.list(&ListParams::default().at("0")).await.is_err());
    simulator.set_watch_cache_ready(true);
    assert_eq!(maps.list(&ListParams::default().at("0")).await.unwrap().items.len(), 1);
    let mut after = Lines::open(&simulator, &format!("{MAPS}?watch=1&resourceVersion=1000")).await;
    assert_eq!(after.brief().await.unwrap().1, "meanwhile");
    simulator.wait_for_watches(&RequestFilter::any(), 1).await;
}

#[tokio::test]
async fn a_replica_has_a_watch_cache_of_its_own() {
    let simulator = with_three_maps().await;
    let replica = simulator.lagging_replica();
    simulator.set_watch_cache_ready(false);
    let any =
        http::Request::get(format!("{MAPS}?resourceVersion=0")).body(Empty::<bytes::Bytes>::new()).unwrap();
    let response = replica.service().call(any).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(names(&serde_json::from_slice(&body).unwrap()).len(), 3);
}
