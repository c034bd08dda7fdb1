//! From JSON to protobuf, byte for byte as Go writes it: fields in the order of their numbers, and those that are no
//! pointers even where they are empty.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::messages::{Field, Shape};
use super::wire::{put_bytes, put_double, put_number};
use super::{MAGIC, Messages};

type Object = Map<String, Value>;

/// A value is not what its field has. Go could not have stored it; the simulator, which knows no schemas of built-in
/// kinds, could.
struct Unfit;

/// Writes an object that says its kind and version. There are no bytes if there is no message for them.
pub(crate) fn document(object: &Object) -> Vec<u8> {
    let (api_version, kind) = (text_of(object, "apiVersion"), text_of(object, "kind"));
    let Some(message) = Messages::all().of_kind(api_version, kind) else {
        return Vec::new();
    };
    let mut raw = Vec::new();
    put_message(&mut raw, message, object);
    envelope(api_version, kind, &raw)
}

/// Writes a list of objects, given as what stands before its items, and the items, which need not say their kind.
pub(crate) fn list(head: &Object, items: impl Iterator<Item = Object>) -> Vec<u8> {
    let (api_version, kind) = (text_of(head, "apiVersion"), text_of(head, "kind"));
    let message = kind.strip_suffix("List").and_then(|kind| Messages::all().of_kind(api_version, kind));
    let mut raw = Vec::new();
    nested(&mut raw, 1, "meta.v1.ListMeta", head.get("metadata").and_then(Value::as_object));
    for item in items {
        nested(&mut raw, 2, message.unwrap_or_default(), Some(&item));
    }
    envelope(api_version, kind, &raw)
}

/// Writes a `WatchEvent` about an object that has been written.
pub(crate) fn event(kind: &str, document: &[u8]) -> Vec<u8> {
    let mut extension = Vec::new();
    put_bytes(&mut extension, 1, document);
    let mut event = Vec::new();
    put_bytes(&mut event, 1, kind.as_bytes());
    put_bytes(&mut event, 2, &extension);
    event
}

/// Writes a message whose fields are all text or messages.
pub(crate) fn message(fields: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (number, bytes) in fields {
        put_bytes(&mut out, *number, bytes);
    }
    out
}

/// Puts `runtime.Unknown` around a message.
fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let mut type_meta = Vec::new();
    put_bytes(&mut type_meta, 1, api_version.as_bytes());
    put_bytes(&mut type_meta, 2, kind.as_bytes());
    let mut out = MAGIC.to_vec();
    put_bytes(&mut out, 1, &type_meta);
    put_bytes(&mut out, 2, raw);
    // Neither the content's encoding nor its type is said.
    put_bytes(&mut out, 3, b"");
    put_bytes(&mut out, 4, b"");
    out
}

fn put_message(out: &mut Vec<u8>, message: &str, object: &Object) {
    for field in Messages::all().fields(message) {
        if field.name == "-" {
            nested(out, field.number, field.type_name, Some(object));
            continue;
        }
        let value = object.get(field.name).filter(|value| !value.is_null());
        if put_field(out, field, value).is_err() {
            tracing::warn!(
                message,
                field = field.name,
                "left out of protobuf: it is not of the field's type"
            );
        }
    }
}

fn put_field(out: &mut Vec<u8>, field: &Field, value: Option<&Value>) -> Result<(), Unfit> {
    match (field.shape, value) {
        (Shape::List, Some(Value::Array(elements))) => {
            elements.iter().try_for_each(|element| put_value(out, field.number, field.type_name, element))
        }
        (Shape::Map, Some(Value::Object(entries))) => {
            for (key, value) in entries {
                let mut entry = Vec::new();
                put_bytes(&mut entry, 1, key.as_bytes());
                put_value(&mut entry, 2, field.type_name, value)?;
                put_bytes(out, field.number, &entry);
            }
            Ok(())
        }
        (Shape::List | Shape::Map, Some(_)) => Err(Unfit),
        (_, Some(value)) => put_value(out, field.number, field.type_name, value),
        (Shape::Plain | Shape::Always, None) => {
            put_nothing(out, field);
            Ok(())
        }
        (Shape::List | Shape::Map | Shape::Pointer, None) => Ok(()),
    }
}

