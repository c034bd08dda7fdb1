//! Recorded requests, and filters for them.

use std::collections::VecDeque;
use std::sync::Arc;

use http::{HeaderMap, HeaderName, Method};
use parking_lot::Mutex;
use tokio::sync::watch;

/// Maximum number of recorded requests, which limits the memory of a simulator that runs for days.
const MAX_RECORDED: usize = 10_000;

/// The verb of a request in Kubernetes terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads a collection.
    List,
    /// Watches a collection.
    Watch,
    /// Creates an object (POST).
    Create,
    /// Replaces an object (PUT).
    Update,
    /// Changes an object (PATCH).
    Patch,
    /// Deletes one object.
    Delete,
    /// Deletes the objects of a collection.
    DeleteCollection,
    /// Any other request: outside the served resources, such as `/version`, or with an unsupported
    /// method.
    Other,
}

/// A request that the simulator has received.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RecordedRequest {
    /// The verb in Kubernetes terms.
    pub verb: Verb,
    /// The HTTP version.
    pub version: http::Version,
    /// The HTTP method.
    pub method: Method,
    /// The path, such as `/api/v1/namespaces/default/pods`.
    pub path: String,
    /// The query as sent, without the question mark; empty if there is none.
    pub query: String,
    /// The headers, such as `Accept` and `User-Agent`.
    pub headers: HeaderMap,
}

impl RecordedRequest {
    /// Returns the decoded (first) value of a query parameter, or `None` if the request lacks the
    /// parameter.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<String> {
        let mut pairs = form_urlencoded::parse(self.query.as_bytes());
        pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
    }

    pub(crate) fn parameters(&self, name: &str) -> Vec<String> {
        let pairs = form_urlencoded::parse(self.query.as_bytes());
        pairs.filter(|(key, _)| key == name).map(|(_, value)| value.into_owned()).collect()
    }
}

/// Returns the first value of a header, or an empty string if the header is missing or not ASCII.
pub(super) fn header(headers: &HeaderMap, name: HeaderName) -> &str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Matches requests by verb, path and query. An empty filter matches all requests.
#[derive(Clone, Debug, Default)]
pub struct RequestFilter {
    verb: Option<Verb>,
    path: Option<String>,
    /// Query parameters with their required values; `None` accepts any value.
    parameters: Vec<(String, Option<String>)>,
}

impl RequestFilter {
    /// Matches every request.
    #[must_use]
    pub fn any() -> Self {
        Self::default()
    }

    /// Matches requests with this verb.
    #[must_use]
    pub fn verb(verb: Verb) -> Self {
        Self { verb: Some(verb), ..Self::default() }
    }

    /// Restricts the filter to requests with exactly this path.
    #[must_use]
    pub fn path(mut self, path: &str) -> Self {
        self.path = Some(path.to_owned());
        self
    }

    /// Restricts the filter to requests whose query has this parameter with this (decoded) value.
    /// Only the first value of a repeated parameter counts.
    #[must_use]
    pub fn parameter(mut self, name: &str, value: &str) -> Self {
        self.parameters.push((name.to_owned(), Some(value.to_owned())));
        self
    }

    /// Restricts the filter to requests whose query has this parameter, with any value. For
    /// example, the requests for the second and all later pages of a list have `continue`.
    #[must_use]
    pub fn has_parameter(mut self, name: &str) -> Self {
        self.parameters.push((name.to_owned(), None));
        self
    }

    /// Returns whether a request matches the filter.
    #[must_use]
    pub fn matches(&self, request: &RecordedRequest) -> bool {
        self.verb.is_none_or(|verb| verb == request.verb)
            && self.path.as_ref().is_none_or(|path| *path == request.path)
            && self.parameters.iter().all(|(name, wanted)| {
                let given = request.parameter(name);
                given.is_some() && (wanted.is_none() || given == *wanted)
            })
    }
}

/// The latest requests that the simulator has received, oldest first.
#[derive(Debug, Default)]
pub(crate) struct RequestLog {
    requests: Mutex<VecDeque<Arc<RecordedRequest>>>,
    changed: watch::Sender<()>,
}

impl RequestLog {
    pub(crate) fn push(&self, request: Arc<RecordedRequest>) {
        let mut requests = self.requests.lock();
        requests.push_back(request);
        if requests.len() > MAX_RECORDED {
            requests.pop_front();
        }
        drop(requests);
        self.changed.send_replace(());
    }

    pub(crate) fn clear(&self) {
        self.requests.lock().clear();
    }

    pub(crate) fn matching(&self, filter: &RequestFilter) -> Vec<RecordedRequest> {
        let requests = self.requests.lock();
        requests.iter().filter(|request| filter.matches(request)).map(|request| (**request).clone()).collect()
    }

    pub(crate) fn count(&self, filter: &RequestFilter) -> usize {
        self.requests.lock().iter().filter(|request| filter.matches(request)).count()
    }

    /// Waits until the log contains this many matching requests. Never returns if `count` exceeds
    /// [`MAX_RECORDED`].
    pub(crate) async fn wait_for(&self, filter: &RequestFilter, count: usize) {
        let mut changed = self.changed.subscribe();
        // Cannot fail: `self` owns the sender.
        let _ = changed.wait_for(|_| self.count(filter) >= count).await;
    }
}
