//! Listing: which state to ask for, page by page, until the whole of it is there.
//!
//! The rules for resource versions and page sizes are client-go's (`relistResourceVersion` in tools/cache/reflector.go,
//! tools/pager). The first list takes what the server has at hand, which spares its database; later ones ask for
//! nothing older than what was seen, so that time doesn't run backwards. Unlike in client-go, a first list that broke off
//! has already been handed on as far as it came, so the next one asks for the newest state.
//!
//! The fact people get wrong: a continue token expires, and the server then offers another, for the rest in its newest
//! state. That is not used: the pages before would be of an older state, and what has changed in them since would never
//! be heard of. All is asked for again, in one piece; once, because there are servers that page unasked.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use informer_core::{
    ContinueTokens, ListEnd, ListOptions, ListPart, ListWatchError, OwnedObject, RejectedObject,
    ResourceVersion, ResourceVersionMatch,
};
use kube::Resource;
use tokio::time::{sleep, timeout};

use super::config::DEFAULT_PAGE_SIZE;
use super::listing::Listing;
use super::outage::Outcome;
use super::status::Health;
use super::{PATIENCE, Reflector, Request, Step};

/// A page with fewer items is short, unless the reflector asked for no more.
const SHORT_PAGE: usize = 50;

/// How long a short page waits until it looks again whether the pace allows it.
const PACE_WAIT: Duration = Duration::from_millis(250);

/// What lists have taught about the server and the state it can give.
#[derive(Debug, Default)]
pub(super) struct ListHistory {
    /// The version of the last complete list or later event; empty before the first list, and where the server gives
    /// lists no version.
    pub(super) last_seen: ResourceVersion,
    /// The version to ask for is not to be had: too old, or newer than the server.
    pub(super) unavailable: bool,
    /// Part of a list has been handed on, and its end has not. Where nothing else tells how new that is, only the newest
    /// state is sure not to be older (I1).
    pub(super) is_partly_known: bool,
    /// Streaming lists in a row that broke off.
    pub(super) broken_streams: u32,
    /// One of them was closed in good order.
    pub(super) was_stream_closed: bool,
    /// A list from memory came in pages, so there is no memory, and pages spare the database.
    pages_from_memory: bool,
    /// A list in one piece broke off; servers end what takes them longer than a minute. In pages it may be had.
    broke_off: bool,
}

impl ListHistory {
    /// The version to ask for in pages.
    fn resource_version(&self) -> ResourceVersion {
        if self.unavailable || (self.last_seen.is_empty() && self.is_partly_known) {
            ResourceVersion::empty()
        } else if self.last_seen.is_empty() {
            "0".into()
        } else {
            self.last_seen.clone()
        }
    }

    /// The version to ask for in a stream: the newest where none is known, because it costs the server no more.
    pub(super) fn stream_version(&self) -> ResourceVersion {
        if self.unavailable { ResourceVersion::empty() } else { self.last_seen.clone() }
    }

    fn first_page(&self, page_size: Option<u32>) -> ListOptions {
        let resource_version = self.resource_version();
        let from_memory = !self.unavailable && !self.last_seen.is_empty();
        let in_one_piece = from_memory && !self.pages_from_memory && !self.broke_off;
        let limit = (!in_one_piece).then_some(DEFAULT_PAGE_SIZE);
        ListOptions {
            resource_version: Some(resource_version).filter(|version| !version.is_empty()),
            // Without a word on it, a server takes a version together with a limit to mean the state at exactly that
            // version; a watch from there would expire again, and so on.
            resource_version_match: from_memory.then_some(ResourceVersionMatch::NotOlderThan),
            limit: page_size.or(limit),
            ..ListOptions::default()
        }
    }
}

