//! Bodies that are invalid or incomplete JSON.

use crate::meter::Meter;
use crate::server::*;

const NOT_UNDERSTOOD: &str = "the response is invalid";
const FAILED: &str = "list or watch failed";

#[test]
fn list_with_invalid_json_is_reported_and_retried() {
    let meter = Meter::start();
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    let nested = format!(r#"{{"metadata":{{"resourceVersion":"1"}},"items":[{{"data":{deep}}}]}}"#);
    survive(
        &meter,
        vec![
            case("random bytes", At::List, ok([0xff, 0x00, 0x13, 0x37, 0x80]), NOT_UNDERSTOOD, FAILED),
            case("an HTML page", At::List, ok("<html>SECRET</html>"), NOT_UNDERSTOOD, FAILED),
            case("nothing", At::List, ok(""), "is incomplete", FAILED),
            case("NUL bytes", At::List, ok([0; 4096]), NOT_UNDERSTOOD, FAILED),
            case(
                "invalid UTF-8 in a name",
                At::List,
                ok(b"{\"items\":[{\"metadata\":{\"name\":\"\xff\"}}]}"),
                "live",
                "object is quarantined",
            ),
            case(
                "half a list",
                At::List,
                ok(r#"{"kind":"ConfigMapList","items":[{"metadata":"#),
                "is incomplete",
                FAILED,
            ),
            case("100,000 brackets", At::List, ok(nested), "live", "object is quarantined"),
            case("a list and more", At::List, ok(list("9", "", &[]) + "SECRET"), NOT_UNDERSTOOD, FAILED),
        ],
    );
}

#[test]
fn watch_with_invalid_json_is_reported_and_retried() {
    let meter = Meter::start();
    let watched = |line: &str| lines(&[line]);
    survive(
        &meter,
        vec![
            case(
                "random bytes",
                At::Watch,
                [open(""), vec![0xff, 0x00, 0x80, b'\n']].concat(),
                NOT_UNDERSTOOD,
                FAILED,
            ),
            case("an HTML page", At::Watch, watched("<html>SECRET</html>"), NOT_UNDERSTOOD, FAILED),
            case(
                "half a line",
                At::Watch,
                [open(""), br#"{"type":"ADDED","#.to_vec()].concat(),
                "is incomplete",
                FAILED,
            ),
            case(
                "an event, then garbage",
                At::Watch,
                lines(&[event("ADDED", &object("c", "101")), "SECRET".into()]),
                NOT_UNDERSTOOD,
                FAILED,
            ),
            case("an array", At::Watch, watched("[1, 2, 3]"), NOT_UNDERSTOOD, FAILED),
            case("100,000 brackets", At::Watch, watched(&"[".repeat(100_000)), NOT_UNDERSTOOD, FAILED),
        ],
    );
}

#[test]
fn object_above_the_limit_is_refused_in_bounded_memory() {
    let meter = Meter::start();
    let large = format!(r#"{{"metadata":{{"name":"a"}},"data":{{"k":"{}"}}}}"#, "x".repeat(4 * MAX_OBJECT));
    let items = format!(r#"{{"metadata":{{"resourceVersion":"1"}},"items":[{large}]}}"#);
    let line = format!(r#"{{"type":"ADDED","object":{large}}}"#);
    let endless =
        |head: Vec<u8>| move |_| Reply { bytes: head.clone(), then: Then::Repeat(vec![b'x'; 16_384]) };
    let line_begins = [open(""), br#"{"type":"ADDED","object":{"data":{"k":""#.to_vec()].concat();
    let list_begins = [open(""), br#"{"items":[{"data":{"k":""#.to_vec()].concat();
    survive(
        &meter,
        vec![
            case("a large item", At::List, ok(items), "larger than", FAILED),
            case("a large line", At::Watch, lines(&[line]), "larger than", FAILED),
            numbered("an endless line", At::Watch, endless(line_begins), "larger than", FAILED),
            numbered("an endless item", At::List, endless(list_begins), "larger than", FAILED),
        ],
    );
}
