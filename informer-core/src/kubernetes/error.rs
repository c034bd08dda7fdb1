//! The errors of lists, watches and label selectors.

use std::time::Duration;

use kube_core::Status;
use thiserror::Error;

/// The error of a failed list or watch request.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ListWatchError {
    /// The server returned an error. The code and the reason of the status show whether to wait, to
    /// relist or to grant permissions.
    #[error("the server returned {code} {reason}: {message}", code = status.code, reason = status.reason,
            message = status.message)]
    Status {
        /// The status that the server returned. If the body of the response is not a status, it is
        /// made from the HTTP status code, the content type and the length of the body.
        status: Box<Status>,
        /// The time to wait before the next request, if the server requested a wait.
        retry_after: Option<Duration>,
    },
    /// The request didn't reach the server, or the response didn't arrive. Wait and retry.
    #[error("no response from the server: {0}")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The request can't be built and was not sent. If the resource version makes the URL too long,
    /// list without a resource version. If not, the program has set an invalid parameter.
    #[error("the request can't be built: {0}")]
    InvalidRequest(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The response is incomplete. For example, it ended early, or no more data arrived. After an
    /// incomplete watch, continue after the last received event. After an incomplete list, list
    /// again.
    #[error("the response is incomplete: {0}")]
    Interrupted(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The response violates the protocol, for example because the body is not JSON. Probably the
    /// server is not a Kubernetes API server, or a proxy changes responses.
    #[error("the response is invalid: {0}")]
    Protocol(String),
}

/// A string is not a supported label selector.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SelectorError {
    /// The string does not have the form of a label selector.
    #[error("\"{text}\" is not a label selector: expected {expected}, found {found}")]
    Syntax {
        /// The string that is not a label selector.
        text: String,
        /// A description of the word or symbol that was expected.
        expected: &'static str,
        /// The unexpected word or symbol, in quotation marks. If the selector ends too early, the
        /// text is `the end`.
        found: String,
    },
    /// The API server supports this operator, but kube's `Selector` can't express it. Use a
    /// selector without this operator, and compare the labels of the received objects instead.
    #[error(
        "the operator \"{operator}\" of label selectors is not supported; remove it from the selector, and \
         compare the labels of the received objects instead"
    )]
    Unsupported {
        /// The operator in the selector, for example `>`.
        operator: String,
    },
}

/// The maximum wait that a server can request, in seconds. It prevents overflow when a wait is
/// added to a time.
const MAX_RETRY_AFTER: u32 = 60 * 60;

/// Converts a status that the server returned. A wait that the status requests is limited to one
/// hour.
impl From<Box<Status>> for ListWatchError {
    fn from(status: Box<Status>) -> Self {
        let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
        let retry_after = (seconds > 0).then(|| Duration::from_secs(seconds.min(MAX_RETRY_AFTER).into()));
        Self::Status { status, retry_after }
    }
}

impl ListWatchError {
    /// Returns the status, if the server returned one.
    #[must_use]
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Status { status, .. } => Some(status),
            _ => None,
        }
    }

    fn has(&self, code: u16, reasons: &[&str]) -> bool {
        self.status().is_some_and(|status| status.code == code || reasons.contains(&status.reason.as_str()))
    }

    /// Returns whether the resource version or continue token has expired, so that a relist is
    /// needed (410).
    #[must_use]
    #[doc(alias = "IsResourceExpired")]
    #[doc(alias = "IsGone")]
    pub fn is_expired(&self) -> bool {
        self.has(410, &["Expired", "Gone"])
    }

    /// Returns whether the server has not reached the requested resource version yet.
    ///
    /// Servers of different versions report this in three places: in the reason of a cause
    /// (`details.causes` of the status), in the message of a cause, or only in the message of the
    /// status.
    #[must_use]
    #[doc(alias = "IsTooLargeResourceVersion")]
    pub fn is_too_large_resource_version(&self) -> bool {
        const MESSAGE: &str = "Too large resource version";
        self.status().is_some_and(|status| {
            let causes = status.details.as_ref().map_or(&[][..], |details| &details.causes);
            causes.iter().any(|cause| cause.reason == "ResourceVersionTooLarge" || cause.message == MESSAGE)
                || (status.reason == "Timeout" && status.message.contains(MESSAGE))
        })
    }

    /// Returns whether the server rejected the request as invalid (400, 422), for example because
    /// the resource version in the request is invalid.
    #[must_use]
    #[doc(alias = "IsBadRequest")]
    #[doc(alias = "IsInvalid")]
    pub fn is_bad_request(&self) -> bool {
        self.has(400, &["BadRequest"]) || self.has(422, &["Invalid"])
    }

    /// Returns whether the server rejected the credentials (401).
    #[must_use]
    pub fn is_unauthorized(&self) -> bool {
        self.has(401, &["Unauthorized"])
    }

    /// Returns whether the credentials don't allow the request (403).
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        self.has(403, &["Forbidden"])
    }

    /// Returns whether the server doesn't serve the resource (404).
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.has(404, &["NotFound"])
    }

    /// Returns whether the server received too many requests (429).
    #[must_use]
    pub fn is_too_many_requests(&self) -> bool {
        self.has(429, &["TooManyRequests"])
    }

    /// Returns whether the server is unavailable: it can't be reached, the server or a proxy
    /// returned 502, 503 or 504, or the server's storage did not respond in time. Neither a relist
    /// nor another resource version would help. `false` for a
    /// [too large resource version](Self::is_too_large_resource_version).
    #[must_use]
    #[doc(alias = "IsServiceUnavailable")]
    #[doc(alias = "IsServerTimeout")]
    pub fn is_unavailable(&self) -> bool {
        match self {
            Self::Unreachable(_) => true,
            Self::Status { status, .. } => {
                (matches!(status.code, 502..=504) || status.reason == "ServerTimeout")
                    && !self.is_too_large_resource_version()
            }
            Self::InvalidRequest(_) | Self::Interrupted(_) | Self::Protocol(_) => false,
        }
    }

    /// Returns the wait that the server requested, if any; at most one hour.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_is_unavailable_if_its_storage_is() {
        // The status of `NewServerTimeout`, which apiserver returns if etcd does not respond.
        let of = |reason| Box::new(Status::failure("", reason).with_code(500));
        assert!(ListWatchError::from(of("ServerTimeout")).is_unavailable());
        assert!(!ListWatchError::from(of("InternalError")).is_unavailable());
    }

    #[test]
    fn retry_after_is_at_most_an_hour() {
        for (asked, kept) in [(0, None), (90, Some(90)), (u32::MAX, Some(3600))] {
            let status = serde_json::json!({ "code": 429, "details": { "retryAfterSeconds": asked } });
            let status: Box<Status> = serde_json::from_value(status).expect("a status");
            assert_eq!(ListWatchError::from(status).retry_after(), kept.map(Duration::from_secs));
        }
    }
}
