//! [`Answer`]: a response that has been read, with assertions for scenarios.

use bytes::Bytes;
use http::{HeaderMap, Response};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::{Value, json};

/// A response with its body.
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Bytes,
    /// The body as JSON, or null if it is not JSON.
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) async fn read(response: Response<Body>) -> Self {
        let (head, body) = response.into_parts();
        let bytes = body.collect().await.expect("a whole body").to_bytes();
        let json = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        Self { code: head.status.as_u16(), headers: head.headers, bytes, body: json }
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("a readable header"))
    }

    /// Asserts that the response has this status code, and returns the body.
    #[track_caller]
    pub(crate) fn expect(self, code: u16) -> Value {
        assert_eq!(self.code, code, "{}", self.text());
        self.body
    }

    /// Asserts an error: a `Status` with this code, reason (which can be empty) and message.
    #[track_caller]
    pub(crate) fn refused(self, code: u16, reason: &str, message: &str) -> Refusal {
        let refusal = self.assert_error(code, reason);
        assert_eq!(refusal.message(), message);
        refusal
    }

    /// Asserts an error: a `Status` with this code, this reason, and a message that contains
    /// `part`.
    #[track_caller]
    pub(crate) fn refused_with(self, code: u16, reason: &str, part: &str) -> Refusal {
        let refusal = self.assert_error(code, reason);
        assert!(refusal.message().contains(part), "{}", refusal.message());
        refusal
    }

    #[track_caller]
    fn assert_error(self, code: u16, reason: &str) -> Refusal {
        assert_eq!(self.code, code, "{}", self.text());
        assert_eq!(self.header("content-type"), "application/json");
        let refusal = Refusal(self.body);
        refusal.is_status(code, reason);
        refusal
    }

    pub(crate) fn text(&self) -> String {
        self.whole_text().chars().take(2_000).collect()
    }

    pub(crate) fn whole_text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// A `Status` that reports an error.
pub(crate) struct Refusal(pub(crate) Value);

impl Refusal {
    /// Asserts that the error is a `Status` with this code and reason.
    #[track_caller]
    pub(crate) fn is_status(&self, code: u16, reason: &str) {
        let Self(status) = self;
        assert_eq!(status["kind"], "Status", "{status}");
        assert_eq!(status["apiVersion"], "v1", "{status}");
        assert_eq!(status["status"], "Failure", "{status}");
        assert_eq!(status["code"], code, "{status}");
        assert_eq!(status["reason"].as_str().unwrap_or_default(), reason, "{status}");
        assert!(status["metadata"].is_object(), "{status}");
    }

    pub(crate) fn message(&self) -> &str {
        self.0["message"].as_str().unwrap_or_default()
    }

    pub(crate) fn details(&self) -> &Value {
        &self.0["details"]
    }

    /// Asserts the group, kind and name of the object that the error is about.
    #[track_caller]
    pub(crate) fn is_about(&self, group: &str, kind: &str, name: &str) {
        let given = |field: &str| self.details()[field].as_str().unwrap_or_default();
        assert_eq!((given("group"), given("kind"), given("name")), (group, kind, name), "{}", self.0);
    }

    /// Asserts the causes, given as reason and field.
    ///
    /// A real server reports some causes twice, because it validates both in code and with
    /// declarative rules.
    #[track_caller]
    pub(crate) fn has_causes(&self, causes: &[(&str, &str)]) {
        let mut given = self.details()["causes"].as_array().cloned().unwrap_or_default();
        given.dedup();
        let given: Vec<Value> = given.iter().map(|cause| json!([cause["reason"], cause["field"]])).collect();
        let wanted: Vec<Value> = causes.iter().map(|(reason, field)| json!([reason, field])).collect();
        assert_eq!(given, wanted, "{}", self.0);
    }
}
