//! [`SlotMap`]: a hash map whose entries keep a small number, their slot, for as long as they live.
//!
//! Slots are what indices hold: four bytes instead of a handle, and an index needs no touch when an object changes but
//! its index value doesn't. Both parts are persistent, so copying a map is two reference counts.

use crate::persistent_vec::PersistentVec;

/// The entries by slot. Copying one means counting a reference, so leaves are small.
pub(crate) type Entries<E> = PersistentVec<Option<E>, 32>;

/// A map from hashes to entries in numbered slots. Which entry is meant among those of one hash is the caller's to say.
#[derive(Debug)]
pub(crate) struct SlotMap<E> {
    /// Open addressing with linear probing. An entry is `hash (32 bits) << 32 | slot + 1`; zero is free.
    table: PersistentVec<u64, 256>,
    mask: usize,
    entries: Entries<E>,
    /// Slots below `next` that are free again, as a stack.
    free: PersistentVec<u32, 256>,
    free_len: usize,
    next: u32,
    len: usize,
}

/// Small enough that most informers, which hold a handful of objects, cost next to nothing.
const SMALLEST_TABLE: usize = 256;

impl<E> Clone for SlotMap<E> {
    fn clone(&self) -> Self {
        Self { table: self.table.clone(), entries: self.entries.clone(), free: self.free.clone(), ..*self }
    }
}

fn tag_of(hash: u64) -> u32 {
    // The upper half of foldhash's output is as good as the lower.
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
            table: PersistentVec::with_len(SMALLEST_TABLE),
            mask: SMALLEST_TABLE - 1,
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

    /// Says whether `additional` more entries make the table grow, which takes time in proportion to its size.
    pub(crate) fn would_grow(&self, additional: usize) -> bool {
        (self.len + additional) * 4 > (self.mask + 1) * 3
    }

    pub(crate) fn get(&self, slot: u32) -> Option<&E> {
        self.entries.get(slot as usize).as_ref()
    }

    /// Finds the entry with this hash for which `is_it` holds, and its slot.
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

    /// Replaces what is in an occupied slot.
    pub(crate) fn set(&mut self, slot: u32, entry: E) -> Option<E> {
        self.entries.get_mut(slot as usize).replace(entry)
    }

    pub(crate) fn get_mut(&mut self, slot: u32) -> Option<&mut E> {
        self.entries.get_mut(slot as usize).as_mut()
    }

    /// Adds an entry that is not in the map yet, and returns its slot.
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

    /// Removes the entry in an occupied slot, which must have this hash.
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

    /// Moves the cells behind a removed one up, so that no search stops short of them.
    fn close_gap(&mut self, mut gap: usize) {
        let mut position = gap;
        loop {
            position = (position + 1) & self.mask;
            let cell = *self.table.get(position);
            if cell == 0 {
                break;
            }
            let home = tag(cell) as usize & self.mask;
            // The cell may move to the gap unless its home lies between the gap (not included) and itself.
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

    /// Few different hashes, so that probing, growth and gaps are all met.
    fn hash(key: u16) -> u64 {
        u64::from(key % 97) << 32
    }

    proptest! {
        #[test]
        fn a_slot_map_behaves_like_a_hash_map(ops in prop::collection::vec((any::<bool>(), 0..400_u16), 0..3_000)) {
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
            for (key, (slot, step)) in model {
                prop_assert_eq!(map.find(hash(key), |entry| entry.0 == key), Some((slot, &(key, step))));
            }
        }
    }

    #[test]
    fn a_table_grows_and_still_finds_everything() {
        let spread = |key: u32| u64::from(key.wrapping_mul(0x9E37_79B9)) << 32;
        let mut map = SlotMap::new();
        for key in 0..10_000_u32 {
            map.insert(spread(key), key);
        }
        let copy = map.clone();
        for key in 0..10_000_u32 {
            let (slot, _) = map.find(spread(key), |entry| *entry == key).expect("it was inserted");
            map.remove(spread(key), slot);
        }
        assert_eq!((map.len(), copy.len()), (0, 10_000));
        assert!((0..10_000).all(|key| copy.find(spread(key), |entry| *entry == key).is_some()));
    }
}
