//! An indexed store of Kubernetes objects: always one consistent state, never in a reader's way.
//!
//! [`store`] returns its two halves. The [`StoreWriter`] changes it, one transaction at a time; any number of
//! [`Indexer`]s read it, from any thread:
//!
//! | query | answers |
//! |---|---|
//! | [`Indexer::get`] | one object |
//! | [`Indexer::list`], [`Indexer::in_namespace`] | [`Objects`], without copying anything |
//! | [`Index::get`] | the objects that share a value |
//! | [`Lister`] | by namespace and label selector |
//! | [`Indexer::snapshot`] | a [`Snapshot`] for several queries on one state |
//!
//! Objects and indices are persistent structures (`persistent_vec.rs`, `slot_map.rs`, `posting.rs`), so a snapshot costs a few
//! reference counts and a write copies only what it touches, and only if a snapshot is held.
//!
//! There is no mutation detector, and no need for one: what is read is a [`Cached`](informer_core::Cached), through
//! which nothing can be written.

mod error;
mod index;
mod indexer;
mod lister;
mod objects;
mod persistent_vec;
mod posting;
mod shared;
mod slot_map;
mod snapshot;
mod writer;

pub use error::{IndexError, IndexFailure};
pub use index::{Index, IndexValue};
pub use indexer::{Indexer, NAMESPACE_INDEX};
pub use lister::{Lister, NamespaceLister};
pub use objects::{IntoIter, Objects};
pub use snapshot::Snapshot;
pub use writer::{Change, StoreWriter, store};
