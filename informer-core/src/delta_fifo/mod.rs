//! [`DeltaFifo`]: the queue between the reflector and the store.
//!
//! It holds for each key the changes that are not yet processed, and hands keys out in the order in which they were
//! queued. client-go: `DeltaFIFO` of `tools/cache/delta_fifo.go`. Beyond it, [`DeltaFifo::pop_batch`] takes the whole
//! backlog at once: the consumer falls behind in time, but never in work per key, and what it has after a batch is
//! exactly one state of the server (I9).
//!
//! One fact that is easy to get wrong: between being taken out and being in the store, an object is in neither. The
//! queue remembers what is out ([`Batch`] tells it when it is done), so that a list that arrives just then misses
//! nothing.
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

/// A queue of changes, at most one entry per key. Cloning gives another handle on the same queue.
///
/// Any number of producers, one consumer. Producers never wait, but for a reflector that is far ahead
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

/// As many changes may wait before a reflector is asked to wait too: enough that the consumer never runs dry, and few
/// next to the objects of a cluster in which so many change at once.
const ROOM: usize = if cfg!(informer_loom) { 2 } else { 10_000 };

struct Shared<K: 'static> {
    state: Mutex<State<K>>,
    /// Wakes the consumer: there is something to take, or the queue is closed.
    wake: Notify,
    /// Wakes producers that wait for room.
    taken: Notify,
    /// Wakes a consumer that waits for something other than what it has put back.
    arrived: Notify,
    known: Option<Arc<dyn KnownObjects<K>>>,
    synced: Completion,
}

impl<K: 'static> Shared<K> {
    /// Changes the state and tells whoever waits for what has come of it.
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
        let is_full = state.deltas() >= ROOM && !state.closed;
        state.is_room_awaited |= is_full;
        is_full
    }

    async fn wait_for_room(self: Arc<Self>) {
        loop {
            // Made before the look at the state, so that a change after it is not missed.
            let taken = self.taken.notified();
            if !self.is_full() {
                return;
            }
            taken.await;
        }
    }

    async fn wait_for_more(self: Arc<Self>, than: u64) {
        loop {
            // As above.
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

    /// I12: nothing will be processed any more, so nobody is to wait for it.
    fn give_up(&self) {
        let of_feeds = self.state.lock().feeds.end();
        self.synced.give_up();
        for promise in of_feeds {
            promise.give_up();
        }
    }
}

impl<K: 'static> Drop for Shared<K> {
    fn drop(&mut self) {
        // Nobody can fill or empty it any more.
        self.give_up();
    }
}

impl<K: 'static> DeltaFifo<K> {
    /// Returns an empty queue with no store behind it: a list is then handed out whole, and can only tell as deleted what
    /// is still queued.
    #[must_use]
    pub fn new() -> Self {
        Self::with_known(None)
    }

    /// Returns an empty queue before a store, whose objects count as known.
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

    /// Queues the end of an object. A second deletion in a row is merged into the first.
    pub fn delete(&self, deleted: Deleted<K>) {
        self.shared.change(|state| state.push(Delta::Deleted(deleted)));
    }

    /// Queues every known object that has nothing pending once more, as [`Delta::Sync`].
    ///
    /// This doesn't ask the server for anything; it is for handlers that want to look at everything again from time to
    /// time. Does nothing without [known objects](Self::with_known_objects).
    pub fn resync(&self) {
        self.shared.resync();
    }

    /// Takes out all that is queued, waiting until there is something. `None`: the queue is closed and empty.
    ///
    /// # Cancel safety
    /// Nothing is taken if the future is dropped.
    #[doc(alias = "PopBatch")]
    pub async fn pop_batch(&self) -> Option<Batch<K>> {
        self.pop_with(State::take_all).await
    }

    /// Takes out the key that has waited longest, waiting until there is one. `None`: the queue is closed and empty.
    ///
    /// The batch has one item, or none where there is only news of the [watermark](Batch::watermark).
    ///
    /// # Cancel safety
    /// Nothing is taken if the future is dropped.
    pub async fn pop(&self) -> Option<Batch<K>> {
        self.pop_with(State::take_one).await
    }

    async fn pop_with(&self, take: impl Fn(&mut State<K>) -> Taken<K>) -> Option<Batch<K>> {
        loop {
            // Made before the look at the state, so that a change after it is not missed.
            let woken = self.shared.wake.notified();
            {
                let mut state = self.shared.state.lock();
                if state.is_ready() {
                    let taken = take(&mut state);
                    let makes_room = state.is_room_awaited && state.deltas() < ROOM;
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

    /// Closes the queue: what is queued can still be taken, then every `pop` returns `None`, and whoever waits for
    /// [`synced`](Self::synced) hears that it will not be. What is queued afterwards is still taken in.
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

    /// Closes the queue, whose consumer is gone: whoever waits for what it would have processed hears that it will not be.
    pub fn abandon(&self) {
        self.close();
        self.shared.give_up();
    }

    /// Returns whether the queue has been closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.state.lock().closed
    }

    /// Returns how many keys are queued.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.state.lock().len()
    }

    /// Returns whether no key is queued.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the promise that the first list has been processed to its end; kept at once where the queue is filled
    /// by single changes instead of a list.
    #[must_use]
    pub fn synced(&self) -> Completion {
        self.shared.synced.clone()
    }

    /// Returns whether the first list has been processed to its end.
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

    /// Before a store, objects of the first list are queued as they come; the queue is synced when all of them have been
    /// processed, once [`replace`](Self::replace) has told where the list ends. Without a store they are queued by
    /// `replace` alone, so that each is handed out once.
    fn list_part(&self, mut objects: Vec<Cached<K>>) -> Vec<Cached<K>> {
        let mut superfluous = Vec::new();
        let known = self.shared.known.as_deref();
        self.shared.change_indexed(|state| superfluous = state.list_part(&mut objects, None, known));
        // I8: here, where the queue is not locked.
        drop(superfluous);
        objects
    }

    /// Queues what is news, as [`Delta::Replaced`], and a deletion for each object that is queued, being processed or
    /// known, but not listed. An object that is there already in the listed version is not queued again.
    fn replace(&self, replacement: Replacement<K>) {
        let listed = Listed::new(replacement, None);
        self.shared.replace(&listed);
        // I8: as above.
        drop(listed);
    }

    /// There is no room while ten thousand changes wait.
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
