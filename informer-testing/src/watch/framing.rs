//! The events of a watch as bytes: `{"type":"ADDED","object":{...}}`, one per line, or the same in another encoding.

use bytes::BytesMut;
use kube::core::Status;
use serde_json::json;

use crate::encoding::Encoding;
use crate::shape::Shape;
use crate::status;

/// Appends an `ERROR` event, which is never given in another shape.
pub(super) fn append_error(buffer: &mut BytesMut, encoding: Encoding, refusal: &Status) {
    encoding.append_event(buffer, "ERROR", &status::encode(refusal));
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
    shape.append_bookmark(buffer, &metadata);
}
