//! Items that were taken out of the queue and are not processed yet.

use std::sync::{Arc, OnceLock};

use foldhash::HashMap;

use super::Pending;
use super::state::SLICE;
use crate::{Completion, Delta, FeedNews, ObjectKey, ResourceVersion};

/// A batch that is being processed.
pub(super) struct InFlight<K> {
    pub(super) id: u64,
    pub(super) items: Arc<Vec<Pending<K>>>,
    /// Its share of the first list.
    pub(super) initial: usize,
    /// Positions by key, built on first use; for a large batch while the queue is not locked.
    pub(super) index: Arc<OnceLock<HashMap<ObjectKey, usize>>>,
}

/// A batch that is being processed, to be looked at when the queue is not locked.
pub(super) struct InFlightItems<K> {
    pub(super) id: u64,
    pub(super) items: Arc<Vec<Pending<K>>>,
    index: Arc<OnceLock<HashMap<ObjectKey, usize>>>,
}

fn index_of<K>(items: &[Pending<K>]) -> HashMap<ObjectKey, usize> {
    items.iter().enumerate().map(|(at, pending)| (pending.key.clone(), at)).collect()
}

impl<K> InFlightItems<K> {
    pub(super) fn make_index(&self) {
        self.index.get_or_init(|| index_of(&self.items));
    }
}

impl<K> InFlight<K> {
    pub(super) fn last(&self, key: &ObjectKey) -> Option<&Delta<K>> {
        self.index.get_or_init(|| index_of(&self.items)).get(key).map(|&at| self.items[at].last())
    }

    pub(super) fn is_large_without_index(&self) -> bool {
        self.items.len() > SLICE && self.index.get().is_none()
    }

    pub(super) fn items(&self) -> InFlightItems<K> {
        InFlightItems { id: self.id, items: Arc::clone(&self.items), index: Arc::clone(&self.index) }
    }
}

/// What is taken out of the queue in one go.
pub(super) struct Taken<K> {
    pub(super) items: Arc<Vec<Pending<K>>>,
    pub(super) completes_initial: bool,
    pub(super) watermark: Option<ResourceVersion>,
    pub(super) news: Vec<FeedNews>,
    /// [`State::arrivals`] at that moment, or another number if the queue was not empty then.
    pub(super) arrivals: u64,
}

/// What becomes of a batch that has been processed, to be dropped when the queue is not locked.
pub(super) struct Processed<K> {
    /// Whether the first list now is processed to its end.
    pub(super) completes_initial: bool,
    /// The promises of feeds that are kept now.
    pub(super) kept: Vec<Completion>,
    pub(super) _garbage: Option<InFlight<K>>,
}
