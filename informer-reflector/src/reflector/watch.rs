//! Watching: from the last version on, until the server or the network ends it; and what each ending means.

use std::time::Duration;

use futures::StreamExt;
use informer_core::{
    Bookmark, Cached, Deleted, Delta, ListWatchError, Malformed, MalformedKind, ResourceVersion, WatchEvent,
    WatchOptions,
};
use kube::Resource;
use tokio::time::Instant;

use super::status::Health;
use super::{Reflector, Step};

/// A watch that ends sooner than this without an event has not been of use, and the next must wait.
const VERY_SHORT: Duration = Duration::from_secs(1);

/// How much later than agreed the server may end a watch, before the connection is taken for dead.
const GRACE: Duration = Duration::from_secs(30);

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
        let at_least = self.config.watch_timeout;
        // Spread over time, so that many watches that began together don't end together.
        let timeout = at_least.mul_f64(1.0 + fastrand::f64());
        let opened = Instant::now();
        let mut useful = false;
        let ending =
            tokio::time::timeout(timeout + GRACE, self.watch_until_it_ends(timeout, &mut useful)).await;
        match ending.unwrap_or(Ending::Closed) {
            Ending::Closed if useful || opened.elapsed() >= VERY_SHORT => Step::Watch,
            Ending::Closed => Step::BackOff {
                error: ListWatchError::Interrupted("the server closed the watch at once".into()),
                then: Box::new(Step::Watch),
            },
            Ending::Failed(error) => self.after_failure(error, useful),
            Ending::Unattributable(message) => {
                Step::BackOff { error: ListWatchError::Protocol(message), then: Box::new(Step::List) }
            }
        }
    }

    /// What to do after a watch has failed: watch again from the same version where that can be right, list again
    /// only where it can't.
    fn after_failure(&self, error: ListWatchError, useful: bool) -> Step {
        if error.is_expired() {
            tracing::debug!("{}: the watch has expired; listing again", self.lister_watcher.description());
            return Step::List;
        }
        if useful && matches!(error, ListWatchError::Interrupted(_)) {
            return Step::Watch;
        }
        // A resource that is not served has lost its objects with it.
        let then = if error.is_not_found() { Step::List } else { Step::Watch };
        Step::BackOff { error, then: Box::new(then) }
    }

    async fn watch_until_it_ends(&mut self, timeout: Duration, useful: &mut bool) -> Ending {
        let options = WatchOptions {
            resource_version: self.history.last_seen.clone(),
            timeout,
            allow_bookmarks: true,
            send_initial_events: false,
        };
        let mut events = match self.lister_watcher.watch(options).await {
            Ok(events) => events,
            Err(error) => return Ending::Failed(error),
        };
        self.reporter.set(Health::Live { last_event: Instant::now() });
        while let Some(batch) = events.next().await {
            let ending = match batch {
                Ok(batch) => self.take_batch(batch),
                Err(error) => Some(Ending::Failed(error)),
            };
            match ending {
                None => {
                    *useful = true;
                    self.succeeded();
                    self.reporter.set(Health::Live { last_event: Instant::now() });
                }
                Some(ending) => return ending,
            }
        }
        Ending::Closed
    }

    /// Hands on what came in one piece; returns whether the watch is over with it.
    fn take_batch(&mut self, batch: Vec<WatchEvent<K>>) -> Option<Ending> {
        let mut changes = Vec::with_capacity(batch.len());
        let mut ending = None;
        for event in batch {
            match self.take_event(event) {
                Ok(change) => changes.extend(change),
                Err(end) => {
                    ending = Some(end);
                    break;
                }
            }
        }
        self.store.apply(changes, &self.history.last_seen);
        self.reporter.synced_to(&self.history.last_seen);
        ending
    }

    fn take_event(&mut self, event: WatchEvent<K>) -> Result<Option<Delta<K>>, Ending> {
        let change = match event {
            WatchEvent::Added(object) => self.take_object(object)?.map(Delta::Added),
            WatchEvent::Modified(object) => self.take_object(object)?.map(Delta::Updated),
            WatchEvent::Deleted(object) => return self.take_deleted(object),
            WatchEvent::Bookmark(Bookmark { resource_version, .. }) => {
                self.advance(&resource_version);
                None
            }
            WatchEvent::Error(status) => {
                return Err(Ending::Failed(ListWatchError::from(status)));
            }
            WatchEvent::Malformed { kind, object } => return self.take_malformed(kind, object),
        };
        Ok(change)
    }

    fn take_object(&mut self, object: K) -> Result<Option<Cached<K>>, Ending> {
        match self.intake.take(object) {
            Ok(object) => {
                self.advance(object.resource_version());
                self.reporter.taken_in(object.key());
                Ok(Some(object))
            }
            Err(malformed) => self.take_malformed(MalformedKind::Changed, malformed).map(|_| None),
        }
    }

    fn take_deleted(&mut self, object: K) -> Result<Option<Delta<K>>, Ending> {
        match self.intake.take(object) {
            Ok(object) => {
                self.advance(object.resource_version());
                self.reporter.taken_in(object.key());
                Ok(Some(Delta::Deleted(Deleted::exact(object))))
            }
            Err(malformed) => self.take_malformed(MalformedKind::Deleted, malformed),
        }
    }

    /// I10: an object that can't be taken in is set aside; that it is gone is news all the same.
    fn take_malformed(&mut self, kind: MalformedKind, object: Malformed) -> Result<Option<Delta<K>>, Ending> {
        let Some(key) = object.key.clone().filter(|_| kind != MalformedKind::Unknown) else {
            self.reporter.set_aside(&object);
            return Err(Ending::Unattributable(object.error));
        };
        self.advance(&object.resource_version);
        if kind == MalformedKind::Deleted {
            self.reporter.taken_in(&key);
            return Ok(Some(Delta::Deleted(Deleted::missed(key, None))));
        }
        self.reporter.set_aside(&object);
        Ok(None)
    }

    /// Notes how far the watch has come; a server that sends no version leaves it where it was.
    fn advance(&mut self, resource_version: &ResourceVersion) {
        if !resource_version.is_empty() {
            self.history.last_seen = resource_version.clone();
        }
    }
}
