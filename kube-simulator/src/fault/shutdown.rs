//! [`ShutdownAnswer`]: what a server that is shutting down answers to new requests.

use http::header::{CONNECTION, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};

use super::response::CannedResponse;

/// How a server that is shutting down takes new requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShutdownAnswer {
    /// As ever, as within a server's `--shutdown-delay-duration`: only `/readyz` says that it is about to go. Watches go
    /// on.
    Usual,
    /// With 429 in plain text, a `Retry-After` of 5 seconds and `Connection: close`, as a server that was started with
    /// `--shutdown-send-retry-after` and `--shutdown-watch-termination-grace-period`. Its watches end in good order, two
    /// hundred of them a second, so that their clients don't all come to another server at once.
    TooManyRequests,
    /// With 503 `ServiceUnavailable` and a `Retry-After` of 1 second, as a server without these flags, which only waits for
    /// the requests under way, and has its clients leave their connections. Its watches go on for a minute, and end in good
    /// order. A real one does not listen any more by then, so that only requests see this that come over a connection
    /// which they should have left.
    ServiceUnavailable,
}

impl ShutdownAnswer {
    /// The refusal, if it refuses.
    pub(crate) fn response(self) -> Option<CannedResponse> {
        Some(match self {
            Self::Usual => return None,
            Self::TooManyRequests => {
                let text = "The apiserver is shutting down, please try again later.\n";
                CannedResponse::raw(StatusCode::TOO_MANY_REQUESTS, text)
                    .header(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"))
                    .retry_after(5)
                    .header(CONNECTION, HeaderValue::from_static("close"))
            }
            Self::ServiceUnavailable => {
                let (code, reason) = (StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable");
                CannedResponse::failure(code, reason, "apiserver is shutting down").retry_after(1)
            }
        })
    }
}
