//! Objects in CBOR (KEP-4222), as from servers with the feature gate `CBORServingAndStorage`.
//!
//! As in the Go implementation, strings are encoded as byte strings, which a decoder need not check
//! for UTF-8. Base64 strings in built-in kinds become their decoded bytes with a tag, so that a
//! reader without type information can restore the string. The items of a watch follow each other
//! without separators (RFC 8742).

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use ciborium::Value as Cbor;
use kube_messages::Shape;
use serde_json::{Map, Number, Value};

use crate::http::encoding::protobuf::{FieldType, field_type, message_of};

pub(crate) const MEDIA_TYPE: &str = "application/cbor";
/// The media type of watches.
pub(crate) const SEQUENCE: &str = "application/cbor-seq";
pub(crate) const APPLY: &str = "application/apply-patch+cbor";

/// The bytes of the tag that identifies CBOR.
const SELF_DESCRIBED: [u8; 3] = [0xd9, 0xd9, 0xf7];

/// The tag of bytes that become URL-safe base64 in JSON.
const BASE64_URL: u64 = 21;
/// The tag of bytes that become base64 in JSON.
const BASE64: u64 = 22;
/// The tag of bytes that become hexadecimal digits in JSON.
const HEX: u64 = 23;

type Object = Map<String, Value>;

pub(crate) fn document(object: &Object) -> Vec<u8> {
    let text = |name| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let message = message_of(api_version, kind).map(FieldType::message);
    let written = match (kind.strip_suffix("List"), message) {
        // `kube_messages` does not describe lists of whole objects, because they all have the same
        // structure.
        (Some(kind), None) => {
            let item = message_of(api_version, kind).map(FieldType::message);
            fields(object, |name| item.filter(|_| name == "items"))
        }
        _ => map(object, message),
    };
    let mut out = SELF_DESCRIBED.to_vec();
    append(&mut out, &written);
    out
}

/// Encodes a watch event from its type, such as `ADDED`, and its encoded object.
pub(crate) fn event(event_type: &str, document: &[u8]) -> Vec<u8> {
    // The head of a map with two entries.
    let mut out = [&SELF_DESCRIBED[..], &[0xa2]].concat();
    for text in ["type", event_type, "object"] {
        append(&mut out, &bytes(text));
    }
    out.extend_from_slice(document);
    out
}

/// Decodes an object. Returns `None` unless the bytes are a single object.
pub(crate) fn read(mut body: &[u8]) -> Option<Object> {
    let read = ciborium::from_reader(&mut body).ok().filter(|_| body.is_empty())?;
    match json(read)? {
        Value::Object(object) => Some(object),
        _ => None,
    }
}

fn append(out: &mut Vec<u8>, value: &Cbor) {
    // Writing to memory cannot fail.
    let _ = ciborium::into_writer(value, out);
}

fn bytes(text: &str) -> Cbor {
    Cbor::Bytes(text.as_bytes().to_vec())
}

fn fields(object: &Object, type_of: impl Fn(&str) -> Option<FieldType>) -> Cbor {
    Cbor::Map(object.iter().map(|(name, value)| (bytes(name), cbor(value, type_of(name)))).collect())
}

fn map(object: &Object, field: Option<FieldType>) -> Cbor {
    fields(object, |name| match field {
        Some(field) if field.shape == Shape::Map => Some(FieldType { shape: Shape::Plain, ..field }),
        Some(field) => field_type(field.name, name),
        None => None,
    })
}

/// Converts a value to CBOR. `field` is the type of the value, which is known for built-in kinds
/// only.
fn cbor(value: &Value, field: Option<FieldType>) -> Cbor {
    match value {
        Value::Null => Cbor::Null,
        Value::Bool(value) => Cbor::Bool(*value),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Cbor::Integer(number.into()),
            (None, Some(number)) => Cbor::Integer(number.into()),
            (None, None) => Cbor::Float(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => {
            let binary = field.filter(FieldType::is_binary).and_then(|_| BASE64_STANDARD.decode(text).ok());
            binary.map_or_else(|| bytes(text), |binary| Cbor::Tag(BASE64, Box::new(Cbor::Bytes(binary))))
        }
        Value::Array(elements) => Cbor::Array(elements.iter().map(|element| cbor(element, field)).collect()),
        Value::Object(object) => map(object, field),
    }
}

/// Converts CBOR to JSON. Returns `None` for an invalid or unsupported value, for example a map
/// with a duplicate key.
fn json(value: Cbor) -> Option<Value> {
    Some(match value {
        Cbor::Null => Value::Null,
        Cbor::Bool(value) => value.into(),
        Cbor::Integer(number) => i64::try_from(number).ok()?.into(),
        Cbor::Float(number) => Number::from_f64(number)?.into(),
        Cbor::Text(text) => text.into(),
        Cbor::Bytes(bytes) => String::from_utf8(bytes).ok()?.into(),
        Cbor::Tag(tag, inner) => match (tag, *inner) {
            (BASE64_URL, Cbor::Bytes(bytes)) => BASE64_URL_SAFE_NO_PAD.encode(bytes).into(),
            (BASE64, Cbor::Bytes(bytes)) => BASE64_STANDARD.encode(bytes).into(),
            (HEX, Cbor::Bytes(bytes)) => {
                bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
            }
            // The tags 2 and 3 mark big integers, which can be too large for a JSON number.
            (2 | 3, _) => return None,
            (_, inner) => json(inner)?,
        },
        Cbor::Array(elements) => elements.into_iter().map(json).collect::<Option<Vec<Value>>>()?.into(),
        Cbor::Map(entries) => {
            let mut object = Object::new();
            for (key, value) in entries {
                let Value::String(key) = json(key)? else {
                    return None;
                };
                if object.insert(key, json(value)?).is_some() {
                    return None;
                }
            }
            object.into()
        }
        _ => return None,
    })
}
