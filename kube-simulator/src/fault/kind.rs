//! [`Fault`]: what can happen to one request.

use std::future::Future;
use std::io;

use http::Response;
use tokio_util::sync::CancellationToken;

use super::body::{self, Then};
use super::gate::Gate;
use super::response::CannedResponse;
use crate::serve::{ResponseBody, canned};

/// What happens to a request in the place of its true answer, or to the answer on its way.
///
/// ```
/// use kube_simulator::{CannedResponse, Fault, Gate};
///
/// let dark = Gate::new();
/// let faults = [
///     CannedResponse::too_many_requests(3).into(),
///     Fault::refuse(),
///     Fault::abort_body_after(120),
///     Fault::stall_body_after(120, &dark),
/// ];
/// # drop(faults);
/// dark.release();
/// ```
#[derive(Clone, Debug)]
pub struct Fault(What);

#[derive(Clone, Debug)]
enum What {
    Respond(CannedResponse),
    Refuse,
    Stall(Gate),
    /// The true answer, up to so many bytes of its body.
    Cut(u64, Then),
}

impl Fault {
    /// Answers with a prepared response. The request has no effect.
    #[must_use]
    pub fn respond(response: CannedResponse) -> Self {
        Self(What::Respond(response))
    }

    /// Answers nothing, as if nobody listened: in process the call fails with
    /// [`ConnectionRefused`](io::ErrorKind::ConnectionRefused), over a socket the connection is closed, or
    /// over HTTP/2 the request's stream reset. The request has no effect.
    #[must_use]
    pub fn refuse() -> Self {
        Self(What::Refuse)
    }

    /// Lets the request wait until the gate is released, and answers it then.
    #[must_use]
    pub fn stall(gate: &Gate) -> Self {
        Self(What::Stall(gate.clone()))
    }

    /// Ends the body of the true answer after so many bytes, as if that were all of it.
    #[must_use]
    pub fn close_body_after(bytes: u64) -> Self {
        Self(What::Cut(bytes, Then::Close))
    }

    /// Breaks the connection off after so many bytes of the true answer's body, or over HTTP/2 the request's stream.
    #[must_use]
    pub fn abort_body_after(bytes: u64) -> Self {
        Self(What::Cut(bytes, Then::Abort))
    }

    /// Holds back what follows after so many bytes of the true answer's body, until the gate is released. For the
    /// client it looks like a connection that went dead. The answer is that of the time of the request; a watch goes
    /// on from there.
    #[must_use]
    pub fn stall_body_after(bytes: u64, gate: &Gate) -> Self {
        Self(What::Cut(bytes, Then::Stall(gate.clone())))
    }

    /// Lets the fault happen to a request whose true answer is `answer`.
    pub(crate) async fn apply(
        self,
        answer: impl Future<Output = Response<ResponseBody>>,
        stop: &CancellationToken,
    ) -> io::Result<Response<ResponseBody>> {
        match self.0 {
            What::Respond(response) => Ok(canned(response)),
            What::Refuse => Err(io::ErrorKind::ConnectionRefused.into()),
            What::Stall(gate) => {
                gate.passed(stop).await;
                Ok(answer.await)
            }
            What::Cut(bytes, then) => {
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