impl<K: Resource + Send + Sync + 'static> Reflector<K> {
    /// Lists everything in pages and hands it on.
    pub(super) async fn list(&mut self) -> Step {
        self.reporter.list_begins();
        match self.list_all_pages().await {
            Ok((listing, resource_version)) => {
                self.hand_on(listing, resource_version);
                Step::Now(Request::Watch)
            }
            Err(error) if self.may_be_the_version(&error) && !self.history.unavailable => {
                // Asked for too much; the newest state is always to be had, so no time is lost with waiting.
                self.log_expired(&error);
                self.history.unavailable = true;
                Step::AtOnce(Request::Pages, error)
            }
            Err(error) => {
                self.history.broke_off |= matches!(error, ListWatchError::Interrupted(_));
                Step::Later(Request::List, error)
            }
        }
    }

    /// Logs that the next request is a list because the version has expired.
    pub(super) fn log_expired(&mut self, error: &ListWatchError) {
        if error.is_expired() {
            self.reporter.expired(&self.history.last_seen);
        }
    }

    /// Returns whether another version may be listed where this one can't. A server that finds fault with a request may mean
    /// a version that another wrote before it.
    fn may_be_the_version(&self, error: &ListWatchError) -> bool {
        version_is_unavailable(error) || (error.is_bad_request() && !self.history.last_seen.is_empty())
    }

    /// Hands on a complete list, as one step (I9).
    pub(super) fn hand_on(&mut self, listing: Listing<K>, resource_version: ResourceVersion) {
        let (received, quarantined) = (listing.received(), listing.all_quarantined().clone());
        // The store first: what the status says has been handed on has been.
        self.store.replace(listing.into_replacement(resource_version.clone()));
        self.reporter.synced_to(&resource_version);
        self.reporter.only_quarantined(&quarantined);
        self.reporter.listed(received);
        self.history.unavailable = false;
        self.history.is_partly_known = false;
        self.history.broken_streams = 0;
        self.history.was_stream_closed = false;
        self.history.last_seen = resource_version;
        self.setbacks.failures = 0;
        self.went_on(Outcome::Relisted);
    }

    async fn list_all_pages(&mut self) -> Result<(Listing<K>, ResourceVersion), ListWatchError> {
        let mut options = self.history.first_page(self.config.page_size);
        let asks_for_memory = options.resource_version.as_ref().is_some_and(|version| *version == "0".into());
        let (mut listing, mut tokens) = (Listing::new(), ContinueTokens::new());
        let mut is_second_try = false;
        loop {
            let (limit, is_continued) = (options.limit, options.continue_token.is_some());
            let before = listing.received();
            match self.list_page(options, &mut listing).await {
                Ok(ListEnd { continue_token: None, resource_version, .. }) => {
                    return Ok((listing, stated(resource_version)));
                }
                Ok(ListEnd { continue_token: Some(token), .. }) => {
                    tokens.note(&token)?;
                    self.pace_short_page(&mut listing, before, limit).await?;
                    self.history.pages_from_memory |= asks_for_memory;
                    // The token stands for the version too, and the server refuses to be told it twice.
                    options = ListOptions { limit, continue_token: Some(token), ..ListOptions::default() };
                }
                Err(error) if is_continued && error.is_expired() => {
                    // A server that pages unasked may say so each time, and lists must not follow each other without
                    // a wait.
                    if std::mem::replace(&mut is_second_try, true) {
                        return Err(expired_again(&error));
                    }
                    // The state that the first pages are from is gone, so all is asked for again in one piece.
                    self.tell(&error, Request::Pages, Default::default());
                    (listing, tokens) = (Listing::new(), ContinueTokens::new());
                    options = ListOptions { limit: None, ..self.history.first_page(None) };
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Pages with few items could follow each other without end: the first ten in a row need no wait, the others do.
    async fn pace_short_page(
        &mut self,
        listing: &mut Listing<K>,
        before: usize,
        limit: Option<u32>,
    ) -> Result<(), ListWatchError> {
        let count = listing.received() - before;
        let is_short = count < SHORT_PAGE
            && limit.is_none_or(|limit| u32::try_from(count).is_ok_and(|count| count < limit));
        while is_short && !self.pace.take() {
            if count == 0 {
                return Err(empty_pages());
            }
            listing.refuse_repetitions()?;
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
        let mut parts = self.ask(PATIENCE, lister_watcher.list(options)).await?;
        while let Some(part) = timeout(PATIENCE, parts.next()).await.map_err(|_| fell_silent())? {
            match part? {
                // Bytes have come, and no whole item.
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
            match item.and_then(|object| self.intake.take(object)) {
                Ok(object) => objects.push(object),
                Err(malformed) => self.quarantine_listed(&malformed, listing),
            }
        }
        self.hand_on_part(objects, listing);
    }

    fn report_progress(&self, listing: &Listing<K>, remaining: Option<u64>) {
        self.reporter.set(Health::Syncing { received: listing.received(), remaining });
    }
}

/// The state that was asked for is not to be had, but another is.
pub(super) fn version_is_unavailable(error: &ListWatchError) -> bool {
    error.is_expired()
        || error.is_too_large_resource_version()
        || matches!(error, ListWatchError::InvalidRequest(_))
}

/// Returns whether this is the version of a state. Some servers that aren't Kubernetes' own say `0`, which is no state to
/// watch from but the wish for any: to go on from there would be to miss, without a word, what was deleted before.
pub(super) fn is_stated(resource_version: &ResourceVersion) -> bool {
    !resource_version.is_empty() && *resource_version != "0".into()
}

/// The version of a list, or none if it states none.
pub(super) fn stated(resource_version: ResourceVersion) -> ResourceVersion {
    if is_stated(&resource_version) { resource_version } else { ResourceVersion::empty() }
}

fn fell_silent() -> ListWatchError {
    ListWatchError::Interrupted(format!("nothing came for {PATIENCE:?}").into())
}

fn empty_pages() -> ListWatchError {
    ListWatchError::Protocol(
        "the list consists of many pages without items; the server may never end it".into(),
    )
}

/// That it has expired is told in other words: another version or the newest state, which are the remedies for what has
/// expired otherwise, have been asked for already.
fn expired_again(error: &ListWatchError) -> ListWatchError {
    ListWatchError::Interrupted(
        format!("a continue token has expired again, in a list that was asked for in one piece: {error}")
            .into(),
    )
}
