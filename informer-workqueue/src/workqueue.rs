//! [`Workqueue`]: the handle to a queue.
//!
//! client-go has three layers: `Typed`, `TypedDelayingInterface` and `TypedRateLimitingInterface`
//! of `util/workqueue`. Here, one type has all methods, and a delayed key needs no task and no
//! timer of its own.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use crate::get::{Drain, Get};
use crate::shared::Shared;
use crate::state::Mode;
use crate::{Item, Priority, UnfinishedWork, WorkqueueBuilder};

/// A queue of keys to process. Clones are handles to the same queue.
///
/// Any number of threads and tasks can add keys, and any number of workers take them. A key is
/// queued once, however often it is added, and two workers never have the same key. Adding never
/// waits and needs no runtime, so callbacks can add keys.
///
/// Keys are hashed, compared and cloned often, so they should be cheap to clone: numbers, an `Arc`,
/// or an interned key such as informers have. `Eq` and `Clone` are called under the queue's lock,
/// and must not use the queue.
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

    /// Returns a builder.
    #[doc(alias = "NewTypedRateLimitingQueueWithConfig")]
    pub fn builder() -> WorkqueueBuilder<T> {
        WorkqueueBuilder::new()
    }

    pub(crate) fn from_shared(shared: Shared<T>) -> Self {
        Self { shared: Arc::new(shared) }
    }

    /// Adds a key, unless it is queued already. A key that a worker has is queued when the worker's
    /// item ends.
    ///
    /// After a shutdown, this and all other methods that add keys do nothing.
    pub fn add(&self, key: T) {
        self.shared.add(key, Priority::Normal);
    }

    /// As [`add`](Self::add), with a priority. A key that is queued with a lower priority moves to
    /// the end of the higher lane.
    pub fn add_with_priority(&self, key: T, priority: Priority) {
        self.shared.add(key, priority);
    }

    /// Adds several keys in one step, with one priority: no worker can take the first before the
    /// last is queued. A key that occurs twice is added once.
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

    /// Adds a key after a delay; at once if the delay is zero. If the key is delayed already, the
    /// earlier time counts.
    ///
    /// A delayed key can be added, taken and processed during the delay, and is still added
    /// afterwards. A shutdown drops delayed keys.
    pub fn add_after(&self, key: T, delay: Duration) {
        self.shared.add_after(key, delay, Priority::Normal);
    }

    /// As [`add_after`](Self::add_after), with a priority.
    pub fn add_after_with_priority(&self, key: T, delay: Duration, priority: Priority) {
        self.shared.add_after(key, delay, priority);
    }

    /// Adds a key after the time that the rate limiter returns, and returns that time. For failed
    /// work, use [`Item::retry`], which also ends the item.
    pub fn add_rate_limited(&self, key: T) -> Duration {
        let delay = self.shared.limiter.when(&key);
        self.shared.add_after(key, delay, Priority::Normal);
        delay
    }

    /// Resets the failures of a key in the rate limiter. [`Item::done`] does so, too.
    pub fn forget(&self, key: &T) {
        self.shared.limiter.forget(key);
    }

    /// Returns the number of failures of a key since they were last reset.
    #[must_use]
    pub fn num_requeues(&self, key: &T) -> u32 {
        self.shared.limiter.num_requeues(key)
    }

    /// Waits for an item; `None` once the queue is shut down and empty.
    ///
    /// This needs a tokio runtime with time enabled if keys are delayed or retried. It takes part
    /// in tokio's cooperative scheduling: a task that takes many items yields to other tasks.
    ///
    /// # Panics
    /// If it has to wait for a delayed key outside of such a runtime.
    ///
    /// # Cancel safety
    /// Dropping the future loses no key. Do not keep a polled future without polling it again or
    /// dropping it: a wake-up of the queue can go to this future alone.
    pub async fn get(&self) -> Option<Item<T>> {
        Get::new(&self.shared).await
    }

    /// Returns the number of queued keys. Keys of workers and delayed keys do not count.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.len()
    }

    /// Returns whether no key is queued.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of delayed keys.
    #[must_use]
    pub fn delayed(&self) -> usize {
        self.shared.delayed()
    }

    /// Stops accepting keys, and drops delayed keys. Queued keys can still be taken; then every
    /// `get` returns `None`. Waits in [`shut_down_with_drain`](Self::shut_down_with_drain) end.
    pub fn shut_down(&self) {
        self.shared.shut_down(Mode::Down);
    }

    /// Stops accepting keys, drops delayed keys, and waits until workers have ended all items,
    /// including keys that are queued again. Workers must continue until `get` returns `None`.
    ///
    /// Returns `true` after a complete drain, and `false` if [`shut_down`](Self::shut_down) ends
    /// the wait. During the drain, a [retried](Item::retry) item ends and is not added again.
    ///
    /// # Cancel safety
    /// The first poll shuts the queue down. Dropping the future afterwards only ends the wait.
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

    /// Returns the number of items that workers dropped without finishing them: the worker
    /// panicked, was cancelled, or returned early.
    #[must_use]
    pub fn abandoned(&self) -> u64 {
        self.shared.abandoned()
    }

    /// Returns how many items workers hold, and for how long; `None` without
    /// [metrics](WorkqueueBuilder::metrics), because then the clock is not read.
    #[must_use]
    pub fn unfinished_work(&self) -> Option<UnfinishedWork> {
        self.shared.unfinished()
    }

    pub(crate) fn shared(&self) -> &Arc<Shared<T>> {
        &self.shared
    }

    /// Returns the name; empty if none was set.
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
