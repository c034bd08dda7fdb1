//! [`Watch`]: a watch stream, read line by line.

use http::{HeaderMap, Response};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::Value;

/// An open watch.
pub(crate) struct Watch {
    pub(crate) headers: HeaderMap,
    body: Body,
    buffer: Vec<u8>,
}

impl Watch {
    pub(crate) fn new(response: Response<Body>) -> Self {
        let (head, body) = response.into_parts();
        assert_eq!(head.status, 200, "a watch opens with 200");
        Self { headers: head.headers, body, buffer: Vec::new() }
    }

    /// Reads a line, with its end; none at the clean end of the stream.
    pub(crate) async fn line(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                return Some(self.buffer.drain(..=end).collect());
            }
            let Some(frame) = self.body.frame().await else {
                assert!(self.buffer.is_empty(), "the stream ends within a line");
                return None;
            };
            if let Ok(data) = frame.expect("no transport error").into_data() {
                self.buffer.extend_from_slice(&data);
            }
        }
    }

    /// Reads an event.
    pub(crate) async fn event(&mut self) -> Option<Value> {
        let line = self.line().await?;
        Some(serde_json::from_slice(&line).expect("a line is JSON"))
    }

    /// Reads an event of this type, and gives its object.
    pub(crate) async fn expect(&mut self, kind: &str) -> Value {
        let mut event = self.event().await.expect("the stream goes on");
        assert_eq!(event["type"], kind, "{event}");
        event["object"].take()
    }

    /// Reads events in short: type and name.
    pub(crate) async fn briefs(&mut self, number: usize) -> Vec<String> {
        let mut briefs = Vec::new();
        while briefs.len() < number {
            let event = self.event().await.expect("the stream goes on");
            briefs.push(brief(&event));
        }
        briefs
    }

    /// Reads all events up to the clean end of the stream, in short.
    pub(crate) async fn rest(&mut self) -> Vec<String> {
        let mut briefs = Vec::new();
        while let Some(event) = self.event().await {
            briefs.push(brief(&event));
        }
        briefs
    }

    /// Asserts that nothing is left.
    pub(crate) async fn ends(&mut self) {
        assert_eq!(self.rest().await, Vec::<String>::new());
    }
}

fn brief(event: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{} {}", text(&event["type"]), text(&event["object"]["metadata"]["name"])).trim_end().to_owned()
}
