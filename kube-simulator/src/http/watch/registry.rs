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

#[derive(Debug)]
pub(crate) struct WatchRegistry {
    open: Mutex<Open>,
    /// Notified after each opening and closing of a stream.
    changed: watch::Sender<()>,
    bookmarks: Mutex<BookmarkRule>,
    /// The number of streams that ended because clients read too slowly, by group and resource.
    /// Does not count kinds without a watch cache.
    terminated: Mutex<BTreeMap<(String, String), u64>>,
}

/// The open streams, in the order of their opening.
#[derive(Debug, Default)]
struct Open {
    streams: BTreeMap<u64, OpenWatch>,
    /// The time at which newly opened streams end, because the server is shutting down. `None` if
    /// new streams stay open.
    end: Option<Instant>,
}

/// The settings of periodic bookmarks. A change of the interval does not affect a bookmark that is
/// already scheduled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BookmarkRule {
    /// The configured time between two bookmarks of a watch.
    pub(crate) interval: Duration,
    /// Whether a test delays bookmarks: the time between two bookmarks is then ten times
    /// `interval`.
    pub(crate) delayed: bool,
    /// Whether a test drops all periodic bookmarks.
    pub(crate) lost: bool,
}

impl BookmarkRule {
    pub(super) fn interval(self) -> Duration {
        if self.delayed { self.interval.saturating_mul(10) } else { self.interval }
    }
}

#[derive(Debug)]
struct OpenWatch {
    request: Arc<RecordedRequest>,
    commands: mpsc::UnboundedSender<Command>,
}

#[derive(Debug)]
pub(super) enum Command {
    Inject(PlacedInjection),
    /// Ends the stream cleanly at this time, unless it ends earlier.
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

    pub(crate) fn count(&self, filter: &RequestFilter) -> usize {
        self.open.lock().streams.values().filter(|watch| filter.matches(&watch.request)).count()
    }

    /// Sends an injection to all matching streams, and returns their number.
    pub(crate) fn inject(&self, filter: &RequestFilter, injection: &PlacedInjection) -> usize {
        let open = self.open.lock();
        let matching = open.streams.values().filter(|watch| filter.matches(&watch.request));
        let inject = || Command::Inject(injection.clone());
        matching.filter(|watch| watch.commands.send(inject()).is_ok()).count()
    }

    /// Ends the open streams, oldest first: the first after a delay of `after`, and each further
    /// one `apart` later.
    ///
    /// Streams that open later also end, until [`keep_new`](Self::keep_new) is called.
    pub(crate) fn end_all(&self, after: Duration, apart: Duration) {
        let mut open = self.open.lock();
        let mut end = Instant::now() + after;
        for watch in open.streams.values() {
            // The command is lost only if the stream has already ended.
            let _ = watch.commands.send(Command::EndBy(end));
            end += apart;
        }
        open.end = Some(end);
    }

    /// Ends the effect of [`end_all`](Self::end_all) on new streams, so that new streams stay open.
    pub(crate) fn keep_new(&self) {
        self.open.lock().end = None;
    }

    /// Resets the registry for a restart of the server. New streams stay open again, even if
    /// [`end_all`](Self::end_all) was called before. The counts of [`terminated`](Self::terminated)
    /// streams become zero.
    pub(crate) fn reset(&self) {
        self.keep_new();
        self.terminated.lock().clear();
    }

    pub(crate) fn terminated(&self) -> BTreeMap<(String, String), u64> {
        self.terminated.lock().clone()
    }

    /// Waits until this number of matching streams is open.
    pub(crate) async fn wait_for(&self, filter: &RequestFilter, count: usize) {
        let mut changed = self.changed.subscribe();
        // Cannot fail: `self` owns the sender.
        let _ = changed.wait_for(|_| self.count(filter) == count).await;
    }
}

impl Registration {
    pub(super) fn bookmarks(&self) -> BookmarkRule {
        self.registry.bookmarks()
    }

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
