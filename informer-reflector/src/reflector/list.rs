//! Paged lists: the resource version of each request, and the pages.
//!
//! Most rules for resource versions and page sizes are client-go's (`relistResourceVersion` in
//! tools/cache/reflector.go, tools/pager). Unlike in client-go, the objects of an initial list can
//! reach the store before the list is complete. If the list fails after that, the retry requests
//! the newest state: an older state would replace newer objects. For the same reason, if a list
//! had no resource version, the next list requests the newest state.
//!
//! Note: when a continue token expires, the server offers a token for the rest of its newest state.
//! The reflector does not use that token, because changes to objects of the earlier pages would be
//! lost.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use informer_core::{
    ContinueTokens, ListEnd, ListOptions, ListPart, ListWatchError, OwnedObject, RejectedObject,
    ResourceVersion, ResourceVersionMatch,
};
use tokio::time::{Instant, sleep, timeout};

use super::config::DEFAULT_PAGE_SIZE;
use super::listing::Listing;
use super::outage::Outcome;
use super::status::Health;
use super::step::{Request, Step};
use super::{MAX_RESPONSE_WAIT, Reflector};

/// A page is short if it has fewer items than this number and than the requested limit.
const SHORT_PAGE: usize = 50;

/// The reflector waits this long if [`Pace`](super::pace::Pace) does not allow the request for the
/// next page, and then tries again.
const PACE_WAIT: Duration = Duration::from_millis(250);

/// The results of earlier lists and watches. They determine the next list request: its resource
/// version, its page limit, and whether the list streams.
#[derive(Debug, Default)]
pub(super) struct ListHistory {
    /// The resource version of the last complete list or of a later watch event. It is empty before
    /// the first complete list, and if lists have no resource version.
    pub(super) last_seen: ResourceVersion,
    /// Whether a request failed possibly because of `last_seen`, for example with status 400, so
    /// that lists must not use this version. The next list then requests the newest state, without
    /// a version.
    pub(super) is_last_seen_refused: bool,
    /// Whether the store may contain newer objects than the server's watch cache: objects of a list
    /// that failed or had no resource version.
    pub(super) has_newer_objects: bool,
    /// The time of the last applied list, if an object in it had no readable name or namespace. The
    /// store may then contain deleted objects.
    pub(super) incomplete_list_at: Option<Instant>,
    /// The number of streaming lists that failed for an unknown reason. An outage, for example, is
    /// a known reason. Each complete list resets this number to 0.
    pub(super) broken_streams: u32,
    /// Whether the server closed a streaming list early, without an error. A second early end then
    /// disables streaming lists.
    pub(super) was_stream_closed: bool,
    /// Whether a list with `resourceVersion=0` arrived in pages. If so, the server has no watch
    /// cache, and pages reduce the load on its database.
    lacks_watch_cache: bool,
    /// Whether a list that did not stream was interrupted. If so, later such lists begin with a
    /// page limit: servers end requests after a minute, and a large list without pages can take
    /// longer.
    was_interrupted: bool,
}

impl ListHistory {
    /// Returns the resource version for a paged list. An empty version requests the newest state.
    fn resource_version(&self) -> ResourceVersion {
        // I1: a state from the server's cache can be older than the objects in the store.
        let accepts_any_state =
            self.last_seen.is_empty() && !self.is_last_seen_refused && !self.has_newer_objects;
        if accepts_any_state { "0".into() } else { self.accepted_version() }
    }

    /// Returns `last_seen`, or an empty version if the server refused `last_seen`. A list with an
    /// empty version requests the newest state.
    pub(super) fn accepted_version(&self) -> ResourceVersion {
        if self.is_last_seen_refused { ResourceVersion::empty() } else { self.last_seen.clone() }
    }

    fn first_page(&self, page_size: Option<u32>) -> ListOptions {
        let resource_version = self.resource_version();
        let from_cache = !self.is_last_seen_refused && !self.last_seen.is_empty();
        let is_unlimited = from_cache && !self.lacks_watch_cache && !self.was_interrupted;
        let limit = (!is_unlimited).then_some(DEFAULT_PAGE_SIZE);
        ListOptions {
            resource_version: Some(resource_version).filter(|version| !version.is_empty()),
            // Without this option, a server interprets a version with a limit as `Exact`, and
            // returns the state at this old version. A watch from the old version could expire
            // again.
            resource_version_match: from_cache.then_some(ResourceVersionMatch::NotOlderThan),
            limit: page_size.or(limit),
            ..ListOptions::default()
        }
    }
}

