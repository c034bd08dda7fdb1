//! The query parameter `timeout`, with which client-go limits the duration of any request.
//!
//! Counterpart: `WithRequestDeadline` of the API server, which rejects invalid values, and Go's
//! `time.ParseDuration`. The simulator answers most requests quickly, so it does not apply the
//! limit.

use super::request::{RecordedRequest, Verb};
use crate::api::status::{self, Refusal};

const UNITS: [(&str, f64); 8] =
    [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("μs", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("h", 3600e9)];

/// Returns an error if the parameter is neither empty nor a duration of Go. In watches, the
/// parameter is ignored.
pub(super) fn check(request: &RecordedRequest) -> Result<(), Refusal> {
    let timeout = request.parameter("timeout").filter(|timeout| !timeout.is_empty());
    match timeout {
        Some(timeout) if request.verb != Verb::Watch => check_duration(&timeout).map_err(|error| {
            status::bad_request(format!("invalid timeout specified in the request URL - time: {error}"))
        }),
        _ => Ok(()),
    }
}

/// Checks a duration such as `1h30m` or `-1.5s`.
fn check_duration(text: &str) -> Result<(), String> {
    let invalid = || format!("invalid duration {text:?}");
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Ok(());
    }
    let mut nanoseconds = 0.0;
    loop {
        let is_number = |letter: char| letter.is_ascii_digit() || letter == '.';
        let (number, after) = split(rest, |letter| !is_number(letter));
        let number: f64 = number.parse().map_err(|_| invalid())?;
        let (unit, after) = split(after, is_number);
        if unit.is_empty() {
            return Err(format!("missing unit in duration {text:?}"));
        }
        let (_, factor) = UNITS
            .iter()
            .find(|(name, _)| *name == unit)
            .ok_or_else(|| format!("unknown unit {unit:?} in duration {text:?}"))?;
        nanoseconds += number * factor;
        if nanoseconds >= i64::MAX as f64 {
            return Err(invalid());
        }
        if after.is_empty() {
            return Ok(());
        }
        rest = after;
    }
}

/// Splits `text` before the first character for which `is_end` returns `true`. Without such a
/// character, the second part is empty.
fn split(text: &str, is_end: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(is_end).unwrap_or(text.len()))
}
