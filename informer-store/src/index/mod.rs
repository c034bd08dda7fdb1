//! Indices: which objects have which value. [`Definition`] says how values are found, [`IndexState`] is what readers
//! look at, and [`Index`] the handle that users hold.
//!
//! client-go: `IndexFunc`, `Indexers` and the index part of `tools/cache/thread_safe_store.go`. Three kinds of text meet
//! there: the key of an object, the name of an index and a value in it. Here a value has a type of its own, and an
//! index function that fails costs its object the place in that index, not the process.

mod definition;
mod handle;
mod install;

use std::any::Any;
use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash};
use std::sync::{Arc, LazyLock};

use foldhash::fast::RandomState;

use crate::posting::Posting;
use crate::slot_map::SlotMap;

pub(crate) use definition::{AnyIndex, Applied, Definition, Values, ValuesBySlot};
pub use handle::Index;
pub(crate) use install::install;

static HASH_SEED: LazyLock<RandomState> = LazyLock::new(RandomState::default);

/// What a type must be to serve as the value of an index: something that can be compared, hashed and copied.
///
/// It is implemented for every type that qualifies.
pub trait IndexValue: Hash + Eq + Clone + Send + Sync + 'static {}

impl<V: Hash + Eq + Clone + Send + Sync + 'static> IndexValue for V {}

/// An index as readers see it: for each value the objects that have it.
#[derive(Debug)]
pub(crate) struct IndexState<V> {
    values: SlotMap<Arc<ValueEntry<V>>>,
}

#[derive(Debug, Clone)]
struct ValueEntry<V> {
    value: V,
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
        self.values.find(HASH_SEED.hash_one(value), |entry| entry.value.borrow() == value)
    }

    /// The objects that have this value.
    pub(crate) fn posting<Q: Hash + Eq + ?Sized>(&self, value: &Q) -> Posting
    where
        V: Borrow<Q>,
    {
        self.find(value).map(|(_, entry)| entry.posting.clone()).unwrap_or_default()
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.values.entries().iter().flatten().map(|entry| &entry.value)
    }

    /// The number of a value, given to it if it has none yet.
    fn id_of(&mut self, value: V) -> u32 {
        match self.find(&value) {
            Some((id, _)) => id,
            None => {
                let hash = HASH_SEED.hash_one(&value);
                self.values.insert(hash, Arc::new(ValueEntry { value, posting: Posting::default() }))
            }
        }
    }

    fn insert(&mut self, id: u32, slot: u32) {
        if let Some(entry) = self.values.get_mut(id) {
            Arc::make_mut(entry).posting.insert(slot);
        }
    }

    /// Takes an object out of a value's posting, and the value out of the index if it was the last.
    fn remove(&mut self, id: u32, slot: u32) {
        let Some(entry) = self.values.get_mut(id) else { return };
        let entry = Arc::make_mut(entry);
        entry.posting.remove(slot);
        if entry.posting.is_empty() {
            let hash = HASH_SEED.hash_one(&entry.value);
            self.values.remove(hash, id);
        }
    }
}

/// An [`IndexState`] of any value type.
pub(crate) trait AnyIndexState: Send + Sync {
    fn as_any(&self) -> &dyn Any;
    fn as_any_mut(&mut self) -> &mut dyn Any;
    fn boxed_clone(&self) -> Box<dyn AnyIndexState>;
    fn would_grow(&self, additional: usize) -> bool;
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

    fn would_grow(&self, additional: usize) -> bool {
        self.values.would_grow(additional)
    }
}
