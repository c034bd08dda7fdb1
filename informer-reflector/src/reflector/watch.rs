//! Watching: from the last version on, until the server or the network ends it; and what each ending means.

use std::time::Duration;

use futures::StreamExt;
use informer_core::{
    Bookmark, Cached, Deleted, Delta, ListWatchError, Malformed, MalformedKind, ResourceVersion, WatchEvent,
    WatchOptions, WatchStream,
};
use kube::Resource;
use tokio::time::{Instant, timeout, timeout_at};

use super::status::Health;
use super::{PATIENCE, Reflector, Request, Step, unanswered};

/// A watch that ends sooner than this without news has not been of use, and the next must wait.
const VERY_SHORT: Duration = Duration::from_secs(1);

/// A watch that has lived so long is a success, even if nothing happens.
const SETTLED: Duration = Duration::from_secs(10);

/// How much later than agreed the server may end a watch, before the connection is taken for dead.
const GRACE: Duration = Duration::from_secs(30);

/// After so many failures in a row it may be the version, or what comes next after it, that the server stumbles over.
const MOST_FAILURES: u32 = 3;

/// After so many events that came without a pause, other tasks of the thread get a turn, above all the one that works
/// them off. What was received and not yet worked off then stays small enough for caches, and for handlers that count
/// what they are owed.
const BURST: usize = 1_000;

