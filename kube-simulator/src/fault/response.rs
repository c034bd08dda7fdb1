//! [`CannedResponse`]: a prepared HTTP response.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::api::status;

const FLOW_SCHEMA: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");

const PRIORITY_LEVEL: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");

/// Returns the headers of API priority and fairness, with the same invented UIDs for all requests.
pub(crate) fn flow_control() -> HeaderMap {
    let uid = HeaderValue::from_static;
    HeaderMap::from_iter([
        (FLOW_SCHEMA, uid("4b0c5d5e-7c1f-4b53-9d0e-6c5f1f3f2a01")),
        (PRIORITY_LEVEL, uid("4b0c5d5e-7c1f-4b53-9d0e-6c5f1f3f2a02")),
    ])
}

/// A complete HTTP response that a test prepares.
#[derive(Clone, Debug)]
pub struct CannedResponse {
    pub(crate) code: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl CannedResponse {
    /// Answers with these bytes and no headers.
    #[must_use]
    pub fn raw(code: StatusCode, body: impl Into<Bytes>) -> Self {
        Self { code, headers: HeaderMap::new(), body: body.into() }
    }

    /// Answers with a Kubernetes `Status` in JSON, as an API server does for an error, such as 403
    /// `Forbidden`.
    #[must_use]
    pub fn failure(code: StatusCode, reason: &str, message: &str) -> Self {
        let body = status::encode(&status::failure(code, reason, message));
        Self::raw(code, body).header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
    }

    /// Answers with 410 `Expired`, as the server does for a resource version that has been
    /// compacted.
    #[must_use]
    pub fn expired() -> Self {
        Self::failure(StatusCode::GONE, "Expired", "The resourceVersion for the provided list is too old.")
    }

    /// Answers as the server's flow control does for a rejected request: 429 in plain text, with a
    /// `Retry-After` in seconds unless it is 0.
    ///
    /// The headers `X-Kubernetes-PF-FlowSchema-UID` and `X-Kubernetes-PF-PriorityLevel-UID` contain
    /// invented UIDs; [`header`](Self::header) replaces them.
    #[doc(alias = "X-Kubernetes-PF-FlowSchema-UID")]
    #[doc(alias = "X-Kubernetes-PF-PriorityLevel-UID")]
    #[must_use]
    pub fn too_many_requests(retry_after: u32) -> Self {
        let rejected =
            Self::raw(StatusCode::TOO_MANY_REQUESTS, "Too many requests, please try again later.\n")
                .header(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"))
                .headers(flow_control());
        if retry_after > 0 { rejected.retry_after(retry_after) } else { rejected }
    }

    /// Sets the `Retry-After` header, in seconds.
    #[must_use]
    pub fn retry_after(self, seconds: u32) -> Self {
        self.header(RETRY_AFTER, HeaderValue::from(seconds))
    }

    fn headers(mut self, headers: HeaderMap) -> Self {
        self.headers.extend(headers);
        self
    }

    /// Sets a header, and replaces an existing header with the same name.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }
}
