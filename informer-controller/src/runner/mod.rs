//! [`ControllerRunner`]: workers that reconcile keys.
//!
//! Informers queue the keys of changed objects in a [`Workqueue`], and workers call one function
//! with each key. controller-runtime: `Controller` of `pkg/internal/controller`; in client-go,
//! every controller implements this loop. (client-go's `Controller` corresponds to
//! [`CacheController`](informer_factory::cache_controller::CacheController).)
//!
//! Note: the function is called with a key and not with a change. It reads the current state from
//! the stores and decides what to do, so it does not matter if several changes lead to one call.

mod keys;
mod overdue;
mod parking;
mod readiness;
mod request;
mod run;
mod stats;
mod worker;

use std::fmt;
use std::hash::Hash;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use informer_core::{Cached, HandlerOptions, HandlerRegistration, Handlers, ObjectKey};
use informer_workqueue::{Priority, Workqueue};

use crate::WriteTracker;
use informer_factory::{CacheSync, SharedIndexInformer};
use readiness::{NamespaceOf, ReadCache};

pub use keys::{controller_key, keys_in_index, own_key};
pub use request::{ReconcileRequest, Reconciled};
pub use stats::{RunnerMonitor, RunnerStats};

/// Runs a controller: informers feed a queue with keys, and workers call an async function with
/// each.
///
/// ```no_run
/// use std::time::Duration;
/// use informer_controller::{ControllerRunner, ReconcileRequest, Reconciled, Workqueue, controller_key, own_key};
/// use informer_factory::SharedInformerFactory;
/// use k8s_openapi::api::apps::v1::ReplicaSet;
/// use k8s_openapi::api::core::v1::Pod;
/// use tokio_util::sync::CancellationToken;
///
/// # async fn run(client: kube::Client, shutdown: CancellationToken) -> Result<(), Box<dyn std::error::Error>> {
/// let factory = SharedInformerFactory::new(client);
/// let (sets, pods) = (factory.apps().v1().replica_sets(), factory.core().v1().pods());
/// let runner = ControllerRunner::new(Workqueue::builder().name("replica-sets").build())
///     .workers(4)
///     .reconcile_timeout(Duration::from_secs(60))
///     .watches(&sets, own_key)
///     .watches(&pods, controller_key::<ReplicaSet, Pod>);
/// factory.start();
/// let reconcile = move |request: ReconcileRequest| {
///     let sets = sets.clone();
///     async move {
///         if let Some(set) = sets.get(request.key()) {
///             println!("{} should have its pods", set.key());
///         }
///         Ok::<_, kube::Error>(Reconciled::RequeueAfter(Duration::from_secs(300)))
///     }
/// };
/// runner.run(reconcile, shutdown).await?;
/// # Ok(())
/// # }
/// ```
///
/// # Guarantees
///
/// - A key is never with two workers, and is reconciled after the last change that concerns it.
/// - Workers start when all informers are synced. A key with a namespace also waits for informers
///   that have [added it](SharedIndexInformer::add_namespace) later, or are refused there, until
///   they have listed it. A warning names a namespace that takes longer than the
///   [sync timeout](Self::sync_timeout).
/// - A key whose namespace was [removed](SharedIndexInformer::remove_namespace) from the watched
///   informers is dropped without a call: its object would look deleted. While only some of them
///   have removed the namespace, the key is parked. During a call,
///   [`ReconcileRequest::is_namespace_watched`] returns `false` once that has happened.
/// - A failure, a panic or a timeout concerns one key, which the queue's rate limiter returns
///   later.
/// - A key [with pending writes](ReconcileRequest::writes) is parked, without a worker, until the
///   caches have the writes or the deadline is over.
/// - Objects that existed at the start, and resyncs, have a low priority; changes overtake them.
///
/// Nothing is queued before [`run`](Self::run). So a standby can create the controller at once and
/// run it when it is elected: its informers are synced by then. As after a restart, it does not
/// receive earlier deletions.
#[must_use = "a controller does nothing until it is run"]
pub struct ControllerRunner<T> {
    queue: Workqueue<T>,
    workers: NonZeroUsize,
    reconcile_timeout: Option<Duration>,
    sync_timeout: Duration,
    drain_timeout: Duration,
    tracker: WriteTracker<T>,
    caches: Vec<ReadCache>,
    namespace_of: NamespaceOf<T>,
    /// Adds the handlers that fill the queue.
    feeds: Vec<Feed>,
    monitor: RunnerMonitor,
}

