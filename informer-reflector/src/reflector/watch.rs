//! Watching: from the last version on, until the server or the network ends it; and what each ending means.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures::{StreamExt, poll};
use informer_core::{
    Bookmark, Cached, Deleted, Delta, ListWatchError, OwnedObject, RejectedKind, RejectedObject,
    ResourceVersion, WatchEvent, WatchOptions, WatchStream,
};
use kube::Resource;
use tokio::time::{Instant, timeout_at};

use super::list::{is_stated, version_is_unavailable};
use super::outage::Outcome;
use super::status::Health;
use super::{Reflector, Request, Step};

/// A watch that ends sooner than this without an event or bookmark is a failure.
const VERY_SHORT: Duration = Duration::from_secs(1);

/// A watch that has lived this long is a success, even if nothing happens.
const SETTLED: Duration = Duration::from_secs(10);

/// How long the server may take to answer the request for a watch. It answers before there are events.
const MAX_ANSWER_TIME: Duration = Duration::from_secs(15);

/// How much later than agreed the server may end a watch, before the connection is taken for dead.
pub(super) const GRACE: Duration = Duration::from_secs(30);

/// After so many failures in a row it may be the version, or what comes next after it, that the server stumbles over.
const MAX_FAILURES: u32 = 3;

/// What went wrong with watches since one has [settled](SETTLED).
#[derive(Debug, Default)]
pub(super) struct WatchFailures {
    /// Failures since the last list that another may cure.
    pub(super) failures: u32,
    /// The version to watch from was refused as too old or too new. Once is the way of things; twice says that lists
    /// don't help, so they must not follow each other without a wait.
    refused: bool,
}

/// A watch that has been opened.
pub(super) struct OpenWatch<K> {
    pub(super) events: WatchStream<K>,
    pub(super) opened: Instant,
    /// When, counted from there, the server is to end it.
    pub(super) lifetime: Duration,
}

/// When something last came over the connection.
#[derive(Debug)]
pub(super) struct Pulse {
    heard: Instant,
    /// Nothing is read while the store has no room.
    is_listening: bool,
    /// How many connections in a row were replaced because nothing came.
    silences: u32,
}

impl Default for Pulse {
    fn default() -> Self {
        Self { heard: Instant::now(), is_listening: true, silences: 0 }
    }
}

impl Pulse {
    /// How long nothing may come, of which this much is configured.
    fn limit(&self, silence: Duration) -> Duration {
        if self.silences < MAX_QUICK_REPLACEMENTS { silence } else { silence.max(FIRST_BOOKMARK) }
    }

    /// Returns whether nothing came for this long.
    fn is_silent(&self, limit: Duration) -> bool {
        self.is_listening && self.heard.elapsed() >= limit
    }
}

/// After so many connections in a row on which nothing came, the next one is given until its first bookmark. Otherwise a
/// quiet watch would never live long enough to get one.
const MAX_QUICK_REPLACEMENTS: u32 = 2;

/// A server sends the first bookmark of a watch after two minutes, and the others once a minute (measured with 1.36).
const FIRST_BOOKMARK: Duration = Duration::from_secs(125);

/// What came in one piece over a watch.
type Piece<K> = Result<Vec<WatchEvent<K>>, ListWatchError>;

/// After so many events of which each was there at once, what they mean is handed on. That is enough for what each
/// handing on costs to be lost among them, and few enough to decode that nobody waits long for the first.
const GATHERED: usize = 100;

/// What is handed on in one go.
struct PendingApply<K> {
    changes: Vec<Delta<K>>,
    /// How many events it comes of, those included that are no changes.
    count: usize,
}

/// Why a watch is over.
enum Ending {
    /// The server closed it in good order.
    Closed,
    Failed(ListWatchError),
    /// An event came that can't be attributed to an object: only a list tells what is true now.
    Unattributable(String),
}

