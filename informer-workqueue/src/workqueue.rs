//! [`Workqueue`]: a handle to a work queue.
//!
//! client-go has three layers: `Typed`, `TypedDelayingInterface` and `TypedRateLimitingInterface`
//! of `util/workqueue`. Here, one type has all methods, and a delayed key needs neither its own
//! task nor its own timer.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use crate::get::{Drain, Get};
use crate::shared::Shared;
use crate::state::Mode;
use crate::{Item, Priority, UnfinishedWork, WorkqueueBuilder};

/// A queue of keys that workers process. A clone is another handle to the same queue.
///
/// Any number of threads and tasks can add keys, and any number of workers can take keys. A key is
/// queued once, however often it is added, and two workers never have the same key at the same
/// time. Adding a key never waits and needs no runtime, so callbacks can add keys.
///
/// Keys are hashed, compared and cloned often, so they should be cheap to clone: numbers, an `Arc`,
/// or the `ObjectKey`s of informers. `Eq` and `Clone` are called under the queue's lock, and must
/// not use the queue.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// use informer_workqueue::Workqueue;
///
/// let queue = Workqueue::new();
/// queue.add("shop/apple");
/// queue.add("shop/pear");
/// queue.add("shop/apple"); // No effect: the key is already queued.
///
/// let worker = tokio::spawn({
///     let queue = queue.clone();
///     async move {
///         let mut done = Vec::new();
///         while let Some(item) = queue.get().await {
///             done.push(*item.key());
///             item.done();
///         }
///         done
///     }
/// });
/// queue.shut_down_with_drain().await;
/// assert_eq!(worker.await?, ["shop/apple", "shop/pear"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "TypedInterface")]
#[doc(alias = "TypedDelayingInterface")]
#[doc(alias = "TypedRateLimitingInterface")]
pub struct Workqueue<T> {
    shared: Arc<Shared<T>>,
}

