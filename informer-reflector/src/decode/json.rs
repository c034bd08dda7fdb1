//! [`Scanner`]: reads JSON into a [`Tape`]: a list of tokens, and the texts to which the tokens
//! refer by byte offset. Skips the pruned fields, which must not be decoded.
//!
//! This code does not depend on the type of the objects, so a program contains it only once. Inside
//! pruned fields, the scanner only finds the ends of strings and counts brackets.

use std::ops::Range;

use serde::de::IgnoredAny;

use super::prune_paths::{Field, Level};
use super::repair::INVALID;
use super::tape::{Span, Tape, Token};

/// The maximum number of levels of nested arrays and objects in a value.
pub(super) const MAX_DEPTH: usize = 128;

pub(super) const TOO_DEEP: &str = "more than 128 levels of arrays and objects";

/// The problem of a string such as `"\ud800"`: half of a surrogate pair is not a character.
const UNPAIRED_SURROGATE: &str = "a string with an unpaired surrogate";

/// A JSON value that the [`Scanner`] has read: a tape without the pruned fields, and the length of
/// the JSON text.
#[derive(Debug)]
pub(super) struct Value<'j> {
    pub(super) tape: Tape<'j>,
    /// The length of the value in the text, in bytes, including the pruned fields and the blanks
    /// before the value.
    pub(super) len: usize,
}

/// The reason why bytes do not begin with a JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoValue {
    /// More bytes are needed.
    Incomplete,
    /// The bytes aren't JSON.
    Broken,
}

/// Reads the value at the start of `json`.
pub(super) fn read<'j>(json: &'j str, pruned: &Level) -> Result<Value<'j>, NoValue> {
    Scanner::new(json).value(pruned)
}

#[derive(Clone)]
pub(super) struct Scanner<'j> {
    /// The JSON text to read.
    text: &'j str,
    json: &'j [u8],
    at: usize,
    /// The byte offset that tokens use for the first byte of `text`. Zero, except in
    /// [`append_to`](Self::append_to).
    start: usize,
}

impl<'j> Scanner<'j> {
    pub(super) fn new(text: &'j str) -> Self {
        Self { text, json: text.as_bytes(), at: 0, start: 0 }
    }

    pub(super) fn only_blanks_left(mut self) -> bool {
        self.next_byte() == Err(NoValue::Incomplete)
    }

