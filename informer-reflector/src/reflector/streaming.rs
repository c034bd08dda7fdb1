//! Streaming lists (KEP-3157): one request brings what exists, then the word that this was all, and goes on as the watch.
//!
//! Such a list spares the server, which sends it object by object from memory, and one of the two requests. The fact
//! people get wrong: servers, proxies and fakes that know nothing of it ignore the parameters and answer with an ordinary
//! watch, so that the end never comes. client-go waits for it for ever; here the stream has to keep coming, and where it
//! doesn't, a list in pages follows, and the resource is remembered as one that can't be streamed. The order of the
//! objects says nothing, so the only version to go on from is that of the end.

use std::time::Duration;

use futures::{StreamExt, stream};
use informer_core::{
    Bookmark, Cached, ListWatchError, ObjectKey, RejectedKind, RejectedObject, ResourceVersion, WatchEvent,
    WatchOptions, WatchStream,
};
use kube::Resource;
use tokio::time::{Instant, timeout, timeout_at};

use super::list::{stated, version_is_unavailable};
use super::listing::Listing;
use super::status::Health;
use super::watch::{GRACE, OpenWatch};
use super::{Reflector, Request, Step};

/// How much longer than the pause that is allowed a stream may take for each object it brings: one that brings fewer than
/// 200 a second of waiting for it has to end soon. An ordinary watch of a busy resource brings fewer, as no cluster goes
/// on creating objects of one type at that rate. So may a slow link, but there pages are mostly the better way anyway:
/// lists are compressed, and watches are not (before 1.37).
const PER_OBJECT: Duration = Duration::from_millis(5);

/// What objects have earned is kept up to so many times the pause: a burst at the beginning says nothing of what comes
/// an hour later.
const MAX_SAVED: u32 = 3;

/// After so many streams in a row that broke off, what exists is asked for in pages.
const MAX_BROKEN: u32 = 2;

/// Why there is no streaming list.
enum NoStream {
    Failed(ListWatchError),
    /// It was closed in good order before its end.
    Closed,
    /// What came was not a streaming list.
    Unsupported(ListWatchError),
}

/// How a batch left a streaming list.
enum Progress<K> {
    Going,
    /// All that exists has come; with the version of the end, and what followed it in the batch.
    Ended(ResourceVersion, Vec<WatchEvent<K>>),
}

/// How long the server may still take. Waiting for the next events counts, in which others have their turn and what comes is
/// decoded; what the store and its handlers take doesn't.
struct Allowance {
    pause: Duration,
    left: Duration,
    earns: bool,
}

impl Allowance {
    fn new(pause: Duration) -> Self {
        Self { pause, left: pause, earns: true }
    }

    fn next(&self) -> Duration {
        self.pause.min(self.left)
    }

    fn spend(&mut self, waited: Duration) {
        self.left = self.left.saturating_sub(waited);
    }

    fn earn(&mut self, objects: usize) {
        if self.earns {
            let earned = PER_OBJECT.saturating_mul(objects.try_into().unwrap_or(u32::MAX));
            self.left = self.left.saturating_add(earned).min(self.pause.saturating_mul(MAX_SAVED));
        }
    }

    /// All that existed has come, so the end must follow, whatever else happens.
    fn changes_have_begun(&mut self) {
        self.earns = false;
        self.left = self.left.min(self.pause);
    }
}

