//! [`SlotMap`]: a hash map that assigns a small number to each entry. This number, the slot, stays
//! the same as long as the entry exists, except during compaction.
//!
//! Indexes refer to objects by slot. A slot has four bytes, less than a handle, and an index does
//! not change when a new version of an object has the same index values. All parts are persistent
//! vectors, so copying a map only increments a few reference counts.

use crate::persistent_vec::PersistentVec;

/// The entries by slot; `None` for a free slot.
// A leaf has only 32 slots, because a write after a snapshot copies a whole leaf.
pub(crate) type Entries<E> = PersistentVec<Option<E>, 32>;

/// A hash map whose entries have numbered slots. The caller computes the hashes.
#[derive(Debug, Clone)]
pub(crate) struct SlotMap<E> {
    /// The hash table, with open addressing and linear probing. A cell is `hash (32 bits) << 32 |
    /// slot + 1`; zero is a free cell.
    table: PersistentVec<u64, 256>,
    mask: usize,
    entries: Entries<E>,
    /// The free slots below `next`, as a stack.
    free: PersistentVec<u32, 256>,
    free_len: usize,
    next: u32,
    len: usize,
}

/// Finds entries like [`SlotMap::find`], but is faster if the caller requests the entries in the
/// order of their slots.
#[derive(Debug, Default)]
pub(crate) struct Cursor {
    last: Option<u32>,
    is_in_order: bool,
}

impl Cursor {
    /// Returns the entry with this hash that satisfies `is_it`, and its slot.
    pub(crate) fn find<'a, E: Clone>(
        &mut self,
        map: &'a SlotMap<E>,
        hash: u64,
        is_it: impl Fn(&E) -> bool,
    ) -> Option<(u32, &'a E)> {
        let next = self.last.map(|last| last + 1);
        let guess = next.filter(|next| self.is_in_order && *next < map.next);
        let guessed = guess.and_then(|slot| Some((slot, map.get(slot).filter(|entry| is_it(entry))?)));
        let found = guessed.or_else(|| map.find(hash, is_it));
        let slot = found.map(|(slot, _)| slot);
        self.is_in_order = slot.is_some() && slot == next;
        self.last = slot;
        found
    }
}

/// Maps the old slots of entries to the new slots after compaction, which does not change the order
/// of the entries.
#[derive(Debug)]
pub(crate) struct Renumbering {
    /// The new slot for each old slot; [`FREE`] if the old slot was free.
    new_slots: Vec<u32>,
    len: usize,
}

const FREE: u32 = u32::MAX;

impl Renumbering {
    pub(crate) fn new_slot(&self, old: u32) -> Option<u32> {
        self.new_slots.get(old as usize).copied().filter(|new| *new != FREE)
    }

