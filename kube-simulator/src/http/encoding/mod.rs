//! [`Encoding`]: the encodings of responses, which are all converted from JSON.

#[cfg_attr(not(feature = "cbor"), path = "no_cbor.rs")]
pub(crate) mod cbor;
pub(crate) mod indent;
pub(crate) mod protobuf;

use std::borrow::Cow;

use bytes::BytesMut;
use kube::core::Status;
use serde_json::{Map, Value};

use crate::api::status;
use indent::indent;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Json,
    /// Indented JSON. Watches are never indented.
    Indented,
    /// YAML, which watches do not support.
    Yaml,
    /// Protobuf, only for `Status` objects, `Scale` objects, metadata, and built-in kinds.
    Protobuf,
    /// CBOR, only if the builder enables this encoding.
    Cbor,
}

impl Encoding {
    /// Returns the supported encodings, in order of preference.
    pub(crate) fn served(with_cbor: bool) -> &'static [Self] {
        let all = &[Self::Json, Self::Yaml, Self::Protobuf, Self::Cbor];
        if with_cbor { all } else { &all[..3] }
    }

    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Json | Self::Indented => "application/json",
            Self::Yaml => "application/yaml",
            Self::Protobuf => protobuf::MEDIA_TYPE,
            Self::Cbor => cbor::MEDIA_TYPE,
        }
    }

    /// Returns the media type of a watch, or `None` if watches in this encoding are unsupported.
    pub(crate) fn stream_media_type(self) -> Option<&'static str> {
        match self {
            // For JSON, the real server omits the parameter `stream`, for compatibility.
            Self::Json | Self::Indented => Some("application/json"),
            Self::Yaml => None,
            Self::Protobuf => Some("application/vnd.kubernetes.protobuf;stream=watch"),
            Self::Cbor => Some(cbor::SEQUENCE),
        }
    }

    pub(crate) fn is_text(self) -> bool {
        matches!(self, Self::Json | Self::Indented | Self::Yaml)
    }

    /// Encodes an object from its JSON. Protobuf and CBOR need its `kind` and `apiVersion`.
    pub(crate) fn document<'j>(self, json: impl Into<Cow<'j, [u8]>>) -> Cow<'j, [u8]> {
        let json = json.into();
        match self {
            Self::Json => json,
            Self::Indented => Cow::Owned(indent(&json)),
            Self::Yaml => {
                let value: Value = serde_json::from_slice(&json).unwrap_or_default();
                // Cannot fail: YAML can represent all JSON.
                Cow::Owned(serde_saphyr::to_string(&value).unwrap_or_default().into_bytes())
            }
            Self::Protobuf => Cow::Owned(protobuf::document(&json)),
            Self::Cbor => Cow::Owned(cbor::document(&parse(&json))),
        }
    }

    pub(crate) fn status(self, status: &Status) -> Vec<u8> {
        self.document(status::encode(status)).into_owned()
    }

    /// Encodes a watch event. `event_type` is for example `ADDED`, and `json` is the object. In
    /// protobuf, [`append_framed`](Self::append_framed) adds the length prefix.
    pub(crate) fn event(self, event_type: &str, json: &[u8]) -> Vec<u8> {
        match self {
            Self::Json | Self::Indented | Self::Yaml => {
                [b"{\"type\":\"", event_type.as_bytes(), b"\",\"object\":", json, b"}\n"].concat()
            }
            Self::Protobuf => protobuf::event(event_type, &self.document(json)),
            Self::Cbor => cbor::event(event_type, &self.document(json)),
        }
    }

    /// Returns a message that clients cannot decode as a watch event: its field `type` is a number
    /// instead of a string such as `ADDED`.
    pub(crate) fn invalid_event(self) -> &'static [u8] {
        match self {
            Self::Json | Self::Indented | Self::Yaml => b"{\"type\":7}\n",
            // Field 1, the type of the event, is a number instead of a string.
            Self::Protobuf => &[0x08, 7],
            Self::Cbor => b"\xd9\xd9\xf7\xa1\x44type\x07",
        }
    }

    /// Appends an encoded event. In protobuf, the length precedes the event.
    pub(crate) fn append_framed(self, buffer: &mut BytesMut, event: &[u8]) {
        if self == Self::Protobuf {
            // Only an object that a test stores directly could exceed 4 GiB, because requests have
            // a size limit.
            let length = u32::try_from(event.len()).unwrap_or(u32::MAX);
            buffer.extend_from_slice(&length.to_be_bytes());
        }
        buffer.extend_from_slice(event);
    }
}

/// Parses JSON that the simulator has encoded, which is always an object.
pub(crate) fn parse(json: &[u8]) -> Map<String, Value> {
    serde_json::from_slice(json).unwrap_or_default()
}

/// Parses YAML that a client has sent. As on a real server, a leading 0 marks an octal number, and
/// `1.0` becomes 1.
///
/// The error names only the position, because the source can contain the data of a secret, which
/// some messages of the parser quote. Numbers beyond the range of `f64` are errors; a real server
/// accepts them as strings.
pub(crate) fn parse_yaml(yaml: &[u8]) -> Result<Map<String, Value>, String> {
    let options = serde_saphyr::options! {
        with_snippet: false,
        legacy_octal_numbers: true,
    };
    let parsed: Result<Map<String, Value>, _> = serde_saphyr::from_slice_with_options(yaml, options);
    let mut object = parsed.map_err(|error| {
        let place = error.location().map(|at| format!(" at line {}, column {}", at.line(), at.column()));
        format!("invalid or unsupported YAML{}", place.unwrap_or_default())
    })?;
    object.values_mut().for_each(shorten_whole_numbers);
    Ok(object)
}

/// Replaces floating-point numbers such as `1.0` by integers, as Go writes them in JSON.
fn shorten_whole_numbers(value: &mut Value) {
    match value {
        Value::Array(elements) => elements.iter_mut().for_each(shorten_whole_numbers),
        Value::Object(fields) => fields.values_mut().for_each(shorten_whole_numbers),
        Value::Number(number) => {
            let float = number.as_f64().filter(|_| number.is_f64());
            // Larger numbers need not be integers of 64 bits.
            if let Some(whole) = float.filter(|float| float.fract() == 0.0 && float.abs() < 2_f64.powi(63)) {
                *number = (whole as i64).into();
            }
        }
        _ => {}
    }
}
