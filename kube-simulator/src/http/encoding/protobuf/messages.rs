//! The known messages, from `messages.txt`, the output of `xtask/clientgo/messages`.
//!
//! A line `@apps/v1 Deployment apps.v1.Deployment` maps a kind to its message. A line
//! `apps.v1.Deployment` begins a message, followed by its fields: `2 spec apps.v1.DeploymentSpec`,
//! that is, number, JSON name and type. A type is a message, or `s`, `b`, `i`, `d`, `y` for
//! strings, booleans, integers, floating-point numbers and bytes. Its prefix is `[` for lists, `{`
//! for maps, `*` for optional fields, and `!` for fields that are in JSON even if they are empty.
//! The JSON name `-` marks a message whose fields are inlined.

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

static TEXT: &str = include_str!("messages.txt");

static MESSAGES: LazyLock<Messages> = LazyLock::new(|| Messages::parse(TEXT));

/// All messages, with indexes by name and by kind.
pub(super) struct Messages {
    kinds: HashMap<(&'static str, &'static str), &'static str>,
    names: HashMap<&'static str, usize>,
    messages: Vec<Message>,
}

#[derive(Default)]
pub(super) struct Message {
    pub(super) name: &'static str,
    /// In the order of their numbers, as Go encodes them.
    pub(super) fields: Vec<Field>,
    /// Go's encoding of an empty message.
    pub(super) empty: OnceLock<Vec<u8>>,
}

pub(super) struct Field {
    pub(super) number: u64,
    /// `-` if the fields of the message are inlined.
    pub(super) name: &'static str,
    pub(super) shape: Shape,
    /// The type of the value, or of the elements.
    pub(super) type_name: &'static str,
    pub(super) value_type: Type,
}

/// The meaning of a type for the encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Text,
    Bool,
    Int,
    Double,
    Bytes,
    Time,
    MicroTime,
    /// A message whose only field contains JSON.
    Json,
    Quantity,
    IntOrString,
    /// A message, by its index; `None` if it has no known fields.
    Message(Option<usize>),
}

/// The number of occurrences of a field, and its presence in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Exactly once; omitted from JSON if empty.
    Plain,
    /// Exactly once; always in JSON.
    Always,
    /// At most once; in JSON if present.
    Pointer,
    List,
    Map,
}

/// The type of a field, for code that traverses JSON.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldType {
    /// The type of the value, or of the elements.
    pub(crate) name: &'static str,
    /// Whether the value is a map.
    pub(crate) is_map: bool,
    /// Whether the value is a list.
    pub(crate) is_list: bool,
}

#[cfg(feature = "cbor")]
impl FieldType {
    /// Returns the type of a field that contains this message.
    pub(crate) fn message(name: &'static str) -> Self {
        Self { name, is_map: false, is_list: false }
    }

    /// Returns whether the values are bytes, which JSON contains as base64 text.
    pub(crate) fn is_binary(&self) -> bool {
        self.name == "y"
    }
}

/// Finds the message of a kind.
pub(crate) fn message_of(api_version: &str, kind: &str) -> Option<&'static str> {
    Messages::all().of_kind(api_version, kind)
}

/// Finds the type of a message's field by its JSON name.
#[cfg(feature = "cbor")]
pub(crate) fn field_type(message: &str, name: &str) -> Option<FieldType> {
    let fields = Messages::all().fields(message);
    let found = fields.iter().find(|field| field.name == name);
    let embedded = || {
        let mut embedded = fields.iter().filter(|field| field.name == "-");
        embedded.find_map(|field| field_type(field.type_name, name))
    };
    found.map(Field::field_type).or_else(embedded)
}

/// Returns the fields of a message by their JSON names, including fields of embedded messages.
pub(crate) fn fields_of(message: &str) -> Vec<(&'static str, FieldType)> {
    let mut found = Vec::new();
    for field in Messages::all().fields(message) {
        match field.name {
            "-" => found.extend(fields_of(field.type_name)),
            name => found.push((name, field.field_type())),
        }
    }
    found
}

impl Field {
    /// Returns the message of the field's type, if that is a message with fields.
    pub(super) fn message(&self) -> Option<&'static Message> {
        match self.value_type {
            Type::Message(Some(place)) => Some(Messages::all().at(place)),
            _ => None,
        }
    }

    fn field_type(&self) -> FieldType {
        let (is_map, is_list) = (self.shape == Shape::Map, self.shape == Shape::List);
        FieldType { name: self.type_name, is_map, is_list }
    }
}

impl Messages {
    pub(super) fn all() -> &'static Self {
        &MESSAGES
    }

    /// Finds the message of a kind.
    pub(super) fn of_kind(&self, api_version: &str, kind: &str) -> Option<&'static str> {
        self.kinds.get(&(api_version, kind)).copied()
    }

    /// Finds a field of a message.
    pub(super) fn field(&self, message: &str, number: u64) -> Option<&Field> {
        self.fields(message).iter().find(|field| field.number == number)
    }

    /// Returns the fields of a message in the order of their numbers, as Go encodes them.
    pub(super) fn fields(&self, message: &str) -> &[Field] {
        self.find(message).map_or(&[], |message| &message.fields)
    }

    pub(super) fn find(&self, name: &str) -> Option<&Message> {
        self.names.get(name).map(|place| &self.messages[*place])
    }

    /// Returns the message at an index.
    pub(super) fn at(&self, place: usize) -> &Message {
        &self.messages[place]
    }

    fn parse(text: &'static str) -> Self {
        let (mut kinds, mut names) = (HashMap::new(), HashMap::new());
        let mut messages: Vec<Message> = Vec::new();
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                [version, kind, message] if version.starts_with('@') => {
                    kinds.insert((&version[1..], kind), message);
                }
                [number, name, coded] => {
                    let (shape, type_name) = Shape::parse(coded);
                    let field = |number| Field { number, name, shape, type_name, value_type: Type::Text };
                    let fields = messages.last_mut().map(|message| &mut message.fields);
                    fields.into_iter().for_each(|fields| fields.extend(number.parse().ok().map(field)));
                }
                _ => {
                    names.insert(line, messages.len());
                    messages.push(Message { name: line, ..Message::default() });
                }
            }
        }
        for message in &mut messages {
            message.fields.sort_by_key(|field| field.number);
            for field in &mut message.fields {
                field.value_type = Type::parse(field.type_name, &names);
            }
        }
        Self { kinds, names, messages }
    }
}

impl Type {
    fn parse(name: &str, places: &HashMap<&str, usize>) -> Self {
        match name {
            "s" => Self::Text,
            "b" => Self::Bool,
            "i" => Self::Int,
            "d" => Self::Double,
            "y" => Self::Bytes,
            "meta.v1.Time" => Self::Time,
            "meta.v1.MicroTime" => Self::MicroTime,
            "meta.v1.FieldsV1" | "pkg.runtime.RawExtension" => Self::Json,
            "api.resource.Quantity" => Self::Quantity,
            "util.intstr.IntOrString" => Self::IntOrString,
            message => Self::Message(places.get(message).copied()),
        }
    }
}

impl Shape {
    fn parse(coded: &str) -> (Self, &str) {
        let shapes = [('[', Self::List), ('{', Self::Map), ('*', Self::Pointer), ('!', Self::Always)];
        let found = shapes.into_iter().find_map(|(code, shape)| Some((shape, coded.strip_prefix(code)?)));
        found.unwrap_or((Self::Plain, coded))
    }
}
