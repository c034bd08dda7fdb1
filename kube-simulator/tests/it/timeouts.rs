//! Clients that send their requests slowly: the simulator's timeouts.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::support::{connect, simulator};

const REQUEST: &[u8] = b"GET /version HTTP/1.1\r\nhost: localhost\r\n\r\n";

/// Reads until the peer closes the connection. Returns the received text and the elapsed time.
async fn read_to_end(stream: &mut TcpStream) -> (String, Duration) {
    let began = Instant::now();
    let mut read = Vec::new();
    // A reset also ends the connection.
    let _ = stream.read_to_end(&mut read).await;
    (String::from_utf8(read).unwrap(), began.elapsed())
}

/// Sends a whole request and reads its response.
async fn get(stream: &mut TcpStream) -> String {
    stream.write_all(REQUEST).await.unwrap();
    let mut read = Vec::new();
    while !read.ends_with(b"}") {
        assert_ne!(stream.read_buf(&mut read).await.unwrap(), 0, "the connection was closed");
    }
    String::from_utf8(read).unwrap()
}

#[tokio::test(start_paused = true)]
async fn silent_connection_is_closed_after_32_seconds() {
    let simulator = simulator().await;
    let (read, after) = read_to_end(&mut connect(&simulator).await).await;
    assert_eq!((read.as_str(), after.as_secs()), ("", 32));
}

#[tokio::test(start_paused = true)]
async fn half_sent_head_times_out_after_32_seconds() {
    let simulator = simulator().await;
    for half in [&REQUEST[..1], &REQUEST[..REQUEST.len() - 2], b"PRI * HTTP", b"POST /api"] {
        let mut stream = connect(&simulator).await;
        stream.write_all(half).await.unwrap();
        let (_, after) = read_to_end(&mut stream).await;
        assert_eq!(after.as_secs(), 32, "{}", String::from_utf8_lossy(half));
    }
}

#[tokio::test(start_paused = true)]
async fn idle_connection_takes_further_requests() {
    let simulator = simulator().await;
    let mut stream = connect(&simulator).await;
    assert!(get(&mut stream).await.starts_with("HTTP/1.1 200 OK"));
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert!(get(&mut stream).await.starts_with("HTTP/1.1 200 OK"));
    // The next request is incomplete.
    stream.write_all(&REQUEST[..9]).await.unwrap();
    let (read, after) = read_to_end(&mut stream).await;
    assert_eq!((read.as_str(), after.as_secs()), ("", 32));
}

#[tokio::test(start_paused = true)]
async fn half_head_sent_with_a_request_times_out() {
    let simulator = simulator().await;
    let mut stream = connect(&simulator).await;
    stream.write_all(&[REQUEST, &REQUEST[..9]].concat()).await.unwrap();
    let (read, after) = read_to_end(&mut stream).await;
    assert!(read.starts_with("HTTP/1.1 200 OK"), "{read}");
    assert_eq!(after.as_secs(), 32);
}

#[tokio::test(start_paused = true)]
async fn half_sent_body_times_out_after_60_seconds() {
    let simulator = simulator().await;
    let mut stream = connect(&simulator).await;
    let head =
        "POST /api/v1/namespaces/a/configmaps HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    let (read, after) = read_to_end(&mut stream).await;
    assert!(read.starts_with("HTTP/1.1 504 Gateway Timeout"), "{read}");
    assert!(read.contains("Timeout: request did not complete within the allotted timeout"), "{read}");
    assert_eq!(after.as_secs(), 60);
}

/// The first frame of every HTTP/2 client: settings with default values.
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

/// Half of a `HEADERS` frame, and a `HEADERS` frame whose header block does not end.
const HALF_HEADERS: [&[u8]; 2] = [&[0, 0, 9, 1, 4, 0, 0, 0, 1, 0x82], &[0, 0, 1, 1, 0, 0, 0, 0, 1, 0x82]];

#[tokio::test(start_paused = true)]
async fn half_sent_headers_of_http2_time_out_after_32_seconds() {
    let simulator = simulator().await;
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let halves = [&[][..], &SETTINGS[..4]].map(<[u8]>::to_vec).into_iter();
    for half in halves.chain(HALF_HEADERS.map(|headers| [SETTINGS, headers].concat())) {
        let mut stream = connect(&simulator).await;
        stream.write_all(&[preface, &half[..]].concat()).await.unwrap();
        let began = Instant::now();
        let _ = stream.read_to_end(&mut Vec::new()).await;
        assert_eq!(began.elapsed().as_secs(), 32, "{half:?}");
    }
}
