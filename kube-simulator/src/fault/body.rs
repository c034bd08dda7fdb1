//! Truncated and stalled response bodies. The cut is the position in a body at which the fault
//! begins.

use std::io;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http_body_util::BodyExt;
use tokio_util::sync::CancellationToken;

use super::gate::Gate;
use crate::http::ResponseBody;

/// What happens to a response body at the cut: it ends, breaks or stalls.
#[derive(Clone, Debug)]
pub(super) enum Then {
    Close,
    Abort,
    /// The body stalls at the cut until this gate is released or the server stops.
    Stall(Gate),
}

/// A response body that ends, breaks or stalls at the cut.
struct CutBody {
    body: ResponseBody,
    /// The number of bytes that can still be sent before the cut.
    left: u64,
    then: Then,
    /// The unsent rest of the last chunk that was read from `body`. `None` if the whole chunk was
    /// sent.
    held: Option<Bytes>,
    stop: CancellationToken,
}

/// Returns a body that sends the first `after` bytes of `body`, and then does what `then` says. A
/// stall also ends when `stop` is cancelled.
pub(super) fn cut(body: ResponseBody, after: u64, then: Then, stop: CancellationToken) -> ResponseBody {
    let cut = CutBody { body, left: after, then, held: None, stop };
    let pieces = stream::unfold(cut, |mut cut| async move { cut.next().await.map(|piece| (piece, cut)) });
    ResponseBody::streamed(pieces.boxed())
}

impl CutBody {
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        if self.left == 0 {
            match &self.then {
                Then::Close => return None,
                Then::Abort => {
                    self.then = Then::Close;
                    return Some(Err(io::ErrorKind::ConnectionAborted.into()));
                }
                Then::Stall(gate) => {
                    gate.wait_for_release(&self.stop).await;
                    self.left = u64::MAX;
                }
            }
        }
        let mut piece = match self.held.take() {
            Some(held) => held,
            None => match self.read().await? {
                Ok(piece) => piece,
                Err(error) => return Some(Err(error)),
            },
        };
        let through = usize::try_from(self.left).unwrap_or(usize::MAX).min(piece.len());
        self.held = Some(piece.split_off(through)).filter(|rest| !rest.is_empty());
        self.left -= through as u64;
        Some(Ok(piece))
    }

    async fn read(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            match self.body.frame().await? {
                Ok(frame) => {
                    if let Ok(data) = frame.into_data() {
                        return Some(Ok(data));
                    }
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
