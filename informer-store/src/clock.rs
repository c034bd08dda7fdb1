//! [`Clock`]: the time source of caches with expiration, so that tests can set the time.
//!
//! The clock can be user code, so it is called while no lock is held.

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
