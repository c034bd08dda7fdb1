//! [`SlowWatchLimit`]: the rule that ends a watch, without an error, when its client reads too
//! slowly.
//!
//! Counterpart: `cacher.go` and `time_budget.go` of the API server (`pkg/storage/cacher`). A real
//! server waits for room in the buffer of a slow watch. All watches of a resource share a budget
//! for these waits. The simulator computes the waiting time, but does not wait.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

const MAX_BUDGET: Duration = Duration::from_millis(100);

/// The growth of a [`Budget`], in seconds per second of elapsed time.
const REFILL_RATE: f64 = 0.05;

/// The rule that ends the stream of a watch whose client reads too slowly.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlowWatchLimit {
    /// The size of the watch's buffer, in events.
    pub(crate) capacity: u64,
    /// Whether a watch with a full buffer stays open until the [`Budget`] is used up.
    pub(crate) is_timed: bool,
}

/// The time that a real server may still spend on waits for slow watches of one resource. Each wait
/// reduces the budget, which grows again with time.
#[derive(Debug)]
pub(super) struct Budget(Mutex<BudgetState>);

#[derive(Debug)]
struct BudgetState {
    /// The time that may still be spent on waits, computed at the moment `updated`.
    left: Duration,
    updated: Instant,
    /// The moment up to which waiting time is already deducted from the budget. Waits of several
    /// watches can overlap, so time before this moment is not deducted again.
    deducted_until: Instant,
}

impl Budget {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self(Mutex::new(BudgetState { left: Duration::ZERO, updated: now, deducted_until: now }))
    }

    /// Reduces the budget by the wait for a slow watch. This wait began at `since` and ends now.
    /// Returns whether the budget was sufficient.
    pub(super) fn spend(&self, since: Instant) -> bool {
        let mut state = self.0.lock();
        let now = Instant::now();
        let wait = now.duration_since(since.max(state.deducted_until));
        let refilled = now.duration_since(state.updated).mul_f64(REFILL_RATE);
        state.updated = now;
        state.left = state.left.saturating_add(refilled).min(MAX_BUDGET);
        let is_enough = wait <= state.left;
        state.left = state.left.saturating_sub(wait);
        if is_enough {
            state.deducted_until = now;
        }
        is_enough
    }
}
