//! [`Slots`]: what is known of each key, and [`List`], a chain of keys.
//!
//! A key has a slot from the moment it is added until it is neither queued, nor with a worker, nor delayed. Everything
//! else speaks of it by the number of its slot, so a key is hashed once, when it is added, and compared only then. A
//! slot is in one list at most, and can leave it from the middle.

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use tokio::time::Instant;

use crate::Priority;

/// Free slots beyond this many are given back when no key is left.
const KEEP: usize = 1_024;

/// Stands for no slot in a list.
const NONE: u32 = u32::MAX;

/// A key with what is made of it outside the lock.
pub(crate) struct Entrant<T> {
    pub(crate) key: T,
    pub(crate) hash: u64,
    /// Whom it shares its turns with, where there are groups.
    pub(crate) group: u64,
}

/// Where a key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Neither queued nor with a worker.
    Idle,
    Queued,
    /// With a worker; and to be queued when that is done, if there is a priority to do so.
    Running {
        again: Option<Priority>,
    },
}

/// An add that is not due yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Delay {
    pub(crate) at: Instant,
    /// Tells it from others that are due at the same time.
    pub(crate) number: u64,
    pub(crate) priority: Priority,
}

#[derive(Debug)]
pub(crate) struct Slot<T> {
    /// Nothing in a free slot.
    key: Option<T>,
    hash: u64,
    pub(crate) group: u64,
    before: u32,
    after: u32,
    pub(crate) place: Place,
    /// Of what is queued or with a worker.
    pub(crate) priority: Priority,
    pub(crate) delay: Option<Delay>,
    /// Since when it is pending, if times are taken.
    pub(crate) pending_since: Option<Instant>,
    /// Since when a worker has it, if times are taken.
    pub(crate) running_since: Option<Instant>,
}

#[derive(Debug)]
pub(crate) struct Slots<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    /// The slots with a key, by its hash.
    by_key: HashTable<u32>,
}

impl<T> Slots<T> {
    pub(crate) fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new(), by_key: HashTable::new() }
    }

    pub(crate) fn get(&self, id: u32) -> &Slot<T> {
        &self.slots[id as usize]
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> &mut Slot<T> {
        &mut self.slots[id as usize]
    }

    /// The key of a slot that has one.
    pub(crate) fn key(&self, id: u32) -> Option<&T> {
        self.get(id).key.as_ref()
    }

    /// Returns a slot back if nothing is left to know of its key. Returns the key, to be dropped outside the lock.
    pub(crate) fn release(&mut self, id: u32) -> Option<T> {
        let slot = &mut self.slots[id as usize];
        if slot.place != Place::Idle || slot.delay.is_some() {
            return None;
        }
        let key = slot.key.take();
        if let Ok(entry) = self.by_key.find_entry(slot.hash, |other| *other == id) {
            entry.remove();
        }
        self.free.push(id);
        if self.by_key.is_empty() && self.slots.len() > KEEP {
            *self = Self::new();
        }
        key
    }
}

impl<T: Eq> Slots<T> {
    /// Finds the slot of a key, or gives it one. Returns the key, too, where it has one already.
    pub(crate) fn find_or_insert(&mut self, entrant: Entrant<T>) -> (u32, Option<T>) {
        let Entrant { key, hash, group } = entrant;
        let slots = &self.slots;
        let slot = |id: u32| &slots[id as usize];
        let is_it = |id: &u32| slot(*id).hash == hash && slot(*id).key.as_ref() == Some(&key);
        match self.by_key.entry(hash, is_it, |id| slot(*id).hash) {
            Entry::Occupied(entry) => (*entry.get(), Some(key)),
            Entry::Vacant(entry) => {
                let slot = Slot {
                    key: Some(key),
                    hash,
                    group,
                    before: NONE,
                    after: NONE,
                    place: Place::Idle,
                    priority: Priority::default(),
                    delay: None,
                    pending_since: None,
                    running_since: None,
                };
                let id = match self.free.pop() {
                    Some(id) => {
                        self.slots[id as usize] = slot;
                        id
                    }
                    None => {
                        self.slots.push(slot);
                        u32::try_from(self.slots.len() - 1).expect("fewer than four billion keys at a time")
                    }
                };
                entry.insert(id);
                (id, None)
            }
        }
    }
}

/// Slots one after the other, chained through themselves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct List {
    first: u32,
    last: u32,
}

impl List {
    pub(crate) const fn new() -> Self {
        Self { first: NONE, last: NONE }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first == NONE
    }

    #[inline]
    pub(crate) fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    /// Adds a slot that is in no list.
    pub(crate) fn push<T>(&mut self, slots: &mut Slots<T>, id: u32) {
        let slot = slots.get_mut(id);
        slot.before = self.last;
        slot.after = NONE;
        match self.last {
            NONE => self.first = id,
            last => slots.get_mut(last).after = id,
        }
        self.last = id;
    }

    /// Takes out a slot that is in this list.
    pub(crate) fn remove<T>(&mut self, slots: &mut Slots<T>, id: u32) {
        let Slot { before, after, .. } = *slots.get(id);
        match before {
            NONE => self.first = after,
            before => slots.get_mut(before).after = after,
        }
        match after {
            NONE => self.last = before,
            after => slots.get_mut(after).before = before,
        }
    }

    pub(crate) fn iter<'a, T>(&self, slots: &'a Slots<T>) -> impl Iterator<Item = &'a Slot<T>> {
        let mut next = self.first;
        std::iter::from_fn(move || {
            let slot = (next != NONE).then(|| slots.get(next))?;
            next = slot.after;
            Some(slot)
        })
    }
}

/// Hashes keys, and groups of keys.
pub(crate) type Hashing = RandomState;
