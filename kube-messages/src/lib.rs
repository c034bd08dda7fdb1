//! The messages of Kubernetes' protobuf encoding, as a table of their fields.
//!
//! With this table, a program can read and write any built-in kind without generated code, and
//! convert between protobuf and JSON. The table is generated from Kubernetes' Go types, because
//! Kubernetes' `.proto` files do not show which fields JSON omits. Nor do these files show which
//! messages have another form in JSON than an object, such as a list. The table has the fields of
//! Kubernetes 1.33 to 1.37, because newer versions lack some fields of earlier ones.
//!
//! ```
//! use kube_messages::{Content, Fields, Messages, Type};
//!
//! let messages = Messages::all();
//! let pod = messages.of_kind("v1", "Pod").expect("the message of pods");
//! let metadata = pod.field(1).expect("the first field");
//! assert_eq!(metadata.name, "metadata");
//! let Type::Message(metadata) = metadata.value_type else { panic!("not a message") };
//!
//! let mut bytes = Fields(b"\x0a\x03web");
//! while let Some((number, content)) = bytes.next()? {
//!     let field = messages.at(metadata).field(number).expect("a field");
//!     assert!(matches!((field.name, content), ("name", Content::Bytes(b"web"))));
//! }
//! # Ok::<_, kube_messages::Malformed>(())
//! ```
//!
//! `messages.txt` is the table. A line `@apps/v1 Deployment apps.v1.Deployment` maps a kind to its
//! message. A line `apps.v1.Deployment` begins a message, and its fields follow: `2 spec
//! apps.v1.DeploymentSpec`, that is, number, JSON name and type. A type is a message, or `s`, `b`,
//! `i`, `l`, `d`, `y` for strings, booleans, integers of 32 and 64 bits, floating-point numbers and
//! bytes. The type has the prefix `[` for lists, `{` for maps, `*` for optional fields, and `!` for
//! fields that are in JSON even if they are empty. A field with the JSON name `-` contains a
//! message whose fields are, in JSON, among the fields of the outer message. The word `choice`
//! in the first line of a message means that JSON has only the value of one field, instead of an
//! object with all fields; see [`Message::is_choice`].

mod wire;
mod write;

use std::collections::HashMap;
use std::sync::LazyLock;

pub use wire::{Content, Fields, Malformed};
pub use write::{put_bytes, put_double, put_nested, put_number};

/// The text in `messages.txt` that replaces the names of [inlined](Field::is_inlined) fields.
const INLINED: &str = "-";

/// The table of messages. It is a static, because the compiler can copy a constant into a program
/// several times.
static TEXT: &str = include_str!("messages.txt");

static MESSAGES: LazyLock<Messages> = LazyLock::new(|| Messages::parse(TEXT));

/// The protobuf messages of Kubernetes' built-in kinds, with indexes by name and by kind.
#[derive(Debug)]
pub struct Messages {
    kinds: HashMap<(&'static str, &'static str), usize>,
    names: HashMap<&'static str, usize>,
    messages: Vec<Message>,
}

/// A protobuf message of Kubernetes, with its fields.
#[derive(Debug)]
pub struct Message {
    /// The name of the message, such as `core.v1.PodSpec`.
    pub name: &'static str,
    /// The number with which [`Messages::at`] returns this message.
    pub index: usize,
    /// Whether JSON has the value of one field in place of an object with all fields. For example,
    /// the JSON of an `ExtraValue` is `["a"]`, and not `{"items": ["a"]}`. If several fields are
    /// present, JSON has the value of the present field with the highest number.
    pub is_choice: bool,
    /// The fields in the order of their numbers, as Go encodes them.
    pub fields: Vec<Field>,
    /// The table with which [`field`](Self::field) finds a field. For each field number: the
    /// field's position in `fields` plus one, or 0 if there is no such field.
    places: Vec<u8>,
}

/// A field of a protobuf [`Message`].
#[derive(Debug)]
pub struct Field {
    /// The field's number in protobuf.
    pub number: u64,
    /// The field's name in JSON; `-` if [`is_inlined`](Self::is_inlined) is `true`.
    pub name: &'static str,
    /// The position in [`Messages::text`], in bytes, at which the field's name begins.
    pub name_at: usize,
    /// Whether the value is a message whose fields are, in JSON, among the fields of the outer
    /// message.
    pub is_inlined: bool,
    /// Whether the field has one value or several, and when JSON omits it.
    pub shape: Shape,
    /// The type of the value as written in `messages.txt`: the name of a message, such as
    /// `core.v1.PodSpec`, or a letter, such as `s` for a string. For a list or a map, this is the
    /// type of each element.
    pub type_name: &'static str,
    /// The type of the value; for a list or a map, the type of each element.
    pub value_type: Type,
}

