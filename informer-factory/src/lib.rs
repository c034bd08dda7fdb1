//! Shared informers for Kubernetes: a local, indexed, continuously updated copy of the objects a
//! process works with.
//!
//! Start with this crate. A [`SharedInformerFactory`] has one [`SharedIndexInformer`] per resource,
//! scope and object type, each with one watch (or one per namespace), one store and any number of
//! handlers:
//!
//! ```no_run
//! # async fn run(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
//! use informer_factory::SharedInformerFactory;
//!
//! let factory = SharedInformerFactory::new(client);
//! let nodes = factory.core().v1().nodes();
//! nodes.add_handlers(|handlers| handlers.on_add(|node, _| println!("+ {}", node.key()))).detach();
//! factory.start();
//! factory.wait_for_cache_sync().await?;
//! println!("{} nodes", nodes.indexer().len());
//! # Ok(())
//! # }
//! ```
//!
//! An informer combines three crates that are also useful alone: [`informer_core`] (queue,
//! processor, handlers), [`informer_store`] (store and indexes) and [`informer_reflector`] (list
//! and watch). This crate re-exports the three crates, and re-exports at its root the types that
//! most programs need. Modules contain the other types. [`status`] contains the types for health,
//! counts and failures. [`dynamic`] contains the informers for kinds without a Rust type.
//! [`namespaces`] contains types for the single namespaces of an informer, such as an error type.
//!
//! The crate `informer-controller` runs controllers on these informers: reconcile functions,
//! tracking of a controller's own writes, and leader election.
//!
//! # Cargo features
//!
//! `kube-runtime` (off by default) adds the module `kube_runtime`, which feeds informer events to
//! programs that use the crate kube-runtime.

#[doc(hidden)]
#[path = "private/mod.rs"]
pub mod __private;
pub mod cache_controller;
mod cache_sync;
mod factory;
mod group_macro;
pub mod groups;
mod informer;
#[cfg(feature = "kube-runtime")]
pub mod kube_runtime;
#[cfg(doctest)]
mod readme;
mod source;
pub mod status;

pub use informer_macros::Informer;
pub use {informer_core, informer_reflector, informer_store};

pub use cache_sync::{CacheSync, NotSynced, wait_for_cache_sync};
pub use factory::{FactoryBuilder, InformerScope, SharedInformerFactory, TypeOptions};
pub use informer::{InformerOptions, InformerTask, SharedIndexInformer, WaitOutcome};

pub use informer_core::{
    AsyncEventHandler, Cached, Completion, Deleted, Event, EventHandler, EventStream, Filtered,
    HandlerOptions, HandlerRegistration, Handlers, KeyError, ListWatchError, NeverSynced, ObjectKey,
    ResourceVersion, Resync, Storage, Uid,
};
pub use informer_reflector::{ListTweaks, PrunePathError, PrunePaths, connect};
pub use informer_store::{
    Index, IndexError, Indexer, Lister, NamespaceLister, Objects, SelectorError, parse_selector,
};

/// Types for informers of kinds for which the program has no Rust type.
///
/// - [`SharedInformerFactory::dynamic`] returns [`DynamicInformers`](dynamic::DynamicInformers).
/// - [`SharedInformerFactory::metadata`] returns [`MetadataInformers`](dynamic::MetadataInformers).
/// - [`ForResourceError`](dynamic::ForResourceError) is the error of
///   [`SharedInformerFactory::for_resource`].
pub mod dynamic {
    pub use crate::factory::{DynamicInformers, ForResourceError, MetadataInformers};
}

/// Types for informers that watch each of their namespaces separately.
///
/// [`FactoryBuilder::namespaces`] and [`SharedIndexInformer::new_in_namespaces`] create such
/// informers.
///
/// - [`NamespaceError`](namespaces::NamespaceError): the error of adding or removing a namespace.
/// - [`NamespaceWatch`](namespaces::NamespaceWatch): whether a namespace is watched, was removed,
///   or is unknown to the informer.
/// - [`NamespaceCache`](namespaces::NamespaceCache): one namespace of an informer, for waiting
///   until its objects are in the store.
pub mod namespaces {
    pub use crate::cache_sync::{NamespaceCache, NamespaceWatch};
    pub use crate::source::NamespaceError;
}
