//! A server whose watch cache is not ready: its errors, lists from etcd, and the recovery.

use std::time::Duration;

use http::{Method, StatusCode};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, WatchParams};
use kube_simulator::{RequestFilter, Simulator};
use serde_json::{Value, json};
use tower::Service as _;

use crate::support::{Lines, MAPS, body_of, config_map, get, names, request, send, simulator};

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
            let status = body_of(response).await;
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
    assert_eq!(status["details"]["retryAfterSeconds"], 1, "the delay must start again at one second");
}

#[tokio::test(start_paused = true)]
async fn etcd_answers_at_once_without_cache() {
    let simulator = Simulator::builder().built_in_kinds().start_in_process();
    simulator.set_watch_cache_ready(false);
    let began = tokio::time::Instant::now();
    for path in
        ["/one?resourceVersion=5000", "?resourceVersion=5000&resourceVersionMatch=NotOlderThan&limit=1"]
    {
        assert_eq!(get(&simulator, &format!("{MAPS}{path}")).await.0, StatusCode::GATEWAY_TIMEOUT);
    }
    let events = "/api/v1/namespaces/a/events";
    assert_eq!(get(&simulator, events).await.0, StatusCode::OK, "events have no watch cache");
    drop(Lines::open(&simulator, &format!("{events}?watch=1")).await);
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test]
async fn client_resumes_once_the_cache_is_ready() {
    let simulator = simulator().await;
    let maps: Api<ConfigMap> = Api::namespaced(simulator.client().unwrap(), "a");
    let mut before = Lines::open(&simulator, &format!("{MAPS}?watch=1&resourceVersion=1000")).await;
    simulator.set_watch_cache_ready(false);
    assert_eq!(before.next().await, None, "open watches must end");
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
async fn each_replica_has_its_own_watch_cache() {
    let simulator = simulator().await;
    simulator.create(&config_map("a", "one")).unwrap();
    let replica = simulator.lagging_replica();
    simulator.set_watch_cache_ready(false);
    let any = request(Method::GET, &format!("{MAPS}?resourceVersion=0"), &Value::Null);
    let response = replica.service().call(any).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(names(&body_of(response).await), ["one"]);
}
