//! [`Bucket`]: so many failures a second, of all keys together.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::RateLimiter;

/// Lets failures of all keys together come again one by one, in steady intervals, after a burst that need not wait.
///
/// Every failure reserves its place, as with `Reserve` of Go's `golang.org/x/time/rate`, which client-go uses: the first
/// after the burst waits for one interval, the next for two. Whatever the keys are, it remembers one time.
#[derive(Debug)]
#[doc(alias = "TypedBucketRateLimiter")]
pub struct Bucket {
    every: Duration,
    burst: Duration,
    /// When the bucket will be full again.
    full_at: Mutex<Option<Instant>>,
}

impl Bucket {
    /// Returns a limiter from the interval between two failures and how many need not wait. With a burst of 0, each has
    /// to wait.
    #[must_use]
    pub fn new(every: Duration, burst: u32) -> Self {
        Self { every, burst: every.saturating_mul(burst), full_at: Mutex::new(None) }
    }
}

impl<T> RateLimiter<T> for Bucket {
    fn when(&self, _: &T) -> Duration {
        let now = Instant::now();
        let mut full_at = self.full_at.lock();
        let before = full_at.map_or(Duration::ZERO, |at| at.saturating_duration_since(now));
        let emptied = before.saturating_add(self.every);
        // Where time comes to its end, the bucket stays as it is.
        *full_at = now.checked_add(emptied).or(*full_at);
        emptied.saturating_sub(self.burst)
    }

    /// Does nothing: a reserved place is not given back.
    fn forget(&self, _: &T) {}

    /// Returns 0: keys are not told apart.
    fn num_requeues(&self, _: &T) -> u32 {
        0
    }
}
