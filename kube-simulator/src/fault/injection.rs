//! [`WatchInjection`]: bytes, an error or an end that a test injects into open watch streams.

use bytes::Bytes;
use http::StatusCode;
use kube::core::Status;

use crate::api::status;

/// Bytes or an error to inject into open watch streams, in addition to events or instead of an
/// event.
///
/// Errors are sent in the encoding of each stream; bytes are sent unchanged. With
/// [`WatchInjection::bytes`] and the methods below, a test can send an undecodable object, a
/// truncated line, or an `ERROR` event. An injection can also end the stream, cleanly or with an
/// [abort](Self::abort).
#[derive(Clone, Debug)]
pub struct WatchInjection {
    pub(crate) content: Content,
    pub(crate) instead_of_event: bool,
    pub(crate) ending: Option<Ending>,
}

#[derive(Clone, Debug)]
pub(crate) enum Content {
    Bytes(Bytes),
    /// An `ERROR` event with this `Status`.
    Error(Box<Status>),
    /// A message with correct framing (such as a whole line of JSON) that is not a valid event.
    InvalidEvent,
    /// The first half of an event, sent instead of the whole event.
    HalfOfEvent,
}

/// A [`WatchInjection`] with its position among the events of the watch.
#[derive(Clone, Debug)]
pub(crate) struct PlacedInjection {
    pub(crate) injection: WatchInjection,
    /// The newest resource version when the test made the injection. A stream sends the injection
    /// before events with later versions.
    pub(crate) after: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Close,
    Abort,
}

impl WatchInjection {
    /// Returns an injection that sends these bytes unchanged. To send a whole event in JSON, end
    /// the bytes with a line feed. Over a WebSocket, the bytes are one message.
    #[must_use]
    pub fn bytes(bytes: impl Into<Bytes>) -> Self {
        Self::of(Content::Bytes(bytes.into()))
    }

    pub(crate) fn invalid_event() -> Self {
        Self::of(Content::InvalidEvent)
    }

    pub(crate) fn half_of_next_event() -> Self {
        Self::of(Content::HalfOfEvent).instead_of_next_event()
    }

    fn of(content: Content) -> Self {
        Self { content, instead_of_event: false, ending: None }
    }

    /// Returns an injection that sends an `ERROR` event with a `Status` and then ends the stream,
    /// like a server after a watch error.
    #[must_use]
    pub fn error(code: StatusCode, reason: &str, message: &str) -> Self {
        Self::of(Content::Error(status::failure(code, reason, message))).then_close()
    }

    /// Returns an injection that sends the error 410 `Expired` and then ends the stream.
    #[must_use]
    pub fn expired() -> Self {
        Self::error(StatusCode::GONE, "Expired", "too old resource version")
    }

    /// Returns an injection that ends the stream cleanly, like a server at the watch timeout.
    #[must_use]
    pub fn close() -> Self {
        Self::bytes(Bytes::new()).then_close()
    }

    /// Returns an injection that breaks the connection (in HTTP/2, only the stream), so that the
    /// client receives an incomplete response body.
    #[must_use]
    pub fn abort() -> Self {
        Self::bytes(Bytes::new()).then_abort()
    }

    /// Makes this injection wait for the next event of the stream, and replace this event.
    /// Bookmarks and the initial objects of a watch do not count as events.
    #[must_use]
    pub fn instead_of_next_event(mut self) -> Self {
        self.instead_of_event = true;
        self
    }

    /// Makes this injection end the stream cleanly after the injected content.
    #[must_use]
    pub fn then_close(mut self) -> Self {
        self.ending = Some(Ending::Close);
        self
    }

    /// Makes this injection break the connection (in HTTP/2, only the stream) after the injected
    /// content.
    #[must_use]
    pub fn then_abort(mut self) -> Self {
        self.ending = Some(Ending::Abort);
        self
    }
}
