//! [`Watch`]: a watch stream, read line by line, or event by event in other encodings.

use http::{HeaderMap, Response};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::Value;

use crate::cbor;

/// An open watch.
pub(crate) struct Watch {
    pub(crate) headers: HeaderMap,
    body: Body,
    buffer: Vec<u8>,
}

impl Watch {
    pub(crate) fn new(response: Response<Body>) -> Self {
        let (head, body) = response.into_parts();
        assert_eq!(head.status, 200, "a watch must open with status 200");
        Self { headers: head.headers, body, buffer: Vec::new() }
    }

    /// Reads a line, including its newline. Returns `None` at the clean end of the stream.
    pub(crate) async fn line(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                return Some(self.buffer.drain(..=end).collect());
            }
            if !self.more().await {
                assert!(self.buffer.is_empty(), "the stream ends within a line");
                return None;
            }
        }
    }

    /// Reads a length-prefixed event in protobuf.
    pub(crate) async fn frame(&mut self) -> Vec<u8> {
        let length = self.bytes(4).await;
        let length = u32::from_be_bytes(length.try_into().expect("four bytes"));
        self.bytes(usize::try_from(length).expect("a length")).await
    }

    /// Reads an event in CBOR as JSON. Returns `None` at the clean end of the stream.
    pub(crate) async fn item(&mut self) -> Option<Value> {
        loop {
            let mut rest = self.buffer.as_slice();
            if let Some(item) = cbor::read_first(&mut rest) {
                let read = self.buffer.len() - rest.len();
                self.buffer.drain(..read);
                return Some(item);
            }
            if !self.more().await {
                assert!(self.buffer.is_empty(), "the stream ends within an item");
                return None;
            }
        }
    }

    async fn bytes(&mut self, number: usize) -> Vec<u8> {
        while self.buffer.len() < number {
            assert!(self.more().await, "the stream continues");
        }
        self.buffer.drain(..number).collect()
    }

    /// Reads more bytes. Returns `false` at the end of the stream.
    async fn more(&mut self) -> bool {
        let Some(frame) = self.body.frame().await else {
            return false;
        };
        if let Ok(data) = frame.expect("no transport error").into_data() {
            self.buffer.extend_from_slice(&data);
        }
        true
    }

    pub(crate) async fn event(&mut self) -> Option<Value> {
        let line = self.line().await?;
        Some(serde_json::from_slice(&line).expect("a line is JSON"))
    }

    /// Reads the next event that matters to a client. Skips bookmarks, which may arrive at any
    /// time, except the bookmark that ends the initial events.
    async fn change(&mut self) -> Option<Value> {
        loop {
            let event = self.event().await?;
            if event["type"] != "BOOKMARK" || is_end_of_list(&event) {
                return Some(event);
            }
        }
    }

    /// Reads the next change, asserts its type, and returns its object.
    pub(crate) async fn expect(&mut self, kind: &str) -> Value {
        let mut event = self.change().await.expect("the stream continues");
        assert_eq!(event["type"], kind, "{event}");
        event["object"].take()
    }

    /// Reads a bookmark, and returns its object. Returns `None` at the clean end of the stream.
    pub(crate) async fn bookmark(&mut self) -> Option<Value> {
        let mut event = self.event().await?;
        assert_eq!(event["type"], "BOOKMARK", "{event}");
        Some(event["object"].take())
    }

    /// Reads `number` events, and returns them in short form: type and name.
    pub(crate) async fn briefs(&mut self, number: usize) -> Vec<String> {
        let mut briefs = Vec::new();
        while briefs.len() < number {
            let event = self.change().await.expect("the stream continues");
            briefs.push(brief(&event));
        }
        briefs
    }

    /// Reads all events up to the clean end of the stream, in short form.
    pub(crate) async fn rest(&mut self) -> Vec<String> {
        let mut briefs = Vec::new();
        while let Some(event) = self.change().await {
            briefs.push(brief(&event));
        }
        briefs
    }

    /// Asserts that the stream ends without further events or bookmarks.
    pub(crate) async fn ends(&mut self) {
        let event = self.event().await;
        assert!(event.is_none(), "{event:?}");
    }

    /// Asserts that no events follow. The stream may be interrupted, because the server may exit at
    /// once.
    pub(crate) async fn ends_or_breaks_off(&mut self) {
        while let Some(Ok(frame)) = self.body.frame().await {
            if let Ok(data) = frame.into_data() {
                self.buffer.extend_from_slice(&data);
            }
        }
        assert!(self.buffer.is_empty(), "{}", String::from_utf8_lossy(&self.buffer));
    }
}

fn is_end_of_list(bookmark: &Value) -> bool {
    bookmark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true"
}

fn brief(event: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{} {}", text(&event["type"]), text(&event["object"]["metadata"]["name"])).trim_end().to_owned()
}
