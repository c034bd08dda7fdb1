//! [`State`]: the pending deltas per key, in the order in which keys were first queued. This code
//! takes no lock and never waits, except for the locks that [`KnownObjects`] takes.
//!
//! - The batch in flight: the batch that the consumer has taken and has not processed yet.
//! - Requeue an item: put an item of the batch in flight back into the queue, with its deltas.
//! - Watermark: the resource version that the consumer's store has after all queued changes.
//! - Ticket: the number of a queued item. It does not change when older items are removed.
//!
//! The code upholds invariant I2: a key is in `index` if and only if it has an entry in `items`,
//! and an entry has at least one delta.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use smallvec::smallvec;

use super::Pending;
use super::feeds::{Feeds, Progress};
use super::in_flight::{InFlight, Processed, Taken};
use super::merge::{append, first_removal, prepend, take_obsolete};
use super::population::Population;
use crate::{Cached, Delta, FeedId, KnownObjects, NamespaceProgress, ObjectKey, ResourceVersion};

/// The number of keys after which a large list, a resync or the release of a namespace unlocks the
/// queue.
pub(super) const SLICE: usize = if cfg!(informer_loom) { 1 } else { 1_024 };

/// The locked state of a queue: the queued changes, the batch in flight, and the progress of the
/// initial list.
pub(super) struct State<K> {
    pub(super) items: VecDeque<Pending<K>>,
    /// Maps each key to the ticket of its item, which is `items[ticket - first_ticket]`.
    pub(super) index: HashTable<u64>,
    pub(super) first_ticket: u64,
    /// The number of queued deltas, without requeued deltas. Producers wait while it is high. It
    /// can be too low after [`take_one`](Self::take_one) has taken requeued deltas.
    pub(super) deltas: usize,
    in_flight: Option<Arc<InFlight<K>>>,
    /// The total number of deltas that have ever been queued, without requeued deltas.
    pub(super) arrivals: u64,
    pub(super) is_arrival_awaited: bool,
    /// Whether a producer possibly waits until fewer changes are queued.
    pub(super) is_room_awaited: bool,
    /// The watermark, until a batch reports it. The next batch that empties the queue moves the
    /// watermark out of this field.
    watermark: Option<ResourceVersion>,
    /// The newest watermark, even if a batch has reported it. When an item is requeued, this
    /// version is copied to `watermark`, so that a later batch reports it again.
    newest: Option<ResourceVersion>,
    pub(super) population: Population,
    /// The progress of each namespace that has its own source. Empty if all objects come from one
    /// source.
    pub(super) feeds: Feeds,
    /// Deltas to drop while the queue is not locked: destructors of objects are user code.
    pub(super) garbage: Vec<Delta<K>>,
    pub(super) closed: bool,
    /// The number of lists and namespace releases that are being queued in several steps. While it
    /// is not zero, no batch can be taken.
    take_blocks: usize,
}

