//! The batch in flight: the [`Batch`](super::Batch) that the consumer has taken from the queue and
//! has not dropped yet. A dropped batch counts as processed, unless a panic drops it. At most one
//! batch is in flight. To requeue an item is to put the item back into the queue.

use std::sync::{Arc, OnceLock};

use foldhash::HashMap;

use super::Pending;
use super::state::SLICE;
use crate::{Completion, Delta, NamespaceProgress, ObjectKey, ResourceVersion};

/// The items of the batch in flight, which can be read while the queue is not locked.
pub(super) struct InFlight<K> {
    pub(super) items: Vec<Pending<K>>,
    /// Maps each key to the position of its item. Empty until an operation needs it.
    index: OnceLock<HashMap<ObjectKey, usize>>,
}

impl<K> InFlight<K> {
    pub(super) fn new(items: Vec<Pending<K>>) -> Self {
        Self { items, index: OnceLock::new() }
    }

    /// Returns the index by key, which the first call builds.
    pub(super) fn index(&self) -> &HashMap<ObjectKey, usize> {
        self.index.get_or_init(|| {
            self.items.iter().enumerate().map(|(at, pending)| (pending.key.clone(), at)).collect()
        })
    }

    pub(super) fn last(&self, key: &ObjectKey) -> Option<&Delta<K>> {
        self.index().get(key).map(|&at| self.items[at].last())
    }

    pub(super) fn is_large_without_index(&self) -> bool {
        self.items.len() > SLICE && self.index.get().is_none()
    }
}

/// The content of a [`Batch`](super::Batch).
pub(super) struct Taken<K> {
    pub(super) in_flight: Arc<InFlight<K>>,
    /// The number of items that come from the initial list. If the consumer requeues one of these
    /// items, the number falls by one.
    pub(super) initial: usize,
    pub(super) completes_initial: bool,
    pub(super) watermark: Option<ResourceVersion>,
    pub(super) namespaces: Vec<NamespaceProgress>,
    /// `Batch::wait_for_more` waits while the queue's `arrivals` equal this number and the queue is
    /// open.
    pub(super) arrivals: u64,
}

/// The result of [`State::processed`](super::state::State::processed).
pub(super) struct Processed {
    /// Whether the consumer has processed the whole initial list with this batch.
    pub(super) completes_initial: bool,
    /// The completions that the caller must set. They belong to namespaces whose initial list has
    /// been processed, or whose objects have been removed.
    pub(super) completed: Vec<Completion>,
}
