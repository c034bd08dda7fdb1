//! Converts JSON to protobuf, with the same bytes as Go: fields are in the order of their numbers,
//! and missing fields are included unless they are pointers, lists, maps or byte strings in Go.
//! Exception: quantities are copied as written, but Go writes `1000m` as `1`.
//!
//! An encoded object is an envelope with its `apiVersion` and `kind`, around its content: all other
//! fields.

use std::sync::{LazyLock, OnceLock};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use kube_messages::{Field, Message, Messages, Shape, Type, put_bytes, put_double, put_nested, put_number};

use super::MAGIC;
use super::node::{Fields, Node};

/// The number of bytes to reserve for the envelope of an object.
const ROOM: usize = 256;

/// One entry per protobuf message, at [`Message::index`]: the JSON object `{}`, encoded as this
/// message. The bytes contain the zero values of missing fields.
static EMPTY: LazyLock<Vec<OnceLock<Vec<u8>>>> =
    LazyLock::new(|| (0..Messages::all().len()).map(|_| OnceLock::new()).collect());

/// A value does not have the type of its field. A real server cannot store such a value, but the
/// simulator does not check built-in kinds.
struct WrongFieldType;

/// Encodes an object from JSON that contains `kind` and `apiVersion`. The result is empty if the
/// kind has no protobuf message.
pub(crate) fn document(json: &[u8]) -> Vec<u8> {
    let object = Fields::parse(json);
    let (api_version, kind) = (object.text("apiVersion"), object.text("kind"));
    let content = content_of(api_version, kind, &object);
    content.map_or_else(Vec::new, |content| document_of(api_version, kind, &content))
}

/// Encodes the content of an object, without the envelope. Returns `None` if the kind has no
/// protobuf message.
pub(crate) fn content(api_version: &str, kind: &str, json: &[u8]) -> Option<Vec<u8>> {
    content_of(api_version, kind, &Fields::parse(json))
}

fn content_of(api_version: &str, kind: &str, object: &Fields<'_>) -> Option<Vec<u8>> {
    // The metadata-only kinds have the same messages in both versions.
    let api_version = if api_version == "meta.k8s.io/v1beta1" { "meta.k8s.io/v1" } else { api_version };
    let message = Messages::all().of_kind(api_version, kind)?;
    let mut out = Vec::new();
    put_message(&mut out, message, object);
    Some(out)
}

/// Adds the envelope to the encoded content of an object.
pub(crate) fn document_of(api_version: &str, kind: &str, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(content.len() + ROOM);
    put_envelope(&mut out, api_version, kind, |out| put_bytes(out, 2, content));
    out
}

/// Encodes a list. `empty` is the JSON of the list without its items, for the kind and the
/// metadata. Each item is an object that [`content`] has encoded.
pub(crate) fn list<C: AsRef<[u8]>>(empty: &[u8], items: impl Iterator<Item = C>) -> Vec<u8> {
    let head = Fields::parse(empty);
    let (api_version, kind) = (head.text("apiVersion"), head.text("kind"));
    let items: Vec<C> = items.collect();
    let length: usize = items.iter().map(|item| item.as_ref().len() + 8).sum();
    let mut out = Vec::with_capacity(length + ROOM);
    put_envelope(&mut out, api_version, kind, |out| {
        put_nested(out, 2, |out| {
            let metadata = head.get("metadata").and_then(Node::fields);
            put_inner(out, 1, Messages::all().find("meta.v1.ListMeta"), metadata);
            for item in &items {
                put_bytes(out, 2, item.as_ref());
            }
        });
    });
    out
}

/// Encodes a `WatchEvent` from its type, such as `ADDED`, and its encoded object.
pub(crate) fn event(event_type: &str, document: &[u8]) -> Vec<u8> {
    let mut event = Vec::with_capacity(document.len() + ROOM);
    put_bytes(&mut event, 1, event_type.as_bytes());
    put_nested(&mut event, 2, |extension| put_bytes(extension, 1, document));
    event
}

