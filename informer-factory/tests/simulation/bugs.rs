//! Planted bugs: a source that makes occasional mistakes at the interface between client and
//! reflector.
//!
//! Each bug is typical of informers, such as an unprocessed event or an incomplete list. The
//! simulation must find every bug.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use futures::{StreamExt, stream};
use informer_core::ListerWatcher;
use informer_factory::ListWatchError;
use informer_factory::informer_core::{
    Bookmark, ListEnd, ListOptions, ListPart, ListStream, WatchEvent, WatchOptions, WatchStream,
};
use informer_reflector::KubeListWatch;
use kube::Resource;
use parking_lot::Mutex;

use crate::item::Item;

/// A mistake that a [`BuggySource`] makes, to check that the simulation finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A deletion is dropped.
    SkippedDeletion,
    /// An addition or a change is dropped.
    SkippedEvent,
    /// An object that cannot be decoded is skipped silently, and the version advances.
    AdvancedAfterFailedDecode,
    /// A batch is held back until another batch arrives.
    LostWakeUp,
    /// An old state is repeated after a newer one.
    RepeatedOldEvent,
    /// An expired version does not cause a list.
    NoListAfterExpiry,
    /// An item of a list is dropped.
    LostListItem,
    /// If the next page of a list fails, the pages so far are taken as the complete list.
    PartialListTakenAsComplete,
    /// A list has a resource version newer than its content.
    ListVersionTooNew,
    /// A bookmark precedes the events that it covers.
    WatermarkTooEarly,
}

/// A source that falsifies the responses of the source `inner` in the way of a [`Bug`].
pub(crate) struct BuggySource {
    inner: KubeListWatch<Item>,
    shared: Arc<Shared>,
}

struct Shared {
    bug: Bug,
    random: Mutex<fastrand::Rng>,
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    /// The last version of each object.
    last: BTreeMap<String, Item>,
    /// The end of the last page.
    page: Option<ListEnd>,
    /// Whether a 410 was ignored.
    has_expired: bool,
    /// Events that are held back.
    held: Option<Vec<WatchEvent<Item>>>,
}

impl BuggySource {
    pub(crate) fn new(inner: KubeListWatch<Item>, bug: Bug, seed: u64) -> Self {
        let random = Mutex::new(fastrand::Rng::with_seed(seed));
        Self { inner, shared: Arc::new(Shared { bug, random, memory: Mutex::default() }) }
    }
}

#[async_trait]
impl ListerWatcher<Item> for BuggySource {
    fn description(&self) -> &str {
        self.inner.description()
    }

    async fn list(&self, options: ListOptions) -> Result<ListStream<Item>, ListWatchError> {
        let shared = Arc::clone(&self.shared);
        let is_continued = options.continue_token.is_some();
        match self.inner.list(options).await {
            Ok(parts) => Ok(parts.map(move |part| part.map(|part| shared.falsify_part(part))).boxed()),
            Err(_) if is_continued && shared.bug == Bug::PartialListTakenAsComplete => {
                let mut end = shared.memory.lock().page.clone().unwrap_or_default();
                end.continue_token = None;
                Ok(stream::iter([Ok(ListPart::End(end))]).boxed())
            }
            Err(error) => Err(error),
        }
    }

    async fn watch(&self, mut options: WatchOptions) -> Result<WatchStream<Item>, ListWatchError> {
        let shared = Arc::clone(&self.shared);
        if std::mem::take(&mut shared.memory.lock().has_expired) {
            options.resource_version = "0".into();
        }
        let batches = self.inner.watch(options).await?;
        let batches = batches.filter_map(move |batch| {
            let batch = match batch {
                Ok(batch) => shared.falsify_batch(batch).map(Ok),
                Err(error) => Some(Err(error)),
            };
            std::future::ready(batch)
        });
        Ok(batches.boxed())
    }
}

impl Shared {
    /// Returns `true` at random, once in `one_in` calls on average: the mistake happens this time.
    fn happens(&self, one_in: u32) -> bool {
        self.random.lock().u32(..one_in) == 0
    }

    fn falsify_part(&self, part: ListPart<Item>) -> ListPart<Item> {
        match part {
            ListPart::Items(items) if self.bug == Bug::LostListItem => {
                ListPart::Items(items.into_iter().filter(|_| !self.happens(10)).collect())
            }
            ListPart::End(mut end) => {
                self.memory.lock().page = Some(end.clone());
                if self.bug == Bug::ListVersionTooNew
                    && let Ok(version) = end.resource_version.to_string().parse::<u64>()
                {
                    end.resource_version = (version + 2).into();
                }
                ListPart::End(end)
            }
            part @ ListPart::Items(_) => part,
        }
    }

    /// Applies the mistake to some events. Returns `None` if no event is left.
    fn falsify_batch(&self, batch: Vec<WatchEvent<Item>>) -> Option<Vec<WatchEvent<Item>>> {
        let batch: Vec<_> = batch.into_iter().flat_map(|event| self.falsify_event(event)).collect();
        let batch = match self.bug {
            Bug::LostWakeUp if !batch.is_empty() => {
                let mut memory = self.memory.lock();
                let mut all = memory.held.take().unwrap_or_default();
                all.extend(batch);
                if self.happens(4) {
                    memory.held = Some(all);
                    return None;
                }
                all
            }
            Bug::WatermarkTooEarly if !batch.is_empty() => {
                let newest = batch.iter().filter_map(version_of).next_back();
                let early = newest.map(|resource_version| {
                    WatchEvent::Bookmark(Bookmark { resource_version, initial_events_end: false })
                });
                let held = self.memory.lock().held.replace(batch);
                held.into_iter().flatten().chain(early).collect()
            }
            _ => batch,
        };
        Some(batch).filter(|batch| !batch.is_empty())
    }

    fn falsify_event(&self, event: WatchEvent<Item>) -> Vec<WatchEvent<Item>> {
        match (self.bug, event) {
            (Bug::SkippedDeletion, WatchEvent::Deleted(_)) if self.happens(4) => vec![],
            (Bug::SkippedEvent, WatchEvent::Added(_) | WatchEvent::Modified(_)) if self.happens(10) => vec![],
            (Bug::AdvancedAfterFailedDecode, WatchEvent::RejectedObject { object, .. }) => {
                let resource_version = object.resource_version;
                vec![WatchEvent::Bookmark(Bookmark { resource_version, initial_events_end: false })]
            }
            (Bug::NoListAfterExpiry, WatchEvent::Error(status)) if status.code == 410 => {
                self.memory.lock().has_expired = true;
                vec![]
            }
            (Bug::RepeatedOldEvent, WatchEvent::Modified(item)) => {
                let old = self.remember(&item).filter(|_| self.happens(4));
                [Some(WatchEvent::Modified(item)), old.map(|old| WatchEvent::Modified(old.into()))]
                    .into_iter()
                    .flatten()
                    .collect()
            }
            (_, event) => vec![event],
        }
    }

    /// Stores the last version of an item, and returns the previous one.
    fn remember(&self, item: &Item) -> Option<Item> {
        let key = format!("{:?}/{:?}", item.meta().namespace, item.meta().name);
        self.memory.lock().last.insert(key, item.clone())
    }
}

fn version_of(event: &WatchEvent<Item>) -> Option<informer_factory::ResourceVersion> {
    match event {
        WatchEvent::Added(item) | WatchEvent::Modified(item) | WatchEvent::Deleted(item) => {
            Some(item.meta().resource_version.as_deref().into())
        }
        _ => None,
    }
}
