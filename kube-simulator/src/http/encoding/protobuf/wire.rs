//! The wire format of protobuf: numbered fields, each with a number or bytes.

/// The error that the bytes end within a field, or are not protobuf.
#[derive(Clone, Copy, Debug)]
pub(super) struct Malformed;

/// The content of a field.
#[derive(Clone, Copy, Debug)]
pub(super) enum Content<'b> {
    Number(u64),
    /// Eight bytes, which are always a floating-point number here.
    Double(f64),
    Bytes(&'b [u8]),
}

/// An iterator over the fields of a message.
pub(super) struct Fields<'b>(pub(super) &'b [u8]);

impl<'b> Fields<'b> {
    /// Returns the next field, with its number.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Content<'b>)>, Malformed> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
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
        Ok(Some((tag >> 3, content)))
    }

    /// Reads a varint.
    pub(super) fn varint(&mut self) -> Result<u64, Malformed> {
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

    fn take(&mut self, length: usize) -> Result<&'b [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }
}

/// Appends a field with a number.
pub(super) fn put_number(out: &mut Vec<u8>, field: u64, number: u64) {
    put_varint(out, field << 3);
    put_varint(out, number);
}

/// Appends a field with a floating-point number.
pub(super) fn put_double(out: &mut Vec<u8>, field: u64, number: f64) {
    put_varint(out, field << 3 | 1);
    out.extend_from_slice(&number.to_le_bytes());
}

/// Appends a field with a message that is encoded in place.
pub(super) fn put_nested(out: &mut Vec<u8>, field: u64, write: impl FnOnce(&mut Vec<u8>)) {
    put_varint(out, field << 3 | 2);
    let start = out.len();
    // The length is not known yet. For most messages it has one byte.
    out.push(0);
    write(out);
    let length = out.len() - start - 1;
    if length < 0x80 {
        out[start] = length as u8;
        return;
    }
    let mut prefix = Vec::with_capacity(10);
    put_varint(&mut prefix, length as u64);
    out.splice(start..=start, prefix);
}

/// Appends a field with bytes: text, or a message.
pub(super) fn put_bytes(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    put_varint(out, field << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        // The lowest seven bits, with a continuation flag.
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}
