//! [`decode_event`]: one line of a watch, `{"type": …, "object": …}`, in one pass.
//!
//! Note: the object of a bookmark has the watched type and is incomplete, with Go's zero values
//! such as `"containers": null`. So only its metadata is decoded.

use std::fmt;
use std::marker::PhantomData;

use informer_core::{
    Bookmark, ListWatchError, OwnedObject, RejectedKind, RejectedObject, ResourceVersion, WatchEvent,
};
use kube::core::Status;
use serde::Deserialize;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

use super::describe::describe;
use super::expected::{ExpectedType, Stated};
use super::identity::{Identified, rejected};
use super::prune_paths::PrunePaths;

/// Decodes one line of a watch. An undecodable object is a [`WatchEvent::RejectedObject`].
///
/// # Errors
/// If the object is not of the expected type.
pub(super) fn decode_event<K: DeserializeOwned>(
    line: &[u8],
    paths: &PrunePaths,
    expected: Option<&ExpectedType>,
) -> Result<WatchEvent<K>, ListWatchError> {
    let first_pass = decode(line, EventSeed { kind: None, paths, _object: PhantomData });
    let outcome = match first_pass {
        // The type is known now, so the object can be decoded.
        Ok(Envelope::ObjectFirst(kind)) => {
            decode(line, EventSeed { kind: Some(kind), paths, _object: PhantomData })
        }
        other => other,
    };
    match outcome {
        Ok(Envelope::Event(event)) => Ok(event),
        Ok(Envelope::ObjectFirst(_) | Envelope::Incomplete) => Ok(not_an_event(line)),
        Err(error) => {
            expected.map_or(Ok(()), |expected| check_type(line, expected))?;
            Ok(undecodable(line, &error))
        }
    }
}

/// Returns an error if a line was not decoded because its object has another type.
fn check_type(line: &[u8], expected: &ExpectedType) -> Result<(), ListWatchError> {
    #[derive(Deserialize)]
    struct Line {
        #[serde(rename = "type")]
        event_type: EventType,
        object: Stated,
    }
    let Ok(Line { event_type: EventType::Added | EventType::Modified | EventType::Deleted, object }) =
        serde_json::from_slice(line)
    else {
        return Ok(());
    };
    let Some(why) = expected.refusal(&object) else { return Ok(()) };
    Err(ListWatchError::Protocol(format!("the watch is not of what was asked for: {why}")))
}

fn decode<'de, S: DeserializeSeed<'de>>(line: &'de [u8], seed: S) -> serde_json::Result<S::Value> {
    let mut deserializer = serde_json::Deserializer::from_slice(line);
    let value = seed.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum EventType {
    Added,
    Modified,
    Deleted,
    Bookmark,
    Error,
    #[serde(other)]
    Unknown,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum EventField {
    Type,
    Object,
    #[serde(other)]
    Other,
}

/// The result of one pass over a line.
enum Envelope<K> {
    Event(WatchEvent<K>),
    /// The object came before the type, and was skipped.
    ObjectFirst(EventType),
    /// The type or the object is missing.
    Incomplete,
}

/// Decodes a line. `kind` is its type, if it is known.
struct EventSeed<'p, K> {
    kind: Option<EventType>,
    paths: &'p PrunePaths,
    _object: PhantomData<K>,
}

impl<'de, K: DeserializeOwned> DeserializeSeed<'de> for EventSeed<'_, K> {
    type Value = Envelope<K>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Envelope<K>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, K: DeserializeOwned> Visitor<'de> for EventSeed<'_, K> {
    type Value = Envelope<K>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a watch event")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Envelope<K>, A::Error> {
        let mut envelope = Envelope::Incomplete;
        let mut stepped_over = false;
        while let Some(field) = map.next_key()? {
            match (field, self.kind) {
                (EventField::Type, _) => self.kind = Some(map.next_value()?),
                (EventField::Object, Some(kind)) => {
                    let seed = ObjectSeed { kind, paths: self.paths, _object: PhantomData };
                    envelope = Envelope::Event(map.next_value_seed(seed)?);
                }
                (EventField::Object, None) => {
                    map.next_value::<IgnoredAny>()?;
                    stepped_over = true;
                }
                (EventField::Other, _) => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        match self.kind {
            Some(kind) if stepped_over => Ok(Envelope::ObjectFirst(kind)),
            _ => Ok(envelope),
        }
    }
}

/// Decodes the object of an event according to the event's type.
struct ObjectSeed<'p, K> {
    kind: EventType,
    paths: &'p PrunePaths,
    _object: PhantomData<K>,
}

impl<K: DeserializeOwned> ObjectSeed<'_, K> {
    fn object<'de, D: Deserializer<'de>>(&self, deserializer: D) -> Result<OwnedObject<K>, D::Error> {
        self.paths.deserialize(deserializer).map(OwnedObject::new)
    }
}

impl<'de, K: DeserializeOwned> DeserializeSeed<'de> for ObjectSeed<'_, K> {
    type Value = WatchEvent<K>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<WatchEvent<K>, D::Error> {
        Ok(match self.kind {
            EventType::Added => WatchEvent::Added(self.object(deserializer)?),
            EventType::Modified => WatchEvent::Modified(self.object(deserializer)?),
            EventType::Deleted => WatchEvent::Deleted(self.object(deserializer)?),
            EventType::Bookmark => WatchEvent::Bookmark(Marked::deserialize(deserializer)?.into()),
            EventType::Error => WatchEvent::Error(Box::new(Status::deserialize(deserializer)?)),
            EventType::Unknown => WatchEvent::RejectedObject {
                kind: RejectedKind::Unknown,
                object: Identified::deserialize(deserializer)?.rejected("an event of an unknown type".into()),
            },
        })
    }
}

/// The usable part of a bookmark's object.
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

/// The parts of an invalid line that can be reported.
#[derive(Deserialize)]
struct Remains<O> {
    #[serde(rename = "type")]
    event_type: Option<EventType>,
    kind: Option<String>,
    #[serde(bound = "O: Default + Deserialize<'de>", default)]
    object: O,
}

/// Returns the event for a line whose type or object is missing.
fn not_an_event<K>(line: &[u8]) -> WatchEvent<K> {
    // A proxy can send its own response in the middle of the server's stream.
    let remains = serde_json::from_slice::<Remains<IgnoredAny>>(line);
    if remains.is_ok_and(|remains| remains.kind.as_deref() == Some("Status"))
        && let Ok(status) = serde_json::from_slice::<Status>(line)
    {
        return WatchEvent::Error(Box::new(status));
    }
    let error = "an event without a type or without an object".to_owned();
    unknown(RejectedObject { key: None, resource_version: ResourceVersion::empty(), error })
}

/// Returns the event for a line that isn't JSON, or whose object doesn't decode.
// I10: it is an event, and the stream continues.
fn undecodable<K>(line: &[u8], error: &serde_json::Error) -> WatchEvent<K> {
    let described = describe(error, line);
    let Ok(Remains { event_type: Some(event_type), .. }) =
        serde_json::from_slice::<Remains<IgnoredAny>>(line)
    else {
        return unknown(rejected(&[], described));
    };
    let object = match serde_json::from_slice::<Remains<Option<Identified>>>(line) {
        Ok(Remains { object: Some(identified), .. }) => identified.rejected(described),
        _ => rejected(&[], described),
    };
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
