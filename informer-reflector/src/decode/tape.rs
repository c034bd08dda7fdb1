//! [`Tape`]: a decoded object as a flat list of tokens, without a type.
//!
//! The readers of JSON and protobuf write a tape, and one deserializer ([`deserialize`]) turns it
//! into a value. So a program contains the code of the readers only once, and not for each type.
//!
//! A token refers to a name or value by its position in two texts, `body` and `decoded`. `body` is
//! a text that exists before the tape, such as the JSON. `decoded` has the values that the reader
//! adds, such as strings after the decoding of their escapes.
//!
//! [`deserialize`]: super::deserialize

use std::fmt::Write;
use std::ops::Range;

use serde_json::Value;

use super::repair::INVALID;

pub(super) const TYPICAL_TOKENS: usize = 512;

/// An object as a list of tokens, without a Rust type.
#[derive(Debug, Default)]
pub(crate) struct Tape<'b> {
    tokens: Vec<Token>,
    /// The text that tokens refer to without a copy. It is JSON that contains the object or, in
    /// protobuf, a text with the names of all fields of [`kube_messages`].
    body: &'b str,
    /// Texts that `body` does not contain: JSON strings after the decoding of their escapes, and
    /// all values of an object in protobuf, with numbers in decimal form.
    decoded: String,
    /// The reason why the object can't be decoded; contains no values of the object.
    problem: Option<String>,
    /// Whether the object has unknown protobuf fields: [`kube_messages`] does not describe them.
    /// Unknown fields that are zero or empty do not count.
    pub(super) has_unknown_fields: bool,
}

/// A value, or the start of an array or object. The members of an object are pairs of a text and a
/// value.
// Tokens are small, because an object can have millions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    Null,
    Bool(bool),
    /// A number as JSON writes it.
    Number(Span),
    Text(Span),
    Array(Extent),
    Object(Extent),
}

/// The position and the length of a text, in bytes. Positions count through `body`, and then
/// through `decoded`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u32,
    len: u32,
}

/// The number of elements of an array or object on the tape, and the end of the array or object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    /// The number of elements of the array, or of members of the object.
    pub(super) len: u32,
    /// The index, among all tokens of the tape, of the first token after the array or object.
    pub(super) end: u32,
}

/// An array or object that is not complete yet: the index of its first token.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Opened(usize);

impl<'b> Tape<'b> {
    /// Creates an empty tape whose tokens can refer to `body`, which must have less than 4 GiB.
    pub(super) fn new(body: &'b str) -> Self {
        Self::with_capacity(body, TYPICAL_TOKENS, 0)
    }

