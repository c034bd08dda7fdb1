//! [`Compaction`]: what etcd has been told to forget, as API servers tell it every few minutes.
//!
//! From `compact.go` of the API server (`pkg/storage/etcd3`): each time, everything before what was the newest revision the
//! time before is forgotten, so that five to ten minutes remain.

use std::time::Duration;

use tokio::time::Instant;

/// Between which an interval must be: a clock can't count to the end of any time that somebody may give.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Follows the clock, whenever somebody asks.
#[derive(Debug)]
pub(super) struct Compaction {
    /// Between two compactions; never, if none.
    interval: Option<Duration>,
    /// When the next one is.
    due: Instant,
    /// The newest revision of the last time, to be compacted the next.
    noted: u64,
    compacted: u64,
}

impl Compaction {
    pub(super) fn every(interval: Duration) -> Self {
        let interval = Some(interval.min(LONGEST)).filter(|interval| !interval.is_zero());
        let interval = interval.map(|interval| interval.max(SHORTEST));
        Self { interval, due: Instant::now() + interval.unwrap_or_default(), noted: 0, compacted: 0 }
    }

    /// Returns the revision before which everything is forgotten by now, if nothing has been written since the last time that
    /// it was asked but what makes `current` of it.
    pub(super) fn up_to(&mut self, current: u64) -> u64 {
        let late = Instant::now().checked_duration_since(self.due);
        if let (Some(interval), Some(late)) = (self.interval, late) {
            // If it was due more than once, the newest of the first time has been compacted by now, too.
            self.compacted = if late >= interval { current } else { self.noted };
            self.noted = current;
            let times = late.as_nanos() / interval.as_nanos() + 1;
            self.due += interval.saturating_mul(u32::try_from(times).unwrap_or(u32::MAX)).min(LONGEST);
        }
        self.compacted
    }

    /// Counts from another revision, before which nothing is known.
    pub(super) fn begin_anew(&mut self) {
        self.noted = 0;
        self.compacted = 0;
    }
}
