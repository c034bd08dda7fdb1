//! Server failures: corrupt objects, rejections by flow control, and a shutdown.

use std::time::Duration;

use bytes::Bytes;
use h2::SendStream;
use h2::client::ResponseFuture;
use http::StatusCode;
use serde_json::json;
use tokio::time::Instant;

use crate::connection::Connection;
use crate::failures::FLOW_SCHEMA;
use crate::objects::{secret, version};
use crate::scenario::{Scenario, scenario};
use crate::server::{POLL_INTERVAL, Server};

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario(unreadable_deletion_is_an_error_event).alone(),
        scenario(unreadable_deletion_does_not_end_watches_of_other_keys).alone(),
        scenario(flow_control_rejects_in_plain_text).alone(),
        scenario(accepted_requests_have_flow_control_headers),
        scenario(server_in_shutdown_is_unready_then_refuses_requests).with_shutdown_delay(),
        scenario(server_without_shutdown_delay_stops_at_once)
            .without_shutdown_delay()
            .differs("A real server closes its port; the simulator refuses requests with 503."),
    ]
}

const PRIORITY_LEVEL: &str = "x-kubernetes-pf-prioritylevel-uid";

async fn create_event(server: &Server, namespace: &str, name: &str) {
    let about = json!({ "kind": "Secret", "namespace": namespace, "name": "none" });
    let event = json!({ "metadata": { "name": name }, "involvedObject": about });
    server.create(&format!("/api/v1/namespaces/{namespace}/events"), &event).await;
}

async fn unreadable_deletion_is_an_error_event(server: Server) {
    create_event(&server, &server.namespace, "bad").await;
    let events = server.core("events");
    let begin = async {
        // The watch starts after the write that corrupted the object.
        let last = server.create_secrets(&["last"]).await;
        let version = version(&last).to_string();
        server.watch_path(&events, &[("resourceVersion", &version)]).await
    };
    let mut watch = server.delete_unreadable_event("bad", begin).await;
    let status = watch.expect("ERROR").await;
    assert_eq!((status["code"].as_u64(), status["reason"].as_str()), (Some(500), Some("StorageReadError")));
    watch.ends().await;
}

async fn unreadable_deletion_does_not_end_watches_of_other_keys(server: Server) {
    create_event(&server, &server.namespace, "bad").await;
    let elsewhere = server.new_namespace().await;
    let selects_elsewhere = format!("metadata.namespace={elsewhere}");
    let (here, everywhere) = (server.core("events"), "/api/v1/events");
    let begin = async {
        // The watches start after the write that corrupted the object.
        let last = server.create_secrets(&["last"]).await;
        let version = version(&last).to_string();
        let open = async |path: &str, fields: &str| {
            server.watch_path(path, &[("resourceVersion", version.as_str()), ("fieldSelector", fields)]).await
        };
        let kept = [
            (open(&here, "metadata.name=good").await, "good"),
            (open(everywhere, &selects_elsewhere).await, "there"),
        ];
        // The server reads the corrupt object before it evaluates these selectors.
        let ended = [
            open(&here, "metadata.name!=bad").await,
            open(&here, &selects_elsewhere).await,
            open(&here, "metadata.name=").await,
            open(everywhere, "metadata.name=good").await,
        ];
        (kept, ended)
    };
    let (kept, ended) = server.delete_unreadable_event("bad", begin).await;
    for mut watch in ended {
        assert_eq!(watch.expect("ERROR").await["reason"], "StorageReadError");
    }
    create_event(&server, &server.namespace, "good").await;
    create_event(&server, &elsewhere, "there").await;
    for (mut watch, name) in kept {
        assert_eq!(watch.briefs(1).await, [format!("ADDED {name}")]);
    }
}

async fn flow_control_rejects_in_plain_text(server: Server) {
    let answer = server.list_until_rejected().await;
    assert_eq!(answer.code, 429);
    assert_eq!(answer.text(), "Too many requests, please try again later.\n");
    assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
    assert_eq!(answer.header("retry-after"), "1");
    let [schema, level] = [FLOW_SCHEMA, PRIORITY_LEVEL].map(|name| answer.header(name));
    assert!(schema.len() == 36 && level.len() == 36 && schema != level, "{schema} {level}");
}

async fn accepted_requests_have_flow_control_headers(server: Server) {
    server.create_secrets(&["a"]).await;
    let missing = server.secret_path("missing");
    for path in [server.secrets(), missing, "/readyz".to_owned(), "/version".to_owned(), "/none".to_owned()] {
        let answer = server.get(&path).await;
        assert!(!answer.header(FLOW_SCHEMA).is_empty(), "{path}");
        assert!(!answer.header(PRIORITY_LEVEL).is_empty(), "{path}");
    }
    let watch = server.watch(&[]).await;
    assert!(watch.headers.contains_key(FLOW_SCHEMA));
}