impl<K: Resource + Send + Sync + 'static> Reflector<K> {
    pub(super) fn may_stream(&self) -> bool {
        self.config.streaming_lists
            && self.lister_watcher.can_stream_lists()
            && self.config.server.may_stream(self.lister_watcher.resource())
    }

    /// Asks for everything in one stream, hands it on, and keeps the stream for the watch.
    pub(super) async fn stream_list(&mut self) -> Step {
        self.reporter.list_begins();
        match self.try_stream_list().await {
            Ok(open) => {
                self.open = Some(open);
                Step::Now(Request::Watch)
            }
            Err(NoStream::Failed(error)) => self.after_broken_stream(error),
            Err(NoStream::Closed) => self.after_closed_stream(),
            Err(NoStream::Unsupported(error)) => self.without_streams(error),
        }
    }

    /// What is known of a stream that has been given up stays known; the list in pages says what of it is true.
    fn without_streams(&self, error: ListWatchError) -> Step {
        self.config.server.shun_streams(self.lister_watcher.resource());
        Step::AtOnce(Request::Pages, error)
    }

    /// A server that shuts down closes a stream early as one does that takes it for an ordinary watch. But it has done so
    /// by the next try. One that has found its reader too slow may do so again; then pages are what such a reader needs.
    fn after_closed_stream(&mut self) -> Step {
        let message = "the server closed a streaming list before its end";
        if std::mem::replace(&mut self.history.was_stream_closed, true) {
            return self.without_streams(ListWatchError::Protocol(message.into()));
        }
        self.after_broken_stream(ListWatchError::Interrupted(message.into()))
    }

    fn after_broken_stream(&mut self, error: ListWatchError) -> Step {
        if version_is_unavailable(&error) {
            self.log_expired(&error);
            let was_unavailable = std::mem::replace(&mut self.history.unavailable, true);
            return if was_unavailable {
                Step::Later(Request::List, error)
            } else {
                Step::AtOnce(Request::List, error)
            };
        }
        let is_not_about_streams = error.is_unavailable()
            || error.is_too_many_requests()
            || error.is_unauthorized()
            || error.is_not_found();
        if is_not_about_streams {
            // By the time that it serves again it may be another server.
            self.history.was_stream_closed = false;
            return Step::Later(Request::List, error);
        }
        if error.is_forbidden() {
            // One may be allowed to list and not to watch; that can change, so it is not remembered.
            return Step::AtOnce(Request::Pages, error);
        }
        let code = error.status().map(|status| status.code);
        let is_refused = error.is_bad_request() || matches!(code, Some(405 | 406 | 415 | 501));
        if is_refused || matches!(error, ListWatchError::Protocol(_)) {
            return self.without_streams(error);
        }
        self.history.broken_streams += 1;
        let is_enough = self.history.broken_streams >= MAX_BROKEN;
        Step::Later(if is_enough { Request::Pages } else { Request::List }, error)
    }

    async fn try_stream_list(&mut self) -> Result<OpenWatch<K>, NoStream> {
        let lifetime = self.lifetime();
        let options = WatchOptions {
            resource_version: self.history.stream_version(),
            timeout: lifetime,
            allow_bookmarks: true,
            send_initial_events: true,
        };
        // Spread, so that many informers do not turn to pages at the same moment.
        let pause = self.config.list_stall_timeout.mul_f64(1.0 + fastrand::f64() / 2.0);
        let lister_watcher = std::sync::Arc::clone(&self.lister_watcher);
        let asked = Instant::now();
        // The pause is the shorter time in any case: whoever takes longer to begin is not away, but can't stream.
        let answer = self.ask(pause.saturating_add(GRACE), lister_watcher.watch(options));
        let answer = timeout(pause, answer).await;
        let mut events = answer
            .map_err(|_| unsupported(format!("no answer to a streaming list within {pause:?}")))?
            .map_err(NoStream::Failed)?;
        let opened = Instant::now();
        let mut listing = Listing::new();
        let initial =
            timeout_at(opened + lifetime + GRACE, self.receive_initial(&mut events, &mut listing, pause));
        let (version, rest) = match initial.await {
            // However much came in that time, it was no list; or one for which the next stream would be too short as well.
            Err(_) => Err(out_of_time()),
            Ok(Err(NoStream::Closed)) if asked.elapsed() >= lifetime => Err(out_of_time()),
            Ok(initial) => initial,
        }?;
        self.hand_on(listing, stated(version));
        let events = if rest.is_empty() { events } else { stream::iter([Ok(rest)]).chain(events).boxed() };
        Ok(OpenWatch { events, opened, lifetime })
    }

    /// Takes what comes until its end has come.
    async fn receive_initial(
        &mut self,
        events: &mut WatchStream<K>,
        listing: &mut Listing<K>,
        pause: Duration,
    ) -> Result<(ResourceVersion, Vec<WatchEvent<K>>), NoStream> {
        let mut allowance = Allowance::new(pause);
        loop {
            self.wait_for_room().await;
            let since = Instant::now();
            let next = timeout(allowance.next(), events.next()).await.map_err(|_| {
                unsupported(format!("a streaming list without end: {} objects so far", listing.received()))
            })?;
            allowance.spend(since.elapsed());
            let before = listing.received();
            let batch = next.ok_or(NoStream::Closed)?;
            let progress = self.take_initial(batch.map_err(NoStream::Failed)?, listing, &mut allowance)?;
            if let Progress::Ended(version, rest) = progress {
                return Ok((version, rest));
            }
            listing.check_for_repetitions().map_err(NoStream::Unsupported)?;
            allowance.earn(listing.received() - before);
            self.reporter.set(Health::Syncing { received: listing.received(), remaining: None });
            self.pause_in_bursts(listing.received() - before).await;
        }
    }

    fn take_initial(
        &mut self,
        batch: Vec<WatchEvent<K>>,
        listing: &mut Listing<K>,
        allowance: &mut Allowance,
    ) -> Result<Progress<K>, NoStream> {
        let mut objects = Vec::with_capacity(batch.len());
        let mut batch = batch.into_iter();
        while let Some(event) = batch.next() {
            let is_change = matches!(
                event,
                WatchEvent::Modified(_)
                    | WatchEvent::Deleted(_)
                    | WatchEvent::RejectedObject { kind: RejectedKind::Deleted, .. }
            );
            if is_change {
                // Servers before 1.34 told of changes before they told of the end.
                self.hand_on_part(std::mem::take(&mut objects), listing);
                listing.expect_changes();
                allowance.changes_have_begun();
            }
            match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => match self.intake.take(object) {
                    Ok(object) => objects.push(object),
                    Err(malformed) => self.quarantine_listed(&malformed, listing),
                },
                WatchEvent::Deleted(object) => match ObjectKey::of(&*object) {
                    Ok(key) => listing.remove(key),
                    Err(error) => return Err(unsupported(error.to_string())),
                },
                WatchEvent::Bookmark(Bookmark { resource_version, initial_events_end: true }) => {
                    self.hand_on_part(objects, listing);
                    return Ok(Progress::Ended(resource_version, batch.collect()));
                }
                WatchEvent::Bookmark(_) => {}
                WatchEvent::Error(status) => return Err(NoStream::Failed(status.into())),
                WatchEvent::RejectedObject { kind, object } => {
                    // It may be a later version of one of these.
                    self.hand_on_part(std::mem::take(&mut objects), listing);
                    self.take_malformed_initial(kind, object, listing)?;
                }
            }
        }
        self.hand_on_part(objects, listing);
        Ok(Progress::Going)
    }

    fn take_malformed_initial(
        &mut self,
        kind: RejectedKind,
        object: RejectedObject,
        listing: &mut Listing<K>,
    ) -> Result<(), NoStream> {
        match (kind, object.key.clone()) {
            (RejectedKind::Changed, _) => self.quarantine_listed(&object, listing),
            (RejectedKind::Deleted, Some(key)) => listing.remove(key),
            // I10: what happened to which object is not known; a list in pages says what is true.
            (RejectedKind::Deleted | RejectedKind::Unknown, _) => {
                self.reporter.quarantine(&object);
                return Err(unsupported(object.error));
            }
        }
        Ok(())
    }

    /// Returns the store what has come of a list, and keeps the handles for its end.
    pub(super) fn hand_on_part(&mut self, objects: Vec<Cached<K>>, listing: &mut Listing<K>) {
        if objects.is_empty() {
            return;
        }
        // It may be in the store from here on, even if nothing more comes.
        self.history.is_partly_known = true;
        listing.push(self.store.list_part(objects));
    }

    /// I10: it shows in the status at once, and the list doesn't take it for deleted.
    pub(super) fn quarantine_listed(&mut self, malformed: &RejectedObject, listing: &mut Listing<K>) {
        self.reporter.quarantine(malformed);
        listing.quarantine(malformed);
    }
}

fn out_of_time() -> NoStream {
    unsupported("a streaming list had no end when its time was up".to_owned())
}

fn unsupported(error: String) -> NoStream {
    NoStream::Unsupported(ListWatchError::Protocol(error))
}
