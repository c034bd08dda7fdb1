//! A server that shuts down: its responses, and its state after a restart.

use std::time::Duration;

use http::{Method, StatusCode};
use kube_simulator::{RequestFilter, ShutdownAnswer, Simulator};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;
use tower::Service as _;

use crate::support::{Lines, MAPS, config_map, connect, get, request, send, simulator};

async fn refusal(simulator: &Simulator, method: Method) -> http::Response<kube_simulator::ResponseBody> {
    send(simulator, request(method, MAPS, &config_map("a", "one"))).await
}

#[tokio::test]
async fn stopping_server_refuses_requests_until_restart() {
    let simulator = simulator().await;
    let mut watch = Lines::open(&simulator, &format!("{MAPS}?watch=1&resourceVersion=1000")).await;
    simulator.begin_shutdown(ShutdownAnswer::TooManyRequests);
    assert_eq!(watch.next().await, None, "open watches must end");
    simulator.wait_for_watches(&RequestFilter::any(), 0).await;
    for method in [Method::GET, Method::POST] {
        let response = refusal(&simulator, method).await;
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    }
    simulator.begin_shutdown(ShutdownAnswer::ServiceUnavailable);
    let response = refusal(&simulator, Method::GET).await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(response.headers().get("connection").is_none());
    assert_eq!(health(&simulator, "/livez").await, StatusCode::OK);

    simulator.restart();
    let (code, list) = get(&simulator, MAPS).await;
    assert_eq!(
        (code, list["items"].as_array().map(Vec::len)),
        (StatusCode::OK, Some(0)),
        "a refused request must have no effect"
    );
}

async fn health(simulator: &Simulator, path: &str) -> StatusCode {
    send(simulator, request(Method::GET, path, &Value::Null)).await.status()
}

