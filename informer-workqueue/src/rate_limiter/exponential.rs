//! [`ItemExponential`]: doubles the wait after each failure of a key.

use std::hash::Hash;
use std::time::Duration;

use super::RateLimiter;
use super::failures::Failures;

/// A limiter that doubles the wait of a key after each failure of the key, from a base up to a
/// maximum.
///
/// The failures of a key are kept until they are reset, or until a cleanup drops them. A cleanup
/// drops the failures of a key only if the last failure is older than twice the maximum wait, and
/// older than ten minutes.
///
/// ```
/// # use std::time::Duration;
/// use informer_workqueue::{ItemExponential, RateLimiter};
///
/// let limiter = ItemExponential::new(Duration::from_millis(1), Duration::from_secs(1));
/// assert_eq!(limiter.when(&"a"), Duration::from_millis(1));
/// assert_eq!(limiter.when(&"a"), Duration::from_millis(2));
/// assert_eq!(limiter.when(&"b"), Duration::from_millis(1));
/// limiter.forget(&"a");
/// assert_eq!(limiter.when(&"a"), Duration::from_millis(1));
/// ```
#[derive(Debug)]
#[doc(alias = "TypedItemExponentialFailureRateLimiter")]
pub struct ItemExponential<T> {
    base: Duration,
    max: Duration,
    failures: Failures<T>,
}

impl<T: Hash + Eq + Clone + Send> ItemExponential<T> {
    /// Returns a limiter. `base` is the wait after the first failure of a key, and `max` is the
    /// maximum wait.
    #[must_use]
    pub fn new(base: Duration, max: Duration) -> Self {
        Self { base, max, failures: Failures::new(max) }
    }
}

impl<T: Hash + Eq + Clone + Send> RateLimiter<T> for ItemExponential<T> {
    fn when(&self, key: &T) -> Duration {
        doubled(self.base, self.failures.count(key), self.max)
    }

    fn forget(&self, key: &T) {
        self.failures.forget(key);
    }

    fn num_requeues(&self, key: &T) -> u32 {
        self.failures.times(key)
    }
}

/// Doubles `base` `times` times, up to `max`.
fn doubled(base: Duration, times: u32, max: Duration) -> Duration {
    let factor = 1_u128.checked_shl(times).unwrap_or(u128::MAX);
    let nanos = base.as_nanos().saturating_mul(factor).min(max.as_nanos());
    // The conversion fails only for waits of more than 500 years.
    u64::try_from(nanos).map_or(max, Duration::from_nanos)
}
