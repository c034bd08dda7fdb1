//! [`SlowWatchLimit`]: the rule that ends a watch, without an error, when its client reads too
//! slowly.
//!
//! Counterpart: `cacher.go` and `time_budget.go` of the API server (`pkg/storage/cacher`). Each
//! watch has a buffer for events that its client has not read. When the buffer of one watch is
//! full, a real server waits for that watch before it sends more events of the resource to any
//! watch. The resource has a time budget for such waits. When the budget is used up, the server
//! ends the slow watch. The simulator computes the waiting time, but does not wait.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The maximum of a [`Budget`], which is the time for which the server waits for the slow watches
/// of a resource.
const MAX_BUDGET: Duration = Duration::from_millis(100);

/// The number of seconds by which a [`Budget`] grows per second of elapsed time, up to
/// [`MAX_BUDGET`].
const REFILL_RATE: f64 = 0.05;

/// The maximum lag of one watch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlowWatchLimit {
    /// The maximum number of events in the buffer of the watch.
    pub(crate) capacity: u64,
    /// Whether a watch with a full buffer stays open until the resource's time budget for slow
    /// watches ([`Budget`]) is used up. If `false`, the server ends the watch at once.
    pub(crate) is_timed: bool,
}

/// The time for which a real server could still wait for clients that read too slowly. All watches
/// of a resource share one budget.
#[derive(Debug)]
pub(super) struct Budget(Mutex<BudgetState>);

/// The state of a [`Budget`]: the remaining time, and when this time was computed.
#[derive(Debug)]
struct BudgetState {
    /// The time for which the server could still wait for slow watches at the moment `updated`.
    left: Duration,
    /// The moment at which `left` was computed. The growth of the budget since then is not
    /// included.
    updated: Instant,
    /// Waits for slow watches have been deducted from `left` up to this moment. Earlier waiting
    /// time is not deducted again if two watches were slow at the same time.
    deducted_to: Instant,
}

impl Budget {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self(Mutex::new(BudgetState { left: Duration::ZERO, updated: now, deducted_to: now }))
    }

    /// Deducts from the budget the time for which the server has waited for a slow watch: from
    /// `since` until now. Returns whether the budget was sufficient; if not, the budget is then
    /// zero.
    pub(super) fn spend(&self, since: Instant) -> bool {
        let mut state = self.0.lock();
        let now = Instant::now();
        let wait = now.duration_since(since.max(state.deducted_to));
        let refilled = now.duration_since(state.updated).mul_f64(REFILL_RATE);
        state.updated = now;
        state.left = state.left.saturating_add(refilled).min(MAX_BUDGET);
        let is_enough = wait <= state.left;
        state.left = state.left.saturating_sub(wait);
        if is_enough {
            state.deducted_to = now;
        }
        is_enough
    }
}
