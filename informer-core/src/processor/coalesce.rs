//! [`Coalesced`]: the pending events of a handler that has fallen behind, at most one entry per key.
//!
//! Upholds I11, and I1 and I4 within it: an entry leads from what the handler last knew to what is true now. The skipped
//! states go to the caller, because dropping user objects under a lock would run user code (I8). Entries of adjacent
//! periods can be merged with the same result as if all events had come to one place ([`Coalesced::absorb`]).

use std::collections::{HashSet, VecDeque};
use std::ops::Range;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::owed::{End, Owed};
use crate::{Cached, Deleted, Event, ObjectKey};

/// Pending events, in the order in which their keys first came in.
pub(super) struct Coalesced<K> {
    /// Holes are entries that came to nothing: added and deleted before a handler received either.
    owed: VecDeque<Option<Owed<K>>>,
    /// The place of a key's entry, counted from the first entry that there ever was.
    index: HashTable<usize>,
    /// How many entries have left at the front.
    taken: usize,
    /// Whether an update comes with the state that the handler received last, and not with the new one twice.
    keeps_old: bool,
    /// The end of the entries with which the first list is complete.
    initial_end: Option<usize>,
    len: usize,
    /// Whether an entry is or was a resync, or [`Owed::Vanished`]: not every handler receives those.
    has_special: bool,
}

/// Keys of which an earlier period may hold a release.
pub(super) type Released = HashSet<ObjectKey>;

/// For whom entries are merged.
#[derive(Clone, Copy)]
pub(super) enum Merge<'a> {
    /// One handler, which may be due resyncs.
    Handler { wants_resyncs: bool },
    /// Any handler whose backlog began in this period or before it.
    Period(&'a Released),
}

impl Merge<'_> {
    /// Whether an object of this key that comes and goes leaves an entry for an earlier period.
    fn was_released(self, key: &ObjectKey) -> bool {
        matches!(self, Self::Period(released) if !released.is_empty() && released.contains(key))
    }
}

impl<K> Coalesced<K> {
    pub(super) fn new(keeps_old: bool) -> Self {
        Self {
            owed: VecDeque::new(),
            index: HashTable::new(),
            taken: 0,
            keeps_old,
            initial_end: None,
            len: 0,
            has_special: false,
        }
    }

    /// The number of keys with an entry.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The number of entries and holes, for [`absorb`](Self::absorb).
    pub(super) fn places(&self) -> usize {
        self.owed.len()
    }

    /// Whether [`absorb`](Self::absorb) would skip some entries for a handler.
    pub(super) fn has_special(&self) -> bool {
        self.has_special
    }

    /// Adds an event; returns whether it was merged into a pending one. Skipped states go to `garbage`.
    ///
    /// Where an earlier period may hold a release of the key, an object that is added and deleted leaves an entry for
    /// that period.
    pub(super) fn push(&mut self, event: &Event<K>, merge: Merge<'_>, garbage: &mut Vec<Event<K>>) -> bool {
        self.close_holes();
        self.has_special |= matches!(event, Event::Resynced(_));
        let Self { owed, index, taken, keeps_old, len, has_special, .. } = self;
        match entry(owed, index, *taken, event.key()) {
            Entry::Vacant(vacant) => {
                vacant.insert(*taken + owed.len());
                let mut own = Owed::One(event.clone());
                if !*keeps_old {
                    own.forgo_old(garbage);
                }
                owed.push_back(Some(own));
                *len += 1;
                false
            }
            Entry::Occupied(occupied) => {
                let slot = &mut owed[*occupied.get() - *taken];
                *slot = slot.take().and_then(|own| own.then(event, garbage));
                if let (None, Event::Deleted(deleted)) = (&slot, event)
                    && merge.was_released(deleted.key())
                {
                    *slot = Some(Owed::Vanished(deleted.clone()));
                    *has_special = true;
                }
                match slot {
                    Some(own) if !*keeps_old => own.forgo_old(garbage),
                    Some(_) => {}
                    None => {
                        occupied.remove();
                        *len -= 1;
                    }
                }
                true
            }
        }
    }

    /// Adds that an object was added and deleted.
    fn push_vanished(&mut self, deleted: &Deleted<K>, merge: Merge<'_>) {
        self.close_holes();
        let Self { owed, index, taken, len, has_special, .. } = self;
        match entry(owed, index, *taken, deleted.key()) {
            Entry::Vacant(vacant) if matches!(merge, Merge::Period(_)) => {
                vacant.insert(*taken + owed.len());
                owed.push_back(Some(Owed::Vanished(deleted.clone())));
                *len += 1;
                *has_special = true;
            }
            Entry::Vacant(_) => {}
            Entry::Occupied(occupied) => {
                let slot = &mut owed[*occupied.get() - *taken];
                *slot = slot.take().map(|own| match own {
                    Owed::One(Event::Released(known)) => {
                        Owed::One(Event::Deleted(deleted.clone().after(known)))
                    }
                    own => own,
                });
            }
        }
    }