/// What went wrong with watches since one was last of use.
#[derive(Debug, Default)]
pub(super) struct Setbacks {
    /// Failures since the last list that another may cure.
    pub(super) failures: u32,
    /// The version to watch from was refused as too old or too new. Once is the way of things; twice says that lists
    /// don't help, so they must not follow each other without a wait.
    refused: bool,
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
        // Spread over time, so that many watches that began together don't end together.
        let lifetime = self.config.watch_timeout.mul_f64(1.0 + fastrand::f64());
        let mut events = match self.open_watch(lifetime).await {
            Ok(events) => events,
            Err(error) => return self.after_failure(error),
        };
        let (from, opened) = (self.history.last_seen.clone(), Instant::now());
        self.reporter.set(Health::Live { last_event: opened });
        let mut ending = timeout_at(opened + SETTLED, self.follow(&mut events)).await;
        if ending.is_err() {
            self.succeeded();
            ending = timeout_at(opened + lifetime + GRACE, self.follow(&mut events)).await;
        }
        let was_useful = self.history.last_seen != from || opened.elapsed() >= VERY_SHORT;
        match ending.unwrap_or(Ending::Closed) {
            Ending::Closed | Ending::Failed(ListWatchError::Interrupted(_)) if was_useful => {
                Step::Now(self.resumption())
            }
            Ending::Closed => {
                self.after_failure(ListWatchError::Interrupted("the server closed the watch at once".into()))
            }
            Ending::Failed(error) => self.after_failure(error),
            Ending::Unattributable(message) => Step::Later(Request::List, ListWatchError::Protocol(message)),
        }
    }

    async fn open_watch(&self, lifetime: Duration) -> Result<WatchStream<K>, ListWatchError> {
        let options = WatchOptions {
            resource_version: self.history.last_seen.clone(),
            timeout: lifetime,
            allow_bookmarks: true,
            send_initial_events: false,
        };
        timeout(PATIENCE, self.lister_watcher.watch(options)).await.map_err(|_| unanswered())?
    }

    /// Hands on what comes, until the watch is over.
    ///
    /// # Cancel safety
    /// No event is lost if the future is dropped.
    async fn follow(&mut self, events: &mut WatchStream<K>) -> Ending {
        let mut in_burst = 0;
        while let Some(batch) = events.next().await {
            in_burst += batch.as_ref().map_or(0, Vec::len);
            let ending = match batch {
                Ok(batch) => self.take_batch(batch),
                Err(error) => Some(Ending::Failed(error)),
            };
            if let Some(ending) = ending {
                return ending;
            }
            self.reporter.set(Health::Live { last_event: Instant::now() });
            if let Some(room) = self.store.wait_for_room() {
                room.await;
            }
            if in_burst >= BURST {
                in_burst = 0;
                tokio::task::yield_now().await;
            }
        }
        Ending::Closed
    }

    /// What to do after a watch has failed: watch again from the same version where that can be right, list again
    /// only where it can't, or where it has not helped.
    fn after_failure(&mut self, error: ListWatchError) -> Step {
        if error.is_expired() || error.is_too_large_resource_version() {
            // Too old: a list of nothing older may bring a newer one. Too new: only the newest there is will do.
            self.history.unavailable |= error.is_too_large_resource_version();
            if std::mem::replace(&mut self.setbacks.refused, true) {
                return Step::Later(Request::List, error);
            }
            tracing::debug!("{}: {error}; listing again", self.lister_watcher.description());
            return Step::Now(Request::List);
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
        let is_enough = self.setbacks.failures >= MOST_FAILURES;
        Step::Later(if is_enough { Request::List } else { self.resumption() }, error)
    }

    /// Watches go on where they ended. Where nobody knows where that was, deletions may have been missed.
    fn resumption(&self) -> Request {
        if self.history.last_seen.is_empty() { Request::List } else { Request::Watch }
    }

    /// Hands on what came in one piece; returns whether the watch is over with it.
    fn take_batch(&mut self, batch: Vec<WatchEvent<K>>) -> Option<Ending> {
        let mut changes = Vec::with_capacity(batch.len());
        let mut ending = None;
        let before = self.history.last_seen.clone();
        for event in batch {
            match self.take_event(event) {
                Ok(change) => changes.extend(change),
                Err(end) => {
                    ending = Some(end);
                    break;
                }
            }
        }
        if self.history.last_seen != before {
            self.succeeded();
        }
        self.store.apply(changes, &self.history.last_seen);
        self.reporter.synced_to(&self.history.last_seen);
        ending
    }

    fn take_event(&mut self, event: WatchEvent<K>) -> Result<Option<Delta<K>>, Ending> {
        match event {
            WatchEvent::Added(object) => self.take_object(object, MalformedKind::Changed, Delta::Added),
            WatchEvent::Modified(object) => self.take_object(object, MalformedKind::Changed, Delta::Updated),
            WatchEvent::Deleted(object) => self
                .take_object(object, MalformedKind::Deleted, |object| Delta::Deleted(Deleted::exact(object))),
            WatchEvent::Bookmark(Bookmark { resource_version, .. }) => {
                self.advance(&resource_version);
                Ok(None)
            }
            WatchEvent::Error(status) => Err(Ending::Failed(status.into())),
            WatchEvent::Malformed { kind, object } => self.take_malformed(kind, object),
        }
    }

    fn take_object(
        &mut self,
        object: K,
        if_malformed: MalformedKind,
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

    /// I10: an object that can't be taken in is set aside; that it is gone is news all the same.
    fn take_malformed(&mut self, kind: MalformedKind, object: Malformed) -> Result<Option<Delta<K>>, Ending> {
        let Some(key) = object.key.clone().filter(|_| kind != MalformedKind::Unknown) else {
            self.reporter.set_aside(&object);
            return Err(Ending::Unattributable(object.error));
        };
        if kind == MalformedKind::Deleted {
            self.advance(&object.resource_version);
            self.reporter.taken_in(&key);
            return Ok(Some(Delta::Deleted(Deleted::missed(key, None))));
        }
        self.advance_unless_initial(&object.resource_version);
        self.reporter.set_aside(&object);
        Ok(None)
    }

    /// Notes how far the watch has come, which is what it is for; without a version it stays where it was.
    fn advance(&mut self, resource_version: &ResourceVersion) {
        if !resource_version.is_empty() {
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

/// Says whether a list may help where watching again doesn't: not where nobody was reached, or where the server asks
/// for patience or credentials, which would only cost it a list on top.
fn is_curable_by_list(error: &ListWatchError) -> bool {
    let is_about_us = error.is_too_many_requests() || error.is_unauthorized() || error.is_forbidden();
    !is_about_us && !matches!(error, ListWatchError::Unreachable(_))
}
