//! Objects in protobuf, as Go clients send built-in kinds: kubectl's `create`, and controllers on controller-runtime.
//!
//! Only reading is needed: who sends protobuf takes JSON for an answer. There is no generated code; [`Messages`] knows
//! the fields of each message, and [`read`] turns bytes into the JSON that the same client would otherwise have sent.

mod decode;
mod messages;
mod wire;

pub(crate) use decode::read;
use messages::Messages;

/// The media type of requests with such bodies.
pub(crate) const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";
