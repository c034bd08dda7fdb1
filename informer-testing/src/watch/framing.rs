//! The bytes of watch events: `{"type":"ADDED","object":{...}}`, one per line.

use bytes::BytesMut;
use kube::core::Status;

use crate::object::Object;
use crate::resource::ResourceKind;
use crate::status;

/// The form in which a client wants its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Full,
    /// Only the metadata, as `PartialObjectMetadata`.
    Metadata,
}

const PARTIAL: &[u8] = br#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":"#;

impl Shape {
    /// Appends an object on its own, with `kind` and `apiVersion`.
    pub(crate) fn append(self, buffer: &mut BytesMut, object: &Object) {
        match self {
            Self::Full => buffer.extend_from_slice(object.json()),
            Self::Metadata => {
                buffer.extend_from_slice(PARTIAL);
                buffer.extend_from_slice(object.metadata_json());
                buffer.extend_from_slice(b"}");
            }
        }
    }

    /// Appends an object as an item of a list. The items of built-in lists come without `kind` and `apiVersion`.
    pub(crate) fn append_item(self, buffer: &mut BytesMut, kind: &ResourceKind, object: &Object) {
        if self == Self::Full && kind.is_built_in() {
            buffer.extend_from_slice(b"{");
            buffer.extend_from_slice(object.json_after_type());
        } else {
            self.append(buffer, object);
        }
    }

    fn type_of(self, kind: &ResourceKind) -> (String, String) {
        match self {
            Self::Full => (kind.kind.clone(), kind.api_version()),
            Self::Metadata => ("PartialObjectMetadata".to_owned(), "meta.k8s.io/v1".to_owned()),
        }
    }
}

pub(super) fn append_event(buffer: &mut BytesMut, kind: &str, object: &Object, shape: Shape) {
    open(buffer, kind);
    shape.append(buffer, object);
    close(buffer);
}

/// Appends an `ERROR` event, which is never given in another shape.
pub(super) fn append_error(buffer: &mut BytesMut, refusal: &Status) {
    open(buffer, "ERROR");
    buffer.extend_from_slice(&status::encode(refusal));
    close(buffer);
}

/// Appends a bookmark, annotated if it ends the initial events of a streaming list.
///
/// The real server's bookmarks are empty objects of the kind, zero values included, so a bookmark need not be a valid
/// object of its kind.
pub(super) fn append_bookmark(
    buffer: &mut BytesMut,
    kind: &ResourceKind,
    shape: Shape,
    resource_version: u64,
    ends_initial_events: bool,
) {
    let (type_name, api_version) = shape.type_of(kind);
    let annotations =
        if ends_initial_events { r#","annotations":{"k8s.io/initial-events-end":"true"}"# } else { "" };
    let zeros = if shape == Shape::Full { zero_values(kind) } else { "" };
    open(buffer, "BOOKMARK");
    let object = format!(
        r#"{{"kind":"{type_name}","apiVersion":"{api_version}","metadata":{{"resourceVersion":"{resource_version}"{annotations}}}{zeros}}}"#
    );
    buffer.extend_from_slice(object.as_bytes());
    close(buffer);
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

fn open(buffer: &mut BytesMut, kind: &str) {
    buffer.extend_from_slice(b"{\"type\":\"");
    buffer.extend_from_slice(kind.as_bytes());
    buffer.extend_from_slice(b"\",\"object\":");
}

fn close(buffer: &mut BytesMut) {
    buffer.extend_from_slice(b"}\n");
}
