//! [`Log`]: the history of a source, and the position of each open watch in it.
//!
//! Watches read from the log, so a change is one entry, however many watches are open. Events that
//! only open watches receive, such as bookmarks and errors, are entries too, so that a watch
//! receives them after all earlier changes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use informer_core::{Cached, ListWatchError};

/// A change of an object, or an event for open watches.
pub(super) struct Entry<K> {
    /// The version of the source after this entry was added. Versions never decrease.
    version: u64,
    content: Content<K>,
}

/// The content of an [`Entry`]. Everything except a change is only for the watches that are open
/// when the entry is added.
pub(super) enum Content<K> {
    Change {
        kind: ChangeKind,
        object: Cached<K>,
        /// Whether the watches that are open at the time of the change send it. A watch that is
        /// opened later, from an earlier version, always sends it.
        seen: bool,
    },
    Bookmark,
    /// Ends the open watches without an error.
    Closed,
    /// Ends the open watches with an error.
    Failed(Arc<ListWatchError>),
}

#[derive(Clone, Copy)]
pub(super) enum ChangeKind {
    Added,
    Modified,
    Deleted,
}

pub(super) enum LogEvent<K> {
    Change(ChangeKind, Cached<K>),
    Bookmark(u64),
}

/// The result of reading the log for one watch.
pub(super) enum Reading<K> {
    /// The events that the watch has not sent yet, possibly none.
    Events(Vec<LogEvent<K>>),
    Closed,
    Failed(Arc<ListWatchError>),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ReaderId(u64);

/// The position of an open watch in the log.
struct Reader {
    /// The number of the entry that the watch reads next.
    cursor: u64,
    /// The number of the first entry that was added after the watch was opened.
    opened: u64,
    /// The version from which the client watches. The watch sends only later changes and bookmarks.
    /// The client can request a version that the source has not reached yet.
    after: u64,
    bookmarks: bool,
}

/// The history of a source. Entries are numbered without gaps.
pub(super) struct Log<K> {
    entries: VecDeque<Entry<K>>,
    /// The number of the oldest kept entry.
    first: u64,
    readers: BTreeMap<ReaderId, Reader>,
    next_reader: u64,
}

impl<K> Log<K> {
    pub(super) fn new() -> Self {
        Self { entries: VecDeque::new(), first: 0, readers: BTreeMap::new(), next_reader: 0 }
    }

    pub(super) fn push(&mut self, version: u64, content: Content<K>) {
        self.entries.push_back(Entry { version, content });
    }

    fn end(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    pub(super) fn open_after(&mut self, version: u64, bookmarks: bool) -> ReaderId {
        let older = self.entries.partition_point(|entry| entry.version <= version);
        let cursor = self.first + older as u64;
        let id = ReaderId(self.next_reader);
        self.next_reader += 1;
        self.readers.insert(id, Reader { cursor, opened: self.end(), after: version, bookmarks });
        id
    }

    pub(super) fn close(&mut self, id: ReaderId) {
        self.readers.remove(&id);
    }

    pub(super) fn readers(&self) -> usize {
        self.readers.len()
    }

    /// Returns all events since the last call for this watch, or the end of the watch.
    pub(super) fn read(&mut self, id: ReaderId) -> Reading<K> {
        let Some(reader) = self.readers.get_mut(&id) else { return Reading::Closed };
        let mut events = Vec::new();
        let unread = self.entries.range((reader.cursor - self.first) as usize..);
        for Entry { version, content } in unread {
            let is_open = reader.cursor >= reader.opened;
            let is_after = *version > reader.after;
            match content {
                Content::Change { kind, object, seen } if is_after && (*seen || !is_open) => {
                    events.push(LogEvent::Change(*kind, object.clone()));
                }
                Content::Bookmark if is_after && is_open && reader.bookmarks => {
                    events.push(LogEvent::Bookmark(*version));
                }
                // The earlier events are sent first; the next read returns the end.
                Content::Closed | Content::Failed(_) if is_open && !events.is_empty() => break,
                Content::Closed if is_open => return Reading::Closed,
                Content::Failed(error) if is_open => return Reading::Failed(Arc::clone(error)),
                _ => {}
            }
            reader.cursor += 1;
        }
        Reading::Events(events)
    }

    /// Removes and returns the entries that no open watch needs. Afterwards, the caller must refuse
    /// new watches from earlier versions.
    pub(super) fn trim(&mut self) -> Vec<Entry<K>> {
        let needed = self.readers.values().map(|reader| reader.cursor).min().unwrap_or(self.end());
        let count = (needed - self.first) as usize;
        self.first = needed;
        self.entries.drain(..count).collect()
    }
}
