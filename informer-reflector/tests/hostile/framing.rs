//! Broken HTTP/1.1: lengths, chunks, heads, and connections that close or become silent.

use crate::meter::Meter;
use crate::server::*;

const FAILED: &str = "list or watch failed";
const UNAVAILABLE: &str = "API server unavailable";

fn raw(text: &str) -> Vec<u8> {
    text.replace('\n', "\r\n").into_bytes()
}

fn silent(bytes: Vec<u8>) -> impl Fn(usize) -> Reply + Send + Sync + 'static {
    move |_| Reply { bytes: bytes.clone(), then: Then::Silence }
}

#[test]
fn broken_response_head_means_an_unreachable_server() {
    let meter = Meter::start();
    let unreachable = "no response from the server";
    survive(
        &meter,
        vec![
            case("no answer at all", At::List, "", unreachable, UNAVAILABLE),
            case("another protocol", At::List, "SSH-2.0-OpenSSH_9.7\r\n", unreachable, UNAVAILABLE),
            case("half a head", At::List, raw("HTTP/1.1 200 OK\nconte"), unreachable, UNAVAILABLE),
            case(
                "two lengths",
                At::List,
                raw("HTTP/1.1 200 OK\ncontent-length: 1\ncontent-length: 2\n\nab"),
                unreachable,
                UNAVAILABLE,
            ),
            case(
                "a length that is no number",
                At::Watch,
                raw("HTTP/1.1 200 OK\ncontent-length: x\n\n"),
                unreachable,
                UNAVAILABLE,
            ),
            case(
                "a head without end",
                At::List,
                format!("HTTP/1.1 200 OK\r\nx: {}", "x".repeat(1_000_000)),
                unreachable,
                UNAVAILABLE,
            ),
            numbered(
                "half a head, then silence",
                At::List,
                silent(raw("HTTP/1.1 200 OK\ncont")),
                "no answer within",
                UNAVAILABLE,
            ),
        ],
    );
}

#[test]
fn body_with_a_wrong_length_is_an_interrupted_response() {
    let meter = Meter::start();
    let short = raw("HTTP/1.1 200 OK\ncontent-length: 100000\n\n{\"items\":[");
    let long = [raw("HTTP/1.1 200 OK\ncontent-length: 10\n\n"), list("9", "", &[]).into_bytes()].concat();
    let chunks = raw("HTTP/1.1 200 OK\ntransfer-encoding: chunked\n\nZZ\n{}\n");
    let no_last_chunk = raw("HTTP/1.1 200 OK\ntransfer-encoding: chunked\n\na\n{\"items\":[\n");
    let incomplete = "is incomplete";
    survive(
        &meter,
        vec![
            case("a body that is too short", At::List, short, incomplete, FAILED),
            case("a body that is too long", At::List, long, incomplete, FAILED),
            case("chunks without a size", At::List, chunks.clone(), incomplete, FAILED),
            case("chunks without a size", At::Watch, chunks, incomplete, FAILED),
            case("no last chunk", At::List, no_last_chunk.clone(), incomplete, FAILED),
            case("no last chunk", At::Watch, no_last_chunk, incomplete, FAILED),
        ],
    );
}

#[test]
fn silent_connection_is_replaced() {
    let meter = Meter::start();
    let half = [open(""), br#"{"items":["#.to_vec()].concat();
    survive(
        &meter,
        vec![
            numbered("within a list", At::List, silent(half.clone()), "no data arrived", FAILED),
            numbered(
                "within a streaming list",
                At::StreamingList,
                silent(open("")),
                "syncing",
                "list was slow",
            ),
            numbered(
                "within a line of a watch",
                At::Watch,
                silent([open(""), b"{".to_vec()].concat()),
                "live",
                "watch is silent",
            ),
        ],
    );
}
