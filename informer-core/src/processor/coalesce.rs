//! [`Coalesced`]: the pending events of a slow handler, coalesced to at most one [`NetChange`] per
//! key.
//!
//! Objects that handlers will not receive any more are returned to the caller, because their
//! destructors are user code and must not run under a lock. A period is a run of consecutive
//! batches. Merging the entries of two adjacent periods gives the same result as merging all events
//! of these periods ([`Coalesced::absorb`]).

use std::collections::{HashSet, VecDeque};
use std::ops::Range;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::net_change::{End, NetChange};
use crate::{Cached, Deleted, Event, ObjectKey};

/// Coalesced events, in the order in which their keys first arrived.
pub(super) struct Coalesced<K> {
    /// The entries in order. `None` is a hole: an object was added and deleted before the handler
    /// received either event.
    entries: VecDeque<Option<NetChange<K>>>,
    /// The place of each key's entry. Places count from the first entry that was ever added.
    index: HashTable<usize>,
    /// The number of entries that have been removed at the front of `entries`.
    taken: usize,
    /// Whether the old object of a pending update is the object that the handler received last. If
    /// `false`, the old object is the same as the new object, so that the earlier object can be
    /// freed.
    keeps_old: bool,
    /// The place of the first entry after the initial list, until the handler has taken the whole
    /// initial list.
    initial_end: Option<usize>,
    len: usize,
    /// Whether an entry is or was a resync or a [`NetChange::Vanished`], which only some handlers
    /// receive.
    has_special: bool,
}

/// The keys for which an earlier period (a run of batches) can contain a release.
pub(super) type Released = HashSet<ObjectKey>;

/// The handlers for which entries are merged.
#[derive(Clone, Copy)]
pub(super) enum Merge<'a> {
    /// The entries are merged for one handler.
    Handler { wants_resyncs: bool },
    /// The entries of one period are merged, for all handlers whose backlog includes the period.
    /// The field contains the keys for which an earlier period can contain a release.
    Period(&'a Released),
}

