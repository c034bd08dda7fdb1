//! [`Compaction`]: etcd's compactions, which API servers request every few minutes.
//!
//! As in `compact.go` of the API server (`pkg/storage/etcd3`), each compaction removes the history
//! before the revision that was current at the previous compaction.

use std::time::Duration;

use tokio::time::Instant;

const MIN_INTERVAL: Duration = Duration::from_millis(1);
/// The longest time between two compactions. A much longer time would overflow the clock.
const MAX_INTERVAL: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The progress of etcd's compactions. There is no background task: due compactions are applied by
/// the next write, or by the next read that depends on them.
#[derive(Debug)]
pub(super) struct Compaction {
    /// `None` disables compactions.
    interval: Option<Duration>,
    due: Instant,
    /// The next compaction removes the history before this revision. Each compaction sets this
    /// field to the newest revision.
    next: u64,
    /// The history before this revision has been removed.
    compacted: u64,
}

impl Compaction {
    pub(super) fn every(interval: Duration) -> Self {
        let interval = Some(interval.min(MAX_INTERVAL)).filter(|interval| !interval.is_zero());
        let interval = interval.map(|interval| interval.max(MIN_INTERVAL));
        Self { interval, due: Instant::now() + interval.unwrap_or_default(), next: 0, compacted: 0 }
    }

    /// Applies all due compactions, and returns the revision before which the history has been
    /// removed. `current` is the newest revision.
    ///
    /// Each write must call this method before it increases the revision.
    pub(super) fn apply_due(&mut self, current: u64) -> u64 {
        let late = Instant::now().checked_duration_since(self.due);
        if let (Some(interval), Some(late)) = (self.interval, late) {
            // If two or more compactions were due, the second one removed the history before
            // `current`.
            self.compacted = if late >= interval { current } else { self.next };
            self.next = current;
            let times = late.as_nanos() / interval.as_nanos() + 1;
            self.due += interval.saturating_mul(u32::try_from(times).unwrap_or(u32::MAX)).min(MAX_INTERVAL);
        }
        self.compacted
    }

    /// Sets `next` and `compacted` to 0, as in a new `Compaction`. This is necessary when a backup
    /// is restored, because the newest revision can then decrease.
    pub(super) fn reset(&mut self) {
        self.next = 0;
        self.compacted = 0;
    }
}
