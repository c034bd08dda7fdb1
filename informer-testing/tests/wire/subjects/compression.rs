//! Compressed answers to those who take them.

use serde_json::json;

use crate::objects::secret;
use crate::scenario::{Scenario, scenario};
use crate::server::Server;

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario(a_long_answer_is_compressed_for_those_who_take_it),
        scenario(a_long_list_is_compressed_for_those_who_take_it),
        scenario(a_short_answer_is_not_compressed),
        scenario(nobody_gets_compressed_answers_who_does_not_take_them),
    ]
}

/// How a body of gzip begins.
const GZIP: [u8; 2] = [0x1f, 0x8b];

async fn long(server: &Server) {
    let mut object = secret("long");
    object["data"] = json!({ "k": "QUFB".repeat(45_000) });
    server.create(&server.secrets(), &object).await;
}

async fn get(server: &Server, path: &str, encoding: &str) -> crate::answer::Answer {
    let headers = [("accept-encoding", encoding)];
    let answer = server.call(http::Method::GET, path, &headers, "").await;
    assert_eq!(answer.code, 200);
    answer
}

async fn a_long_answer_is_compressed_for_those_who_take_it(server: Server) {
    long(&server).await;
    let answer = get(&server, &server.secret_path("long"), "gzip").await;
    assert_eq!((answer.header("content-encoding"), answer.header("vary")), ("gzip", "Accept-Encoding"));
    assert!(answer.bytes.starts_with(&GZIP) && answer.bytes.len() < 10_000);
}

async fn a_long_list_is_compressed_for_those_who_take_it(server: Server) {
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

async fn nobody_gets_compressed_answers_who_does_not_take_them(server: Server) {
    long(&server).await;
    let answer = get(&server, &server.secret_path("long"), "identity").await;
    assert_eq!(answer.header("content-encoding"), "");
    assert!(answer.bytes.len() > 128 * 1024);
}
