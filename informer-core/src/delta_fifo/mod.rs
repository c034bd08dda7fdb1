//! [`DeltaFifo`]: the queue between the reflector and the store. client-go: `DeltaFIFO` of
//! `tools/cache/delta_fifo.go`.
//!
//! Note: a popped change is in flight until its [`Batch`] is dropped: the change is not queued any
//! more (unless it is [requeued](Batch::requeue)), and possibly not in the store yet. To find the
//! objects that a list changes, the queue compares the list with the queued changes, the batch in
//! flight and the store.
//!
//! Lock order: the queue's lock, then the locks that [`KnownObjects`] takes, such as the store's.

mod batch;
mod difference;
mod feeds;
mod in_flight;
mod list;
mod merge;
mod namespace_feed;
mod population;
mod room;
mod state;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;

pub use batch::{Batch, Pending};
pub use namespace_feed::NamespaceFeed;

use crate::sync::{Mutex, Notify};
use crate::{Cached, Completion, Deleted, Delta, KnownObjects, ReflectorStore, Replacement, ResourceVersion};
use in_flight::Taken;
use list::Listed;
use state::State;

/// A queue of changes, with at most one entry per key. A clone is another handle to the same queue.
///
/// The queue has any number of producers and one consumer, which processes one [`Batch`] at a time.
/// Producers do not wait, except for a reflector while many changes are queued
/// ([`ReflectorStore::wait_for_room`]).
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// use informer_core::{Cached, DeltaFifo, ObjectKey};
///
/// let queue = DeltaFifo::new();
/// let apple = |colour: &str| {
///     Cached::from_parts(ObjectKey::cluster_scoped("apple"), "1".into(), Default::default(), colour.to_owned())
/// };
/// queue.add(apple("green"));
/// queue.update(apple("red"));
///
/// let batch = queue.pop_batch().await.ok_or("closed")?;
/// assert_eq!(batch.items().len(), 1);
/// assert_eq!(batch.items()[0].deltas.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "DeltaFIFO")]
#[doc(alias = "RealFIFO")]
pub struct DeltaFifo<K: 'static> {
    shared: Arc<Shared<K>>,
}

/// The number of queued changes at which a reflector waits for the consumer, to limit memory.
const MAX_DELTAS: usize = if cfg!(informer_loom) { 2 } else { 10_000 };

struct Shared<K: 'static> {
    state: Mutex<State<K>>,
    /// Wakes the consumer when a batch can be taken or the queue is closed.
    wake: Notify,
    /// Wakes producers that wait until fewer changes are queued.
    taken: Notify,
    /// Wakes a consumer in [`Batch::wait_for_more`] when a new change is queued or the queue is
    /// closed.
    arrived: Notify,
    known: Option<Arc<dyn KnownObjects<K>>>,
    synced: Completion,
}

impl<K: 'static> Shared<K> {
    /// Calls `change` with the locked state, and returns its result. Before returning, unlocks the
    /// state, wakes waiting tasks, and drops the deltas that the queue no longer needs
    /// ([`State::garbage`]).
    #[inline]
    fn change<R>(&self, change: impl FnOnce(&mut State<K>) -> R) -> R {
        let (became_ready, became_synced, has_arrived, garbage, result) = {
            let mut state = self.state.lock();
            let before = (state.is_ready(), state.synced(), state.arrivals);
            let result = change(&mut state);
            let garbage = std::mem::take(&mut state.garbage);
            let has_arrived = state.is_arrival_awaited && before.2 != state.arrivals;
            state.is_arrival_awaited &= !has_arrived;
            (!before.0 && state.is_ready(), !before.1 && state.synced(), has_arrived, garbage, result)
        };
        if became_ready {
            self.wake.notify_one();
        }
        if has_arrived {
            self.arrived.notify_waiters();
        }
        if became_synced {
            self.synced.set();
        }
        drop(garbage);
        result
    }

    fn is_full(&self) -> bool {
        let mut state = self.state.lock();
        let is_full = state.deltas >= MAX_DELTAS && !state.closed;
        state.is_room_awaited |= is_full;
        is_full
    }

    async fn wait_for_room(self: Arc<Self>) {
        loop {
            // The future is created before the check, so that no change after the check is missed.
            let taken = self.taken.notified();
            if !self.is_full() {
                return;
            }
            taken.await;
        }
    }

    async fn wait_for_more(self: Arc<Self>, than: u64) {
        loop {
            // The future is created before the check, as in `wait_for_room`.
            let arrived = self.arrived.notified();
            {
                let mut state = self.state.lock();
                if state.arrivals != than || state.closed {
                    return;
                }
                state.is_arrival_awaited = true;
            }
            arrived.await;
        }
    }

    /// Ends all waits for an initial list, or for the release of a namespace, with an error. Call
    /// this when the queue has ended: it is closed and all its changes have been processed, it is
    /// [abandoned](DeltaFifo::abandon), or its last handle is dropped.
    fn cancel_completions(&self) {
        // I12: every wait ends.
        let of_feeds = self.state.lock().feeds.end();
        self.synced.cancel();
        of_feeds.iter().for_each(Completion::cancel);
    }
}

