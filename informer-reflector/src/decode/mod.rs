//! From bytes to objects: the bodies of lists and watches, decoded as they arrive.
//!
//! No I/O happens here: bytes are pushed in, what they complete comes out. The fact people get wrong: decoding is
//! where an informer's time goes, and half of it goes into `metadata.managedFields`, which hardly anybody reads.

mod describe;
mod event;
mod expected;
mod identity;
mod list;
mod prune_paths;
mod pruning;
mod step;
mod watch;

pub(crate) use expected::ExpectedType;
pub use list::ListDecoder;
pub use prune_paths::{PrunePathError, PrunePaths};
pub use watch::WatchDecoder;

/// How large an object may be by default, in bytes of JSON. etcd stores no object of more than 1.5 MiB.
pub(crate) const DEFAULT_MAX_OBJECT_SIZE: usize = 16 * 1024 * 1024;

/// What some programs begin a text in UTF-8 with.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
