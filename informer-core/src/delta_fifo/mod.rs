//! [`DeltaFifo`]: the queue between the reflector and the store.
//!
//! It holds the unprocessed changes of each key, and returns keys in the order in which they were
//! queued. client-go: `DeltaFIFO` of `tools/cache/delta_fifo.go`. In addition,
//! [`DeltaFifo::pop_batch`] takes the whole backlog at once: then each batch leads the consumer to
//! exactly one state of the server (I9).
//!
//! Note: between the pop and the end of processing, an object is neither queued nor in the store.
//! So the queue keeps the batch in flight until the [`Batch`] is dropped, and lists are compared
//! with that batch, too.
//!
//! Lock order: the queue's lock, then the store's (through [`KnownObjects`]).

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
/// It has any number of producers and one consumer, who processes one [`Batch`] at a time.
/// Producers do not wait, except for a reflector when many changes are queued
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

/// The number of queued changes at which a reflector waits. It keeps the consumer busy, and is
/// small compared with the number of objects in a cluster that has so many changes at once.
const MAX_DELTAS: usize = if cfg!(informer_loom) { 2 } else { 10_000 };

struct Shared<K: 'static> {
    state: Mutex<State<K>>,
    /// Wakes the consumer when a batch can be taken, or the queue is closed.
    wake: Notify,
    /// Wakes producers that wait for room.
    taken: Notify,
    /// Wakes a consumer that waits for a change that it has not requeued itself.
    arrived: Notify,
    known: Option<Arc<dyn KnownObjects<K>>>,
    synced: Completion,
}

impl<K: 'static> Shared<K> {
    /// Changes the state and wakes the tasks that wait for the change.
    #[inline]
    fn change(&self, change: impl FnOnce(&mut State<K>)) {
        let (became_ready, became_synced, has_arrived, garbage) = {
            let mut state = self.state.lock();
            let before = (state.is_ready(), state.synced(), state.arrivals());
            change(&mut state);
            let garbage = std::mem::take(&mut state.garbage);
            let has_arrived = state.is_arrival_awaited && before.2 != state.arrivals();
            state.is_arrival_awaited &= !has_arrived;
            (!before.0 && state.is_ready(), !before.1 && state.synced(), has_arrived, garbage)
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
    }

    fn is_full(&self) -> bool {
        let mut state = self.state.lock();
        let is_full = state.deltas() >= MAX_DELTAS && !state.closed;
        state.is_room_awaited |= is_full;
        is_full
    }

    async fn wait_for_room(self: Arc<Self>) {
        loop {
            // Created before the check, so that no later change is missed.
            let taken = self.taken.notified();
            if !self.is_full() {
                return;
            }
            taken.await;
        }
    }

    async fn wait_for_more(self: Arc<Self>, than: u64) {
        loop {
            // Created before the check, as in `wait_for_room`.
            let arrived = self.arrived.notified();
            {
                let mut state = self.state.lock();
                if state.arrivals() != than || state.closed {
                    return;
                }
                state.is_arrival_awaited = true;
            }
            arrived.await;
        }
    }

    /// I12: nothing will be processed any more, so all waits end.
    fn give_up(&self) {
        let of_feeds = self.state.lock().feeds.end();
        self.synced.give_up();
        of_feeds.iter().for_each(Completion::give_up);
    }
}

impl<K: 'static> Drop for Shared<K> {
    fn drop(&mut self) {
        self.give_up();
    }
}

