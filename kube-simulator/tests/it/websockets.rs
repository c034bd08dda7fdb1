//! Faults in a watch over a WebSocket. The wire scenarios test the handshake.

use futures::{SinkExt, StreamExt};
use kube_simulator::{Fault, RequestFilter, Simulator, Verb, WatchInjection};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::support::{config_map, get, simulator};

const WATCH: &str = "/api/v1/namespaces/a/configmaps?watch=1";

async fn connect(simulator: &Simulator, query: &str) -> WebSocketStream<TcpStream> {
    let address = simulator.url().replace("http://", "");
    let mut request = format!("ws://{address}{WATCH}{query}").into_client_request().expect("a request");
    request.headers_mut().insert("origin", "http://tests.test".parse().expect("a header"));
    let stream = TcpStream::connect(address).await.expect("the port is open");
    client_async(request, stream).await.expect("a watch").0
}

async fn text(watch: &mut WebSocketStream<TcpStream>) -> String {
    match watch.next().await.expect("the stream continues").expect("a valid frame") {
        Message::Text(text) => text.to_string(),
        other => panic!("expected a text message: {other}"),
    }
}

#[tokio::test]
async fn injected_bytes_are_separate_websocket_messages() {
    let simulator = simulator().await;
    let mut watch = connect(&simulator, "&resourceVersion=1000").await;
    simulator.wait_for_watches(&RequestFilter::any(), 1).await;
    let injected = [WatchInjection::bytes("first"), WatchInjection::bytes("second").then_close()];
    for injection in &injected {
        simulator.inject(&RequestFilter::any(), injection);
    }
    assert_eq!((text(&mut watch).await, text(&mut watch).await), ("first".into(), "second".into()));
    assert!(matches!(watch.next().await, Some(Ok(Message::Close(Some(_))))));
}

#[tokio::test]
async fn websocket_message_is_cut_where_a_body_would_be() {
    let simulator = simulator().await;
    simulator.create(&config_map("a", "one")).unwrap();
    let whole = text(&mut connect(&simulator, "").await).await;
    simulator.fail_next(1, RequestFilter::verb(Verb::Watch), Fault::close_body_after(10));
    let mut watch = connect(&simulator, "").await;
    assert_eq!(text(&mut watch).await, whole[..10]);
    assert!(matches!(watch.next().await, Some(Ok(Message::Close(_)))));

    simulator.fail_next(1, RequestFilter::verb(Verb::Watch), Fault::abort_body_after(whole.len() as u64));
    let mut watch = connect(&simulator, "").await;
    assert_eq!(text(&mut watch).await, whole);
    let end = watch.next().await.expect("an error");
    assert!(
        matches!(end, Err(Error::Protocol(_) | Error::Io(_))),
        "the connection must end without a closing handshake: {end:?}"
    );
}

#[tokio::test]
async fn client_close_ends_a_websocket_watch() {
    let simulator = simulator().await;
    let mut watch = connect(&simulator, "").await;
    simulator.wait_for_watches(&RequestFilter::any(), 1).await;
    watch.send(Message::Close(None)).await.unwrap();
    simulator.wait_for_watches(&RequestFilter::any(), 0).await;
}

#[tokio::test]
async fn stopping_simulator_closes_websockets() {
    let simulator = simulator().await;
    let mut watch = connect(&simulator, "").await;
    simulator.wait_for_watches(&RequestFilter::any(), 1).await;
    let listening = tokio::spawn(async move { watch.next().await });
    simulator.shutdown().await;
    assert!(matches!(listening.await.unwrap(), Some(Ok(Message::Close(Some(_))))));
}

#[tokio::test]
async fn websockets_are_unsupported_in_process() {
    let simulator = simulator().await;
    simulator.create(&config_map("a", "one")).unwrap();
    let request = http::Request::get(format!("{WATCH}&timeoutSeconds=1"))
        .header("connection", "upgrade")
        .header("upgrade", "websocket")
        .body(Default::default())
        .unwrap();
    assert_eq!(crate::support::send(&simulator, request).await.status(), 200);
    assert_eq!(get(&simulator, "/api/v1/namespaces/a/configmaps").await.0, 200);
}
