//! Shared informers for Kubernetes: a local, indexed, always-current copy of the objects a process works with.
//!
//! This is the front door. A [`SharedInformerFactory`] has one [`SharedIndexInformer`] per resource, each with one
//! watch, one store and any number of handlers:
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
//! The parts are in crates of their own, each useful alone: `informer-core` (queue, processor, handlers),
//! `informer-store` (store and indices), `informer-reflector` (listing and watching). What most users need of them is
//! exported here too.

mod controller;
mod factory;
pub mod groups;
mod informer;

pub use controller::Controller;
pub use factory::{FactoryBuilder, InformerScope, NotSynced, SharedInformerFactory};
pub use informer::{InformerOptions, InformerTask, SharedIndexInformer, WaitOutcome};

pub use informer_core::{
    Batch, Cached, Deleted, Delta, DeltaFifo, Event, EventHandler, Filtered, HandlerOptions,
    HandlerRegistration, HandlerStats, Handlers, ListWatchError, ListerWatcher, ObjectKey, ResourceVersion,
    Resync, Synced, Uid,
};
pub use informer_reflector::{
    Health, KubeListWatch, PrunePaths, Reflector, ReflectorConfig, ReflectorStatus,
};
pub use informer_store::{
    Index, IndexError, IndexFailure, IndexValue, Indexer, Lister, NAMESPACE_INDEX, NamespaceLister, Objects,
    Snapshot,
};