/// The type of a field's value, with its forms in protobuf and in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A string.
    Text,
    /// A boolean.
    Bool,
    /// A signed 32-bit integer.
    Int,
    /// A signed 64-bit integer.
    Long,
    /// A floating-point number.
    Double,
    /// Bytes. In JSON, they are a string in base64.
    Bytes,
    /// A message with the seconds since 1970 (field 1) and the nanoseconds (field 2). In JSON, it
    /// is a string without fractions of a second. An empty message means that there is no time.
    Time,
    /// A message with the same fields as [`Type::Time`]. In JSON, it is a string with microseconds.
    MicroTime,
    /// A message whose only field (field 1) contains JSON text.
    Json,
    /// A message whose only field (field 1) is the text of a quantity, such as `500m`.
    Quantity,
    /// A message with a kind (field 1), an integer (field 2) and a string (field 3). In JSON, it is
    /// the string if the kind is 1, and otherwise the integer.
    IntOrString,
    /// A message. The number is its [`Message::index`].
    Message(usize),
}

/// Whether a field has one value or several, and when JSON omits the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One value. JSON omits the field if the value is zero or empty. For some types, JSON has an
    /// empty value instead:
    /// - [`Type::Message`][]: `{}`
    /// - [`Type::Quantity`][]: `"0"`
    /// - [`Type::IntOrString`][]: `0`
    /// - [`Type::Time`][] and [`Type::MicroTime`][]: `null`; some Kubernetes versions omit it
    ///
    /// In protobuf, Go always writes the field, except bytes that are nil.
    Plain,
    /// One value, which JSON never omits.
    Always,
    /// One value or none. JSON omits the field, or has `null`, only if there is no value.
    Pointer,
    /// A list.
    List,
    /// A map with strings as keys. In protobuf, each entry is a message with the key (field 1) and
    /// the value (field 2).
    Map,
}

impl Messages {
    /// Returns the text of the table of messages, in the format that the crate's documentation
    /// describes. The names of messages and fields are slices of this text.
    #[must_use]
    #[inline]
    pub fn text() -> &'static str {
        TEXT
    }

    /// Returns the messages of Kubernetes' built-in kinds. The first call parses the table.
    #[must_use]
    #[inline]
    pub fn all() -> &'static Self {
        &MESSAGES
    }

    /// Returns the message of a kind, such as `apps/v1` and `Deployment`; `None` if the kind is not
    /// built in.
    #[must_use]
    pub fn of_kind(&self, api_version: &str, kind: &str) -> Option<&Message> {
        self.kinds.get(&(api_version, kind)).map(|index| self.at(*index))
    }

    /// Returns the message with this name, such as `core.v1.PodSpec`.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Message> {
        self.names.get(name).map(|index| self.at(*index))
    }

    /// Returns the message whose [`Message::index`] is `index`.
    ///
    /// # Panics
    /// If there is no such message.
    #[must_use]
    #[inline]
    pub fn at(&self, index: usize) -> &Message {
        &self.messages[index]
    }

    /// Returns the names of all messages, in no particular order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.names.keys().copied()
    }

    /// Returns the number of messages.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "the table is never empty")]
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    fn parse(text: &'static str) -> Self {
        let headers = text.lines().filter(|line| is_header(line));
        let headers = headers.map(|line| line.split_once(' ').map_or(line, |(name, _)| name));
        let names: HashMap<_, _> = headers.enumerate().map(|(index, name)| (name, index)).collect();
        let (mut kinds, mut messages) = (HashMap::new(), Vec::<Message>::with_capacity(names.len()));
        for line in text.lines() {
            let words: Vec<&'static str> = line.split(' ').collect();
            match words[..] {
                [version, kind, message] if version.starts_with('@') => {
                    kinds.extend(names.get(message).map(|index| ((&version[1..], kind), *index)));
                }
                [number, name, coded] => {
                    if let (Ok(number), Some(message)) = (number.parse(), messages.last_mut()) {
                        message.fields.push(Field::parse(number, name, coded, &names));
                    }
                }
                _ => messages.push(Message::new(words[0], messages.len(), words.len() > 1)),
            }
        }
        messages.iter_mut().for_each(Message::index_fields);
        Self { kinds, names, messages }
    }
}

/// Returns whether a line of `messages.txt` begins the entry of a message.
fn is_header(line: &str) -> bool {
    !line.starts_with(|first: char| first == '@' || first.is_ascii_digit())
}

