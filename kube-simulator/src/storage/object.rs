//! [`Object`]: one version of one object, serialized once for the store, the history and all
//! watches.
//!
//! Labels and selectable fields are extracted, so that most selectors need not parse the JSON.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::kinds::ResourceKind;

pub(crate) struct Object {
    /// The storage key: `namespace/name`, or only the name for a cluster-scoped object.
    pub(crate) key: String,
    pub(crate) uid: Box<str>,
    pub(crate) resource_version: u64,
    /// Whether the object has a deletion timestamp.
    pub(crate) terminating: bool,
    /// The UIDs of the owner references, each with `true` if `blockOwnerDeletion` is set.
    pub(crate) owners: Box<[(Box<str>, bool)]>,
    /// Sorted by key.
    labels: Box<[(Box<str>, Box<str>)]>,
    /// The values of the kind's selectable fields, in the kind's order.
    fields: Box<[Box<str>]>,
    json: Bytes,
    /// The position of the key `"metadata"` in `json`. Only `kind` and `apiVersion` are before it.
    content_start: usize,
    /// The range of the value of `metadata` in `json`.
    metadata: Range<usize>,
    /// The whole object as a protobuf message. Empty until [`protobuf`](Self::protobuf) is called.
    protobuf: OnceLock<Box<[u8]>>,
}

impl Object {
    /// Serializes an object. Sets `metadata.resourceVersion` to `version`, unless `version` is 0.
    /// The JSON begins with `kind`, `apiVersion` and `metadata`, like a real server's JSON of
    /// built-in kinds.
    pub(crate) fn encode(
        kind: &ResourceKind,
        key: String,
        mut value: Map<String, Value>,
        version: u64,
    ) -> Arc<Self> {
        let mut metadata = take_metadata(&mut value);
        if version > 0 {
            metadata.insert("resourceVersion".to_owned(), Value::String(version.to_string()));
        }
        let uid = metadata.get("uid").and_then(Value::as_str).unwrap_or_default().into();
        let terminating = metadata.get("deletionTimestamp").is_some_and(Value::is_string);
        let owners = owners_of(&metadata);
        let labels = labels_of(&metadata);
        let fields = kind.selectable_fields.iter().map(|field| field_of(kind, &value, field)).collect();

        let mut json = Vec::with_capacity(1024);
        json.extend_from_slice(b"{\"kind\":");
        append(&mut json, &Value::String(kind.kind.clone()));
        json.extend_from_slice(b",\"apiVersion\":");
        append(&mut json, &Value::String(kind.api_version()));
        json.push(b',');
        let content_start = json.len();
        json.extend_from_slice(b"\"metadata\":");
        let metadata_start = json.len();
        append(&mut json, &Value::Object(metadata));
        let metadata = metadata_start..json.len();
        for (name, part) in value {
            if name == "kind" || name == "apiVersion" {
                continue;
            }
            json.push(b',');
            append(&mut json, &Value::String(name));
            json.push(b':');
            append(&mut json, &part);
        }
        json.push(b'}');
        json.shrink_to_fit();
        let json = Bytes::from(json);
        Arc::new(Self {
            key,
            uid,
            resource_version: version,
            terminating,
            owners,
            labels,
            fields,
            json,
            content_start,
            metadata,
            protobuf: OnceLock::new(),
        })
    }

    pub(crate) fn decode(&self) -> Map<String, Value> {
        // `encode` has written these bytes as a JSON object, so parsing could fail only for an
        // object that is nested more deeply than the JSON parser accepts. `api::writes` refuses
        // such objects.
        serde_json::from_slice(&self.json).unwrap_or_default()
    }

    pub(crate) fn json(&self) -> &Bytes {
        &self.json
    }

    /// Returns the object in protobuf. Only the first call runs `encode`.
    pub(crate) fn protobuf(&self, encode: impl FnOnce(&[u8]) -> Vec<u8>) -> &[u8] {
        self.protobuf.get_or_init(|| encode(&self.json).into())
    }

