//! [`SharedIndexInformer`]: one watch, one indexed store, many handlers, for one resource in one scope.
//!
//! client-go: `SharedIndexInformer` of `tools/cache/shared_informer.go`. What it promises:
//!
//! - The store follows the server; for each object its states are a subsequence, in order, of the server's (I1).
//! - A query is answered from one state of objects and indices (I7), and a handler that is told of a change finds it
//!   in the store (I3).
//! - Each handler is called by one task; for each object it hears an add, then updates, then a delete (I4). Between
//!   objects and between handlers there is no order.
//! - A handler that joins later first gets what exists (I5).
//! - An object that is deleted and created again under its name is a delete and an add, also where the deletion itself
//!   was missed; there client-go tells an update with another UID.

mod options;
mod pipeline;
mod task;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use informer_core::{
    Cached, DeltaFifo, EventHandler, HandlerOptions, HandlerRegistration, Handlers, ListerWatcher, ObjectKey,
    ResourceVersion, SharedProcessor, Synced,
};
use informer_reflector::{Health, Reflector, ReflectorStatus};
use informer_store::{Index, IndexError, IndexValue, Indexer, Lister, store};
use kube::Resource;
use tokio::sync::watch;

use crate::Controller;
pub use options::InformerOptions;
use pipeline::Pipeline;
pub use task::InformerTask;

/// A local, indexed, always-current copy of some objects, shared by all who use them. Cloning gives another handle on
/// the same informer.
///
/// Most users get one from a [`SharedInformerFactory`](crate::SharedInformerFactory), which also runs it.
#[doc(alias = "SharedInformer")]
pub struct SharedIndexInformer<K: 'static> {
    shared: Arc<Shared<K>>,
}

struct Shared<K: 'static> {
    indexer: Indexer<K>,
    processor: SharedProcessor<K>,
    queue: DeltaFifo<K>,
    reflector: ReflectorStatus,
    watermark: watch::Receiver<ResourceVersion>,
}

/// How a wait for a resource version ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub enum WaitOutcome {
    /// The store has the server's state at that version, or a later one.
    Reached,
    /// It didn't get there in time.
    TimedOut,
    /// The version has no order, so nobody can say.
    NotComparable,
    /// The informer has stopped short of it.
    Stopped,
}

impl<K: Resource + Send + Sync + 'static> SharedIndexInformer<K> {
    /// Returns an informer and the task that makes it live. Nothing happens until the task is
    /// [run](InformerTask::run).
    #[doc(alias = "NewSharedIndexInformer")]
    pub fn new(
        lister_watcher: Arc<dyn ListerWatcher<K>>,
        options: InformerOptions<K>,
    ) -> (Self, InformerTask<K>) {
        let (writer, indexer) = store::<K>();
        let queue = DeltaFifo::with_known_objects(Arc::new(indexer.clone()));
        let reflector = Reflector::new(lister_watcher, Arc::new(queue.clone()), options.reflector);
        let processor = SharedProcessor::new(options.resync_period);
        let (watermark_sender, watermark) = watch::channel(ResourceVersion::empty());
        let status = reflector.status();
        let mut pipeline = Pipeline {
            description: status.description().to_owned(),
            writer,
            indexer: indexer.clone(),
            processor: processor.clone(),
            watermark: watermark_sender,
        };
        let controller = Controller::new(queue.clone(), reflector, move |batch| pipeline.process(batch));
        let task = InformerTask { controller, processor: processor.clone() };
        let shared = Shared { indexer, processor, queue, reflector: status, watermark };
        (Self { shared: Arc::new(shared) }, task)
    }

    /// Returns a view of the store by namespace, name and label selector.
    #[must_use]
    pub fn lister(&self) -> Lister<K> {
        Lister::new(self.shared.indexer.clone())
    }
}

