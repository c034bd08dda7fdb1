//! Replaces the module `websocket` in builds without the feature `websocket`: requests for a
//! WebSocket are answered like all other requests.

use std::future::Ready;
use std::io;

use http::Request;
use hyper::body::Incoming;
use tower::Service as _;

use super::respond::HttpResponse;
use super::service::Service;

pub(super) enum WebSocketWatch {}

pub(super) async fn answer(
    mut service: Service,
    request: Request<Incoming>,
) -> io::Result<(HttpResponse, Option<WebSocketWatch>)> {
    Ok((service.call(request).await?, None))
}

impl WebSocketWatch {
    pub(super) fn send_events(self) -> Ready<()> {
        match self {}
    }
}
