//! [`Batch`]: the changes that a consumer has taken from the queue, one [`Pending`] per key.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use super::Shared;
use super::in_flight::Taken;
use crate::{Completion, Delta, Deltas, NamespaceProgress, ObjectKey, ResourceVersion};

/// The pending changes of one key.
#[derive(Debug)]
#[non_exhaustive]
pub struct Pending<K> {
    /// The key of the object that changed.
    pub key: ObjectKey,
    /// The changes, oldest first; at least one.
    pub deltas: Deltas<K>,
    pub(super) initial: bool,
}

impl<K> Pending<K> {
    /// Returns whether the object comes from the initial list.
    #[must_use]
    #[doc(alias = "isInInitialList")]
    pub fn is_in_initial_list(&self) -> bool {
        self.initial
    }

    /// Returns the newest change.
    pub(super) fn last(&self) -> &Delta<K> {
        // I2: an entry has at least one delta.
        &self.deltas[self.deltas.len() - 1]
    }
}

impl<K> Clone for Pending<K> {
    fn clone(&self) -> Self {
        Self { key: self.key.clone(), deltas: self.deltas.clone(), initial: self.initial }
    }
}

/// Changes taken from a [`DeltaFifo`](crate::DeltaFifo), one item per key.
///
/// The batch is in flight until it is dropped: the queue compares lists with it, and the next pop
/// waits. Drop it after its changes have been applied to the store, and not before. If a panic
/// drops it, its items are requeued.
pub struct Batch<K: 'static> {
    queue: Arc<Shared<K>>,
    taken: Taken<K>,
    /// The positions of requeued items.
    requeued: HashSet<usize>,
}

impl<K: 'static> Shared<K> {
    fn requeue(&self, taken: &mut Taken<K>, position: usize) {
        self.change(|state| state.requeue(taken, position));
    }

    fn requeue_all(&self, taken: &mut Taken<K>, requeued: &HashSet<usize>) {
        self.change(|state| state.requeue_all(taken, requeued));
    }

    fn processed(&self, taken: &Taken<K>) {
        let (processed, is_over, is_ready) = {
            let mut state = self.state.lock();
            (state.processed(taken), state.is_over(), state.is_ready())
        };
        if is_ready {
            self.wake.notify_one();
        }
        if processed.completes_initial {
            self.synced.set();
        }
        processed.completed.iter().for_each(Completion::set);
        if is_over {
            self.give_up();
        }
    }
}

impl<K: 'static> Batch<K> {
    pub(super) fn new(queue: Arc<Shared<K>>, taken: Taken<K>) -> Self {
        Self { queue, taken, requeued: HashSet::new() }
    }

    /// Returns the items, in the order in which their keys were queued. There is none if only the
    /// [`watermark`](Self::watermark) has changed.
    #[must_use]
    pub fn items(&self) -> &[Pending<K>] {
        &self.taken.items
    }

    /// Requeues the item at `position` behind all queued items. Call this if the item could not be
    /// processed.
    ///
    /// If newer changes of its key are queued, only a deletion or release of the item is kept,
    /// before the newer changes. Until the item has been processed, no batch has a
    /// [`watermark`](Self::watermark), and an item of the initial list keeps the queue from being
    /// synced. Requeue items before you read [`watermark`](Self::watermark) and
    /// [`completes_initial_list`](Self::completes_initial_list), because a requeue changes both. A
    /// second call for the same item changes nothing.
    ///
    /// # Panics
    /// If there is no item at `position`.
    #[doc(alias = "AddIfNotPresent")]
    pub fn requeue(&mut self, position: usize) {
        if self.requeued.insert(position) {
            self.queue.requeue(&mut self.taken, position);
        }
    }

    /// Returns whether the batch has items and all of them have been requeued. Then wait before the
    /// next pop, for example with [`wait_for_more`](Self::wait_for_more), because the next batch
    /// can fail in the same way.
    #[must_use]
    pub fn is_all_requeued(&self) -> bool {
        !self.requeued.is_empty() && self.requeued.len() == self.taken.items.len()
    }

    /// Returns a future that is ready when a new change is queued or the queue is closed. Requeued
    /// items are not new changes. The future is ready at once if a change was queued since this
    /// batch was taken.
    pub fn wait_for_more(&self) -> impl Future<Output = ()> + Send + use<K>
    where
        K: Send + Sync,
    {
        Arc::clone(&self.queue).wait_for_more(self.taken.arrivals)
    }

    /// Returns whether this batch completes the initial list. In the life of a queue, one batch
    /// does.
    #[must_use]
    pub fn completes_initial_list(&self) -> bool {
        self.taken.completes_initial
    }

    /// Returns the resource version that the consumer reaches with this batch, if it has changed.
    ///
    /// Only a batch that empties the queue has a watermark (I9). After a list without a version,
    /// the watermark is empty, because the state of the consumer has no version.
    #[must_use]
    pub fn watermark(&self) -> Option<&ResourceVersion> {
        self.taken.watermark.as_ref()
    }

    /// Returns the version that the consumer reaches with this batch in each namespace that has a
    /// feed of its own ([`DeltaFifo::feed`](crate::DeltaFifo::feed)), if it has changed.
    /// [`watermark`](Self::watermark) is then the minimum of all, and empty while a namespace has
    /// no version.
    #[must_use]
    pub fn namespaces(&self) -> &[NamespaceProgress] {
        &self.taken.namespaces
    }
}

impl<K: 'static> Drop for Batch<K> {
    fn drop(&mut self) {
        // If the consumer panics, it has possibly not processed the items.
        if std::thread::panicking() {
            self.queue.requeue_all(&mut self.taken, &self.requeued);
        }
        self.queue.processed(&self.taken);
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
