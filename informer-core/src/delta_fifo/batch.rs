//! [`Batch`]: the changes that the consumer has taken from the queue. A batch has one item per key:
//! a [`Pending`] with all changes of this key. To requeue an item is to put the item back into the
//! queue.

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
    /// The changes of the object, oldest first; at least one.
    pub deltas: Deltas<K>,
    pub(super) initial: bool,
    /// Whether the item has been requeued and no newer change of its key has been queued since. The
    /// next change then replaces the changes of the item, except a deletion or release.
    pub(super) requeued: bool,
}

impl<K> Pending<K> {
    /// Returns whether the item belongs to the initial list. The item can also be the deletion of
    /// an object that this list lacks.
    #[must_use]
    #[doc(alias = "isInInitialList")]
    pub fn is_in_initial_list(&self) -> bool {
        self.initial
    }

    pub(super) fn last(&self) -> &Delta<K> {
        // I2: an entry has at least one delta.
        &self.deltas[self.deltas.len() - 1]
    }
}

impl<K> Clone for Pending<K> {
    fn clone(&self) -> Self {
        Self {
            key: self.key.clone(),
            deltas: self.deltas.clone(),
            initial: self.initial,
            requeued: self.requeued,
        }
    }
}

/// Changes that the consumer has taken from a [`DeltaFifo`](crate::DeltaFifo), with one item per
/// key.
///
/// A batch is in flight until it is dropped. Until then, no other batch can be taken. When the
/// queue compares a list with the store, it treats the changes of the batch as not yet applied to
/// the store. Drop a batch only after its changes have been applied to the store. If a batch is
/// dropped by a panic, its items are requeued.
pub struct Batch<K: 'static> {
    queue: Arc<Shared<K>>,
    taken: Taken<K>,
    /// The positions of the items that have been requeued.
    requeued: HashSet<usize>,
}

impl<K: 'static> Shared<K> {
    fn processed(&self, taken: &Taken<K>) {
        let (processed, is_finished, is_ready) = {
            let mut state = self.state.lock();
            (state.processed(taken), state.is_finished(), state.is_ready())
        };
        if is_ready {
            self.wake.notify_one();
        }
        if processed.completes_initial {
            self.synced.set();
        }
        processed.completed.iter().for_each(Completion::set);
        if is_finished {
            self.wake.notify_waiters();
            self.cancel_completions();
        }
    }
}

impl<K: 'static> Batch<K> {
    pub(super) fn new(queue: Arc<Shared<K>>, taken: Taken<K>) -> Self {
        Self { queue, taken, requeued: HashSet::new() }
    }

    /// Returns the items, in the order in which their keys were queued. A batch without items only
    /// reports progress, such as a new [`watermark`](Self::watermark).
    #[must_use]
    pub fn items(&self) -> &[Pending<K>] {
        &self.taken.in_flight.items
    }

    /// Requeues the item at `position`. Call this if the item could not be processed.
    ///
    /// The item becomes the last item of the queue. If newer changes of its key are already queued,
    /// or are queued before the item is taken again, the item is dropped, because the newer changes
    /// replace it. Exception: one change that removes the object ([`Delta::Deleted`] or
    /// [`Delta::Released`]) is kept, before the newer changes.
    ///
    /// After this call, [`watermark`](Self::watermark) returns `None` for this batch, and for each
    /// later batch until the item has been taken again. If the item belongs to the initial list,
    /// the queue is not synced before the item has been processed. A second call for the same item
    /// changes nothing.
    ///
    /// Requeue items before you read [`watermark`](Self::watermark) and
    /// [`completes_initial_list`](Self::completes_initial_list), because requeuing can change both.
    ///
    /// # Panics
    /// Panics if there is no item at `position`.
    #[doc(alias = "AddIfNotPresent")]
    pub fn requeue(&mut self, position: usize) {
        let count = self.items().len();
        assert!(position < count, "no item at position {position}: the batch has {count} items");
        if self.requeued.insert(position) {
            self.queue.change(|state| state.requeue(&mut self.taken, position));
        }
    }

    /// Returns whether the batch has items and all of them have been requeued. In this case, wait
    /// before the next pop, for example with [`wait_for_more`](Self::wait_for_more), because the
    /// next batch can fail in the same way.
    #[must_use]
    pub fn is_all_requeued(&self) -> bool {
        !self.requeued.is_empty() && self.requeued.len() == self.items().len()
    }

    /// Returns a future that waits until a new change is queued or the queue is closed. Requeued
    /// items are not new changes. The future is ready at once if a change was queued since this
    /// batch was taken, or if this batch left changes in the queue.
    pub fn wait_for_more(&self) -> impl Future<Output = ()> + Send + use<K>
    where
        K: Send + Sync,
    {
        Arc::clone(&self.queue).wait_for_more(self.taken.arrivals)
    }

    /// Returns `true` for the batch that completes the initial list, and `false` for all other
    /// batches. When this batch has been processed, the queue is
    /// [synced](crate::DeltaFifo::synced).
    #[must_use]
    pub fn completes_initial_list(&self) -> bool {
        self.taken.completes_initial
    }

    /// Returns the watermark: the resource version that the consumer's store has after this batch.
    ///
    /// Returns `None` in three cases:
    /// - There is no new watermark since the last batch that returned one. For example, this batch
    ///   has only resyncs, or only a part of the initial list.
    /// - Other changes were still queued when this batch was taken.
    /// - An item of this batch has been requeued.
    ///
    /// An empty version means that the watermark is unknown, for example after a list without a
    /// resource version.
    #[must_use]
    pub fn watermark(&self) -> Option<&ResourceVersion> {
        self.taken.watermark.as_ref()
    }

    /// Returns the namespaces whose watermark can change when this batch has been processed. The
    /// watermark of a namespace is the resource version that the consumer's store has reached for
    /// this namespace. Empty if the queue has one input for all namespaces, and not one
    /// [`NamespaceFeed`](crate::NamespaceFeed) per namespace.
    ///
    /// If each namespace has its own input, [`watermark`](Self::watermark) is the minimum of the
    /// watermarks of all namespaces. The minimum is empty while a namespace has no watermark.
    #[must_use]
    pub fn namespaces(&self) -> &[NamespaceProgress] {
        &self.taken.namespaces
    }
}

impl<K: 'static> Drop for Batch<K> {
    fn drop(&mut self) {
        // A consumer that panics has possibly not processed all items.
        if std::thread::panicking() {
            self.queue.change(|state| state.requeue_rest(&mut self.taken, &self.requeued));
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
