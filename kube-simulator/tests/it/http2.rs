//! HTTP/2: concurrent requests on one connection, and `GOAWAY`.

use bytes::Bytes;
use h2::RecvStream;
use h2::client::{SendRequest, handshake};
use http::{Method, Request, Response, StatusCode};
use kube_simulator::{RequestFilter, ShutdownAnswer, Simulator};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinHandle;

use crate::support::{MAPS, WATCH, config_map, connect, simulator};

/// An HTTP/2 connection of a client, and its task, which ends with the connection.
struct Connection {
    sender: SendRequest<Bytes>,
    ended: JoinHandle<Result<(), h2::Error>>,
    origin: String,
}

impl Connection {
    async fn open(simulator: &Simulator) -> Self {
        let origin = simulator.url();
        let (sender, connection) = handshake(connect(simulator).await).await.unwrap();
        Self { sender, ended: tokio::spawn(connection), origin }
    }

    async fn send(
        &mut self,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<Response<RecvStream>, h2::Error> {
        let mut sender = self.sender.clone().ready().await?;
        let request = Request::builder().method(method).uri(format!("{}{path}", self.origin));
        let (response, mut stream) = sender.send_request(request.body(()).unwrap(), body.is_null())?;
        if !body.is_null() {
            stream.send_data(body.to_string().into(), true)?;
        }
        response.await
    }

    async fn get(&mut self, path: &str) -> Response<RecvStream> {
        self.send(Method::GET, path, &Value::Null).await.unwrap()
    }

    /// Waits until the connection accepts no more requests.
    async fn until_refusing(&mut self) {
        while self.sender.clone().ready().await.is_ok() {
            tokio::task::yield_now().await;
        }
    }

    /// Waits until the connection accepts no more requests and has ended cleanly.
    async fn until_ended(mut self) {
        self.until_refusing().await;
        drop(self.sender);
        self.ended.await.unwrap().unwrap();
    }
}

/// Returns the object name in the next event of a watch, if there is one.
async fn next_name(watch: &mut RecvStream) -> Option<String> {
    let line = watch.data().await?.unwrap();
    // The server ends the stream with an empty frame, which is not an event.
    let event: Value = serde_json::from_slice(&line).ok().filter(|_| !line.is_empty())?;
    Some(event["object"]["metadata"]["name"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn stopping_simulator_ends_http_2_connections() {
    let simulator = simulator().await;
    let mut connection = Connection::open(&simulator).await;
    let mut watch = connection.get(WATCH).await.into_body();
    simulator.shutdown().await;
    assert_eq!(next_name(&mut watch).await, None);
    connection.until_ended().await;
}

#[tokio::test]
async fn goaway_keeps_watches_and_refuses_new_requests() {
    let simulator = Simulator::builder().built_in_kinds().goaway_chance(1.0).start().await.unwrap();
    let mut connection = Connection::open(&simulator).await;
    let mut watch = connection.get(WATCH).await.into_body();
    connection.until_refusing().await;
    assert!(!connection.ended.is_finished(), "the watch must keep the connection open");
    let mut other = Connection::open(&simulator).await;
    let created = other.send(Method::POST, MAPS, &config_map("a", "one")).await.unwrap();
    assert_eq!(created.status(), StatusCode::CREATED);
    drop(created);
    other.until_ended().await;
    assert_eq!(next_name(&mut watch).await.unwrap(), "one");
    simulator.close_watches();
    assert_eq!(next_name(&mut watch).await, None);
    connection.until_ended().await;
}

#[tokio::test]
async fn random_goaway_needs_the_builder_and_http_2() {
    let simulator = simulator().await;
    let mut connection = Connection::open(&simulator).await;
    for _ in 0..100 {
        assert_eq!(connection.get(MAPS).await.status(), StatusCode::OK);
    }
    let simulator = Simulator::builder().built_in_kinds().goaway_chance(1.0).start().await.unwrap();
    let mut stream = connect(&simulator).await;
    for _ in 0..2 {
        stream.write_all(b"GET /livez HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        let mut answer = [0; 512];
        let length = stream.read(&mut answer).await.unwrap();
        let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("ok"), "{answer}");
    }
}

#[tokio::test]
async fn goaway_frequency_matches_the_configured_chance() {
    let simulator = Simulator::builder().built_in_kinds().goaway_chance(0.25).start().await.unwrap();
    let mut connections = 0;
    let mut connection = Connection::open(&simulator).await;
    for _ in 0..200 {
        // A request that arrives after a GOAWAY gets no response and must be sent again.
        while connection.send(Method::GET, "/livez", &Value::Null).await.is_err() {
            connections += 1;
            connection = Connection::open(&simulator).await;
        }
    }
    assert!((25..75).contains(&connections), "{connections}");
}

#[tokio::test]
async fn one_connection_serves_a_hundred_concurrent_requests() {
    let simulator = simulator().await;
    let mut connection = Connection::open(&simulator).await;
    // The server's settings arrive before the first response, so the client has them after this
    // request.
    drop(connection.get("/livez").await);
    let streams = connection.sender.clone().ready().await.unwrap();
    assert_eq!(streams.current_max_send_streams(), 100);
}

#[tokio::test]
async fn draining_ends_connections_after_running_requests() {
    let simulator = simulator().await;
    let mut busy = Connection::open(&simulator).await;
    let mut watch = busy.get(WATCH).await.into_body();
    let mut idle = Connection::open(&simulator).await;
    drop(idle.get(MAPS).await);
    let mut older = connect(&simulator).await;
    older.write_all(b"GET /livez HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    assert!(older.read(&mut [0; 512]).await.unwrap() > 0);

    simulator.drain_connections();
    idle.until_ended().await;
    assert_eq!(older.read(&mut [0; 512]).await.unwrap(), 0);
    busy.until_refusing().await;
    simulator.create(&config_map("a", "one")).unwrap();
    assert_eq!(next_name(&mut watch).await.unwrap(), "one");
    simulator.wait_for_watches(&RequestFilter::any(), 1).await;
    let mut later = Connection::open(&simulator).await;
    for _ in 0..2 {
        assert_eq!(later.get(MAPS).await.status(), StatusCode::OK);
    }
}

#[tokio::test]
async fn http_2_shutdown_sends_goaway_without_header() {
    let simulator = simulator().await;
    simulator.begin_shutdown(ShutdownAnswer::TooManyRequests);
    let mut connection = Connection::open(&simulator).await;
    let response = connection.get(MAPS).await;
    assert!(response.headers().contains_key("retry-after"));
    assert!(!response.headers().contains_key("connection"));
    drop(response);
    connection.until_ended().await;
}

#[tokio::test]
async fn draining_server_sends_goaway_before_requests() {
    let simulator = simulator().await;
    let mut connection = Connection::open(&simulator).await;
    let mut watch = connection.get(WATCH).await.into_body();
    simulator.begin_shutdown(ShutdownAnswer::ServiceUnavailable);
    connection.until_refusing().await;
    simulator.create(&config_map("a", "one")).unwrap();
    assert_eq!(next_name(&mut watch).await.unwrap(), "one", "open streams must continue");
    simulator.restart();
    assert_eq!(next_name(&mut watch).await, None);
    connection.until_ended().await;
}
