//! Compressed responses for clients that accept them.

use std::io::Read;

use flate2::read::GzDecoder;
use http_body_util::BodyExt;
use serde_json::json;

use crate::answer::Answer;
use crate::objects::{secret, version};
use crate::scenario::{Scenario, scenario};
use crate::server::{JSON, MERGE, PROTOBUF, STREAMING, Server, with_query};

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario(a_long_response_is_compressed_on_request),
        scenario(a_long_list_is_compressed_on_request),
        scenario(a_short_answer_is_not_compressed),
        scenario(responses_are_not_compressed_without_request),
        scenario(a_response_longer_than_128_kib_is_compressed),
        scenario(streaming_list_is_compressed_on_request)
            .differs("A server before 1.37 does not compress streams."),
        scenario(ordinary_watch_is_not_compressed),
    ]
}

/// The first bytes of gzip data.
const GZIP: [u8; 2] = [0x1f, 0x8b];

async fn long(server: &Server) {
    let mut object = secret("long");
    object["data"] = json!({ "k": "QUFB".repeat(45_000) });
    server.create(&server.secrets(), &object).await;
}

async fn get(server: &Server, path: &str, encoding: &str) -> Answer {
    get_as(server, path, JSON, encoding).await
}

async fn get_as(server: &Server, path: &str, accept: &str, encoding: &str) -> Answer {
    let headers = [("accept", accept), ("accept-encoding", encoding)];
    let answer = server.call(http::Method::GET, path, &headers, "").await;
    assert_eq!(answer.code, 200);
    answer
}

async fn a_long_response_is_compressed_on_request(server: Server) {
    long(&server).await;
    let answer = get(&server, &server.secret_path("long"), "gzip").await;
    assert_eq!((answer.header("content-encoding"), answer.header("vary")), ("gzip", "Accept-Encoding"));
    assert!(answer.bytes.starts_with(&GZIP) && answer.bytes.len() < 10_000);
    // The same applies to the answer of a write.
    let headers = [("accept-encoding", "gzip"), ("content-type", MERGE)];
    let answer = server.call(http::Method::PATCH, &server.secret_path("long"), &headers, "{}").await;
    assert_eq!((answer.code, answer.header("content-encoding")), (200, "gzip"));
    assert!(answer.bytes.starts_with(&GZIP) && answer.bytes.len() < 10_000);
}

async fn a_long_list_is_compressed_on_request(server: Server) {
    long(&server).await;
    let answer = get(&server, &server.secrets(), "deflate, gzip").await;
    assert_eq!(answer.header("content-encoding"), "gzip");
    assert!(answer.bytes.starts_with(&GZIP) && answer.bytes.len() < 10_000);
}

async fn a_short_answer_is_not_compressed(server: Server) {
    server.create_secrets(&["a"]).await;
    let answer = get(&server, &server.secret_path("a"), "gzip").await;
    assert_eq!(answer.header("content-encoding"), "");
    assert_eq!(answer.body["kind"], "Secret");
}

async fn responses_are_not_compressed_without_request(server: Server) {
    long(&server).await;
    let answer = get(&server, &server.secret_path("long"), "identity").await;
    assert_eq!(answer.header("content-encoding"), "");
    assert!(answer.bytes.len() > 128 * 1024);
}

async fn a_response_longer_than_128_kib_is_compressed(server: Server) {
    server.create_secrets(&["a"]).await;
    for accept in [JSON, PROTOBUF] {
        for list in [false, true] {
            let path = answer_of_length(&server, accept, list, 128 * 1024).await;
            let answer = get_as(&server, &path, accept, "gzip").await;
            assert_eq!((answer.header("content-encoding"), answer.bytes.len()), ("", 128 * 1024), "{path}");
            let path = answer_of_length(&server, accept, list, 128 * 1024 + 1).await;
            let answer = get_as(&server, &path, accept, "gzip").await;
            assert_eq!(answer.header("content-encoding"), "gzip", "{path}");
            let mut whole = Vec::new();
            GzDecoder::new(&*answer.bytes).read_to_end(&mut whole).expect("gzip");
            assert_eq!(whole.len(), 128 * 1024 + 1, "{path}");
        }
    }
}

