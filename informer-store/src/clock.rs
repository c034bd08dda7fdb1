//! [`Clock`]: the function that returns the current time for caches with expiration.
//!
//! Tests replace this function. It can be user code, so it is called while no lock is held.

use std::time::Instant;

pub(crate) struct Clock(Box<dyn Fn() -> Instant + Send + Sync>);

impl Clock {
    pub(crate) fn new(now: impl Fn() -> Instant + Send + Sync + 'static) -> Self {
        Self(Box::new(now))
    }

    pub(crate) fn now(&self) -> Instant {
        (self.0)()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new(Instant::now)
    }
}
