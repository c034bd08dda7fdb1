//! [`Window`]: how many of the latest events of a resource the watch cache of an API server holds.
//! The events themselves are in the resource's `History`, which can hold more events.
//!
//! As in `watch_cache.go` of the API server (`pkg/storage/cacher`), the ring buffer of the cache
//! grows, up to a maximum size, instead of dropping events younger than 75 seconds. The ring buffer
//! shrinks, down to a minimum size, when three quarters of its events are older. With
//! [`Retention::Latest`], its size is fixed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::history::Event;

/// The watch cache keeps events for this time, if its maximum capacity suffices. The time is longer
/// than the minute between two bookmarks, so that a client can resume from its last bookmark.
const FRESH: Duration = Duration::from_secs(75);

/// The minimum size of the ring buffer with [`Retention::Fresh`]: 100 events, as on a real server.
const MIN_CAPACITY: usize = 100;
/// The maximum size of the ring buffer with [`Retention::Fresh`]: 102,400 events, as on a real
/// server.
const MAX_CAPACITY: usize = 102_400;

/// The minimum capacity of a channel that buffers a watch ([`channel_size`](Window::channel_size)),
/// in events.
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

/// The range of the latest events in a `History` that the watch cache holds.
#[derive(Debug)]
pub(super) struct Window {
    retention: Retention,
    /// The number of events that fit into the ring buffer of the watch cache.
    capacity: usize,
    /// The number of events that the watch cache holds, at most `capacity`.
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

    /// Returns the highest possible `capacity`, in events. The resource's `History` holds at most
    /// this number of events, too.
    pub(super) fn max_capacity(&self) -> usize {
        match self.retention {
            Retention::Fresh => MAX_CAPACITY,
            Retention::Latest(_) => self.capacity,
        }
    }

    pub(super) fn floor(&self) -> u64 {
        self.floor
    }

    /// Removes all events from the window. From now on, the window contains the events after
    /// `floor`, which is the current resource version. The capacity does not change.
    pub(super) fn clear(&mut self, floor: u64) {
        self.len = 0;
        self.floor = floor;
    }

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

    /// Adds the latest event of the history to the window.
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

    /// Returns how many unsent events fit into one channel of a watch on a real server. The result
    /// is at least 10, and at most `max`, which must be at least 10.
    pub(super) fn channel_size(&self, max: usize) -> u64 {
        // A full ring buffer holds the events of about 75 seconds.
        let of_a_second = self.capacity.div_ceil(75);
        of_a_second.clamp(MIN_CHANNEL, max.max(MIN_CHANNEL)) as u64
    }
}
