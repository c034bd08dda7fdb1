//! [`ItemFastSlow`]: a short wait before the first retries of a key, and a long wait before all
//! later retries.

use std::hash::Hash;
use std::time::Duration;

use super::RateLimiter;
use super::failures::Failures;

/// A limiter that returns a short wait for the first failures of a key, and a long wait for all
/// later failures.
///
/// The failures of a key are kept until they are reset, or until a cleanup drops them. A cleanup
/// drops the failures of a key only if the last failure is older than twice the longer wait, and
/// older than ten minutes.
#[derive(Debug)]
#[doc(alias = "TypedItemFastSlowRateLimiter")]
pub struct ItemFastSlow<T> {
    fast: Duration,
    slow: Duration,
    fast_tries: u32,
    failures: Failures<T>,
}

impl<T: Hash + Eq + Clone + Send> ItemFastSlow<T> {
    /// Returns a limiter. `fast` is the wait after the first `fast_tries` failures of a key, and
    /// `slow` is the wait after each later failure.
    #[must_use]
    pub fn new(fast: Duration, slow: Duration, fast_tries: u32) -> Self {
        Self { fast, slow, fast_tries, failures: Failures::new(fast.max(slow)) }
    }
}

impl<T: Hash + Eq + Clone + Send> RateLimiter<T> for ItemFastSlow<T> {
    fn when(&self, key: &T) -> Duration {
        if self.failures.count(key) < self.fast_tries { self.fast } else { self.slow }
    }

    fn forget(&self, key: &T) {
        self.failures.forget(key);
    }

    fn num_requeues(&self, key: &T) -> u32 {
        self.failures.times(key)
    }
}
