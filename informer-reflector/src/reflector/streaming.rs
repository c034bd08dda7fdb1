//! Streaming lists (KEP-3157): one request returns the existing objects, then a bookmark, and
//! continues as the watch.
//!
//! Note: some servers, proxies and fakes without streaming lists ignore the parameters and return an
//! ordinary watch, so the bookmark never arrives. client-go waits for the bookmark forever. This
//! reflector makes a paged list after a stream that stalls. A watch can resume only from the
//! bookmark's version, because the objects before the bookmark arrive in any order.

use std::time::Duration;

use futures::{StreamExt, stream};
use informer_core::{
    Bookmark, Cached, ListWatchError, RejectedKind, RejectedObject, ResourceVersion, WatchEvent,
    WatchOptions, WatchStream,
};
use tokio::time::{Instant, timeout, timeout_at};

use super::Reflector;
use super::list::{is_version_refused, watchable};
use super::listing::Listing;
use super::status::Health;
use super::step::{Request, Step};
use super::watch::{GRACE, MAX_WATCH_RESPONSE_WAIT, OpenWatch};

/// The time that each received object adds to the time left for a streaming list ([`Allowance`]).
// A stream with fewer than 200 objects a second can be an ordinary watch: no cluster changes
// objects of one type 200 times a second for long. It can also be a streaming list over a slow
// link. Then pages are better, because servers before 1.37 compress lists but not watches.
const ALLOWANCE_PER_OBJECT: Duration = Duration::from_millis(5);

/// The maximum time left for a streaming list is this factor times the time left at its start.
/// Received objects add time only up to this maximum ([`Allowance`]).
const MAX_ALLOWANCE_FACTOR: u32 = 3;

/// If this many streaming lists have failed since the last complete list, the next list is paged.
/// Failures with a known reason, such as an outage, do not count.
const MAX_BROKEN: u32 = 2;

enum StreamListError {
    Failed(ListWatchError),
    /// The server closed the stream without an error before the end of the list.
    Closed,
    /// The server did not send a usable streaming list, so a paged list is needed.
    Unsupported(ListWatchError),
}

/// The end of a streaming list: the resource version of the bookmark that ends the list, and the
/// events that follow the bookmark in its batch.
type InitialEnd<K> = (ResourceVersion, Vec<WatchEvent<K>>);

/// The time that is left for receiving a streaming list. When no time is left, the reflector lists
/// in pages.
struct Allowance {
    /// The initial value of `left`. Also the longest wait for the next data.
    pause: Duration,
    left: Duration,
    /// Whether received objects add time to `left`.
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

    fn add(&mut self, objects: usize) {
        if self.earns {
            let earned = ALLOWANCE_PER_OBJECT.saturating_mul(objects.try_into().unwrap_or(u32::MAX));
            self.left = self.left.saturating_add(earned).min(self.pause.saturating_mul(MAX_ALLOWANCE_FACTOR));
        }
    }

    /// Stops adding time for received objects, and limits the time left to its initial value. Must
    /// be called when the list contains an update or a deletion.
    fn changes_have_begun(&mut self) {
        // All existing objects have arrived, so the end of the list must follow.
        self.earns = false;
        self.left = self.left.min(self.pause);
    }
}

