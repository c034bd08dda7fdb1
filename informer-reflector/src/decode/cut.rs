//! [`cut`]: finds the end of a JSON value, and removes pruned fields from its bytes.
//!
//! Only the structure is read: names, strings, braces and brackets. The decoder of the remaining
//! bytes checks the rest. This code does not depend on the type of the objects, so that programs
//! contain it once, and not once for every type.

use std::borrow::Cow;
use std::ops::Range;

use serde::de::IgnoredAny;

use super::prune_paths::{Field, Level};

/// A JSON value without its pruned fields.
pub(super) struct Value<'j> {
    pub(super) json: Cow<'j, [u8]>,
    /// The length of the value with the pruned fields, and with the blanks before it.
    pub(super) len: usize,
    pub(super) stated: StatedType<'j>,
}

/// The type that an object states, without quotes; empty if it states none.
#[derive(Clone, Copy, Default)]
pub(super) struct StatedType<'j> {
    pub(super) kind: &'j [u8],
    pub(super) api_version: &'j [u8],
}

/// The reason why bytes do not begin with a JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoValue {
    /// More bytes are needed.
    Incomplete,
    /// The bytes aren't JSON.
    Broken,
}

/// Reads the value at the start of `json`, without the fields that `pruned` names.
pub(super) fn cut<'j>(json: &'j [u8], pruned: &Level) -> Result<Value<'j>, NoValue> {
    Scanner::new(json).value(pruned)
}

/// Reads JSON from start to end.
#[derive(Clone)]
pub(super) struct Scanner<'j> {
    json: &'j [u8],
    at: usize,
}

impl<'j> Scanner<'j> {
    pub(super) fn new(json: &'j [u8]) -> Self {
        Self { json, at: 0 }
    }

    /// Returns whether only blanks are left.
    pub(super) fn only_blanks_left(mut self) -> bool {
        self.next_byte() == Err(NoValue::Incomplete)
    }

    /// Reads a value without its pruned fields.
    pub(super) fn value(&mut self, pruned: &Level) -> Result<Value<'j>, NoValue> {
        let before = self.at;
        let is_object = self.next_byte()? == b'{';
        let (start, mut removed, mut stated) = (self.at, Removed::default(), StatedType::default());
        if is_object {
            self.object(pruned, &mut removed, Some(&mut stated))?;
        } else {
            self.skip()?;
        }
        let json = removed.apply(self.json, start..self.at);
        Ok(Value { json, len: self.at - before, stated })
    }

    /// Reads an object, and calls `member` with the name of each member and its position. `member`
    /// must read the value.
    pub(super) fn members(
        &mut self,
        mut member: impl FnMut(&mut Self, &[u8], usize) -> Result<(), NoValue>,
    ) -> Result<(), NoValue> {
        self.expect(b'{')?;
        if self.next_byte()? == b'}' {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.next_byte()?;
            let start = self.at;
            let name = self.string()?;
            self.expect(b':')?;
            self.next_byte()?;
            match unescaped(name) {
                Some(name) => member(self, &name, start)?,
                None => return Err(NoValue::Broken),
            }
            match self.next_byte()? {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return Err(NoValue::Broken),
            }
        }
    }

    fn object(
        &mut self,
        pruned: &Level,
        removed: &mut Removed,
        mut stated: Option<&mut StatedType<'j>>,
    ) -> Result<(), NoValue> {
        // A pruned member is removed with the comma before it, or after it if it is the first.
        let (mut kept_end, mut first_removed) = (None, None);
        self.members(|scanner, name, start| {
            let inner = match pruned.field(name) {
                Some(Field::Whole) => {
                    scanner.skip()?;
                    match kept_end {
                        Some(end) => removed.add(end..scanner.at),
                        None => first_removed = first_removed.or(Some(start)),
                    }
                    return Ok(());
                }
                Some(Field::Inside(inner)) => Some(inner),
                None => None,
            };
            if let Some(first) = first_removed.take() {
                removed.add(first..start);
            }
            match (inner, scanner.json[scanner.at], stated.as_deref_mut()) {
                (Some(inner), b'{', _) => scanner.object(inner, removed, None)?,
                (_, b'"', Some(stated)) if name == b"kind" => stated.kind = scanner.string()?,
                (_, b'"', Some(stated)) if name == b"apiVersion" => stated.api_version = scanner.string()?,
                _ => scanner.skip()?,
            }
            kept_end = Some(scanner.at);
            Ok(())
        })?;
        if let Some(first) = first_removed {
            removed.add(first..self.at - 1);
        }
        Ok(())
    }

    /// Reads a value and returns its bytes.
    pub(super) fn raw(&mut self) -> Result<&'j [u8], NoValue> {
        self.next_byte()?;
        let start = self.at;
        self.skip()?;
        Ok(&self.json[start..self.at])
    }

    /// Returns the number of bytes that have been read.
    pub(super) fn len(&self) -> usize {
        self.at
    }

    /// Reads a value.
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

    /// Reads a string and returns it without quotes, as it is written.
    fn string(&mut self) -> Result<&'j [u8], NoValue> {
        self.expect(b'"')?;
        let start = self.at;
        let end = end_of_string(self.json, start).ok_or(NoValue::Incomplete)?;
        self.at = end + 1;
        Ok(&self.json[start..end])
    }

    fn expect(&mut self, expected: u8) -> Result<(), NoValue> {
        if self.next_byte()? != expected {
            return Err(NoValue::Broken);
        }
        self.at += 1;
        Ok(())
    }

    /// Skips blanks, and returns the next byte without reading it.
    fn next_byte(&mut self) -> Result<u8, NoValue> {
        while let Some(byte) = self.json.get(self.at) {
            if !byte.is_ascii_whitespace() {
                return Ok(*byte);
            }
            self.at += 1;
        }
        Err(NoValue::Incomplete)
    }
}

