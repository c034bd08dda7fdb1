//! [`SharedIndexInformer`]: one watch (or one per namespace), one indexed store, many handlers, for
//! one resource in one scope.
//!
//! client-go: `SharedIndexInformer` of `tools/cache/shared_informer.go`. ARCHITECTURE.md has the
//! guarantees (I1, I3, I4, I5, I7). There is no order between objects or between handlers.
//!
//! If an object is deleted and created again under the same name, handlers that have received the
//! object receive a delete and an add, even if the deletion was missed. client-go delivers an
//! update with another UID in that case.

mod failure_log;
mod namespaces;
mod observe;
mod options;
mod pipeline;
mod progress;
mod state;
mod task;
mod verify;
mod wait;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use informer_core::{
    AnyObject, AnySource, AsyncEventHandler, Cached, Completion, DeltaFifo, EventHandler, EventStream,
    HandlerOptions, HandlerRegistration, Handlers, ListerWatcher, ObjectKey, ResourceVersion,
    SharedProcessor,
};
use informer_store::{Index, IndexError, IndexValue, Indexer, Lister, StoreWriter, store};
use kube::Resource;
use tokio::sync::watch;

use crate::cache_controller::CacheController;
use crate::source::{self, Source, SourceStatus, SourceTask};
use failure_log::FailureLog;
use pipeline::Pipeline;
use progress::Progress;
use state::StateKeeper;
use verify::Verifier;

pub use options::InformerOptions;
pub use progress::BatchCounts;
pub use state::{InformerState, StopCause};
pub use task::InformerTask;
pub use verify::{Difference, Verification, VerifyError};
pub use wait::Visibility;
pub use wait::WaitOutcome;

/// A local, indexed, continuously updated copy of the objects of one resource in one scope. Clones
/// are handles of the same informer.
///
/// Most programs get informers from a [`SharedInformerFactory`](crate::SharedInformerFactory),
/// which also runs them.
#[doc(alias = "SharedInformer")]
pub struct SharedIndexInformer<K> {
    pub(crate) shared: Arc<Shared>,
    _type: PhantomData<fn() -> K>,
}

pub(crate) struct Shared {
    /// The number of informers that the process has created before this one.
    pub(crate) number: u64,
    indexer: Indexer<AnyObject>,
    pub(crate) processor: SharedProcessor<AnyObject>,
    queue: DeltaFifo<AnyObject>,
    pub(crate) source: Arc<Source<AnyObject>>,
    status: SourceStatus,
    watermark: watch::Receiver<ResourceVersion>,
    state: watch::Receiver<InformerState>,
    verifier: Arc<Verifier>,
    pub(crate) progress: Arc<Progress>,
    /// The number of store handles that belong to the informer itself. If
    /// [`Indexer::handle_count`] is greater, the program also has a store handle, for example a
    /// [`Lister`].
    own_handles: usize,
}

impl<K: Resource + Send + Sync + 'static> SharedIndexInformer<K> {
    /// Returns an informer and its task. The informer does nothing until the task is
    /// [run](InformerTask::run).
    #[doc(alias = "NewSharedIndexInformer")]
    pub fn new(
        lister_watcher: Arc<dyn ListerWatcher<K>>,
        options: InformerOptions<K>,
    ) -> (Self, InformerTask) {
        Self::over(Arc::new(AnySource(lister_watcher)), options)
    }

    /// Returns an informer and its task, for a source whose object type is erased.
    pub(crate) fn over(
        lister_watcher: Arc<dyn ListerWatcher<AnyObject>>,
        options: InformerOptions<K>,
    ) -> (Self, InformerTask) {
        let (shared, task) = Shared::new(lister_watcher, options.cast());
        (Self::of(shared), task)
    }

    /// Returns a [`Lister`], which reads the store by namespace, name and label selector.
    #[must_use]
    pub fn lister(&self) -> Lister<K> {
        Lister::new(self.indexer().clone())
    }
}

