//! [`WatchStream`]: a running watch, which pulls events from the table's history and encodes them.
//!
//! A watch whose client does not read stops pulling. If such a watch lags too far behind, its
//! stream ends without an error, as on the real server. A real server has an event buffer for each
//! watch. The simulator has no such buffer, but computes whether the buffer would be full.
//!
//! Tests insert bytes, errors and ends among a stream's events. These are called injections.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::{Stream, stream};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::framing::Framing;
use super::registry::{BookmarkRule, Command, Registration};
use crate::api::selector::Filter;
use crate::api::status;
use crate::fault::{Content, Ending, PlacedInjection, WatchInjection};
use crate::storage::Object;
use crate::storage::{Event, Listener, Reader, ReaderError, Revision, Table};

/// The time from an extra bookmark to the deadline of a watch, apart from random shifts.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// A real server checks for due bookmarks at intervals of at least this time.
const TICK: Duration = Duration::from_secs(1);
/// A real server checks for due bookmarks at intervals of at most this factor times [`TICK`].
const MAX_TICK_FACTOR: f64 = 1.25;

/// Maximum time from now to a deadline. A longer time could overflow the clock.
const MAX_WAIT: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Returns the current time plus `wait`, or plus one year if `wait` is longer.
pub(super) fn deadline_after(wait: Duration) -> Instant {
    Instant::now() + wait.min(MAX_WAIT)
}

#[derive(Debug)]
pub(super) struct WatchStream {
    pub(super) table: Arc<Table>,
    /// The resource version that this watch's API server has reached now. A test can make one of
    /// several API servers lag. Watches of kinds without a watch cache never lag.
    pub(super) revision: Revision,
    /// Notifies this watch when its API server, a replica that can lag, may have received events.
    /// `None` if `revision` never lags.
    pub(super) progress: Option<Listener>,
    pub(super) filter: Filter,
    pub(super) framing: Framing,
    /// Notifies this watch after each write to the table.
    pub(super) changes: Listener,
    pub(super) commands: mpsc::UnboundedReceiver<Command>,
    pub(super) stop: CancellationToken,
    /// Cancelled when the served version of the resource is removed or replaced.
    pub(super) gone: CancellationToken,
    pub(super) deadline: Instant,
    pub(super) bookmarks: Option<Bookmarks>,
    pub(super) initial: Initial,
    pub(super) reader: Reader,
    /// The resource version after which the watch began. Only later events are sent. The version
    /// can be greater than the newest one in the storage.
    pub(super) after: u64,
    /// Events from the history that are not yet sent.
    pub(super) pending: VecDeque<Arc<Event>>,
    /// The resource version up to which the history has been read.
    pub(super) complete_to: u64,
    /// The injections that this watch has not sent yet. [`PlacedInjection::after`] determines their
    /// places among the events.
    pub(super) inbox: VecDeque<PlacedInjection>,
    /// Injections that replace events: the first entry replaces the next event that is sent.
    pub(super) substitutes: VecDeque<WatchInjection>,
    pub(super) ended: Option<Ending>,
    pub(super) registration: Registration,
}

/// The initial objects of a watch, which are sent before all events.
#[derive(Debug, Default)]
pub(super) struct Initial {
    pub(super) objects: std::vec::IntoIter<Arc<Object>>,
    pub(super) end_bookmark: Option<EndBookmark>,
}

/// The bookmark that ends the initial list of a streaming list.
#[derive(Debug)]
pub(super) struct EndBookmark {
    /// The resource version at which the initial objects were read.
    pub(super) version: u64,
    /// The earliest time at which the bookmark is sent. `None` if the bookmark directly follows the
    /// initial objects, as on current servers.
    pub(super) due: Option<Instant>,
}

/// The schedule of a watch's periodic bookmarks.
#[derive(Debug)]
pub(super) struct Bookmarks {
    interval: Duration,
    deadline: Instant,
    next: Instant,
    random: fastrand::Rng,
}

