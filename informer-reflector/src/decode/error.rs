//! [`DecodeError`]: the reason why an object cannot be decoded.

use std::fmt;

use serde::de::{Error, Unexpected};

use super::tape::Tape;

/// The reason why an object cannot be decoded, and the path of the field with the error. Contains
/// no value of the object, except metadata of an object without a name, because values can be
/// secret.
#[derive(Debug)]
pub(crate) struct DecodeError {
    /// The reason and the path. Boxed, so that each `Result` with this error is small.
    parts: Box<Parts>,
}

#[derive(Debug)]
struct Parts {
    reason: String,
    /// The path of the field that can't be decoded; empty for the whole object, `None` if unknown.
    path: Option<String>,
}

impl DecodeError {
    pub(super) fn new(reason: String) -> Self {
        Self { parts: Box::new(Parts { reason, path: None }) }
    }

    /// Adds the path of the field at this index of the tape, the object's list of tokens.
    pub(super) fn at(mut self, tape: &Tape<'_>, index: usize) -> Self {
        self.parts.path = Some(tape.path(index));
        self
    }
}

impl fmt::Display for DecodeError {
    /// Writes, for example, `unexpected string at spec.containers[1].tty`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.parts.reason)?;
        match self.parts.path.as_deref() {
            None => Ok(()),
            Some("") => f.write_str(" at the top level"),
            Some(path) => write!(f, " at {path}"),
        }
    }
}

impl std::error::Error for DecodeError {}

impl Error for DecodeError {
    /// Drops the message, because it can quote values of the object.
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self::new("invalid value".to_owned())
    }

    fn invalid_type(unexpected: Unexpected<'_>, _: &dyn serde::de::Expected) -> Self {
        Self::new(format!("unexpected {}", kind_of(unexpected)))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(format!("missing field \"{field}\""))
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::new(format!("duplicate field \"{field}\""))
    }
}

fn kind_of(unexpected: Unexpected<'_>) -> &'static str {
    match unexpected {
        Unexpected::Bool(_) => "boolean",
        Unexpected::Unsigned(_) | Unexpected::Signed(_) => "integer",
        Unexpected::Float(_) => "floating-point number",
        Unexpected::Str(_) | Unexpected::Char(_) | Unexpected::Bytes(_) => "string",
        Unexpected::Unit | Unexpected::Option => "null",
        Unexpected::Seq => "sequence",
        Unexpected::Map => "map",
        _ => "type",
    }
}
