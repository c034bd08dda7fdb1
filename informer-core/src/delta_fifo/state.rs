//! The queue's content: pending deltas per key in the order in which keys were first queued. No lock, no waiting.
//!
//! Upholds I2: a key is in `index` if and only if it has an entry in `items`, and an entry has at least one delta.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use smallvec::smallvec;

use super::Pending;
use super::feeds::{Feeds, News};
use super::in_flight::{InFlight, InFlightItems, Processed, Taken};
use super::merge::{append, prepend};
use super::population::Population;
use crate::{Cached, Delta, FeedId, FeedNews, KnownObjects, ObjectKey, ResourceVersion};

/// How many keys are looked at, or queued, before others get the lock.
pub(super) const SLICE: usize = if cfg!(informer_loom) { 1 } else { 1_024 };

/// What is queued, what is out for processing, and how far the initial population has come.
pub(super) struct State<K> {
    pub(super) items: VecDeque<Pending<K>>,
    /// Ticket numbers by key. The item with ticket `n` stands at `items[n - first_ticket]`.
    pub(super) index: HashTable<u64>,
    pub(super) first_ticket: u64,
    /// How many deltas the items have, without those that were put back: what fails again and again must not keep what
    /// is new from coming in. So rather too few than too many.
    deltas: usize,
    /// The batch that was taken and is not processed. Its items are neither queued nor in the store, so lists check it too.
    in_flight: Option<InFlight<K>>,
    next_batch: u64,
    /// Counts what has been queued, but for what was put back.
    arrivals: u64,
    /// Whether somebody waits for the next arrival.
    pub(super) is_arrival_awaited: bool,
    /// Whether somebody waits for room.
    pub(super) is_room_awaited: bool,
    /// How far the server had come when the last change was queued; taken along when the queue is emptied.
    watermark: Option<ResourceVersion>,
    /// The same, whether or not it has been taken along.
    newest: Option<ResourceVersion>,
    pub(super) population: Population,
    /// The namespaces that come in one by one, each with a watermark of its own; none if all come as one.
    pub(super) feeds: Feeds,
    /// What has been put out of use, to be dropped when the queue is not locked: an object's drop is its owner's code
    /// (I8).
    pub(super) garbage: Vec<Delta<K>>,
    pub(super) closed: bool,
    /// How many lists are being queued in slices. Until they are complete, nothing can be taken out: part of a list leads to
    /// no state of the server (I9).
    holds: usize,
}