    pub(super) fn value(&mut self, pruned: &Level) -> Result<Value<'j>, NoValue> {
        let before = self.at;
        let mut tape = Tape::new(self.text);
        self.write_value(&mut tape, Some(pruned), MAX_DEPTH)?;
        Ok(Value { tape, len: self.at - before })
    }

    /// Appends the only value in `text` to an existing tape. `depth` is the maximum number of levels of
    /// arrays and objects in the value.
    pub(super) fn append_to(mut self, tape: &mut Tape<'_>, depth: usize) -> Result<(), NoValue> {
        // Tokens can refer only to texts of their own tape, so the tape gets a copy.
        self.start = tape.decoded(self.text).start as usize;
        self.write_value(tape, None, depth)?;
        if self.only_blanks_left() { Ok(()) } else { Err(NoValue::Broken) }
    }

    /// Reads the next value and appends it to `tape`. If the value has more than `depth` levels of
    /// arrays and objects, marks the tape's object as undecodable.
    fn write_value(
        &mut self,
        tape: &mut Tape<'_>,
        pruned: Option<&Level>,
        depth: usize,
    ) -> Result<(), NoValue> {
        let token = match self.next_byte()? {
            b'"' => return self.write_text(tape),
            b'{' | b'[' if depth == 0 => {
                tape.reject(TOO_DEEP);
                self.skip_nested()?;
                Token::Null
            }
            b'{' => return self.write_object(tape, pruned, depth - 1),
            b'[' => return self.write_array(tape, depth - 1),
            b'n' => self.literal(b"null", Token::Null)?,
            b't' => self.literal(b"true", Token::Bool(true))?,
            b'f' => self.literal(b"false", Token::Bool(false))?,
            _ => self.number()?,
        };
        tape.push(token);
        Ok(())
    }

    fn write_object(
        &mut self,
        tape: &mut Tape<'_>,
        pruned: Option<&Level>,
        depth: usize,
    ) -> Result<(), NoValue> {
        let opened = tape.open();
        let mut len = 0;
        self.at += 1;
        self.elements(b'}', |scanner| {
            let name_at = tape.len();
            scanner.next_byte()?;
            scanner.write_text(tape)?;
            scanner.expect(b':')?;
            let field = pruned.and_then(|level| level.field(tape.text_at(name_at)));
            match field {
                // I9: a damaged name can be that of the namespace, so the tape must contain it.
                Some(Field::Whole) if !tape.text_at(name_at).contains(INVALID) => {
                    tape.truncate(name_at);
                    scanner.skip()
                }
                _ => {
                    len += 1;
                    scanner.write_value(tape, field.and_then(Field::inside), depth)
                }
            }
        })?;
        tape.close(opened, Token::Object, len);
        Ok(())
    }

    fn write_array(&mut self, tape: &mut Tape<'_>, depth: usize) -> Result<(), NoValue> {
        let opened = tape.open();
        let mut len = 0;
        self.at += 1;
        self.elements(b']', |scanner| {
            len += 1;
            scanner.write_value(tape, None, depth)
        })?;
        tape.close(opened, Token::Array, len);
        Ok(())
    }

    /// Calls `element` at each element of an array, or at each member of an object, and reads the
    /// commas between them and the closing `bracket`. The opening bracket has already been read.
    fn elements(
        &mut self,
        bracket: u8,
        mut element: impl FnMut(&mut Self) -> Result<(), NoValue>,
    ) -> Result<(), NoValue> {
        if self.next_byte()? == bracket {
            self.at += 1;
            return Ok(());
        }
        loop {
            element(self)?;
            let byte = self.next_byte()?;
            self.at += 1;
            match byte {
                b',' => {}
                byte if byte == bracket => return Ok(()),
                _ => return Err(NoValue::Broken),
            }
        }
    }

    fn write_text(&mut self, tape: &mut Tape<'_>) -> Result<(), NoValue> {
        let start = self.at;
        let text = self.string()?;
        let span = if text.is_plain {
            self.span(start + 1..self.at - 1)
        } else {
            let json = &self.text[start..self.at];
            match serde_json::from_str::<String>(json) {
                Ok(decoded) => tape.decoded(&decoded),
                // I10: the string is valid JSON, so only this object is undecodable.
                Err(_) if is_json(json) => {
                    tape.reject_text(UNPAIRED_SURROGATE);
                    return Ok(());
                }
                Err(_) => return Err(NoValue::Broken),
            }
        };
        tape.push(Token::Text(span));
        Ok(())
    }

    fn span(&self, range: Range<usize>) -> Span {
        // A token stores a byte offset in the tape's texts, and not in `self.text`.
        Tape::span(self.start + range.start..self.start + range.end)
    }

    fn literal(&mut self, literal: &[u8], token: Token) -> Result<Token, NoValue> {
        let rest = &self.json[self.at..];
        if rest.starts_with(literal) {
            self.at += literal.len();
            return Ok(token);
        }
        Err(if literal.starts_with(rest) { NoValue::Incomplete } else { NoValue::Broken })
    }

    fn number(&mut self) -> Result<Token, NoValue> {
        let start = self.at;
        self.skip()?;
        // The text does not begin like another value, so it is a number if it is JSON.
        if !is_json(&self.text[start..self.at]) {
            return Err(NoValue::Broken);
        }
        Ok(Token::Number(self.span(start..self.at)))
    }

    /// Calls `member` with the name of each member of an object. The escapes of the name are not
    /// decoded. `member` must read the value.
    pub(super) fn members(
        &mut self,
        mut member: impl FnMut(&mut Self, &str) -> Result<(), NoValue>,
    ) -> Result<(), NoValue> {
        self.expect(b'{')?;
        self.elements(b'}', |scanner| {
            let name = scanner.string()?.inner;
            scanner.expect(b':')?;
            member(scanner, name)
        })
    }

    /// Reads a value and returns its JSON unchanged.
    pub(super) fn raw(&mut self) -> Result<&'j str, NoValue> {
        self.next_byte()?;
        let start = self.at;
        self.skip()?;
        Ok(&self.text[start..self.at])
    }

    fn skip(&mut self) -> Result<(), NoValue> {
        match self.next_byte()? {
            b'"' => self.string().map(drop),
            b'{' | b'[' => self.skip_nested(),
            _ => {
                let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
                let rest = &self.json[self.at..];
                // A number at the end of the bytes can be incomplete, for example `12` of `1234`.
                let len = rest.iter().position(|byte| !is_part(byte)).ok_or(NoValue::Incomplete)?;
                self.at += len;
                if len == 0 { Err(NoValue::Broken) } else { Ok(()) }
            }
        }
    }

    fn skip_nested(&mut self) -> Result<(), NoValue> {
        let (mut at, mut depth) = (self.at, 0_usize);
        while let Some(byte) = self.json.get(at) {
            match byte {
                b'"' => at = end_of_string(self.json, at + 1).ok_or(NoValue::Incomplete)?,
                b'{' | b'[' => depth += 1,
                b'}' | b']' if depth == 1 => {
                    self.at = at + 1;
                    return Ok(());
                }
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            at += 1;
        }
        Err(NoValue::Incomplete)
    }

    fn string(&mut self) -> Result<RawString<'j>, NoValue> {
        self.expect(b'"')?;
        let start = self.at;
        let first = next_special(self.json, start).ok_or(NoValue::Incomplete)?;
        let is_plain = self.json[first] == b'"';
        let end =
            if is_plain { first } else { end_of_string(self.json, first).ok_or(NoValue::Incomplete)? };
        self.at = end + 1;
        Ok(RawString { inner: &self.text[start..end], is_plain })
    }

    fn expect(&mut self, expected: u8) -> Result<(), NoValue> {
        if self.next_byte()? != expected {
            return Err(NoValue::Broken);
        }
        self.at += 1;
        Ok(())
    }

    /// Skips blanks, and returns the next byte without consuming it.
    fn next_byte(&mut self) -> Result<u8, NoValue> {
        while let Some(byte) = self.json.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Ok(*byte);
            }
            self.at += 1;
        }
        Err(NoValue::Incomplete)
    }
}

/// A string of the JSON text before its escapes are decoded, without its quotation marks.
struct RawString<'j> {
    inner: &'j str,
    /// Whether the string has no escapes, and no control characters (which JSON forbids in
    /// strings).
    is_plain: bool,
}

/// Returns the position of the quotation mark that ends the string.
fn end_of_string(json: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at = next_special(json, at)?;
        match json[at] {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// Returns the position of the next quotation mark, backslash or control character.
fn next_special(json: &[u8], mut at: usize) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);
    // The lowest set bit belongs to the first byte that is less than `limit`.
    let less = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word & HIGHS;
    // Eight bytes at a time. Most strings are so short that a vectorized search would need more
    // time for its setup than it saves.
    while let Some(chunk) = json.get(at..)?.first_chunk() {
        let word = u64::from_le_bytes(*chunk);
        let is = |byte: u8| less(word ^ (ONES * u64::from(byte)), 1);
        let found = is(b'"') | is(b'\\') | less(word, 0x20);
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    let is_special = |byte: &u8| *byte < b' ' || matches!(byte, b'"' | b'\\');
    json.get(at..)?.iter().position(is_special).map(|found| at + found)
}

pub(super) fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

#[cfg(test)]
mod tests;
