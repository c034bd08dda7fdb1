//! Decodes the bodies of lists and watches as they arrive. Contains no I/O: callers push bytes.
//!
//! [`json`] or [`protobuf`] reads an object into a [`tape`], a list of tokens, and skips the pruned
//! fields. [`deserialize`] turns the tape into the object. For frequent kinds in protobuf,
//! [`direct`] usually replaces both steps. Decoding takes a large part of an informer's CPU time.

mod describe;
mod deserialize;
mod direct;
mod envelope;
mod error;
mod event;
mod expected;
mod form;
mod identity;
mod json;
mod list;
mod name;
mod number;
mod protobuf;
mod prune_paths;
mod repair;
mod skipped;
mod tape;
mod watch;

use informer_core::{AnyObject, OwnedObject};
use serde::de::DeserializeOwned;

use deserialize::{deserialize, deserialize_noting};
use direct::{Direct, direct};
use envelope::Unknown;
use error::DecodeError;
use kube::core::Status;
use kube_messages::Message;
use prune_paths::NOTHING_PRUNED;
use tape::Tape;

pub(crate) use expected::ExpectedType;
pub(crate) use form::{Form, FromJson, family};
pub use list::ListDecoder;
pub use prune_paths::{PrunePathError, PrunePaths};
pub use watch::WatchDecoder;

type FromTape = fn(&Tape<'_>, Option<&mut Vec<usize>>) -> Result<OwnedObject<AnyObject>, DecodeError>;

/// The functions that decode objects of one Rust type. All other code of the decoders is the same
/// for all types.
#[derive(Clone, Copy)]
pub(crate) struct Decode {
    /// Turns a tape into an object. Adds to the vector the indexes on the tape of values for which
    /// the Rust type has no field.
    tape: FromTape,
    direct: Option<Direct>,
}

impl Decode {
    pub(crate) fn of<K: DeserializeOwned + Send + Sync + 'static>() -> Self {
        let tape = |tape: &Tape<'_>, ignored: Option<&mut Vec<usize>>| {
            deserialize_noting::<K>(tape, ignored).map(|object| OwnedObject::new(object).cast())
        };
        Self { tape, direct: direct::<K>() }
    }

    /// Returns the decoder that needs no tape, if there is one for this message.
    fn direct(self, message: &Message) -> Option<Direct> {
        self.direct.filter(|direct| direct.message == message.name)
    }
}

/// An encoding of lists and watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// JSON, which servers support for all kinds.
    Json,
    /// Kubernetes' protobuf, which servers support for built-in kinds, and for the metadata of all
    /// kinds.
    Protobuf,
}

impl Encoding {
    pub(crate) fn of(content_type: &[u8]) -> Self {
        if content_type.starts_with(PROTOBUF.as_bytes()) { Self::Protobuf } else { Self::Json }
    }
}

pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Returns the Kubernetes `Status` in a response body. Checks the kind, because many other JSON
/// objects could be decoded as a status, which has no required fields.
pub(crate) fn status_in(encoding: Encoding, body: &[u8]) -> Option<Status> {
    let status = |tape: &Tape<'_>| (tape.text_of("kind") == "Status").then(|| deserialize(tape).ok())?;
    match encoding {
        Encoding::Json => {
            let body = body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(body);
            status(&json::read(str::from_utf8(body).ok()?, &NOTHING_PRUNED).ok()?.tape)
        }
        Encoding::Protobuf => status(&protobuf::read_object(&Unknown::read(body).ok()?, &NOTHING_PRUNED)),
    }
}

/// The default maximum size of an object in a list or watch, in bytes, after decompression and
/// before decoding.
// It is more than ten times etcd's maximum of 1.5 MiB.
pub(crate) const DEFAULT_MAX_OBJECT_SIZE: usize = 16 * 1024 * 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
