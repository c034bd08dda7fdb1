//! [`ShutdownAnswer`]: the answer of a server that is shutting down.

use http::header::{CONNECTION, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};

use super::response::CannedResponse;

/// The answer to new requests while a server is shutting down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShutdownAnswer {
    /// The usual answers, as during a server's `--shutdown-delay-duration`. Only `/readyz`
    /// announces the shutdown. Watches continue.
    ///
    /// If a test changes the answer from [`TooManyRequests`](ShutdownAnswer::TooManyRequests) or
    /// [`ServiceUnavailable`](ShutdownAnswer::ServiceUnavailable) to `Usual`, the watches that are
    /// open at the change still end.
    Usual,
    /// 429 in plain text, with a `Retry-After` of 5 seconds and `Connection: close` (in HTTP/2, a
    /// `GOAWAY`). This is the answer of a real server with `--shutdown-send-retry-after` and
    /// `--shutdown-watch-termination-grace-period`.
    ///
    /// The simulator also ends its watches cleanly, 200 per second, so that not all clients connect
    /// to another server at once.
    TooManyRequests,
    /// 503 `ServiceUnavailable`, with a `Retry-After` of 1 second. This is the answer of a real
    /// server without `--shutdown-send-retry-after` and
    /// `--shutdown-watch-termination-grace-period`.
    ///
    /// The simulator also [drains its connections](crate::Simulator::drain_connections) at once. It
    /// ends its watches cleanly after a minute.
    ///
    /// Unlike the real server, the simulator still accepts new connections. On these, it gives the
    /// same answer.
    ServiceUnavailable,
}

impl ShutdownAnswer {
    /// Returns the error response to new requests. Returns `None` if the server still processes
    /// requests as usual.
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
