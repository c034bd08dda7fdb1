//! [`EventDecoder`]: decodes the events of a watch. In JSON, an event is a line such as
//! `{"type": …, "object": …}`; in protobuf, it is a message. A tape is an object as a list of
//! tokens.
//!
//! Note: the object of a bookmark has the watched type and is incomplete, with Go's zero values
//! such as `"containers": null`. So only its metadata is decoded.

use informer_core::{
    Bookmark, ListWatchError, OwnedObject, RejectedKind, RejectedObject, ResourceVersion, WatchEvent,
};
use kube::core::Status;
use kube_messages::{Content, Fields, Malformed};
use serde::Deserialize;

use super::Encoding;
use super::describe::invalid_json;
use super::deserialize::deserialize;
use super::envelope::Unknown;
use super::error::DecodeError;
use super::expected::ExpectedType;
use super::form::{Arrived, Form};
use super::identity::rejected;
use super::json::{NoValue, Scanner, Value, is_json};
use super::protobuf::read_object;
use super::prune_paths::{Level, NOTHING_PRUNED};
use super::repair::{INVALID_UTF8, Repaired};
use super::skipped::Skipped;
use super::tape::Tape;

pub(super) struct EventDecoder {
    pub(super) encoding: Encoding,
    pub(super) skipped: Skipped,
    /// The type that the objects must have; `None` if any type is accepted.
    pub(super) expected: Option<ExpectedType>,
    pub(super) form: Form,
}

impl EventDecoder {
    /// Decodes one event: a line without blanks around it, or a protobuf message. An undecodable
    /// object gives a [`WatchEvent::RejectedObject`], and an undecodable status a
    /// [`WatchEvent::Error`]. An added, modified or deleted object of an unexpected type gives an
    /// error.
    pub(super) fn decode<K>(&mut self, event: &[u8]) -> Result<WatchEvent<K>, ListWatchError> {
        match self.encoding {
            Encoding::Json => self.decode_line(event),
            Encoding::Protobuf => self.decode_protobuf(event),
        }
    }

    fn decode_line<K>(&mut self, line: &[u8]) -> Result<WatchEvent<K>, ListWatchError> {
        let repaired = Repaired::new(line);
        let text = &*repaired.text;
        match Envelope::read(text, &self.skipped) {
            Ok(Envelope { event_type: Some(event_type), object: Some(mut object) }) => {
                if repaired.is_repaired(0..text.len()) {
                    object.tape.reject(INVALID_UTF8);
                }
                self.decode_object(event_type, &Arrived { tape: object.tape, protobuf: None })
            }
            _ if is_json(text) => Ok(not_an_event(text)),
            _ => Ok(unknown(rejected(&Tape::default(), invalid_json(line)))),
        }
    }

    fn decode_protobuf<K>(&mut self, event: &[u8]) -> Result<WatchEvent<K>, ListWatchError> {
        match read_protobuf_event(event) {
            Ok((event_type, object)) => {
                if let Some(event) = self.decode_directly(event_type, &object) {
                    return Ok(event);
                }
                let skipped = event_type.skipped(&self.skipped);
                let unread = if event_type.is_data() { self.form.unread_fields(skipped) } else { skipped };
                let tape = read_object(&object, unread);
                let protobuf = object.message().map(|message| (message, object.raw));
                self.decode_object(event_type, &Arrived { tape, protobuf })
            }
            Err(error) => Ok(unknown(rejected(&Tape::default(), error.to_string()))),
        }
    }

    /// Decodes a protobuf event without a tape. Returns `None` if a tape is needed.
    fn decode_directly<K>(&self, event_type: EventType, object: &Unknown<'_>) -> Option<WatchEvent<K>> {
        let event = event_type.with_object()?;
        self.form
            .direct(object.message()?, object.raw, self.skipped.root())
            .map(|object| event(object.cast()))
    }

    fn decode_object<K>(
        &mut self,
        event_type: EventType,
        arrived: &Arrived<'_>,
    ) -> Result<WatchEvent<K>, ListWatchError> {
        let object = &arrived.tape;
        let expected = self.expected.as_ref().filter(|_| event_type.is_data());
        if let Some(why) = expected.and_then(|expected| expected.refusal(object)) {
            return Err(ListWatchError::Protocol(format!("the watch has unexpected content: {why}")));
        }
        let mut formed = || self.form.object(arrived, &mut self.skipped).map(OwnedObject::cast);
        let decoded = match (event_type, event_type.with_object()) {
            (_, Some(event)) => formed().map(event),
            (EventType::Bookmark, _) => {
                deserialize::<Marked>(object).map(|marked| WatchEvent::Bookmark(marked.into()))
            }
            (EventType::Error, _) => deserialize::<Status>(object).map(Box::new).map(WatchEvent::Error),
            _ => Ok(unknown(rejected(object, "an event of an unknown type".to_owned()))),
        };
        Ok(decoded.unwrap_or_else(|error| undecodable(event_type, object, &error)))
    }
}

/// Reads the type (field 1) and the object (field 2) of an event. Field 2 is a `RawExtension`,
/// which contains the object as bytes.
fn read_protobuf_event(event: &[u8]) -> Result<(EventType, Unknown<'_>), Malformed> {
    let (mut event_type, mut object) = (None, None);
    let mut fields = Fields(event);
    while let Some((number, content)) = fields.next()? {
        match (number, content) {
            (1, Content::Bytes(name)) => event_type = Some(EventType::of(name)),
            (2, Content::Bytes(extension)) => {
                let mut inner = Fields(extension);
                while let Some((1, Content::Bytes(raw))) = inner.next()? {
                    object = Some(Unknown::read(raw)?);
                }
            }
            _ => {}
        }
    }
    Ok((event_type.ok_or(Malformed)?, object.ok_or(Malformed)?))
}

