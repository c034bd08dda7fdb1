//! Bytes that a test puts into open watch streams, to see how a client takes them.

use bytes::Bytes;
use http::StatusCode;
use kube::core::Status;

use crate::status;

/// Something to send into open watch streams, besides or instead of true events.
///
/// Errors are sent in the encoding of each stream, bytes as they are.
///
/// With [`WatchInjection::bytes`] and the methods below one can send an object that does not decode, a line that is
/// cut short, an `ERROR` event, or end the stream cleanly or not.
#[derive(Clone, Debug)]
pub struct WatchInjection {
    pub(crate) content: Content,
    pub(crate) instead_of_event: bool,
    pub(crate) ending: Option<Ending>,
}

/// What is sent.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    Bytes(Bytes),
    /// An `ERROR` event.
    Error(Box<Status>),
    /// Something that has the frame of an event, and is none.
    NoEvent,
    /// The beginning of the event in whose place it is sent.
    HalfOfEvent,
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
    /// Sends these bytes as they are; a whole event ends with a line feed, for clients that asked for JSON. To those that
    /// watch over a WebSocket they are one message.
    #[must_use]
    pub fn bytes(bytes: impl Into<Bytes>) -> Self {
        Self::of(Content::Bytes(bytes.into()))
    }

    /// Sends something that can be told from other events, and can't be decoded.
    pub(crate) fn no_event() -> Self {
        Self::of(Content::NoEvent)
    }

    /// Waits for the next event of the stream, and sends only its first half.
    pub(crate) fn half_of_next_event() -> Self {
        Self::of(Content::HalfOfEvent).instead_of_next_event()
    }

    fn of(content: Content) -> Self {
        Self { content, instead_of_event: false, ending: None }
    }

    /// Sends an `ERROR` event with a `Status` and ends the stream, as a server does when a watch goes wrong.
    #[must_use]
    pub fn error(code: StatusCode, reason: &str, message: &str) -> Self {
        Self::of(Content::Error(status::failure(code, reason, message))).then_close()
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
