//! [`Clock`]: where the caches that forget take the time from, so that tests need not wait.
//!
//! It may be the user's code, so it is read with no lock held (I8).

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
