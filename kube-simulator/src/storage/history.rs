//! The bounded history of one resource, for watches and for lists of earlier states.
//!
//! Each watch has a reader, which contains the sequence number of the next event to read.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use tokio::time::Instant;

use super::object::Object;
use super::slow_watch_limit::{Budget, SlowWatchLimit};
use super::window::{Retention, Window};
use crate::kinds::ResourceKind;

/// One write, with the object before and after it.
#[derive(Debug)]
pub(crate) struct Event {
    /// The object after the write. For a deletion: the last version, with the resource version of
    /// the deletion.
    pub(crate) object: Arc<Object>,
    /// `None` for a creation.
    pub(crate) previous: Option<Arc<Object>>,
    pub(crate) is_deletion: bool,
    /// Whether the stored bytes of the deleted object are unreadable. Watches end instead of
    /// reporting this deletion.
    pub(crate) is_corrupt: bool,
    pub(crate) written: Instant,
    as_deleted: OnceLock<Arc<Object>>,
}

impl Event {
    pub(crate) fn stored(object: Arc<Object>, previous: Option<Arc<Object>>) -> Self {
        let written = Instant::now();
        Self { object, previous, is_deletion: false, is_corrupt: false, written, as_deleted: OnceLock::new() }
    }

    pub(crate) fn deleted(last: Arc<Object>, previous: Option<Arc<Object>>) -> Self {
        Self { is_deletion: true, ..Self::stored(last, previous) }
    }

    pub(crate) fn corrupt(last: Arc<Object>, previous: Option<Arc<Object>>) -> Self {
        Self { is_corrupt: true, ..Self::deleted(last, previous) }
    }

    pub(crate) fn resource_version(&self) -> u64 {
        self.object.resource_version
    }

    /// Returns the previous version of the object, with this event's resource version. Watches
    /// whose selector matched only the previous version receive the result as the deleted object.
    pub(crate) fn as_deleted(&self, kind: &ResourceKind) -> &Arc<Object> {
        self.as_deleted.get_or_init(|| {
            let before = self.previous.as_ref().unwrap_or(&self.object);
            Object::encode(kind, before.key.clone(), before.decode(), self.resource_version())
        })
    }
}

/// The reason why a reader cannot continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReaderError {
    /// The reader has more unread events than the [`SlowWatchLimit`] allows, or the history no
    /// longer has all of them.
    TooSlow,
    /// The history was cleared after the creation of the reader.
    Reset,
}

/// The position of a reader of a history.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    /// The sequence number of the next event to read.
    pub(crate) cursor: u64,
    /// The sequence number of the first event after the creation of the reader. `slow_watch_limit`
    /// applies only to this event and later ones.
    pub(crate) joined: u64,
    pub(crate) slow_watch_limit: SlowWatchLimit,
}

/// The latest events of one resource, at most [`Window::max_capacity`]. The history has all events
/// in the API server's watch cache, and older events until etcd compacts them.
#[derive(Debug)]
pub(crate) struct History {
    events: VecDeque<Arc<Event>>,
    /// The sequence number of the oldest event.
    first: u64,
    /// The sequence number of the first event after the history was last cleared. This event may
    /// not exist yet.
    began: u64,
    /// The lowest resource version whose past state can be reconstructed: the history still has all
    /// later events.
    reachable: u64,
    pub(super) window: Window,
    /// Watches, and lists at an exact version, cannot start before this resource version.
    /// Exceptions after a compaction:
    /// - On a lagging API server, a watch can start at the newest version of this server.
    /// - A watch of a kind without a watch cache can start one version earlier, because etcd still
    ///   has the event of the compacted version.
    compacted_to: u64,
    /// The resource version at which the watch cache was last filled from etcd. The cache has no
    /// older events.
    filled_at: u64,
    budget: Budget,
}

impl History {
    pub(crate) fn new(retention: Retention, floor: u64) -> Self {
        Self {
            events: VecDeque::new(),
            first: 0,
            began: 0,
            reachable: floor,
            window: Window::new(retention, floor),
            compacted_to: floor,
            filled_at: floor,
            budget: Budget::new(),
        }
    }

    pub(crate) fn push(&mut self, event: Arc<Event>, compacted: u64) {
        self.window.make_room(&self.events, event.written);
        self.events.push_back(event);
        self.window.add_latest(&self.events);
        while self.events.len() > self.window.len() && self.is_oldest_removable(compacted) {
            let dropped = self.events.pop_front();
            self.reachable = dropped.map_or(self.reachable, |event| event.resource_version());
            self.first += 1;
        }
    }

    /// Returns whether the oldest event is compacted, or the history exceeds its maximum length.
    /// `compacted` is the revision that compactions have reached. An event of this revision is not
    /// compacted.
    fn is_oldest_removable(&self, compacted: u64) -> bool {
        let is_compacted = self.events.front().is_some_and(|event| event.resource_version() < compacted);
        is_compacted || self.events.len() > self.window.max_capacity()
    }

    /// Returns the lowest resource version from which a watch can start.
    ///
    /// `server_version` is the newest resource version in the watch cache of the API server that
    /// serves the watch.
    pub(crate) fn oldest_watch_start(&self, server_version: u64) -> u64 {
        let cached = self.window.floor().max(self.filled_at).max(self.compacted_to);
        // A watch that starts at the server's newest version needs no earlier events.
        cached.min(server_version).max(self.reachable)
    }