impl<K: Send + Sync + 'static> SharedIndexInformer<K> {
    /// Returns the informer's store, for reading. Until the [initial list](Self::synced) is in the
    /// store, the store can lack objects, and the [watermark](Self::watermark) is empty.
    #[must_use]
    #[doc(alias = "GetStore")]
    #[doc(alias = "GetIndexer")]
    pub fn indexer(&self) -> &Indexer<K> {
        self.shared.indexer.cast_ref()
    }

    /// Returns the object with this key; `None` if the store does not have it.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<Cached<K>> {
        self.indexer().get(key)
    }

    /// Adds an index, at any time. `values` returns the index values of an object; see
    /// [`Indexer::add_index`].
    ///
    /// # Errors
    /// [`IndexError::Duplicate`] if an index with this name exists or is being added.
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
        self.indexer().add_index(name, values)
    }

    /// Returns the index with this name.
    ///
    /// # Errors
    /// [`IndexError::Unknown`] if there is no such index, [`IndexError::WrongType`] if its values
    /// have another type.
    pub fn index<V: IndexValue>(&self, name: &str) -> Result<Index<K, V>, IndexError> {
        self.indexer().index(name)
    }

    /// Adds a handler, at any time. The handler first receives the objects of the store and of the
    /// initial list as initial adds, and then the changes. While 1,024 or more events are pending,
    /// new changes of an object are merged. Dropping the registration removes the handler. After
    /// the informer has stopped, a new handler is never called.
    #[doc(alias = "AddEventHandler")]
    pub fn add_event_handler(&self, handler: impl EventHandler<K>) -> HandlerRegistration {
        self.add_event_handler_with(handler, &HandlerOptions::default())
    }

    /// Adds a handler that consists of closures. The informer's type determines the types of their
    /// arguments.
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

    /// Adds a handler. `options` sets, for example, its name and its resync period; see
    /// [`HandlerOptions`].
    #[doc(alias = "AddEventHandlerWithOptions")]
    #[doc(alias = "AddEventHandlerWithResyncPeriod")]
    pub fn add_event_handler_with(
        &self,
        handler: impl EventHandler<K>,
        options: &HandlerOptions,
    ) -> HandlerRegistration {
        let indexer = self.indexer();
        self.shared.processor.cast().add_handler(handler, options, || indexer.list().into_iter())
    }

    /// Adds an async handler, at any time. It receives the same events as a handler of
    /// [`add_event_handler`](Self::add_event_handler).
    pub fn add_async_event_handler(&self, handler: impl AsyncEventHandler<K>) -> HandlerRegistration {
        self.add_async_event_handler_with(handler, &HandlerOptions::default())
    }

    /// Adds an async handler. `options` sets, for example, its name and its resync period; see
    /// [`HandlerOptions`].
    pub fn add_async_event_handler_with(
        &self,
        handler: impl AsyncEventHandler<K>,
        options: &HandlerOptions,
    ) -> HandlerRegistration {
        let indexer = self.indexer();
        self.shared.processor.cast().add_async_handler(handler, options, || indexer.list().into_iter())
    }

    /// Returns a stream of events, an alternative to a handler. The stream begins with the objects
    /// of the store and ends when the informer stops.
    ///
    /// ```no_run
    /// use futures::StreamExt;
    /// use informer_factory::{Event, HandlerOptions};
    /// # async fn follow(pods: informer_factory::SharedIndexInformer<k8s_openapi::api::core::v1::Pod>) {
    /// let mut events = pods.events(&HandlerOptions::default());
    /// while let Some(event) = events.next().await {
    ///     match event {
    ///         Event::Deleted(pod) => println!("- {}", pod.key()),
    ///         event => println!("+ {}", event.key()),
    ///     }
    /// }
    /// # }
    /// ```
    pub fn events(&self, options: &HandlerOptions) -> EventStream<K> {
        let indexer = self.indexer();
        self.shared.processor.cast().events(options, || indexer.list().into_iter())
    }

    /// Returns whether the initial list is in the store. For a handler, use
    /// [`HandlerRegistration::has_synced`].
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.shared.queue.has_synced()
    }

    /// Returns a [`Completion`] that is set when the initial list is in the store.
    ///
    /// An informer of several namespaces stops waiting for a namespace if the server answers all
    /// requests for it with 403 during ten seconds. The informer logs a warning for each such
    /// namespace. But at least one namespace must have been listed.
    /// [`cache_in`](Self::cache_in) waits for one namespace, even if the server refuses it.
    #[must_use]
    pub fn synced(&self) -> Completion {
        self.shared.queue.synced()
    }

    /// Returns a [`Completion`] that is set when the initial list of a namespace is in the store.
    /// If this namespace is not one of the informer's [`namespaces`](Self::namespaces), returns the
    /// completion of [`synced`](Self::synced).
    #[must_use]
    pub fn synced_in(&self, namespace: &str) -> Completion {
        let own = match self.shared.source.as_ref() {
            Source::Namespaces(namespaces) => namespaces.synced(namespace),
            Source::Whole(_) => None,
        };
        own.unwrap_or_else(|| self.synced())
    }
}