impl<K: 'static> State<K> {
    pub(super) fn new() -> Self {
        Self {
            items: VecDeque::new(),
            index: HashTable::new(),
            first_ticket: 0,
            deltas: 0,
            in_flight: None,
            arrivals: 0,
            is_arrival_awaited: false,
            is_room_awaited: false,
            watermark: None,
            newest: None,
            population: Population::Awaited,
            feeds: Feeds::default(),
            garbage: Vec::new(),
            closed: false,
            take_blocks: 0,
        }
    }

    /// Returns whether a batch can be taken now: the queue has changes or progress to report, no
    /// batch is in flight, and batches are not [blocked](Self::block_takes).
    pub(super) fn is_ready(&self) -> bool {
        // I9: with only a part of a list, the store would not equal any state of the server.
        self.take_blocks == 0 && self.in_flight.is_none() && self.has_content()
    }

    fn has_content(&self) -> bool {
        !self.items.is_empty()
            || self.watermark.is_some()
            || self.population.is_end_due()
            || self.feeds.has_progress()
    }

    /// Prevents batches from being taken until the matching call of
    /// [`unblock_takes`](Self::unblock_takes).
    pub(super) fn block_takes(&mut self) {
        self.take_blocks += 1;
    }

    pub(super) fn unblock_takes(&mut self) {
        self.take_blocks -= 1;
    }

    /// Returns whether the queue is closed and has nothing to take. Returns `false` while batches
    /// are [blocked](Self::block_takes).
    pub(super) fn is_drained(&self) -> bool {
        self.closed && self.take_blocks == 0 && !self.has_content()
    }

    pub(super) fn is_finished(&self) -> bool {
        self.is_drained() && self.in_flight.is_none()
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn synced(&self) -> bool {
        self.population.is_complete()
    }

    /// Queues a change that is not part of a list.
    // This function and `enqueue` are inlined, because passing a delta from function to function
    // costs time.
    #[inline]
    pub(super) fn push(&mut self, delta: Delta<K>) {
        self.population.skip_initial_list();
        self.enqueue(delta);
    }

    #[inline]
    pub(super) fn enqueue(&mut self, delta: Delta<K>) {
        let Self { items, index, first_ticket, deltas, arrivals, garbage, .. } = self;
        *deltas += 1;
        *arrivals += 1;
        let at = |ticket: u64| (ticket - *first_ticket) as usize;
        let hash = delta.key().hash_value();
        let entry = index.entry(
            hash,
            |&ticket| items[at(ticket)].key.hash_value() == hash && items[at(ticket)].key == *delta.key(),
            |&ticket| items[at(ticket)].key.hash_value(),
        );
        match entry {
            Entry::Occupied(occupied) => {
                let pending = &mut items[at(*occupied.get())];
                if std::mem::take(&mut pending.requeued) {
                    garbage.extend(take_obsolete(&mut pending.deltas));
                }
                let merged = append(&mut pending.deltas, delta);
                *deltas -= usize::from(merged.is_some());
                garbage.extend(merged);
            }
            Entry::Vacant(vacant) => {
                vacant.insert(*first_ticket + items.len() as u64);
                items.push_back(Pending {
                    key: delta.key().clone(),
                    deltas: smallvec![delta],
                    initial: false,
                    requeued: false,
                });
            }
        }
    }

    /// Queues an item at the end of the queue. No other item of its key may be queued.
    fn push_back(&mut self, pending: Pending<K>) {
        let Self { items, index, first_ticket, .. } = self;
        let hash_of = |&ticket: &u64| items[(ticket - *first_ticket) as usize].key.hash_value();
        index.insert_unique(pending.key.hash_value(), *first_ticket + items.len() as u64, hash_of);
        items.push_back(pending);
    }

    fn position(&self, key: &ObjectKey) -> Option<usize> {
        let at = |ticket: u64| (ticket - self.first_ticket) as usize;
        self.index
            .find(key.hash_value(), |&ticket| self.items[at(ticket)].key == *key)
            .map(|&ticket| at(ticket))
    }

    /// Queues changes that the watch of one namespace has reported.
    pub(super) fn apply_to_feed(
        &mut self,
        feed: FeedId,
        changes: Vec<Delta<K>>,
        resource_version: &ResourceVersion,
    ) {
        if !self.feeds.is_watched(feed) {
            self.garbage.extend(changes);
            return;
        }
        self.feeds.record_input(feed);
        for delta in changes {
            self.enqueue(delta);
        }
        self.feeds.advance(feed, resource_version);
    }

    /// Records which version the consumer's store has after the consumer has processed all changes
    /// that are queued now. An empty `resource_version` changes nothing.
    pub(super) fn advance(&mut self, resource_version: &ResourceVersion) {
        if !resource_version.is_empty() {
            self.set_list_version(resource_version);
        }
    }

    /// Replaces an earlier `watermark` by the resource version of a list, even if this version is
    /// empty: the earlier watermark does not describe the state after the list.
    pub(super) fn set_list_version(&mut self, resource_version: &ResourceVersion) {
        if !resource_version.is_empty() || self.newest.is_some() {
            self.newest = Some(resource_version.clone());
            self.watermark.clone_from(&self.newest);
        }
    }

    pub(super) fn last_queued(&self, key: &ObjectKey) -> Option<&Delta<K>> {
        self.position(key).map(|position| self.items[position].last())
    }

    pub(super) fn last_in_flight(&self, key: &ObjectKey) -> Option<&Delta<K>> {
        self.in_flight.as_ref().and_then(|batch| batch.last(key))
    }

    /// Marks a queued key as part of the initial list. Returns `false` if the key was marked
    /// before, or if the key is not queued.
    pub(super) fn mark_initial(&mut self, key: &ObjectKey) -> bool {
        let Some(position) = self.position(key) else { return false };
        !std::mem::replace(&mut self.items[position].initial, true)
    }

    /// Appends the newest change of each queued item to `queued`, for up to [`SLICE`] items from
    /// `ticket` on, and advances `ticket`. Appends the batch in flight to `in_flight` if it is not
    /// the last one there. Returns whether no items are left.
    pub(super) fn collect(
        &self,
        ticket: &mut u64,
        queued: &mut Vec<Delta<K>>,
        in_flight: &mut Vec<Arc<InFlight<K>>>,
    ) -> bool {
        if let Some(batch) = &self.in_flight
            && in_flight.last().is_none_or(|last| !Arc::ptr_eq(last, batch))
        {
            in_flight.push(Arc::clone(batch));
        }
        let start = ticket.saturating_sub(self.first_ticket) as usize;
        let end = self.items.len().min(start + SLICE);
        queued.extend(self.items.range(start..end).map(|pending| pending.last().clone()));
        *ticket = self.first_ticket + end as u64;
        end == self.items.len()
    }

    /// Returns the batch in flight if it has more than [`SLICE`] items and no index by key yet. The
    /// caller builds the index while the queue is not locked.
    pub(super) fn large_batch_without_index(&self) -> Option<Arc<InFlight<K>>> {
        self.in_flight.as_ref().filter(|batch| batch.is_large_without_index()).cloned()
    }

    /// Queues a resync for each of `objects` that is in the consumer's store and has no unprocessed
    /// change. Skips namespaces whose initial list is still arriving.
    pub(super) fn resync(&mut self, objects: &[Cached<K>], known: &dyn KnownObjects<K>) {
        for key in objects.iter().map(Cached::key) {
            let has_change = self.position(key).is_some() || self.last_in_flight(key).is_some();
            if has_change || self.feeds.is_arriving(key) {
                continue;
            }
            if let Some(object) = known.known(key) {
                // I8: this can be the last handle of the object.
                self.garbage.push(Delta::Replaced(object));
                self.enqueue(Delta::Sync(key.clone()));
            }
        }
    }

    /// Returns whether a part of the initial list has arrived, but not the whole list. Always
    /// `false` for a queue with feeds or without a store.
    pub(super) fn is_first_list_arriving(&self) -> bool {
        self.feeds.is_empty() && self.population.is_arriving()
    }

    pub(super) fn take_all(&mut self) -> Taken<K> {
        let count = self.items.len();
        // The next backlog is likely to be of similar size.
        let next = VecDeque::with_capacity(count.min(1_024));
        let items = Vec::from(std::mem::replace(&mut self.items, next));
        self.first_ticket += count as u64;
        self.deltas = 0;
        // Clearing a table takes time proportional to its capacity, so a table that a burst has
        // enlarged is replaced.
        if self.index.capacity() > 4 * count + 64 {
            self.index = HashTable::with_capacity(count);
        } else {
            self.index.clear();
        }
        self.start_batch(items)
    }

    /// Takes the first queued item, if any, as a batch with one item or none.
    pub(super) fn take_one(&mut self) -> Taken<K> {
        let first = self.items.pop_front();
        if let Some(pending) = &first {
            self.deltas = self.deltas.saturating_sub(pending.deltas.len());
            let ticket = self.first_ticket;
            if let Ok(entry) = self.index.find_entry(pending.key.hash_value(), |&other| other == ticket) {
                entry.remove();
            }
            self.first_ticket += 1;
        }
        self.start_batch(first.into_iter().collect())
    }

    fn start_batch(&mut self, items: Vec<Pending<K>>) -> Taken<K> {
        let initial = items.iter().filter(|pending| pending.initial).count();
        let completes_initial = self.population.taken(initial);
        let in_flight = Arc::new(InFlight::new(items));
        self.in_flight = Some(Arc::clone(&in_flight));
        // I9: the consumer reaches a state of the server only with a batch that empties the queue.
        let (watermark, namespaces) =
            if self.items.is_empty() { self.take_watermark() } else { (None, Vec::new()) };
        // If changes are still queued, this number differs from `self.arrivals`, so that
        // `Batch::wait_for_more` is ready at once.
        let arrivals = self.arrivals.wrapping_sub(u64::from(!self.items.is_empty()));
        Taken { in_flight, initial, completes_initial, watermark, namespaces, arrivals }
    }

    fn take_watermark(&mut self) -> (Option<ResourceVersion>, Vec<NamespaceProgress>) {
        let Progress { minimum, namespaces } = self.feeds.take_progress();
        (self.watermark.take().or(minimum), namespaces)
    }

    /// Requeues the item at `position` of the batch in flight, `taken`. If newer changes of the
    /// item's key are queued, requeues only the item's deletion or release (see [`first_removal`]),
    /// because the newer changes replace all other changes of the item.
    pub(super) fn requeue(&mut self, taken: &mut Taken<K>, position: usize) {
        let failed = &taken.in_flight.items[position];
        // I9: the consumer's store will lack the changes of this item.
        taken.watermark = None;
        taken.namespaces.clear();
        self.watermark.clone_from(&self.newest);
        self.feeds.revoke_progress();
        taken.initial -= usize::from(failed.initial);
        let queued = self.position(&failed.key);
        let queued_initial = queued.is_some_and(|position| self.items[position].initial);
        self.population.requeued(failed.initial, queued_initial, &mut taken.completes_initial);
        match queued {
            Some(newer) => {
                let newer = &mut self.items[newer];
                newer.initial |= failed.initial;
                let removal = first_removal(&failed.deltas).cloned();
                self.garbage.extend(removal.and_then(|removal| prepend(&mut newer.deltas, removal)));
            }
            None => self.push_back(Pending { requeued: true, ..failed.clone() }),
        }
    }

    /// Requeues all items of the batch in flight, except those at the positions `requeued`. A later
    /// batch then reports the watermark and the end of the initial list.
    pub(super) fn requeue_rest(&mut self, taken: &mut Taken<K>, requeued: &HashSet<usize>) {
        for position in (0..taken.in_flight.items.len()).filter(|position| !requeued.contains(position)) {
            self.requeue(taken, position);
        }
        if taken.in_flight.items.is_empty() {
            taken.namespaces.clear();
            self.feeds.revoke_progress();
            if taken.watermark.take().is_some() {
                self.watermark.clone_from(&self.newest);
            }
        }
        if std::mem::take(&mut taken.completes_initial) {
            self.population.revoke_end();
        }
    }

    /// Records that the consumer has processed the batch in flight, whose content is `taken`.
    ///
    /// The caller must set the completions in [`Processed::completed`] after it has unlocked the
    /// queue. This wakes the tasks that wait for a namespace's initial list or for the removal of a
    /// namespace's objects.
    pub(super) fn processed(&mut self, taken: &Taken<K>) -> Processed {
        // I8: `taken` also has the items, so no object is dropped here.
        self.in_flight = None;
        let completed = self.feeds.processed(&taken.namespaces);
        let completes_initial = self.population.processed(taken.initial, taken.completes_initial);
        Processed { completes_initial, completed }
    }
}
