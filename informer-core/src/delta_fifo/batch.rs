//! What a consumer takes out of the queue: [`Batch`], made of [`Pending`] changes.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use super::Shared;
use super::in_flight::Taken;
use crate::{Completion, Delta, Deltas, FeedNews, ObjectKey, ResourceVersion};

/// The changes that one key had pending.
#[derive(Debug)]
#[non_exhaustive]
pub struct Pending<K> {
    /// The key of the object that changed.
    pub key: ObjectKey,
    /// What happened to it, oldest first; at least one.
    pub deltas: Deltas<K>,
    pub(super) initial: bool,
}

impl<K> Pending<K> {
    /// Returns whether the object comes from the first list.
    #[must_use]
    #[doc(alias = "isInInitialList")]
    pub fn is_in_initial_list(&self) -> bool {
        self.initial
    }

    /// The newest change.
    pub(super) fn last(&self) -> &Delta<K> {
        // I2: nothing is queued without a delta.
        &self.deltas[self.deltas.len() - 1]
    }
}

impl<K> Clone for Pending<K> {
    fn clone(&self) -> Self {
        Self { key: self.key.clone(), deltas: self.deltas.clone(), initial: self.initial }
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
    /// The positions of what was put back.
    requeued: HashSet<usize>,
}

impl<K: 'static> Shared<K> {
    fn requeue(&self, taken: &mut Taken<K>, position: usize) {
        self.change(|state| state.requeue(taken, position));
    }

    /// Puts everything of a batch back that was not put back before.
    fn give_back(&self, taken: &mut Taken<K>, requeued: &HashSet<usize>) {
        self.change(|state| state.give_back(taken, requeued));
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
        processed.kept.iter().for_each(Completion::set);
        if is_over {
            self.give_up();
        }
    }
}

impl<K: 'static> Batch<K> {
    pub(super) fn new(queue: Arc<Shared<K>>, taken: Taken<K>) -> Self {
        Self { queue, taken, requeued: HashSet::new() }
    }

    /// Returns the changes, in the order in which their keys were queued. May be empty, if there is only news of the
    /// [`watermark`](Self::watermark).
    #[must_use]
    pub fn items(&self) -> &[Pending<K>] {
        &self.taken.items
    }

    /// Puts the item at `position` back into the queue, behind all others, because it could not be processed.
    ///
    /// If newer changes of its key are queued by now, it adds nothing to them but a deletion; if some are being
    /// processed already, in a later batch, nothing at all. Until it comes out again and is processed, no batch has a
    /// [`watermark`](Self::watermark), and one of the first list keeps the queue from being synced. To be called before
    /// those two are asked for, of this batch or of one that was taken out later. Once more changes nothing.
    ///
    /// # Panics
    /// If there is no item at `position`.
    #[doc(alias = "AddIfNotPresent")]
    pub fn requeue(&mut self, position: usize) {
        if self.requeued.insert(position) {
            self.queue.requeue(&mut self.taken, position);
        }
    }

    /// Returns whether all that there was to process has been put back, so that to go on at once is to go round in circles;
    /// [`wait_for_more`](Self::wait_for_more) says what to wait for.
    #[must_use]
    pub fn is_all_requeued(&self) -> bool {
        !self.requeued.is_empty() && self.requeued.len() == self.taken.items.len()
    }

    /// Returns what to wait for before the next try where all that there is to do has failed: something else is queued
    /// than what was put back, or the queue is closed. Ready at once if that has happened since this batch was taken.
    pub fn wait_for_more(&self) -> impl Future<Output = ()> + Send + use<K>
    where
        K: Send + Sync,
    {
        Arc::clone(&self.queue).wait_for_more(self.taken.arrivals)
    }

    /// Returns whether the first list is complete with this batch. True for one batch in the life of a queue.
    #[must_use]
    pub fn completes_initial_list(&self) -> bool {
        self.taken.completes_initial
    }

    /// Returns the resource version of the server state that the consumer has with this batch, if that has changed.
    ///
    /// Only a batch that empties the queue can have one (I9). It is empty where a list without a version has led away from
    /// the last: the state that the consumer has then can't be named.
    #[must_use]
    pub fn watermark(&self) -> Option<&ResourceVersion> {
        self.taken.watermark.as_ref()
    }

    /// Returns how far the consumer is with this batch in each namespace of which there is news, where namespaces come in
    /// one by one ([`DeltaFifo::feed`](crate::DeltaFifo::feed)): each has its own version there, and
    /// [`watermark`](Self::watermark) is the least of them, empty as long as one has none.
    #[must_use]
    pub fn feed_news(&self) -> &[FeedNews] {
        &self.taken.news
    }
}

impl<K: 'static> Drop for Batch<K> {
    fn drop(&mut self) {
        // A consumer that panicked may not have processed it, so the next one does.
        if std::thread::panicking() {
            self.queue.give_back(&mut self.taken, &self.requeued);
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
