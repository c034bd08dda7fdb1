//! Objects in protobuf, as Go programs like built-in kinds best: kubectl, the components of Kubernetes, and controllers on
//! controller-runtime.
//!
//! There is no generated code; [`Messages`] knows the fields of each message. [`read`] turns bytes into the JSON that the
//! same client would otherwise have sent, and [`document`] JSON into the bytes that a real server would have sent.

mod decode;
mod encode;
mod messages;
mod node;
mod wire;

pub(crate) use decode::read;
pub(crate) use encode::{content, document, document_of, event, list, message};
use messages::Messages;
pub(crate) use messages::{FieldType, field_type, fields_of, message_of};

/// The media type of such bodies.
pub(crate) const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// What all such bodies begin with.
const MAGIC: &[u8] = b"k8s\0";
