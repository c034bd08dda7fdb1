//! Reads the wire format of protobuf: fields, each with a number and a content.

use std::fmt;

/// The error for bytes that end within a field, are not protobuf, or contain a group (a deprecated
/// form of a nested message).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("invalid protobuf: the bytes end within a field or are not protobuf")
    }
}

impl std::error::Error for Malformed {}

/// The content of a field in the wire format of protobuf.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Content<'b> {
    /// A boolean or an integer. A negative integer is in two's complement with 64 bits.
    Number(u64),
    /// A floating-point number. Kubernetes uses fields of eight bytes for nothing else.
    Double(f64),
    /// A string, bytes or an encoded message; also the four bytes of a 32-bit field.
    Bytes(&'b [u8]),
}

/// Reads the fields of a message one by one. Contains the bytes that have not been read yet.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'b>(pub &'b [u8]);

impl<'b> Fields<'b> {
    /// Returns the number and the content of the next field; `None` at the end.
    ///
    /// # Errors
    /// If the bytes end within the field, are not protobuf, or begin or end a group.
    #[expect(clippy::should_implement_trait, reason = "it returns a result")]
    #[inline(always)]
    pub fn next(&mut self) -> Result<Option<(u64, Content<'b>)>, Malformed> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = tag >> 3;
        // Field numbers start at 1, and Go refuses 0, too.
        if number == 0 {
            return Err(Malformed);
        }
        let content = match tag & 7 {
            0 => Content::Number(self.varint()?),
            1 => Content::Double(f64::from_le_bytes(self.take(8)?.try_into().map_err(|_| Malformed)?)),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| Malformed)?;
                Content::Bytes(self.take(length)?)
            }
            5 => Content::Bytes(self.take(4)?),
            _ => return Err(Malformed),
        };
        Ok(Some((number, content)))
    }

    /// Reads a number in protobuf's variable-length encoding, which has one to ten bytes.
    ///
    /// # Errors
    /// If the bytes end within the number, or it has more than ten bytes.
    #[inline(always)]
    pub fn varint(&mut self) -> Result<u64, Malformed> {
        if let [byte @ 0..0x80, rest @ ..] = self.0 {
            self.0 = rest;
            return Ok(u64::from(*byte));
        }
        self.long_varint()
    }

    fn long_varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Malformed)
    }

    #[inline(always)]
    fn take(&mut self, length: usize) -> Result<&'b [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    //! Tests of invalid fields.

    use super::{Fields, Malformed};

    #[test]
    fn field_number_0_is_malformed() {
        for bytes in [&b"\x00\x07"[..], b"\x02\x01a", b"\x05abcd"] {
            assert_eq!(Fields(bytes).next(), Err(Malformed), "{bytes:?}");
        }
    }
}
