//! Bytes that a test puts into open watch streams, to see how a client takes them.

use bytes::{Bytes, BytesMut};
use http::StatusCode;

use super::framing;
use crate::status;

/// Something to send into open watch streams, besides or instead of true events.
///
/// With [`WatchInjection::bytes`] and the methods below one can send an object that does not decode, a line that is
/// cut short, an `ERROR` event, or end the stream cleanly or not.
#[derive(Clone, Debug)]
pub struct WatchInjection {
    pub(crate) bytes: Bytes,
    pub(crate) instead_of_event: bool,
    pub(crate) ending: Option<Ending>,
}

/// An injection with its place among the events.
#[derive(Clone, Debug)]
pub(crate) struct PlacedInjection {
    pub(crate) injection: WatchInjection,
    /// It comes behind the events up to this resource version, and before all later ones.
    pub(crate) after: u64,
}

/// How a stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Close,
    Abort,
}

impl WatchInjection {
    /// Sends these bytes as they are; a whole event ends with a line feed.
    #[must_use]
    pub fn bytes(bytes: impl Into<Bytes>) -> Self {
        Self { bytes: bytes.into(), instead_of_event: false, ending: None }
    }

    /// Sends an `ERROR` event with a `Status` and ends the stream, as a server does when a watch goes wrong.
    #[must_use]
    pub fn error(code: StatusCode, reason: &str, message: &str) -> Self {
        let mut line = BytesMut::new();
        framing::append_error(&mut line, &status::failure(code, reason, message));
        Self::bytes(line.freeze()).then_close()
    }

    /// Says that the history is gone, with 410 `Expired`, and ends the stream.
    #[must_use]
    pub fn expired() -> Self {
        Self::error(StatusCode::GONE, "Expired", "too old resource version")
    }

    /// Sends nothing and ends the stream cleanly, as a server does when the watch's time is up.
    #[must_use]
    pub fn close() -> Self {
        Self::bytes(Bytes::new()).then_close()
    }

    /// Sends nothing and breaks the connection off in the middle of the body.
    #[must_use]
    pub fn abort() -> Self {
        Self::bytes(Bytes::new()).then_abort()
    }

    /// Waits for the next event of the stream and sends the bytes in its place.
    #[must_use]
    pub fn instead_of_next_event(mut self) -> Self {
        self.instead_of_event = true;
        self
    }

    /// Ends the stream cleanly after the bytes.
    #[must_use]
    pub fn then_close(mut self) -> Self {
        self.ending = Some(Ending::Close);
        self
    }

    /// Breaks the connection off after the bytes.
    #[must_use]
    pub fn then_abort(mut self) -> Self {
        self.ending = Some(Ending::Abort);
        self
    }
}