/// Writes a field that has no value, but is no pointer either.
fn put_nothing(out: &mut Vec<u8>, field: &Field) {
    match field.type_name {
        "y" => {}
        "i" | "b" => put_number(out, field.number, 0),
        "d" => put_double(out, field.number, 0.0),
        "api.resource.Quantity" => put_text(out, field.number, 1, "0"),
        "util.intstr.IntOrString" => put_int_or_string(out, field.number, 0, None),
        message => nested(out, field.number, message, None),
    }
}

fn put_value(out: &mut Vec<u8>, field: u64, type_name: &str, value: &Value) -> Result<(), Unfit> {
    match (type_name, value) {
        ("i", value) => put_number(out, field, value.as_i64().ok_or(Unfit)?.cast_unsigned()),
        ("d", value) => put_double(out, field, value.as_f64().ok_or(Unfit)?),
        ("b", Value::Bool(value)) => put_number(out, field, (*value).into()),
        ("s", Value::String(text)) => put_bytes(out, field, text.as_bytes()),
        ("y", Value::String(text)) => {
            put_bytes(out, field, &BASE64_STANDARD.decode(text).map_err(|_| Unfit)?);
        }
        // Go drops the fractions of a second from all times but these.
        ("meta.v1.MicroTime", Value::String(text)) => put_time(out, field, text, 1_000)?,
        ("meta.v1.Time", Value::String(text)) => put_time(out, field, text, 1_000_000_000)?,
        ("meta.v1.FieldsV1" | "pkg.runtime.RawExtension", value) => {
            put_text(out, field, 1, &value.to_string());
        }
        ("api.resource.Quantity", Value::String(text)) => put_text(out, field, 1, text),
        ("api.resource.Quantity", Value::Number(number)) => put_text(out, field, 1, &number.to_string()),
        ("util.intstr.IntOrString", Value::String(text)) => put_int_or_string(out, field, 0, Some(text)),
        ("util.intstr.IntOrString", value) => {
            put_int_or_string(out, field, value.as_i64().ok_or(Unfit)?, None);
        }
        ("b" | "s" | "y", _) => return Err(Unfit),
        (message, Value::Object(object)) => nested(out, field, message, Some(object)),
        _ => return Err(Unfit),
    }
    Ok(())
}

fn nested(out: &mut Vec<u8>, field: u64, message: &str, object: Option<&Object>) {
    let mut inner = Vec::new();
    match object {
        Some(object) => put_message(&mut inner, message, object),
        None => put_message(&mut inner, message, &Object::new()),
    }
    put_bytes(out, field, &inner);
}

/// Writes a message with one field, which is text.
fn put_text(out: &mut Vec<u8>, field: u64, inner_field: u64, text: &str) {
    let mut inner = Vec::new();
    put_bytes(&mut inner, inner_field, text.as_bytes());
    put_bytes(out, field, &inner);
}

/// Writes a time, in whole units of so many nanoseconds.
fn put_time(out: &mut Vec<u8>, field: u64, text: &str, unit: i32) -> Result<(), Unfit> {
    let time: Timestamp = text.parse().map_err(|_| Unfit)?;
    let nanoseconds = time.subsec_nanosecond();
    let mut inner = Vec::new();
    put_number(&mut inner, 1, time.as_second().cast_unsigned());
    put_number(&mut inner, 2, i64::from(nanoseconds - nanoseconds % unit).cast_unsigned());
    put_bytes(out, field, &inner);
    Ok(())
}

fn put_int_or_string(out: &mut Vec<u8>, field: u64, number: i64, text: Option<&str>) {
    let mut inner = Vec::new();
    put_number(&mut inner, 1, text.is_some().into());
    put_number(&mut inner, 2, number.cast_unsigned());
    put_bytes(&mut inner, 3, text.unwrap_or_default().as_bytes());
    put_bytes(out, field, &inner);
}

fn text_of<'o>(object: &'o Object, name: &str) -> &'o str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}
