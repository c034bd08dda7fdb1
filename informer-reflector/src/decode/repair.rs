//! [`Repaired`]: replaces invalid UTF-8 in a response, and records the positions. So the decoder
//! can read the whole response, and rejects only the objects with replaced bytes (invariant I10).

use std::borrow::Cow;
use std::ops::Range;

pub(super) const INVALID_UTF8: &str = "invalid UTF-8";

/// The character DEL, which replaces an invalid byte, or a value that can't be read. Names of
/// Kubernetes objects do not contain it.
pub(super) const INVALID: char = '\x7f';

/// Bytes as a text, in which [`INVALID`] replaces each invalid byte, so that positions stay the
/// same. An incomplete character at the end is left out.
pub(super) struct Repaired<'b> {
    pub(super) text: Cow<'b, str>,
    /// The positions of invalid bytes, in order.
    invalid: Vec<usize>,
}

impl<'b> Repaired<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        match str::from_utf8(bytes) {
            Ok(text) => Self { text: Cow::Borrowed(text), invalid: Vec::new() },
            Err(_) => Self::repair(bytes),
        }
    }

    #[cold]
    fn repair(bytes: &[u8]) -> Self {
        let (mut text, mut invalid) = (String::with_capacity(bytes.len()), Vec::new());
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            let broken = chunk.invalid();
            let is_cut = chunks.peek().is_none()
                && str::from_utf8(broken).is_err_and(|error| error.error_len().is_none());
            if is_cut {
                break;
            }
            for _ in broken {
                invalid.push(text.len());
                text.push(INVALID);
            }
        }
        Self { text: Cow::Owned(text), invalid }
    }

    pub(super) fn is_repaired(&self, part: Range<usize>) -> bool {
        let first = self.invalid.partition_point(|position| *position < part.start);
        self.invalid.get(first).is_some_and(|position| *position < part.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_bytes_are_replaced_and_a_cut_character_is_left_out() {
        let repaired = Repaired::new(b"a\xff\xc3\xa9\xe2\x82b\xe2\x82");
        assert_eq!(repaired.text, "a\x7f\u{e9}\x7f\x7fb");
        let parts = [0..1, 1..2, 2..4, 4..5, 5..6, 6..7, 0..7];
        assert_eq!(
            parts.map(|part| repaired.is_repaired(part)),
            [false, true, false, true, true, false, true]
        );
    }
}