impl<K: 'static> Drop for Shared<K> {
    fn drop(&mut self) {
        self.cancel_completions();
    }
}

impl<K: 'static> DeltaFifo<K> {
    /// Returns an empty queue without access to a store. A list then queues all of its objects,
    /// except those whose newest unprocessed change has the same version. For an object that the
    /// list lacks, a deletion is queued only if the object has an unprocessed change.
    #[must_use]
    pub fn new() -> Self {
        Self::with_known(None)
    }

    /// Returns an empty queue whose consumer stores its objects in `known`. A list then queues only
    /// new objects, and objects that differ from their newest known version: the version in an
    /// unprocessed change, or else in the store. A [complete](Replacement::complete) list also
    /// queues deletions of the known objects that the list lacks.
    #[must_use]
    pub fn with_known_objects(known: Arc<dyn KnownObjects<K>>) -> Self {
        Self::with_known(Some(known))
    }

    fn with_known(known: Option<Arc<dyn KnownObjects<K>>>) -> Self {
        let state = Mutex::new(State::new());
        Self {
            shared: Arc::new(Shared {
                state,
                wake: Notify::new(),
                taken: Notify::new(),
                arrived: Notify::new(),
                known,
                synced: Completion::new(),
            }),
        }
    }

    /// Queues an object as new.
    pub fn add(&self, object: Cached<K>) {
        self.shared.change(|state| state.push(Delta::Added(object)));
    }

    /// Queues a new version of an object.
    pub fn update(&self, object: Cached<K>) {
        self.shared.change(|state| state.push(Delta::Updated(object)));
    }

    /// Queues the deletion of an object. Two consecutive deletions of a key are merged.
    pub fn delete(&self, deleted: Deleted<K>) {
        self.shared.change(|state| state.push(Delta::Deleted(deleted)));
    }

    /// Queues a [`Delta::Sync`] for each object in the consumer's store that has no unprocessed
    /// change. While the initial list is arriving, queues nothing. With [feeds](Self::feed), this
    /// rule applies to each namespace separately.
    ///
    /// A resync sends no request to the server. It is for handlers that periodically process all
    /// objects again. A queue [without a store](Self::new) never queues resyncs.
    pub fn resync(&self) {
        self.shared.resync();
    }

    /// Waits for changes and takes all of them. Returns `None` once the queue is closed and empty.
    ///
    /// One batch is in flight at a time: changes are taken only after the previous batch has been
    /// dropped.
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future takes nothing from the queue.
    #[doc(alias = "PopBatch")]
    pub async fn pop_batch(&self) -> Option<Batch<K>> {
        self.pop_with(State::take_all).await
    }

    /// Waits for changes and takes the changes of the oldest key. Returns `None` once the queue is
    /// closed and empty. Changes are taken only after the previous batch has been dropped.
    ///
    /// The batch has one item, or no item if it only reports progress, such as a new
    /// [watermark](Batch::watermark).
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future takes nothing from the queue.
    pub async fn pop(&self) -> Option<Batch<K>> {
        self.pop_with(State::take_one).await
    }

    async fn pop_with(&self, take: impl Fn(&mut State<K>) -> Taken<K>) -> Option<Batch<K>> {
        loop {
            // The future is created before the check, so that no change after the check is missed.
            let woken = self.shared.wake.notified();
            {
                let mut state = self.shared.state.lock();
                if state.is_ready() {
                    let taken = take(&mut state);
                    let makes_room = state.is_room_awaited && state.deltas < MAX_DELTAS;
                    state.is_room_awaited &= !makes_room;
                    drop(state);
                    if makes_room {
                        self.shared.taken.notify_waiters();
                    }
                    return Some(Batch::new(Arc::clone(&self.shared), taken));
                }
                if state.is_drained() {
                    let is_finished = state.is_finished();
                    drop(state);
                    if is_finished {
                        self.shared.cancel_completions();
                    }
                    return None;
                }
            }
            woken.await;
        }
    }

    /// Closes the queue. Queued changes can still be taken, even those that are queued after this
    /// call. While the closed queue is empty, every `pop` returns `None`. When it is empty and the
    /// last batch has been dropped, every remaining wait for [`synced`](Self::synced) ends with an
    /// error.
    pub fn close(&self) {
        let is_finished = {
            let mut state = self.shared.state.lock();
            state.closed = true;
            state.is_finished()
        };
        self.shared.wake.notify_waiters();
        self.shared.taken.notify_waiters();
        self.shared.arrived.notify_waiters();
        if is_finished {
            self.shared.cancel_completions();
        }
    }

    /// Closes the queue after its consumer has ended: no further batch will be processed. Every
    /// remaining wait for [`synced`](Self::synced) ends at once with an error. In contrast,
    /// [`close`](Self::close) lets the consumer process the queued changes first.
    pub fn abandon(&self) {
        self.close();
        self.shared.cancel_completions();
    }

    /// Returns whether the queue has been closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.state.lock().closed
    }

    /// Returns the number of queued keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.state.lock().len()
    }

    /// Returns whether no key is queued.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a [`Completion`] that is set when the consumer has processed the initial list. A
    /// batch counts as processed when it is dropped, unless a panic drops it. If the first input of
    /// a queue without [feeds](Self::feed) is a change, for example from [`add`](Self::add), there
    /// is no initial list: the completion is set when this change is queued.
    #[must_use]
    pub fn synced(&self) -> Completion {
        self.shared.synced.clone()
    }

    /// Returns whether the completion [`synced`](Self::synced) is set.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.shared.synced.has_synced()
    }
}

