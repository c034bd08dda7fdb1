//! [`Item`]: a key in the hands of a worker.
//!
//! client-go hands out bare keys and trusts the worker to call `Done`, and `Forget` or `AddRateLimited` before it. Here
//! the item itself has the ways to end, each of which takes it away. The fact that is easy to get wrong: what is
//! dropped is not done. A worker that panics, is cancelled, or returns early by `?` has not brought its key to a good
//! end, so the key comes again.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::Priority;
use crate::shared::Shared;
use crate::state::Taken;

/// A key that a worker has taken from a [`Workqueue`](crate::Workqueue). Nobody else is given the same key meanwhile.
///
/// End it by saying how the work went: [`done`](Self::done), [`done_after`](Self::done_after) or
/// [`retry`](Self::retry); or that there was none: [`release`](Self::release). **An item that is dropped is retried**, and counted as
/// [abandoned](crate::Workqueue::abandoned): so neither a panic, nor a cancelled task, nor an early return loses a key.
/// If the key has been added while the worker had it, it is queued once more when the item ends, in whatever way.
///
/// An item that is leaked (`std::mem::forget`) never ends: its key is never handed out again, and a drain never ends.
#[must_use = "an item that is dropped is retried; say how the work went"]
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

    /// Ends the item: its work is done, and earlier failures are forgotten.
    #[doc(alias = "Done")]
    #[doc(alias = "Forget")]
    pub fn done(mut self) {
        self.is_ended = true;
        self.shared.done(self.id, &self.key, None);
    }

    /// Ends the item as [`done`](Self::done) does, and adds its key again after a delay, for work that is done for now: a
    /// periodic check, or a deadline that is known.
    #[doc(alias = "RequeueAfter")]
    pub fn done_after(mut self, delay: Duration) {
        self.is_ended = true;
        self.shared.done(self.id, &self.key, Some(delay));
    }

    /// Ends the item: its work has failed, or is to be tried once more. The key is added again, with the same priority,
    /// after the time that the queue's [rate limiter](crate::RateLimiter) says; that time is returned.
    ///
    /// If the queue is shut down, the key is not added.
    #[doc(alias = "AddRateLimited")]
    pub fn retry(mut self) -> Duration {
        self.is_ended = true;
        self.shared.retry(self.id, &self.key, false)
    }

    /// Ends the item without a verdict, for work that can't be begun yet: its key is not added again, and its failures are
    /// remembered. Whoever releases a key adds it when its time has come.
    pub fn release(mut self) {
        self.is_ended = true;
        self.shared.release(self.id);
    }

    /// Returns the key.
    #[must_use]
    pub fn key(&self) -> &T {
        &self.key
    }

    /// Returns the priority that it was taken with.
    #[must_use]
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// Returns how often it has been retried since it was last done.
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
