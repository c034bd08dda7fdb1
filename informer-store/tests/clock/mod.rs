//! [`Time`]: a clock for caches whose objects or writes expire.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A clock that the test advances, in seconds.
#[derive(Clone, Default)]
pub(crate) struct Time(Arc<AtomicU64>);

impl Time {
    pub(crate) fn clock(&self) -> impl Fn() -> Instant + Send + Sync + 'static {
        let (start, seconds) = (Instant::now(), Arc::clone(&self.0));
        move || start + Duration::from_secs(seconds.load(Ordering::Relaxed))
    }

    pub(crate) fn advance(&self, seconds: u64) {
        self.0.fetch_add(seconds, Ordering::Relaxed);
    }
}
