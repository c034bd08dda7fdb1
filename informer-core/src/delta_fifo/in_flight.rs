//! The batch in flight: the [`Batch`](super::Batch) that the consumer has taken from the queue and
//! has not dropped yet. A dropped batch counts as processed, unless a panic drops it. At most one
//! batch is in flight. To requeue an item is to put the item back into the queue.

use std::sync::{Arc, OnceLock};

use foldhash::HashMap;

use super::Pending;
use super::state::SLICE;
use crate::{Completion, Delta, NamespaceProgress, ObjectKey, ResourceVersion};

/// The queue's record of the batch that the consumer has taken and has not processed yet.
pub(super) struct InFlight<K> {
    pub(super) id: u64,
    pub(super) items: Arc<Vec<Pending<K>>>,
    /// The number of items in this batch that come from the initial list. If the consumer requeues
    /// one of these items, the number falls by one.
    pub(super) initial: usize,
    /// Maps each key to the position of its item. Empty until an operation needs it.
    pub(super) index: Arc<OnceLock<HashMap<ObjectKey, usize>>>,
}

/// The items of the batch in flight, which can be read while the queue is not locked.
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

/// The content of a [`Batch`](super::Batch).
pub(super) struct Taken<K> {
    pub(super) items: Arc<Vec<Pending<K>>>,
    pub(super) completes_initial: bool,
    pub(super) watermark: Option<ResourceVersion>,
    pub(super) namespaces: Vec<NamespaceProgress>,
    /// `Batch::wait_for_more` waits while the queue's `arrivals` equal this number.
    pub(super) arrivals: u64,
}

/// The result of [`State::processed`](super::state::State::processed). The caller must drop it
/// while the queue is not locked.
pub(super) struct Processed<K> {
    /// Whether the consumer has processed the whole initial list with this batch.
    pub(super) completes_initial: bool,
    /// The completions that the caller must set. They belong to namespaces whose initial list has
    /// been processed, or whose objects have been removed.
    pub(super) completed: Vec<Completion>,
    // I8: destructors of objects are user code.
    pub(super) _garbage: Option<InFlight<K>>,
}
