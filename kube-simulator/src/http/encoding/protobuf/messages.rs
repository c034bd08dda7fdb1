//! Finds the types of JSON fields in the descriptions of protobuf messages ([`kube_messages`]).

use kube_messages::{Messages, Shape};

/// The type of a field of a protobuf message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldType {
    /// The name of the type, for example `core.v1.PodSpec`, or `y` for bytes. A list or a map has
    /// the name of its element type.
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
}

#[cfg(feature = "cbor")]
impl FieldType {
    /// Returns the type of a field that contains a single message.
    pub(crate) fn message(name: &'static str) -> Self {
        Self { name, shape: Shape::Plain }
    }

    /// Returns whether the values are bytes, which are base64 strings in JSON.
    pub(crate) fn is_binary(&self) -> bool {
        self.name == "y"
    }
}

/// Returns the name of the protobuf message of a kind.
pub(crate) fn message_of(api_version: &str, kind: &str) -> Option<&'static str> {
    Messages::all().of_kind(api_version, kind).map(|message| message.name)
}

/// Finds the type of a message's field by its JSON name.
#[cfg(feature = "cbor")]
pub(crate) fn field_type(message: &str, name: &str) -> Option<FieldType> {
    fields_of(message).into_iter().find(|(known, _)| *known == name).map(|(_, field)| field)
}

/// Returns the fields of a message by their JSON names, including fields of inlined messages.
pub(crate) fn fields_of(message: &str) -> Vec<(&'static str, FieldType)> {
    let fields = Messages::all().find(message).map_or(&[][..], |message| &message.fields);
    let mut found = Vec::new();
    for field in fields {
        if field.is_inlined {
            found.extend(fields_of(field.type_name));
        } else {
            found.push((field.name, FieldType { name: field.type_name, shape: field.shape }));
        }
    }
    found
}
