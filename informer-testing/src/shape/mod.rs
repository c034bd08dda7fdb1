//! The form in which a client wants its objects: whole, their metadata alone, or as rows of a table.
//!
//! Objects are stored as bytes in one version; a shape turns them into the bytes that one client is sent.

mod cells;
pub(crate) mod columns;
mod path;
mod table;

pub(crate) use cells::{Cell, Column};
pub(crate) use path::JsonPath;
pub(crate) use table::{Include, Rows};

use std::sync::Arc;

use bytes::BytesMut;
use serde_json::{Map, Value, json};

use crate::catalogue::Served;
use crate::clock::Clock;
use crate::object::Object;
use crate::resource::ResourceKind;

const PARTIAL: &[u8] = br#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":"#;

/// What a client asked for in its `Accept` header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Full,
    /// Only the metadata, as `PartialObjectMetadata`.
    Metadata,
    /// Rows for people to read, as `Table` of this version of `meta.k8s.io`.
    Table(&'static str),
}

/// How the objects of one response look.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    kind: Arc<ResourceKind>,
    form: Form,
    /// What stands before the metadata, where that isn't what is stored.
    converted: Option<Arc<str>>,
    rows: Rows,
}

impl Shape {
    pub(crate) fn new(form: Form, served: &Served, include: Include, clock: Clock) -> Self {
        let kind = served.kind.clone();
        let converted = (!served.is_stored_version())
            .then(|| format!(r#"{{"kind":"{}","apiVersion":"{}","#, kind.kind, kind.api_version()).into());
        Self { kind, form, converted, rows: Rows::new(include, clock) }
    }

    /// Appends an object on its own, with `kind` and `apiVersion`.
    pub(crate) fn append(&mut self, buffer: &mut BytesMut, object: &Object) {
        match self.form {
            Form::Full => self.append_full(buffer, object),
            Form::Metadata => append_metadata(buffer, object),
            Form::Table(version) => {
                let table = self.rows.table(version, &self.kind, &self.value(object));
                buffer.extend_from_slice(table.to_string().as_bytes());
            }
        }
    }

    /// Appends an object as an item of a list. The items of built-in lists come without `kind` and `apiVersion`.
    pub(crate) fn append_item(&self, buffer: &mut BytesMut, object: &Object) {
        match self.form {
            Form::Full if self.kind.is_built_in() => {
                buffer.extend_from_slice(b"{");
                buffer.extend_from_slice(object.json_after_type());
            }
            Form::Full => self.append_full(buffer, object),
            Form::Metadata => append_metadata(buffer, object),
            Form::Table(version) => {
                let row = self.rows.row(version, &self.kind, &self.value(object));
                buffer.extend_from_slice(row.to_string().as_bytes());
            }
        }
    }

    /// Appends an object without content, as bookmarks carry it.
    ///
    /// The real server's bookmarks are empty objects of the kind, zero values included, so a bookmark need not be a
    /// valid object of its kind.
    pub(crate) fn append_bookmark(&mut self, buffer: &mut BytesMut, metadata: &Value) {
        let object = match self.form {
            Form::Full => {
                let zeros = zero_values(&self.kind);
                let (kind, version) = (&self.kind.kind, self.kind.api_version());
                format!(r#"{{"kind":"{kind}","apiVersion":"{version}","metadata":{metadata}{zeros}}}"#)
            }
            Form::Metadata => {
                format!(r#"{}{metadata}}}"#, String::from_utf8_lossy(PARTIAL))
            }
            Form::Table(version) => {
                let empty = json!({ "metadata": metadata });
                self.rows.table(version, &self.kind, &empty).to_string()
            }
        };
        buffer.extend_from_slice(object.as_bytes());
    }

    /// Gives the JSON of a list up to the opening bracket of its items.
    pub(crate) fn list_head(&self, metadata: &Value) -> String {
        let (kind, api_version) = match self.form {
            Form::Full => (format!("{}List", self.kind.kind), self.kind.api_version()),
            Form::Metadata => ("PartialObjectMetadataList".to_owned(), "meta.k8s.io/v1".to_owned()),
            Form::Table(version) => {
                let columns = table::definitions(&self.kind);
                return format!(
                    r#"{{"kind":"Table","apiVersion":"meta.k8s.io/{version}","metadata":{metadata},"columnDefinitions":{columns},"rows":["#
                );
            }
        };
        format!(r#"{{"kind":"{kind}","apiVersion":"{api_version}","metadata":{metadata},"items":["#)
    }

    fn append_full(&self, buffer: &mut BytesMut, object: &Object) {
        match &self.converted {
            None => buffer.extend_from_slice(object.json()),
            Some(start) => {
                buffer.extend_from_slice(start.as_bytes());
                buffer.extend_from_slice(object.json_after_type());
            }
        }
    }

    /// Parses an object, in the version that the client wants.
    fn value(&self, object: &Object) -> Value {
        let mut value: Map<String, Value> = object.decode();
        value.insert("apiVersion".to_owned(), self.kind.api_version().into());
        Value::Object(value)
    }
}

fn append_metadata(buffer: &mut BytesMut, object: &Object) {
    buffer.extend_from_slice(PARTIAL);
    buffer.extend_from_slice(object.metadata_json());
    buffer.extend_from_slice(b"}");
}

/// What an empty Go value of the kind shows as JSON.
fn zero_values(kind: &ResourceKind) -> &'static str {
    if !kind.is_built_in() {
        return "";
    }
    match kind.kind.as_str() {
        "Pod" => r#","spec":{"containers":null},"status":{}"#,
        "DaemonSet" | "Deployment" | "StatefulSet" | "ReplicaSet" => {
            r#","spec":{"selector":null,"template":{"metadata":{},"spec":{"containers":null}}},"status":{}"#
        }
        _ if kind.status_subresource => r#","spec":{},"status":{}"#,
        _ => "",
    }
}
