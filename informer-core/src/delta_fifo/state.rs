//! The queue's content: pending deltas per key in the order in which keys were first queued. No lock, no waiting.
//!
//! Upholds I2: a key is in `index` if and only if it has an entry in `items`, and an entry has at least one delta.

use std::collections::VecDeque;
use std::sync::Arc;

use foldhash::HashMap;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use smallvec::smallvec;

use super::Pending;
use crate::{Cached, Deleted, Delta, Deltas, KnownObjects, ObjectKey, Replacement, ResourceVersion};

/// What is queued, what is out for processing, and how far the initial population has come.
pub(super) struct State<K> {
    items: VecDeque<Pending<K>>,
    /// Ticket numbers by key. The item with ticket `n` stands at `items[n - first_ticket]`.
    index: HashTable<u64>,
    first_ticket: u64,
    /// Taken out but not yet processed: neither queued nor in the store, so `replace` has to look here too.
    in_flight: Vec<(u64, Arc<Vec<Pending<K>>>)>,
    next_batch: u64,
    /// How far the server had come when the last change was queued; taken along when the queue is emptied.
    watermark: Option<ResourceVersion>,
    population: Population,
    pub(super) closed: bool,
}

/// How far the objects of the first list have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Population {
    /// Nothing has come in yet.
    Awaited,
    /// So many keys of the first list are still queued, at the head of the queue. It may have been an empty list.
    Queued(usize),
    /// The last of them are with the consumer, in the batch with this number.
    Taken(u64),
    Complete,
}

/// What is taken out of the queue in one go.
pub(super) struct Taken<K> {
    pub(super) id: u64,
    pub(super) items: Arc<Vec<Pending<K>>>,
    pub(super) initial: usize,
    pub(super) completes_initial: bool,
    pub(super) watermark: Option<ResourceVersion>,
}

