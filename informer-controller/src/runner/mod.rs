//! [`ControllerRunner`]: runs workers that reconcile keys.
//!
//! controller-runtime: `Controller` of `pkg/internal/controller`; in client-go, every controller
//! implements its own workers. (client-go's `Controller` corresponds to
//! [`CacheController`](informer_factory::cache_controller::CacheController).)
//!
//! Note: the reconcile function is called with a key and not with a change. The function reads the
//! current state from the stores, so it does not matter if several changes lead to one call.

mod key_log;
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

pub use key_log::{FailedKey, ParkedKey};
pub use keys::{controller_key, keys_in_index, own_key};
pub use request::{ReconcileRequest, Reconciled};
pub use stats::{RunnerMonitor, RunnerStats};

/// Runs a controller: informers feed a queue with keys, and workers call an async function with
/// each key.
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
/// - Two workers never process the same key at once. After the last change that queues a key, the
///   key is reconciled at least once more.
/// - Workers start when all informers are synced.
/// - A key is parked until each informer that watches the key's namespace has listed it: the key
///   waits without occupying a worker. (A synced informer can lack a namespace that the server
///   refuses, or that was [added](SharedIndexInformer::add_namespace) later.) If the key waits
///   longer than the [sync timeout](Self::sync_timeout) for one informer, a warning names the
///   namespace. If the informer stops before it has listed the namespace, the key is dropped.
/// - A key is dropped without a call if its namespace was
///   [removed](SharedIndexInformer::remove_namespace) from an informer that queues keys, and no
///   other such informer watches the namespace: a call would treat its object as deleted. While
///   another one watches the namespace, the key is parked, or dropped if the first informer has
///   stopped. (An informer that was created for one namespace or for all has no list of its
///   namespaces. So it counts as watching a namespace only while its store has an object of this
///   namespace.) If the namespace is removed during a call,
///   [`ReconcileRequest::is_namespace_watched`] returns `false`.
/// - A failure, a panic or a timeout affects only its key. The queue's rate limiter sets the time
///   of the retry.
/// - A key [with pending writes](ReconcileRequest::writes) is parked until the caches have the
///   writes or the deadline of the writes is over.
/// - Objects that existed at the start, and resyncs, have a low priority; changes overtake them.
///
/// Nothing is queued before [`run`](Self::run). So a standby can create the controller at once and
/// run it after its election, when its informers are already synced. As after a restart, the
/// controller does not receive deletions that happened before `run`.
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
    feeds: Vec<Feed>,
    monitor: RunnerMonitor,
}

impl ControllerRunner<ObjectKey> {
    /// Returns a controller with one worker and this queue. The controller uses the queue's name,
    /// rate limiter, fairness groups and metrics. Other code can add keys to the queue, too.
    ///
    /// For keys of another type, see [`with_keys`](Self::with_keys).
    #[doc(alias = "NewControllerManagedBy")]
    pub fn new(queue: Workqueue<ObjectKey>) -> Self {
        Self::with_keys(queue, ObjectKey::namespace)
    }
}