impl<K: 'static> DeltaFifo<K> {
    /// Returns an empty queue without known objects. Then a list queues all of its objects, and
    /// deletes only objects that are still queued.
    #[must_use]
    pub fn new() -> Self {
        Self::with_known(None)
    }

    /// Returns an empty queue whose consumer keeps its objects in a store. A list then queues only
    /// differences, and deletes the known objects that it lacks.
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

    /// Queues the deletion of an object. Two deletions in a row become one.
    pub fn delete(&self, deleted: Deleted<K>) {
        self.shared.change(|state| state.push(Delta::Deleted(deleted)));
    }

    /// Queues a [`Delta::Sync`] for every known object that has no pending change.
    ///
    /// This sends no request to the server. It serves handlers that periodically process all
    /// objects again. It does nothing without [known objects](Self::with_known_objects).
    pub fn resync(&self) {
        self.shared.resync();
    }

    /// Waits for changes and takes all of them; `None` once the queue is closed and empty.
    ///
    /// One batch is in flight at a time: this waits until the batch before it has been dropped.
    ///
    /// # Cancel safety
    /// Nothing is taken if the future is dropped.
    #[doc(alias = "PopBatch")]
    pub async fn pop_batch(&self) -> Option<Batch<K>> {
        self.pop_with(State::take_all).await
    }

    /// Waits for changes and takes the oldest key; `None` once the queue is closed and empty. As
    /// with [`pop_batch`](Self::pop_batch), one batch is in flight at a time.
    ///
    /// The batch has one item, or none if only the [watermark](Batch::watermark) has changed.
    ///
    /// # Cancel safety
    /// Nothing is taken if the future is dropped.
    pub async fn pop(&self) -> Option<Batch<K>> {
        self.pop_with(State::take_one).await
    }

    async fn pop_with(&self, take: impl Fn(&mut State<K>) -> Taken<K>) -> Option<Batch<K>> {
        loop {
            // Created before the check, so that no later change is missed.
            let woken = self.shared.wake.notified();
            {
                let mut state = self.shared.state.lock();
                if state.is_ready() {
                    let taken = take(&mut state);
                    let makes_room = state.is_room_awaited && state.deltas() < MAX_DELTAS;
                    state.is_room_awaited &= !makes_room;
                    drop(state);
                    if makes_room {
                        self.shared.taken.notify_waiters();
                    }
                    return Some(Batch::new(Arc::clone(&self.shared), taken));
                }
                if state.is_drained() {
                    let is_over = state.is_over();
                    drop(state);
                    if is_over {
                        self.shared.give_up();
                    }
                    return None;
                }
            }
            woken.await;
        }
    }

    /// Closes the queue. The queued changes can still be taken; then every `pop` returns `None`,
    /// and waits for [`synced`](Self::synced) end with an error. Changes that are queued afterwards
    /// can still be taken, too.
    pub fn close(&self) {
        let is_over = {
            let mut state = self.shared.state.lock();
            state.closed = true;
            state.is_over()
        };
        self.shared.wake.notify_waiters();
        self.shared.taken.notify_waiters();
        self.shared.arrived.notify_waiters();
        if is_over {
            self.shared.give_up();
        }
    }

    /// Closes a queue whose consumer has ended: waits for [`synced`](Self::synced) end with an
    /// error at once.
    pub fn abandon(&self) {
        self.close();
        self.shared.give_up();
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

    /// Returns a [`Completion`] that is set when the initial list has been processed. If the first
    /// call is not a list but a single change, such as [`add`](Self::add), the completion is set at
    /// once.
    #[must_use]
    pub fn synced(&self) -> Completion {
        self.shared.synced.clone()
    }

    /// Returns whether the initial list has been processed.
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

    /// With known objects, the objects of the initial list are queued as they arrive. The queue is
    /// synced when [`replace`](Self::replace) has ended the list and all of its objects have been
    /// processed. Without known objects, only `replace` queues objects, so that each is queued
    /// once.
    fn list_part(&self, mut objects: Vec<Cached<K>>) -> Vec<Cached<K>> {
        let mut unused = Vec::new();
        let known = self.shared.known.as_deref();
        self.shared.change_indexed(|state| unused = state.list_part(&mut objects, None, known));
        // I8: objects are dropped while the queue is not locked.
        drop(unused);
        objects
    }

    /// Queues a [`Delta::Replaced`] for each new or changed object, and a deletion for each object
    /// that is queued, in flight or known and not listed. Unchanged objects are not queued.
    fn replace(&self, replacement: Replacement<K>) {
        let listed = Listed::new(replacement, None);
        self.shared.replace(&listed);
        // I8: objects are dropped while the queue is not locked.
        drop(listed);
    }

    /// Returns a future while ten thousand or more changes are queued.
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
