//! [`ControllerRunner`]: workers that bring the world, key by key, to where it should be.
//!
//! Informers tell what has changed, a [`Workqueue`] keeps the keys concerned, and the workers here call one function with
//! each. controller-runtime: `Controller` of `pkg/internal/controller`; in client-go every controller writes this loop
//! itself. (client-go's `Controller` is another thing, that of [`CacheController`](informer_factory::cache_controller::CacheController).)
//!
//! What people get wrong: the function is told of a key, not of a change. It reads what is true now from the stores, and
//! finds out by itself what there is to do; so a change that it wasn't called for makes no difference.

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

/// Runs a controller: informers feed a queue with keys, and workers call an async function with each.
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
/// # What it promises
///
/// - A key is never with two workers, and is looked at after the last change that concerns it.
/// - Workers begin when all informers are synced. A key that names a namespace waits also for those that have
///   [begun to follow it](SharedIndexInformer::add_namespace) later, or are refused there, until they have listed it. A
///   warning names a namespace that takes longer than the [sync timeout](Self::sync_timeout).
/// - A key whose namespace was [removed](SharedIndexInformer::remove_namespace) from the watched informers is dropped without
///   a call: its object would look deleted. While only some of them have removed the namespace, the key is parked.
///   [`ReconcileRequest::is_followed`] has the same for a call that is under way.
/// - A failure, a panic and a timeout are each of one key, which comes again when the queue's rate limiter says so.
/// - A key [for which something was written](ReconcileRequest::writes) is parked, and not with a worker, until the caches
///   have that write or its deadline is over.
/// - What existed at the start, and resyncs, come with a low priority, which changes overtake.
///
/// Nothing is queued before [`run`](Self::run), so that the controller of a standby can be made at once and run when it is
/// elected: its informers are synced by then, and what there is in them is what it begins with. Of what was deleted
/// before it hears nothing, as after a restart.
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
    /// What adds the handlers that feed the queue.
    feeds: Vec<Feed>,
    monitor: RunnerMonitor,
}

impl ControllerRunner<ObjectKey> {
    /// Returns a controller with one worker that works from `queue`, whose name is the controller's, too. The queue has
    /// the rate limiter, the groups that take turns and the metrics; anybody can add keys to it.
    ///
    /// For keys of another type, see [`with_keys`](Self::with_keys).
    #[doc(alias = "NewControllerManagedBy")]
    pub fn new(queue: Workqueue<ObjectKey>) -> Self {
        Self::with_keys(queue, ObjectKey::namespace)
    }
}

impl<T: Hash + Eq + Clone + fmt::Debug + Send + Sync + 'static> ControllerRunner<T> {
    /// Returns a controller as [`new`](Self::new) does, for keys of any type. `namespace_of` returns the namespace that a
    /// key names: the one in which its object, and what belongs to it, is looked up. It returns `None` for a key that names
    /// none, and must not block.
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

    /// Sets how many keys are worked on at the same time. Default: 1; zero counts as one.
    #[doc(alias = "MaxConcurrentReconciles")]
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = NonZeroUsize::new(workers).unwrap_or(NonZeroUsize::MIN);
        self
    }

    /// Sets how long one call may take. Then its future is dropped where it waits, which counts as a failure: what must
    /// not be left half done belongs into a task of its own. Default: any time.
    #[doc(alias = "ReconciliationTimeout")]
    pub fn reconcile_timeout(mut self, limit: Duration) -> Self {
        self.reconcile_timeout = Some(limit);
        self
    }

    /// Sets how long [`run`](Self::run) waits for informers to be synced, and how long keys are parked for a namespace that a
    /// cache does not list until a warning names it. Default: two minutes, as in controller-runtime.
    #[doc(alias = "CacheSyncTimeout")]
    pub fn sync_timeout(mut self, limit: Duration) -> Self {
        self.sync_timeout = limit;
        self
    }

    /// Sets how long calls that are under way at shutdown may take to end. Default: 30 seconds, as in controller-runtime.
    #[doc(alias = "GracefulShutdownTimeout")]
    pub fn drain_timeout(mut self, limit: Duration) -> Self {
        self.drain_timeout = limit;
        self
    }

    /// Sets the tracker of its writes: one that others use, too, or that has another deadline. Default: one of its own.
    pub fn write_tracker(mut self, tracker: WriteTracker<T>) -> Self {
        self.tracker = tracker;
        self
    }

    /// Queues the keys that `keys` gives for each object of `informer` that exists when the controller is run, and for each
    /// that is added, changes or is deleted from then on. No change is passed over, however many come at once.
    ///
    /// [`own_key`], [`controller_key`] and [`keys_in_index`] are such functions, and any closure that returns keys is one.
    /// At an update the function is called with the state before, too, so that an object that has changed hands brings
    /// both to the queue, in one step; at a deletion with the last known state and the one told before. It runs as a handler does: it
    /// must be quick and must not block, and where it panics, that event is lost and the panic is logged.
    ///
    /// Objects that exist already, and resyncs, are queued with [`Priority::Low`], all else with [`Priority::Normal`].
    /// Nothing is queued for an object that is [released](informer_core::Event::Released), because its namespace is not
    /// followed any more: from the store it would look deleted, and it is not.
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
        // Each change counts, not only the last: what was there for a moment may have been counted by a call meanwhile.
        let options =
            HandlerOptions::new().name(format!("controller {:?}", self.queue.name())).threshold(None);
        let handler = feed(self.queue.clone(), keys);
        let cache = informer.clone();
        self.feeds.push(Box::new(move || cache.add_event_handler_with(handler, &options)));
        self.caches.push(ReadCache { cache: Box::new(informer.clone()), is_watched: true });
        self
    }

    /// Has workers wait for one more cache to be synced, which the function reads and nothing is queued for.
    pub fn waits_for(mut self, cache: impl CacheSync + 'static) -> Self {
        self.caches.push(ReadCache { cache: Box::new(cache), is_watched: false });
        self
    }

    /// Returns what tells how it fares, also while it runs.
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
    // In one step, so that a free worker does not take a key of the old state before the keys of the new one are queued: one
    // change would lead to two calls.
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
