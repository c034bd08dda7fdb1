//! Writes the wire format of protobuf: fields, each with a number and a value.

/// Appends to `out` the field with the number `field`, whose content is an integer or a boolean.
pub fn put_number(out: &mut Vec<u8>, field: u64, number: u64) {
    put_varint(out, field << 3);
    put_varint(out, number);
}

/// Appends to `out` the field with the number `field`, whose content is a floating-point number.
pub fn put_double(out: &mut Vec<u8>, field: u64, number: f64) {
    put_varint(out, field << 3 | 1);
    out.extend_from_slice(&number.to_le_bytes());
}

/// Appends to `out` the field with the number `field`, whose content is a message. `write` appends
/// the encoded message directly to `out`, without a copy in another buffer.
pub fn put_nested(out: &mut Vec<u8>, field: u64, write: impl FnOnce(&mut Vec<u8>)) {
    put_varint(out, field << 3 | 2);
    let start = out.len();
    // The length is not known yet. One byte is reserved, which suffices for most messages.
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

/// Appends to `out` the field with the number `field`, whose content is bytes, a string or an
/// encoded message.
pub fn put_bytes(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
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
