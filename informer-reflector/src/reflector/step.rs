//! [`Step`]: the reflector's next request and its cause, and the tracing span of each request.

use informer_core::ListWatchError;
use tracing::field::{Empty, display};
use tracing::{Span, debug_span};

use super::counts::cause;
use super::{NextRequest, Reflector};

/// The reflector's next request.
#[derive(Debug, Clone, Copy)]
pub(super) enum Request {
    /// A streaming list (KEP-3157) if possible, otherwise a paged list.
    List,
    Pages,
    Watch,
}

impl From<Request> for NextRequest {
    fn from(request: Request) -> Self {
        match request {
            Request::List | Request::Pages => Self::List,
            Request::Watch => Self::Watch,
        }
    }
}

/// The kind of list or watch that is made for a [`Request`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    StreamingList,
    PagedList,
    Watch,
}

/// The reflector's next step after a list or watch has ended.
#[derive(Debug)]
pub(super) enum Step {
    Now(Request),
    /// List, because a [`RelistHandle`](super::RelistHandle) requested it.
    Requested,
    /// The last request ended with an error. Send the next request immediately, unless too many
    /// requests have followed each other without a wait ([`Pace`](super::pace::Pace)).
    AtOnce(Request, ListWatchError),
    /// The last request ended with an error. Send the next request after a backoff.
    Later(Request, ListWatchError),
}

impl Step {
    pub(super) fn error(&self) -> Option<&ListWatchError> {
        match self {
            Self::Now(_) | Self::Requested => None,
            Self::AtOnce(_, error) | Self::Later(_, error) => Some(error),
        }
    }

    /// Returns why the next request is a list, as a key of
    /// [`ReflectorCounts::relists`](super::ReflectorCounts::relists). Returns `None` if the next
    /// request is a watch.
    pub(super) fn relist_cause(
        &self,
        ended_request: Form,
        repeats_incomplete_list: bool,
    ) -> Option<&'static str> {
        let next = match self {
            Self::Requested => return Some("requested"),
            Self::Now(next) | Self::AtOnce(next, _) | Self::Later(next, _) => next,
        };
        let is_expired = |error: &ListWatchError| error.is_expired() || error.is_too_large_resource_version();
        match (next, ended_request) {
            (Request::Watch, _) => None,
            _ if self.error().is_some_and(is_expired) => Some("expired"),
            (Request::Pages, Form::StreamingList) => Some("fallback"),
            (_, Form::StreamingList | Form::PagedList) => Some("list-failed"),
            (_, Form::Watch) if repeats_incomplete_list => Some("incomplete-list"),
            (_, Form::Watch) if self.error().is_some() => Some("watch-failed"),
            (_, Form::Watch) => Some("no-version"),
        }
    }

    /// Returns how the request before this step has ended, such as `complete` or `closed`, for the
    /// field `outcome` of a tracing span.
    fn outcome(&self, ended_request: Form) -> &'static str {
        match self {
            Self::Requested => "relist requested",
            Self::Now(_) if ended_request == Form::Watch => "closed",
            Self::Now(_) => "complete",
            Self::AtOnce(_, error) | Self::Later(_, error) => cause(error),
        }
    }
}

/// The tracing span of a list or watch. A disabled span costs almost nothing.
pub(super) struct RequestSpan {
    pub(super) span: Span,
    form: Form,
    /// The numbers of listed objects and of events before the request
    /// ([`totals`](super::reporter::Reporter::totals)).
    before: (u64, u64),
}

impl<K: 'static> Reflector<K> {
    pub(super) fn span_of(&self, form: Form) -> RequestSpan {
        let (resource, from) = (self.lister_watcher.description(), &self.history.last_seen);
        let is_streaming = form == Form::StreamingList;
        let span = match form {
            Form::Watch => {
                debug_span!("watch", resource, %from, resource_version = Empty, events = Empty, outcome = Empty)
            }
            Form::StreamingList | Form::PagedList => {
                debug_span!(
                    "list", resource, %from, is_streaming,
                    resource_version = Empty, objects = Empty, outcome = Empty
                )
            }
        };
        let before = if span.is_disabled() { (0, 0) } else { self.reporter.totals() };
        RequestSpan { span, form, before }
    }

    pub(super) fn record_end(&self, RequestSpan { span, form, before }: RequestSpan, step: &Step) {
        if span.is_disabled() {
            return;
        }
        let (objects, events) = self.reporter.totals();
        match form {
            Form::Watch => span.record("events", events - before.1),
            Form::StreamingList | Form::PagedList => span.record("objects", objects - before.0),
        };
        span.record("resource_version", display(&self.history.last_seen));
        span.record("outcome", step.outcome(form));
    }
}