/// Changes the secret so that a response has this length in bytes, and returns the path to request.
/// The response contains the secret or, if `list` is set, the list of all secrets.
async fn answer_of_length(server: &Server, accept: &str, list: bool, wanted: usize) -> String {
    let mut padding = 120 * 1024;
    loop {
        let patch = json!({ "metadata": { "annotations": { "padding": "x".repeat(padding) } } });
        let secret = server.patch(&server.secret_path("a"), MERGE, &patch).await.expect(200);
        // The version is exact, so that each request returns the same list.
        let version = format!("?resourceVersion={}&resourceVersionMatch=Exact", version(&secret));
        let path = if list { format!("{}{version}", server.secrets()) } else { server.secret_path("a") };
        let length = get_as(server, &path, accept, "identity").await.bytes.len();
        if length == wanted {
            return path;
        }
        padding = (padding + wanted).checked_sub(length).expect("the response is longer than its padding");
    }
}

/// Opens a watch that accepts gzip, causes an event, and reads the watch to its end.
async fn watch(server: &Server, parameters: &[(&str, &str)]) -> Answer {
    server.create_secrets(&["a"]).await;
    let parameters = [&[("watch", "true"), ("timeoutSeconds", "10")], parameters].concat();
    let path = with_query(&server.secrets(), &parameters);
    let mut open = server.send(http::Method::GET, &path, &[("accept-encoding", "gzip")], &[]).await;
    let first =
        open.body_mut().frame().await.expect("first frame").expect("no error").into_data().expect("data");
    server.create_secrets(&["b"]).await;
    let mut answer = Answer::read(open).await;
    server.delete(&server.secrets()).await.expect(200);
    answer.bytes = [first, answer.bytes].concat().into();
    answer
}

/// Decompresses each gzip member separately.
fn members(mut rest: &[u8]) -> Vec<String> {
    let mut members = Vec::new();
    while !rest.is_empty() {
        let mut decoder = flate2::bufread::GzDecoder::new(rest);
        let mut member = String::new();
        decoder.read_to_string(&mut member).expect("gzip");
        members.push(member);
        rest = decoder.into_inner();
    }
    members
}

async fn streaming_list_is_compressed_on_request(server: Server) {
    let version = server.get("/version").await.expect(200);
    let minor: u32 = version["minor"].as_str().expect("text").parse().expect("a number");
    let is_older = server.is_real() && minor < 37;
    // A watch without a version is also a streaming list.
    for parameters in [&STREAMING[..], &STREAMING[2..]] {
        let answer = watch(&server, parameters).await;
        if is_older {
            assert_eq!(answer.header("content-encoding"), "");
            continue;
        }
        assert_eq!(answer.header("content-encoding"), "gzip");
        let members = members(&answer.bytes);
        // Later events are separate gzip members, so that a client can decode each one when it
        // arrives.
        assert!(members.len() > 1 && members.iter().all(|member| member.ends_with('\n')), "{members:?}");
        let events = members.concat();
        let kinds: Vec<_> = events.lines().filter_map(|line| line.split('"').nth(3)).collect();
        assert_eq!(kinds[..3], ["ADDED", "BOOKMARK", "ADDED"], "{events}");
    }
}

async fn ordinary_watch_is_not_compressed(server: Server) {
    let only_initial = [("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan")];
    for parameters in [&only_initial[..], &[("resourceVersion", "0")]] {
        let answer = watch(&server, parameters).await;
        assert_eq!(answer.header("content-encoding"), "");
        assert!(answer.bytes.starts_with(b"{\"type\":\"ADDED\""), "{}", answer.text());
    }
}