impl<K: Send + Sync + 'static> Reflector<K> {
    pub(super) fn may_stream(&self) -> bool {
        self.config.streaming_lists
            && self.lister_watcher.can_stream_lists()
            && self.config.server.may_stream(self.lister_watcher.resource())
    }

    /// Makes a streaming list, passes it to the store, and keeps the stream for the watch.
    pub(super) async fn stream_list(&mut self) -> Step {
        self.reporter.list_begins();
        match self.try_stream_list().await {
            Ok(open) => {
                self.open = Some(open);
                Step::Now(Request::Watch)
            }
            Err(StreamListError::Failed(error)) => self.after_broken_stream(error),
            Err(StreamListError::Closed) => self.after_closed_stream(),
            Err(StreamListError::Unsupported(error)) => self.disable_streaming(error),
        }
    }

    /// Continues with a paged list, and disables streaming lists of the resource for some time.
    /// Objects of the stream that the store already has stay there, and the paged list corrects
    /// them.
    fn disable_streaming(&self, error: ListWatchError) -> Step {
        self.config.server.disable_streams(self.lister_watcher.resource());
        Step::AtOnce(Request::Pages, error)
    }

    /// Returns the next step after the server closed a streaming list early: usually a retry after
    /// the first early end, paged lists after the second.
    fn after_closed_stream(&mut self) -> Step {
        let message = "the server closed a streaming list before its end";
        if std::mem::replace(&mut self.history.was_stream_closed, true) {
            // The server may consider the client too slow.
            return self.disable_streaming(ListWatchError::Protocol(message.into()));
        }
        // The server may be shutting down.
        self.after_broken_stream(ListWatchError::Interrupted(message.into()))
    }

    fn after_broken_stream(&mut self, error: ListWatchError) -> Step {
        if is_version_refused(&error) {
            self.log_expired(&error);
            let was_refused = std::mem::replace(&mut self.history.is_last_seen_refused, true);
            return if was_refused {
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
            // After an outage, another server process can answer, so an early end before the outage
            // no longer counts.
            self.history.was_stream_closed = false;
            return Step::Later(Request::List, error);
        }
        if error.is_forbidden() {
            // The user may have the permission to list but not to watch, so a paged list can
            // succeed. Streaming lists stay enabled, because permissions can change.
            return Step::AtOnce(Request::Pages, error);
        }
        let code = error.status().map(|status| status.code);
        let is_refused = error.is_bad_request() || matches!(code, Some(405 | 406 | 415 | 501));
        if is_refused || matches!(error, ListWatchError::Protocol(_)) {
            return self.disable_streaming(error);
        }
        self.history.broken_streams += 1;
        let is_enough = self.history.broken_streams >= MAX_BROKEN;
        Step::Later(if is_enough { Request::Pages } else { Request::List }, error)
    }

    async fn try_stream_list(&mut self) -> Result<OpenWatch<K>, StreamListError> {
        let lifetime = self.lifetime();
        let options = WatchOptions {
            resource_version: self.history.accepted_version(),
            timeout: lifetime,
            allow_bookmarks: true,
            send_initial_events: true,
        };
        // Random, so that many informers do not start paged lists at the same moment.
        let jitter = 1.0 + fastrand::f64() / 2.0;
        let pause = self.config.list_stall_timeout.mul_f64(jitter);
        let max_wait = self.config.list_stall_timeout.max(MAX_WATCH_RESPONSE_WAIT).mul_f64(jitter);
        let lister_watcher = std::sync::Arc::clone(&self.lister_watcher);
        let asked = Instant::now();
        // A server that does not respond within `max_wait` counts as unable to stream, not as
        // unavailable. So the timeout of `await_response` must be longer.
        let answer = self.await_response(max_wait.saturating_add(GRACE), lister_watcher.watch(options));
        let answer = timeout(max_wait, answer).await;
        let mut events = answer
            .map_err(|_| unsupported(format!("a streaming list did not begin within {max_wait:?}")))?
            .map_err(StreamListError::Failed)?;
        let opened = Instant::now();
        let mut listing = Listing::new();
        let initial =
            timeout_at(opened + lifetime + GRACE, self.receive_initial(&mut events, &mut listing, pause));
        let (version, rest) = match initial.await {
            // The response was an ordinary watch, or the list is so slow that a retry would fail
            // too.
            Err(_) => Err(stream_timed_out()),
            Ok(Err(StreamListError::Closed)) if asked.elapsed() >= lifetime => Err(stream_timed_out()),
            Ok(initial) => initial,
        }?;
        self.apply_list(listing, watchable(version));
        let events = if rest.is_empty() { events } else { stream::iter([Ok(rest)]).chain(events).boxed() };
        Ok(OpenWatch { events, opened, lifetime })
    }

    /// Receives the objects of a streaming list until its end.
    async fn receive_initial(
        &mut self,
        events: &mut WatchStream<K>,
        listing: &mut Listing<K>,
        pause: Duration,
    ) -> Result<InitialEnd<K>, StreamListError> {
        let mut allowance = Allowance::new(pause);
        loop {
            // Waiting for the store does not use up the allowance.
            self.wait_for_room().await;
            let since = Instant::now();
            let next = timeout(allowance.next(), events.next()).await.map_err(|_| {
                let received = listing.received();
                unsupported(format!("a streaming list stalled before its end, after {received} objects"))
            })?;
            allowance.spend(since.elapsed());
            let before = listing.received();
            let batch = next.ok_or(StreamListError::Closed)?.map_err(StreamListError::Failed)?;
            if let Some(end) = self.take_initial(batch, listing, &mut allowance)? {
                return Ok(end);
            }
            listing.check_for_repetitions().map_err(StreamListError::Unsupported)?;
            allowance.add(listing.received() - before);
            self.reporter.set(Health::Syncing { received: listing.received(), remaining: None });
            self.pause_in_bursts(listing.received() - before).await;
        }
    }

    /// Processes a batch of a streaming list. Returns the end of the list if the batch contains it.
    fn take_initial(
        &mut self,
        batch: Vec<WatchEvent<K>>,
        listing: &mut Listing<K>,
        allowance: &mut Allowance,
    ) -> Result<Option<InitialEnd<K>>, StreamListError> {
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
                // Servers before 1.34 can send changes before the end of the list.
                self.apply_part(std::mem::take(&mut objects), listing);
                listing.begin_changes();
                allowance.changes_have_begun();
            }
            match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => match self.ingest.take(object) {
                    Ok(object) => objects.push(object),
                    Err(rejected) => self.quarantine_listed(&rejected, listing),
                },
                WatchEvent::Deleted(object) => match self.ingest.key(object) {
                    Ok(key) => listing.remove(key),
                    Err(error) => return Err(unsupported(error.to_string())),
                },
                WatchEvent::Bookmark(Bookmark { resource_version, initial_events_end: true }) => {
                    self.apply_part(objects, listing);
                    return Ok(Some((resource_version, batch.collect())));
                }
                WatchEvent::Bookmark(_) => {}
                WatchEvent::Error(status) => return Err(StreamListError::Failed(status.into())),
                WatchEvent::RejectedObject { kind, object } => {
                    // The objects are passed to the store first, because the rejected object can be
                    // a later version of one of them.
                    self.apply_part(std::mem::take(&mut objects), listing);
                    self.take_malformed_initial(kind, object, listing)?;
                }
            }
        }
        self.apply_part(objects, listing);
        Ok(None)
    }

    fn take_malformed_initial(
        &mut self,
        kind: RejectedKind,
        object: RejectedObject,
        listing: &mut Listing<K>,
    ) -> Result<(), StreamListError> {
        match (kind, object.key.clone()) {
            (RejectedKind::Changed, _) => self.quarantine_listed(&object, listing),
            (RejectedKind::Deleted, Some(key)) => listing.remove(key),
            // I10: the event can't be attributed to an object, so a paged list is needed.
            (RejectedKind::Deleted | RejectedKind::Unknown, _) => {
                self.reporter.quarantine(&object);
                return Err(unsupported(object.error));
            }
        }
        Ok(())
    }

    /// Passes listed objects to the store, and then to `listing`, which shares unchanged objects
    /// with the store.
    pub(super) fn apply_part(&mut self, objects: Vec<Cached<K>>, listing: &mut Listing<K>) {
        if objects.is_empty() {
            return;
        }
        // The store can have these objects now, even if the list fails.
        self.history.has_newer_objects = true;
        listing.push(self.store.list_part(objects));
    }

    /// Adds a rejected object to the status, and to `listing`. The object then does not count as
    /// deleted.
    pub(super) fn quarantine_listed(&mut self, rejected: &RejectedObject, listing: &mut Listing<K>) {
        // I10: the object is reported, and its earlier version stays in the store.
        self.reporter.quarantine(rejected);
        listing.quarantine(rejected);
    }
}

fn stream_timed_out() -> StreamListError {
    unsupported("a streaming list did not end before its watch timed out".to_owned())
}

fn unsupported(error: String) -> StreamListError {
    StreamListError::Unsupported(ListWatchError::Protocol(error))
}
