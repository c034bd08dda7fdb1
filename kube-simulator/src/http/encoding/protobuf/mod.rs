//! Objects in protobuf, the preferred encoding of Go programs for built-in kinds.
//!
//! There is no generated code; [`kube_messages`] describes the fields of each message.

mod decode;
mod encode;
mod messages;
mod node;

pub(crate) use decode::read;
pub(crate) use encode::{content, document, document_of, event, list};
#[cfg(feature = "cbor")]
pub(crate) use messages::field_type;
pub(crate) use messages::{FieldType, fields_of, message_of};

pub(crate) const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// The prefix of the envelope around an object or a list.
const MAGIC: &[u8] = b"k8s\0";
