//! [`RateLimiter`]: when a key that has failed is tried again; and client-go's limiters.
//!
//! client-go: `util/workqueue/default_rate_limiters.go`. Limiters that count failures per key keep a key until it is
//! forgotten. client-go keeps it for ever where a worker leaves that out; here `Item::done` doesn't, and what has not
//! failed for long is forgotten by itself.

mod bucket;
mod combined;
mod exponential;
mod failures;
mod fast_slow;

use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

pub use bucket::Bucket;
pub use combined::{MaxOf, WithMaxWait};
pub use exponential::ItemExponential;
pub use fast_slow::ItemFastSlow;

/// Says how long a key that has failed has to wait.
///
/// Called from several threads at once, never under a queue's lock. It must not panic: items ask it while their worker's
/// panic unwinds, too, and a second panic then ends the program.
#[doc(alias = "TypedRateLimiter")]
pub trait RateLimiter<T>: Send + Sync {
    /// Counts a failure of this key, and returns how long it has to wait.
    fn when(&self, key: &T) -> Duration;

    /// Forgets the failures of this key.
    fn forget(&self, key: &T);

    /// Returns how many failures of this key have been counted since it was last forgotten.
    fn num_requeues(&self, key: &T) -> u32;
}

impl<T, R: RateLimiter<T> + ?Sized> RateLimiter<T> for Arc<R> {
    fn when(&self, key: &T) -> Duration {
        (**self).when(key)
    }

    fn forget(&self, key: &T) {
        (**self).forget(key);
    }

    fn num_requeues(&self, key: &T) -> u32 {
        (**self).num_requeues(key)
    }
}

/// Returns client-go's limiter for controllers: 5 ms after the first failure of a key, twice as long after each further
/// one up to 1,000 s; and of all keys together, after a burst of 100, ten a second.
#[must_use]
#[doc(alias = "DefaultTypedControllerRateLimiter")]
pub fn default_controller_rate_limiter<T: Hash + Eq + Clone + Send + 'static>() -> MaxOf<T> {
    MaxOf::new(ItemExponential::new(Duration::from_millis(5), Duration::from_secs(1_000)))
        .and(Bucket::new(Duration::from_millis(100), 100))
}

/// Returns client-go's limiter that looks at each key alone: 1 ms after its first failure, twice as long after each
/// further one up to 1,000 s.
#[must_use]
#[doc(alias = "DefaultTypedItemBasedRateLimiter")]
pub fn default_item_based_rate_limiter<T: Hash + Eq + Clone + Send + 'static>() -> ItemExponential<T> {
    ItemExponential::new(Duration::from_millis(1), Duration::from_secs(1_000))
}
