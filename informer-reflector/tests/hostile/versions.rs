//! Invalid and wrong resource versions.

use crate::meter::Meter;
use crate::server::*;

fn listed(version: &str) -> Vec<u8> {
    ok(list(version, "", &[object("a", version)]))
}

#[test]
fn hostile_version_of_a_list_does_not_prevent_recovery() {
    let meter = Meter::start();
    let long = "9".repeat(100_000);
    let failed = "list or watch failed";
    survive(
        &meter,
        vec![
            case("an empty version", At::List, listed(""), "live", ""),
            case("no version", At::List, ok(r#"{"kind":"ConfigMapList","items":[]}"#), "live", ""),
            case("zero", At::List, listed("0"), "live", ""),
            case("words", At::List, listed("latest"), "400", failed),
            case("a negative number", At::List, listed("-7"), "400", failed),
            case("above 64 bits", At::List, listed("99999999999999999999999"), "400", failed),
            case("the future", At::List, listed("4000000000"), "504", failed),
            case("100 KB", At::List, listed(&long), "can't be built", failed),
            case("characters of a URI", At::List, listed("7&watch=0#/../%00"), "400", failed),
        ],
    );
}

#[test]
fn hostile_version_of_an_event_does_not_prevent_recovery() {
    let meter = Meter::start();
    let changed = |version: &str| lines(&[event("MODIFIED", &object("a", version))]);
    let marked = |version: &str| lines(&[bookmark(version)]);
    let flips = |number: usize| {
        let version = if number.is_multiple_of(2) { "90" } else { "99" };
        Reply { bytes: lines(&[bookmark(version)]), then: Then::Close }
    };
    survive(
        &meter,
        vec![
            case("an older event", At::Watch, changed("3"), "closed the watch early", "list or watch failed"),
            case(
                "the same version for ever",
                At::Watch,
                marked("100"),
                "closed the watch early",
                "list or watch failed",
            ),
            numbered(
                "a version that goes back and forth",
                At::Watch,
                flips,
                "closed the watch early",
                "list or watch failed",
            ),
            case(
                "an empty version",
                At::Watch,
                changed(""),
                "closed the watch early",
                "list or watch failed",
            ),
            case(
                "a bookmark of words",
                At::Watch,
                marked("latest"),
                "closed the watch early",
                "list or watch failed",
            ),
            case(
                "a bookmark of 100 KB",
                At::Watch,
                marked(&"9".repeat(100_000)),
                "can't be built",
                "list or watch failed",
            ),
            case(
                "a bookmark of the future",
                At::Watch,
                marked("4000000000"),
                "closed the watch early",
                "list or watch failed",
            ),
        ],
    );
}
