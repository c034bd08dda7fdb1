//! Responses that follow each other without a pause: events, bookmarks, errors and closed watches.

use crate::meter::Meter;
use crate::server::*;

fn flood(line: &str) -> impl Fn(usize) -> Reply + Send + Sync + 'static {
    let piece = format!("{line}\n").repeat(10).into_bytes();
    move |_| Reply { bytes: open(""), then: Then::Repeat(piece.clone()) }
}

#[test]
fn flood_of_events_uses_bounded_memory_and_log() {
    let meter = Meter::start();
    survive(
        &meter,
        vec![
            numbered(
                "events of one object",
                At::Watch,
                flood(&event("MODIFIED", &object("a", "101"))),
                "live",
                "",
            ),
            numbered("bookmarks", At::Watch, flood(&bookmark("101")), "live", ""),
            numbered(
                "events without a name",
                At::Watch,
                flood(&event("ADDED", &serde_json::json!({}))),
                "has no name",
                "list or watch failed",
            ),
            numbered(
                "events without an end to a list",
                At::StreamingList,
                flood(&event("ADDED", &object("a", "101"))),
                "syncing",
                "",
            ),
        ],
    );
}

#[test]
fn refusals_without_a_pause_lead_to_backoff() {
    let meter = Meter::start();
    let mut cases = vec![
        case(
            "watches that close at once",
            At::Watch,
            lines(&[""; 0]),
            "closed the watch early",
            "list or watch failed",
        ),
        case(
            "expired at once",
            At::Watch,
            answer("410 Gone", "", status(410, "Expired")),
            "410 Expired",
            "list or watch expired",
        ),
        case(
            "expired as an event",
            At::Watch,
            lines(&[event("ERROR", &serde_json::from_str(&status(410, "Expired")).expect("JSON"))]),
            "410 Expired",
            "list or watch expired",
        ),
    ];
    for code in [301, 400, 401, 404, 405, 406, 409, 413, 415, 418, 422, 429, 500, 502, 503, 504, 599] {
        let log = if matches!(code, 502..=504) { "API server unavailable" } else { "list or watch failed" };
        let refusal = answer(&format!("{code} No"), "", status(code, "No"));
        cases.push(case("a status in a list", At::List, refusal.clone(), "No", log));
        cases.push(case("a status in a watch", At::Watch, refusal, "No", log));
        let text = answer(&format!("{code} No"), "", "SECRET");
        cases.push(case("a refusal that is no status", At::List, text, "the server returned", log));
    }
    survive(&meter, cases);
}

#[test]
fn absurd_retry_after_does_not_stop_the_reflector() {
    let meter = Meter::start();
    let refused =
        |wait: &str| answer("429 No", &format!("retry-after: {wait}\r\n"), status(429, "TooManyRequests"));
    survive(
        &meter,
        vec![
            case("words", At::List, refused("later"), "429", "list or watch failed"),
            case("a negative number", At::List, refused("-5"), "429", "list or watch failed"),
            case("zero", At::List, refused("0"), "429", "list or watch failed"),
            case("a date", At::List, refused("Fri, 31 Dec 9999 23:59:59 GMT"), "429", "list or watch failed"),
            case(
                "above 64 bits",
                At::List,
                refused("99999999999999999999999"),
                "429",
                "list or watch failed",
            ),
        ],
    );
}
