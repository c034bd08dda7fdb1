//! Reads the values of protobuf fields, such as texts and times, and checks them.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use k8s_openapi::jiff::Timestamp;
use kube_messages::{Content, Fields, Malformed};

use super::Object;
use crate::decode::deserialize::deserialize_incomplete;
use crate::decode::json::Scanner;
use crate::decode::repair::INVALID_UTF8;
use crate::decode::tape::Token;

/// Go's zero time (the start of year 1), in seconds since 1970. The decoder rejects earlier times.
const FIRST_SECOND: i64 = -62_135_596_800;

/// Functions that read a value of one type. An invalid value makes the whole object undecodable.
impl<const WRITES: bool> Object<WRITES> {
    /// Marks the whole object as undecodable, and writes a placeholder in place of the value.
    pub(super) fn reject(&mut self, problem: &str) {
        if WRITES {
            self.tape.reject_text(problem);
        } else {
            self.tape.reject(problem);
        }
    }

    /// Marks the whole object as undecodable, because bytes in it are not valid protobuf.
    pub(super) fn reject_malformed(&mut self) {
        self.reject(&Malformed.to_string());
    }

    pub(super) fn text(&mut self, bytes: &[u8]) {
        // Most texts are ASCII, and this check is faster than the check for UTF-8.
        if !WRITES && bytes.is_ascii() {
            return;
        }
        match str::from_utf8(bytes) {
            Ok(text) if WRITES => {
                let text = self.tape.decoded(text);
                self.tape.push(Token::Text(text));
            }
            Ok(_) => {}
            Err(_) => self.reject(INVALID_UTF8),
        }
    }

    pub(super) fn number(&mut self, number: i64) {
        if WRITES {
            self.tape.push_number(number);
        }
    }

    pub(super) fn int(&mut self, number: i64) {
        match i32::try_from(number) {
            Ok(_) => self.number(number),
            Err(_) => self.reject("an integer that is out of range"),
        }
    }

    pub(super) fn double(&mut self, number: f64) {
        if !number.is_finite() {
            self.reject("a number that is not finite");
        } else if WRITES {
            // `Debug` writes a fraction or an exponent even for integers, as in `1.0` and `1e16`.
            let text = self.tape.decoded(&format!("{number:?}"));
            self.tape.push(Token::Number(text));
        }
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        if WRITES {
            self.text(BASE64_STANDARD.encode(bytes).as_bytes());
        }
    }

    pub(super) fn time(&mut self, bytes: &[u8], is_micro: bool) {
        if bytes.is_empty() {
            // Only an element of a list or map gets here. Lists and maps of k8s-openapi have no nulls.
            return if WRITES { self.push(Token::Null) } else { self.reject("a time without a value") };
        }
        match timestamp(bytes, is_micro) {
            None => self.reject("a time that is invalid or out of range"),
            Some(_) if !WRITES => {}
            Some(time) if is_micro => {
                self.text(time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string().as_bytes());
            }
            Some(time) => self.text(time.to_string().as_bytes()),
        }
    }

    pub(super) fn quantity(&mut self, bytes: &[u8]) {
        match only_field(bytes) {
            Ok(text) => self.text(text),
            Err(Malformed) => self.reject_malformed(),
        }
    }

    pub(super) fn json(&mut self, bytes: &[u8], depth: usize) {
        let Ok(bytes) = only_field(bytes) else { return self.reject_malformed() };
        let Ok(text) = str::from_utf8(bytes) else { return self.reject(INVALID_UTF8) };
        if text.is_empty() {
            return self.push(Token::Null);
        }
        // The scanner needs a byte after a number to find the end of the number.
        let text = format!("{text}\n");
        let before = self.tape.len();
        let mut is_valid = Scanner::new(&text).append_to(&mut self.tape, depth).is_ok();
        if !WRITES {
            // The scanner accepts some numbers that `serde_json` refuses, such as 1e999.
            is_valid = is_valid && deserialize_incomplete::<serde_json::Value>(&self.tape).is_ok();
        }
        if !is_valid || !WRITES {
            self.tape.truncate(before);
        }
        if !is_valid {
            self.reject("invalid JSON in protobuf");
        }
    }

    pub(super) fn int_or_string(&mut self, bytes: &[u8]) {
        match IntOrText::read(bytes) {
            Ok(IntOrText::Int(number)) => self.int(number),
            Ok(IntOrText::Text(text)) => self.text(text),
            Err(Malformed) => self.reject_malformed(),
        }
    }
}

/// Returns the time in a message, rounded down to microseconds if `is_micro`, and otherwise to
/// seconds. Returns `None` if the time is invalid or out of range. Without `is_micro`, the value of
/// the nanoseconds is ignored, even if it is out of range.
pub(in crate::decode) fn timestamp(bytes: &[u8], is_micro: bool) -> Option<Timestamp> {
    let (mut seconds, mut nanoseconds) = (0, 0);
    let mut fields = Fields(bytes);
    while let Some(field) = fields.next().ok()? {
        match field {
            (1, Content::Number(value)) => seconds = value.cast_signed(),
            (2, Content::Number(value)) => nanoseconds = value,
            (3.., _) => {}
            _ => return None,
        }
    }
    // The JSON has no smaller units either.
    let nanoseconds = if is_micro { i32::try_from(nanoseconds).ok()? / 1_000 * 1_000 } else { 0 };
    if seconds < FIRST_SECOND || nanoseconds >= 1_000_000_000 {
        return None;
    }
    Timestamp::new(seconds, nanoseconds).ok()
}

/// The content of an `IntOrString`.
pub(in crate::decode) enum IntOrText<'b> {
    Int(i64),
    Text(&'b [u8]),
}

impl<'b> IntOrText<'b> {
    pub(in crate::decode) fn read(bytes: &'b [u8]) -> Result<Self, Malformed> {
        let (mut is_text, mut number, mut text) = (false, 0, &[][..]);
        let mut fields = Fields(bytes);
        while let Some(field) = fields.next()? {
            match field {
                (1, Content::Number(kind)) => is_text = kind == 1,
                (2, Content::Number(value)) => number = value.cast_signed(),
                (3, Content::Bytes(value)) => text = value,
                (4.., _) => {}
                _ => return Err(Malformed),
            }
        }
        Ok(if is_text { Self::Text(text) } else { Self::Int(number) })
    }
}

/// Returns the content of field 1 of a message; empty if the field is missing.
pub(in crate::decode) fn only_field(bytes: &[u8]) -> Result<&[u8], Malformed> {
    let (mut fields, mut value) = (Fields(bytes), &[][..]);
    while let Some(field) = fields.next()? {
        match field {
            (1, Content::Bytes(bytes)) => value = bytes,
            (2.., _) => {}
            _ => return Err(Malformed),
        }
    }
    Ok(value)
}