impl Merge<'_> {
    /// Returns whether an earlier period (a run of batches) can contain a release of this key. If
    /// so, an add and a delete of the key must leave an entry, although they cancel each other out:
    /// without the entry, the handler would receive only the release, and never the deletion.
    fn was_released(self, key: &ObjectKey) -> bool {
        matches!(self, Self::Period(released) if !released.is_empty() && released.contains(key))
    }
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
            has_special: false,
        }
    }

    /// Returns the number of keys with an entry.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of entries, including holes (`None`). [`absorb`](Self::absorb) counts
    /// places in the same way.
    pub(super) fn places(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether [`absorb`](Self::absorb) can skip entries, because only some handlers
    /// receive them.
    pub(super) fn has_special(&self) -> bool {
        self.has_special
    }

    /// Adds an event. Returns whether the event was merged into a pending event. Objects that the
    /// handler will not receive any more are moved to `garbage`.
    ///
    /// Usually, an add and a delete of an object leave no entry. If an earlier period can contain a
    /// release of the key, they leave a [`NetChange::Vanished`].
    pub(super) fn push(&mut self, event: &Event<K>, merge: Merge<'_>, garbage: &mut Vec<Event<K>>) -> bool {
        self.remove_holes();
        self.has_special |= matches!(event, Event::Resynced(_));
        let Self { entries, index, taken, keeps_old, len, has_special, .. } = self;
        match entry(entries, index, *taken, event.key()) {
            Entry::Vacant(vacant) => {
                vacant.insert(*taken + entries.len());
                let mut own = NetChange::One(event.clone());
                if !*keeps_old {
                    own.drop_old(garbage);
                }
                entries.push_back(Some(own));
                *len += 1;
                false
            }
            Entry::Occupied(occupied) => {
                let slot = &mut entries[*occupied.get() - *taken];
                *slot = slot.take().and_then(|own| own.then(event, garbage));
                if let (None, Event::Deleted(deleted)) = (&slot, event)
                    && merge.was_released(deleted.key())
                {
                    *slot = Some(NetChange::Vanished(deleted.clone()));
                    *has_special = true;
                }
                match slot {
                    Some(own) if !*keeps_old => own.drop_old(garbage),
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

    /// Adds a [`NetChange::Vanished`]: an object was added and deleted. A pending release of the
    /// key becomes a deletion; other pending changes stay the same. If no change of the key is
    /// pending, an entry is added only for [`Merge::Period`].
    fn push_vanished(&mut self, deleted: &Deleted<K>, merge: Merge<'_>) {
        self.remove_holes();
        let Self { entries, index, taken, len, has_special, .. } = self;
        match entry(entries, index, *taken, deleted.key()) {
            Entry::Vacant(vacant) if matches!(merge, Merge::Period(_)) => {
                vacant.insert(*taken + entries.len());
                entries.push_back(Some(NetChange::Vanished(deleted.clone())));
                *len += 1;
                *has_special = true;
            }
            Entry::Vacant(_) => {}
            Entry::Occupied(occupied) => {
                let slot = &mut entries[*occupied.get() - *taken];
                *slot = slot.take().map(|own| match own {
                    NetChange::One(Event::Released(known)) => {
                        NetChange::One(Event::Deleted(deleted.clone().after(known)))
                    }
                    own => own,
                });
            }
        }
    }

    /// Adds the entries of `later` at the given `places`. The batches of `later` directly follow
    /// the batches of `self`. Returns the number of entries that were merged into pending entries.
    ///
    /// Callers can add a period in parts. They must add all parts in order before any other event.
    pub(super) fn absorb(
        &mut self,
        later: &Self,
        places: Range<usize>,
        merge: Merge<'_>,
        garbage: &mut Vec<Event<K>>,
    ) -> u64 {
        let is_initial_end = |place| later.initial_end == Some(later.taken + place);
        let mut merged = 0;
        for (place, change) in places.clone().zip(later.entries.range(places.clone())) {
            if is_initial_end(place) {
                self.complete_initial();
            }
            merged += match change {
                None => 0,
                Some(NetChange::One(Event::Resynced(_)))
                    if matches!(merge, Merge::Handler { wants_resyncs: false }) =>
                {
                    0
                }
                Some(NetChange::One(event)) => u64::from(self.push(event, merge, garbage)),
                Some(NetChange::Vanished(deleted)) => {
                    self.push_vanished(deleted, merge);
                    0
                }
                Some(NetChange::Recreated(end, object)) => self.push_recreated(end, object, merge, garbage),
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
        // The period that `absorb` reads has already counted one of these merges, in which the two events
        // became one entry.
        merged.saturating_sub(1) as u64
    }

    /// Removes the holes (`None`) from `entries` once they outnumber the other entries, so that
    /// memory is proportional to the number of keys.
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
        let hash = |place: &usize| self.entries[*place].as_ref().map_or(0, NetChange::key_hash);
        for place in 0..self.entries.len() {
            self.index.insert_unique(hash(&place), place, hash);
        }
    }

    /// Records that the initial list ends after the current entries.
    pub(super) fn complete_initial(&mut self) {
        self.initial_end = Some(self.taken + self.entries.len());
    }

    /// Returns whether all entries of the initial list have been taken. Returns `true` only once.
    pub(super) fn take_initial_end(&mut self) -> bool {
        self.initial_end.take_if(|end| *end <= self.taken).is_some()
    }

    /// Returns whether neither an entry nor the end of the initial list is pending.
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0 && self.initial_end.is_none()
    }

    /// Takes the oldest entries in order, and returns the events of these entries: about `limit`
    /// events. Later events can still be merged into the remaining entries.
    pub(super) fn take(&mut self, limit: usize) -> Vec<Event<K>> {
        let mut events = Vec::with_capacity(limit.min(self.len));
        while events.len() < limit
            && let Some(front) = self.entries.pop_front()
        {
            let place = self.taken;
            self.taken += 1;
            if let Some(change) = front {
                if let Ok(entry) = self.index.find_entry(change.key_hash(), |&other| other == place) {
                    entry.remove();
                }
                self.len -= 1;
                change.into_events(&mut events);
            }
        }
        events
    }
}

/// Finds the place of a key's entry, for lookup or insertion.
fn entry<'a, K>(
    entries: &VecDeque<Option<NetChange<K>>>,
    index: &'a mut HashTable<usize>,
    taken: usize,
    key: &ObjectKey,
) -> Entry<'a, usize> {
    index.entry(
        key.hash_value(),
        |&place| entries[place - taken].as_ref().is_some_and(|own| own.key() == key),
        |&place| entries[place - taken].as_ref().map_or(0, NetChange::key_hash),
    )
}

#[cfg(test)]
mod tests;
