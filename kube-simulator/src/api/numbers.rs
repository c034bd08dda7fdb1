//! Numbers in requests, parsed with Go's rules and error messages.

use std::fmt::Debug;
use std::num::{IntErrorKind, ParseIntError};
use std::str::FromStr;

/// Reads a whole number; the error is Go's.
pub(crate) fn parse_int(text: &str) -> Result<i64, String> {
    parse(text, "ParseInt")
}

/// Reads a resource version, which is a number to the server; the error is Go's.
pub(crate) fn parse_uint(text: &str) -> Result<u64, String> {
    parse(text, "ParseUint")
}

fn parse<N: FromStr<Err = ParseIntError> + Debug>(text: &str, function: &str) -> Result<N, String> {
    text.parse().map_err(|error: ParseIntError| {
        let why = match error.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        format!("strconv.{function}: parsing {text:?}: {why}")
    })
}