impl<K> SharedIndexInformer<K> {
    fn of(shared: Arc<Shared>) -> Self {
        Self { shared, _type: PhantomData }
    }

    /// Returns a handle of the same informer with another static type of the objects. Converts no
    /// objects: `T` must be the type of the informer's objects, or [`AnyObject`].
    pub(crate) fn cast<T>(&self) -> SharedIndexInformer<T> {
        SharedIndexInformer::of(Arc::clone(&self.shared))
    }
}

impl Shared {
    fn new(
        lister_watcher: Arc<dyn ListerWatcher<AnyObject>>,
        options: InformerOptions<AnyObject>,
    ) -> (Arc<Self>, InformerTask) {
        let (writer, indexer) = store();
        let queue = DeltaFifo::with_known_objects(Arc::new(indexer));
        let reflector = (options.reflector.clone(), options.ingest.clone());
        let made = match lister_watcher.namespace_by_namespace() {
            Some(make) => source::divided(make, lister_watcher.as_ref(), &queue, reflector),
            None => source::whole(lister_watcher, &queue, reflector),
        };
        Self::assemble(writer, queue, made, options)
    }

    fn assemble(
        writer: StoreWriter<AnyObject>,
        queue: DeltaFifo<AnyObject>,
        (source, work): (Source<AnyObject>, SourceTask<AnyObject>),
        options: InformerOptions<AnyObject>,
    ) -> (Arc<Self>, InformerTask) {
        static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);
        let InformerOptions { resync_period, verify_period, ingest, .. } = options;
        let (indexer, status, source) = (writer.indexer(), source.status(), Arc::new(source));
        let processor = SharedProcessor::new(resync_period);
        let (watermark_sender, watermark) = watch::channel(ResourceVersion::empty());
        let progress = Arc::new(Progress::new());
        let mut pipeline = Pipeline {
            index_failures: FailureLog::new(status.description()),
            writer,
            indexer: indexer.clone(),
            processor: processor.clone(),
            source: Arc::clone(&source),
            watermark: watermark_sender,
            progress: Arc::clone(&progress),
        };
        let controller = CacheController::over(queue.clone(), work, move |batch| pipeline.process(batch));
        processor.describe_source({
            let status = status.clone();
            move || status.waiting_for()
        });
        let (keeper, state) = StateKeeper::new();
        let verifier = Verifier::new(indexer.clone(), Arc::clone(&source), ingest, watermark.clone());
        let verifier = Arc::new(verifier);
        let task =
            InformerTask::new(controller, processor.clone(), Arc::clone(&verifier), verify_period, keeper);
        let own_handles = indexer.handle_count();
        let shared = Self {
            number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
            indexer,
            processor,
            queue,
            source,
            status,
            watermark,
            state,
            verifier,
            progress,
            own_handles,
        };
        (Arc::new(shared), task)
    }
}

impl<K> Clone for SharedIndexInformer<K> {
    fn clone(&self) -> Self {
        self.cast()
    }
}

impl<K> fmt::Debug for SharedIndexInformer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedIndexInformer")
            .field("resource", &self.shared.status.description())
            .field("state", &*self.shared.state.borrow())
            .field("indexer", &self.shared.indexer)
            .field("processor", &self.shared.processor)
            .finish_non_exhaustive()
    }
}
