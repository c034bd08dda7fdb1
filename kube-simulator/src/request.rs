//! What clients asked: a record of each request, and filters to pick requests by.

use std::collections::VecDeque;
use std::sync::Arc;

use http::{HeaderMap, Method};
use parking_lot::Mutex;
use tokio::sync::watch;

/// The oldest records are dropped beyond this number, so that a simulator can run for days.
const KEPT: usize = 10_000;

/// What a request wants, in the words of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads a collection.
    List,
    /// Follows a collection.
    Watch,
    /// Creates an object (POST).
    Create,
    /// Replaces an object (PUT).
    Update,
    /// Changes an object (PATCH).
    Patch,
    /// Deletes one object.
    Delete,
    /// Deletes a collection.
    DeleteCollection,
    /// Anything that is not about a registered resource, such as `/version`.
    Other,
}

/// A request that the simulator has received.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RecordedRequest {
    /// What the request wants.
    pub verb: Verb,
    /// The version of HTTP in which it came.
    pub version: http::Version,
    /// The HTTP method.
    pub method: Method,
    /// The path, such as `/api/v1/namespaces/default/pods`.
    pub path: String,
    /// The query as it was sent, without the question mark; empty if there was none.
    pub query: String,
    /// The headers, such as `Accept` and `User-Agent`.
    pub headers: HeaderMap,
}

impl RecordedRequest {
    /// Returns the decoded value of a query parameter, if the request has it.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<String> {
        let mut pairs = form_urlencoded::parse(self.query.as_bytes());
        pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
    }

    /// Returns all values of a query parameter, decoded.
    pub(crate) fn parameters(&self, name: &str) -> Vec<String> {
        let pairs = form_urlencoded::parse(self.query.as_bytes());
        pairs.filter(|(key, _)| key == name).map(|(_, value)| value.into_owned()).collect()
    }
}

/// Picks requests by verb, path and query; an empty filter picks all.
#[derive(Clone, Debug, Default)]
pub struct RequestFilter {
    verb: Option<Verb>,
    path: Option<String>,
    /// With the value that is wanted, if it is not any.
    parameters: Vec<(String, Option<String>)>,
}

impl RequestFilter {
    /// Picks every request.
    #[must_use]
    pub fn any() -> Self {
        Self::default()
    }

    /// Picks the requests with this verb.
    #[must_use]
    pub fn verb(verb: Verb) -> Self {
        Self { verb: Some(verb), ..Self::default() }
    }

    /// Picks only requests to exactly this path.
    #[must_use]
    pub fn path(mut self, path: &str) -> Self {
        self.path = Some(path.to_owned());
        self
    }

    /// Picks only requests whose query has this parameter with this (decoded) value.
    #[must_use]
    pub fn parameter(mut self, name: &str, value: &str) -> Self {
        self.parameters.push((name.to_owned(), Some(value.to_owned())));
        self
    }

    /// Picks only requests whose query has this parameter, with whatever value: `continue` is in all requests for
    /// further pages of lists.
    #[must_use]
    pub fn has_parameter(mut self, name: &str) -> Self {
        self.parameters.push((name.to_owned(), None));
        self
    }

    /// Returns whether a request is picked.
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

/// The latest requests, oldest first.
#[derive(Debug, Default)]
pub(crate) struct RequestLog {
    requests: Mutex<VecDeque<Arc<RecordedRequest>>>,
    changed: watch::Sender<()>,
}

impl RequestLog {
    pub(crate) fn push(&self, request: Arc<RecordedRequest>) {
        let mut requests = self.requests.lock();
        requests.push_back(request);
        if requests.len() > KEPT {
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

    /// Waits until the log holds this many matching requests.
    pub(crate) async fn wait_for(&self, filter: &RequestFilter, count: usize) {
        let mut changed = self.changed.subscribe();
        while self.count(filter) < count {
            if changed.changed().await.is_err() {
                return;
            }
        }
    }
}
