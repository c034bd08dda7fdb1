//! [`WebSocketWatch`]: a watch over a WebSocket.

use futures::{SinkExt, StreamExt};
use http::{Method, Response};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use kube::client::Body;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::protocol::frame::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::server::{Server, with_query};

/// The key that a client sends with its upgrade request.
pub(crate) const KEY: (&str, &str) = ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
pub(crate) const VERSION: (&str, &str) = ("sec-websocket-version", "13");
pub(crate) const ORIGIN: (&str, &str) = ("origin", "https://scenarios.test");

/// The server's response to the key (RFC 6455).
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// An open WebSocket.
pub(crate) struct WebSocketWatch(WebSocketStream<TokioIo<Upgraded>>);

/// Requests a watch of secrets over a WebSocket, with these query parameters and headers.
pub(crate) async fn request_watch(
    server: &Server,
    parameters: &[(&str, &str)],
    headers: &[(&str, &str)],
) -> Response<Body> {
    let path = with_query(&server.secrets(), &[&[("watch", "true")], parameters].concat());
    let headers = [&[("connection", "keep-alive, Upgrade"), ("upgrade", "WebSocket")], headers].concat();
    server.send(Method::GET, &path, &headers, &[]).await
}

impl WebSocketWatch {
    /// Opens a watch of secrets with these query parameters and additional headers.
    pub(crate) async fn open(server: &Server, parameters: &[(&str, &str)], headers: &[(&str, &str)]) -> Self {
        let response = request_watch(server, parameters, &[&[KEY, VERSION, ORIGIN], headers].concat()).await;
        Self::of(response).await
    }

    pub(crate) async fn of(response: Response<Body>) -> Self {
        assert_eq!(response.status(), 101);
        assert_eq!(response.headers()["sec-websocket-accept"], ACCEPT);
        assert_eq!(response.headers()["upgrade"], "websocket");
        let upgraded = hyper::upgrade::on(response).await.expect("the connection is upgraded");
        Self(WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Client, None).await)
    }

    pub(crate) async fn next(&mut self) -> Message {
        self.0.next().await.expect("the WebSocket is open").expect("a valid frame")
    }

    pub(crate) async fn text(&mut self) -> String {
        match self.next().await {
            Message::Text(text) => text.to_string(),
            other => panic!("expected a text message: {other}"),
        }
    }

    pub(crate) async fn binary(&mut self) -> Vec<u8> {
        match self.next().await {
            Message::Binary(bytes) => bytes.to_vec(),
            other => panic!("expected a binary message: {other}"),
        }
    }

    pub(crate) async fn send(&mut self, text: &str) {
        self.0.send(Message::text(text)).await.expect("the connection is open");
    }

    /// Sends a close message with the code of a normal end.
    pub(crate) async fn close(&mut self) {
        let frame = CloseFrame { code: CloseCode::Normal, reason: "".into() };
        self.0.close(Some(frame)).await.expect("the connection is open");
    }

    /// Asserts that the next message closes the WebSocket, with the code of a normal end.
    pub(crate) async fn expect_normal_close(&mut self) {
        match self.next().await {
            Message::Close(Some(close)) => assert_eq!(close.code, CloseCode::Normal),
            other => panic!("expected a close message with a code: {other}"),
        }
    }
}
