//! [`Framing`]: encodes the events of a watch.

use bytes::BytesMut;
use kube::core::Status;
use serde_json::json;

use crate::api::status;
use crate::http::shape::{INITIAL_EVENTS_END, Shape};
use crate::storage::Object;

/// Approximate maximum size of a piece of the response body, in bytes.
const PIECE: usize = 64 * 1024;

#[derive(Clone, Debug)]
pub(crate) struct Framing {
    shape: Shape,
    /// Whether each event is a separate piece of the response body. A WebSocket sends each piece as
    /// one message, so events need no length prefix.
    one_by_one: bool,
}

impl Framing {
    pub(crate) fn new(shape: Shape, one_by_one: bool) -> Self {
        Self { shape, one_by_one }
    }

    /// Returns whether the buffer must be sent before more events are appended. The limit is about
    /// 64 KiB. For a WebSocket, the limit is one event.
    pub(super) fn is_full(&self, buffer: &BytesMut) -> bool {
        buffer.len() >= if self.one_by_one { 1 } else { PIECE }
    }

    pub(super) fn append_event(&mut self, buffer: &mut BytesMut, kind: &str, object: &Object) {
        let event = self.shape.event(kind, object);
        self.append(buffer, &event);
    }

    /// Appends an `ERROR` event. Its object is always a whole `Status`, never a table or only
    /// metadata.
    pub(super) fn append_error(&self, buffer: &mut BytesMut, refusal: &Status) {
        self.append(buffer, &self.shape.encoding().event("ERROR", &status::encode(refusal)));
    }

    pub(super) fn append_bookmark(
        &mut self,
        buffer: &mut BytesMut,
        resource_version: u64,
        ends_initial_events: bool,
    ) {
        let mut metadata = json!({ "resourceVersion": resource_version.to_string() });
        if ends_initial_events {
            metadata["annotations"] = json!({ INITIAL_EVENTS_END: "true" });
        }
        let bookmark = self.shape.bookmark(&metadata);
        self.append(buffer, &bookmark);
    }

    /// Appends a message with correct framing that is not a valid event.
    pub(super) fn append_invalid_event(&self, buffer: &mut BytesMut) {
        self.append(buffer, self.shape.encoding().invalid_event());
    }

    fn append(&self, buffer: &mut BytesMut, event: &[u8]) {
        if self.one_by_one {
            buffer.extend_from_slice(event);
        } else {
            self.shape.encoding().append_framed(buffer, event);
        }
    }
}
