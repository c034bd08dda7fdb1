//! The bounded history of one resource: what watches replay and what lists of the past are computed from.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use tokio::time::Instant;

use super::slow_watch_limit::{Budget, SlowWatchLimit};
use super::window::{Retention, Window};
use crate::object::Object;
use crate::resource::ResourceKind;

/// One write, with the object before and after it.
#[derive(Debug)]
pub(crate) struct Event {
    /// The object after the write; after a deletion its last version, with the resource version of the deletion.
    pub(crate) object: Arc<Object>,
    /// The version before; none for a creation.
    pub(crate) previous: Option<Arc<Object>>,
    pub(crate) is_deletion: bool,
    /// Whether what was stored before can't be read, so that whoever follows etcd can't be told what was deleted.
    pub(crate) is_corrupt: bool,
    /// When it was written.
    pub(crate) written: Instant,
    departed: OnceLock<Arc<Object>>,
}

impl Event {
    pub(crate) fn stored(object: Arc<Object>, previous: Option<Arc<Object>>) -> Self {
        let written = Instant::now();
        Self { object, previous, is_deletion: false, is_corrupt: false, written, departed: OnceLock::new() }
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

    /// Returns the previous version under this event's resource version: what a watch whose selector matched only
    /// the previous version is told was deleted. It is built once, for all such watches.
    pub(crate) fn departed(&self, kind: &ResourceKind) -> &Arc<Object> {
        self.departed.get_or_init(|| {
            let before = self.previous.as_ref().unwrap_or(&self.object);
            Object::encode(kind, before.key.clone(), before.decode(), self.resource_version())
        })
    }
}

/// Why a reader can't go on without losing events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// It has fallen too far behind.
    TooSlow,
    /// The history has begun anew.
    Anew,
}

/// Somebody who reads a history.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    /// The number of the next event that it wants.
    pub(crate) cursor: u64,
    /// The number that the next event had when it began. What is older does not count as being behind.
    pub(crate) joined: u64,
    pub(crate) patience: SlowWatchLimit,
}

