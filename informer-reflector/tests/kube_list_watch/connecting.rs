//! Clients created by [`connect`].

use std::time::Duration;

use http::{Request, Uri};
use hyper_util::rt::TokioIo;
use informer_reflector::connect;
use kube::Config;
use kube::client::Body;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};

/// Sends a request to the listener. Returns once the listener has read all of the request.
async fn open_request(listener: &TcpListener) -> (tokio::task::JoinHandle<()>, TcpStream) {
    let address = listener.local_addr().expect("an address");
    let config = Config::new(format!("http://{address}").parse().expect("a URI"));
    let client = connect(config, |_, tcp| Ok(tcp)).expect("a client");
    let request = tokio::spawn(async move {
        let request = Request::get("/api/v1/pods?watch=1").body(Body::empty()).expect("a request");
        _ = client.send(request).await;
    });
    let (mut stream, _) = listener.accept().await.expect("a connection");
    let mut read = Vec::new();
    while !read.ends_with(b"\r\n\r\n") {
        read.push(stream.read_u8().await.expect("the request"));
    }
    (request, stream)
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn idle_connection_has_a_tcp_keepalive_timer() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let (request, stream) = open_request(&listener).await;
    let (local, remote) = (stream.local_addr().expect("ours"), stream.peer_addr().expect("theirs"));
    // Columns of /proc/net/tcp: number, local address, remote address, state, queues, timer.
    let ends = [remote, local].map(|address| format!("0100007F:{:04X}", address.port()));
    let timer = || {
        let table = std::fs::read_to_string("/proc/net/tcp").expect("Linux lists its connections");
        let rows = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let row = rows.into_iter().find(|row| row.get(1..3) == Some(&[&*ends[0], &*ends[1]]));
        row.expect("a row of the client's socket").get(5).map(|timer| timer[..2].to_owned())
    };
    // Timer 01 is retransmission, until the peer acknowledges the request; 02 is keepalive.
    let is_watched = async {
        while timer().as_deref() != Some("02") {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), is_watched).await.expect("a keepalive timer");
    request.abort();
}

#[tokio::test(start_paused = true)]
async fn tls_handshake_without_an_end_fails_after_ten_seconds() {
    let stalled = tower::service_fn(|_: Uri| std::future::pending::<std::io::Result<TokioIo<TcpStream>>>());
    let config = Config::new("https://127.0.0.1:6443".parse().expect("a URI"));
    let client = connect(config, |_, _| Ok(stalled)).expect("a client");
    let request = Request::get("/api/v1/pods").body(Body::empty()).expect("a request");
    let started = tokio::time::Instant::now();
    let outcome = tokio::time::timeout(Duration::from_secs(60), client.send(request)).await;
    assert!(outcome.is_ok_and(|answer| answer.is_err()), "the request has failed");
    assert_eq!(started.elapsed().as_secs(), 10);
}
