//! [`Shape`]: converts stored objects to the form (whole objects, only metadata, or rows of a
//! table) and the encoding of a response.

mod cells;
mod duration;
mod path;
mod table;
mod text;

pub(crate) use table::{INITIAL_EVENTS_END, Include, Rows};

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use serde_json::{Map, Value, json};

use crate::api::autoscaling;
use crate::api::catalogue::Served;
use crate::api::clock::Clock;
use crate::http::encoding::Encoding;
use crate::http::encoding::protobuf;
use crate::kinds::ResourceKind;
use crate::storage::Object;

/// The form of objects that the `Accept` header requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Full,
    /// Only the metadata, as `PartialObjectMetadata` of this version of `meta.k8s.io`.
    Metadata(&'static str),
    /// Rows for display, as a `Table` of this version of `meta.k8s.io`.
    Table(&'static str),
}

/// The form and the encoding of the objects in one response.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    kind: Arc<ResourceKind>,
    form: Form,
    encoding: Encoding,
    /// The JSON that replaces the stored `kind` and `apiVersion` of each object. `None` if the
    /// objects are stored in the requested version.
    converted: Option<Arc<str>>,
    rows: Rows,
}

impl Shape {
    pub(crate) fn new(
        form: Form,
        encoding: Encoding,
        served: &Served,
        include: Include,
        clock: Clock,
    ) -> Self {
        let kind = served.kind.clone();
        let converted = (!served.is_stored_version())
            .then(|| format!(r#"{{"kind":"{}","apiVersion":"{}","#, kind.kind, kind.api_version()).into());
        let rows = Rows::new(include, clock, &kind);
        Self { kind, form, encoding, converted, rows }
    }

    pub(crate) fn encoding(&self) -> Encoding {
        self.encoding
    }

    pub(crate) fn document(&mut self, object: &Object) -> Bytes {
        if self.sends_stored_protobuf() {
            return self.stored_protobuf(object).into();
        }
        let mut json = BytesMut::new();
        self.append_json(&mut json, object);
        match self.encoding {
            Encoding::Json => json.freeze(),
            other => other.document(&*json).into_owned().into(),
        }
    }

    pub(crate) fn list(&self, metadata: &Value, objects: &[Arc<Object>]) -> Bytes {
        if self.encoding == Encoding::Protobuf {
            // The head and the items are converted separately, so that a long list is not parsed
            // as a whole.
            let head = [self.list_head(metadata).as_bytes(), b"]}"].concat();
            if self.sends_stored_protobuf() {
                return protobuf::list(&head, objects.iter().map(|object| self.content(object))).into();
            }
            let (api_version, kind) = match self.form {
                Form::Full => (self.kind.api_version(), self.kind.kind.as_str()),
                _ => ("meta.k8s.io/v1".to_owned(), "PartialObjectMetadata"),
            };
            let item = |object: &Arc<Object>| {
                let mut json = BytesMut::new();
                self.append_item(&mut json, object);
                protobuf::content(&api_version, kind, &json).unwrap_or_default()
            };
            return protobuf::list(&head, objects.iter().map(item)).into();
        }
        let mut json = BytesMut::from(self.list_head(metadata).as_bytes());
        for (index, object) in objects.iter().enumerate() {
            if index > 0 {
                json.extend_from_slice(b",");
            }
            self.append_item(&mut json, object);
        }
        json.extend_from_slice(b"]}");
        self.encoding.document(&*json).into_owned().into()
    }

    pub(crate) fn event(&mut self, kind: &str, object: &Object) -> Vec<u8> {
        if self.sends_stored_protobuf() {
            return protobuf::event(kind, &self.stored_protobuf(object));
        }
        let mut json = BytesMut::new();
        self.append_json(&mut json, object);
        self.encoding.event(kind, &json)
    }

    /// Appends the JSON of a single object, with `kind` and `apiVersion`.
    fn append_json(&mut self, buffer: &mut BytesMut, object: &Object) {
        match self.form {
            Form::Full => self.append_full(buffer, object),
            Form::Metadata(version) => append_metadata(buffer, version, object.metadata_json()),
            Form::Table(version) => {
                let table = self.rows.table(version, &self.kind, &self.value(object));
                buffer.extend_from_slice(table.to_string().as_bytes());
            }
        }
    }

    /// Appends the JSON of a list item. Whole items of built-in kinds omit `kind` and `apiVersion`.
    pub(crate) fn append_item(&self, buffer: &mut BytesMut, object: &Object) {
        match self.form {
            Form::Full if self.kind.is_built_in() => {
                buffer.extend_from_slice(b"{");
                self.append_after_type(buffer, object);
            }
            Form::Full => self.append_full(buffer, object),
            Form::Metadata(version) => append_metadata(buffer, version, object.metadata_json()),
            Form::Table(version) => {
                let row = self.rows.row(version, &self.kind, &self.value(object));
                buffer.extend_from_slice(row.to_string().as_bytes());
            }
        }
    }

    /// Returns a bookmark event with this metadata. In the form [`Form::Full`], the object can also
    /// have fields with Go's zero values, as in the real server; see [`zero_values`].
    pub(crate) fn bookmark(&mut self, metadata: &Value) -> Vec<u8> {
        let object = match self.form {
            Form::Full => {
                let zeros = zero_values(&self.kind);
                let (kind, version) = (&self.kind.kind, self.kind.api_version());
                format!(r#"{{"kind":"{kind}","apiVersion":"{version}","metadata":{metadata}{zeros}}}"#)
            }
            Form::Metadata(version) => {
                let mut json = BytesMut::new();
                append_metadata(&mut json, version, metadata.to_string().as_bytes());
                return self.encoding.event("BOOKMARK", &json);
            }
            Form::Table(version) => {
                let empty = json!({ "metadata": metadata });
                self.rows.table(version, &self.kind, &empty).to_string()
            }
        };
        self.encoding.event("BOOKMARK", object.as_bytes())
    }

    /// Returns the JSON of a list up to the opening bracket of its items.
    pub(crate) fn list_head(&self, metadata: &Value) -> String {
        let (kind, api_version) = match self.form {
            Form::Full => (self.kind.list_kind(), self.kind.api_version()),
            Form::Metadata(version) => {
                ("PartialObjectMetadataList".to_owned(), format!("meta.k8s.io/{version}"))
            }
            Form::Table(version) => {
                let columns = table::definitions(&self.kind);
                return format!(
                    r#"{{"kind":"Table","apiVersion":"meta.k8s.io/{version}","metadata":{metadata},"columnDefinitions":{columns},"rows":["#
                );
            }
        };
        format!(r#"{{"kind":"{kind}","apiVersion":"{api_version}","metadata":{metadata},"items":["#)
    }

    /// Returns whether the response contains whole objects in protobuf, with the same fields as the
    /// stored objects.
    fn sends_stored_protobuf(&self) -> bool {
        self.encoding == Encoding::Protobuf
            && self.form == Form::Full
            && !autoscaling::is_converted(&self.kind)
    }

    fn stored_protobuf(&self, object: &Object) -> Vec<u8> {
        protobuf::document_of(&self.kind.api_version(), &self.kind.kind, self.content(object))
    }

    /// Returns an object's protobuf message, without the envelope for `kind` and `apiVersion`.
    /// Returns an empty slice if the kind has no protobuf message.
    fn content<'o>(&self, object: &'o Object) -> &'o [u8] {
        let (version, kind) = (self.kind.api_version(), &self.kind.kind);
        object.protobuf(|json| protobuf::content(&version, kind, json).unwrap_or_default())
    }

    fn append_full(&self, buffer: &mut BytesMut, object: &Object) {
        match &self.converted {
            None => buffer.extend_from_slice(object.json()),
            Some(start) => {
                buffer.extend_from_slice(start.as_bytes());
                self.append_after_type(buffer, object);
            }
        }
    }

    /// Appends only the part of an object's JSON that follows `kind` and `apiVersion`, including
    /// the closing brace.
    fn append_after_type(&self, buffer: &mut BytesMut, object: &Object) {
        if !autoscaling::is_converted(&self.kind) {
            return buffer.extend_from_slice(object.json_after_type());
        }
        let mut body = object.decode();
        body.retain(|field, _| !matches!(field.as_str(), "kind" | "apiVersion"));
        autoscaling::to_v1(&mut body);
        buffer.extend_from_slice(&Value::Object(body).to_string().as_bytes()[1..]);
    }

    /// Parses a stored object, and converts it to the requested version.
    fn value(&self, object: &Object) -> Value {
        let mut value: Map<String, Value> = object.decode();
        value.insert("apiVersion".to_owned(), self.kind.api_version().into());
        if autoscaling::is_converted(&self.kind) {
            autoscaling::to_v1(&mut value);
        }
        Value::Object(value)
    }
}

fn append_metadata(buffer: &mut BytesMut, version: &str, metadata: &[u8]) {
    buffer.extend_from_slice(br#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/"#);
    buffer.extend_from_slice(version.as_bytes());
    buffer.extend_from_slice(br#"","metadata":"#);
    buffer.extend_from_slice(metadata);
    buffer.extend_from_slice(b"}");
}

/// Returns the zero values of `spec` and `status` for a bookmark's object, as JSON that follows the
/// metadata, such as `,"spec":{},"status":{}`. The result is empty for custom resources, and for
/// most kinds without `/status`.
fn zero_values(kind: &ResourceKind) -> &'static str {
    if !kind.is_built_in() {
        return "";
    }
    // A real server sends these fields because Go encodes empty structs. For simplicity, some
    // empty fields are omitted here.
    match kind.kind.as_str() {
        "Pod" => r#","spec":{"containers":null},"status":{}"#,
        "DaemonSet" | "Deployment" | "StatefulSet" | "ReplicaSet" => {
            r#","spec":{"selector":null,"template":{"metadata":{},"spec":{"containers":null}}},"status":{}"#
        }
        _ if kind.status_subresource => r#","spec":{},"status":{}"#,
        _ => "",
    }
}
