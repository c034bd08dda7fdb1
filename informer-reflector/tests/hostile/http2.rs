//! HTTP/2 connections and streams that end early.

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use h2::{Reason, server};
use tokio::io::{AsyncWriteExt, DuplexStream};

use crate::meter::Meter;
use crate::server::*;

fn http2(name: &'static str, at: At, serve: Http2, health: &'static str) -> Case {
    Case { name, at, answer: Answer::Http2(serve), health, log: "API server unavailable" }
}

fn garbage(mut connection: DuplexStream) -> BoxFuture<'static, ()> {
    async move { _ = connection.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await }.boxed()
}

fn half_a_frame(mut connection: DuplexStream) -> BoxFuture<'static, ()> {
    async move { _ = connection.write_all(&[0, 0, 12, 4]).await }.boxed()
}

fn goaway(connection: DuplexStream) -> BoxFuture<'static, ()> {
    async move {
        let Ok(mut connection) = server::handshake(connection).await else { return };
        connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
        while connection.accept().await.is_some() {}
    }
    .boxed()
}

fn reset_at_once(connection: DuplexStream) -> BoxFuture<'static, ()> {
    async move {
        let Ok(mut connection) = server::handshake(connection).await else { return };
        while let Some(Ok((_, mut respond))) = connection.accept().await {
            respond.send_reset(Reason::REFUSED_STREAM);
        }
    }
    .boxed()
}

fn reset_in_the_body(connection: DuplexStream) -> BoxFuture<'static, ()> {
    async move {
        let Ok(mut connection) = server::handshake(connection).await else { return };
        while let Some(Ok((_, mut respond))) = connection.accept().await {
            let Ok(mut body) = respond.send_response(http::Response::new(()), false) else { return };
            _ = body.send_data(Bytes::from_static(br#"{"items":["#), false);
            body.send_reset(Reason::INTERNAL_ERROR);
        }
    }
    .boxed()
}

#[test]
fn broken_http2_means_an_unreachable_server() {
    let meter = Meter::start();
    let unreachable = "no response from the server";
    survive(
        &meter,
        vec![
            http2("HTTP/1.1 instead", At::List, garbage, unreachable),
            http2("half a frame", At::List, half_a_frame, unreachable),
            http2("GOAWAY at once", At::List, goaway, unreachable),
            http2("GOAWAY at once", At::Watch, goaway, unreachable),
            http2("a stream that is refused", At::List, reset_at_once, unreachable),
            http2("a list that is reset", At::List, reset_in_the_body, "stream error"),
            http2("a watch that is reset", At::Watch, reset_in_the_body, "stream error"),
        ],
    );
}
