//! The bytes of watch events: `{"type":"ADDED","object":{...}}`, one per line.

use bytes::BytesMut;
use kube::core::Status;
use serde_json::json;

use crate::object::Object;
use crate::shape::Shape;
use crate::status;

pub(super) fn append_event(buffer: &mut BytesMut, kind: &str, object: &Object, shape: &mut Shape) {
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
pub(super) fn append_bookmark(
    buffer: &mut BytesMut,
    shape: &mut Shape,
    resource_version: u64,
    ends_initial_events: bool,
) {
    let mut metadata = json!({ "resourceVersion": resource_version.to_string() });
    if ends_initial_events {
        metadata["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
    }
    open(buffer, "BOOKMARK");
    shape.append_bookmark(buffer, &metadata);
    close(buffer);
}

fn open(buffer: &mut BytesMut, kind: &str) {
    buffer.extend_from_slice(b"{\"type\":\"");
    buffer.extend_from_slice(kind.as_bytes());
    buffer.extend_from_slice(b"\",\"object\":");
}

fn close(buffer: &mut BytesMut) {
    buffer.extend_from_slice(b"}\n");
}
