//! [`Uid`]: the unique identifier that the server assigns to an object. A lower-case UUID is stored
//! in sixteen bytes.

use std::fmt;
use std::sync::Arc;

/// The unique identifier that the server assigned to an object; empty if the object has none.
///
/// An object that is deleted and created again with the same name has another UID.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Uid(Repr);

#[derive(Clone, PartialEq, Eq, Hash, Default)]
enum Repr {
    #[default]
    Missing,
    Uuid([u8; 16]),
    Text(Arc<str>),
}

impl Uid {
    /// Returns whether this UID is empty, because the object has no UID.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        self.0 == Repr::Missing
    }
}

/// Maps each lower-case hexadecimal digit to its value, and all other bytes to 255.
const NIBBLES: [u8; 256] = {
    let mut nibbles = [u8::MAX; 256];
    let mut value = 0;
    while value < 16 {
        nibbles[b"0123456789abcdef"[value] as usize] = value as u8;
        value += 1;
    }
    nibbles
};

/// For each byte of a UUID, the position of the byte's first digit in the string form.
const DIGITS: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];

/// Parses a lower-case UUID with dashes. Returns `None` for other forms: these UIDs are stored as
/// strings, so that `Display` writes them unchanged.
fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let text: &[u8; 36] = text.as_bytes().try_into().ok()?;
    if [8, 13, 18, 23].iter().any(|dash| text[*dash] != b'-') {
        return None;
    }
    let mut uuid = [0; 16];
    let mut all = 0;
    for (byte, start) in uuid.iter_mut().zip(DIGITS) {
        let (high, low) = (NIBBLES[text[start] as usize], NIBBLES[text[start + 1] as usize]);
        all |= high | low;
        *byte = high << 4 | low & 0xf;
    }
    (all < 16).then_some(uuid)
}

impl From<&str> for Uid {
    fn from(text: &str) -> Self {
        match parse_uuid(text) {
            Some(uuid) => Self(Repr::Uuid(uuid)),
            None if text.is_empty() => Self::default(),
            None => Self(Repr::Text(text.into())),
        }
    }
}

impl From<Option<&str>> for Uid {
    fn from(text: Option<&str>) -> Self {
        text.map_or_else(Self::default, Self::from)
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Missing => Ok(()),
            Repr::Text(text) => f.write_str(text),
            Repr::Uuid(uuid) => {
                for (position, byte) in uuid.iter().enumerate() {
                    let dash = if matches!(position, 4 | 6 | 8 | 10) { "-" } else { "" };
                    write!(f, "{dash}{byte:02x}")?;
                }
                Ok(())
            }
        }
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_uid_text_is_returned_unchanged() {
        let uuid = "0f7e3c1a-9b2d-4c5e-8f60-1a2b3c4d5e6f";
        for text in ["", uuid, "0F7E3C1A-9b2d-4c5e-8f60-1a2b3c4d5e6f", "mirror-pod-hash", &uuid[..35]] {
            assert_eq!(Uid::from(text).to_string(), text);
        }
        assert!(matches!(Uid::from(uuid).0, Repr::Uuid(_)));
        assert!(Uid::from("").is_missing());
    }
}