impl ControllerRunner<ObjectKey> {
    /// Returns a controller with one worker and this queue; the name of the queue is also that of
    /// the controller. The queue has the rate limiter, the fairness groups and the metrics. Other
    /// code can add keys, too.
    ///
    /// For keys of another type, see [`with_keys`](Self::with_keys).
    #[doc(alias = "NewControllerManagedBy")]
    pub fn new(queue: Workqueue<ObjectKey>) -> Self {
        Self::with_keys(queue, ObjectKey::namespace)
    }
}

impl<T: Hash + Eq + Clone + fmt::Debug + Send + Sync + 'static> ControllerRunner<T> {
    /// Returns a controller for keys of any type; otherwise the same as [`new`](Self::new).
    /// `namespace_of` returns the namespace of a key, or `None`: the namespace of its object and of
    /// the objects that belong to it. It must not block.
    ///
    /// ```
    /// use informer_controller::{ControllerRunner, Workqueue};
    ///
    /// #[derive(Debug, Clone, PartialEq, Eq, Hash)]
    /// struct Tenant {
    ///     namespace: String,
    /// }
    ///
    /// let queue = Workqueue::<Tenant>::builder().name("tenants").build();
    /// let runner = ControllerRunner::with_keys(queue, |tenant: &Tenant| Some(&tenant.namespace));
    /// # drop(runner);
    /// ```
    pub fn with_keys(
        queue: Workqueue<T>,
        namespace_of: impl Fn(&T) -> Option<&str> + Send + Sync + 'static,
    ) -> Self {
        Self {
            queue,
            workers: NonZeroUsize::MIN,
            reconcile_timeout: None,
            sync_timeout: Duration::from_secs(120),
            drain_timeout: Duration::from_secs(30),
            tracker: WriteTracker::new(),
            caches: Vec::new(),
            namespace_of: Arc::new(namespace_of),
            feeds: Vec::new(),
            monitor: RunnerMonitor::default(),
        }
    }

    /// Sets the number of keys that are reconciled at the same time. Default: 1; zero counts as
    /// one.
    #[doc(alias = "MaxConcurrentReconciles")]
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = NonZeroUsize::new(workers).unwrap_or(NonZeroUsize::MIN);
        self
    }

    /// Sets the timeout of a call. After it, the future is dropped at its await, which counts as a
    /// failure. Work that must complete belongs in a task of its own. Default: none.
    #[doc(alias = "ReconciliationTimeout")]
    pub fn reconcile_timeout(mut self, limit: Duration) -> Self {
        self.reconcile_timeout = Some(limit);
        self
    }

    /// Sets the timeout of [`run`](Self::run) for synced informers, and the time after which a
    /// warning names a namespace for which keys are parked. Default: two minutes, as in
    /// controller-runtime.
    #[doc(alias = "CacheSyncTimeout")]
    pub fn sync_timeout(mut self, limit: Duration) -> Self {
        self.sync_timeout = limit;
        self
    }

    /// Sets the time that running calls have to end at shutdown. Default: 30 seconds, as in
    /// controller-runtime.
    #[doc(alias = "GracefulShutdownTimeout")]
    pub fn drain_timeout(mut self, limit: Duration) -> Self {
        self.drain_timeout = limit;
        self
    }

    /// Sets the tracker of writes, for example a shared one or one with another deadline. Default:
    /// a new one.
    pub fn write_tracker(mut self, tracker: WriteTracker<T>) -> Self {
        self.tracker = tracker;
        self
    }

    /// Queues the keys that `keys` returns for each existing object of `informer`, and for each
    /// object that is added, updated or deleted later. No change is skipped.
    ///
    /// [`own_key`], [`controller_key`] and [`keys_in_index`] are such functions; so is any closure
    /// that returns keys. For an update, it is also called with the old object, so that a change of
    /// the owner queues both owners, in one step. For a deletion, it is called with the last known
    /// state and the one before. It runs as a handler: it must be quick and must not block. If it
    /// panics, the event is lost and the panic is logged.
    ///
    /// Existing objects and resyncs are queued with [`Priority::Low`], changes with
    /// [`Priority::Normal`]. Nothing is queued for an object that is
    /// [released](informer_core::Event::Released), because it would look deleted and is not.
    #[doc(alias = "Watches")]
    #[doc(alias = "Owns")]
    #[doc(alias = "EnqueueRequestsFromMapFunc")]
    pub fn watches<K, I>(
        mut self,
        informer: &SharedIndexInformer<K>,
        keys: impl Fn(&Cached<K>) -> I + Send + Sync + 'static,
    ) -> Self
    where
        K: Send + Sync + 'static,
        I: IntoIterator<Item = T>,
    {
        // Each change counts, because a call can have processed a state in between.
        let options =
            HandlerOptions::new().name(format!("controller {:?}", self.queue.name())).threshold(None);
        let handler = feed(self.queue.clone(), keys);
        let cache = informer.clone();
        self.feeds.push(Box::new(move || cache.add_event_handler_with(handler, &options)));
        self.caches.push(ReadCache { cache: Box::new(informer.clone()), is_watched: true });
        self
    }

    /// Adds a cache that the function reads. Workers wait until it is synced; its changes queue
    /// nothing.
    pub fn waits_for(mut self, cache: impl CacheSync + 'static) -> Self {
        self.caches.push(ReadCache { cache: Box::new(cache), is_watched: false });
        self
    }

    /// Returns a monitor of the controller, which is valid while the controller runs.
    #[must_use]
    pub fn monitor(&self) -> RunnerMonitor {
        self.monitor.clone()
    }
}