impl<T: Hash + Eq + Clone + fmt::Debug + Send + Sync + 'static> ControllerRunner<T> {
    /// Returns a controller with one worker and this queue, for keys of any type. `namespace_of`
    /// returns the namespace of the key's object and of that object's dependents, or `None` for a
    /// key without a namespace. `namespace_of` must not block.
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
            monitor: RunnerMonitor::of(&queue),
            queue,
            workers: NonZeroUsize::MIN,
            reconcile_timeout: None,
            sync_timeout: Duration::from_secs(120),
            drain_timeout: Duration::from_secs(30),
            tracker: WriteTracker::new(),
            caches: Vec::new(),
            namespace_of: Box::new(namespace_of),
            feeds: Vec::new(),
        }
    }

    /// Sets the number of keys that are reconciled at the same time. Default: 1; zero counts as
    /// one.
    #[doc(alias = "MaxConcurrentReconciles")]
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = NonZeroUsize::new(workers).unwrap_or(NonZeroUsize::MIN);
        self
    }

    /// Sets the timeout of one reconcile call. When the timeout is over, the call's future is
    /// dropped at the await where it waits, and the call counts as failed. So run work that must
    /// not be interrupted in a separate task. Default: no timeout.
    #[doc(alias = "ReconciliationTimeout")]
    pub fn reconcile_timeout(mut self, limit: Duration) -> Self {
        self.reconcile_timeout = Some(limit);
        self
    }

    /// Sets how long [`run`](Self::run) waits until all informers are synced. If they are not
    /// synced by then, `run` returns an error. Default: two minutes, as in controller-runtime.
    ///
    /// Later, a warning is logged if a key waits longer than this (at least one second) for a cache
    /// that has not listed the key's namespace, or no longer watches it. The key continues to wait.
    #[doc(alias = "CacheSyncTimeout")]
    pub fn sync_timeout(mut self, limit: Duration) -> Self {
        self.sync_timeout = limit;
        self
    }

    /// Sets the time limit for reconcile calls that still run at shutdown. When the limit is over,
    /// these calls are dropped. Default: 30 seconds, as in controller-runtime.
    #[doc(alias = "GracefulShutdownTimeout")]
    pub fn drain_timeout(mut self, limit: Duration) -> Self {
        self.drain_timeout = limit;
        self
    }

    /// Sets the tracker that records the controller's writes. Default: a new tracker. Set a tracker
    /// to use another [deadline](WriteTracker::with_deadline) for writes that do not arrive in the
    /// caches, or to share the tracker with other code.
    pub fn write_tracker(mut self, tracker: WriteTracker<T>) -> Self {
        self.tracker = tracker;
        self
    }

    /// Queues the keys that `keys` returns for each existing object of `informer`, and for each
    /// object that is added, updated or deleted later. No change that the informer receives is
    /// skipped, unless the informer cannot decode or transform the object.
    ///
    /// `keys` is [`own_key`], [`controller_key`], [`keys_in_index`] or any closure that returns
    /// keys. For an update, `keys` is called with the old and with the new object, so that a change
    /// of the owner queues both owners. For a deletion, `keys` is called with the last state before
    /// the deletion, and with the state in the deletion event if the two differ.
    ///
    /// `keys` runs in a handler, so `keys` must be quick and must not block. If `keys` panics, the
    /// event is lost and the panic is logged.
    ///
    /// Existing objects and resyncs are queued with [`Priority::Low`], changes with
    /// [`Priority::Normal`]. A [released](informer_core::Event::Released) object, which left the
    /// store because its namespace is no longer watched, queues no key: the reconcile function
    /// would treat the object as deleted.
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
        // Without a threshold, events are not coalesced. Coalescing would drop intermediate states.
        // A reconcile call can have read such a state, so the keys of each state must be queued.
        let options =
            HandlerOptions::new().name(format!("controller {:?}", self.queue.name())).threshold(None);
        let handler = feed(self.queue.clone(), keys);
        let cache = informer.clone();
        self.feeds.push(Box::new(move || cache.add_event_handler_with(handler, &options)));
        self.caches.push(ReadCache { cache: Box::new(informer.clone()), is_trigger: true });
        self
    }

    /// Adds a cache that the reconcile function reads. Workers wait until the cache is synced. Its
    /// changes queue no keys.
    pub fn waits_for(mut self, cache: impl CacheSync + 'static) -> Self {
        self.caches.push(ReadCache { cache: Box::new(cache), is_trigger: false });
        self
    }

    /// Returns access to the statistics of the controller. Call this method before
    /// [`run`](Self::run), which consumes the controller.
    #[must_use]
    pub fn monitor(&self) -> RunnerMonitor {
        self.monitor.clone()
    }
}

/// A function that adds a handler to an informer. The handler queues the keys of changed objects.
type Feed = Box<dyn FnOnce() -> HandlerRegistration + Send>;

fn feed<T, K, I>(queue: Workqueue<T>, keys: impl Fn(&Cached<K>) -> I + Send + Sync + 'static) -> Handlers<K>
where
    T: Hash + Eq + Clone + Send + 'static,
    K: Send + Sync + 'static,
    I: IntoIterator<Item = T>,
{
    // All keys are added in one step. Otherwise a free worker could take a key of the old state
    // before the keys of the new state are queued, and one change would lead to two calls.
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
