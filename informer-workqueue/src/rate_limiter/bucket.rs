//! [`Bucket`]: limits the rate of retries of all keys together.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::RateLimiter;

/// Limits the rate of retries of all keys together: a burst of failures is retried without a wait.
/// After the burst, one failure is retried per interval.
///
/// The limiter is a token bucket, like that of `golang.org/x/time/rate`, which client-go uses. Each
/// failure uses one token. When all tokens are used, the next failure waits for one interval, and
/// the failure after that for two intervals. The limiter stores a single time, regardless of the
/// number of keys.
#[derive(Debug)]
#[doc(alias = "TypedBucketRateLimiter")]
pub struct Bucket {
    every: Duration,
    burst: Duration,
    /// The time at which all used tokens are restored; `None` before the first failure.
    full_at: Mutex<Option<Instant>>,
}

impl Bucket {
    /// Returns a limiter. `every` is the interval between two retries. `burst` is the number of
    /// failures, of all keys together, that are retried without a wait. The limiter begins with
    /// `burst` tokens, and each interval restores one token. With a burst of 0, every failure
    /// waits.
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
        // If the time would overflow, the bucket does not change.
        *full_at = now.checked_add(emptied).or(*full_at);
        emptied.saturating_sub(self.burst)
    }

    /// Does nothing, because the limiter stores nothing about single keys.
    fn forget(&self, _: &T) {}

    /// Returns 0, because the limiter does not count failures per key.
    fn num_requeues(&self, _: &T) -> u32 {
        0
    }
}