    /// Returns the lowest resource version at which a list from etcd is possible. `compacted` is
    /// the revision that compactions have reached.
    pub(crate) fn oldest_stored(&self, compacted: u64) -> u64 {
        self.reachable.max(self.compacted_to).max(compacted)
    }

    /// Returns the lowest resource version from which etcd can start a watch. `compacted` is the
    /// revision that compactions have reached.
    pub(crate) fn oldest_stored_watch_start(&self, compacted: u64) -> u64 {
        // A watch reads from the next revision on, and etcd still has the events of the compacted
        // revision itself.
        let before = self.compacted_to.max(compacted).saturating_sub(1);
        self.reachable.max(before)
    }

    /// Makes the history before `revision` unavailable to new watches, and to lists at an exact
    /// version, with the exceptions of [`compacted_to`](Self::compacted_to). Existing readers
    /// continue.
    pub(crate) fn compact(&mut self, revision: u64) {
        self.compacted_to = self.compacted_to.max(revision);
    }

    /// Rejects new watches that start before `revision`, like a watch cache that was filled at this
    /// version. Exception: on a lagging API server, a watch can start at the newest version of this
    /// server. Existing readers continue. Lists at an exact version remain available.
    pub(crate) fn refill(&mut self, revision: u64) {
        self.filled_at = self.filled_at.max(revision);
    }

    /// Clears the history, and resets the capacity of the watch cache. Existing readers get
    /// [`ReaderError::Reset`]. New readers cannot start before `revision`.
    pub(crate) fn reset(&mut self, revision: u64) {
        self.clear(revision);
        self.window.reset_capacity();
    }

    /// Clears the history, as a relist of the resource by the watch cache does. Existing readers
    /// get [`ReaderError::Reset`]. New readers cannot start before `revision`.
    pub(crate) fn clear(&mut self, revision: u64) {
        // Skips one number, so that existing readers have a lower `joined` than `began`.
        self.first = self.end() + 1;
        self.began = self.first;
        self.events.clear();
        self.window.clear(revision);
        self.compacted_to = revision;
        self.filled_at = revision;
        self.reachable = revision;
    }

    pub(crate) fn reachable(&self) -> u64 {
        self.reachable
    }

    /// Returns the sequence number of the next event to be pushed.
    fn end(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    /// Returns a new reader of the events after a resource version.
    pub(crate) fn reader_after(&self, resource_version: u64, slow_watch_limit: SlowWatchLimit) -> Reader {
        let older = self.events.partition_point(|event| event.resource_version() <= resource_version);
        Reader { cursor: self.first + older as u64, joined: self.end(), slow_watch_limit }
    }

    /// Returns all unread events of a reader, up to the resource version `up_to`.
    ///
    /// `is_selected` returns whether the client of the watch receives an event. It does not filter
    /// the result. It only affects whether the reader is too slow.
    pub(crate) fn read(
        &self,
        reader: &Reader,
        up_to: u64,
        is_selected: impl Fn(&Event) -> bool,
    ) -> Result<Vec<Arc<Event>>, ReaderError> {
        if reader.joined < self.began {
            return Err(ReaderError::Reset);
        }
        let skip = reader.cursor.checked_sub(self.first).ok_or(ReaderError::TooSlow)?;
        let end = self.events.partition_point(|event| event.resource_version() <= up_to);
        let skip = usize::try_from(skip).map_err(|_| ReaderError::TooSlow)?.min(end);
        let joined = reader.joined.saturating_sub(self.first);
        let counts_from = usize::try_from(joined).map_or(end, |joined| joined.max(skip).min(end));
        let mut counted = self.events.range(counts_from..end);
        let capacity = usize::try_from(reader.slow_watch_limit.capacity).unwrap_or(usize::MAX);
        let without_room = match reader.slow_watch_limit.is_timed {
            false => counted.nth(capacity),
            // As on a real server, events for other clients do not occupy the buffer of this watch.
            true => counted.filter(|event| is_selected(event)).nth(capacity),
        };
        match without_room {
            Some(event) if !(reader.slow_watch_limit.is_timed && self.budget.spend(event.written)) => {
                Err(ReaderError::TooSlow)
            }
            _ => Ok(self.events.range(skip..end).cloned().collect()),
        }
    }

    /// Returns whether the event buffer of a watch would be full on a real server.
    ///
    /// The buffer contains `unsent` events that the watch has already read from this history. It
    /// also contains the unread events since the creation of the reader for which `is_waiting`
    /// returns true, up to the resource version `up_to`.
    pub(crate) fn is_full(
        &self,
        reader: &Reader,
        up_to: u64,
        unsent: usize,
        is_waiting: impl Fn(&Event) -> bool,
    ) -> bool {
        // Events from before the creation of the reader do not occupy the buffer.
        let waiting = reader.cursor.max(reader.joined).saturating_sub(self.first);
        let waiting = usize::try_from(waiting).unwrap_or(usize::MAX).min(self.events.len());
        let known = self.events.range(waiting..).take_while(|event| event.resource_version() <= up_to);
        let capacity = usize::try_from(reader.slow_watch_limit.capacity).unwrap_or(usize::MAX);
        known.filter(|event| is_waiting(event)).take(capacity).count().saturating_add(unsent) >= capacity
    }

    pub(crate) fn newest_first_after(&self, resource_version: u64) -> impl Iterator<Item = &Arc<Event>> {
        self.events.iter().rev().take_while(move |event| event.resource_version() > resource_version)
    }
}
