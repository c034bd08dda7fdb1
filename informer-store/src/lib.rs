//! An indexed in-memory store of Kubernetes objects. A read of objects always sees one consistent
//! state, and waits for less than a millisecond.
//!
//! [`store`] returns the two halves of a store. The [`StoreWriter`] changes the store, one
//! transaction at a time. Any number of [`Indexer`]s read the store, from any thread:
//!
//! | query | result |
//! |---|---|
//! | [`Indexer::get`] | one object |
//! | [`Indexer::list`], [`Indexer::in_namespace`] | [`Objects`], without copies |
//! | [`Index::get`], [`Index::keys`] | the objects with a given index value, or their sorted keys |
//! | [`Index::with_common_value`] | the objects that share an index value with a given object |
//! | [`Lister`] | objects by namespace and label selector; faster with [`Indexer::add_label_index`] |
//! | [`Indexer::snapshot`] | a [`Snapshot`] for several queries on one state |
//!
//! Two caches build on the store. A [`MutationCache`] returns the objects of a store with this
//! process's own writes applied, for code that can't wait until the writes arrive over the watch.
//! For code that can wait, an informer's `wait_until` is simpler. An [`ExpirationCache`] is for
//! data without a watch: its objects expire.
//!
//! Objects and indexes are persistent data structures (`persistent_vec.rs`, `slot_map.rs`,
//! `posting.rs`), so taking a snapshot copies neither objects nor index entries. A small
//! transaction changes these structures in place while no snapshot or query result exists.
//! Otherwise, a transaction first copies each shared small array of entries that it changes.
//!
//! Only [`Lister`] and the label index require Kubernetes objects. For other objects,
//! [`Cached::from_parts`](informer_core::Cached::from_parts) wraps an object of any type with any
//! key. Without the default feature `kubernetes`, the crate lacks `Lister` and the label index, and
//! does not depend on k8s-openapi and kube. If an object has no resource version,
//! [`StoreWriter::replace`] always replaces it.
//!
//! [`ReflectedStore`] makes a store the direct destination of a reflector, for programs without
//! handlers.
//!
//! Unlike client-go, this crate has no mutation detector, because readers get
//! [`Cached`](informer_core::Cached) objects, which are immutable.

mod error;
mod expiration_cache;
mod index;
mod indexer;
#[cfg(feature = "kubernetes")]
mod label_index;
#[cfg(feature = "kubernetes")]
mod lister;
mod mutation_cache;
mod objects;
mod persistent_vec;
mod posting;
mod reflected_store;
mod shared;
mod slot_map;
mod snapshot;
mod sync;
mod transaction;
mod writer;

pub use error::{IndexError, IndexFailure};
pub use expiration_cache::ExpirationCache;
pub use index::{Index, IndexValue};
pub use indexer::{Indexer, NAMESPACE_INDEX};
#[cfg(feature = "kubernetes")]
pub use informer_core::{SelectorError, parse_selector};
#[cfg(feature = "kubernetes")]
pub use label_index::LABEL_INDEX;
#[cfg(feature = "kubernetes")]
pub use lister::{Lister, NamespaceLister};
pub use mutation_cache::{MutationCache, MutationCacheOptions};
pub use objects::{IntoIter, Objects};
pub use reflected_store::ReflectedStore;
pub use snapshot::Snapshot;
pub use transaction::PreparedTransaction;
pub use writer::{Change, StoreWriter, store};
