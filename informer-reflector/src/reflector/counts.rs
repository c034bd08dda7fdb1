//! [`ReflectorCounts`]: the numbers of a reflector's requests, objects, events and failures.

use std::collections::BTreeMap;

use informer_core::{ListWatchError, WatchEvent};

/// The numbers of a reflector's requests, objects, events and failures since its creation. They
/// never decrease.
///
/// client-go: `MetricsProvider` of `tools/cache/reflector_metrics.go`, which no code of client-go calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReflectorCounts {
    /// The number of complete lists, streaming or paged.
    pub lists: u64,
    /// The number of pages that paged lists have received.
    pub pages: u64,
    /// The total number of objects in all lists that the reflector has completed.
    pub listed_objects: u64,
    /// The number of opened watches. A streaming list that continues as a watch is one of them.
    pub watches: u64,
    /// The numbers of events that watches have delivered.
    pub events: EventCounts,
    /// The numbers of failed requests and interrupted watches, by cause: `expired`, `unauthorized`,
    /// `forbidden`, `not-found`, `too-many-requests`, `unavailable`, `other-status`,
    /// `invalid-request`, `interrupted` or `protocol`.
    pub failures: BTreeMap<&'static str, u64>,
    /// The numbers of lists that began after the first one, by cause:
    /// - `expired`: the server does not have the requested resource version.
    /// - `fallback`: a streaming list failed, so a paged list follows.
    /// - `list-failed`: the previous list failed in another way.
    /// - `watch-failed`: a watch failed and cannot be resumed, or resuming has failed several times.
    /// - `incomplete-list`: a watch has ended, and the list before it contained an object whose name
    ///   or namespace could not be read.
    /// - `no-version`: a watch has ended, and can't resume because the last list had no resource
    ///   version.
    /// - `requested`: [`RelistHandle::request`](super::RelistHandle::request) was called, for example
    ///   because a verification found a difference.
    pub relists: BTreeMap<&'static str, u64>,
    /// The number of bytes in the bodies of lists and watches, before decompression; zero if the
    /// source does not [count them](informer_core::ListerWatcher::received_bytes).
    pub received_bytes: u64,
}

/// The numbers of events that watches have delivered, by type. Each event is in one number only: an
/// event whose object can't be decoded is in `other`, whatever its type.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventCounts {
    /// The number of `ADDED` events.
    pub added: u64,
    /// The number of `MODIFIED` events.
    pub modified: u64,
    /// The number of `DELETED` events.
    pub deleted: u64,
    /// The number of `BOOKMARK` events.
    pub bookmarks: u64,
    /// The number of `ERROR` events, of events of an unknown type, and of events of any type whose
    /// object can't be decoded.
    pub other: u64,
}

impl EventCounts {
    pub(super) fn count<K>(&mut self, event: &WatchEvent<K>) {
        *match event {
            WatchEvent::Added(_) => &mut self.added,
            WatchEvent::Modified(_) => &mut self.modified,
            WatchEvent::Deleted(_) => &mut self.deleted,
            WatchEvent::Bookmark(_) => &mut self.bookmarks,
            _ => &mut self.other,
        } += 1;
    }

    pub(super) fn total(&self) -> u64 {
        self.added + self.modified + self.deleted + self.bookmarks + self.other
    }

    pub(super) fn add(&mut self, more: &Self) {
        self.added += more.added;
        self.modified += more.modified;
        self.deleted += more.deleted;
        self.bookmarks += more.bookmarks;
        self.other += more.other;
    }
}

impl ReflectorCounts {
    pub(super) fn count_relist(&mut self, cause: &'static str) {
        *self.relists.entry(cause).or_default() += 1;
    }

    pub(super) fn count_failure(&mut self, error: &ListWatchError) {
        *self.failures.entry(cause(error)).or_default() += 1;
    }

    /// Returns the sum of these numbers and those of another reflector.
    #[must_use]
    pub fn plus(mut self, other: &Self) -> Self {
        self.lists += other.lists;
        self.pages += other.pages;
        self.listed_objects += other.listed_objects;
        self.watches += other.watches;
        self.events.add(&other.events);
        for (cause, count) in &other.failures {
            *self.failures.entry(cause).or_default() += count;
        }
        for (cause, count) in &other.relists {
            *self.relists.entry(cause).or_default() += count;
        }
        self.received_bytes += other.received_bytes;
        self
    }
}

/// Returns the cause under which [`ReflectorCounts::failures`] counts `error`, such as `expired`.
/// The tracing span of the failed request gets the same text.
pub(super) fn cause(error: &ListWatchError) -> &'static str {
    if error.is_expired() {
        "expired"
    } else if error.is_unauthorized() {
        "unauthorized"
    } else if error.is_forbidden() {
        "forbidden"
    } else if error.is_not_found() {
        "not-found"
    } else if error.is_too_many_requests() {
        "too-many-requests"
    } else if error.is_unavailable() {
        "unavailable"
    } else {
        match error {
            ListWatchError::InvalidRequest(_) => "invalid-request",
            ListWatchError::Interrupted(_) => "interrupted",
            ListWatchError::Protocol(_) => "protocol",
            _ => "other-status",
        }
    }
}
