//! Watches: from the last version until the server or the network ends them, and the step after
//! each kind of end.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures::{StreamExt, poll};
use informer_core::{
    Bookmark, Cached, Deleted, Delta, ListWatchError, OwnedObject, RejectedKind, RejectedObject,
    ResourceVersion, WatchEvent, WatchOptions, WatchStream,
};
use tokio::time::{Instant, timeout_at};

use super::list::{is_stated, version_is_unavailable};
use super::outage::Outcome;
use super::status::Health;
use super::{Reflector, Request, Step};

/// A watch that ends sooner than this without an event or bookmark is a failure.
const VERY_SHORT: Duration = Duration::from_secs(1);

/// A watch that has lived this long is a success, even if nothing happens.
const SETTLED: Duration = Duration::from_secs(10);

/// The longest wait for the response to a watch request. The server responds before there are
/// events.
const MAX_ANSWER_TIME: Duration = Duration::from_secs(15);

/// The time after the timeout of a watch at which its connection counts as dead.
pub(super) const GRACE: Duration = Duration::from_secs(30);

/// The number of failures in a row after which the reflector relists, because the version or the
/// next event can be the cause.
const MAX_FAILURES: u32 = 3;

/// The failures since a watch last [settled](SETTLED).
#[derive(Debug, Default)]
pub(super) struct WatchFailures {
    /// Failures since the last list that a relist can cure.
    pub(super) failures: u32,
    /// Whether the server refused the version as too old or too new. Once is normal; after the
    /// second time lists don't help, so they must not follow each other without a wait.
    refused: bool,
}

/// An open watch.
pub(super) struct OpenWatch<K> {
    pub(super) events: WatchStream<K>,
    pub(super) opened: Instant,
    /// The time after which the server ends it.
    pub(super) lifetime: Duration,
}

/// The time of the last data on the connection.
#[derive(Debug)]
pub(super) struct Pulse {
    heard: Instant,
    /// `false` while the store has no room; nothing is read then.
    is_listening: bool,
    /// The number of silent connections in a row that were replaced.
    silences: u32,
}

impl Default for Pulse {
    fn default() -> Self {
        Self { heard: Instant::now(), is_listening: true, silences: 0 }
    }
}

impl Pulse {
    /// Returns the maximum time without data, given the configured one.
    fn limit(&self, silence: Duration) -> Duration {
        if self.silences < MAX_QUICK_REPLACEMENTS { silence } else { silence.max(FIRST_BOOKMARK) }
    }

    /// Returns whether no data arrived for this time.
    fn is_silent(&self, limit: Duration) -> bool {
        self.is_listening && self.heard.elapsed() >= limit
    }
}

/// The number of silent connections in a row after which the next one may wait for its first
/// bookmark. Otherwise, a quiet watch would never live long enough to receive one.
const MAX_QUICK_REPLACEMENTS: u32 = 2;

/// A server sends the first bookmark of a watch after two minutes, and the others once a minute
/// (measured with 1.36).
const FIRST_BOOKMARK: Duration = Duration::from_secs(125);

/// Events that arrived together.
type Piece<K> = Result<Vec<WatchEvent<K>>, ListWatchError>;

/// The number of immediately available events that are passed on in one call. The cost of the call
/// is then negligible, and the first event is not delayed for long.
const MAX_GATHERED: usize = 100;

/// The changes of the next call of [`ReflectorStore::apply`](informer_core::ReflectorStore::apply).
struct PendingApply<K> {
    changes: Vec<Delta<K>>,
    /// The number of events, including those without a change.
    count: usize,
}

/// The end of a watch.
enum Ending {
    /// The server closed it properly.
    Closed,
    Failed(ListWatchError),
    /// An event can't be attributed to an object, so a relist is needed.
    Unattributable(String),
}

