//! Objects in CBOR (KEP-4222), as servers send them whose feature gate `CBORServingAndStorage` is on.
//!
//! It is JSON in other bytes: text is sent as byte strings, as Go does that need not check it, and what is base64 in JSON
//! as the bytes themselves, tagged so that a reader without types can make base64 of them again. Each document begins
//! with the tag of CBOR itself, by which it is known. The items of a watch follow one another (RFC 8742).

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use ciborium::Value as Cbor;
use serde_json::{Map, Number, Value};

use crate::protobuf::{FieldType, field_type, message_of};

/// The media types of documents, of watches, and of what is applied.
pub(crate) const MEDIA_TYPE: &str = "application/cbor";
pub(crate) const SEQUENCE: &str = "application/cbor-seq";
pub(crate) const APPLY: &str = "application/apply-patch+cbor";

/// The head of the tag that says "this is CBOR".
const SELF_DESCRIBED: [u8; 3] = [0xd9, 0xd9, 0xf7];

/// The tags of bytes that are base64 for URLs, base64, and hexadecimal digits in JSON.
const BASE64_URL: u64 = 21;
const BASE64: u64 = 22;
const HEX: u64 = 23;

type Object = Map<String, Value>;

/// Writes an object.
pub(crate) fn document(object: &Object) -> Vec<u8> {
    let text = |name| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let message = message_of(api_version, kind).map(FieldType::message);
    let written = match (kind.strip_suffix("List"), message) {
        // Lists are not among the messages: they are all alike.
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

/// Writes an event of a watch about an object that has been written.
pub(crate) fn event(kind: &str, document: &[u8]) -> Vec<u8> {
    // Of two entries; the document goes in as it is.
    let mut out = [&SELF_DESCRIBED[..], &[0xa2]].concat();
    for text in ["type", kind, "object"] {
        append(&mut out, &bytes(text));
    }
    out.extend_from_slice(document);
    out
}

/// Reads an object; there is none where the bytes are no single, well-formed one.
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
        Some(field) if field.is_map => Some(FieldType { is_map: false, ..field }),
        Some(field) => field_type(field.name, name),
        None => None,
    })
}

/// Turns a value into CBOR. Its type is known only in objects of built-in kinds.
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

/// Turns CBOR into JSON, if there is such JSON.
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
            // Numbers too large for JSON.
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