impl<K: Send + Sync + 'static> SharedIndexInformer<K> {
    /// Returns the read half of the store.
    #[must_use]
    #[doc(alias = "GetStore")]
    #[doc(alias = "GetIndexer")]
    pub fn indexer(&self) -> &Indexer<K> {
        &self.shared.indexer
    }

    /// Returns the object with this key.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<Cached<K>> {
        self.shared.indexer.get(key)
    }

    /// Adds an index, at any time; see [`Indexer::add_index`].
    ///
    /// # Errors
    /// [`IndexError::Duplicate`] if the name is taken.
    #[doc(alias = "AddIndexers")]
    pub fn add_index<V, I>(
        &self,
        name: &str,
        values: impl Fn(&K) -> I + Send + Sync + 'static,
    ) -> Result<Index<K, V>, IndexError>
    where
        V: IndexValue,
        I: IntoIterator<Item = V>,
    {
        self.shared.indexer.add_index(name, values)
    }

    /// Adds a handler, at any time. What the store has already comes to it first, as initial adds (I5).
    #[doc(alias = "AddEventHandler")]
    pub fn add_event_handler(&self, handler: impl EventHandler<K>) -> HandlerRegistration {
        self.add_event_handler_with(handler, &HandlerOptions::default())
    }

    /// Adds a handler made of closures, whose types are clear from the informer.
    ///
    /// ```no_run
    /// # fn add(pods: informer_factory::SharedIndexInformer<k8s_openapi::api::core::v1::Pod>) {
    /// let registration = pods.add_handlers(|handlers| {
    ///     handlers
    ///         .on_add(|pod, is_in_initial_list| println!("+ {} {is_in_initial_list}", pod.key()))
    ///         .on_update(|old, new| println!("{} from {:?} to {:?}", new.key(), old.status, new.status))
    ///         .on_delete(|pod| println!("- {}", pod.key()))
    /// });
    /// # drop(registration);
    /// # }
    /// ```
    pub fn add_handlers(&self, build: impl FnOnce(Handlers<K>) -> Handlers<K>) -> HandlerRegistration {
        self.add_event_handler(build(Handlers::new()))
    }

    /// Adds a handler that is served in its own way.
    #[doc(alias = "AddEventHandlerWithOptions")]
    #[doc(alias = "AddEventHandlerWithResyncPeriod")]
    pub fn add_event_handler_with(
        &self,
        handler: impl EventHandler<K>,
        options: &HandlerOptions,
    ) -> HandlerRegistration {
        let indexer = &self.shared.indexer;
        self.shared.processor.add_handler(handler, options, || indexer.list().into_iter())
    }

    /// Says whether the first list is in the store. Handlers have their own [`HandlerRegistration::has_synced`].
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.shared.queue.has_synced()
    }

    /// Returns the promise that the first list is in the store.
    #[must_use]
    pub fn synced(&self) -> Synced {
        self.shared.queue.synced()
    }

    /// Returns how listing and watching fares.
    #[must_use]
    pub fn status(&self) -> &ReflectorStatus {
        &self.shared.reflector
    }

    /// Returns the server's resource version whose state the store has (I9).
    #[must_use]
    pub fn watermark(&self) -> ResourceVersion {
        self.shared.indexer.watermark()
    }

    /// Waits until the store has everything up to `resource_version`, for example that of an object one has just
    /// written, at most for `timeout` (I9).
    ///
    /// An object outside the informer's namespace or selector never arrives, and the wait then ends with the next
    /// bookmark or event, or in [`WaitOutcome::TimedOut`].
    ///
    /// # Cancel safety
    /// Nothing is lost if the future is dropped.
    pub async fn wait_until(&self, resource_version: &ResourceVersion, timeout: Duration) -> WaitOutcome {
        if !resource_version.is_comparable() {
            return WaitOutcome::NotComparable;
        }
        let mut watermark = self.shared.watermark.clone();
        let reached = watermark.wait_for(|watermark| watermark.is_at_least(resource_version));
        match tokio::time::timeout(timeout, reached).await {
            Ok(Ok(_)) => WaitOutcome::Reached,
            Ok(Err(_)) => WaitOutcome::Stopped,
            Err(_) => WaitOutcome::TimedOut,
        }
    }

    /// Returns how listing and watching fares now.
    #[must_use]
    pub fn health(&self) -> Health {
        self.shared.reflector.health()
    }
}

impl<K: 'static> Clone for SharedIndexInformer<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K: 'static> fmt::Debug for SharedIndexInformer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedIndexInformer")
            .field("resource", &self.shared.reflector.description())
            .field("indexer", &self.shared.indexer)
            .field("processor", &self.shared.processor)
            .finish_non_exhaustive()
    }
}
