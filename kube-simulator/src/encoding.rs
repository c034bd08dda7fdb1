//! [`Encoding`]: in which bytes an answer is sent. All of them are made from the JSON that is stored.

use std::borrow::Cow;

use bytes::BytesMut;
use kube::core::Status;
use serde_json::{Map, Value};

use crate::indent::indent;
use crate::resource::ResourceKind;
use crate::{cbor, protobuf, status};

/// An encoding of objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Encoding {
    #[default]
    Json,
    /// JSON for people. Watches are never indented.
    Indented,
    /// Not for watches.
    Yaml,
    /// Only what there are messages for: the stable versions of built-in kinds, metadata, and statuses.
    Protobuf,
    /// Only where the builder says so.
    Cbor,
}

impl Encoding {
    /// Lists what is served, in the order in which one is picked for clients that take anything.
    pub(crate) fn served(with_cbor: bool) -> &'static [Self] {
        let all = &[Self::Json, Self::Yaml, Self::Protobuf, Self::Cbor];
        if with_cbor { all } else { &all[..3] }
    }

    /// Returns the media type of a document.
    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Json | Self::Indented => "application/json",
            Self::Yaml => "application/yaml",
            Self::Protobuf => protobuf::MEDIA_TYPE,
            Self::Cbor => cbor::MEDIA_TYPE,
        }
    }

    /// Returns the media type of a watch, if there are watches in this encoding.
    pub(crate) fn stream_media_type(self) -> Option<&'static str> {
        match self {
            // As it was before there were others.
            Self::Json | Self::Indented => Some("application/json"),
            Self::Yaml => None,
            Self::Protobuf => Some("application/vnd.kubernetes.protobuf;stream=watch"),
            Self::Cbor => Some(cbor::SEQUENCE),
        }
    }

    /// Returns whether events are text where they are messages of a WebSocket.
    pub(crate) fn is_text(self) -> bool {
        matches!(self, Self::Json | Self::Indented | Self::Yaml)
    }

    /// Returns whether whole objects of a kind can be sent.
    pub(crate) fn knows(self, kind: &ResourceKind) -> bool {
        self != Self::Protobuf || protobuf::message_of(&kind.api_version(), &kind.kind).is_some()
    }

    /// Encodes JSON that says its kind and version.
    pub(crate) fn document<'j>(self, json: impl Into<Cow<'j, [u8]>>) -> Cow<'j, [u8]> {
        let json = json.into();
        match self {
            Self::Json => json,
            Self::Indented => Cow::Owned(indent(&json)),
            Self::Yaml => {
                let value: Value = serde_json::from_slice(&json).unwrap_or_default();
                // There is nothing in JSON that YAML has not.
                Cow::Owned(serde_saphyr::to_string(&value).unwrap_or_default().into_bytes())
            }
            Self::Protobuf => Cow::Owned(protobuf::document(&json)),
            Self::Cbor => Cow::Owned(cbor::document(&parse(&json))),
        }
    }

    /// Encodes a status.
    pub(crate) fn status(self, status: &Status) -> Vec<u8> {
        self.document(status::encode(status)).into_owned()
    }

    /// Encodes an event of a watch about an object in JSON. How long it is, is not said.
    pub(crate) fn event(self, kind: &str, json: &[u8]) -> Vec<u8> {
        match self {
            Self::Json | Self::Indented | Self::Yaml => {
                [b"{\"type\":\"", kind.as_bytes(), b"\",\"object\":", json, b"}\n"].concat()
            }
            Self::Protobuf => protobuf::event(kind, &self.document(json)),
            Self::Cbor => cbor::event(kind, &self.document(json)),
        }
    }

    /// Returns what can be told from other events, and is none.
    pub(crate) fn no_event(self) -> &'static [u8] {
        match self {
            Self::Json | Self::Indented | Self::Yaml => b"{\"type\":7}\n",
            // A field 1 that is a number, and no text.
            Self::Protobuf => &[0x08, 7],
            Self::Cbor => b"\xd9\xd9\xf7\xa1\x44type\x07",
        }
    }

    /// Appends an event to others, so that it can be told where it ends.
    pub(crate) fn append_framed(self, buffer: &mut BytesMut, event: &[u8]) {
        if self == Self::Protobuf {
            // An event of more than 4 GiB would be one of an object that no client could have sent.
            let length = u32::try_from(event.len()).unwrap_or(u32::MAX);
            buffer.extend_from_slice(&length.to_be_bytes());
        }
        buffer.extend_from_slice(event);
    }
}

/// Parses JSON that was written here, so that it is that of an object.
pub(crate) fn parse(json: &[u8]) -> Map<String, Value> {
    serde_json::from_slice(json).unwrap_or_default()
}
