//! Numbers in requests, parsed with Go's rules and error messages.

use std::fmt::Debug;
use std::num::{IntErrorKind, ParseIntError};
use std::str::FromStr;

pub(crate) fn parse_int(text: &str) -> Result<i64, String> {
    parse(text, "ParseInt")
}

pub(crate) fn parse_uint(text: &str) -> Result<u64, String> {
    // Rust accepts a leading `+` here, but Go does not.
    if text.starts_with('+') {
        return Err(describe(text, "ParseUint", "invalid syntax"));
    }
    parse(text, "ParseUint")
}

fn parse<N: FromStr<Err = ParseIntError> + Debug>(text: &str, function: &str) -> Result<N, String> {
    text.parse().map_err(|error: ParseIntError| {
        let why = match error.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        describe(text, function, why)
    })
}

fn describe(text: &str, function: &str, why: &str) -> String {
    format!("strconv.{function}: parsing {text:?}: {why}")
}