impl<K: Send + Sync + 'static> Reflector<K> {
    /// Watches from the last version on, and passes the changes to the store.
    pub(super) async fn watch(&mut self) -> Step {
        let mut watch = match self.open.take() {
            Some(open) => open,
            None => match self.open_watch().await {
                Ok(open) => open,
                Err(error) => return self.after_failure(error),
            },
        };
        let from = self.history.last_seen.clone();
        self.pulse.heard = Instant::now();
        self.reporter.set(Health::Live { last_event: self.pulse.heard });
        let ending = self.follow_until_end(&mut watch).await;
        let was_useful = self.history.last_seen != from || watch.opened.elapsed() >= VERY_SHORT;
        match ending {
            Ending::Closed if was_useful && self.pace.take() => Step::Now(self.resumption()),
            Ending::Failed(error @ ListWatchError::Interrupted(_)) if was_useful => {
                Step::AtOnce(self.resumption(), error)
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
        let events = self.ask(MAX_ANSWER_TIME, lister_watcher.watch(options)).await?;
        Ok(OpenWatch { events, opened: Instant::now(), lifetime })
    }

    /// Passes on changes until the watch ends, its deadline is over, or it is silent for too long.
    async fn follow_until_end(&mut self, watch: &mut OpenWatch<K>) -> Ending {
        let end = watch.opened + watch.lifetime + GRACE;
        let mut settles = Some(watch.opened + SETTLED);
        let mut checked = watch.opened;
        loop {
            let silence = self.pulse.limit(self.config.watch_idle_timeout);
            let next_check = (checked.max(self.pulse.heard) + silence).min(end);
            let resumes = self.recovery.as_ref().map(|_| watch.opened + VERY_SHORT);
            let deadline = [settles, resumes].into_iter().flatten().fold(next_check, Instant::min);
            match timeout_at(deadline, self.follow(&mut watch.events)).await {
                Ok(Some(ending)) => return ending,
                Ok(None) => continue,
                Err(_) => {}
            }
            let now = Instant::now();
            if settles.take_if(|at| *at <= now).is_some() {
                self.settled();
            }
            if resumes.is_some_and(|at| at <= now) {
                self.finish_recovery(Outcome::Resumed);
            }
            if now >= end {
                return Ending::Closed;
            }
            if self.pulse.is_silent(silence) {
                self.log_silence(silence);
                let error = format!("nothing came for {silence:?}, not even a bookmark");
                return Ending::Failed(ListWatchError::Interrupted(error.into()));
            }
            // If data arrived meanwhile, the limit is not reached yet.
            if now >= self.pulse.heard + silence {
                checked = now;
            }
        }
    }

    /// Counts and logs a silent connection. For a server that never sends anything there is one
    /// line.
    fn log_silence(&mut self, silence: Duration) {
        let resource = self.lister_watcher.description();
        self.pulse.silences = self.pulse.silences.saturating_add(1);
        if self.pulse.silences > 1 {
            tracing::debug!(resource, ?silence, "watch is silent again; replacing its connection");
        } else {
            tracing::info!(resource, ?silence, "watch is silent; replacing its connection");
        }
    }

    /// Passes on changes until the watch ends. Returns `None` when data arrives after silent
    /// connections, which shortens the allowed silence.
    ///
    /// # Cancel safety
    /// No event is lost if the future is dropped.
    async fn follow(&mut self, events: &mut WatchStream<K>) -> Option<Ending> {
        loop {
            if let Some(room) = self.store.wait_for_room() {
                self.pulse.is_listening = false;
                room.await;
            }
            if !std::mem::replace(&mut self.pulse.is_listening, true) {
                self.pulse.heard = Instant::now();
            }
            let first = events.next().await;
            let mut gathered = PendingApply { changes: Vec::new(), count: 0 };
            let mut ending = self.take_piece(first, &mut gathered);
            // Takes all available events without waiting; passing them on together costs little
            // more than one event.
            while ending.is_none()
                && gathered.count < MAX_GATHERED
                && let Poll::Ready(next) = poll!(events.next())
            {
                ending = self.take_piece(next, &mut gathered);
            }
            let count = gathered.count;
            self.apply_changes(gathered);
            if ending.is_some() {
                return ending;
            }
            self.pulse.heard = Instant::now();
            self.reporter.set(Health::Live { last_event: self.pulse.heard });
            self.pause_in_bursts(count).await;
            if std::mem::take(&mut self.pulse.silences) > 0 {
                return None;
            }
        }
    }

    /// Returns the step after a failed watch: resume if possible; relist if not, or if resuming has
    /// not helped.
    fn after_failure(&mut self, error: ListWatchError) -> Step {
        if version_is_unavailable(&error) {
            self.log_expired(&error);
            // An expired version: a list of a not older state returns a newer version. A version
            // that is too new or too long: only the newest state helps.
            self.history.unavailable |= !error.is_expired();
            if std::mem::replace(&mut self.setbacks.refused, true) {
                return Step::Later(Request::List, error);
            }
            return Step::AtOnce(Request::List, error);
        }
        if error.is_bad_request() {
            self.history.unavailable = true;
            return Step::Later(Request::List, error);
        }
        if error.is_not_found() {
            // The objects of a resource that is not served have been deleted.
            return Step::Later(Request::List, error);
        }
        if is_curable_by_list(&error) {
            self.setbacks.failures += 1;
        }
        let is_enough = self.setbacks.failures >= MAX_FAILURES;
        Step::Later(if is_enough { Request::List } else { self.resumption() }, error)
    }

    /// Returns the request after the end of a watch: resume, or list if there is no version to
    /// resume from.
    fn resumption(&self) -> Request {
        if self.history.last_seen.is_empty() { Request::List } else { Request::Watch }
    }

    /// Takes events that arrived together. Returns the end of the watch if they end it.
    fn take_piece(&mut self, piece: Option<Piece<K>>, gathered: &mut PendingApply<K>) -> Option<Ending> {
        let events = match piece {
            None => return Some(Ending::Closed),
            Some(Err(error)) => return Some(Ending::Failed(error)),
            Some(Ok(events)) => events,
        };
        gathered.count += events.len();
        gathered.changes.reserve(events.len());
        for event in events {
            match self.take_event(event) {
                Ok(change) => gathered.changes.extend(change),
                Err(ending) => return Some(ending),
            }
        }
        None
    }

    fn apply_changes(&mut self, PendingApply { changes, count }: PendingApply<K>) {
        if count == 0 {
            return;
        }
        self.store.apply(changes, &self.history.last_seen);
        self.reporter.synced_to(&self.history.last_seen);
    }

    fn take_event(&mut self, event: WatchEvent<K>) -> Result<Option<Delta<K>>, Ending> {
        match event {
            WatchEvent::Added(object) => self.take_object(object, RejectedKind::Changed, Delta::Added),
            WatchEvent::Modified(object) => self.take_object(object, RejectedKind::Changed, Delta::Updated),
            WatchEvent::Deleted(object) => self
                .take_object(object, RejectedKind::Deleted, |object| Delta::Deleted(Deleted::exact(object))),
            WatchEvent::Bookmark(Bookmark { resource_version, .. }) => {
                // I1: after an older bookmark, a resumed watch would repeat events.
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
        let resource_version = object.resource_version().clone();
        self.reporter.accepted(object.key());
        let delta = delta(object);
        if matches!(delta, Delta::Added(_)) {
            self.advance_unless_initial(&resource_version);
        } else {
            self.advance(&resource_version);
        }
        Ok(Some(delta))
    }

    /// I10: quarantines an undecodable object. Its deletion still is a change.
    fn take_rejected(
        &mut self,
        kind: RejectedKind,
        object: RejectedObject,
    ) -> Result<Option<Delta<K>>, Ending> {
        let Some(key) = object.key.clone().filter(|_| kind != RejectedKind::Unknown) else {
            self.reporter.quarantine(&object);
            return Err(Ending::Unattributable(object.error));
        };
        if kind == RejectedKind::Deleted {
            self.advance(&object.resource_version);
            self.reporter.accepted(&key);
            return Ok(Some(Delta::Deleted(Deleted::missed(key, None))));
        }
        self.advance_unless_initial(&object.resource_version);
        self.reporter.quarantine(&object);
        Ok(None)
    }

    /// Sets the last version, unless `resource_version` is empty.
    fn advance(&mut self, resource_version: &ResourceVersion) {
        if is_stated(resource_version) {
            self.history.last_seen.clone_from(resource_version);
        }
    }

    /// The same for an added object. A watch without a version starts with all existing objects in
    /// any order, so their versions must be ignored.
    fn advance_unless_initial(&mut self, resource_version: &ResourceVersion) {
        if !self.history.last_seen.is_empty() {
            self.advance(resource_version);
        }
    }
}

/// Returns whether a relist can help if resuming does not: not if the server is unavailable, or
/// requests fewer requests or other credentials.
fn is_curable_by_list(error: &ListWatchError) -> bool {
    let is_about_client = error.is_too_many_requests() || error.is_unauthorized() || error.is_forbidden();
    !is_about_client && !error.is_unavailable()
}