impl<K: Send + Sync + 'static> ReflectorStore<K> for DeltaFifo<K> {
    fn apply(&self, changes: Vec<Delta<K>>, resource_version: &ResourceVersion) {
        self.shared.change(|state| {
            for delta in changes {
                state.push(delta);
            }
            state.advance(resource_version);
        });
    }

    /// Receives one part of a list and returns its objects. For an object whose newest version in
    /// the queue or the [consumer's store](Self::with_known_objects) is the same version, returns
    /// the existing handle.
    ///
    /// If the list is the initial list and the queue has access to the store, queues the new and
    /// changed objects of this part at once. Otherwise [`replace`](ReflectorStore::replace) queues
    /// them at the end of the list.
    fn list_part(&self, mut objects: Vec<Cached<K>>) -> Vec<Cached<K>> {
        let mut unused = Vec::new();
        let known = self.shared.known.as_deref();
        self.shared.index_in_flight_then_change(|state| unused = state.list_part(&mut objects, None, known));
        // I8: objects are dropped while the queue is not locked.
        drop(unused);
        objects
    }

    /// Queues a [`Delta::Replaced`] for each new or changed object. If the list is
    /// [complete](Replacement::complete), then queues a deletion for each object that the list
    /// lacks and that is queued, in flight or in the store, unless the object's newest change is a
    /// removal already. Unchanged objects are not queued.
    fn replace(&self, replacement: Replacement<K>) {
        let listed = Listed::new(replacement, None);
        self.shared.replace(&listed);
        // I8: objects are dropped while the queue is not locked.
        drop(listed);
    }

    /// Returns a future that waits while at least 10,000 changes are queued and the queue is open.
    /// Returns `None` if fewer changes are queued now, or if the queue is closed.
    /// [Requeued](Batch::requeue) changes do not count.
    fn wait_for_room(&self) -> Option<BoxFuture<'static, ()>> {
        let is_full = self.shared.is_full();
        is_full.then(|| Arc::clone(&self.shared).wait_for_room().boxed())
    }
}

impl<K: 'static> Clone for DeltaFifo<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K: 'static> Default for DeltaFifo<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: 'static> fmt::Debug for DeltaFifo<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeltaFifo")
            .field("len", &self.len())
            .field("has_synced", &self.has_synced())
            .finish_non_exhaustive()
    }
}