/// The latest events of one resource: what etcd remembers of them, and within that what the API server does.
///
/// Events are numbered without gaps; a reader's cursor is the number of the next event that it wants.
#[derive(Debug)]
pub(crate) struct History {
    events: VecDeque<Arc<Event>>,
    /// The number of the oldest event still held.
    first: u64,
    /// The number of the first event since the history began anew.
    began: u64,
    /// The lowest resource version whose state can still be computed. A compaction does not change it.
    reachable: u64,
    /// Those of the events that the API server remembers.
    window: Window,
    /// No new reader may start from before this resource version, whoever remembers what.
    forgotten: u64,
    /// How long all watches together may still hold up the others.
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
            forgotten: floor,
            budget: Budget::new(),
        }
    }

    pub(crate) fn push(&mut self, event: Arc<Event>, compacted: u64) {
        self.window.make_room(&self.events, event.written);
        self.events.push_back(event);
        self.window.count_one(&self.events);
        while self.events.len() > self.window.len() && self.oldest_can_go(compacted) {
            let dropped = self.events.pop_front();
            self.reachable = dropped.map_or(self.reachable, |event| event.resource_version());
            self.first += 1;
        }
    }

    /// What is older than the API server remembers goes when etcd has forgotten it, or when it gets too much.
    fn oldest_can_go(&self, compacted: u64) -> bool {
        let is_compacted = self.events.front().is_some_and(|event| event.resource_version() <= compacted);
        is_compacted || self.events.len() > self.window.most()
    }

    /// The lowest resource version from which the memory of an API server lets a watch start that has come so far.
    pub(crate) fn remembered(&self, known: u64) -> u64 {
        self.window.floor().min(known).max(self.reachable).max(self.forgotten)
    }

    /// The lowest resource version from which etcd lets a watch start, and whose state it can list.
    pub(crate) fn stored(&self, compacted: u64) -> u64 {
        self.reachable.max(self.forgotten).max(compacted)
    }

    /// Refuses new readers from before `revision`. Readers that are already open keep their place, as the watches
    /// of a real server survive a compaction.
    pub(crate) fn forget(&mut self, revision: u64) {
        self.forgotten = self.forgotten.max(revision);
    }

    /// Forgets everything, as a server does that starts anew at this revision. Readers from before lose their place.
    pub(crate) fn begin_anew(&mut self, revision: u64) {
        self.refill(revision);
        self.window.shrink_to_least();
    }

    /// Forgets everything, as a server does that lists the resource once more. Readers from before lose their place.
    pub(crate) fn refill(&mut self, revision: u64) {
        self.first = self.end() + 1;
        self.began = self.first;
        self.events.clear();
        self.window.empty(revision);
        self.forgotten = revision;
        self.reachable = revision;
    }

    /// The lowest resource version whose state can still be computed.
    pub(crate) fn reachable(&self) -> u64 {
        self.reachable
    }

    /// How many events a real server would let pile up for one watch.
    pub(crate) fn channel(&self, most: usize) -> u64 {
        self.window.channel(most)
    }

    /// The number that the next event will get.
    pub(crate) fn end(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    /// The number of the first event after a resource version.
    pub(crate) fn cursor_after(&self, resource_version: u64) -> u64 {
        let older = self.events.partition_point(|event| event.resource_version() <= resource_version);
        self.first + older as u64
    }

    /// Returns the events that a reader wants next, up to a resource version, unless it has fallen too far behind.
    /// `is_sent` tells which of them go out; where it is a matter of time, the others pile up nowhere.
    pub(crate) fn read(
        &self,
        reader: &Reader,
        up_to: u64,
        is_sent: impl Fn(&Event) -> bool,
    ) -> Result<Vec<Arc<Event>>, Lost> {
        if reader.joined < self.began {
            return Err(Lost::Anew);
        }
        let skip = reader.cursor.checked_sub(self.first).ok_or(Lost::TooSlow)?;
        let end = self.events.partition_point(|event| event.resource_version() <= up_to);
        let skip = usize::try_from(skip).map_err(|_| Lost::TooSlow)?.min(end);
        let joined = reader.joined.saturating_sub(self.first);
        let counts_from = usize::try_from(joined).map_or(end, |joined| joined.max(skip).min(end));
        let mut counted = self.events.range(counts_from..end);
        let room = usize::try_from(reader.patience.room).unwrap_or(usize::MAX);
        let without_room = match reader.patience.is_timed {
            false => counted.nth(room),
            true => counted.filter(|event| is_sent(event)).nth(room),
        };
        match without_room {
            Some(event) if !(reader.patience.is_timed && self.budget.spend(event.written)) => {
                Err(Lost::TooSlow)
            }
            _ => Ok(self.events.range(skip..end).cloned().collect()),
        }
    }

    /// Returns whether as many events wait for a reader as its channels hold, of which it has taken some: of those up to a
    /// resource version that count.
    pub(crate) fn is_full(
        &self,
        reader: &Reader,
        up_to: u64,
        taken: usize,
        counts: impl Fn(&Event) -> bool,
    ) -> bool {
        let waiting = reader.cursor.max(reader.joined).saturating_sub(self.first);
        let waiting = usize::try_from(waiting).unwrap_or(usize::MAX).min(self.events.len());
        let known = self.events.range(waiting..).take_while(|event| event.resource_version() <= up_to);
        let room = usize::try_from(reader.patience.room).unwrap_or(usize::MAX);
        known.filter(|event| counts(event)).take(room).count().saturating_add(taken) >= room
    }

    /// Goes through the events after a resource version, newest first.
    pub(crate) fn newest_first_after(&self, resource_version: u64) -> impl Iterator<Item = &Arc<Event>> {
        self.events.iter().rev().take_while(move |event| event.resource_version() > resource_version)
    }
}
