//! Runs a reflector's watch, and decides the next step after each kind of end.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures::{StreamExt, poll};
use informer_core::{
    Bookmark, Cached, Deleted, Delta, ListWatchError, OwnedObject, RejectedKind, RejectedObject,
    ResourceVersion, WatchEvent, WatchOptions, WatchStream,
};
use tokio::time::{Instant, timeout_at};

use super::Reflector;
use super::counts::EventCounts;
use super::list::{is_version_refused, is_watchable};
use super::outage::Outcome;
use super::status::Health;
use super::step::{Request, Step};

/// A watch that ends sooner than this is a failure if no new resource version has arrived.
const MIN_USEFUL_WATCH: Duration = Duration::from_secs(1);

/// A watch that has lasted this long is a success and resets the backoff, even without an event.
const STABLE_WATCH: Duration = Duration::from_secs(10);

/// The longest wait for the response to a watch request to begin. A streaming list waits at least
/// this long.
// An overloaded API server queues a request for up to a quarter of its `--request-timeout` (by
// default, for 15 seconds) before it responds with status 429.
pub(super) const MAX_WATCH_RESPONSE_WAIT: Duration = Duration::from_secs(20);

/// The time for which a watch can exceed its timeout before its connection counts as dead.
pub(super) const GRACE: Duration = Duration::from_secs(30);

/// The number of [failures](WatchFailures::failures) after which the reflector relists. If watches
/// fail again and again, the cause can be their resource version, or the next event after this
/// version. A relist avoids both causes.
const MAX_FAILURES: u32 = 3;

/// The recent failures of a reflector's watches. They are cleared when a watch has lasted ten
/// seconds.
#[derive(Debug, Default)]
pub(super) struct WatchFailures {
    /// The number of failed watches since the last complete list or [stable](STABLE_WATCH) watch.
    /// Counts only failures after which a relist [can help](can_relist_help).
    pub(super) failures: u32,
    /// Whether a watch has failed because of a [refused version](is_version_refused) since the last
    /// [stable](STABLE_WATCH) watch.
    refused: bool,
}

pub(super) struct OpenWatch<K> {
    pub(super) events: WatchStream<K>,
    /// The time at which the stream was opened; for a streaming list, before its objects arrived.
    pub(super) opened: Instant,
    /// The time after which the server ends the watch.
    pub(super) lifetime: Duration,
}

/// Events that arrived together, or the error of the watch.
type ReceivedEvents<K> = Result<Vec<WatchEvent<K>>, ListWatchError>;

/// The number of gathered events at which the reflector passes them to the store in one call.
const MAX_GATHERED: u64 = 100;

/// The changes that the next call of
/// [`ReflectorStore::apply`](informer_core::ReflectorStore::apply) passes to the store. Also counts
/// the events that were received for this call.
struct PendingApply<K> {
    changes: Vec<Delta<K>>,
    /// How many events of each type were received. Events that change no object, such as bookmarks,
    /// are included.
    events: EventCounts,
}

enum Ending {
    /// The server closed the watch without an error, or the watch has exceeded its timeout.
    Closed,
    Failed(ListWatchError),
    /// An event can't be attributed to an object, so a relist is needed.
    Unattributable(String),
}

