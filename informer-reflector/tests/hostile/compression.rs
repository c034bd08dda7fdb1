//! Bodies with invalid compression.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::meter::Meter;
use crate::server::*;

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(body).expect("memory");
    encoder.finish().expect("memory")
}

fn encoded(body: &[u8]) -> Vec<u8> {
    answer("200 OK", "content-encoding: gzip\r\n", body)
}

#[test]
fn broken_compression_is_reported_and_retried() {
    let meter = Meter::start();
    let good = gzip(list("9", "", &[object("c", "9")]).as_bytes());
    let mut corrupt = good.clone();
    let middle = corrupt.len() / 2;
    corrupt[middle..].fill(0xff);
    let half = &good[..middle];
    survive(
        &meter,
        vec![
            case(
                "plain text that claims to be gzip",
                At::List,
                encoded(list("9", "", &[]).as_bytes()),
                "gzip",
                "list or watch failed",
            ),
            case(
                "plain text that claims to be gzip",
                At::Watch,
                [open("content-encoding: gzip\r\n"), b"{}\n".to_vec()].concat(),
                "gzip",
                "list or watch failed",
            ),
            case("corrupt gzip", At::List, encoded(&corrupt), "gzip", "list or watch failed"),
            case("half of the gzip", At::List, encoded(half), "gzip", "list or watch failed"),
            case(
                "an unknown encoding",
                At::List,
                answer("200 OK", "content-encoding: br\r\n", "x"),
                "br",
                "list or watch failed",
            ),
        ],
    );
}

#[test]
fn compression_bomb_is_refused_at_the_object_limit() {
    let meter = Meter::start();
    let bomb = |begin: &str| gzip(&[begin.as_bytes(), &vec![b'x'; 8 * MAX_OBJECT]].concat());
    let (list, line) = (bomb(r#"{"items":[{"data":{"k":""#), bomb(r#"{"type":"ADDED","object":{"k":""#));
    survive(
        &meter,
        vec![
            case("in a list", At::List, encoded(&list), "larger than", "list or watch failed"),
            case("in a watch", At::Watch, encoded(&line), "larger than", "list or watch failed"),
        ],
    );
}
