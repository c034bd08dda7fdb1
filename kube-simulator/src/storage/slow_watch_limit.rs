//! [`SlowWatchLimit`]: the maximum number of events by which a watch can lag. The server ends a
//! slower watch without an error.
//!
//! Counterpart: `cacher.go` and `time_budget.go` of the API server (`pkg/storage/cacher`). Each
//! watch has a buffer for events that its client has not read. When the buffer of one watch is
//! full, the server waits for that watch before it sends more events of the resource to any watch.
//! The resource has a time budget for such waits. When the budget is used up, the server ends the
//! slow watch.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The maximum of a [`Budget`], which is the time for which the server waits for the slow watches
/// of a resource.
const MAX_BUDGET: Duration = Duration::from_millis(100);

/// The growth of a [`Budget`], in seconds of waiting time per second.
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
    /// The remaining time for waits, as of the time `filled`.
    left: Duration,
    /// The time up to which the growth of the budget has been added to `left`.
    filled: Instant,
    /// The end of the last wait that the budget covered completely. Waiting time before this moment
    /// is not deducted again, so that simultaneous waits are deducted once.
    waited: Instant,
}

impl Budget {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self(Mutex::new(BudgetState { left: Duration::ZERO, filled: now, waited: now }))
    }

    /// Deducts from the budget the time for which the server has waited for a slow watch: from
    /// `since` until now. Returns whether the remaining budget was sufficient.
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
