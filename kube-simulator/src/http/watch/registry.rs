//! The open watch streams. Tests can count and close them, and inject bytes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::fault::PlacedInjection;
use crate::http::request::{RecordedRequest, RequestFilter};
use crate::kinds::ResourceKind;

/// A registry of all open watch streams.
#[derive(Debug)]
pub(crate) struct WatchRegistry {
    open: Mutex<Open>,
    /// Notified after each opening and closing of a stream.
    changed: watch::Sender<()>,
    bookmarks: Mutex<BookmarkRule>,
    /// The number of streams that ended because clients read too slowly, by group and resource.
    terminated: Mutex<BTreeMap<(String, String), u64>>,
}

/// The open streams, in the order of their opening.
#[derive(Debug, Default)]
struct Open {
    streams: BTreeMap<u64, OpenWatch>,
    /// During a shutdown that ends all watches: the time at which newly opened streams end. `None`
    /// at other times.
    end: Option<Instant>,
}

/// The settings of periodic bookmarks for all watches. An open watch reads them only when a
/// bookmark is due. A change of the interval therefore does not affect the bookmark that is already
/// scheduled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BookmarkRule {
    /// The time between two bookmarks, unless they are delayed.
    pub(crate) interval: Duration,
    /// Whether the time between two bookmarks is ten times `interval`.
    pub(crate) delayed: bool,
    /// Whether periodic bookmarks are silently dropped.
    pub(crate) lost: bool,
}

impl BookmarkRule {
    pub(super) fn interval(self) -> Duration {
        if self.delayed { self.interval.saturating_mul(10) } else { self.interval }
    }
}

/// An open stream: its request, and the channel through which the stream receives commands.
#[derive(Debug)]
struct OpenWatch {
    request: Arc<RecordedRequest>,
    commands: mpsc::UnboundedSender<Command>,
}

/// A command to an open stream.
#[derive(Debug)]
pub(super) enum Command {
    Inject(PlacedInjection),
    /// Ends the stream cleanly at this time.
    EndBy(Instant),
}

/// Keeps a stream in the registry until the registration is dropped.
#[derive(Debug)]
pub(crate) struct Registration {
    registry: Arc<WatchRegistry>,
    id: u64,
}

impl WatchRegistry {
    pub(crate) fn new(bookmark_interval: Duration) -> Self {
        let bookmarks = Mutex::new(BookmarkRule { interval: bookmark_interval, delayed: false, lost: false });
        Self {
            open: Mutex::default(),
            changed: watch::Sender::new(()),
            bookmarks,
            terminated: Mutex::default(),
        }
    }

    pub(crate) fn bookmarks(&self) -> BookmarkRule {
        *self.bookmarks.lock()
    }

    pub(crate) fn change_bookmarks(&self, change: impl FnOnce(&mut BookmarkRule)) {
        change(&mut self.bookmarks.lock());
    }

    pub(super) fn register(
        self: &Arc<Self>,
        request: Arc<RecordedRequest>,
    ) -> (Registration, mpsc::UnboundedReceiver<Command>) {
        let (commands, receiver) = mpsc::unbounded_channel();
        let mut open = self.open.lock();
        let id = open.streams.last_key_value().map_or(0, |(id, _)| id + 1);
        if let Some(end) = open.end {
            // Cannot fail: the receiver is a local variable.
            let _ = commands.send(Command::EndBy(end));
        }
        open.streams.insert(id, OpenWatch { request, commands });
        drop(open);
        self.changed.send_replace(());
        (Registration { registry: self.clone(), id }, receiver)
    }

    /// Counts the open streams whose requests match the filter.
    pub(crate) fn count(&self, filter: &RequestFilter) -> usize {
        self.open.lock().streams.values().filter(|watch| filter.matches(&watch.request)).count()
    }

    /// Sends an injection (bytes, an error or an end from a test) to all streams whose requests
    /// match the filter, and returns the number of these streams.
    pub(crate) fn inject(&self, filter: &RequestFilter, injection: &PlacedInjection) -> usize {
        let open = self.open.lock();
        let matching = open.streams.values().filter(|watch| filter.matches(&watch.request));
        let inject = || Command::Inject(injection.clone());
        matching.filter(|watch| watch.commands.send(inject()).is_ok()).count()
    }

    /// Ends all streams for a shutdown, in the order of their opening. The first stream ends after
    /// the duration `after`. The duration between the ends of two successive streams is `apart`.
    /// Streams that are opened during the shutdown end too.
    pub(crate) fn end_all(&self, after: Duration, apart: Duration) {
        let mut open = self.open.lock();
        let mut end = Instant::now() + after;
        for watch in open.streams.values() {
            // The command is lost only if the stream has already ended.
            let _ = watch.commands.send(Command::EndBy(end));
            end += apart;
        }
        // If this time has passed when a stream is opened, that stream ends at once.
        open.end = Some(end);
    }

    /// Resets this registry when the server restarts. An earlier [`end_all`](Self::end_all) no
    /// longer ends newly opened streams, and the counts in [`terminated`](Self::terminated) are
    /// zero again.
    pub(crate) fn reset(&self) {
        self.open.lock().end = None;
        self.terminated.lock().clear();
    }

    /// Returns the number of streams that ended because clients read too slowly, by group and
    /// resource.
    pub(crate) fn terminated(&self) -> BTreeMap<(String, String), u64> {
        self.terminated.lock().clone()
    }

    /// Waits until `enough` returns true for the number of matching streams.
    pub(crate) async fn wait_for(&self, filter: &RequestFilter, enough: impl Fn(usize) -> bool) {
        let mut changed = self.changed.subscribe();
        while !enough(self.count(filter)) {
            if changed.changed().await.is_err() {
                return;
            }
        }
    }
}

impl Registration {
    /// Returns the current settings of periodic bookmarks, which tests can change.
    pub(super) fn bookmarks(&self) -> BookmarkRule {
        self.registry.bookmarks()
    }

    /// Counts a stream that ended because its client read too slowly.
    pub(super) fn count_terminated(&self, kind: &ResourceKind) {
        let resource = (kind.group.clone(), kind.plural.clone());
        *self.registry.terminated.lock().entry(resource).or_default() += 1;
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.registry.open.lock().streams.remove(&self.id);
        self.registry.changed.send_replace(());
    }
}
