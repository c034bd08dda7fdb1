//! [`Fault`]: a fault that affects single requests.

use std::future::Future;
use std::io;

use http::Response;
use tokio_util::sync::CancellationToken;

use super::body::{self, Then};
use super::gate::Gate;
use super::response::CannedResponse;
use crate::http::{ResponseBody, canned};

/// A fault of one request: a different answer, no answer, or an answer that is cut or stalled.
///
/// ```
/// use kube_simulator::{CannedResponse, Fault, Gate};
///
/// let gate = Gate::new();
/// let faults = [
///     CannedResponse::too_many_requests(3).into(),
///     Fault::refuse(),
///     Fault::abort_body_after(120),
///     Fault::stall_body_after(120, &gate),
/// ];
/// # drop(faults);
/// gate.release();
/// ```
#[derive(Clone, Debug)]
pub struct Fault(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Respond(CannedResponse),
    Refuse,
    Stall(Gate),
    /// The real answer, whose body is cut or stalled after this many bytes.
    Cut(u64, Then),
}

impl Fault {
    /// Answers with a prepared response. The request has no effect.
    #[must_use]
    pub fn respond(response: CannedResponse) -> Self {
        Self(Kind::Respond(response))
    }

    /// Sends no answer, as if the server were down. Over a socket, the connection is closed, or in
    /// HTTP/2 the stream is reset. A call of [`Simulator::service`](crate::Simulator::service)
    /// fails with [`ConnectionRefused`](io::ErrorKind::ConnectionRefused). The request has no
    /// effect.
    #[must_use]
    pub fn refuse() -> Self {
        Self(Kind::Refuse)
    }

    /// Stalls the request until the gate is released, and then processes it.
    #[must_use]
    pub fn stall(gate: &Gate) -> Self {
        Self(Kind::Stall(gate.clone()))
    }

    /// Ends the body of the real answer after this many bytes, as if the body were complete.
    #[must_use]
    pub fn close_body_after(bytes: u64) -> Self {
        Self(Kind::Cut(bytes, Then::Close))
    }

    /// Aborts the connection (in HTTP/2, the stream) after this many bytes of the real answer's
    /// body.
    #[must_use]
    pub fn abort_body_after(bytes: u64) -> Self {
        Self(Kind::Cut(bytes, Then::Abort))
    }

    /// Sends this many bytes of the real answer's body, and the rest after the gate is released. In
    /// between, the connection (in HTTP/2, the stream) appears dead to the client. The server
    /// computes the answer when the request arrives. After the release, a watch continues with the
    /// events that it has not sent, or ends if there are too many.
    #[must_use]
    pub fn stall_body_after(bytes: u64, gate: &Gate) -> Self {
        Self(Kind::Cut(bytes, Then::Stall(gate.clone())))
    }

    /// Applies this fault to a request, and returns the response. Returns an error if the client
    /// must get no response ([`refuse`](Self::refuse)). The future `answer` processes the request
    /// as usual.
    pub(crate) async fn apply(
        self,
        answer: impl Future<Output = Response<ResponseBody>>,
        stop: &CancellationToken,
    ) -> io::Result<Response<ResponseBody>> {
        match self.0 {
            Kind::Respond(response) => Ok(canned(response)),
            Kind::Refuse => Err(io::ErrorKind::ConnectionRefused.into()),
            Kind::Stall(gate) => {
                gate.wait_for_release(stop).await;
                Ok(answer.await)
            }
            Kind::Cut(bytes, then) => {
                let stop = stop.clone();
                Ok(answer.await.map(|whole| body::cut(whole, bytes, then, stop)))
            }
        }
    }
}

impl From<CannedResponse> for Fault {
    fn from(response: CannedResponse) -> Self {
        Self::respond(response)
    }
}