    /// Creates an empty tape whose tokens can refer to `body`. Allocates memory for `tokens`
    /// tokens, and for `bytes` bytes of texts that `body` does not contain.
    pub(super) fn with_capacity(body: &'b str, tokens: usize, bytes: usize) -> Self {
        let (tokens, decoded) = (Vec::with_capacity(tokens), String::with_capacity(bytes));
        Self { tokens, decoded, body, ..Self::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.tokens.len()
    }

    pub(super) fn push(&mut self, token: Token) {
        self.tokens.push(token);
    }

    pub(super) fn span(range: Range<usize>) -> Span {
        Span { start: u32_of(range.start), len: u32_of(range.len()) }
    }

    /// Stores a text that is not part of the body, for example a JSON string after the decoding of
    /// its escapes. Returns the position of the text.
    pub(super) fn decoded(&mut self, text: &str) -> Span {
        let start = self.body.len() + self.decoded.len();
        self.decoded.push_str(text);
        Self::span(start..start + text.len())
    }

    pub(super) fn push_number(&mut self, number: i64) {
        let start = self.decoded.len();
        append(&mut self.decoded, number);
        let start = self.body.len() + start;
        self.push(Token::Number(Self::span(start..self.body.len() + self.decoded.len())));
    }

    /// Starts an array or object, which [`close`](Self::close) completes.
    pub(super) fn open(&mut self) -> Opened {
        let opened = Opened(self.tokens.len());
        self.push(Token::Null);
        opened
    }

    /// Completes an array or object with `len` elements. `token` is [`Token::Array`] or
    /// [`Token::Object`].
    pub(super) fn close(&mut self, opened: Opened, token: impl FnOnce(Extent) -> Token, len: usize) {
        self.tokens[opened.0] = token(Extent { len: u32_of(len), end: u32_of(self.tokens.len()) });
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.tokens.truncate(len);
    }

    /// Marks the object as undecodable. Only the first problem is kept.
    pub(super) fn reject(&mut self, problem: &str) {
        self.problem.get_or_insert_with(|| problem.to_owned());
    }

    /// Marks the object as undecodable, and writes [`INVALID`] in place of a value or name that
    /// can't be read.
    pub(super) fn reject_text(&mut self, problem: &str) {
        self.reject(problem);
        // An empty text would count as a valid namespace.
        let invalid = self.decoded(INVALID.encode_utf8(&mut [0; 4]));
        self.push(Token::Text(invalid));
    }

    pub(super) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Returns the token at an index; `Null` after the last token.
    pub(super) fn token(&self, at: usize) -> Token {
        self.tokens.get(at).copied().unwrap_or(Token::Null)
    }

    pub(super) fn text(&self, span: Span) -> &str {
        let (start, len) = (span.start as usize, span.len as usize);
        let text = match start.checked_sub(self.body.len()) {
            None => self.body.get(start..start + len),
            Some(start) => self.decoded.get(start..start + len),
        };
        text.unwrap_or_default()
    }

    /// Returns the text of the token at an index; empty if the token is not a text.
    pub(super) fn text_at(&self, at: usize) -> &str {
        match self.token(at) {
            Token::Text(text) => self.text(text),
            _ => "",
        }
    }

    /// Returns the index of the first token after the value at an index.
    pub(super) fn index_after(&self, at: usize) -> usize {
        match self.token(at) {
            Token::Array(extent) | Token::Object(extent) => extent.end as usize,
            _ => at + 1,
        }
    }

    /// Returns the names of the members of the object at an index, with the indexes of their values.
    pub(super) fn members(&self, object: usize) -> impl Iterator<Item = (&str, usize)> {
        let (mut next, end) = match self.token(object) {
            Token::Object(extent) => (object + 1, extent.end as usize),
            _ => (0, 0),
        };
        std::iter::from_fn(move || {
            if next >= end {
                return None;
            }
            let (name, value) = (self.text_at(next), next + 1);
            next = self.index_after(value);
            Some((name, value))
        })
    }

    /// Returns the text value of a top-level member of the object; empty if there is none.
    pub(super) fn text_of(&self, name: &str) -> &str {
        let member = self.members(0).find(|(member, _)| *member == name);
        member.map_or("", |(_, value)| self.text_at(value))
    }

    /// Appends the value at an index to `json`.
    pub(super) fn write_json(&self, at: usize, json: &mut String) {
        match self.token(at) {
            Token::Null => json.push_str("null"),
            Token::Bool(value) => append(json, value),
            Token::Number(number) => json.push_str(self.text(number)),
            Token::Text(text) => write_text(self.text(text), json),
            Token::Array(extent) => {
                let mut next = at + 1;
                for index in 0..extent.len {
                    json.push(if index == 0 { '[' } else { ',' });
                    self.write_json(next, json);
                    next = self.index_after(next);
                }
                json.push_str(if extent.len == 0 { "[]" } else { "]" });
            }
            Token::Object(_) => {
                json.push('{');
                for (index, (name, value)) in self.members(at).enumerate() {
                    if index > 0 {
                        json.push(',');
                    }
                    write_text(name, json);
                    json.push(':');
                    self.write_json(value, json);
                }
                json.push('}');
            }
        }
    }
}

/// Appends a text as a JSON string.
fn write_text(text: &str, json: &mut String) {
    if text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
        json.push('"');
        json.push_str(text);
        json.push('"');
    } else {
        append(json, Value::from(text));
    }
}

fn append(json: &mut String, value: impl std::fmt::Display) {
    // Writing to a string cannot fail.
    let _ = write!(json, "{value}");
}

/// Converts an index or length. It fits in 32 bits, unless `max_object_size` allows objects of
/// gigabytes.
fn u32_of(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