impl Bookmarks {
    pub(super) fn new(interval: Duration, deadline: Instant, random: fastrand::Rng) -> Self {
        let mut bookmarks = Self { interval, deadline, next: deadline, random };
        bookmarks.schedule(Duration::ZERO);
        bookmarks
    }

    /// Schedules the next bookmark after one interval, or shortly before the deadline if that is
    /// sooner. The wait is at least `min_wait` or a 60th of the interval, whichever is shorter.
    fn schedule(&mut self, min_wait: Duration) {
        let now = Instant::now();
        let regular = deadline_after(self.interval);
        let last = self.deadline.checked_sub(LAST_BOOKMARK).filter(|last| *last > now);
        let due = last.map_or(regular, |last| last.min(regular));
        // For intervals below a minute, the time between two checks is shorter in proportion.
        let tick = (self.interval / 60).min(TICK);
        // Random shifts imitate a real server, which checks for due bookmarks once per tick.
        let (earlier, later) =
            (tick.mul_f64(self.random.f64()), tick.mul_f64(self.random.f64() * MAX_TICK_FACTOR));
        let earliest = now + min_wait.min(tick);
        self.next = (due + later).checked_sub(earlier).map_or(earliest, |next| next.max(earliest));
    }

    /// Sets the interval to the interval of `rule`, and schedules the next bookmark.
    fn schedule_next(&mut self, rule: BookmarkRule) {
        self.interval = rule.interval();
        // A real server sends a watch at most one bookmark per check.
        self.schedule(TICK);
    }
}

impl WatchStream {
    pub(super) fn into_bytes(self) -> impl Stream<Item = std::io::Result<Bytes>> + Send {
        stream::unfold(self, |mut watch| async move { watch.next().await.map(|bytes| (bytes, watch)) })
    }

    /// Waits for the next bytes of the response body. Returns `None` at the end of the body, and an
    /// error if an injection breaks the connection.
    async fn next(&mut self) -> Option<std::io::Result<Bytes>> {
        loop {
            let mut buffer = BytesMut::new();
            self.fill(&mut buffer);
            if !buffer.is_empty() {
                return Some(Ok(buffer.freeze()));
            }
            match self.ended {
                Some(Ending::Close) => return None,
                Some(Ending::Abort) => {
                    self.ended = Some(Ending::Close);
                    return Some(Err(std::io::Error::from(std::io::ErrorKind::ConnectionAborted)));
                }
                None => self.wait().await,
            }
        }
    }

    /// Appends to `buffer` the bytes of the response body that can be sent now.
    fn fill(&mut self, buffer: &mut BytesMut) {
        self.fill_initial(buffer);
        if self.framing.is_full(buffer) || self.ended.is_some() {
            return;
        }
        self.skip_bookmark_when_full();
        // The cancellation is checked before events are pulled, so that all earlier writes that
        // this API server has reached are sent.
        let gone = self.gone.is_cancelled();
        self.fill_events(buffer);
        let now = Instant::now();
        self.end_initial(buffer, |end| end.due.is_some_and(|due| due <= now));
        self.check_deadlines(buffer);
        // With a full buffer, the history can have more events.
        if gone && self.pending.is_empty() && !self.framing.is_full(buffer) && self.ended.is_none() {
            self.ended = Some(Ending::Close);
        }
    }

    fn fill_initial(&mut self, buffer: &mut BytesMut) {
        for object in self.initial.objects.by_ref() {
            if self.filter.matches(&object) {
                self.framing.append_event(buffer, "ADDED", &object);
                if self.framing.is_full(buffer) {
                    return;
                }
            }
        }
        self.end_initial(buffer, |end| end.due.is_none());
    }

    /// Sends the bookmark that ends the initial events, if `is_due` returns true. The bookmark
    /// has at least the version of each event that was sent before.
    fn end_initial(&mut self, buffer: &mut BytesMut, is_due: impl FnOnce(&EndBookmark) -> bool) {
        if self.framing.is_full(buffer) || self.ended.is_some() || !self.pending.is_empty() {
            return;
        }
        if let Some(end) = self.initial.end_bookmark.take_if(|end| is_due(end)) {
            let version = end.version.max(self.complete_to);
            self.framing.append_bookmark(buffer, version, true);
        }
    }

