//! [`ItemFastSlow`]: some quick tries, then slow ones.

use std::hash::Hash;
use std::time::Duration;

use super::RateLimiter;
use super::failures::Failures;

/// Makes each key wait for a short time after its first few failures, and for a long time after each further one.
///
/// A key is remembered until it is forgotten, and otherwise for at least twice the longer time, or ten minutes if that is
/// longer.
#[derive(Debug)]
#[doc(alias = "TypedItemFastSlowRateLimiter")]
pub struct ItemFastSlow<T> {
    fast: Duration,
    slow: Duration,
    fast_tries: u32,
    failures: Failures<T>,
}

impl<T: Hash + Eq + Clone + Send> ItemFastSlow<T> {
    /// Returns a limiter from the short wait, the long one, and after how many failures of a key the wait is short.
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