/// Adds a handler that queues keys.
type Feed = Box<dyn FnOnce() -> HandlerRegistration + Send>;

/// A handler that queues keys.
fn feed<T, K, I>(queue: Workqueue<T>, keys: impl Fn(&Cached<K>) -> I + Send + Sync + 'static) -> Handlers<K>
where
    T: Hash + Eq + Clone + Send + 'static,
    K: Send + Sync + 'static,
    I: IntoIterator<Item = T>,
{
    // In one step. Otherwise a free worker could take a key of the old state before the keys of the
    // new one are queued, and one change would lead to two calls.
    let add = Arc::new(move |states: &[&Cached<K>], priority| {
        queue.add_all(states.iter().flat_map(|state| keys(state)), priority);
    });
    let (update, delete) = (Arc::clone(&add), Arc::clone(&add));
    Handlers::new()
        .on_add(move |object, is_in_initial_list| {
            add(&[object], if is_in_initial_list { Priority::Low } else { Priority::Normal });
        })
        .on_update(move |old, new| {
            if old.ptr_eq(new) {
                return update(&[new], Priority::Low);
            }
            update(&[old, new], Priority::Normal);
        })
        .on_delete(move |deleted| {
            let (last, before) = (deleted.last_known(), deleted.previous());
            let before = before.filter(|before| last.is_none_or(|last| !last.ptr_eq(before)));
            delete(&last.into_iter().chain(before).collect::<Vec<_>>(), Priority::Normal);
        })
}

impl<T> fmt::Debug for ControllerRunner<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControllerRunner")
            .field("queue", &self.queue)
            .field("workers", &self.workers)
            .field("informers", &self.feeds.len())
            .finish_non_exhaustive()
    }
}