    fn fill_events(&mut self, buffer: &mut BytesMut) {
        self.receive_commands();
        while !self.framing.is_full(buffer) && self.ended.is_none() {
            if self.pending.is_empty() {
                self.pull();
                // An injection from before one of the pulled events must precede this event. If no
                // event was pulled, an event from before the injection can still be unread.
                if self.receive_commands() && self.pending.is_empty() {
                    continue;
                }
            }
            let next = self.pending.pop_front();
            self.inject_before(next.as_ref().map_or(u64::MAX, |event| event.resource_version()), buffer);
            match next {
                Some(event) if self.framing.is_full(buffer) => self.pending.push_front(event),
                Some(event) if self.ended.is_none() => self.append(buffer, &event),
                _ => return,
            }
        }
    }

    /// Reads all new events from the history.
    fn pull(&mut self) {
        match self.table.read(&self.reader, &self.revision, |event| self.view(event).is_some()) {
            Ok((events, complete_to)) => {
                self.reader.cursor += events.len() as u64;
                self.complete_to = complete_to;
                self.pending.extend(events);
            }
            Err(error) => {
                // A real server counts only the ended watches that its watch cache served.
                if error == ReaderError::TooSlow && self.table.kind.is_cached() {
                    self.registration.count_terminated(&self.table.kind);
                }
                self.ended = Some(Ending::Close);
            }
        }
    }

    /// Skips a due bookmark that a real server would have dropped: the event buffer for this watch
    /// would have been full when the bookmark became due.
    fn skip_bookmark_when_full(&mut self) {
        let due = self.bookmarks.as_ref().map(|bookmarks| bookmarks.next);
        if due.is_none_or(|due| due > Instant::now() || self.has_room_at(due)) {
            return;
        }
        if let Some(bookmarks) = &mut self.bookmarks {
            bookmarks.schedule_next(self.registration.bookmarks());
        }
    }

    /// Returns whether a real server's event buffer for this watch would have had room at `time`.
    fn has_room_at(&self, time: Instant) -> bool {
        let waited = |event: &Event| event.written <= time && self.view(event).is_some();
        // Events from before the watch was opened do not occupy the buffer.
        let first = self.reader.cursor - self.pending.len() as u64;
        let replayed = usize::try_from(self.reader.joined.saturating_sub(first)).unwrap_or(usize::MAX);
        let unsent = self.pending.iter().skip(replayed).filter(|event| waited(event)).count();
        !self.table.is_full(&self.reader, &self.revision, unsent, waited)
    }

    fn append(&mut self, buffer: &mut BytesMut, event: &Event) {
        if event.resource_version() <= self.after {
            return;
        }
        // Selectors cannot be evaluated on a corrupt object. The watch ends if the server reads
        // this object from etcd for the watch.
        if event.is_corrupt && self.filter.is_read_from_etcd(&event.object) {
            self.framing.append_error(buffer, &status::store_read_error());
            self.ended = Some(Ending::Close);
            return;
        }
        let Some((kind, object)) = self.view(event) else {
            return;
        };
        match self.substitutes.pop_front() {
            Some(substitute) => {
                let mut event = BytesMut::new();
                self.framing.append_event(&mut event, kind, object);
                self.send(buffer, &substitute, &event);
            }
            None => self.framing.append_event(buffer, kind, object),
        }
    }

