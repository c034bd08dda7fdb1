//! The errors of this crate, told apart by what the caller can do about them.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_core::Status;
use thiserror::Error;

/// An object has no usable key.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The object has no `metadata.name`.
    #[error("{object} has no name")]
    MissingName {
        /// What else is known of the object: type, namespace, `generateName` and UID.
        object: String,
    },
    /// A text is not of the form `name` or `namespace/name`.
    #[error("\"{text}\" is not a key: expected \"name\" or \"namespace/name\"")]
    Unparsable {
        /// The text as it was given.
        text: String,
    },
    /// A key function failed.
    #[error("no key for a {object}: {error}")]
    Function {
        /// The type of the object.
        object: &'static str,
        /// What the function said.
        error: String,
    },
}

impl KeyError {
    /// The error of an object without a name; it tells what the object is, never what is in it.
    pub(crate) fn missing_name<K>(meta: &ObjectMeta) -> Self {
        let mut object = format!("a {}", short_type_name::<K>());
        let known =
            [("namespace", &meta.namespace), ("generateName", &meta.generate_name), ("UID", &meta.uid)];
        let known = known.into_iter().filter_map(|(field, value)| Some((field, value.as_deref()?)));
        for (position, (field, value)) in known.filter(|(_, value)| !value.is_empty()).enumerate() {
            object += if position == 0 { " with " } else { " and " };
            object += &format!("{field} \"{value}\"");
        }
        Self::MissingName { object }
    }

    /// The error of a key function.
    pub(crate) fn function<K>(error: impl std::fmt::Display) -> Self {
        Self::Function { object: short_type_name::<K>(), error: error.to_string() }
    }
}

/// The name of a type without its module, and without its parameters if it has any.
fn short_type_name<K>() -> &'static str {
    let name = std::any::type_name::<K>();
    let name = name.split('<').next().unwrap_or(name);
    name.rsplit("::").next().unwrap_or(name)
}

/// Listing or watching a resource failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ListWatchError {
    /// The server answered, and said no. Whether it helps to wait, to list again or to ask for permission is told by
    /// the status' code and reason.
    #[error("the server answered {code} {reason}: {message}", code = status.code, reason = status.reason,
            message = status.message)]
    Status {
        /// What the server said.
        status: Box<Status>,
        /// How long the server asked to wait before the next try.
        retry_after: Option<Duration>,
    },
    /// The request didn't reach the server, or its answer didn't come back: wait and try again.
    #[error("the server can't be reached: {0}")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The request can't be built, for example because the server's resource version makes it too long: list without a
    /// version.
    #[error("the request can't be built: {0}")]
    InvalidRequest(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The answer broke off: continue from what was received.
    #[error("the answer broke off: {0}")]
    Interrupted(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The answer is not what the protocol promises, such as a body that isn't JSON; it's not a Kubernetes API server
    /// that answers, or something between changes its words.
    #[error("the answer is not understood: {0}")]
    Protocol(String),
}

/// A text is not a label selector that can be used here.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SelectorError {
    /// The text is not of the form that selectors have.
    #[error("\"{text}\" is not a label selector: expected {expected}, found {found}")]
    Syntax {
        /// The whole text.
        text: String,
        /// What would have been right.
        expected: &'static str,
        /// What is there instead.
        found: String,
    },
    /// The API server knows this operator, but kube's `Selector` can't express it; compare values in the program.
    #[error("the operator \"{operator}\" of label selectors is not supported")]
    Unsupported {
        /// The operator.
        operator: String,
    },
}

/// How long a server can make us wait at most, in seconds; so that nobody's clock overflows.
const MAX_RETRY_AFTER: u32 = 60 * 60;

/// A wait that the status asks for is kept, up to an hour.
impl From<Box<Status>> for ListWatchError {
    fn from(status: Box<Status>) -> Self {
        let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
        let retry_after = (seconds > 0).then(|| Duration::from_secs(seconds.min(MAX_RETRY_AFTER).into()));
        Self::Status { status, retry_after }
    }
}

impl ListWatchError {
    /// Returns the status if the server gave one.
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

    /// Returns whether the resource version or continue token is too old, so that a new list is needed (410).
    #[must_use]
    #[doc(alias = "IsResourceExpired")]
    #[doc(alias = "IsGone")]
    pub fn is_expired(&self) -> bool {
        self.has(410, &["Expired", "Gone"])
    }

    /// Returns whether the server is behind the resource version that was asked for.
    ///
    /// Three generations of servers say it in three ways: a cause, a message in the cause, a bare message.
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

    /// Returns whether the server finds fault with the request itself (400, 422), such as with its resource version.
    #[must_use]
    #[doc(alias = "IsBadRequest")]
    #[doc(alias = "IsInvalid")]
    pub fn is_bad_request(&self) -> bool {
        self.has(400, &["BadRequest"]) || self.has(422, &["Invalid"])
    }

    /// Returns whether the credentials were not accepted (401).
    #[must_use]
    pub fn is_unauthorized(&self) -> bool {
        self.has(401, &["Unauthorized"])
    }

    /// Returns whether the credentials don't allow this (403).
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        self.has(403, &["Forbidden"])
    }

    /// Returns whether the server doesn't serve the resource (404).
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.has(404, &["NotFound"])
    }

    /// Returns whether the server asked for fewer requests (429).
    #[must_use]
    pub fn is_too_many_requests(&self) -> bool {
        self.has(429, &["TooManyRequests"])
    }

    /// Returns whether nobody is there to answer: the server can't be reached, or something before it or in it says that it
    /// is not available (502, 503, 504). Neither another list nor another resource version would help.
    #[must_use]
    #[doc(alias = "IsServiceUnavailable")]
    #[doc(alias = "IsServerTimeout")]
    pub fn is_unavailable(&self) -> bool {
        match self {
            Self::Unreachable(_) => true,
            Self::Status { status, .. } => {
                matches!(status.code, 502..=504) && !self.is_too_large_resource_version()
            }
            Self::InvalidRequest(_) | Self::Interrupted(_) | Self::Protocol(_) => false,
        }
    }

    /// Returns how long the server asked to wait, if it did.
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
    fn nobody_is_made_to_wait_for_more_than_an_hour() {
        for (asked, kept) in [(0, None), (90, Some(90)), (u32::MAX, Some(3600))] {
            let status = serde_json::json!({ "code": 429, "details": { "retryAfterSeconds": asked } });
            let status: Box<Status> = serde_json::from_value(status).expect("a status");
            assert_eq!(ListWatchError::from(status).retry_after(), kept.map(Duration::from_secs));
        }
    }
}
