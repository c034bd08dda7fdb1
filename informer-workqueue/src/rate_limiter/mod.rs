//! [`RateLimiter`]: determines when failed keys are retried. The submodules contain client-go's
//! limiters.
//!
//! client-go: `util/workqueue/default_rate_limiters.go`. In client-go, a limiter keeps the failures
//! of a key until the worker resets them. Here, a cleanup also drops old failures.

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

/// Determines how long a failed key waits until it is retried.
///
/// Several threads can call a limiter at the same time. A queue does not hold its lock during the
/// call. A limiter must not panic: if a worker panics, the drop of its [`Item`](crate::Item) calls
/// the limiter, and a second panic would abort the program.
#[doc(alias = "TypedRateLimiter")]
pub trait RateLimiter<T>: Send + Sync {
    /// Counts a failure of a key, and returns the time to wait before the key is retried.
    fn when(&self, key: &T) -> Duration;

    /// Resets the failures of a key.
    fn forget(&self, key: &T);

    /// Returns the number of failures of a key since the last reset; 0 if the limiter does not
    /// count failures per key.
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

/// Returns client-go's default limiter for controllers. A key waits for 5 ms after its first
/// failure. The wait doubles with each later failure, up to 1,000 s. In addition, the rate of all
/// keys together is limited: 100 failures are retried without an additional wait, then ten per
/// second.
#[must_use]
#[doc(alias = "DefaultTypedControllerRateLimiter")]
pub fn default_controller_rate_limiter<T: Hash + Eq + Clone + Send + 'static>() -> MaxOf<T> {
    MaxOf::new(ItemExponential::new(Duration::from_millis(5), Duration::from_secs(1_000)))
        .and(Bucket::new(Duration::from_millis(100), 100))
}

/// Returns client-go's default limiter per key. A key waits for 1 ms after its first failure. The
/// wait doubles with each later failure, up to 1,000 s.
#[must_use]
#[doc(alias = "DefaultTypedItemBasedRateLimiter")]
pub fn default_item_based_rate_limiter<T: Hash + Eq + Clone + Send + 'static>() -> ItemExponential<T> {
    ItemExponential::new(Duration::from_millis(1), Duration::from_secs(1_000))
}
