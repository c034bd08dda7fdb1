//! Indexes. A [`Definition`] contains the name of an index, and the function that returns the index
//! values of an object. An [`IndexState`] contains each value with its objects. An [`Index`] is the
//! user's handle. A slot is the number of an object in the store's [`SlotMap`].
//!
//! client-go: `IndexFunc`, `Indexers` and the index part of `tools/cache/thread_safe_store.go`. In
//! client-go, index values are strings, and the store panics if an index function fails. Here,
//! index values can have any type, and if an index function fails for an object, only this index
//! lacks the object.

mod definition;
mod handle;
mod install;

use std::any::Any;
use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash};
use std::sync::{Arc, LazyLock};

use foldhash::fast::RandomState;

use smallvec::SmallVec;

use crate::posting::Posting;
use crate::slot_map::{Renumbering, SlotMap};

pub(crate) use definition::{
    AnyIndex, Applied, Computed, Definition, Failures, Values, ValuesBySlot, compute_all, value_panicked,
};
pub use handle::Index;
pub(crate) use handle::with_common_value;
pub(crate) use install::{Joining, Logged, LoggedChange, install};

static HASH_SEED: LazyLock<RandomState> = LazyLock::new(RandomState::default);

/// A type that can be the value of an index.
///
/// The trait is implemented for all types with the required traits. `Hash` and `Eq` run under a
/// lock of the store, so they must be quick and must not use the store. If one of them panics while
/// an object is indexed, the index does not contain the object. `Clone` and `Drop` run without a
/// lock.
pub trait IndexValue: Hash + Eq + Clone + Send + Sync + 'static {}

impl<V: Hash + Eq + Clone + Send + Sync + 'static> IndexValue for V {}

/// The content of an index: each value, with the objects that have it. The ID of a value is the
/// number that the map `values` assigns to it.
#[derive(Debug)]
pub(crate) struct IndexState<V> {
    values: SlotMap<Arc<ValueEntry<V>>>,
}

#[derive(Debug, Clone)]
pub(crate) struct ValueEntry<V> {
    /// The index value. It is shared, so that copying an entry under a lock does not call
    /// `V::clone`.
    value: Arc<V>,
    /// The hash of the value, stored so that removing the value does not call the user's `Hash`.
    hash: u64,
    posting: Posting,
}

impl<V: IndexValue> IndexState<V> {
    fn new() -> Self {
        Self { values: SlotMap::new() }
    }

    fn find<Q: Hash + Eq + ?Sized>(&self, value: &Q) -> Option<(u32, &Arc<ValueEntry<V>>)>
    where
        V: Borrow<Q>,
    {
        self.values.find(HASH_SEED.hash_one(value), |entry| (*entry.value).borrow() == value)
    }

    pub(crate) fn posting<Q: Hash + Eq + ?Sized>(&self, value: &Q) -> Posting
    where
        V: Borrow<Q>,
    {
        self.find(value).map(|(_, entry)| entry.posting.clone()).unwrap_or_default()
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.values.entries().iter().flatten().map(|entry| &*entry.value)
    }

    /// Appends the ID of each value to `ids`. Moves new values into the index.
    ///
    /// Panics if the `Hash` or `Eq` of a value panics. `ids` is then incomplete.
    fn add_ids_of(&mut self, values: &mut Values<V>, ids: &mut SmallVec<[u32; 2]>) {
        let mut position = 0;
        while let Some(value) = values.get(position) {
            let hash = HASH_SEED.hash_one(value);
            if let Some((id, _)) = self.values.find(hash, |entry| *entry.value == *value) {
                ids.push(id);
                position += 1;
            } else {
                let value = Arc::new(values.swap_remove(position));
                let entry = ValueEntry { value, hash, posting: Posting::default() };
                ids.push(self.values.insert(hash, Arc::new(entry)));
            }
        }
    }

    /// Removes and returns the value with this ID, if no object has the value.
    fn remove_unused(&mut self, id: u32) -> Option<Arc<ValueEntry<V>>> {
        let entry = self.values.get(id).filter(|entry| entry.posting.is_empty())?;
        let hash = entry.hash;
        self.values.remove(hash, id)
    }

    fn insert(&mut self, id: u32, slot: u32) {
        if let Some(entry) = self.values.get_mut(id) {
            Arc::make_mut(entry).posting.insert(slot);
        }
    }

    /// Removes the value `id` from the object in a slot. Returns the value if no object has it any
    /// more.
    fn remove(&mut self, id: u32, slot: u32) -> Option<Arc<ValueEntry<V>>> {
        let entry = Arc::make_mut(self.values.get_mut(id)?);
        entry.posting.remove(slot);
        self.remove_unused(id)
    }
}

/// A type-erased [`IndexState`]: its users do not know the type of the index values.
pub(crate) trait AnyIndexState: Send + Sync {
    fn as_any(&self) -> &dyn Any;
    fn as_any_mut(&mut self) -> &mut dyn Any;
    fn boxed_clone(&self) -> Box<dyn AnyIndexState>;

    /// Returns whether adding this number of values could make a large hash table grow.
    fn would_rebuild_large_table(&self, additional: usize) -> bool;

    /// Returns the objects that have any of `values`, which must be [`Values`] of this index.
    fn union_of(&self, values: &dyn Any) -> Posting;

    /// Replaces each slot with its new number, in this index and in `by_slot`. The store calls this
    /// after a compaction of its objects, which changes their slots.
    fn renumber(&mut self, by_slot: &mut ValuesBySlot, slots: &Renumbering);

    /// Returns whether [`compact`](Self::compact) would free much memory.
    fn is_sparse(&self) -> bool;

    /// Frees the unused memory of the index, and changes the IDs of its values. Replaces each ID in
    /// `by_slot` with the new ID of the same value.
    fn compact(&mut self, by_slot: &mut ValuesBySlot);
}

impl<V: IndexValue> AnyIndexState for IndexState<V> {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn boxed_clone(&self) -> Box<dyn AnyIndexState> {
        Box::new(Self { values: self.values.clone() })
    }

    fn would_rebuild_large_table(&self, additional: usize) -> bool {
        self.values.would_rebuild_large_table(additional)
    }

    fn union_of(&self, values: &dyn Any) -> Posting {
        match values.downcast_ref::<Values<V>>().map(SmallVec::as_slice) {
            Some([value]) => self.posting(value),
            Some(values) => {
                let postings: Vec<Posting> = values.iter().map(|value| self.posting(value)).collect();
                Posting::union(&postings)
            }
            None => Posting::default(),
        }
    }

    fn renumber(&mut self, by_slot: &mut ValuesBySlot, slots: &Renumbering) {
        self.values.for_each_mut(|entry| {
            let entry = Arc::make_mut(entry);
            entry.posting =
                Posting::from_sorted(entry.posting.iter().filter_map(|slot| slots.new_slot(slot)));
        });
        let mut renumbered = ValuesBySlot::new();
        renumbered.resize_with(slots.len(), SmallVec::new);
        for (slot, row) in by_slot.drain(..).enumerate() {
            if let Some(new) = slots.new_slot(slot as u32) {
                renumbered[new as usize] = row;
            }
        }
        *by_slot = renumbered;
    }

    fn is_sparse(&self) -> bool {
        self.values.is_sparse()
    }

    fn compact(&mut self, by_slot: &mut ValuesBySlot) {
        let ids = self.values.compact();
        // The IDs of each object stay sorted, because compaction keeps the order of the values.
        for id in by_slot.iter_mut().flatten() {
            *id = ids.new_slot(*id).unwrap_or(*id);
        }
    }
}