    /// Returns the JSON after `kind` and `apiVersion`, including the closing brace.
    ///
    /// In lists of built-in kinds, a real server omits these two fields from the items.
    pub(crate) fn json_after_type(&self) -> &[u8] {
        &self.json[self.content_start..]
    }

    pub(crate) fn metadata_json(&self) -> &[u8] {
        &self.json[self.metadata.clone()]
    }

    pub(crate) fn label(&self, name: &str) -> Option<&str> {
        let index = self.labels.binary_search_by(|(key, _)| key.as_ref().cmp(name)).ok()?;
        Some(&self.labels[index].1)
    }

    /// Returns the value of the kind's selectable field with this index.
    pub(crate) fn field(&self, index: usize) -> &str {
        self.fields.get(index).map_or("", |value| value)
    }

    /// Returns the value at a dotted path as text; an empty string if the value is absent or not a
    /// scalar. Parses the whole object.
    pub(crate) fn text_at(&self, path: &str) -> Box<str> {
        text_at(&self.decode(), path).unwrap_or_default()
    }

    pub(crate) fn namespace(&self) -> Option<&str> {
        self.key.split_once('/').map(|(namespace, _)| namespace)
    }

    pub(crate) fn name(&self) -> &str {
        self.key.split_once('/').map_or(self.key.as_str(), |(_, name)| name)
    }
}

/// Omits the content, because the object can be a Secret.
impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Object");
        shown
            .field("key", &self.key)
            .field("resource_version", &self.resource_version)
            .finish_non_exhaustive()
    }
}

fn take_metadata(value: &mut Map<String, Value>) -> Map<String, Value> {
    match value.remove("metadata") {
        Some(Value::Object(metadata)) => metadata,
        _ => Map::new(),
    }
}

fn append(json: &mut Vec<u8>, value: &Value) {
    // Writing a JSON value to memory cannot fail: its keys are strings and the buffer grows.
    let _ = serde_json::to_writer(json, value);
}

fn owners_of(metadata: &Map<String, Value>) -> Box<[(Box<str>, bool)]> {
    let references = metadata.get("ownerReferences").and_then(Value::as_array);
    let owners = references.into_iter().flatten().filter_map(|owner| {
        let uid: Box<str> = owner.get("uid")?.as_str()?.into();
        Some((uid, owner["blockOwnerDeletion"] == true))
    });
    owners.collect()
}

fn labels_of(metadata: &Map<String, Value>) -> Box<[(Box<str>, Box<str>)]> {
    let Some(Value::Object(labels)) = metadata.get("labels") else {
        return Box::default();
    };
    let mut pairs: Vec<(Box<str>, Box<str>)> = labels
        .iter()
        .filter_map(|(name, value)| Some((name.as_str().into(), value.as_str()?.into())))
        .collect();
    pairs.sort_unstable();
    pairs.into()
}

/// Returns a selectable field as the server formats it.
fn field_of(kind: &ResourceKind, value: &Map<String, Value>, field: &str) -> Box<str> {
    match kind.sources.iter().find(|source| source.field == field) {
        None => text_at(value, field).unwrap_or_default(),
        Some(source) => {
            let found = source.paths.iter().find_map(|path| text_at(value, path));
            found.unwrap_or_else(|| source.otherwise.into())
        }
    }
}

/// Formats the value at a dotted path. Returns `None` if the value is absent, empty or not a
/// scalar.
fn text_at(value: &Map<String, Value>, path: &str) -> Option<Box<str>> {
    let mut steps = path.split('.');
    let first = steps.next().and_then(|step| value.get(step));
    match steps.try_fold(first?, |found, step| found.get(step))? {
        Value::String(text) if text.is_empty() => None,
        Value::String(text) => Some(text.as_str().into()),
        other @ (Value::Bool(_) | Value::Number(_)) => Some(other.to_string().into()),
        _ => None,
    }
}
