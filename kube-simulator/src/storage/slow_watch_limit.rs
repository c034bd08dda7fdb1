//! [`SlowWatchLimit`]: how far a watch may be behind before it is ended without a word.
//!
//! From `cacher.go` and `time_budget.go` of the API server (`pkg/storage/cacher`): events pile up in the channels of a watch;
//! when they are full, all watches of the resource wait for it, and they have so many milliseconds to wait in all.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The longest wait.
const MOST: Duration = Duration::from_millis(100);

/// How much of a second's wait may be spent in each second.
const REFILL: f64 = 0.05;

/// How far one watch may be behind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlowWatchLimit {
    /// How many events may be waiting for it.
    pub(crate) room: u64,
    /// Whether it may have more than that waiting for as long as the budget lasts.
    pub(crate) is_timed: bool,
}

/// How long the watches of a resource may still be waited for.
#[derive(Debug)]
pub(super) struct Budget(Mutex<Filling>);

#[derive(Debug)]
struct Filling {
    left: Duration,
    filled: Instant,
    /// Up to when it has been waited for a watch: those that are behind at the same time are waited for at the same time.
    waited: Instant,
}

impl Budget {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self(Mutex::new(Filling { left: Duration::ZERO, filled: now, waited: now }))
    }

    /// Takes what it took to wait for a watch since then, and tells whether there was so much.
    pub(super) fn spend(&self, since: Instant) -> bool {
        let mut filling = self.0.lock();
        let now = Instant::now();
        let wait = now.duration_since(since.max(filling.waited));
        let refilled = now.duration_since(filling.filled).mul_f64(REFILL);
        filling.filled = now;
        filling.left = filling.left.saturating_add(refilled).min(MOST);
        let is_enough = wait <= filling.left;
        filling.left = filling.left.saturating_sub(wait);
        if is_enough {
            filling.waited = now;
        }
        is_enough
    }
}