impl<K: Resource + Send + Sync + 'static> Reflector<K> {
    /// Watches from the last version on, and hands on what comes.
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
        let ending = self.follow_to_the_end(&mut watch).await;
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

    /// How long the next watch is to last. Spread over time, so that many watches that began together don't end together.
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

    /// Hands on what comes, until the watch is over, should be over, or has been silent for too long.
    async fn follow_to_the_end(&mut self, watch: &mut OpenWatch<K>) -> Ending {
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
                self.went_on(Outcome::Resumed);
            }
            if now >= end {
                return Ending::Closed;
            }
            if self.pulse.is_silent(silence) {
                self.log_silence(silence);
                let error = format!("nothing came for {silence:?}, not even a bookmark");
                return Ending::Failed(ListWatchError::Interrupted(error.into()));
            }
            // Where something was heard meanwhile, the silence has begun then, and it's not time yet.
            if now >= self.pulse.heard + silence {
                checked = now;
            }
        }
    }

    /// Counts and logs that a connection is given up. The log has one line where a server sends nothing at all.
    fn log_silence(&mut self, silence: Duration) {
        let resource = self.lister_watcher.description();
        self.pulse.silences = self.pulse.silences.saturating_add(1);
        if self.pulse.silences > 1 {
            tracing::debug!(resource, ?silence, "watch is silent again; replacing its connection");
        } else {
            tracing::info!(resource, ?silence, "watch is silent; replacing its connection");
        }
    }

    /// Hands on what comes, until the watch is over. Returns `None` where something came after silent connections, which
    /// shortens the time that the watch may be silent.
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
            // What has come with it is handed on with it; that costs little more than one event alone. There is nothing
            // to wait for from here until it has been handed on.
            while ending.is_none()
                && gathered.count < GATHERED
                && let Poll::Ready(next) = poll!(events.next())
            {
                ending = self.take_piece(next, &mut gathered);
            }
            let count = gathered.count;
            self.hand_on_changes(gathered);
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

    /// What to do after a watch has failed: watch again from the same version where that can be right, list again
    /// only where it can't, or where it has not helped.
    fn after_failure(&mut self, error: ListWatchError) -> Step {
        if version_is_unavailable(&error) {
            self.log_expired(&error);
            // Too old: a list of nothing older may bring a newer one. Too new, or too long for a request:
            // only the newest there is will do.
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
            // A resource that is not served has lost its objects with it.
            return Step::Later(Request::List, error);
        }
        if is_curable_by_list(&error) {
            self.setbacks.failures += 1;
        }
        let is_enough = self.setbacks.failures >= MAX_FAILURES;
        Step::Later(if is_enough { Request::List } else { self.resumption() }, error)
    }

    /// Watches go on where they ended. Where nobody knows where that was, deletions may have been missed.
    fn resumption(&self) -> Request {
        if self.history.last_seen.is_empty() { Request::List } else { Request::Watch }
    }

    /// Takes what came in one piece; returns whether the watch is over with it.
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

    fn hand_on_changes(&mut self, PendingApply { changes, count }: PendingApply<K>) {
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
                // An older one says what is known already, and to go back there would bring the events since again (I1).
                if !self.history.last_seen.is_newer_than(&resource_version) {
                    self.advance(&resource_version);
                }
                Ok(None)
            }
            WatchEvent::Error(status) => Err(Ending::Failed(status.into())),
            WatchEvent::RejectedObject { kind, object } => self.take_malformed(kind, object),
        }
    }

    fn take_object(
        &mut self,
        object: OwnedObject<K>,
        if_malformed: RejectedKind,
        delta: fn(Cached<K>) -> Delta<K>,
    ) -> Result<Option<Delta<K>>, Ending> {
        let object = match self.intake.take(object) {
            Ok(object) => object,
            Err(malformed) => return self.take_malformed(if_malformed, malformed),
        };
        let resource_version = object.resource_version().clone();
        self.reporter.taken_in(object.key());
        let delta = delta(object);
        if matches!(delta, Delta::Added(_)) {
            self.advance_unless_initial(&resource_version);
        } else {
            self.advance(&resource_version);
        }
        Ok(Some(delta))
    }

    /// I10: an object that can't be taken in is quarantined; that it is gone is news all the same.
    fn take_malformed(
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
            self.reporter.taken_in(&key);
            return Ok(Some(Delta::Deleted(Deleted::missed(key, None))));
        }
        self.advance_unless_initial(&object.resource_version);
        self.reporter.quarantine(&object);
        Ok(None)
    }

    /// Notes how far the watch has come, which is what it is for; without a version it stays where it was.
    fn advance(&mut self, resource_version: &ResourceVersion) {
        if is_stated(resource_version) {
            self.history.last_seen.clone_from(resource_version);
        }
    }

    /// The same for an object that may have existed before. A watch from no version starts with all of those, in no
    /// order, so that their versions don't tell how far it has come.
    fn advance_unless_initial(&mut self, resource_version: &ResourceVersion) {
        if !self.history.last_seen.is_empty() {
            self.advance(resource_version);
        }
    }
}

/// Returns whether a list may help where watching again doesn't: not where nobody is there, or where the server asks for
/// patience or credentials, which would only cost it a list on top.
fn is_curable_by_list(error: &ListWatchError) -> bool {
    let is_about_us = error.is_too_many_requests() || error.is_unauthorized() || error.is_forbidden();
    !is_about_us && !error.is_unavailable()
}
