//! Placeholder.
mod cached;
mod delta;
mod delta_fifo;
mod error;
mod key;
mod lister_watcher;
mod reflector_store;
mod resource_version;
mod synced;
mod uid;

pub use cached::Cached;
pub use delta::{Deleted, Delta, Deltas};
pub use delta_fifo::{Batch, DeltaFifo, Pending};
pub use error::{KeyError, ListWatchError};
pub use key::ObjectKey;
pub use lister_watcher::{
    Bookmark, ListEnd, ListOptions, ListPart, ListStream, ListerWatcher, Malformed, MalformedKind,
    ResourceVersionMatch, WatchEvent, WatchOptions, WatchStream,
};
pub use reflector_store::{KnownObjects, ReflectorStore, Replacement};
pub use resource_version::ResourceVersion;
pub use synced::Synced;
pub use uid::Uid;
