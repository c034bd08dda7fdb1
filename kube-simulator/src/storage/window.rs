//! [`Window`]: how many of the latest events of a resource the watch cache of an API server holds.
//!
//! As in `watch_cache.go` of the API server (`pkg/storage/cacher`), the ring buffer of the cache
//! grows instead of dropping events younger than 75 seconds. The ring buffer shrinks when three
//! quarters of its events are older.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::history::Event;

/// The watch cache does not drop events younger than this: its ring buffer grows instead, up to the
/// maximum capacity. A client can thus resume from its last bookmark, which the server sends every
/// minute.
const FRESH: Duration = Duration::from_secs(75);

/// Minimum number of events for which the watch cache of a resource has room, as on a real server.
const MIN_CAPACITY: usize = 100;
/// Maximum number of events for which the watch cache of a resource has room, as on a real server.
const MAX_CAPACITY: usize = 102_400;

/// Minimum number of events that a server buffers for a watch.
const MIN_CHANNEL: usize = 10;

/// The rule that determines how many events the watch cache holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Retention {
    /// The rule of a real server: at least the events of the last 75 seconds, but at most 102,400
    /// events.
    Fresh,
    /// A fixed number of events.
    Latest(usize),
}

/// The number of latest events in a `History` that the watch cache holds. The events themselves are
/// in the history.
#[derive(Debug)]
pub(super) struct Window {
    retention: Retention,
    /// The current maximum number of events in the watch cache.
    capacity: usize,
    /// The current number of events in the watch cache.
    len: usize,
    /// The window contains all events after this resource version.
    floor: u64,
}

impl Window {
    pub(super) fn new(retention: Retention, floor: u64) -> Self {
        let capacity = match retention {
            Retention::Fresh => MIN_CAPACITY,
            Retention::Latest(limit) => limit.max(1),
        };
        Self { retention, capacity, len: 0, floor }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the number to which the capacity can grow. This number is also the maximum length of
    /// the whole history.
    pub(super) fn max_capacity(&self) -> usize {
        match self.retention {
            Retention::Fresh => MAX_CAPACITY,
            Retention::Latest(_) => self.capacity,
        }
    }

    pub(super) fn floor(&self) -> u64 {
        self.floor
    }

    /// Removes all events. From now on, the window contains all events after `floor`, the current
    /// resource version. The capacity does not change.
    pub(super) fn clear(&mut self, floor: u64) {
        self.len = 0;
        self.floor = floor;
    }

    /// Resets the capacity to its initial value.
    pub(super) fn reset_capacity(&mut self) {
        self.capacity = Self::new(self.retention, self.floor).capacity;
    }

    /// Makes room for one more event: increases the capacity, or drops the oldest events.
    pub(super) fn make_room(&mut self, history: &VecDeque<Arc<Event>>, now: Instant) {
        if self.len < self.capacity {
            return;
        }
        if matches!(self.retention, Retention::Fresh) {
            // Returns the age of the event at position `back`, counted from the newest event. The
            // ring is full, so the event exists.
            let age = |back: usize| now.duration_since(history[history.len() - back].written);
            if age(self.capacity) < FRESH {
                self.capacity = (self.capacity * 2).min(MAX_CAPACITY);
            } else if age(self.capacity / 4) > FRESH {
                self.capacity = (self.capacity / 2).max(MIN_CAPACITY);
            }
        }
        self.len = self.len.min(self.capacity.saturating_sub(1));
    }

    /// Adds the latest event of the history to the window. If the history has older events than the
    /// window, raises `floor` to the version just before the oldest event in the window.
    pub(super) fn add_latest(&mut self, history: &VecDeque<Arc<Event>>) {
        self.len += 1;
        // As in the real watch cache, the floor is just before the oldest held event, not at the
        // newest dropped event. Until an event is dropped, the initial floor applies.
        let has_dropped = history.len() > self.len;
        if has_dropped {
            let oldest = history[history.len() - self.len].resource_version() - 1;
            self.floor = self.floor.max(oldest);
        }
    }

    /// Returns the number of events that a server buffers for one watch: 1/75 of the capacity, but
    /// at least [`MIN_CHANNEL`] and at most `most`. A full ring buffer holds about the events of 75
    /// seconds, so the result is about the number of events in one second.
    pub(super) fn channel_size(&self, most: usize) -> u64 {
        let of_a_second = self.capacity.div_ceil(75);
        of_a_second.clamp(MIN_CHANNEL, most.max(MIN_CHANNEL)) as u64
    }
}
