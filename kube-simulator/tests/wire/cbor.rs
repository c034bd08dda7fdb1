//! A reader and writer of CBOR on top of a library, independent of the simulator's code.

use ciborium::Value as Cbor;
use serde_json::Value;

/// The prefix of a CBOR document.
pub(crate) const SELF_DESCRIBED: [u8; 3] = [0xd9, 0xd9, 0xf7];

/// Decodes a document to JSON. Byte strings, which JSON represents as base64, become lists of
/// numbers.
#[track_caller]
pub(crate) fn read(mut bytes: &[u8]) -> Value {
    assert!(bytes.starts_with(&SELF_DESCRIBED), "{bytes:x?}");
    let read = read_first(&mut bytes).expect("CBOR");
    assert!(bytes.is_empty(), "there must be exactly one item");
    read
}

/// Decodes the first item if it is complete, and removes it from `bytes`.
pub(crate) fn read_first(bytes: &mut &[u8]) -> Option<Value> {
    let mut rest = *bytes;
    let item: Cbor = ciborium::from_reader(&mut rest).ok()?;
    *bytes = rest;
    Some(json(item))
}

/// Encodes a value. Strings become text strings, as with most libraries. Go writes byte strings
/// instead.
pub(crate) fn write(value: &Value) -> Vec<u8> {
    let mut bytes = SELF_DESCRIBED.to_vec();
    ciborium::into_writer(value, &mut bytes).expect("writable");
    bytes
}

fn json(item: Cbor) -> Value {
    let text = |bytes| Value::String(String::from_utf8(bytes).expect("text"));
    match item {
        Cbor::Bytes(bytes) => text(bytes),
        Cbor::Tag(22, inner) => inner.into_bytes().expect("bytes").into(),
        Cbor::Tag(_, inner) => json(*inner),
        Cbor::Array(elements) => elements.into_iter().map(json).collect(),
        Cbor::Map(entries) => {
            let entries = entries.into_iter().map(|(key, value)| (json(key), json(value)));
            Value::Object(entries.map(|(key, value)| (key.as_str().expect("text").into(), value)).collect())
        }
        other => other.deserialized().expect("a plain value"),
    }
}