    /// Returns the number of entries. Their new slots are `0..len`.
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

const MAX_SLOTS_NEVER_COMPACTED: u32 = 2048;

/// The minimum size of the hash table. It is small because most informers have few objects.
const MIN_TABLE_CELLS: usize = 256;

/// The number of cells from which on a hash table counts as large: readers should not wait while it
/// grows. A smaller table grows within a hundred microseconds.
const LARGE_TABLE_CELLS: usize = 8_192;

fn tag_of(hash: u64) -> u32 {
    // Both halves of a foldhash hash are of equal quality.
    (hash >> 32) as u32
}

fn tag(cell: u64) -> u32 {
    (cell >> 32) as u32
}

fn slot(cell: u64) -> u32 {
    cell as u32 - 1
}

impl<E: Clone> SlotMap<E> {
    pub(crate) fn new() -> Self {
        Self {
            table: PersistentVec::with_len(MIN_TABLE_CELLS),
            mask: MIN_TABLE_CELLS - 1,
            entries: PersistentVec::new(),
            free: PersistentVec::new(),
            free_len: 0,
            next: 0,
            len: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn entries(&self) -> &Entries<E> {
        &self.entries
    }

    /// Returns whether adding `additional` entries could make a [large](LARGE_TABLE_CELLS) hash table
    /// grow.
    pub(crate) fn would_rebuild_large_table(&self, additional: usize) -> bool {
        self.mask + 1 >= LARGE_TABLE_CELLS && self.would_grow(additional)
    }

    /// Returns whether adding `additional` entries makes the hash table grow.
    fn would_grow(&self, additional: usize) -> bool {
        (self.len + additional) * 5 > (self.mask + 1) * 4
    }

    pub(crate) fn get(&self, slot: u32) -> Option<&E> {
        self.entries.get(slot as usize).as_ref()
    }

    /// Returns the entry with this hash that satisfies `is_it`, and its slot.
    pub(crate) fn find(&self, hash: u64, is_it: impl Fn(&E) -> bool) -> Option<(u32, &E)> {
        let tag_sought = tag_of(hash);
        let mut position = tag_sought as usize & self.mask;
        loop {
            let cell = *self.table.get(position);
            if cell == 0 {
                return None;
            }
            if tag(cell) == tag_sought
                && let Some(entry) = self.get(slot(cell)).filter(|entry| is_it(entry))
            {
                return Some((slot(cell), entry));
            }
            position = (position + 1) & self.mask;
        }
    }

    /// Replaces the entry in an occupied slot. Returns the old entry.
    pub(crate) fn set(&mut self, slot: u32, entry: E) -> Option<E> {
        self.entries.get_mut(slot as usize).replace(entry)
    }

    pub(crate) fn get_mut(&mut self, slot: u32) -> Option<&mut E> {
        self.entries.get_mut(slot as usize).as_mut()
    }

    /// Adds a new entry and returns its slot.
    pub(crate) fn insert(&mut self, hash: u64, entry: E) -> u32 {
        if self.would_grow(1) {
            self.grow();
        }
        let slot = self.take_slot();
        *self.entries.get_mut(slot as usize) = Some(entry);
        self.put(u64::from(tag_of(hash)) << 32 | u64::from(slot + 1));
        self.len += 1;
        slot
    }

    fn take_slot(&mut self) -> u32 {
        if self.free_len > 0 {
            self.free_len -= 1;
            return *self.free.get(self.free_len);
        }
        self.next += 1;
        self.next - 1
    }

    fn put(&mut self, cell: u64) {
        let mut position = tag(cell) as usize & self.mask;
        while *self.table.get(position) != 0 {
            position = (position + 1) & self.mask;
        }
        *self.table.get_mut(position) = cell;
    }

    fn grow(&mut self) {
        let cells: Vec<u64> = self.table.iter().copied().filter(|cell| *cell != 0).collect();
        let size = (self.mask + 1) * 2;
        self.table = PersistentVec::with_len(size);
        self.mask = size - 1;
        for cell in cells {
            self.put(cell);
        }
    }

    pub(crate) fn for_each_mut(&mut self, mut visit: impl FnMut(&mut E)) {
        for slot in 0..self.next {
            // The entry is read first, because access for writing copies shared parts.
            if self.get(slot).is_some() {
                self.get_mut(slot).map(&mut visit);
            }
        }
    }

    /// Returns whether [`compact`](Self::compact) is worth its cost: more than three quarters of
    /// the slots are free. Always `false` for maps with few slots.
    pub(crate) fn is_sparse(&self) -> bool {
        self.next > MAX_SLOTS_NEVER_COMPACTED && self.len * 4 < self.next as usize
    }

    /// Moves the entries to the lowest slots, without changing their order, and frees all other
    /// slots.
    pub(crate) fn compact(&mut self) -> Renumbering {
        let mut new_slots = vec![FREE; self.next as usize];
        let mut entries = Entries::with_len(self.len);
        let mut next = 0;
        for (entry, new_slot) in self.entries.iter().zip(&mut new_slots).filter(|(entry, _)| entry.is_some())
        {
            *new_slot = next;
            entries.get_mut(next as usize).clone_from(entry);
            next += 1;
        }
        let cells = std::mem::replace(&mut self.table, PersistentVec::new());
        let size = (self.len * 2).next_power_of_two().max(MIN_TABLE_CELLS);
        (self.table, self.mask) = (PersistentVec::with_len(size), size - 1);
        for cell in cells.iter().copied().filter(|cell| *cell != 0) {
            let slot = new_slots[slot(cell) as usize];
            self.put(u64::from(tag(cell)) << 32 | u64::from(slot + 1));
        }
        (self.entries, self.next) = (entries, next);
        (self.free, self.free_len) = (PersistentVec::new(), 0);
        Renumbering { new_slots, len: self.len }
    }

    /// Removes and returns the entry in an occupied slot. `hash` must be the entry's hash.
    pub(crate) fn remove(&mut self, hash: u64, removed: u32) -> Option<E> {
        let entry = self.entries.get_mut(removed as usize).take()?;
        let sought = u64::from(tag_of(hash)) << 32 | u64::from(removed + 1);
        let mut position = tag_of(hash) as usize & self.mask;
        while *self.table.get(position) != sought {
            position = (position + 1) & self.mask;
        }
        self.close_gap(position);
        *self.free.get_mut(self.free_len) = removed;
        self.free_len += 1;
        self.len -= 1;
        Some(entry)
    }

    /// Removes the cell at position `gap` of the hash table. Moves later cells into the gap, so
    /// that searches still find them.
    fn close_gap(&mut self, mut gap: usize) {
        let mut position = gap;
        loop {
            position = (position + 1) & self.mask;
            let cell = *self.table.get(position);
            if cell == 0 {
                break;
            }
            let home = tag(cell) as usize & self.mask;
            // A search for the cell starts at `home`. The cell can move to the gap, unless `home` is
            // after the gap and not after the cell.
            if (position.wrapping_sub(home) & self.mask) >= (position.wrapping_sub(gap) & self.mask) {
                *self.table.get_mut(gap) = cell;
                gap = position;
            }
        }
        *self.table.get_mut(gap) = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// Returns one of a few different hashes, so that probing, growth and gaps all occur in the
    /// test.
    fn hash(key: u16) -> u64 {
        u64::from(key % 97) << 32
    }

    proptest! {
        #[test]
        fn slot_map_behaves_like_a_hash_map(ops in prop::collection::vec((any::<bool>(), 0..400_u16), 0..3_000)) {
            let mut map = SlotMap::<(u16, usize)>::new();
            let mut model = HashMap::new();
            for (step, (insert, key)) in ops.into_iter().enumerate() {
                let found = map.find(hash(key), |entry| entry.0 == key).map(|(slot, _)| slot);
                prop_assert_eq!(found.is_some(), model.contains_key(&key));
                match (found, insert) {
                    (None, true) => {
                        let slot = map.insert(hash(key), (key, step));
                        prop_assert_eq!(map.get(slot), Some(&(key, step)));
                        model.insert(key, (slot, step));
                    }
                    (Some(slot), true) => {
                        map.set(slot, (key, step));
                        model.insert(key, (slot, step));
                    }
                    (Some(slot), false) => {
                        map.remove(hash(key), slot);
                        model.remove(&key);
                    }
                    (None, false) => {}
                }
                prop_assert_eq!(map.len(), model.len());
            }
            let mut cursor = Cursor::default();
            for key in (0..400).chain((0..400).rev()) {
                let found = cursor.find(&map, hash(key), |entry| entry.0 == key);
                prop_assert_eq!(found.map(|(slot, entry)| (slot, entry.1)), model.get(&key).copied());
            }
            for (key, (slot, step)) in model {
                prop_assert_eq!(map.find(hash(key), |entry| entry.0 == key), Some((slot, &(key, step))));
            }
        }
    }

    fn spread(key: u16) -> u64 {
        u64::from(u32::from(key).wrapping_mul(0x9E37_79B9)) << 32
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn compaction_keeps_entries_and_order(
            keys in prop::collection::btree_set(0..3_000_u16, 0..400),
            more in prop::collection::btree_set(3_000..3_500_u16, 0..100),
        ) {
            let mut map = SlotMap::<u16>::new();
            let slots: Vec<u32> = (0..3_000).map(|key| map.insert(spread(key), key)).collect();
            for key in (0..3_000).filter(|key| !keys.contains(key)) {
                map.remove(spread(key), slots[key as usize]);
            }
            prop_assert!(map.is_sparse());
            let before = map.clone();
            let moved = map.compact();
            prop_assert!(!map.is_sparse());
            prop_assert_eq!(moved.len(), keys.len());
            prop_assert!(map.entries().iter().flatten().eq(&keys), "the order has not changed");
            for key in 0..3_000 {
                let found = map.find(spread(key), |entry| *entry == key).map(|(slot, _)| slot);
                prop_assert_eq!(found, moved.new_slot(slots[key as usize]));
                prop_assert_eq!(found.is_some(), keys.contains(&key));
                prop_assert_eq!(before.find(spread(key), |entry| *entry == key).is_some(), keys.contains(&key));
            }
            for key in &more {
                map.insert(spread(*key), *key);
            }
            prop_assert!(keys.iter().chain(&more).all(|key| map.find(spread(*key), |entry| entry == key).is_some()));
        }
    }

    #[test]
    fn grown_table_finds_every_entry() {
        let mut map = SlotMap::new();
        for key in 0..10_000_u16 {
            map.insert(spread(key), key);
        }
        let copy = map.clone();
        for key in 0..10_000_u16 {
            let (slot, _) = map.find(spread(key), |entry| *entry == key).expect("it was inserted");
            map.remove(spread(key), slot);
        }
        assert_eq!((map.len(), copy.len()), (0, 10_000));
        assert!((0..10_000).all(|key| copy.find(spread(key), |entry| *entry == key).is_some()));
    }
}