/// An event of a watch in JSON.
#[derive(Default)]
struct Envelope<'l> {
    event_type: Option<EventType>,
    /// The object in the event; `None` if the line has no object or no type. Added, modified and
    /// deleted objects are read without the fields in [`Skipped`], for example without the pruned
    /// fields.
    object: Option<Value<'l>>,
}

impl<'l> Envelope<'l> {
    fn read(line: &'l str, skipped: &Skipped) -> Result<Self, NoValue> {
        let (mut envelope, mut object_first) = (Self::default(), None);
        let mut scanner = Scanner::new(line);
        scanner.members(|scanner, name| {
            match (name, envelope.event_type) {
                ("type", _) => {
                    let name: Option<String> = serde_json::from_str(scanner.raw()?).ok();
                    envelope.event_type = name.map(|name| EventType::of(name.as_bytes()));
                }
                ("object", Some(event_type)) => {
                    envelope.object = Some(scanner.value(event_type.skipped(skipped))?);
                }
                ("object", None) => {
                    object_first = Some(scanner.clone());
                    scanner.raw()?;
                }
                _ => drop(scanner.raw()?),
            }
            Ok(())
        })?;
        if let (Some(mut scanner), Some(event_type)) = (object_first, envelope.event_type) {
            envelope.object = Some(scanner.value(event_type.skipped(skipped))?);
        }
        if scanner.only_blanks_left() { Ok(envelope) } else { Err(NoValue::Broken) }
    }
}

#[derive(Debug, Clone, Copy)]
enum EventType {
    Added,
    Modified,
    Deleted,
    Bookmark,
    Error,
    Unknown,
}

impl EventType {
    fn of(name: &[u8]) -> Self {
        match name {
            b"ADDED" => Self::Added,
            b"MODIFIED" => Self::Modified,
            b"DELETED" => Self::Deleted,
            b"BOOKMARK" => Self::Bookmark,
            b"ERROR" => Self::Error,
            _ => Self::Unknown,
        }
    }

    /// Returns [`WatchEvent::Added`], [`WatchEvent::Modified`] or [`WatchEvent::Deleted`] as a
    /// function that creates the event; `None` for other event types.
    fn with_object<K>(self) -> Option<fn(OwnedObject<K>) -> WatchEvent<K>> {
        match self {
            Self::Added => Some(WatchEvent::Added),
            Self::Modified => Some(WatchEvent::Modified),
            Self::Deleted => Some(WatchEvent::Deleted),
            Self::Bookmark | Self::Error | Self::Unknown => None,
        }
    }

    /// Returns the fields to leave out of the tape of the event's object: the skipped fields for
    /// added, modified and deleted objects, none for other events.
    fn skipped(self, skipped: &Skipped) -> &Level {
        if self.is_data() { skipped.root() } else { &NOTHING_PRUNED }
    }

    fn is_data(self) -> bool {
        matches!(self, Self::Added | Self::Modified | Self::Deleted)
    }
}

/// The part of a bookmark's object that is decoded.
#[derive(Deserialize)]
struct Marked {
    metadata: Mark,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Mark {
    resource_version: Option<String>,
    annotations: Option<MarkAnnotations>,
}

#[derive(Deserialize)]
struct MarkAnnotations {
    #[serde(rename = "k8s.io/initial-events-end")]
    initial_events_end: Option<String>,
}

impl From<Marked> for Bookmark {
    fn from(Marked { metadata }: Marked) -> Self {
        let end = metadata.annotations.and_then(|annotations| annotations.initial_events_end);
        Self {
            resource_version: ResourceVersion::from(metadata.resource_version.as_deref()),
            initial_events_end: end.as_deref() == Some("true"),
        }
    }
}

/// Returns the event for a JSON line that lacks a valid `type` or the field `object`: an error if
/// the line is a Kubernetes `Status`, and a rejected object for other lines.
fn not_an_event<K>(line: &str) -> WatchEvent<K> {
    #[derive(Deserialize)]
    struct Typed {
        kind: Option<String>,
    }
    // A proxy can send its own response in the middle of the server's stream.
    if serde_json::from_str::<Typed>(line).is_ok_and(|typed| typed.kind.as_deref() == Some("Status"))
        && let Ok(status) = serde_json::from_str::<Status>(line)
    {
        return WatchEvent::Error(Box::new(status));
    }
    unknown(rejected(&Tape::default(), "an event without a type or without an object".to_owned()))
}

/// Returns the event that reports that `object` can't be decoded: a [`WatchEvent::Error`] if
/// `event_type` is `Error`, and a [`WatchEvent::RejectedObject`] otherwise.
// I10: the undecodable object is returned as an event, and the stream continues.
fn undecodable<K>(event_type: EventType, object: &Tape<'_>, error: &DecodeError) -> WatchEvent<K> {
    let object = rejected(object, error.to_string());
    match event_type {
        EventType::Added | EventType::Modified => {
            WatchEvent::RejectedObject { kind: RejectedKind::Changed, object }
        }
        EventType::Deleted => WatchEvent::RejectedObject { kind: RejectedKind::Deleted, object },
        // The failure of the watch must not be lost if its status can't be decoded.
        EventType::Error => {
            let message = format!("the watch failed, and its status can't be decoded: {}", object.error);
            WatchEvent::Error(Box::new(Status::failure(&message, "InternalError").with_code(500)))
        }
        EventType::Bookmark | EventType::Unknown => unknown(object),
    }
}

fn unknown<K>(object: RejectedObject) -> WatchEvent<K> {
    WatchEvent::RejectedObject { kind: RejectedKind::Unknown, object }
}