    /// Returns the type and the object of the event as the client of this watch receives it; `None`
    /// if the client does not receive the event.
    fn view<'e>(&self, event: &'e Event) -> Option<(&'static str, &'e Object)> {
        let before = event.previous.as_ref().is_some_and(|previous| self.filter.matches(previous));
        let now = !event.is_deletion && self.filter.matches(&event.object);
        match (before, now) {
            (false, false) => None,
            (false, true) => Some(("ADDED", &event.object)),
            (true, true) => Some(("MODIFIED", &event.object)),
            (true, false) if event.is_deletion => Some(("DELETED", &event.object)),
            (true, false) => Some(("DELETED", event.as_deleted(&self.table.kind))),
        }
    }

    /// Executes the commands that the simulator has sent to this watch: injections of a test, and
    /// new deadlines. Returns whether there was a command.
    fn receive_commands(&mut self) -> bool {
        let mut received = false;
        while let Ok(command) = self.commands.try_recv() {
            self.execute(command);
            received = true;
        }
        received
    }

    fn execute(&mut self, command: Command) {
        match command {
            Command::Inject(placed) => self.inbox.push_back(placed),
            Command::EndBy(time) => self.deadline = self.deadline.min(time),
        }
    }

    /// Appends to `buffer` the injections that precede the event with this resource version. An
    /// injection that replaces an event is not appended, but moved to `substitutes`.
    fn inject_before(&mut self, version: u64, buffer: &mut BytesMut) {
        while !self.framing.is_full(buffer) && self.inbox.front().is_some_and(|placed| placed.after < version)
        {
            let Some(placed) = self.inbox.pop_front() else {
                return;
            };
            if placed.injection.instead_of_event {
                self.substitutes.push_back(placed.injection);
            } else if self.ended.is_none() {
                self.send(buffer, &placed.injection, &[]);
            }
        }
    }

    /// Sends an injection. `event` is the encoded event that the injection replaces, or empty.
    fn send(&mut self, buffer: &mut BytesMut, injection: &WatchInjection, event: &[u8]) {
        match &injection.content {
            Content::Bytes(bytes) => buffer.extend_from_slice(bytes),
            Content::Error(status) => self.framing.append_error(buffer, status),
            Content::InvalidEvent => self.framing.append_invalid_event(buffer),
            Content::HalfOfEvent => buffer.extend_from_slice(&event[..event.len() / 2]),
        }
        self.ended = injection.ending;
    }

    fn check_deadlines(&mut self, buffer: &mut BytesMut) {
        if self.ended.is_some() {
            return;
        }
        let now = Instant::now();
        if now >= self.deadline || self.stop.is_cancelled() {
            self.ended = Some(Ending::Close);
            return;
        }
        if self.framing.is_full(buffer) {
            return;
        }
        // A bookmark covers all earlier events, so it is skipped unless the watch has caught up.
        let caught_up = self.pending.is_empty() && self.complete_to >= self.after;
        let announced = self.initial.end_bookmark.is_none();
        if let Some(bookmarks) = self.bookmarks.as_mut().filter(|bookmarks| now >= bookmarks.next) {
            let rule = self.registration.bookmarks();
            bookmarks.schedule_next(rule);
            if caught_up && announced && !rule.lost {
                self.framing.append_bookmark(buffer, self.complete_to, false);
            }
        }
    }

    /// Waits until the stream may have bytes to send, or must end.
    async fn wait(&mut self) {
        let next_bookmark = self.bookmarks.as_ref().map_or(self.deadline, |bookmarks| bookmarks.next);
        let end_bookmark = self.initial.end_bookmark.as_ref().and_then(|end| end.due);
        let alarm = self.deadline.min(next_bookmark).min(end_bookmark.unwrap_or(self.deadline));
        // The futures are polled in this order, so that runs are reproducible.
        tokio::select! {
            biased;
            () = self.changes.notified() => {}
            Some(command) = self.commands.recv() => self.execute(command),
            () = progress(self.progress.as_ref()) => {}
            () = self.stop.cancelled() => self.ended = Some(Ending::Close),
            // `fill` sends the remaining events and then ends the stream.
            () = self.gone.cancelled() => {}
            () = sleep_until(alarm) => {}
        }
    }
}

/// Waits for the next notification of `progress`. Without a listener, never returns, so that
/// `select!` waits for its other branches.
async fn progress(progress: Option<&Listener>) {
    match progress {
        Some(progress) => progress.notified().await,
        None => std::future::pending().await,
    }
}