    /// Adds some of the entries of the period that follows this one; returns how many were merged into pending ones.
    ///
    /// All of its `places` have to come, in order, before anything else does.
    pub(super) fn absorb(
        &mut self,
        later: &Self,
        places: Range<usize>,
        merge: Merge<'_>,
        garbage: &mut Vec<Event<K>>,
    ) -> u64 {
        let is_initial_end = |place| later.initial_end == Some(later.taken + place);
        let mut merged = 0;
        for (place, owed) in places.clone().zip(later.owed.range(places.clone())) {
            if is_initial_end(place) {
                self.complete_initial();
            }
            merged += match owed {
                None => 0,
                Some(Owed::One(Event::Resynced(_)))
                    if matches!(merge, Merge::Handler { wants_resyncs: false }) =>
                {
                    0
                }
                Some(Owed::One(event)) => u64::from(self.push(event, merge, garbage)),
                Some(Owed::Vanished(deleted)) => {
                    self.push_vanished(deleted, merge);
                    0
                }
                Some(Owed::Recreated(end, object)) => self.push_recreated(end, object, merge, garbage),
            };
        }
        if places.end == later.places() && is_initial_end(places.end) {
            self.complete_initial();
        }
        merged
    }

    fn push_recreated(
        &mut self,
        end: &End<K>,
        object: &Cached<K>,
        merge: Merge<'_>,
        garbage: &mut Vec<Event<K>>,
    ) -> u64 {
        let first = match end {
            End::Deleted(deleted) => Some(Event::Deleted(deleted.clone())),
            End::Released(known) => Some(Event::Released(known.clone())),
            End::Vanished(deleted) => {
                self.push_vanished(deleted, merge);
                None
            }
        };
        let events =
            first.into_iter().chain([Event::Added { object: object.clone(), is_in_initial_list: false }]);
        let merged = events.filter(|event| self.push(event, merge, garbage)).count();
        // That the two are one entry has been counted in their own period.
        merged.saturating_sub(1) as u64
    }

    /// Keeps the holes fewer than the entries, so that memory stays in step with the keys that are owed something.
    fn close_holes(&mut self) {
        if self.owed.len() < 2 * self.len + 64 {
            return;
        }
        if let Some(end) = &mut self.initial_end {
            let initial = end.saturating_sub(self.taken);
            *end = self.owed.iter().take(initial).flatten().count();
        }
        self.owed.retain(Option::is_some);
        self.index.clear();
        self.taken = 0;
        let hash = |place: &usize| self.owed[*place].as_ref().map_or(0, Owed::key_hash);
        for place in 0..self.owed.len() {
            self.index.insert_unique(hash(&place), place, hash);
        }
    }

    /// Notes that with what is owed now the first list is complete.
    pub(super) fn complete_initial(&mut self) {
        self.initial_end = Some(self.taken + self.owed.len());
    }

    /// Says once, when all that belongs to the first list has been taken, that it is so.
    pub(super) fn take_initial_end(&mut self) -> bool {
        self.initial_end.take_if(|end| *end <= self.taken).is_some()
    }

    /// Returns whether nothing is owed, and no end of the first list either.
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0 && self.initial_end.is_none()
    }

    /// Takes the oldest entries, about as many as make `limit` events, in order. Events for the keys of those that stay
    /// can still be merged into them.
    pub(super) fn take(&mut self, limit: usize) -> Vec<Event<K>> {
        let mut events = Vec::with_capacity(limit.min(self.len));
        while events.len() < limit
            && let Some(front) = self.owed.pop_front()
        {
            let place = self.taken;
            self.taken += 1;
            if let Some(owed) = front {
                if let Ok(entry) = self.index.find_entry(owed.key_hash(), |&other| other == place) {
                    entry.remove();
                }
                self.len -= 1;
                owed.into_events(&mut events);
            }
        }
        events
    }
}

/// Finds the entry of a key.
fn entry<'a, K>(
    owed: &VecDeque<Option<Owed<K>>>,
    index: &'a mut HashTable<usize>,
    taken: usize,
    key: &ObjectKey,
) -> Entry<'a, usize> {
    index.entry(
        key.hash_value(),
        |&place| owed[place - taken].as_ref().is_some_and(|own| own.key() == key),
        |&place| owed[place - taken].as_ref().map_or(0, Owed::key_hash),
    )
}

#[cfg(test)]
mod tests;
