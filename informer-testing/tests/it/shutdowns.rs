//! A server that is shutting down: what it answers, and that it is there again after a restart.

use http::{Method, StatusCode};
use informer_testing::{RequestFilter, ShutdownAnswer, Simulator};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tower::Service as _;

use crate::support::{Lines, body_of, config_map, get, request, send, simulator};

const MAPS: &str = "/api/v1/namespaces/a/configmaps";

async fn refusal(simulator: &Simulator, method: Method) -> http::Response<informer_testing::ResponseBody> {
    let response = send(simulator, request(method, MAPS, &config_map("a", "one"))).await;
    assert_eq!(response.headers()["connection"], "close");
    response
}

#[tokio::test]
async fn a_server_that_is_shutting_down_refuses_new_requests_until_it_restarts() {
    let simulator = simulator().await;
    let mut watch = Lines::open(&simulator, &format!("{MAPS}?watch=1&resourceVersion=1000")).await;
    simulator.begin_shutdown(ShutdownAnswer::TooManyRequests);
    assert_eq!(watch.next().await, None, "its watches end");
    simulator.wait_for_watches(&RequestFilter::any(), 0).await;
    for method in [Method::GET, Method::POST] {
        let response = refusal(&simulator, method).await;
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(response.headers()["retry-after"], "5");
        assert_eq!(response.headers()["content-type"], "text/plain; charset=utf-8");
        assert!(response.headers().get("x-kubernetes-pf-flowschema-uid").is_none(), "it is not flow control");
    }
    simulator.begin_shutdown(ShutdownAnswer::ServiceUnavailable);
    let response = refusal(&simulator, Method::GET).await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(response.headers()["retry-after"], "1");
    let status = body_of(response).await;
    assert_eq!(
        (status["kind"].as_str(), status["reason"].as_str()),
        (Some("Status"), Some("ServiceUnavailable"))
    );
    assert_eq!(status["message"], "apiserver is shutting down");
    let alive = send(&simulator, request(Method::GET, "/livez", &Value::Null)).await;
    assert_eq!(alive.status(), StatusCode::OK);

    simulator.restart();
    let (code, list) = get(&simulator, MAPS).await;
    assert_eq!(
        (code, list["items"].as_array().map(Vec::len)),
        (StatusCode::OK, Some(0)),
        "refused is not done"
    );
}

#[tokio::test]
async fn each_way_to_restart_ends_a_shutdown() {
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
async fn over_the_socket_a_server_that_is_shutting_down_closes_the_connection_with_its_answer() {
    let simulator = simulator().await;
    simulator.begin_shutdown(ShutdownAnswer::TooManyRequests);
    let address = simulator.url().trim_start_matches("http://").to_owned();
    let mut connection = TcpStream::connect(&address).await.unwrap();
    let asked = format!("GET {MAPS} HTTP/1.1\r\nhost: {address}\r\n\r\n");
    connection.write_all(asked.as_bytes()).await.unwrap();
    let mut answer = String::new();
    // It comes to an end only because the server closes the connection.
    connection.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 429 "), "{answer}");
    assert!(answer.contains("connection: close\r\n") && answer.contains("retry-after: 5\r\n"), "{answer}");
    assert!(answer.ends_with("The apiserver is shutting down, please try again later.\n"), "{answer}");
}

#[tokio::test]
async fn a_simulator_that_has_stopped_answers_nobody_but_that_it_shuts_down() {
    let simulator = simulator().await;
    let mut services = [simulator.service(), simulator.lagging_replica().service()];
    simulator.shutdown().await;
    for service in &mut services {
        for path in [MAPS, "/readyz"] {
            let response = service.call(request(Method::GET, path, &Value::Null)).await.unwrap();
            assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
            assert_eq!(
                (&response.headers()["retry-after"], &response.headers()["connection"]),
                (&"1".parse().unwrap(), &"close".parse().unwrap())
            );
        }
    }
}

#[tokio::test]
async fn another_api_server_serves_on_while_one_shuts_down() {
    let simulator = simulator().await;
    let mut other = simulator.lagging_replica().service();
    simulator.begin_shutdown(ShutdownAnswer::TooManyRequests);
    let response = other.call(request(Method::GET, MAPS, &Value::Null)).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
}
