//! Placeholder.
mod cached;
mod delta;
mod error;
mod key;
mod lister_watcher;
mod resource_version;
mod uid;

pub use cached::Cached;
pub use delta::{Deleted, Delta, Deltas};
pub use error::{KeyError, ListWatchError};
pub use key::ObjectKey;
pub use lister_watcher::{
    Bookmark, ListEnd, ListOptions, ListPart, ListStream, ListerWatcher, Malformed, MalformedKind,
    ResourceVersionMatch, WatchEvent, WatchOptions, WatchStream,
};
pub use resource_version::ResourceVersion;
pub use uid::Uid;
