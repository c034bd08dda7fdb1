//! A watch over a WebSocket, as browsers open it.

use http::Method;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message as Frame;

use crate::answer::Answer;
use crate::protobuf::{Document, Message};
use crate::scenario::{Scenario, scenario};
use crate::server::{PROTOBUF, STREAMING, Server};
use crate::websocket::{KEY, ORIGIN, VERSION, WebSocketWatch, request_watch};

pub(crate) fn scenarios() -> Vec<Scenario> {
    let rows = vec![
        scenario(each_websocket_message_has_one_event),
        scenario(websocket_continues_with_later_changes),
        scenario(websocket_sends_protobuf_without_lengths),
        scenario(websocket_sends_the_end_of_a_streaming_list),
        scenario(an_error_in_a_websocket_is_an_event),
        scenario(websocket_is_closed_normally_at_its_timeout),
        scenario(close_of_a_websocket_by_the_client_is_answered),
        scenario(messages_to_a_websocket_are_ignored),
        scenario(websocket_uses_the_requested_protocol),
        scenario(websocket_with_two_protocols_is_refused),
        scenario(a_websocket_needs_an_origin),
        scenario(websocket_origin_needs_a_scheme),
        scenario(a_websocket_needs_a_key),
        scenario(websocket_version_other_than_13_is_refused),
        scenario(websocket_errors_precede_the_upgrade),
        scenario(list_over_a_websocket_is_an_ordinary_answer),
    ];
    rows.into_iter().map(Scenario::over_a_socket).collect()
}

fn event(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

async fn each_websocket_message_has_one_event(server: Server) {
    server.create_secrets(&["a", "b"]).await;
    let mut watch = WebSocketWatch::open(&server, &[], &[]).await;
    for name in ["a", "b"] {
        let text = watch.text().await;
        assert!(text.ends_with("}\n") && text.matches('\n').count() == 1, "{text}");
        let event = event(&text);
        assert_eq!((&event["type"], &event["object"]["metadata"]["name"]), (&json!("ADDED"), &json!(name)));
    }
}

async fn websocket_continues_with_later_changes(server: Server) {
    let last = server.create_secrets(&["a"]).await;
    let version = last["metadata"]["resourceVersion"].as_str().expect("a version");
    let mut watch = WebSocketWatch::open(&server, &[("resourceVersion", version)], &[]).await;
    server.label("a", "x", "1").await;
    server.delete(&server.secret_path("a")).await.expect(200);
    for kind in ["MODIFIED", "DELETED"] {
        assert_eq!(event(&watch.text().await)["type"], kind);
    }
}

async fn websocket_sends_protobuf_without_lengths(server: Server) {
    server.create_secrets(&["a"]).await;
    let accept = [("accept", PROTOBUF)];
    let mut watch = WebSocketWatch::open(&server, &[], &accept).await;
    let event = Message::read(&watch.binary().await);
    assert_eq!(event.text(1), "ADDED");
    let document = Document::read(event.message(2).bytes(1));
    assert_eq!((document.kind.as_str(), document.name().as_str()), ("Secret", "a"));
}

async fn websocket_sends_the_end_of_a_streaming_list(server: Server) {
    server.create_secrets(&["a"]).await;
    let mut watch = WebSocketWatch::open(&server, &STREAMING, &[]).await;
    assert_eq!(event(&watch.text().await)["type"], "ADDED");
    let bookmark = event(&watch.text().await);
    assert_eq!(bookmark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
}

async fn an_error_in_a_websocket_is_an_event(server: Server) {
    let parameters = [
        ("sendInitialEvents", "true"),
        ("resourceVersionMatch", "NotOlderThan"),
        ("resourceVersion", "999999999"),
    ];
    let mut watch = WebSocketWatch::open(&server, &parameters, &[]).await;
    let error = event(&watch.text().await);
    assert_eq!((&error["type"], &error["object"]["code"]), (&json!("ERROR"), &json!(504)));
    assert!(matches!(watch.next().await, Frame::Close(_)));
}

async fn websocket_is_closed_normally_at_its_timeout(server: Server) {
    let mut watch = WebSocketWatch::open(&server, &[("timeoutSeconds", "5")], &[]).await;
    watch.expect_normal_close().await;
}

async fn close_of_a_websocket_by_the_client_is_answered(server: Server) {
    let mut watch = WebSocketWatch::open(&server, &[], &[]).await;
    watch.close().await;
    watch.expect_normal_close().await;
}

async fn messages_to_a_websocket_are_ignored(server: Server) {
    let mut watch = WebSocketWatch::open(&server, &[], &[]).await;
    watch.send("hello").await;
    server.create_secrets(&["a"]).await;
    assert_eq!(event(&watch.text().await)["type"], "ADDED");
}

async fn websocket_uses_the_requested_protocol(server: Server) {
    let protocol = ("sec-websocket-protocol", "example.test");
    let response = request_watch(&server, &[], &[KEY, VERSION, ORIGIN, protocol]).await;
    assert_eq!(response.headers()["sec-websocket-protocol"], "example.test");
    WebSocketWatch::of(response).await;
}

/// Requests a WebSocket, and returns the code of the error.
async fn refused(server: &Server, headers: &[(&str, &str)]) -> u16 {
    request_watch(server, &[], headers).await.status().as_u16()
}

async fn websocket_with_two_protocols_is_refused(server: Server) {
    let protocols = ("sec-websocket-protocol", "example.test, binary.k8s.io");
    assert_eq!(refused(&server, &[KEY, VERSION, ORIGIN, protocols]).await, 400);
}

async fn a_websocket_needs_an_origin(server: Server) {
    assert_eq!(refused(&server, &[KEY, VERSION]).await, 403);
}

async fn websocket_origin_needs_a_scheme(server: Server) {
    for origin in ["null", "example.test"] {
        assert_eq!(refused(&server, &[KEY, VERSION, ("origin", origin)]).await, 403, "{origin}");
    }
    let local_file = request_watch(&server, &[], &[KEY, VERSION, ("origin", "file://")]).await;
    WebSocketWatch::of(local_file).await;
}

async fn a_websocket_needs_a_key(server: Server) {
    assert_eq!(refused(&server, &[VERSION, ORIGIN]).await, 400);
}

async fn websocket_version_other_than_13_is_refused(server: Server) {
    for version in [&[][..], &[("sec-websocket-version", "8")]] {
        assert_eq!(refused(&server, &[&[KEY, ORIGIN], version].concat()).await, 400);
    }
}

async fn websocket_errors_precede_the_upgrade(server: Server) {
    let headers = [KEY, VERSION, ORIGIN];
    let parameters = [("resourceVersionMatch", "Exact")];
    Answer::read(request_watch(&server, &parameters, &headers).await).await.expect(422);
    let headers = [KEY, VERSION, ORIGIN, ("accept", "text/html")];
    Answer::read(request_watch(&server, &[], &headers).await).await.expect(406);
}

async fn list_over_a_websocket_is_an_ordinary_answer(server: Server) {
    server.create_secrets(&["a"]).await;
    let upgrade = [("connection", "Upgrade"), ("upgrade", "websocket")];
    let headers = [&upgrade[..], &[KEY, VERSION, ORIGIN]].concat();
    let answer = server.call(Method::GET, &server.secrets(), &headers, "").await;
    assert_eq!(answer.expect(200)["kind"], "SecretList");
}
