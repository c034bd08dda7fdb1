//! [`ExpectedType`]: checks the type of received objects.
//!
//! Without this check, a request with the wrong plural could succeed in lists and fail in watches.
//! Types of k8s-openapi check `kind` and `apiVersion` if present, but servers omit them from the
//! items of a list of a built-in kind. Other types do not check these fields at all.
//!
//! Kinds with choices are not stored as protobuf. A choice is a message whose JSON is the value of
//! one of its fields, instead of an object.

use std::collections::HashSet;

use kube::Resource;
use kube_messages::{Field, Message, Messages};

use super::prune_paths::PrunePaths;
use super::repair::INVALID;
use super::tape::Tape;

/// The `kind` and the `apiVersion` of metadata-only objects.
const METADATA_ONLY: (&str, &str) = ("PartialObjectMetadata", "meta.k8s.io/v1");

#[derive(Debug, Clone)]
pub(crate) struct ExpectedType {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    metadata_only: bool,
    /// The name of the Rust type.
    pub(super) type_name: &'static str,
}

impl ExpectedType {
    pub(crate) fn of<K: Resource>(dynamic_type: &K::DynamicType) -> Self {
        Self {
            api_version: K::api_version(dynamic_type).into_owned(),
            kind: K::kind(dynamic_type).into_owned(),
            metadata_only: K::metadata_api(),
            type_name: std::any::type_name::<K>(),
        }
    }

    /// Returns whether the objects can be decoded from protobuf.
    pub(crate) fn has_message(&self) -> bool {
        self.metadata_only || Messages::all().of_kind(&self.api_version, &self.kind).is_some()
    }

    /// Returns the type of the objects' protobuf message. Returns `None` if objects can't be stored
    /// as protobuf.
    pub(super) fn storable_message(&self) -> Option<&'static Message> {
        // `protobuf::check` can ensure only for types of k8s-openapi, and for messages without
        // choices, that each stored message can be decoded later.
        if self.has_other_fields() || self.metadata_only {
            return None;
        }
        let message = Messages::all().of_kind(&self.api_version, &self.kind)?;
        (!has_choice(message, &mut HashSet::new())).then_some(message)
    }

    /// Returns whether the Rust type can have fields that [`kube_messages`] does not describe.
    /// Types of k8s-openapi cannot.
    fn has_other_fields(&self) -> bool {
        !self.type_name.starts_with("k8s_openapi::")
    }

    /// Returns the expected type for requests of only the metadata. An object of this type can also
    /// have the kind `PartialObjectMetadata`, which servers use for such responses.
    pub(crate) fn metadata_only(self) -> Self {
        Self { metadata_only: true, ..self }
    }

    /// Returns the paths of the fields to prune. These are the given paths and, for requests of
    /// only the metadata, all fields except `apiVersion`, `kind` and `metadata`.
    pub(crate) fn paths(&self, paths: PrunePaths) -> PrunePaths {
        if self.metadata_only { paths.metadata_only() } else { paths }
    }

    /// Returns an error message if the object must be refused, for example because its `kind` is
    /// not the expected one.
    pub(super) fn refusal(&self, object: &Tape<'_>) -> Option<String> {
        // The Rust type can have the unknown fields, and their values would be lost.
        if object.has_unknown_fields && self.has_other_fields() && !self.metadata_only {
            return Some("it has unknown protobuf fields; the next request will be for JSON".to_owned());
        }
        let is = |stated: &str, expected: &str, metadata_only: &str| {
            let is_metadata = self.metadata_only && stated == metadata_only;
            // I10: a damaged text must make only this object undecodable, not the whole response.
            stated.is_empty() || stated == expected || is_metadata || stated.contains(INVALID)
        };
        let (kind, api_version) = (object.text_of("kind"), object.text_of("apiVersion"));
        let is_expected =
            is(kind, &self.kind, METADATA_ONLY.0) && is(api_version, &self.api_version, METADATA_ONLY.1);
        (!is_expected).then(|| self.mismatch(kind, api_version))
    }

    /// Returns an error message if the `kind` or `apiVersion` of a list is not the expected one.
    pub(super) fn refusal_of_list(&self, kind: &str, api_version: &str) -> Option<String> {
        let item = kind.strip_suffix("List").unwrap_or(kind);
        let is_metadata = item == METADATA_ONLY.0 && api_version.starts_with("meta.k8s.io/");
        let is_any = item.is_empty() && ["", "v1"].contains(&api_version);
        // A `CustomResourceDefinition` can choose any kind for its lists. Its group contains a dot.
        let is_free_in_kind = kind.is_empty() || self.api_version.contains('.');
        let is_expected = (is_free_in_kind || item == self.kind)
            && (api_version.is_empty() || api_version == self.api_version);
        let is_possible = is_expected || is_any || (self.metadata_only && is_metadata);
        (!is_possible).then(|| self.mismatch(kind, api_version))
    }

    fn mismatch(&self, kind: &str, api_version: &str) -> String {
        format!(
            "it has kind {} ({}) instead of the requested {} ({}); check group, version, kind and plural",
            plain(kind),
            plain(api_version),
            self.kind,
            self.api_version
        )
    }
}

/// Returns whether a message, or a message nested in it, is a [choice](Message::is_choice). `seen`
/// has the messages that have already been checked.
fn has_choice(message: &'static Message, seen: &mut HashSet<usize>) -> bool {
    seen.insert(message.index)
        && (message.is_choice
            || message.fields.iter().filter_map(Field::message).any(|inner| has_choice(inner, seen)))
}

/// Returns the text that an error message shows for a received `kind` or `apiVersion`.
/// - If `name` is a valid name, returns `name`.
/// - If `name` is empty, returns `unstated`.
/// - If `name` is invalid, returns `unreadable`, because `name` could be a secret.
fn plain(name: &str) -> &str {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"./-".contains(&byte);
    match name {
        "" => "unstated",
        name if name.len() <= 253 && name.bytes().all(is_plain) => name,
        _ => "unreadable",
    }
}