impl<K: 'static> State<K> {
    pub(super) fn new() -> Self {
        Self {
            items: VecDeque::new(),
            index: HashTable::new(),
            first_ticket: 0,
            in_flight: Vec::new(),
            next_batch: 0,
            watermark: None,
            population: Population::Awaited,
            closed: false,
        }
    }

    /// Says whether there is anything to take: changes, news of the watermark, or the word that the first list,
    /// an empty one, is complete.
    pub(super) fn is_ready(&self) -> bool {
        !self.items.is_empty() || self.watermark.is_some() || self.population == Population::Queued(0)
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn synced(&self) -> bool {
        self.population == Population::Complete
    }

    /// Queues one change behind those that its key already has.
    pub(super) fn push(&mut self, delta: Delta<K>) {
        // A queue that is filled by single changes has no first list to wait for.
        if self.population == Population::Awaited {
            self.population = Population::Complete;
        }
        self.enqueue(delta);
    }

    fn enqueue(&mut self, delta: Delta<K>) {
        let Self { items, index, first_ticket, .. } = self;
        let at = |ticket: u64| (ticket - *first_ticket) as usize;
        let hash = delta.key().hash_value();
        let entry = index.entry(
            hash,
            |&ticket| items[at(ticket)].key.hash_value() == hash && items[at(ticket)].key == *delta.key(),
            |&ticket| items[at(ticket)].key.hash_value(),
        );
        match entry {
            Entry::Occupied(occupied) => append(&mut items[at(*occupied.get())].deltas, delta),
            Entry::Vacant(vacant) => {
                vacant.insert(*first_ticket + items.len() as u64);
                items.push_back(Pending { key: delta.key().clone(), deltas: smallvec![delta] });
            }
        }
    }

    fn is_queued(&self, key: &ObjectKey) -> bool {
        let at = |ticket: u64| (ticket - self.first_ticket) as usize;
        self.index.find(key.hash_value(), |&ticket| self.items[at(ticket)].key == *key).is_some()
    }

    pub(super) fn advance(&mut self, resource_version: &ResourceVersion) {
        if !resource_version.is_empty() {
            self.watermark = Some(resource_version.clone());
        }
    }

    /// Queues a complete state: each of its objects, then a deletion for all that is known or under way but not in it.
    pub(super) fn replace(&mut self, replacement: Replacement<K>, known: Option<&dyn KnownObjects<K>>) {
        let Replacement { objects, mut set_aside, complete, resource_version } = replacement;
        set_aside.sort_unstable();
        // A key that is in the list gets one more delta; so the lengths tell afterwards which were not.
        let lengths_before: Vec<usize> = self.items.iter().map(|pending| pending.deltas.len()).collect();
        let initial = self.population == Population::Awaited;
        for object in objects {
            self.enqueue(Delta::Replaced(object));
        }
        if complete {
            self.delete_missing(&lengths_before, &set_aside, known);
        }
        self.advance(&resource_version);
        if initial {
            self.population = Population::Queued(self.items.len());
        }
    }

    /// The second half of `replace`: what was queued, is being processed or is known, and was not in the list.
    fn delete_missing(
        &mut self,
        lengths_before: &[usize],
        set_aside: &[ObjectKey],
        known: Option<&dyn KnownObjects<K>>,
    ) {
        let in_flight = self.in_flight_objects();
        let mut missing: Vec<Deleted<K>> = Vec::new();
        let mut consider = |key: &ObjectKey, last: Option<&Cached<K>>| {
            if set_aside.binary_search(key).is_err() {
                missing.push(Deleted::missed(key.clone(), last.cloned()));
            }
        };
        for (pending, length_before) in self.items.iter().zip(lengths_before) {
            let listed = pending.deltas.len() > *length_before;
            if !listed && !pending.last().is_deleted() {
                consider(&pending.key, pending.last().object());
            }
        }
        for (key, last) in &in_flight {
            if !last.is_deleted() && !self.is_queued(key) {
                consider(key, last.object());
            }
        }
        if let Some(known) = known {
            known.for_each_known(&mut |object| {
                if !in_flight.contains_key(object.key()) && !self.is_queued(object.key()) {
                    consider(object.key(), Some(object));
                }
            });
        }
        for deleted in missing {
            self.enqueue(Delta::Deleted(deleted));
        }
    }

    /// The newest change to each key that is out for processing.
    fn in_flight_objects(&self) -> HashMap<ObjectKey, Delta<K>> {
        let pending = self.in_flight.iter().flat_map(|(_, items)| items.iter());
        pending.map(|pending| (pending.key.clone(), pending.last().clone())).collect()
    }

    /// Queues every known object once more, unless there is news of it anyway.
    pub(super) fn resync(&mut self, known: &dyn KnownObjects<K>) {
        let in_flight = self.in_flight_objects();
        let mut quiet = Vec::new();
        known.for_each_known(&mut |object| {
            if !self.is_queued(object.key()) && !in_flight.contains_key(object.key()) {
                quiet.push(object.clone());
            }
        });
        for object in quiet {
            self.enqueue(Delta::Sync(object));
        }
    }

    /// Takes out everything.
    pub(super) fn take_all(&mut self) -> Taken<K> {
        let count = self.items.len();
        let items = Vec::from(std::mem::take(&mut self.items));
        self.first_ticket += count as u64;
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
        let mut initial = 0;
        if let Population::Queued(queued) = self.population {
            initial = items.len().min(queued);
            let left = queued - initial;
            self.population = if left == 0 { Population::Taken(id) } else { Population::Queued(left) };
        }
        let items = Arc::new(items);
        if !items.is_empty() {
            self.in_flight.push((id, Arc::clone(&items)));
        }
        Taken {
            id,
            items,
            initial,
            completes_initial: self.population == Population::Taken(id),
            // Only an empty queue leaves the consumer with the whole of a server state (I9).
            watermark: if self.items.is_empty() { self.watermark.take() } else { None },
        }
    }

    /// Notes that a batch has been processed; returns whether the first list now is, to its end.
    pub(super) fn processed(&mut self, id: u64) -> bool {
        self.in_flight.retain(|(other, _)| *other != id);
        let complete = self.population == Population::Taken(id);
        if complete {
            self.population = Population::Complete;
        }
        complete
    }
}

/// Appends a change; two deletions in a row become one, and a real last state wins over a tombstone.
fn append<K>(deltas: &mut Deltas<K>, delta: Delta<K>) {
    match (deltas.last_mut(), delta) {
        (Some(Delta::Deleted(earlier)), Delta::Deleted(later)) => {
            if later.is_exact() || (!earlier.is_exact() && earlier.last_known().is_none()) {
                *earlier = later;
            }
        }
        (_, delta) => deltas.push(delta),
    }
}
