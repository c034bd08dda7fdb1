//! [`SlowWatchLimit`]: the maximum lag of a watch. The server ends a slower watch without an error.
//!
//! As in `cacher.go` and `time_budget.go` of the API server (`pkg/storage/cacher`), events fill the
//! channels of a watch. When the channels of one watch are full, all watches of the resource wait
//! for that watch, within a common time budget.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The maximum time budget of a resource for its slow watches.
const MAX_BUDGET: Duration = Duration::from_millis(100);

/// The growth of a resource's time budget for slow watches, in seconds of budget per second.
const REFILL_RATE: f64 = 0.05;

/// The maximum lag of one watch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlowWatchLimit {
    /// The number of events that the buffer of the watch can hold.
    pub(crate) room: u64,
    /// Whether a watch with a full buffer stays open until the resource's time budget for slow
    /// watches ([`Budget`]) is used up. If `false`, the server ends the watch at once.
    pub(crate) is_timed: bool,
}

/// The remaining time for which the server waits for slow watches of a resource.
#[derive(Debug)]
pub(super) struct Budget(Mutex<BudgetState>);

/// The state of a [`Budget`].
#[derive(Debug)]
struct BudgetState {
    /// The remaining budget at the time `filled`.
    left: Duration,
    /// The time up to which the budget has been refilled.
    filled: Instant,
    /// The end of the last wait for a slow watch that the budget covered. Only the part of the next
    /// wait after this time is deducted, so that simultaneous waits are deducted once.
    waited: Instant,
}

impl Budget {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self(Mutex::new(BudgetState { left: Duration::ZERO, filled: now, waited: now }))
    }

    /// Deducts a wait of the server for a slow watch from the budget. The wait began at `since` and
    /// ends now. Returns whether the budget was sufficient.
    pub(super) fn spend(&self, since: Instant) -> bool {
        let mut state = self.0.lock();
        let now = Instant::now();
        let wait = now.duration_since(since.max(state.waited));
        let refilled = now.duration_since(state.filled).mul_f64(REFILL_RATE);
        state.filled = now;
        state.left = state.left.saturating_add(refilled).min(MAX_BUDGET);
        let is_enough = wait <= state.left;
        state.left = state.left.saturating_sub(wait);
        if is_enough {
            state.waited = now;
        }
        is_enough
    }
}