impl<K: Send + Sync + 'static> Reflector<K> {
    /// Watches from the last resource version on, or continues the stream of a complete streaming
    /// list. Passes the changes to the store.
    pub(super) async fn watch(&mut self) -> Step {
        let mut watch = match self.open.take() {
            Some(open) => open,
            None => match self.open_watch().await {
                Ok(open) => open,
                Err(error) => return self.after_failure(error),
            },
        };
        let from = self.history.last_seen.clone();
        // The time of a streaming list before its end does not count as time of the watch.
        let began = Instant::now();
        self.silence.restart();
        self.reporter.count(|counts| counts.watches += 1);
        self.reporter.set(Health::Live { last_event: self.silence.last_event });
        let ending = self.receive_until_end(&mut watch, began).await;
        let was_useful = self.history.last_seen != from || began.elapsed() >= MIN_USEFUL_WATCH;
        match ending {
            Ending::Closed if was_useful && self.pace.take() => Step::Now(self.next_request()),
            // Watches advance or last a second, so a relist would not help.
            Ending::Closed if was_useful => {
                let error = "the server closes each watch after a short time";
                Step::Later(self.next_request(), ListWatchError::Interrupted(error.into()))
            }
            Ending::Failed(error @ ListWatchError::Interrupted(_)) if was_useful => {
                Step::AtOnce(self.next_request(), error)
            }
            Ending::Closed => {
                self.after_failure(ListWatchError::Interrupted("the server closed the watch early".into()))
            }
            Ending::Failed(error) => self.after_failure(error),
            Ending::Unattributable(message) => Step::Later(Request::List, ListWatchError::Protocol(message)),
        }
    }

    /// Returns the duration of the next watch. It is random, so that watches that began together
    /// don't end together.
    pub(super) fn lifetime(&self) -> Duration {
        self.config.watch_timeout.mul_f64(1.0 + fastrand::f64())
    }

    async fn open_watch(&mut self) -> Result<OpenWatch<K>, ListWatchError> {
        let lifetime = self.lifetime();
        let options = WatchOptions {
            resource_version: self.history.last_seen.clone(),
            timeout: lifetime,
            allow_bookmarks: true,
            send_initial_events: false,
        };
        let lister_watcher = Arc::clone(&self.lister_watcher);
        let events = self.await_response(MAX_WATCH_RESPONSE_WAIT, lister_watcher.watch(options)).await?;
        Ok(OpenWatch { events, opened: Instant::now(), lifetime })
    }

    /// Passes changes to the store until the watch ends, exceeds its timeout, or is silent for too
    /// long.
    async fn receive_until_end(&mut self, watch: &mut OpenWatch<K>, began: Instant) -> Ending {
        let end = watch.opened + watch.lifetime + GRACE;
        let mut stable_at = Some(began + STABLE_WATCH);
        let mut checked = began;
        loop {
            let silence = self.silence.limit(self.config.watch_idle_timeout);
            let next_check = (checked.max(self.silence.quiet_since) + silence).min(end);
            let resumed_at = self.recovery.as_ref().map(|_| began + MIN_USEFUL_WATCH);
            let deadline = [stable_at, resumed_at].into_iter().flatten().fold(next_check, Instant::min);
            match timeout_at(deadline, self.receive(&mut watch.events)).await {
                Ok(Some(ending)) => return ending,
                Ok(None) => continue,
                Err(_) => {}
            }
            let now = Instant::now();
            if stable_at.take_if(|at| *at <= now).is_some() {
                self.reset_backoff();
            }
            if resumed_at.is_some_and(|at| at <= now) {
                self.finish_recovery(Outcome::Resumed);
            }
            if now >= end {
                return Ending::Closed;
            }
            if self.silence.is_silent(silence) {
                self.log_silence(silence);
                let error = format!("no data arrived for {silence:?}, not even a bookmark");
                return Ending::Failed(ListWatchError::Interrupted(error.into()));
            }
            // If data has arrived meanwhile, the silence is measured from that time.
            if now >= self.silence.quiet_since + silence {
                checked = now;
            }
        }
    }

    /// Counts a silent connection, and logs it. Only the first in a row is logged at level info.
    fn log_silence(&mut self, silence: Duration) {
        let resource = self.lister_watcher.description();
        self.silence.silent_connections = self.silence.silent_connections.saturating_add(1);
        if self.silence.silent_connections > 1 {
            tracing::debug!(resource, ?silence, "watch is silent again; replacing its connection");
        } else {
            tracing::info!(resource, ?silence, "watch is silent; replacing its connection");
        }
    }

    /// Passes changes to the store until the watch ends, and returns how the watch ended.
    ///
    /// Returns `None` when data arrives for the first time after silent connections. The caller
    /// must then get the [silence limit](super::silence::SilenceDetector::limit) again, and call
    /// this method again.
    ///
    /// # Cancel safety
    /// No event is lost if the future is dropped.
    async fn receive(&mut self, events: &mut WatchStream<K>) -> Option<Ending> {
        loop {
            if let Some(room) = self.store.wait_for_room() {
                self.silence.is_reading = false;
                room.await;
            }
            if !std::mem::replace(&mut self.silence.is_reading, true) {
                self.silence.restart();
            }
            let first = events.next().await;
            let mut gathered = PendingApply { changes: Vec::new(), events: EventCounts::default() };
            let mut ending = self.take_received(first, &mut gathered);
            // If the watch has ended, the last event can be an ERROR, which is no data.
            let has_data = ending.is_none() || gathered.events.total() > 1;
            // Take further events that are available, without waiting, until there are at least
            // `MAX_GATHERED`. Passing them to the store together costs little more than passing a
            // single event.
            while ending.is_none()
                && gathered.events.total() < MAX_GATHERED
                && let Poll::Ready(next) = poll!(events.next())
            {
                ending = self.take_received(next, &mut gathered);
            }
            let count = gathered.events.total() as usize;
            self.apply_changes(gathered);
            let mut was_silent = false;
            if has_data {
                self.silence.received();
                was_silent = std::mem::take(&mut self.silence.silent_connections) > 0;
                self.reporter.set(Health::Live { last_event: self.silence.last_event });
            }
            if ending.is_some() {
                return ending;
            }
            self.pause_in_bursts(count).await;
            // After silent watches, the maximum time without data can be longer. Data has arrived
            // now, so the caller must call `SilenceDetector::limit`.
            if was_silent {
                return None;
            }
        }
    }

    fn after_failure(&mut self, error: ListWatchError) -> Step {
        if is_version_refused(&error) {
            self.log_expired(&error);
            // After an expired version, an ordinary relist returns a newer version. After a version
            // that is too new or too long, only a list of the newest state helps.
            self.history.is_last_seen_refused |= !error.is_expired();
            if std::mem::replace(&mut self.watch_failures.refused, true) {
                return Step::Later(Request::List, error);
            }
            return Step::AtOnce(Request::List, error);
        }
        if error.is_bad_request() {
            self.history.is_last_seen_refused = true;
            return Step::Later(Request::List, error);
        }
        if error.is_not_found() {
            // If the resource is no longer served, its objects have been deleted, and only a list
            // shows that.
            return Step::Later(Request::List, error);
        }
        if can_relist_help(&error) {
            self.watch_failures.failures += 1;
        }
        let is_enough = self.watch_failures.failures >= MAX_FAILURES;
        Step::Later(if is_enough { Request::List } else { self.next_request() }, error)
    }

    /// Returns the request after a watch, usually another watch. It is a list in two cases:
    /// - No resource version is known from which a watch can resume.
    /// - The last list [must be repeated](Self::repeats_incomplete_list).
    fn next_request(&self) -> Request {
        let needs_list = self.history.last_seen.is_empty() || self.repeats_incomplete_list();
        if needs_list { Request::List } else { Request::Watch }
    }

    /// Returns whether the last list must be repeated because it was incomplete. A list is
    /// incomplete if the name or namespace of an object in it can't be read. The list must be
    /// repeated when it is older than [`watch_timeout`](super::ReflectorConfig::watch_timeout).
    pub(super) fn repeats_incomplete_list(&self) -> bool {
        // I9: only a complete list shows which of the missing objects were deleted. The wait limits
        // the number of lists while an object stays unreadable.
        let listed_at = self.history.incomplete_list_at;
        listed_at.is_some_and(|listed_at| listed_at.elapsed() >= self.config.watch_timeout)
    }

    /// Adds the events in `received` to `gathered`. Returns how the watch ended, if it did.
    fn take_received(
        &mut self,
        received: Option<ReceivedEvents<K>>,
        gathered: &mut PendingApply<K>,
    ) -> Option<Ending> {
        let events = match received {
            None => return Some(Ending::Closed),
            Some(Err(error)) => return Some(Ending::Failed(error)),
            Some(Ok(events)) => events,
        };
        gathered.changes.reserve(events.len());
        for event in events {
            gathered.events.count(&event);
            match self.take_event(event) {
                Ok(change) => gathered.changes.extend(change),
                Err(ending) => return Some(ending),
            }
        }
        None
    }

    fn apply_changes(&mut self, PendingApply { changes, events }: PendingApply<K>) {
        if events.total() == 0 {
            return;
        }
        self.store.apply(changes, &self.history.last_seen);
        self.reporter.applied(&events, &self.history.last_seen);
    }

    fn take_event(&mut self, event: WatchEvent<K>) -> Result<Option<Delta<K>>, Ending> {
        match event {
            WatchEvent::Added(object) => self.take_object(object, RejectedKind::Changed, Delta::Added),
            WatchEvent::Modified(object) => self.take_object(object, RejectedKind::Changed, Delta::Updated),
            WatchEvent::Deleted(object) => self
                .take_object(object, RejectedKind::Deleted, |object| Delta::Deleted(Deleted::exact(object))),
            WatchEvent::Bookmark(Bookmark { resource_version, .. }) => {
                // I1: a bookmark older than the last version is ignored, because a watch that
                // resumes from the bookmark would repeat events.
                if !self.history.last_seen.is_newer_than(&resource_version) {
                    self.advance(&resource_version);
                }
                Ok(None)
            }
            WatchEvent::Error(status) => Err(Ending::Failed(status.into())),
            WatchEvent::RejectedObject { kind, object } => self.take_rejected(kind, object),
        }
    }

    fn take_object(
        &mut self,
        object: OwnedObject<K>,
        if_malformed: RejectedKind,
        delta: fn(Cached<K>) -> Delta<K>,
    ) -> Result<Option<Delta<K>>, Ending> {
        let object = match self.ingest.take(object) {
            Ok(object) => object,
            Err(rejected) => return self.take_rejected(if_malformed, rejected),
        };
        self.advance(object.resource_version());
        self.reporter.accepted(object.key());
        Ok(Some(delta(object)))
    }

    /// Handles an event whose object can't be decoded or transformed. Returns:
    /// - `Ok(Some(_))` if the object was deleted.
    /// - `Ok(None)` if the object exists. The store keeps its earlier version.
    /// - `Err(_)` if the event can't be attributed to an object. The watch then ends.
    fn take_rejected(
        &mut self,
        kind: RejectedKind,
        object: RejectedObject,
    ) -> Result<Option<Delta<K>>, Ending> {
        let Some(key) = object.key.clone().filter(|_| kind != RejectedKind::Unknown) else {
            self.reporter.quarantine(&object);
            return Err(Ending::Unattributable(object.error));
        };
        // I10: a rejected object does not end the watch. It is reported, unless it was deleted.
        self.advance(&object.resource_version);
        if kind == RejectedKind::Deleted {
            self.reporter.accepted(&key);
            return Ok(Some(Delta::Deleted(Deleted::missed(key, None))));
        }
        self.reporter.quarantine(&object);
        Ok(None)
    }

    /// Records the resource version from which the next watch resumes. Does nothing if
    /// `resource_version` is empty or `0`, or if the last list had no version.
    fn advance(&mut self, resource_version: &ResourceVersion) {
        // After a paged list without a version, the watch begins with all existing objects, and
        // does not report the deletions since the list. So `last_seen` stays empty, and a list
        // follows the watch (invariant I9).
        if is_watchable(resource_version) && !self.history.last_seen.is_empty() {
            self.history.last_seen.clone_from(resource_version);
        }
    }
}

/// Returns whether a relist can help after a watch failed with `error`. It can't if the server is
/// unavailable, or refuses the client (401, 403 or 429).
fn can_relist_help(error: &ListWatchError) -> bool {
    let is_about_client = error.is_too_many_requests() || error.is_unauthorized() || error.is_forbidden();
    !is_about_client && !error.is_unavailable()
}
