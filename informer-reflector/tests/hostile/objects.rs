//! JSON of the wrong type: invalid lists, items and events.

use serde_json::json;

use crate::meter::Meter;
use crate::server::*;

const FAILED: &str = "list or watch failed";
const QUARANTINED: &str = "object is quarantined";

fn items(items: &str) -> Vec<u8> {
    ok(format!(
        r#"{{"kind":"ConfigMapList","apiVersion":"v1","metadata":{{"resourceVersion":"9"}},"items":{items}}}"#
    ))
}

#[test]
fn response_that_is_no_list_of_the_kind_is_refused() {
    let meter = Meter::start();
    let invalid = "the response is invalid";
    survive(
        &meter,
        vec![
            case("a number", At::List, ok("42"), invalid, FAILED),
            case("null", At::List, ok("null"), invalid, FAILED),
            case("a single object", At::List, ok(object("a", "1").to_string()), invalid, FAILED),
            case(
                "a list of another kind",
                At::List,
                ok(r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[]}"#),
                "PodList",
                FAILED,
            ),
            case(
                "a table",
                At::List,
                ok(r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[]}"#),
                "Table",
                FAILED,
            ),
            case(
                "a failure that claims success",
                At::List,
                ok(status(403, "Forbidden")),
                "forbidden",
                FAILED,
            ),
            case("items of a number", At::List, items("7"), invalid, FAILED),
            case("metadata of a number", At::List, ok(r#"{"metadata":7,"items":[]}"#), invalid, FAILED),
        ],
    );
}

#[test]
fn item_of_the_wrong_type_is_quarantined() {
    let meter = Meter::start();
    survive(
        &meter,
        vec![
            case("null among items", At::List, items("[null]"), "live", QUARANTINED),
            case("a number among items", At::List, items("[7]"), "live", QUARANTINED),
            case("no metadata", At::List, items("[{}]"), "live", QUARANTINED),
            case("no name", At::List, items(r#"[{"metadata":{"namespace":"shop"}}]"#), "live", QUARANTINED),
            case("an empty name", At::List, items(r#"[{"metadata":{"name":""}}]"#), "live", QUARANTINED),
            case(
                "a name that is a number",
                At::List,
                items(r#"[{"metadata":{"name":7}}]"#),
                "live",
                QUARANTINED,
            ),
            case(
                "data that is a list",
                At::List,
                items(r#"[{"metadata":{"name":"a"},"data":["SECRET"]}]"#),
                "live",
                QUARANTINED,
            ),
        ],
    );
}

#[test]
fn event_of_the_wrong_type_is_reported() {
    let meter = Meter::start();
    let line = |line: &str| lines(&[line]);
    let changed = |object: serde_json::Value| line(&event("MODIFIED", &object));
    let bad_data =
        json!({ "metadata": { "name": "a", "namespace": "shop", "resourceVersion": "101" }, "data": [1] });
    survive(
        &meter,
        vec![
            case("no type", At::Watch, line(r#"{"object":{}}"#), "the response is invalid", FAILED),
            case(
                "an unknown type",
                At::Watch,
                line(&event("SHUFFLED", &object("a", "101"))),
                "unknown type",
                FAILED,
            ),
            case("no object", At::Watch, line(r#"{"type":"ADDED"}"#), "the response is invalid", FAILED),
            case("null as object", At::Watch, changed(json!(null)), "unexpected null", FAILED),
            case(
                "another kind",
                At::Watch,
                changed(json!({ "kind": "Pod", "apiVersion": "v1", "metadata": { "name": "a" } })),
                "Pod",
                FAILED,
            ),
            case("data that is a list", At::Watch, changed(bad_data), "live", QUARANTINED),
            case(
                "an error that is no status",
                At::Watch,
                line(r#"{"type":"ERROR","object":{}}"#),
                "backing off",
                FAILED,
            ),
            case(
                "a bookmark without a version",
                At::Watch,
                line(&bookmark("")),
                "closed the watch early",
                FAILED,
            ),
        ],
    );
}
