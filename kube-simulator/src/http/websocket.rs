//! Watches over a WebSocket, which browsers and Java clients open. Each event is a message: text
//! for JSON, binary for other encodings.
//!
//! The rules are those of the real server's handler (`golang.org/x/net/websocket`). A test can cut
//! or replace events, but the WebSocket frames that contain them stay complete.

use std::io;

use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use http::header::{
    CONNECTION, ORIGIN, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Uri};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::frame::{CloseFrame, Frame};
use tower::Service as _;

use super::body::ResponseBody;
use super::request::header;
use super::respond::{self, Events, HttpResponse};
use super::service::{OneByOne, Service};

/// A watch whose events are sent as messages after the connection is upgraded.
pub(super) struct WebSocketWatch {
    upgrade: OnUpgrade,
    events: ResponseBody,
    text: bool,
}

/// Answers a request. Also returns the watch if the request opens a WebSocket.
pub(super) async fn answer(
    mut service: Service,
    mut request: Request<Incoming>,
) -> io::Result<(HttpResponse, Option<WebSocketWatch>)> {
    if !is_upgrade_requested(request.headers()) {
        return Ok((service.call(request).await?, None));
    }
    let handshake = answer_handshake(request.headers());
    let upgrade = hyper::upgrade::on(&mut request);
    request.extensions_mut().insert(OneByOne);
    let response = service.call(request).await?;
    let Some(Events { text }) = response.extensions().get().copied() else {
        return Ok((response, None));
    };
    Ok(match handshake {
        Ok(switch) => (switch, Some(WebSocketWatch { upgrade, events: response.into_body(), text })),
        Err((code, why)) => (respond::text(code, why), None),
    })
}

impl WebSocketWatch {
    /// Sends the events until the stream ends or the client disconnects.
    pub(super) async fn send_events(mut self) {
        let upgraded = match self.upgrade.await {
            Ok(upgraded) => TokioIo::new(upgraded),
            Err(error) => return tracing::debug!(%error, "failed to upgrade a connection to a WebSocket"),
        };
        let mut socket = WebSocketStream::from_raw_socket(upgraded, Role::Server, None).await;
        loop {
            let outcome = tokio::select! {
                biased;
                event = self.events.frame() => match event {
                    Some(Ok(event)) => match event.into_data() {
                        Ok(bytes) if !bytes.is_empty() => socket.send(message(bytes, self.text)).await,
                        _ => Ok(()),
                    },
                    // A fault or an injection aborts the connection.
                    Some(Err(_)) => return,
                    None => {
                        let frame = CloseFrame { code: CloseCode::Normal, reason: "".into() };
                        let _ = socket.close(Some(frame)).await;
                        return;
                    }
                },
                received = socket.next() => match received {
                    Some(Ok(message)) if message.is_close() => {
                        // The answer to the client's close is queued, but not sent yet.
                        let _ = socket.flush().await;
                        return;
                    }
                    Some(message) => message.map(drop),
                    None => return,
                },
            };
            if let Err(error) = outcome {
                return tracing::debug!(%error, "a watch over a WebSocket ended with an error");
            }
        }
    }
}

/// Converts an event to a message. Invalid UTF-8 is accepted, because a fault can cut an event
/// within a character.
fn message(event: Bytes, text: bool) -> Message {
    let kind = if text { Data::Text } else { Data::Binary };
    Message::Frame(Frame::message(event, OpCode::Data(kind), true))
}

fn is_upgrade_requested(headers: &HeaderMap) -> bool {
    let upgrade = header(headers, UPGRADE).eq_ignore_ascii_case("websocket");
    upgrade && header(headers, CONNECTION).to_ascii_lowercase().contains("upgrade")
}

fn answer_handshake(headers: &HeaderMap) -> Result<HttpResponse, (StatusCode, &'static str)> {
    let key = header(headers, SEC_WEBSOCKET_KEY);
    if key.is_empty() {
        return Err((StatusCode::BAD_REQUEST, "mismatch challenge/response"));
    }
    if header(headers, SEC_WEBSOCKET_VERSION) != "13" {
        return Err((StatusCode::BAD_REQUEST, "missing or bad WebSocket Version"));
    }
    if !is_origin(header(headers, ORIGIN)) {
        return Err((StatusCode::FORBIDDEN, ""));
    }
    let protocol = header(headers, SEC_WEBSOCKET_PROTOCOL).trim();
    if protocol.contains(',') {
        return Err((StatusCode::BAD_REQUEST, ""));
    }
    let mut switch = Response::new(ResponseBody::whole(Bytes::new()));
    *switch.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let mut set = |name: HeaderName, text: &str| {
        // Cannot fail: all characters come from a header or are base64.
        switch.headers_mut().extend(HeaderValue::from_str(text).ok().map(|value| (name, value)));
    };
    set(UPGRADE, "websocket");
    set(CONNECTION, "Upgrade");
    set(SEC_WEBSOCKET_ACCEPT, &derive_accept_key(key.as_bytes()));
    if !protocol.is_empty() {
        set(SEC_WEBSOCKET_PROTOCOL, protocol);
    }
    Ok(switch)
}

/// Returns whether an `Origin` header's text is a URL with `://` or a leading slash. Go's
/// `url.ParseRequestURI` also accepts URLs such as `urn:name`.
///
/// For example, returns `false` for `null`, which browsers send for pages without an origin.
fn is_origin(text: &str) -> bool {
    let is_url =
        |text: &str| text.parse::<Uri>().is_ok_and(|uri| uri.scheme().is_some() || text.starts_with('/'));
    // Unlike Go, `Uri` refuses an empty host, as in `file://`.
    is_url(text) || text.ends_with("://") && is_url(&format!("{text}host"))
}