impl<K: 'static> State<K> {
    pub(super) fn new() -> Self {
        Self {
            items: VecDeque::new(),
            index: HashTable::new(),
            first_ticket: 0,
            deltas: 0,
            in_flight: None,
            next_batch: 0,
            arrivals: 0,
            is_arrival_awaited: false,
            is_room_awaited: false,
            watermark: None,
            newest: None,
            population: Population::Awaited,
            feeds: Feeds::default(),
            garbage: Vec::new(),
            closed: false,
            holds: 0,
        }
    }

    /// Returns whether there is anything to take: changes, news of the watermark, or the word that the first list,
    /// an empty one, is complete.
    pub(super) fn is_ready(&self) -> bool {
        self.holds == 0 && self.in_flight.is_none() && self.has_content()
    }

    fn has_content(&self) -> bool {
        !self.items.is_empty()
            || self.watermark.is_some()
            || self.population.is_to_be_told()
            || self.feeds.has_news()
    }

    /// Keeps everything in the queue, until as many calls of [`release_hold`](Self::release_hold) have followed.
    pub(super) fn hold(&mut self) {
        self.holds += 1;
    }

    pub(super) fn release_hold(&mut self) {
        self.holds -= 1;
    }

    /// Returns whether nothing more can ever be taken out.
    pub(super) fn is_drained(&self) -> bool {
        self.closed && self.holds == 0 && !self.has_content()
    }

    /// Returns whether all is done: what has not come by now is not expected any more.
    pub(super) fn is_over(&self) -> bool {
        self.is_drained() && self.in_flight.is_none()
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn arrivals(&self) -> u64 {
        self.arrivals
    }

    pub(super) fn deltas(&self) -> usize {
        self.deltas
    }

    pub(super) fn synced(&self) -> bool {
        self.population.is_complete()
    }

    /// Queues one change behind those that its key already has.
    // Inlined, here and below: a change is too large to be moved from function to function at no cost.
    #[inline]
    pub(super) fn push(&mut self, delta: Delta<K>) {
        self.population.no_list();
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
                let merged = append(&mut items[at(*occupied.get())].deltas, delta);
                *deltas -= usize::from(merged.is_some());
                garbage.extend(merged);
            }
            Entry::Vacant(vacant) => {
                vacant.insert(*first_ticket + items.len() as u64);
                items.push_back(Pending {
                    key: delta.key().clone(),
                    deltas: smallvec![delta],
                    initial: false,
                });
            }
        }
    }

    /// Queues a key that is not queued.
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

    pub(super) fn is_queued(&self, key: &ObjectKey) -> bool {
        self.position(key).is_some()
    }

    /// Queues what a watch of one namespace has reported.
    pub(super) fn apply_to_feed(
        &mut self,
        feed: FeedId,
        changes: Vec<Delta<K>>,
        resource_version: &ResourceVersion,
    ) {
        if !self.feeds.is_followed(feed) {
            self.garbage.extend(changes);
            return;
        }
        for delta in changes {
            self.enqueue(delta);
        }
        self.feeds.advance(feed, resource_version);
    }

    /// Changes lead to this version; an empty one says nothing.
    pub(super) fn advance(&mut self, resource_version: &ResourceVersion) {
        if !resource_version.is_empty() {
            self.reach(resource_version);
        }
    }

    /// A list leads to this version. If it is empty, that is a state that has none, and no longer the one before (I9).
    pub(super) fn reach(&mut self, resource_version: &ResourceVersion) {
        if !resource_version.is_empty() || self.newest.is_some() {
            self.newest = Some(resource_version.clone());
            self.watermark.clone_from(&self.newest);
        }
    }

    /// The newest change to this key that is queued.
    pub(super) fn last_queued(&self, key: &ObjectKey) -> Option<&Delta<K>> {
        self.position(key).map(|position| self.items[position].last())
    }

    /// The newest change to this key that is out for processing.
    pub(super) fn last_in_flight(&self, key: &ObjectKey) -> Option<&Delta<K>> {
        self.in_flight.as_ref().and_then(|batch| batch.last(key))
    }

    /// Counts what is queued of a key for the first list; returns whether it was not counted yet.
    pub(super) fn mark_initial(&mut self, key: &ObjectKey) -> bool {
        let Some(position) = self.position(key) else { return false };
        !std::mem::replace(&mut self.items[position].initial, true)
    }

    /// Copies what is queued from `ticket` on, a slice of it, and adds the batches that are being processed. Returns whether
    /// that was all; else `ticket` says where to go on.
    pub(super) fn collect(
        &self,
        ticket: &mut u64,
        queued: &mut Vec<Delta<K>>,
        in_flight: &mut Vec<InFlightItems<K>>,
    ) -> bool {
        let is_known = |id| in_flight.iter().any(|known| known.id == id);
        let new: Vec<_> = self.in_flight.iter().filter(|batch| !is_known(batch.id)).collect();
        in_flight.extend(new.into_iter().map(InFlight::items));
        let start = ticket.saturating_sub(self.first_ticket) as usize;
        let end = self.items.len().min(start + SLICE);
        queued.extend(self.items.range(start..end).map(|pending| pending.last().clone()));
        *ticket = self.first_ticket + end as u64;
        end == self.items.len()
    }

    /// The large batches in which a key can't be found yet without a look at all of them.
    pub(super) fn without_index(&self) -> Vec<InFlightItems<K>> {
        self.in_flight.iter().filter(|batch| batch.is_large_without_index()).map(InFlight::items).collect()
    }

    /// Queues known objects once more, each unless there is news of it anyway, or it has gone.
    pub(super) fn resync(&mut self, objects: &[Cached<K>], known: &dyn KnownObjects<K>) {
        for key in objects.iter().map(Cached::key) {
            if self.is_queued(key) || self.last_in_flight(key).is_some() || self.feeds.is_arriving(key) {
                continue;
            }
            if known.known(key).is_some() {
                self.enqueue(Delta::Sync(key.clone()));
            }
        }
    }

    /// Returns whether a resync has to wait, because the first list is incomplete.
    pub(super) fn is_first_list_arriving(&self) -> bool {
        self.feeds.is_empty() && self.population.is_arriving()
    }

    /// Takes out everything.
    pub(super) fn take_all(&mut self) -> Taken<K> {
        let count = self.items.len();
        // What comes next is likely to be about as much.
        let next = VecDeque::with_capacity(count.min(1_024));
        let items = Vec::from(std::mem::replace(&mut self.items, next));
        self.first_ticket += count as u64;
        self.deltas = 0;
        // Clearing costs as much as the table is large; one that a burst has blown up is given back instead.
        if self.index.capacity() > 4 * count + 64 {
            self.index = HashTable::with_capacity(count);
        } else {
            self.index.clear();
        }
        self.hand_out(items)
    }

    /// Takes out the key that has waited longest.
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
        self.hand_out(first.into_iter().collect())
    }

    fn hand_out(&mut self, items: Vec<Pending<K>>) -> Taken<K> {
        let id = self.next_batch;
        self.next_batch += 1;
        let initial = items.iter().filter(|pending| pending.initial).count();
        let completes_initial = self.population.taken(initial);
        let items = Arc::new(items);
        self.in_flight = Some(InFlight { id, items: Arc::clone(&items), initial, index: Arc::default() });
        // Only an empty queue leaves the consumer with the whole of a server state (I9).
        let (watermark, news) =
            if self.items.is_empty() { self.take_watermark() } else { (None, Vec::new()) };
        // What is left queued is more than what comes back of this.
        let arrivals = self.arrivals.wrapping_sub(u64::from(!self.items.is_empty()));
        Taken { items, completes_initial, watermark, news, arrivals }
    }

    fn take_watermark(&mut self) -> (Option<ResourceVersion>, Vec<FeedNews>) {
        let News { least, of_feeds } = self.feeds.take_news();
        (self.watermark.take().or(least), of_feeds)
    }

    /// Puts one item of a batch back, behind what is queued; the batch no longer leads to a whole server state then.
    ///
    /// Where its key has newer changes queued, these lead beyond it, and only a deletion is kept before them: whoever
    /// processes them has to hear of the end of what was.
    pub(super) fn requeue(&mut self, taken: &mut Taken<K>, position: usize) {
        let failed = &taken.items[position];
        taken.watermark = None;
        taken.news.clear();
        self.watermark.clone_from(&self.newest);
        self.feeds.tell_again();
        let batch = self.in_flight.as_mut().filter(|batch| failed.initial && batch.initial > 0);
        let initial = batch.map(|batch| batch.initial -= 1).is_some();
        let queued = self.position(&failed.key);
        let queued_initial = queued.is_some_and(|position| self.items[position].initial);
        self.population.requeued(initial, queued_initial, &mut taken.completes_initial);
        match queued {
            Some(newer) => {
                let newer = &mut self.items[newer];
                newer.initial |= initial;
                let mut ends = failed.deltas.iter().rev().filter(|delta| delta.is_end());
                // One that was deleted must not pass for released.
                let end = ends.clone().find(|delta| delta.is_deleted()).or_else(|| ends.next());
                self.garbage.extend(end.and_then(|end| prepend(&mut newer.deltas, end.clone())));
            }
            None => self.push_back(Pending { initial, ..failed.clone() }),
        }
    }

    /// Puts everything of a batch back that was not put back before, and what was said with it.
    pub(super) fn give_back(&mut self, taken: &mut Taken<K>, requeued: &HashSet<usize>) {
        for position in (0..taken.items.len()).filter(|position| !requeued.contains(position)) {
            self.requeue(taken, position);
        }
        if taken.items.is_empty() {
            taken.news.clear();
            self.feeds.tell_again();
            if taken.watermark.take().is_some() {
                self.watermark.clone_from(&self.newest);
            }
        }
        if std::mem::take(&mut taken.completes_initial) {
            self.population.untold();
        }
    }

    /// Notes that a batch has been processed.
    pub(super) fn processed(&mut self, taken: &Taken<K>) -> Processed<K> {
        let batch = self.in_flight.take();
        let initial = batch.as_ref().map_or(0, |batch| batch.initial);
        let kept = self.feeds.processed(&taken.news);
        let completes_initial = self.population.processed(initial, taken.completes_initial);
        Processed { completes_initial, kept, _garbage: batch }
    }
}