#[tokio::test]
async fn server_in_shutdown_delay_serves_but_is_not_ready() {
    let simulator = simulator().await;
    let mut watch = Lines::open(&simulator, &format!("{MAPS}?watch=1&resourceVersion=1000")).await;
    simulator.begin_shutdown(ShutdownAnswer::Usual);
    assert_eq!(health(&simulator, "/readyz").await, StatusCode::INTERNAL_SERVER_ERROR);
    for path in ["/readyz/ping", "/healthz"] {
        assert_eq!(health(&simulator, path).await, StatusCode::OK);
    }
    simulator.create(&config_map("a", "one")).unwrap();
    assert_eq!(watch.brief().await.unwrap().0, "ADDED");
    let mut other = simulator.lagging_replica().service();
    let ready = other.call(request(Method::GET, "/readyz", &Value::Null)).await.unwrap();
    assert_eq!(ready.status(), StatusCode::OK);
    simulator.restart();
    assert_eq!(watch.next().await, None);
    assert_eq!(health(&simulator, "/readyz").await, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn stopping_server_ends_watches_one_by_one() {
    let simulator = Simulator::builder().built_in_kinds().start_in_process();
    let mut watches = Vec::new();
    for _ in 0..3 {
        watches.push(Lines::open(&simulator, &format!("{MAPS}?watch=1&resourceVersion=1000")).await);
    }
    simulator.create(&config_map("a", "one")).unwrap();
    simulator.begin_shutdown(ShutdownAnswer::TooManyRequests);
    let began = Instant::now();
    let mut ends = Vec::new();
    for mut watch in watches {
        assert_eq!(watch.brief().await.unwrap().1, "one", "earlier events must still be sent");
        assert_eq!(watch.next().await, None);
        ends.push(began.elapsed());
    }
    assert!(ends.is_sorted_by(|one, next| one < next), "{ends:?}");
}

#[tokio::test(start_paused = true)]
async fn stopping_server_without_drain_keeps_watches_a_minute() {
    let simulator = Simulator::builder().built_in_kinds().start_in_process();
    let mut watch = Lines::open(&simulator, &format!("{MAPS}?watch=1&resourceVersion=1000")).await;
    simulator.begin_shutdown(ShutdownAnswer::ServiceUnavailable);
    let began = Instant::now();
    simulator.create(&config_map("a", "one")).unwrap();
    assert_eq!(watch.brief().await.unwrap().1, "one");
    assert_eq!(watch.next().await, None);
    assert_eq!(began.elapsed(), Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn watch_opened_during_a_shutdown_ends() {
    let simulator = Simulator::builder().built_in_kinds().start_in_process();
    let late = format!(
        "{MAPS}?watch=1&resourceVersion=1001&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    );
    let (opened, ()) = tokio::join!(Lines::open(&simulator, &late), async {
        tokio::task::yield_now().await;
        simulator.begin_shutdown(ShutdownAnswer::TooManyRequests);
        simulator.create(&config_map("a", "one")).unwrap();
    });
    let mut watch = opened;
    assert_eq!(watch.brief().await.unwrap().1, "one");
    assert_eq!(watch.next().await, None);
    simulator.restart();
    let mut watch = Lines::open(&simulator, &late).await;
    assert_eq!(watch.brief().await.unwrap().1, "one");
    simulator.create(&config_map("a", "two")).unwrap();
    assert_eq!(watch.brief().await.unwrap().1, "two", "a watch after the restart must stay open");
}

#[tokio::test(start_paused = true)]
async fn watch_stays_open_when_a_shutdown_answers_as_usual() {
    let simulator = Simulator::builder().built_in_kinds().start_in_process();
    simulator.begin_shutdown(ShutdownAnswer::TooManyRequests);
    simulator.begin_shutdown(ShutdownAnswer::Usual);
    let mut watch = Lines::open(&simulator, &format!("{MAPS}?watch=1&resourceVersion=1000")).await;
    for name in ["one", "two"] {
        simulator.create(&config_map("a", name)).unwrap();
        assert_eq!(watch.brief().await.expect("the watch stays open").1, name);
    }
}

#[tokio::test]
async fn every_kind_of_restart_ends_a_shutdown() {
    let simulator = simulator().await;
    let backup = simulator.backup();
    let ways: [&dyn Fn(); 4] = [
        &|| simulator.restart(),
        &|| simulator.restart_without_history(),
        &|| simulator.restore(&backup),
        &|| simulator.restore_ahead(&backup, 5),
    ];
    for restart in ways {
        simulator.begin_shutdown(ShutdownAnswer::ServiceUnavailable);
        assert_eq!(get(&simulator, MAPS).await.0, StatusCode::SERVICE_UNAVAILABLE);
        restart();
        assert_eq!(get(&simulator, MAPS).await.0, StatusCode::OK);
    }
}

#[tokio::test]
async fn stopping_server_closes_connections_with_its_answer() {
    let simulator = simulator().await;
    simulator.begin_shutdown(ShutdownAnswer::TooManyRequests);
    let mut connection = connect(&simulator).await;
    let raw_request = format!("GET {MAPS} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    connection.write_all(raw_request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    // The read ends only because the server closes the connection.
    connection.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 429 "), "{answer}");
    assert!(answer.contains("connection: close\r\n") && answer.contains("retry-after: 5\r\n"), "{answer}");
    assert!(answer.ends_with("The apiserver is shutting down, please try again later.\n"), "{answer}");
}

#[tokio::test]
async fn stopped_simulator_refuses_requests() {
    let simulator = simulator().await;
    let mut services = [simulator.service(), simulator.lagging_replica().service()];
    simulator.shutdown().await;
    for service in &mut services {
        for path in [MAPS, "/readyz"] {
            let response = service.call(request(Method::GET, path, &Value::Null)).await.unwrap();
            assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
            assert_eq!(response.headers()["retry-after"], "1");
        }
    }
}

#[tokio::test]
async fn replica_keeps_serving_during_a_shutdown() {
    let simulator = simulator().await;
    let mut other = simulator.lagging_replica().service();
    simulator.begin_shutdown(ShutdownAnswer::TooManyRequests);
    let response = other.call(request(Method::GET, MAPS, &Value::Null)).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
}
