//! Listing: which state to ask for, page by page, until the whole of it is there.
//!
//! The rules for resource versions and page sizes are client-go's (`relistResourceVersion` in tools/cache/reflector.go,
//! tools/pager). The first list takes what the server has at hand, which spares its database; later ones ask for
//! nothing older than what was seen, so that time doesn't run backwards.

use futures::StreamExt;
use informer_core::{
    Cached, ListEnd, ListOptions, ListPart, ListWatchError, Malformed, Replacement, ResourceVersion,
    ResourceVersionMatch,
};
use kube::Resource;
use tokio::time::timeout;

use super::config::DEFAULT_PAGE_SIZE;
use super::status::Health;
use super::{PATIENCE, Reflector, Request, Step, unanswered};

/// What lists have taught about the server and the state it can give.
#[derive(Debug, Default)]
pub(super) struct ListHistory {
    /// The version of the last complete list or later event; empty before the first list, and where the server gives
    /// lists no version.
    pub(super) last_seen: ResourceVersion,
    /// The version to ask for is not to be had: too old, or newer than the server.
    pub(super) unavailable: bool,
    /// A list from memory came in pages, so there is no memory, and pages spare the database.
    pages_from_memory: bool,
}

impl ListHistory {
    /// The version to ask for.
    fn resource_version(&self) -> ResourceVersion {
        if self.unavailable {
            ResourceVersion::empty()
        } else if self.last_seen.is_empty() {
            "0".into()
        } else {
            self.last_seen.clone()
        }
    }

    fn first_page(&self, page_size: Option<u32>) -> ListOptions {
        let resource_version = self.resource_version();
        let from_memory = !self.unavailable && !self.last_seen.is_empty();
        let limit = if from_memory && !self.pages_from_memory { None } else { Some(DEFAULT_PAGE_SIZE) };
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

/// What has been listed so far.
struct Listed<K> {
    objects: Vec<Cached<K>>,
    set_aside: Vec<Malformed>,
}

impl<K> Listed<K> {
    fn nothing() -> Self {
        Self { objects: Vec::new(), set_aside: Vec::new() }
    }
}

impl<K: Resource + Send + Sync + 'static> Reflector<K> {
    /// Lists everything and hands it on.
    pub(super) async fn list(&mut self) -> Step {
        self.reporter.set(Health::Syncing { received: 0, remaining: None });
        match self.list_all_pages().await {
            Ok((listed, resource_version)) => {
                self.hand_on(listed, resource_version);
                Step::Now(Request::Watch)
            }
            Err(error) if version_is_unavailable(&error) && !self.history.unavailable => {
                // Asked for too much; the newest state is always to be had, so no time is lost with waiting.
                self.history.unavailable = true;
                Step::Now(Request::List)
            }
            Err(error) => Step::Later(Request::List, error),
        }
    }

    fn hand_on(&mut self, listed: Listed<K>, resource_version: ResourceVersion) {
        let Listed { objects, set_aside } = listed;
        let keys: Vec<_> = set_aside.iter().filter_map(|malformed| malformed.key.clone()).collect();
        // The store first: what the status says has been handed on has been.
        self.store.replace(Replacement {
            objects,
            complete: keys.len() == set_aside.len(),
            set_aside: keys,
            resource_version: resource_version.clone(),
        });
        self.reporter.synced_to(&resource_version);
        self.reporter.set_aside_only(&set_aside);
        self.history.unavailable = false;
        self.history.last_seen = resource_version;
        self.setbacks.failures = 0;
    }

    async fn list_all_pages(&mut self) -> Result<(Listed<K>, ResourceVersion), ListWatchError> {
        let first = self.history.first_page(self.config.page_size);
        let mut options = first.clone();
        let mut listed = Listed::nothing();
        loop {
            let is_continued = options.continue_token.is_some();
            match self.list_page(options, &mut listed).await {
                Ok(end) => match end.continue_token {
                    None => return Ok((listed, stated(end.resource_version))),
                    Some(token) => {
                        let asked_for_memory =
                            first.resource_version.as_ref().is_some_and(|version| *version == "0".into());
                        self.history.pages_from_memory |= asked_for_memory;
                        // The token stands for the version too, and the server refuses to be told it twice.
                        options = ListOptions {
                            limit: first.limit,
                            continue_token: Some(token),
                            ..ListOptions::default()
                        };
                    }
                },
                // The state that the first pages are from is gone, so all is asked for again in one piece.
                Err(error) if is_continued && error.is_expired() => {
                    listed = Listed::nothing();
                    options = ListOptions { limit: None, ..first.clone() };
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn list_page(
        &mut self,
        options: ListOptions,
        listed: &mut Listed<K>,
    ) -> Result<ListEnd, ListWatchError> {
        let mut parts =
            timeout(PATIENCE, self.lister_watcher.list(options)).await.map_err(|_| unanswered())??;
        while let Some(part) = timeout(PATIENCE, parts.next()).await.map_err(|_| fell_silent())? {
            match part? {
                ListPart::Items(items) => {
                    for item in items {
                        match item.and_then(|object| self.intake.take(object)) {
                            Ok(object) => listed.objects.push(object),
                            Err(malformed) => listed.set_aside.push(malformed),
                        }
                    }
                    self.report_progress(listed, None);
                }
                ListPart::End(end) => {
                    self.report_progress(listed, end.remaining_item_count);
                    return Ok(end);
                }
            }
        }
        Err(ListWatchError::Protocol("the list ended without its metadata".into()))
    }

    fn report_progress(&self, listed: &Listed<K>, remaining: Option<u64>) {
        let received = listed.objects.len() + listed.set_aside.len();
        self.reporter.set(Health::Syncing { received, remaining });
    }
}

/// The state that was asked for is not to be had, but another is.
fn version_is_unavailable(error: &ListWatchError) -> bool {
    error.is_expired() || error.is_too_large_resource_version()
}

/// The version of a list, or none if it states none: some servers that aren't Kubernetes' own say `0`, which is no
/// state to watch from but the wish for any.
fn stated(resource_version: ResourceVersion) -> ResourceVersion {
    if resource_version == "0".into() { ResourceVersion::empty() } else { resource_version }
}

fn fell_silent() -> ListWatchError {
    ListWatchError::Interrupted(format!("nothing came for {PATIENCE:?}").into())
}
