//! Answers that a test prepares in the place of true ones.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use parking_lot::Mutex;

use crate::request::{RecordedRequest, RequestFilter};
use crate::status;

/// A complete HTTP response, prepared in advance.
#[derive(Clone, Debug)]
pub struct CannedResponse {
    pub(crate) code: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl CannedResponse {
    /// Answers with these bytes, whatever they are, and no headers.
    #[must_use]
    pub fn raw(code: StatusCode, body: impl Into<Bytes>) -> Self {
        Self { code, headers: HeaderMap::new(), body: body.into() }
    }

    /// Answers with a Kubernetes `Status` in JSON, as an API server refuses: say 403 `Forbidden` or 410 `Expired`.
    #[must_use]
    pub fn failure(code: StatusCode, reason: &str, message: &str) -> Self {
        let body = status::encode(&status::failure(code, reason, message));
        Self::raw(code, body).header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
    }

    /// Answers as the server's flow control rejects: 429 in plain text, with `Retry-After` in seconds.
    #[must_use]
    pub fn too_many_requests(retry_after: u32) -> Self {
        Self::raw(StatusCode::TOO_MANY_REQUESTS, "Too many requests, please try again later.\n")
            .header(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"))
            .header(RETRY_AFTER, HeaderValue::from(retry_after))
    }

    /// Adds a header, or replaces it.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }
}

/// The prepared answers, used up in the order in which they were prepared.
#[derive(Debug, Default)]
pub(crate) struct FaultQueue(Mutex<Vec<Fault>>);

#[derive(Debug)]
struct Fault {
    remaining: usize,
    filter: RequestFilter,
    response: CannedResponse,
}

impl FaultQueue {
    pub(crate) fn push(&self, times: usize, filter: RequestFilter, response: CannedResponse) {
        self.0.lock().push(Fault { remaining: times, filter, response });
    }

    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }

    /// Takes the answer that is prepared for this request, if there is one.
    pub(crate) fn take(&self, request: &Arc<RecordedRequest>) -> Option<CannedResponse> {
        let mut faults = self.0.lock();
        let fault = faults.iter_mut().find(|fault| fault.remaining > 0 && fault.filter.matches(request))?;
        fault.remaining -= 1;
        let response = fault.response.clone();
        faults.retain(|fault| fault.remaining > 0);
        Some(response)
    }
}
