//! What a consumer takes out of the queue: [`Batch`], made of [`Pending`] changes.

use std::fmt;
use std::sync::Arc;

use super::Shared;
use super::state::Taken;
use crate::{Delta, Deltas, ObjectKey, ResourceVersion};

/// The changes that one key had pending.
#[derive(Debug)]
pub struct Pending<K> {
    /// The key of the object that changed.
    pub key: ObjectKey,
    /// What happened to it, oldest first; at least one.
    pub deltas: Deltas<K>,
}

impl<K> Pending<K> {
    /// The newest change.
    pub(super) fn last(&self) -> &Delta<K> {
        // I2: nothing is queued without a delta.
        &self.deltas[self.deltas.len() - 1]
    }
}

/// Changes taken out of a [`DeltaFifo`](crate::DeltaFifo), each key once.
///
/// Until it is dropped, the queue counts its objects as being processed: a list that arrives meanwhile takes them into
/// account, and the first list is only complete once the last of its objects has been processed. So drop it when its
/// changes are in the store, and not before.
pub struct Batch<K: 'static> {
    queue: Arc<Shared<K>>,
    taken: Taken<K>,
}

impl<K: 'static> Batch<K> {
    pub(super) fn new(queue: Arc<Shared<K>>, taken: Taken<K>) -> Self {
        Self { queue, taken }
    }

    /// Returns the changes, in the order in which their keys were queued. May be empty, if there is only news of the
    /// [`watermark`](Self::watermark).
    #[must_use]
    pub fn items(&self) -> &[Pending<K>] {
        &self.taken.items
    }

    /// Says whether the item at `position` comes from the first list.
    #[must_use]
    #[doc(alias = "isInInitialList")]
    pub fn is_in_initial_list(&self, position: usize) -> bool {
        position < self.taken.initial
    }

    /// Says whether the first list is complete with this batch. True for one batch in the life of a queue.
    #[must_use]
    pub fn completes_initial_list(&self) -> bool {
        self.taken.completes_initial
    }

    /// Returns the resource version of the server state that the consumer has with this batch, if that has changed.
    ///
    /// Only a batch that empties the queue can have one (I9).
    #[must_use]
    pub fn watermark(&self) -> Option<&ResourceVersion> {
        self.taken.watermark.as_ref()
    }
}

impl<K: 'static> Drop for Batch<K> {
    fn drop(&mut self) {
        // A consumer that panicked has not processed it.
        if !std::thread::panicking() {
            self.queue.processed(self.taken.id);
        }
    }
}

impl<K: 'static> fmt::Debug for Batch<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("len", &self.items().len())
            .field("completes_initial_list", &self.completes_initial_list())
            .field("watermark", &self.watermark())
            .finish_non_exhaustive()
    }
}
