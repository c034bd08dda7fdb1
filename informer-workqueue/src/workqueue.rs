//! [`Workqueue`]: the handle on a queue, for those who add keys and for workers.
//!
//! client-go: `Typed`, `TypedDelayingInterface` and `TypedRateLimitingInterface` of `util/workqueue`, which are three
//! layers there and one queue here. A key that waits for its delay costs no task and no timer of its own.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use crate::get::{Drain, Get};
use crate::shared::Shared;
use crate::state::Mode;
use crate::{Item, Priority, UnfinishedWork, WorkqueueBuilder};

/// A queue of keys to be worked on. Cloning gives another handle on the same queue.
///
/// Any number of threads and tasks can add keys, and any number of workers take them. A key is queued once, however often
/// it is added, and is never with two workers. Adding never waits and needs no runtime, so a callback can do it.
///
/// Keys are hashed, compared and cloned often, so they should be cheap to clone: numbers, an `Arc`, or an interned key
/// such as informers have. `Eq` and `Clone` are called under the queue's lock, and must not use the queue.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// use informer_workqueue::Workqueue;
///
/// let queue = Workqueue::new();
/// queue.add("shop/apple");
/// queue.add("shop/pear");
/// queue.add("shop/apple"); // Is queued already.
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
    /// Returns an empty queue with the [default rate limiter](crate::default_controller_rate_limiter), without a name,
    /// metrics or groups.
    #[must_use]
    #[doc(alias = "NewTypedRateLimitingQueue")]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Returns a builder, for a queue with more than that.
    #[doc(alias = "NewTypedRateLimitingQueueWithConfig")]
    pub fn builder() -> WorkqueueBuilder<T> {
        WorkqueueBuilder::new()
    }

    pub(crate) fn from_shared(shared: Shared<T>) -> Self {
        Self { shared: Arc::new(shared) }
    }

    /// Adds a key, unless it is queued already. If a worker has it, it is queued when that worker's item ends.
    ///
    /// Does nothing once the queue is shut down, as all other ways of adding.
    pub fn add(&self, key: T) {
        self.shared.add(key, Priority::Normal);
    }

    /// As [`add`](Self::add), with a priority. A key that is queued with a lower one moves up, to the end of its new lane.
    pub fn add_with_priority(&self, key: T, priority: Priority) {
        self.shared.add(key, priority);
    }

    /// Adds several keys in one step, with one priority: no worker can take the first of them before the last is there. A key
    /// that is among them twice is added once.
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

    /// Adds a key after a delay; at once if that is zero. A key that is delayed already comes at the earlier time.
    ///
    /// A delayed key can be added, taken and worked on meanwhile; when its time comes, it is added all the same. Delays
    /// that are not over when the queue is shut down are forgotten.
    pub fn add_after(&self, key: T, delay: Duration) {
        self.shared.add_after(key, delay, Priority::Normal);
    }

    /// As [`add_after`](Self::add_after), with a priority.
    pub fn add_after_with_priority(&self, key: T, delay: Duration, priority: Priority) {
        self.shared.add_after(key, delay, priority);
    }

    /// Adds a key after the time that the rate limiter says, and returns that time. A worker that has failed rather calls
    /// [`Item::retry`], which also ends the item.
    pub fn add_rate_limited(&self, key: T) -> Duration {
        let delay = self.shared.limiter.when(&key);
        self.shared.add_after(key, delay, Priority::Normal);
        delay
    }

    /// Lets the rate limiter forget the failures of a key. [`Item::done`] does so, too.
    pub fn forget(&self, key: &T) {
        self.shared.limiter.forget(key);
    }

    /// Returns how often a key has been rate limited since it was last forgotten.
    #[must_use]
    pub fn num_requeues(&self, key: &T) -> u32 {
        self.shared.limiter.num_requeues(key)
    }

    /// Takes an item, waiting until there is one. `None`: the queue is shut down, and nothing is left.
    ///
    /// Needs a tokio runtime with time enabled, if anything is ever added with a delay; keys that are retried are. Takes
    /// part in tokio's cooperative scheduling: a task that takes item after item lets others have their turn.
    ///
    /// # Panics
    /// If it has to wait for a delayed key outside of such a runtime.
    ///
    /// # Cancel safety
    /// No key is lost if the future is dropped: either it has taken none, or the caller has the item. A future that has
    /// been polled and then is neither polled nor dropped holds up others, since it may be the one that is woken.
    pub async fn get(&self) -> Option<Item<T>> {
        Get::new(&self.shared).await
    }

    /// Returns how many keys wait for a worker: without those that a worker has, and without those that are delayed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.len()
    }

    /// Returns whether no key waits for a worker.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how many keys are delayed.
    #[must_use]
    pub fn delayed(&self) -> usize {
        self.shared.delayed()
    }

    /// Takes nothing in any more, and forgets what is delayed. What is queued can still be taken; then every `get`
    /// returns `None`. Whoever waits in [`shut_down_with_drain`](Self::shut_down_with_drain) waits no longer.
    pub fn shut_down(&self) {
        self.shared.shut_down(Mode::Down);
    }

    /// Takes nothing in any more, forgets what is delayed, and waits until workers have ended all that is queued, and
    /// all that they have, also where it has to be queued once more. Workers must go on until `get` returns `None`.
    ///
    /// Returns `true` then, and `false` if somebody calls [`shut_down`](Self::shut_down) before. An item that is
    /// [retried](Item::retry) now has ended, and does not come again.
    ///
    /// # Cancel safety
    /// The queue is shut down by the first poll; if the future is dropped after that, only the waiting ends.
    pub async fn shut_down_with_drain(&self) -> bool {
        self.shared.shut_down(Mode::Draining);
        Drain::new(&self.shared).await
    }

    /// Returns whether the queue is shut down, in either way.
    #[must_use]
    #[doc(alias = "ShuttingDown")]
    pub fn is_shut_down(&self) -> bool {
        !self.shared.is_open()
    }

    /// Returns how many items were dropped instead of ended: their workers panicked, were cancelled, or returned early.
    #[must_use]
    pub fn abandoned(&self) -> u64 {
        self.shared.abandoned()
    }

    /// Returns what workers have in hand, and for how long. `None` without [metrics](WorkqueueBuilder::metrics), because
    /// then no times are taken.
    #[must_use]
    pub fn unfinished_work(&self) -> Option<UnfinishedWork> {
        self.shared.unfinished()
    }

    pub(crate) fn shared(&self) -> &Arc<Shared<T>> {
        &self.shared
    }

    /// Returns its name; empty unless it was given one.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Moves a model's clock on.
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
