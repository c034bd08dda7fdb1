//! [`Slots`]: the state of each key, and [`List`], a linked list of keys.
//!
//! A key has a slot while it is queued, processed by a worker, or delayed. The other modules refer
//! to the key by its slot number. So only additions hash and compare keys, apart from the rate
//! limiter. A slot is in at most one list, and can be removed from any position of the list.

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use tokio::time::Instant;

use crate::Priority;

/// If there are more slots than this number, their memory is freed when no slot is in use any more.
const MAX_EMPTY_SLOTS: usize = 1_024;

/// A link to no slot, at both ends of a list.
const NONE: u32 = u32::MAX;

/// A key to add, with the hashes of the key and of its group. The hashes are computed before the
/// lock is taken.
pub(crate) struct NewKey<T> {
    pub(crate) key: T,
    pub(crate) hash: u64,
    /// The hash of the key's group, such as its namespace; 0 if the queue is not fair.
    pub(crate) group: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The key is neither queued nor processed by a worker; it is delayed, or its slot can be
    /// freed.
    Idle,
    Queued,
    /// A worker has the item. If the key was added during this time, `again` is its new priority.
    Running {
        again: Option<Priority>,
    },
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Delay {
    pub(crate) at: Instant,
    /// Distinguishes delays that end at the same time.
    pub(crate) number: u64,
    pub(crate) priority: Priority,
}

#[derive(Debug)]
pub(crate) struct Slot<T> {
    /// The key; `None` in a free slot.
    pub(crate) key: Option<T>,
    hash: u64,
    pub(crate) group: u64,
    before: u32,
    after: u32,
    pub(crate) place: Place,
    /// The priority with which the key is queued or was taken by a worker.
    pub(crate) priority: Priority,
    pub(crate) delay: Option<Delay>,
    /// The time since which the key waits for a worker. `None` if it does not wait, or if times are
    /// not recorded.
    pub(crate) pending_since: Option<Instant>,
    /// The time at which a worker took the key. `None` if no worker has the key, or if times are
    /// not recorded.
    pub(crate) running_since: Option<Instant>,
}

#[derive(Debug)]
pub(crate) struct Slots<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    /// The numbers of the slots in use, by the hash of their key.
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

    /// Frees a slot, if its key is idle and not delayed. Returns the key, which must be dropped
    /// while no lock is held.
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
        if self.by_key.is_empty() && self.slots.len() > MAX_EMPTY_SLOTS {
            *self = Self::new();
        }
        key
    }
}

impl<T: Eq> Slots<T> {
    /// Finds or creates the slot of a key. If the slot existed, also returns the passed key.
    pub(crate) fn find_or_insert(&mut self, new_key: NewKey<T>) -> (u32, Option<T>) {
        let NewKey { key, hash, group } = new_key;
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
                        u32::try_from(self.slots.len() - 1)
                            .expect("a queue has fewer than 2^32 keys at a time")
                    }
                };
                entry.insert(id);
                (id, None)
            }
        }
    }
}

/// A linked list of slots. The links are stored in the slots.
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

    /// Appends a slot that is not in any list.
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

    /// Removes a slot that is in this list.
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

/// The hasher for keys and groups.
pub(crate) type Hashing = RandomState;