/// Wraps encoded content in Kubernetes' envelope, a `runtime.Unknown` message.
fn put_envelope(out: &mut Vec<u8>, api_version: &str, kind: &str, put_content: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(MAGIC);
    put_nested(out, 1, |type_meta| {
        put_bytes(type_meta, 1, api_version.as_bytes());
        put_bytes(type_meta, 2, kind.as_bytes());
    });
    put_content(out);
    // Fields 3 and 4, the encoding and the type of the content, are empty.
    put_bytes(out, 3, b"");
    put_bytes(out, 4, b"");
}

fn put_message(out: &mut Vec<u8>, message: &Message, object: &Fields<'_>) {
    for field in &message.fields {
        if field.is_inlined {
            put_inner(out, field.number, field.message(), Some(object));
            continue;
        }
        let before = out.len();
        if put_field(out, field, object.get(field.name)).is_err() {
            out.truncate(before);
            tracing::warn!(
                message_type = message.name,
                field = field.name,
                "omitted a field from a protobuf response, because the stored value is not valid for the field"
            );
        }
    }
}

fn put_field(out: &mut Vec<u8>, field: &Field, value: Option<&Node<'_>>) -> Result<(), WrongFieldType> {
    match (field.shape, value) {
        (Shape::List, Some(Node::List(elements))) => {
            elements.iter().try_for_each(|element| put_value(out, field.number, field, element))
        }
        (Shape::Map, Some(Node::Object(entries))) => {
            for (key, value) in entries.iter() {
                let mut is_fit = Ok(());
                put_nested(out, field.number, |entry| {
                    put_bytes(entry, 1, key.as_bytes());
                    is_fit = put_value(entry, 2, field, value);
                });
                is_fit?;
            }
            Ok(())
        }
        (Shape::List | Shape::Map, Some(_)) => Err(WrongFieldType),
        (_, Some(value)) => put_value(out, field.number, field, value),
        (Shape::Plain | Shape::Always, None) => {
            put_zero(out, field.number, field);
            Ok(())
        }
        (Shape::List | Shape::Map | Shape::Pointer, None) => Ok(()),
    }
}

/// Appends field `number` with the zero value of the type of `field`, such as 0 or an empty string.
fn put_zero(out: &mut Vec<u8>, number: u64, field: &Field) {
    match field.value_type {
        // As in Go, a missing byte string is not encoded.
        Type::Bytes => {}
        Type::Int | Type::Long | Type::Bool => put_number(out, number, 0),
        Type::Double => put_double(out, number, 0.0),
        Type::Quantity => put_text(out, number, 1, "0"),
        Type::IntOrString => put_int_or_string(out, number, 0, None),
        Type::Text | Type::Time | Type::MicroTime | Type::Json => put_bytes(out, number, b""),
        Type::Message(_) => put_inner(out, number, field.message(), None),
    }
}

fn put_value(out: &mut Vec<u8>, number: u64, field: &Field, value: &Node<'_>) -> Result<(), WrongFieldType> {
    match (field.value_type, value) {
        (_, Node::Null) => put_zero(out, number, field),
        (Type::Json, value) => put_nested(out, number, |inner| {
            let mut json = Vec::new();
            value.append_json(&mut json);
            put_bytes(inner, 1, &json);
        }),
        (_, Node::Raw(raw)) => {
            // This is not the `fieldsV1` of a manager but another field with the same name, such as
            // a key of a ConfigMap.
            let value = serde_json::from_str(raw.get()).map_err(|_| WrongFieldType)?;
            return put_value(out, number, field, &value);
        }
        (Type::Int | Type::Long, value) => {
            put_number(out, number, value.as_i64().ok_or(WrongFieldType)?.cast_unsigned());
        }
        (Type::Double, value) => put_double(out, number, value.as_f64().ok_or(WrongFieldType)?),
        (Type::Bool, Node::Bool(value)) => put_number(out, number, (*value).into()),
        (Type::Text, Node::Text(text)) => put_bytes(out, number, text.as_bytes()),
        (Type::Bytes, Node::Text(text)) => {
            put_bytes(out, number, &BASE64_STANDARD.decode(text.as_bytes()).map_err(|_| WrongFieldType)?);
        }
        // Go truncates `MicroTime` to microseconds, and `Time` to seconds.
        (Type::MicroTime, Node::Text(text)) => put_time(out, number, text, 1_000)?,
        (Type::Time, Node::Text(text)) => put_time(out, number, text, 1_000_000_000)?,
        (Type::Quantity, Node::Text(text)) => put_text(out, number, 1, text),
        (Type::Quantity, Node::Number(quantity)) => put_text(out, number, 1, &quantity.to_string()),
        (Type::IntOrString, Node::Text(text)) => put_int_or_string(out, number, 0, Some(text)),
        (Type::IntOrString, value) => {
            put_int_or_string(out, number, value.as_i64().ok_or(WrongFieldType)?, None);
        }
        (Type::Message(index), value) if Messages::all().at(index).is_choice => {
            put_choice(out, number, Messages::all().at(index), value)?;
        }
        (Type::Message(_), Node::Object(object)) => put_inner(out, number, field.message(), Some(object)),
        _ => return Err(WrongFieldType),
    }
    Ok(())
}