/// Returns the position of the quotation mark that ends the string with its first character at `at`.
///
/// Compares eight bytes at a time: most strings are shorter than the setup of a vectorized search.
fn end_of_string(json: &[u8], mut at: usize) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);
    // The lowest set bit belongs to the first byte that is zero.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & HIGHS;
    loop {
        let rest = json.get(at..)?;
        if let Some(chunk) = rest.first_chunk() {
            let word = u64::from_le_bytes(*chunk);
            let found = zeros(word ^ (ONES * u64::from(b'"'))) | zeros(word ^ (ONES * u64::from(b'\\')));
            if found == 0 {
                at += 8;
                continue;
            }
            at += found.trailing_zeros() as usize / 8;
        } else {
            at += rest.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
        }
        match json[at] {
            b'"' => return Some(at),
            _ => at += 2,
        }
    }
}

/// The removed parts of a text, in order.
#[derive(Default)]
struct Removed(Vec<Range<usize>>);

impl Removed {
    /// Adds a part. A part with the start of the last one replaces it.
    fn add(&mut self, part: Range<usize>) {
        match self.0.last_mut() {
            Some(last) if last.start == part.start => *last = part,
            _ => self.0.push(part),
        }
    }

    /// Returns this range of the text without the removed parts.
    fn apply<'j>(&self, text: &'j [u8], range: Range<usize>) -> Cow<'j, [u8]> {
        if self.0.is_empty() {
            return Cow::Borrowed(&text[range]);
        }
        let mut kept = Vec::with_capacity(range.len() - self.0.iter().map(Range::len).sum::<usize>());
        let mut at = range.start;
        for removed in &self.0 {
            kept.extend_from_slice(&text[at..removed.start]);
            at = removed.end;
        }
        kept.extend_from_slice(&text[at..range.end]);
        Cow::Owned(kept)
    }
}

/// Returns whether these bytes are a JSON value, of any type.
pub(super) fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(bytes).is_ok()
}

/// Returns a name without escapes; `None` if it isn't JSON.
fn unescaped(name: &[u8]) -> Option<Cow<'_, [u8]>> {
    if !name.contains(&b'\\') {
        return Some(Cow::Borrowed(name));
    }
    let quoted = [b"\"", name, b"\""].concat();
    serde_json::from_slice::<String>(&quoted).ok().map(|name| Cow::Owned(name.into_bytes()))
}

#[cfg(test)]
mod tests;
