//! [`Coalesced`]: the pending events of slow handlers, merged to at most one [`NetChange`] per key.
//!
//! Removed objects are returned to the caller: their destructors are user code, which must not run
//! under a lock.
//!
//! An entry is the pending change of one key, and is empty (`None`) after an add and a delete have
//! cancelled each other. Entries have consecutive numbers: entry `n` is `entries[n - taken]`, where
//! `taken` is the number of entries that have been taken from the front since the last renumbering.

use std::collections::VecDeque;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::net_change::NetChange;
use crate::{Event, EventBatch};

/// Coalesced events, in the order in which the pending change of each key began.
pub(super) struct Coalesced<K> {
    /// The pending change of each key, in order. An entry is `None` if nothing is left to deliver,
    /// because a pending add was followed by a delete or by an [`Event::Released`].
    entries: VecDeque<Option<NetChange<K>>>,
    /// Maps each key to the number of its entry.
    index: HashTable<usize>,
    /// The number of entries that have been taken from the front of `entries` since the last
    /// renumbering ([`remove_holes`](Self::remove_holes)).
    taken: usize,
    /// Whether updates keep their old objects. If `false`, an update contains the new object twice,
    /// which saves memory.
    keeps_old: bool,
    /// One more than the number of the initial list's last entry. `None` before the list is
    /// complete, and after its end has been [taken](Self::take_initial_end).
    initial_end: Option<usize>,
    /// The number of events that all entries together will deliver to a handler.
    len: usize,
}

impl<K> Coalesced<K> {
    pub(super) fn new(keeps_old: bool) -> Self {
        Self {
            entries: VecDeque::new(),
            index: HashTable::new(),
            taken: 0,
            keeps_old,
            initial_end: None,
            len: 0,
        }
    }

    /// Returns the number of pending events: one per key, or two for an object that was removed and
    /// added again.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds the events of a batch, in order. Moves unused objects to `garbage`, for the caller to
    /// drop. For example, if a newer version of an object replaces a pending version, an event with
    /// the replaced version is added to `garbage`.
    pub(super) fn push_all(&mut self, batch: &EventBatch<K>, garbage: &mut Vec<Event<K>>) {
        batch.events.iter().for_each(|event| self.push(event, garbage));
        if batch.completes_initial_list {
            self.initial_end = Some(self.taken + self.entries.len());
        }
    }

    /// Adds an event, or merges it into the pending change of its key.
    fn push(&mut self, event: &Event<K>, garbage: &mut Vec<Event<K>>) {
        self.remove_holes();
        let Self { entries, index, taken, keeps_old, len, .. } = self;
        let entry = index.entry(
            event.key().hash_value(),
            |&number| entries[number - *taken].as_ref().is_some_and(|own| own.key() == event.key()),
            |&number| entries[number - *taken].as_ref().map_or(0, NetChange::key_hash),
        );
        match entry {
            Entry::Vacant(vacant) => {
                vacant.insert(*taken + entries.len());
                let mut own = NetChange::One(event.clone());
                if !*keeps_old {
                    own.drop_old(garbage);
                }
                entries.push_back(Some(own));
                *len += 1;
            }
            Entry::Occupied(occupied) => {
                let slot = &mut entries[*occupied.get() - *taken];
                *len -= slot.as_ref().map_or(0, NetChange::event_count);
                *slot = slot.take().and_then(|own| own.then(event, garbage));
                *len += slot.as_ref().map_or(0, NetChange::event_count);
                match slot {
                    Some(own) if !*keeps_old => own.drop_old(garbage),
                    Some(_) => {}
                    None => _ = occupied.remove(),
                }
            }
        }
    }

    /// Removes the empty entries once there are at least 64 more entries than twice the number of
    /// pending events, and renumbers the others. So memory is proportional to the number of keys.
    fn remove_holes(&mut self) {
        if self.entries.len() < 2 * self.len + 64 {
            return;
        }
        if let Some(end) = &mut self.initial_end {
            let initial = end.saturating_sub(self.taken);
            *end = self.entries.iter().take(initial).flatten().count();
        }
        self.entries.retain(Option::is_some);
        self.index.clear();
        self.taken = 0;
        let hash = |number: &usize| self.entries[*number].as_ref().map_or(0, NetChange::key_hash);
        for number in 0..self.entries.len() {
            self.index.insert_unique(hash(&number), number, hash);
        }
    }

    /// Returns `true` at the first call after all entries of the initial list have been
    /// [taken](Self::take), and otherwise `false`.
    pub(super) fn take_initial_end(&mut self) -> bool {
        self.initial_end.take_if(|end| *end <= self.taken).is_some()
    }

    /// Returns whether no change is pending, and [`take_initial_end`](Self::take_initial_end) has
    /// no end of the initial list to report.
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0 && self.initial_end.is_none()
    }

    /// Takes the oldest entries in order, and returns their events: at most `limit` events, or one
    /// more, because an entry can become two events.
    pub(super) fn take(&mut self, limit: usize) -> Vec<Event<K>> {
        let mut events = Vec::with_capacity(limit.min(self.len));
        while events.len() < limit
            && let Some(front) = self.entries.pop_front()
        {
            let number = self.taken;
            self.taken += 1;
            if let Some(change) = front {
                if let Ok(entry) = self.index.find_entry(change.key_hash(), |&other| other == number) {
                    entry.remove();
                }
                self.len -= change.event_count();
                change.into_events(&mut events);
            }
        }
        events
    }

    /// Returns all pending events, and the end of the initial list if it is pending.
    pub(super) fn into_batch(self) -> EventBatch<K> {
        let mut events = Vec::with_capacity(self.len);
        self.entries.into_iter().flatten().for_each(|change| change.into_events(&mut events));
        EventBatch { events, completes_initial_list: self.initial_end.is_some() }
    }
}

#[cfg(test)]
mod tests;
