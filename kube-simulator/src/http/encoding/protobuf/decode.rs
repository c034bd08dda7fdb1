//! Converts protobuf to JSON.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use kube_messages::{Content, Field, Fields, Malformed, Message, Messages, Shape, Type};
use serde_json::{Map, Value};

use super::MAGIC;

type Object = Map<String, Value>;

/// Maximum nesting of messages, because decoding is recursive.
// Higher than the maximum depth of JSON, where some messages add no level (`Message::is_choice`).
const MAX_DEPTH: usize = 200;

/// Decodes an object. Returns `None` for an unknown kind, malformed bytes, or messages that are
/// nested too deeply.
pub(crate) fn read(body: &[u8]) -> Option<Object> {
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    let mut envelope = Fields(body.strip_prefix(MAGIC)?);
    while let Some((number, content)) = envelope.next().ok()? {
        match (number, content) {
            (1, Content::Bytes(bytes)) => {
                let mut type_meta = Fields(bytes);
                while let Some((number, Content::Bytes(bytes))) = type_meta.next().ok()? {
                    let text = String::from_utf8_lossy(bytes).into_owned();
                    if number == 1 { api_version = text } else { kind = text }
                }
            }
            (2, Content::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let message = Messages::all().of_kind(&api_version, &kind)?;
    let mut object = message_of(message, raw, MAX_DEPTH).ok()?;
    object.insert("apiVersion".to_owned(), api_version.into());
    object.insert("kind".to_owned(), kind.into());
    Some(object)
}

/// Decodes a message in which messages can be nested up to `depth` levels, this message included.
fn message_of(message: &Message, bytes: &[u8], depth: usize) -> Result<Object, Malformed> {
    let depth = depth.checked_sub(1).ok_or(Malformed)?;
    let mut object = Object::new();
    let mut fields = Fields(bytes);
    while let Some((number, content)) = fields.next()? {
        // Unknown fields, for example of a newer Kubernetes version, are ignored, as in the real
        // server.
        if let Some(field) = message.field(number) {
            put(&mut object, field, content, depth)?;
        }
    }
    Ok(object)
}

fn put(object: &mut Object, field: &Field, content: Content<'_>, depth: usize) -> Result<(), Malformed> {
    match (field.shape, content) {
        (Shape::List, Content::Bytes(packed)) if matches!(field.value_type, Type::Int | Type::Long) => {
            let mut packed = Fields(packed);
            while !packed.0.is_empty() {
                let number = value_of(Type::Int, Content::Number(packed.varint()?), depth)?;
                list(object, field).push(number);
            }
        }
        (Shape::List, content) => {
            let element = value_of(field.value_type, content, depth)?;
            list(object, field).push(element);
        }
        (Shape::Map, Content::Bytes(entry)) => {
            let (key, value) = entry_of(field.value_type, entry, depth)?;
            let map = object.entry(field.name).or_insert_with(|| Value::Object(Object::new()));
            map[key] = value;
        }
        (Shape::Map, _) => return Err(Malformed),
        (shape, content) => {
            let value = value_of(field.value_type, content, depth)?;
            match value {
                Value::Object(inner) if field.is_inlined => object.extend(inner),
                value if shape == Shape::Plain && is_empty(&value) => {}
                // A null value, for example an absent time, is omitted.
                Value::Null => {}
                value => {
                    object.insert(field.name.to_owned(), value);
                }
            }
        }
    }
    Ok(())
}

fn list<'o>(object: &'o mut Object, field: &Field) -> &'o mut Vec<Value> {
    let found = object.entry(field.name).or_insert_with(|| Value::Array(Vec::new()));
    match found {
        Value::Array(elements) => elements,
        _ => unreachable!("two fields of a message have the same name"),
    }
}

fn entry_of(value_type: Type, bytes: &[u8], depth: usize) -> Result<(String, Value), Malformed> {
    let empty = || match value_type {
        Type::Text | Type::Bytes => Value::from(""),
        _ => Value::Object(Object::new()),
    };
    let (mut key, mut value) = (String::new(), empty());
    let mut fields = Fields(bytes);
    while let Some((number, content)) = fields.next()? {
        match (number, content) {
            (1, Content::Bytes(bytes)) => key = String::from_utf8_lossy(bytes).into_owned(),
            (2, content) => value = value_of(value_type, content, depth)?,
            _ => {}
        }
    }
    Ok((key, value))
}

fn value_of(value_type: Type, content: Content<'_>, depth: usize) -> Result<Value, Malformed> {
    Ok(match (value_type, content) {
        (Type::Int | Type::Long, Content::Number(number)) => number.cast_signed().into(),
        (Type::Bool, Content::Number(number)) => (number != 0).into(),
        (Type::Double, Content::Double(number)) => number.into(),
        (Type::Text, Content::Bytes(bytes)) => String::from_utf8_lossy(bytes).into(),
        (Type::Bytes, Content::Bytes(bytes)) => BASE64_STANDARD.encode(bytes).into(),
        // Go ignores the nanoseconds of a `Time`.
        (Type::Time, Content::Bytes(bytes)) => time_of(bytes, "%Y-%m-%dT%H:%M:%SZ")?,
        (Type::MicroTime, Content::Bytes(bytes)) => time_of(bytes, "%Y-%m-%dT%H:%M:%S.%6fZ")?,
        (Type::Json, Content::Bytes(bytes)) => match bytes_within(bytes)? {
            [] => Value::Null,
            json => serde_json::from_slice(json).map_err(|_| Malformed)?,
        },
        (Type::Quantity, Content::Bytes(bytes)) => String::from_utf8_lossy(bytes_within(bytes)?).into(),
        (Type::IntOrString, Content::Bytes(bytes)) => int_or_string(bytes)?,
        (Type::Message(index), Content::Bytes(bytes)) => {
            let message = Messages::all().at(index);
            let mut object = message_of(message, bytes, depth)?;
            if !message.is_choice {
                return Ok(object.into());
            }
            message.fields.iter().rev().find_map(|field| object.remove(field.name)).unwrap_or_default()
        }
        _ => return Err(Malformed),
    })
}

/// Decodes a time, and writes it in a format of `strftime`. An empty message becomes null.
fn time_of(bytes: &[u8], format: &str) -> Result<Value, Malformed> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let (mut seconds, mut nanoseconds) = (0, 0);
    let mut fields = Fields(bytes);
    while let Some((number, content)) = fields.next()? {
        match (number, content) {
            (1, Content::Number(number)) => seconds = number.cast_signed(),
            (2, Content::Number(number)) => nanoseconds = i32::try_from(number).map_err(|_| Malformed)?,
            _ => {}
        }
    }
    let time = Timestamp::new(seconds, nanoseconds).map_err(|_| Malformed)?;
    Ok(time.strftime(format).to_string().into())
}

fn int_or_string(bytes: &[u8]) -> Result<Value, Malformed> {
    let (mut is_text, mut number, mut text) = (false, 0, "".into());
    let mut fields = Fields(bytes);
    while let Some((field, content)) = fields.next()? {
        match (field, content) {
            (1, Content::Number(kind)) => is_text = kind == 1,
            (2, Content::Number(found)) => number = found.cast_signed(),
            (3, Content::Bytes(bytes)) => text = String::from_utf8_lossy(bytes),
            _ => {}
        }
    }
    Ok(if is_text { text.into() } else { number.into() })
}

/// Returns the content of field 1 of a message, or an empty slice if the field is missing.
fn bytes_within(bytes: &[u8]) -> Result<&[u8], Malformed> {
    let mut fields = Fields(bytes);
    while let Some(field) = fields.next()? {
        if let (1, Content::Bytes(bytes)) = field {
            return Ok(bytes);
        }
    }
    Ok(&[])
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(elements) => elements.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}
