//! Decodes the bodies of lists and watches as they arrive.
//!
//! There is no I/O here: callers push bytes, and the decoders return objects. A scan cuts pruned
//! fields out of the bytes ([`cut`]), and serde decodes the rest. Note: an informer uses most of its
//! CPU time for decoding, and half of that for `metadata.managedFields`, unless they are pruned.

mod cut;
mod describe;
mod event;
mod expected;
mod identity;
mod list;
mod prune_paths;
mod watch;

use informer_core::{AnyObject, OwnedObject};
use serde::de::DeserializeOwned;

pub(crate) use expected::ExpectedType;
pub use list::ListDecoder;
pub use prune_paths::{PrunePathError, PrunePaths};
pub use watch::WatchDecoder;

/// Decodes one object from JSON.
pub(crate) type Decode = fn(&[u8]) -> serde_json::Result<OwnedObject<AnyObject>>;

/// The only code of the decoders that programs contain once for each type.
pub(crate) fn decode<K: DeserializeOwned + Send + Sync + 'static>(
    json: &[u8],
) -> serde_json::Result<OwnedObject<AnyObject>> {
    serde_json::from_slice::<K>(json).map(|object| OwnedObject::new(object).cast())
}

/// The default maximum size of an object, in bytes of JSON. etcd stores no object of more than 1.5
/// MiB.
pub(crate) const DEFAULT_MAX_OBJECT_SIZE: usize = 16 * 1024 * 1024;

/// The UTF-8 byte order mark, with which some programs begin a text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
