//! [`Window`]: which of the latest events of a resource an API server remembers, as its watch cache decides.
//!
//! From `watch_cache.go` of the API server (`pkg/storage/cacher`): the ring grows while it would lose what is not yet
//! 75 seconds old, and shrinks when three quarters of it are older.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::history::Event;

/// For how long a server tries to remember an event: a bookmark comes every minute, and may take its time.
const FRESH: Duration = Duration::from_secs(75);

/// The sizes between which a server's ring grows and shrinks.
const LEAST: usize = 100;
const MOST: usize = 102_400;

/// The least number of events that a server lets pile up for a watch.
const MIN_CHANNEL: usize = 10;

/// What is remembered.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Retention {
    /// What a real server does.
    Fresh,
    /// So many events.
    Latest(usize),
}

/// The latest events, of a longer history that is not kept here.
#[derive(Debug)]
pub(super) struct Window {
    retention: Retention,
    /// How many there may be.
    capacity: usize,
    /// How many there are.
    len: usize,
    /// The lowest resource version from which they are complete.
    floor: u64,
}

impl Window {
    pub(super) fn new(retention: Retention, floor: u64) -> Self {
        let capacity = match retention {
            Retention::Fresh => LEAST,
            Retention::Latest(limit) => limit.max(1),
        };
        Self { retention, capacity, len: 0, floor }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// How many events there can be at most, and so how many of a resource are kept at all.
    pub(super) fn most(&self) -> usize {
        match self.retention {
            Retention::Fresh => MOST,
            Retention::Latest(_) => self.capacity,
        }
    }

    pub(super) fn floor(&self) -> u64 {
        self.floor
    }

    /// Forgets everything. There is as much room as before.
    pub(super) fn empty(&mut self, floor: u64) {
        self.len = 0;
        self.floor = floor;
    }

    /// Makes the room as small as it is in the beginning.
    pub(super) fn shrink_to_least(&mut self) {
        self.capacity = Self::new(self.retention, self.floor).capacity;
    }

    /// Makes room for one more event, by growing or by forgetting.
    pub(super) fn make_room(&mut self, history: &VecDeque<Arc<Event>>, now: Instant) {
        if self.len < self.capacity {
            return;
        }
        if matches!(self.retention, Retention::Fresh) {
            // Counted from the newest; there are that many, because the ring is full.
            let age = |back: usize| now.duration_since(history[history.len() - back].written);
            if age(self.capacity) < FRESH {
                self.capacity = (self.capacity * 2).min(MOST);
            } else if age(self.capacity / 4) > FRESH {
                self.capacity = (self.capacity / 2).max(LEAST);
            }
        }
        self.len = self.len.min(self.capacity.saturating_sub(1));
    }

    /// Takes in the event that has been added to the history.
    pub(super) fn count_one(&mut self, history: &VecDeque<Arc<Event>>) {
        self.len += 1;
        // The real watch cache counts from the oldest event that it holds, not from the newest it has dropped. While it has
        // dropped none, it can go back to where it began.
        let has_dropped = history.len() > self.len;
        if has_dropped {
            let oldest = history[history.len() - self.len].resource_version() - 1;
            self.floor = self.floor.max(oldest);
        }
    }

    /// How many events a server lets pile up for one watch: those of about a second, and at most as many as given.
    pub(super) fn channel(&self, most: usize) -> u64 {
        let of_a_second = self.capacity.div_ceil(75);
        of_a_second.clamp(MIN_CHANNEL, most.max(MIN_CHANNEL)) as u64
    }
}