impl Message {
    fn new(name: &'static str, index: usize, is_choice: bool) -> Self {
        Self { name, index, is_choice, fields: Vec::new(), places: Vec::new() }
    }

    /// Returns the field with this number; `None` if the message has no such field.
    #[must_use]
    #[inline]
    pub fn field(&self, number: u64) -> Option<&Field> {
        let place = *self.places.get(usize::try_from(number).ok()?)?;
        self.fields.get(usize::from(place).checked_sub(1)?)
    }

    /// Sorts `fields` by number, and fills `places`, in which [`field`](Self::field) looks up
    /// numbers.
    fn index_fields(&mut self) {
        self.fields.sort_by_key(|field| field.number);
        let numbers = self.fields.last().map_or(0, |field| field.number as usize + 1);
        self.places = vec![0; numbers];
        for (place, field) in (1..).zip(&self.fields) {
            self.places[field.number as usize] = place;
        }
    }
}

impl Field {
    fn parse(
        number: u64,
        name: &'static str,
        coded: &'static str,
        names: &HashMap<&'static str, usize>,
    ) -> Self {
        let shapes = [('[', Shape::List), ('{', Shape::Map), ('*', Shape::Pointer), ('!', Shape::Always)];
        let found = shapes.into_iter().find_map(|(code, shape)| Some((shape, coded.strip_prefix(code)?)));
        let (shape, type_name) = found.unwrap_or((Shape::Plain, coded));
        let value_type = match type_name {
            "b" => Type::Bool,
            "i" => Type::Int,
            "l" => Type::Long,
            "d" => Type::Double,
            "y" => Type::Bytes,
            "meta.v1.Time" => Type::Time,
            "meta.v1.MicroTime" => Type::MicroTime,
            "meta.v1.FieldsV1" | "pkg.runtime.RawExtension" | "apiextensions.v1.JSON" => Type::Json,
            "api.resource.Quantity" => Type::Quantity,
            "util.intstr.IntOrString" => Type::IntOrString,
            message => names.get(message).map_or(Type::Text, |index| Type::Message(*index)),
        };
        let name_at = name.as_ptr().addr() - TEXT.as_ptr().addr();
        Self { number, name, name_at, is_inlined: name == INLINED, shape, type_name, value_type }
    }

    /// Returns the message that is the type of the field's value; `None` for all types other than
    /// [`Type::Message`].
    #[must_use]
    pub fn message(&self) -> Option<&'static Message> {
        match self.value_type {
            Type::Message(index) => Some(Messages::all().at(index)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_has_all_kinds_and_each_type_is_known() {
        let messages = Messages::all();
        assert!(messages.kinds.len() > 200 && messages.len() > 900, "{}", messages.len());
        for message in &messages.messages {
            assert_eq!(messages.at(message.index).name, message.name);
            for field in &message.fields {
                let is_known = field.value_type != Type::Text || field.type_name == "s";
                assert!(is_known, "{} {} {}", message.name, field.name, field.type_name);
                assert!(message.field(field.number).is_some_and(|found| found.name == field.name));
                assert!(TEXT[field.name_at..].starts_with(field.name) && field.number < 128);
            }
        }
    }

    fn field(message: &str, name: &str) -> &'static Field {
        let message = Messages::all().find(message).expect(message);
        message.fields.iter().find(|field| field.name == name).expect(name)
    }

    #[test]
    fn kinds_and_fields_of_earlier_versions_are_in_the_table() {
        let only = |api_version, kind| Messages::all().of_kind(api_version, kind).expect(kind);
        only("networking.k8s.io/v1alpha1", "IPAddress");
        only("storagemigration.k8s.io/v1alpha1", "StorageVersionMigration");
        assert_eq!(field("resource.v1alpha3.DeviceTaintSelector", "deviceClassName").number, 1);
        assert_eq!(field("core.v1.PodSpec", "workloadRef").number, 42);
        assert_eq!(field("core.v1.NodeAllocatableResourceClaimStatus", "resources").shape, Shape::Map);
    }

    #[test]
    fn facts_that_proto_files_lack_are_in_the_table() {
        let messages = Messages::all();
        assert!(messages.find("core.v1.Volume").expect("volumes").fields[1].is_inlined);
        assert_eq!(field("core.v1.ContainerPort", "hostPort").shape, Shape::Plain);
        assert_eq!(field("core.v1.ContainerStatus", "restartCount").shape, Shape::Always);
        assert_eq!(field("core.v1.PodSpec", "priority").shape, Shape::Pointer);
        assert!(messages.find("certificates.v1.ExtraValue").expect("extra values").is_choice);
        assert_eq!(field("apiextensions.v1.JSONSchemaProps", "default").value_type, Type::Json);
    }
}