async fn server_in_shutdown_is_unready_then_refuses_requests(server: Server) {
    let mut watch = server.watch(&[]).await;
    server.create_secrets(&["a"]).await;
    assert_eq!(watch.briefs(1).await, ["ADDED a"]);
    // A real server does not exit before this request has ended.
    let slow = SlowPost::begin(&server).await;

    server.begin_shutdown();
    let mut ticks = tokio::time::interval(POLL_INTERVAL);
    while server.get_once("/readyz").await.code == 200 {
        ticks.tick().await;
    }
    let not_ready = server.get_once("/readyz").await;
    assert_eq!((not_ready.code, not_ready.header("content-type")), (500, "text/plain; charset=utf-8"));
    assert!(not_ready.text().ends_with("[-]shutdown failed: reason withheld\nreadyz check failed\n"));
    assert_eq!(server.get_once("/readyz?exclude=shutdown").await.code, 200);
    let why = server.get_once("/readyz/shutdown").await;
    assert_eq!((why.code, &*why.text()), (500, "internal server error: process is shutting down\n"));
    assert_eq!(server.get_once("/livez").await.code, 200);
    server.create_secrets(&["b"]).await;
    assert_eq!(watch.briefs(1).await, ["ADDED b"], "the server must serve during the delay");

    let refused = server.until_requests_are_rejected().await;
    assert_eq!(refused.code, 429);
    assert_eq!(refused.text(), "The apiserver is shutting down, please try again later.\n");
    assert_eq!(refused.header("retry-after"), "5");
    assert_eq!(refused.header("connection"), "close");
    assert_eq!(refused.header("content-type"), "text/plain; charset=utf-8");
    assert_eq!(refused.header(FLOW_SCHEMA), "", "the request must be refused before flow control");
    assert_eq!(server.get_once("/livez").await.code, 200);
    watch.ends().await;
    let last = Connection::open(&server).await.get(&server.secrets()).await.expect("an answer");
    assert_eq!(last.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(last.headers().get("connection").is_none(), "HTTP/2 has no `connection` header");

    assert_eq!(slow.end().await, StatusCode::CREATED, "the server must wait for running requests");
}

/// A request that is in progress until the rest of its body is sent.
struct SlowPost {
    answer: ResponseFuture,
    body: SendStream<Bytes>,
    rest: Bytes,
}

impl SlowPost {
    async fn begin(server: &Server) -> Self {
        let mut first = Bytes::from(secret("slow").to_string());
        let rest = first.split_off(first.len() / 2);
        let (answer, mut body) = Connection::open(server).await.begin_to_post(&server.secrets()).await;
        body.send_data(first, false).expect("the connection is open");
        Self { answer, body, rest }
    }

    async fn end(mut self) -> StatusCode {
        self.body.send_data(self.rest, true).expect("the connection is open");
        self.answer.await.expect("an answer").status()
    }
}

async fn server_without_shutdown_delay_stops_at_once(server: Server) {
    let another = server.another().await;
    let mut watch = server.watch(&[]).await;
    server.create_secrets(&["a"]).await;
    assert_eq!(watch.briefs(1).await, ["ADDED a"]);
    let slow = SlowPost::begin(&server).await;
    let mut idle = Connection::open(&server).await;

    let begun = Instant::now();
    server.begin_shutdown();
    idle.until_closed().await;
    match &server.simulator {
        None => server.until_port_is_closed().await,
        Some(_) => {
            let refused = server.get_once(&server.secrets()).await;
            assert_eq!(refused.header("retry-after"), "1");
            refused.refused(503, "ServiceUnavailable", "apiserver is shutting down");
        }
    }
    assert_eq!(slow.end().await, StatusCode::CREATED);
    assert_eq!(watch.briefs(1).await, ["ADDED slow"]);

    another.create_secrets(&["b"]).await;
    assert_eq!(watch.briefs(1).await, ["ADDED b"], "watches must continue for a while");
    // The simulator's clock has advanced in real time so far, by less than 20 seconds.
    let last = Duration::from_secs(20);
    server.pass(server.last_watches() - last).await;
    another.create_secrets(&["c"]).await;
    assert_eq!(watch.briefs(1).await, ["ADDED c"], "watches must continue until their deadline");
    server.pass(last).await;
    match &server.simulator {
        None => watch.ends_or_breaks_off().await,
        Some(_) => watch.ends().await,
    }
    assert!(begun.elapsed() >= server.last_watches(), "{:?}", begun.elapsed());
}
