//! [`Compaction`]: what etcd has been told to forget, as API servers tell it every few minutes.
//!
//! From `compact.go` of the API server (`pkg/storage/etcd3`): each time, everything before what was the newest revision the
//! time before is forgotten, so that five to ten minutes remain.

use std::time::Duration;

use tokio::time::Instant;

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
        let due = Instant::now() + interval;
        let interval = Some(interval).filter(|interval| !interval.is_zero());
        Self { interval, due, noted: 0, compacted: 0 }
    }

    /// Gives the revision before which everything is forgotten by now, if nothing has been written since the last time that
    /// it was asked but what makes `current` of it.
    pub(super) fn up_to(&mut self, current: u64) -> u64 {
        let now = Instant::now();
        while let Some(interval) = self.interval.filter(|_| self.due <= now) {
            self.compacted = self.noted;
            self.noted = current;
            self.due += interval;
        }
        self.compacted
    }

    /// Counts from another revision, before which nothing is known.
    pub(super) fn begin_anew(&mut self) {
        self.noted = 0;
        self.compacted = 0;
    }
}
