//! Invalid continue tokens.

use crate::meter::Meter;
use crate::server::*;

fn page(token: &str) -> Vec<u8> {
    ok(list("9", token, &[object("a", "9")]))
}

#[test]
fn endless_pages_lead_to_bounded_requests() {
    let meter = Meter::start();
    let new_token = |number: usize| Reply { bytes: page(&format!("t{number}")), then: Then::Close };
    let empty = |number: usize| Reply { bytes: ok(list("9", &format!("t{number}"), &[])), then: Then::Close };
    let expires = |number: usize| {
        let bytes =
            if number.is_multiple_of(2) { page("t") } else { answer("410 Gone", "", status(410, "Expired")) };
        Reply { bytes, then: Then::Close }
    };
    survive(
        &meter,
        vec![
            case(
                "the same token for ever",
                At::List,
                page("t"),
                "same continue token twice",
                "list or watch failed",
            ),
            numbered(
                "a new token for ever",
                At::List,
                new_token,
                "repeats the same objects",
                "list or watch failed",
            ),
            numbered(
                "empty pages with tokens",
                At::List,
                empty,
                "pages without items",
                "list or watch failed",
            ),
            numbered("a token that expires", At::List, expires, "expired again", "list or watch failed"),
            case(
                "a token of 100 KB",
                At::List,
                page(&"t".repeat(100_000)),
                "can't be built",
                "list or watch failed",
            ),
        ],
    );
}