impl<T: Hash + Eq + Clone + Send + 'static> Workqueue<T> {
    /// Returns an empty queue with the
    /// [default rate limiter](crate::default_controller_rate_limiter), without a name, metrics or
    /// groups.
    #[must_use]
    #[doc(alias = "NewTypedRateLimitingQueue")]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Returns a builder, with which to configure a queue.
    #[doc(alias = "NewTypedRateLimitingQueueWithConfig")]
    pub fn builder() -> WorkqueueBuilder<T> {
        WorkqueueBuilder::new()
    }

    pub(crate) fn from_shared(shared: Shared<T>) -> Self {
        Self { shared: Arc::new(shared) }
    }

    /// Adds a key with [`Priority::Normal`], unless it is queued already with at least this
    /// priority. If a worker has taken the key as an [`Item`], the key is queued when the item
    /// ends.
    ///
    /// After a shutdown, neither this method nor any other method adds keys.
    pub fn add(&self, key: T) {
        self.shared.add(key, Priority::Normal);
    }

    /// Adds a key with a priority, unless it is queued already with at least this priority. If the
    /// key is queued with a lower priority, it moves to the end of the keys with `priority` (of its
    /// group, if the queue has groups). If a worker has taken the key as an [`Item`], the key is
    /// queued when the item ends.
    pub fn add_with_priority(&self, key: T, priority: Priority) {
        self.shared.add(key, priority);
    }

    /// Adds several keys in one step, with the same priority: no worker can take the first key
    /// before the last key is added. A key that occurs twice is added once.
    ///
    /// ```
    /// use informer_workqueue::{Priority, Workqueue};
    ///
    /// let queue = Workqueue::new();
    /// queue.add_all(["owner before", "owner after"], Priority::Normal);
    /// assert_eq!(queue.len(), 2);
    /// ```
    pub fn add_all(&self, keys: impl IntoIterator<Item = T>, priority: Priority) {
        self.shared.add_all(keys.into_iter(), priority);
    }

    /// Adds a key after a delay. If the key is delayed already, the earlier time applies. If the
    /// new delay is zero, adds the key at once, and does not change the earlier delay.
    ///
    /// A delayed key can be added and processed before its delay is over. It is still added once
    /// more when the delay is over. A shutdown drops delayed keys.
    pub fn add_after(&self, key: T, delay: Duration) {
        self.shared.add_after(key, delay, Priority::Normal);
    }

    /// Adds a key with a priority after a delay. If the key is delayed already, the earlier time
    /// and the higher priority apply. If the new delay is zero, adds the key at once, and does not
    /// change the earlier delay.
    pub fn add_after_with_priority(&self, key: T, delay: Duration, priority: Priority) {
        self.shared.add_after(key, delay, priority);
    }

    /// Counts a failure of a key in the rate limiter, and adds the key after the delay that the
    /// rate limiter returns, at most thirty years. Returns the delay. For failed items, use
    /// [`Item::retry`], which also ends the item.
    pub fn add_rate_limited(&self, key: T) -> Duration {
        let delay = self.shared.count_failure(&key);
        self.shared.add_after(key, delay, Priority::Normal);
        delay
    }

    /// Resets the failures of a key in the rate limiter. [`Item::done`] does this, too.
    pub fn forget(&self, key: &T) {
        self.shared.limiter.forget(key);
    }

    /// Returns the number of failures that the rate limiter stores for a key.
    #[must_use]
    pub fn num_requeues(&self, key: &T) -> u32 {
        self.shared.limiter.num_requeues(key)
    }

    /// Waits for a queued key and returns it as an [`Item`]. Returns `None` if the queue is shut
    /// down and no key is queued. During a drain, also waits for keys that will be queued when
    /// their items end.
    ///
    /// If keys are delayed or retried, this method needs a tokio runtime with time enabled. It
    /// takes part in tokio's cooperative scheduling: a task that takes many items yields to other
    /// tasks.
    ///
    /// # Panics
    /// Panics if the method has to set the timer for a delayed key outside of a tokio runtime with
    /// time enabled.
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future loses no key. Do not keep the future without polling it:
    /// the queue can wake it for an added key instead of a waiting worker, and the key then stays
    /// queued.
    pub async fn get(&self) -> Option<Item<T>> {
        Get::new(&self.shared).await
    }

    /// Returns the number of queued keys. Keys that workers have do not count, nor do keys that are
    /// only delayed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.len()
    }

    /// Returns whether no key is queued, that is, whether [`len`](Self::len) is 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of delayed keys: keys that were added with a delay that is not over.
    #[must_use]
    pub fn delayed(&self) -> usize {
        self.shared.delayed()
    }

    /// Stops accepting keys, and drops delayed keys. Workers can still take queued keys. While no
    /// key is queued, every `get` returns `None`.
    ///
    /// Each waiting call of [`shut_down_with_drain`](Self::shut_down_with_drain) returns at once,
    /// even if keys are still queued or workers still have items.
    pub fn shut_down(&self) {
        self.shared.shut_down(Mode::Down);
    }

    /// Stops accepting keys, drops delayed keys, and waits until no key is queued and workers have
    /// ended all items. Workers must continue to take items until `get` returns `None`.
    ///
    /// The drain includes keys that were added earlier, while a worker had an [`Item`] with the
    /// same key: they are queued when the item ends. After the shutdown, a [retry](Item::retry)
    /// only ends the item, and does not add the key again.
    ///
    /// Returns `true` after a complete drain, and `false` if [`shut_down`](Self::shut_down) ends
    /// the wait.
    ///
    /// # Cancel safety
    /// The first poll shuts the queue down. Dropping the future after that only ends the wait.
    pub async fn shut_down_with_drain(&self) -> bool {
        self.shared.shut_down(Mode::Draining);
        Drain::new(&self.shared).await
    }

    /// Returns whether the queue is shut down, with or without a drain.
    #[must_use]
    #[doc(alias = "ShuttingDown")]
    pub fn is_shut_down(&self) -> bool {
        !self.shared.is_open()
    }

    /// Returns the number of items that workers dropped without ending them, because the worker
    /// panicked, was cancelled, or returned early. Also counts items for which the [rate
    /// limiter](crate::RateLimiter) panicked when they were ended; their keys are retried after one
    /// second.
    #[must_use]
    pub fn abandoned(&self) -> u64 {
        self.shared.abandoned()
    }

    /// Returns the number of items that workers have, the sum of their ages and the age of the
    /// oldest item. The age is the time since a worker took the item. Returns `None` if the queue
    /// has no [metrics](WorkqueueBuilder::metrics), because it then records no times.
    #[must_use]
    pub fn unfinished_work(&self) -> Option<UnfinishedWork> {
        self.shared.unfinished()
    }

    /// Returns a function that returns the number of queued keys and the [unfinished
    /// work](Self::unfinished_work), or `None` once the queue has been dropped. Metrics use the
    /// returned function, because it does not keep the queue in memory.
    pub fn observer(&self) -> impl Fn() -> Option<(usize, Option<UnfinishedWork>)> + Send + Sync + use<T> {
        let shared = Arc::downgrade(&self.shared);
        move || {
            let shared = shared.upgrade()?;
            Some((shared.len(), shared.unfinished()))
        }
    }

    /// Returns the name of the queue; empty if no name was set.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Advances the clock of a loom model.
    #[cfg(informer_loom)]
    #[doc(hidden)]
    pub fn advance(&self, by: Duration) {
        self.shared.clock.advance(by);
    }
}

impl<T> Clone for Workqueue<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<T: Hash + Eq + Clone + Send + 'static> Default for Workqueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for Workqueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.fmt(f)
    }
}
