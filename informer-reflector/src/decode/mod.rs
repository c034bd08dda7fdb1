//! Decodes the bodies of lists and watches as they arrive.
//!
//! There is no I/O here: callers push bytes, and the decoders return objects. [`json`] reads an
//! object, except its pruned fields, into a [`tape`], and [`deserialize`] turns the tape into the
//! object. Note: an informer uses most of its CPU time for decoding, and half of that for
//! `metadata.managedFields`, unless they are pruned.

mod describe;
mod deserialize;
mod event;
mod expected;
mod identity;
mod json;
mod list;
mod prune_paths;
mod repair;
mod tape;
mod watch;

use informer_core::{AnyObject, OwnedObject};
use serde::de::DeserializeOwned;

use deserialize::{DecodeError, deserialize};
use tape::Tape;

pub(crate) use expected::ExpectedType;
pub use list::ListDecoder;
pub use prune_paths::{PrunePathError, PrunePaths};
pub use watch::WatchDecoder;

/// Turns the tape of an object into the object.
pub(crate) type Decode = fn(&Tape<'_>) -> Result<OwnedObject<AnyObject>, DecodeError>;

/// The only code of the decoders that programs contain once for each type.
pub(crate) fn decode<K: DeserializeOwned + Send + Sync + 'static>(
    tape: &Tape<'_>,
) -> Result<OwnedObject<AnyObject>, DecodeError> {
    deserialize::<K>(tape).map(|object| OwnedObject::new(object).cast())
}

/// The default maximum size of an object, in bytes of JSON. etcd stores no object of more than 1.5
/// MiB.
pub(crate) const DEFAULT_MAX_OBJECT_SIZE: usize = 16 * 1024 * 1024;

/// The UTF-8 byte order mark, with which some programs begin a text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
