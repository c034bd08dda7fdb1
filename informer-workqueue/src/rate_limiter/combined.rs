//! Limiters that wrap other limiters: [`MaxOf`] and [`WithMaxWait`].

use std::fmt;
use std::time::Duration;

use super::RateLimiter;

/// A limiter that returns the longest of the waits of several limiters.
#[doc(alias = "TypedMaxOfRateLimiter")]
pub struct MaxOf<T> {
    limiters: Vec<Box<dyn RateLimiter<T>>>,
}

impl<T> MaxOf<T> {
    /// Returns a combined limiter that contains only `limiter`; [`and`](Self::and) adds others.
    #[must_use]
    pub fn new(limiter: impl RateLimiter<T> + 'static) -> Self {
        Self { limiters: vec![Box::new(limiter)] }
    }

    /// Adds a limiter to the combined limiters.
    #[must_use]
    pub fn and(mut self, limiter: impl RateLimiter<T> + 'static) -> Self {
        self.limiters.push(Box::new(limiter));
        self
    }
}

impl<T> RateLimiter<T> for MaxOf<T> {
    fn when(&self, key: &T) -> Duration {
        self.limiters.iter().map(|limiter| limiter.when(key)).max().unwrap_or_default()
    }

    fn forget(&self, key: &T) {
        self.limiters.iter().for_each(|limiter| limiter.forget(key));
    }

    /// Returns the largest of the numbers that the limiters return.
    fn num_requeues(&self, key: &T) -> u32 {
        self.limiters.iter().map(|limiter| limiter.num_requeues(key)).max().unwrap_or_default()
    }
}

impl<T> fmt::Debug for MaxOf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MaxOf").field("limiters", &self.limiters.len()).finish_non_exhaustive()
    }
}

/// A limiter that limits the waits of another limiter to a maximum.
#[derive(Debug)]
#[doc(alias = "TypedWithMaxWaitRateLimiter")]
pub struct WithMaxWait<R> {
    limiter: R,
    max: Duration,
}

impl<R> WithMaxWait<R> {
    /// Returns a limiter that limits the waits of `limiter` to `max`.
    #[must_use]
    pub fn new(limiter: R, max: Duration) -> Self {
        Self { limiter, max }
    }
}

impl<T, R: RateLimiter<T>> RateLimiter<T> for WithMaxWait<R> {
    fn when(&self, key: &T) -> Duration {
        self.limiter.when(key).min(self.max)
    }

    fn forget(&self, key: &T) {
        self.limiter.forget(key);
    }

    fn num_requeues(&self, key: &T) -> u32 {
        self.limiter.num_requeues(key)
    }
}
