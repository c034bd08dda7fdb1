//! [`Node`]: parsed JSON with borrowed strings. The fields of an object are in a list, because each
//! field is read only once and building a map would cost more.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Number;
use serde_json::value::RawValue;

#[derive(Debug, Default)]
pub(super) enum Node<'j> {
    #[default]
    Null,
    Bool(bool),
    Number(Number),
    Text(Cow<'j, str>),
    List(Vec<Node<'j>>),
    Object(Fields<'j>),
    /// The unparsed JSON text of a field `fieldsV1`. In `managedFields`, these texts are half of a
    /// typical pod, so they are copied without parsing.
    Raw(&'j RawValue),
}

/// The name of the field whose value stays unparsed JSON text, as [`Node::Raw`].
const RAW: &str = "fieldsV1";

/// The fields of an object, in their original order.
#[derive(Debug, Default)]
pub(super) struct Fields<'j>(Vec<(Text<'j>, Node<'j>)>);

/// A string, borrowed unless it contains escapes.
#[derive(Debug, Deserialize)]
struct Text<'j>(#[serde(borrow)] Cow<'j, str>);

impl<'j> Fields<'j> {
    /// Parses JSON that the simulator has written, which is always an object.
    pub(super) fn parse(json: &'j [u8]) -> Self {
        match serde_json::from_slice(json) {
            Ok(Node::Object(fields)) => fields,
            _ => Self::default(),
        }
    }

    /// Returns a field, unless it is absent or null. A null `fieldsV1` counts as present.
    pub(super) fn get(&self, name: &str) -> Option<&Node<'j>> {
        let (_, value) = self.0.iter().find(|(known, _)| *known.0 == *name)?;
        (!matches!(value, Node::Null)).then_some(value)
    }

    /// Returns the string value of a field, or an empty string.
    pub(super) fn text(&self, name: &str) -> &str {
        match self.get(name) {
            Some(Node::Text(text)) => text,
            _ => "",
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Node<'j>)> {
        self.0.iter().map(|(name, value)| (&*name.0, value))
    }
}

impl<'j> Node<'j> {
    pub(super) fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Number(number) => number.as_i64(),
            _ => None,
        }
    }

    pub(super) fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Number(number) => number.as_f64(),
            _ => None,
        }
    }

    pub(super) fn fields(&self) -> Option<&Fields<'j>> {
        match self {
            Self::Object(fields) => Some(fields),
            _ => None,
        }
    }

    pub(super) fn append_json(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.extend_from_slice(b"null"),
            Self::Bool(value) => out.extend_from_slice(value.to_string().as_bytes()),
            Self::Number(number) => out.extend_from_slice(number.to_string().as_bytes()),
            Self::Text(text) => append_text(text, out),
            Self::Raw(raw) => out.extend_from_slice(raw.get().as_bytes()),
            Self::List(elements) => {
                out.push(b'[');
                for (index, element) in elements.iter().enumerate() {
                    out.extend_from_slice(if index > 0 { b"," } else { b"" });
                    element.append_json(out);
                }
                out.push(b']');
            }
            Self::Object(fields) => {
                out.push(b'{');
                for (index, (name, value)) in fields.iter().enumerate() {
                    out.extend_from_slice(if index > 0 { b"," } else { b"" });
                    append_text(name, out);
                    out.push(b':');
                    value.append_json(out);
                }
                out.push(b'}');
            }
        }
    }
}

fn append_text(text: &str, out: &mut Vec<u8>) {
    // Writing to memory does not fail.
    let _ = serde_json::to_writer(out, text);
}

impl<'de: 'j, 'j> Deserialize<'de> for Node<'j> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Node::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Node::Number(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Node::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Number::from_f64(value).map_or(Node::Null, Node::Number))
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Node::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Node::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = elements.next_element()? {
            list.push(element);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::with_capacity(8);
        while let Some(name) = entries.next_key::<Text<'_>>()? {
            let value =
                if name.0 == RAW { Node::Raw(entries.next_value()?) } else { entries.next_value()? };
            fields.push((name, value));
        }
        Ok(Node::Object(Fields(fields)))
    }
}
