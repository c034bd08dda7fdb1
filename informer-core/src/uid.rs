//! [`Uid`]: the server's identity of one life of an object, held in sixteen bytes where it is a UUID.

use std::fmt;
use std::sync::Arc;

/// The UID that the server gave an object, or nothing where it gave none.
///
/// An object that is deleted and created again under its name has a new UID.
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
    /// Says whether the object has no UID.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        self.0 == Repr::Missing
    }
}

/// Reads the one spelling that [`Uid`]'s `Display` writes; anything else stays text, so that it comes back unchanged.
fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let bytes: &[u8; 36] = text.as_bytes().try_into().ok()?;
    let mut uuid = [0; 16];
    let mut nibbles = 0;
    for (position, byte) in bytes.iter().enumerate() {
        let dash_expected = matches!(position, 8 | 13 | 18 | 23);
        let nibble = match byte {
            b'-' if dash_expected => continue,
            b'0'..=b'9' if !dash_expected => byte - b'0',
            b'a'..=b'f' if !dash_expected => byte - b'a' + 10,
            _ => return None,
        };
        uuid[nibbles / 2] = uuid[nibbles / 2] << 4 | nibble;
        nibbles += 1;
    }
    Some(uuid)
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
    fn every_uid_comes_back_as_it_was_given() {
        let uuid = "0f7e3c1a-9b2d-4c5e-8f60-1a2b3c4d5e6f";
        for text in ["", uuid, "0F7E3C1A-9b2d-4c5e-8f60-1a2b3c4d5e6f", "mirror-pod-hash", &uuid[..35]] {
            assert_eq!(Uid::from(text).to_string(), text);
        }
        assert!(matches!(Uid::from(uuid).0, Repr::Uuid(_)));
        assert!(Uid::from("").is_missing());
    }
}