/// Appends field `number` with `object`, encoded as the protobuf message `message`. An `object` of
/// `None` means an empty JSON object.
fn put_inner(out: &mut Vec<u8>, number: u64, message: Option<&Message>, object: Option<&Fields<'_>>) {
    match (message, object) {
        (None, _) => put_bytes(out, number, b""),
        (Some(message), Some(object)) => put_nested(out, number, |out| put_message(out, message, object)),
        (Some(message), None) => {
            let empty = EMPTY[message.index].get_or_init(|| {
                let mut empty = Vec::new();
                put_message(&mut empty, message, &Fields::default());
                empty
            });
            put_bytes(out, number, empty);
        }
    }
}

/// Appends field `number`, whose value can have one of several types in JSON
/// ([`Message::is_choice`]). Returns an error if no field of `choice` can encode `value`.
fn put_choice(
    out: &mut Vec<u8>,
    number: u64,
    choice: &Message,
    value: &Node<'_>,
) -> Result<(), WrongFieldType> {
    let is_list = matches!(value, Node::List(_));
    let mut fields = choice.fields.iter().rev().filter(|field| (field.shape == Shape::List) == is_list);
    // Of the fields that can encode the value, only the one with the highest number is written.
    let encoded = fields.find_map(|field| {
        let mut content = Vec::new();
        put_field(&mut content, field, Some(value)).ok().map(|()| content)
    });
    let encoded = encoded.ok_or(WrongFieldType)?;
    put_nested(out, number, |inner| {
        let boolean = choice.fields.iter().find(|field| field.value_type == Type::Bool);
        if let (Some(boolean), Node::Object(_)) = (boolean, value) {
            // In Go, a schema for additional properties also allows them.
            put_number(inner, boolean.number, 1);
        }
        inner.extend_from_slice(&encoded);
    });
    Ok(())
}

/// Encodes field `number`, whose value is a message with one string field, `inner_number`.
fn put_text(out: &mut Vec<u8>, number: u64, inner_number: u64, text: &str) {
    put_nested(out, number, |inner| put_bytes(inner, inner_number, text.as_bytes()));
}

/// Encodes a time, rounded down to a multiple of `unit` nanoseconds.
fn put_time(out: &mut Vec<u8>, number: u64, text: &str, unit: i32) -> Result<(), WrongFieldType> {
    let time: Timestamp = text.parse().map_err(|_| WrongFieldType)?;
    // Before 1970, jiff rounds the seconds up, and the nanoseconds are negative.
    let nanoseconds = time.subsec_nanosecond();
    let seconds = time.as_second() - i64::from(nanoseconds < 0);
    let nanoseconds = nanoseconds.rem_euclid(1_000_000_000);
    put_nested(out, number, |inner| {
        put_number(inner, 1, seconds.cast_unsigned());
        put_number(inner, 2, i64::from(nanoseconds - nanoseconds % unit).cast_unsigned());
    });
    Ok(())
}

fn put_int_or_string(out: &mut Vec<u8>, field: u64, number: i64, text: Option<&str>) {
    put_nested(out, field, |inner| {
        put_number(inner, 1, text.is_some().into());
        put_number(inner, 2, number.cast_unsigned());
        put_bytes(inner, 3, text.unwrap_or_default().as_bytes());
    });
}