impl<K: Send + Sync + 'static> Reflector<K> {
    /// Makes a paged list. The store receives the complete list at the end, and can already add the
    /// objects of an initial list as they arrive.
    pub(super) async fn list(&mut self) -> Step {
        self.reporter.list_begins();
        match self.list_all_pages().await {
            Ok((listing, resource_version)) => {
                self.apply_list(listing, resource_version);
                Step::Now(Request::Watch)
            }
            Err(error) if self.can_be_due_to_version(&error) && !self.history.is_last_seen_refused => {
                // The retry requests the newest state, which is always available, so no wait is needed.
                self.log_expired(&error);
                self.history.is_last_seen_refused = true;
                Step::AtOnce(Request::Pages, error)
            }
            Err(error) => {
                self.history.was_interrupted |= matches!(error, ListWatchError::Interrupted(_));
                Step::Later(Request::List, error)
            }
        }
    }

    pub(super) fn log_expired(&mut self, error: &ListWatchError) {
        if error.is_expired() {
            self.reporter.expired(&self.history.last_seen);
        }
    }

    /// Returns whether the requested resource version can be the cause of the error.
    fn can_be_due_to_version(&self, error: &ListWatchError) -> bool {
        // After a change of servers, the new server can be unable to parse the old server's
        // version.
        is_version_refused(error) || (error.is_bad_request() && !self.history.last_seen.is_empty())
    }

    pub(super) fn apply_list(&mut self, listing: Listing<K>, resource_version: ResourceVersion) {
        let quarantined = listing.all_quarantined(self.reporter.quarantined_keys());
        let (replacement, count) = listing.into_replacement(resource_version.clone());
        self.history.incomplete_list_at = (!replacement.complete).then(Instant::now);
        // I9: `replace` changes the store in one step, and before the resource version in the
        // status, which is never ahead of the store.
        self.store.replace(replacement);
        self.reporter.synced_to(&resource_version);
        self.reporter.retain_quarantined(&quarantined);
        self.reporter.listed(count);
        self.silence.received();
        self.history.is_last_seen_refused = false;
        self.history.has_newer_objects = resource_version.is_empty();
        self.history.broken_streams = 0;
        self.history.was_stream_closed = false;
        self.history.last_seen = resource_version;
        self.watch_failures.failures = 0;
        self.finish_recovery(Outcome::Relisted);
    }

    async fn list_all_pages(&mut self) -> Result<(Listing<K>, ResourceVersion), ListWatchError> {
        let mut options = self.history.first_page(self.config.page_size);
        let accepts_any_state =
            options.resource_version.as_ref().is_some_and(|version| *version == "0".into());
        let (mut listing, mut tokens) = (Listing::new(), ContinueTokens::new());
        let mut is_second_try = false;
        loop {
            let (limit, is_continued) = (options.limit, options.continue_token.is_some());
            let before = listing.received();
            match self.list_page(options, &mut listing).await {
                Ok(ListEnd { continue_token: None, resource_version, .. }) => {
                    return Ok((listing, watchable(resource_version)));
                }
                Ok(ListEnd { continue_token: Some(token), .. }) => {
                    tokens.note(&token)?;
                    self.pace_short_page(&mut listing, before, limit).await?;
                    self.history.lacks_watch_cache |= accepts_any_state;
                    // The token contains the resource version, and servers reject a request with a
                    // token and a resource version.
                    options = ListOptions { limit, continue_token: Some(token), ..ListOptions::default() };
                }
                Err(error) if is_continued && error.is_expired() => {
                    // A server that returns pages even without a limit can return this error each
                    // time. So the second error is returned, and the reflector waits before the
                    // next list.
                    if std::mem::replace(&mut is_second_try, true) {
                        return Err(token_expired_twice(&error));
                    }
                    // The state of the first pages has expired. List again without a limit, so that
                    // the server returns the whole list in one page.
                    self.report_failure(&error, Request::Pages, Default::default());
                    self.reporter.count(|counts| counts.count_relist("expired"));
                    (listing, tokens) = (Listing::new(), ContinueTokens::new());
                    options = ListOptions { limit: None, ..self.history.first_page(None) };
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits after a short page ([`SHORT_PAGE`]) until [`Pace`](super::pace::Pace) allows the next
    /// request. `before` is the number of objects that had arrived before this page.
    ///
    /// # Errors
    /// Returns a [`Protocol`](ListWatchError::Protocol) error instead of waiting if the page is
    /// empty or the list mostly repeats objects.
    async fn pace_short_page(
        &mut self,
        listing: &mut Listing<K>,
        before: usize,
        limit: Option<u32>,
    ) -> Result<(), ListWatchError> {
        let count = listing.received() - before;
        let is_short = count < SHORT_PAGE
            && limit.is_none_or(|limit| u32::try_from(count).is_ok_and(|count| count < limit));
        // A faulty server can return short pages without end.
        while is_short && !self.pace.take() {
            if count == 0 {
                let error = "the server sent many pages without items, so the list may never end";
                return Err(ListWatchError::Protocol(error.into()));
            }
            listing.check_for_repetitions_now()?;
            sleep(PACE_WAIT).await;
        }
        Ok(())
    }

    async fn list_page(
        &mut self,
        options: ListOptions,
        listing: &mut Listing<K>,
    ) -> Result<ListEnd, ListWatchError> {
        let lister_watcher = Arc::clone(&self.lister_watcher);
        let mut parts = self.await_response(MAX_RESPONSE_WAIT, lister_watcher.list(options)).await?;
        while let Some(part) = timeout(MAX_RESPONSE_WAIT, parts.next()).await.map_err(|_| list_stalled())? {
            match part? {
                // Bytes have arrived, but no complete item.
                ListPart::Items(items) if items.is_empty() => {}
                ListPart::Items(items) => {
                    let count = items.len();
                    self.take_items(items, listing);
                    listing.check_for_repetitions()?;
                    self.report_progress(listing, None);
                    self.wait_for_room().await;
                    self.pause_in_bursts(count).await;
                }
                ListPart::End(end) => {
                    self.reporter.count(|counts| counts.pages += 1);
                    self.report_progress(listing, end.remaining_item_count);
                    return Ok(end);
                }
            }
        }
        Err(ListWatchError::Protocol("the list ended without its metadata".into()))
    }

    fn take_items(&mut self, items: Vec<Result<OwnedObject<K>, RejectedObject>>, listing: &mut Listing<K>) {
        let mut objects = Vec::with_capacity(items.len());
        for item in items {
            match item.and_then(|object| self.ingest.take(object)) {
                Ok(object) => objects.push(object),
                Err(rejected) => self.quarantine_listed(&rejected, listing),
            }
        }
        self.apply_part(objects, listing);
    }

    fn report_progress(&self, listing: &Listing<K>, remaining: Option<u64>) {
        self.reporter.set(Health::Syncing { received: listing.received(), remaining });
    }
}

/// Returns whether the request failed because of its resource version, or possibly because of it: the
/// version has expired, is newer than the server's state, or can have made the URL too long.
pub(super) fn is_version_refused(error: &ListWatchError) -> bool {
    error.is_expired()
        || error.is_too_large_resource_version()
        || matches!(error, ListWatchError::InvalidRequest(_))
}

/// Returns whether a watch can resume from this resource version. Returns `false` for an empty
/// version and for `0`: a watch from such a version would not report the deletions since the list.
pub(super) fn is_watchable(resource_version: &ResourceVersion) -> bool {
    // Some servers other than kube-apiserver return the version `0` for a list.
    !resource_version.is_empty() && *resource_version != "0".into()
}

/// Replaces the resource version `0` by an empty one, because no watch can resume from `0`. Returns
/// every other version unchanged.
pub(super) fn watchable(resource_version: ResourceVersion) -> ResourceVersion {
    if is_watchable(&resource_version) { resource_version } else { ResourceVersion::empty() }
}

fn list_stalled() -> ListWatchError {
    ListWatchError::Interrupted(format!("no data arrived for {MAX_RESPONSE_WAIT:?}").into())
}

/// Returns the error for a list in which a continue token has expired twice. The variant is
/// [`ListWatchError::Interrupted`], so the reflector waits before the next list.
fn token_expired_twice(error: &ListWatchError) -> ListWatchError {
    ListWatchError::Interrupted(
        format!("a continue token expired again, in a list that was requested without a limit: {error}")
            .into(),
    )
}
