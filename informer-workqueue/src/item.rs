//! [`Item`]: a key that a worker has taken.
//!
//! In client-go, a worker gets a key, and must call `Forget` or `AddRateLimited` and then `Done`.
//! Here, a worker gets an item, and a method that consumes the item ends it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::Priority;
use crate::shared::Shared;
use crate::state::Taken;

/// A key that a worker has taken from a [`Workqueue`](crate::Workqueue). No other worker gets the
/// same key until the item ends.
///
/// End an item with [`done`](Self::done), [`done_after`](Self::done_after) or
/// [`retry`](Self::retry), or with [`release`](Self::release) if it was not processed. Unless the
/// queue is shut down, **a dropped item is retried**, so a panic, a cancelled task or an early
/// return loses no key. Dropped items are counted as [abandoned](crate::Workqueue::abandoned). If
/// the key was added while the worker had the item, the key is queued again when the item ends.
///
/// An item that is leaked with `std::mem::forget` never ends: no worker gets its key again, and a
/// drain never completes.
#[must_use = "a dropped item is retried; end it with `done`, `done_after`, `retry` or `release`"]
pub struct Item<T> {
    shared: Arc<Shared<T>>,
    key: T,
    id: u32,
    priority: Priority,
    is_ended: bool,
}

impl<T> Item<T> {
    pub(crate) fn new(shared: Arc<Shared<T>>, taken: Taken<T>) -> Self {
        let Taken { id, key, priority, .. } = taken;
        Self { shared, key, id, priority, is_ended: false }
    }

    /// Ends the item as processed, and resets the failures of its key.
    #[doc(alias = "Done")]
    #[doc(alias = "Forget")]
    pub fn done(mut self) {
        self.is_ended = true;
        self.shared.done(self.id, &self.key, None);
    }

    /// Ends the item as processed, resets the failures of its key, and adds the key again after a
    /// delay of at most thirty years. If the key is delayed already, the earlier time applies. Use
    /// this for periodic checks and known deadlines.
    ///
    /// If the queue is shut down, the key is not added.
    #[doc(alias = "RequeueAfter")]
    pub fn done_after(mut self, delay: Duration) {
        self.is_ended = true;
        self.shared.done(self.id, &self.key, Some(delay));
    }

    /// Ends the item as failed. Adds the key again, with the same priority, after the wait that the
    /// queue's [rate limiter](crate::RateLimiter) returns, at most thirty years. Returns the wait.
    /// If the key is delayed already, the earlier time and the higher priority apply.
    ///
    /// If the queue is shut down, the key is not added.
    #[doc(alias = "AddRateLimited")]
    pub fn retry(mut self) -> Duration {
        self.is_ended = true;
        self.shared.retry(self.id, &self.key, false)
    }

    /// Ends the item, because its key cannot be processed yet. Neither counts a failure nor resets
    /// the failures of the key. Queues the key again only if the key was added while the worker had
    /// the item. Otherwise, the caller must add the key later.
    pub fn release(mut self) {
        self.is_ended = true;
        self.shared.release(self.id);
    }

    /// Returns the key.
    #[must_use]
    pub fn key(&self) -> &T {
        &self.key
    }

    /// Returns the priority that the key had when the item was taken.
    #[must_use]
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// Returns the number of failures of the key since the last reset, as the rate limiter counts
    /// them. [`done`](Self::done) resets the failures.
    #[must_use]
    #[doc(alias = "NumRequeues")]
    pub fn num_requeues(&self) -> u32 {
        self.shared.limiter.num_requeues(&self.key)
    }
}

impl<T> Drop for Item<T> {
    fn drop(&mut self) {
        if !self.is_ended {
            self.shared.retry(self.id, &self.key, true);
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Item<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Item")
            .field("key", &self.key)
            .field("priority", &self.priority)
            .finish_non_exhaustive()
    }
}
