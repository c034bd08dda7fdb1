//! [`Compaction`]: etcd's compactions, which API servers request every few minutes.
//!
//! From `compact.go` of the API server (`pkg/storage/etcd3`): each compaction removes the history
//! before the revision of the previous one, so that five to ten minutes remain.

use std::time::Duration;

use tokio::time::Instant;

/// The bounds of the interval between compactions. Very long times would overflow the clock.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The progress of etcd's compactions. No task runs: the state is brought up to date when the
/// revision is requested.
#[derive(Debug)]
pub(super) struct Compaction {
    /// The time between two compactions. `None` disables them.
    interval: Option<Duration>,
    /// The time of the next compaction.
    due: Instant,
    /// The revision at the time of the last compaction. The next compaction removes the history
    /// before it.
    noted: u64,
    compacted: u64,
}

impl Compaction {
    pub(super) fn every(interval: Duration) -> Self {
        let interval = Some(interval.min(LONGEST)).filter(|interval| !interval.is_zero());
        let interval = interval.map(|interval| interval.max(SHORTEST));
        Self { interval, due: Instant::now() + interval.unwrap_or_default(), noted: 0, compacted: 0 }
    }

    /// Returns the compacted revision. Call this before each write, because `current` counts as the
    /// revision at every compaction that was due since the previous call.
    pub(super) fn up_to(&mut self, current: u64) -> u64 {
        let late = Instant::now().checked_duration_since(self.due);
        if let (Some(interval), Some(late)) = (self.interval, late) {
            // If two or more compactions were due, the second one has compacted the current
            // revision.
            self.compacted = if late >= interval { current } else { self.noted };
            self.noted = current;
            let times = late.as_nanos() / interval.as_nanos() + 1;
            self.due += interval.saturating_mul(u32::try_from(times).unwrap_or(u32::MAX)).min(LONGEST);
        }
        self.compacted
    }

    /// Resets the compacted revision after a restart from another revision.
    pub(super) fn begin_anew(&mut self) {
        self.noted = 0;
        self.compacted = 0;
    }
}
