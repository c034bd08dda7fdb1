//! The data of a store: the [`State`] that readers see, and the [`WriterNotes`] of the writer.
//!
//! Lock order: `write`, then `state`. While `state` is locked for writing, only prepared changes
//! are applied, so readers wait only for a short time. While one of the locks is held, no user code
//! runs except `Hash`, `Eq` and `Borrow` of index values.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use informer_core::{AnyObject, Cached, ObjectKey, ResourceVersion, Watermarks};

use crate::index::{AnyIndex, AnyIndexState, Joining, ValuesBySlot};
use crate::slot_map::SlotMap;
use crate::sync::{Condvar, Mutex, RwLock};
use crate::{Change, IndexFailure};

/// Identifies an index. An index that is added again under its old name has a new ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IndexId(u64);

impl IndexId {
    pub(crate) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

pub(crate) struct Shared {
    pub(crate) state: RwLock<State>,
    pub(crate) write: Mutex<WriterNotes>,
    /// Notified when an index leaves [`WriterNotes::joining`], even if its construction failed.
    /// Used with the mutex `write`.
    pub(crate) build_ended: Condvar,
}

impl Shared {
    /// Waits while an index with this name is in [`WriterNotes::joining`]. The index is missing
    /// afterwards if the construction failed.
    pub(crate) fn wait_while_building(&self, name: &str) {
        let mut notes = self.write.lock();
        while notes.joining.iter().any(|joining| joining.definition.name() == name) {
            notes = self.build_ended.wait(notes);
        }
    }
}

/// One state of the store. A copy shares all objects and tables with the original.
#[derive(Clone)]
pub(crate) struct State {
    pub(crate) objects: SlotMap<Cached<AnyObject>>,
    /// The total size of the encoded objects, in bytes; `None` if the store has never had such an
    /// object.
    pub(crate) encoded_bytes: Option<usize>,
    pub(crate) indexes: Vec<NamedIndex>,
    /// The resource version that all watches of the store have reached. Empty while a watch has not
    /// reached a version.
    pub(crate) watermark: ResourceVersion,
    /// The resource version that the store has reached in each namespace that has its own watch.
    pub(crate) watermarks: Arc<Watermarks>,
}

pub(crate) struct NamedIndex {
    pub(crate) id: IndexId,
    pub(crate) definition: Arc<dyn AnyIndex>,
    pub(crate) index: Box<dyn AnyIndexState>,
}

impl NamedIndex {
    pub(crate) fn name(&self) -> &str {
        self.definition.name()
    }
}

impl Clone for NamedIndex {
    fn clone(&self) -> Self {
        Self { id: self.id, definition: Arc::clone(&self.definition), index: self.index.boxed_clone() }
    }
}

/// The writer's data about the indexes: their definitions, the index values of each object, and the
/// failures of the index functions.
pub(crate) struct WriterNotes {
    /// One entry for each index in [`State::indexes`], in the same order.
    pub(crate) indexes: Vec<IndexNotes>,
    /// The indexes in the last phase of their construction, in which the writer calls their
    /// functions.
    pub(crate) joining: Vec<Joining>,
    /// Incremented when an index is added to or removed from `indexes` or `joining`, so that the
    /// writer detects that its copy of [`definitions`](Self::definitions) is outdated.
    pub(crate) generation: u64,
}

pub(crate) struct IndexNotes {
    pub(crate) definition: Arc<dyn AnyIndex>,
    pub(crate) by_slot: ValuesBySlot,
    pub(crate) failures: HashMap<ObjectKey, IndexFailure>,
}

impl State {
    /// Returns whether the store has ever had an encoded object.
    pub(crate) fn has_encoded(&self) -> bool {
        self.encoded_bytes.is_some()
    }

    /// Adds the size of the new object to `encoded_bytes`, and subtracts the size of `replaced`,
    /// the object that the change replaced or removed. Only encoded objects have a size.
    pub(crate) fn count_encoded(&mut self, change: &Change<AnyObject>, replaced: Option<&Cached<AnyObject>>) {
        let added = match change {
            Change::Put(object) => object.encoded_len(),
            Change::Remove(_) => None,
        };
        if added.is_some() || self.has_encoded() {
            let replaced = replaced.and_then(Cached::encoded_len).unwrap_or(0);
            self.encoded_bytes = Some(self.encoded_bytes.unwrap_or(0) + added.unwrap_or(0) - replaced);
        }
    }

    pub(crate) fn get(&self, key: &ObjectKey) -> Option<(u32, &Cached<AnyObject>)> {
        self.objects.find(key.hash_value(), |object| object.key() == key)
    }

    /// Returns the watermark of the object's namespace. If the namespace has no watermark of its
    /// own, returns the watermark of the store.
    pub(crate) fn watermark_for(&self, key: &ObjectKey) -> &ResourceVersion {
        key.namespace().and_then(|namespace| self.watermarks.get(namespace)).unwrap_or(&self.watermark)
    }

    pub(crate) fn get_by_text(&self, key: &str) -> Option<&Cached<AnyObject>> {
        let found = self.objects.find(ObjectKey::hash_of(key), |object| object.key().as_str() == key);
        found.map(|(_, object)| object)
    }

    pub(crate) fn index(&self, id: IndexId) -> Option<&dyn AnyIndexState> {
        self.indexes.iter().find(|named| named.id == id).map(|named| named.index.as_ref())
    }

    pub(crate) fn definition(&self, id: IndexId) -> Option<Arc<dyn AnyIndex>> {
        self.indexes.iter().find(|named| named.id == id).map(|named| Arc::clone(&named.definition))
    }

    pub(crate) fn index_names(&self) -> Vec<&str> {
        self.indexes.iter().map(NamedIndex::name).collect()
    }

    /// Returns whether [`compact`](Self::compact) would free much memory.
    pub(crate) fn is_sparse(&self) -> bool {
        self.objects.is_sparse() || self.indexes.iter().any(|named| named.index.is_sparse())
    }

    /// Frees unused memory of sparse tables. This can change the slots of objects and the IDs of
    /// index values.
    pub(crate) fn compact(&mut self, notes: &mut WriterNotes) {
        let slots = self.objects.is_sparse().then(|| self.objects.compact());
        for (named, notes) in self.indexes.iter_mut().zip(&mut notes.indexes) {
            if let Some(slots) = &slots {
                named.index.renumber(&mut notes.by_slot, slots);
            }
            if named.index.is_sparse() {
                named.index.compact(&mut notes.by_slot);
            }
        }
    }
}

impl WriterNotes {
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.indexes.iter().position(|notes| notes.definition.name() == name)
    }

    /// Returns whether an index with this name exists or is in `joining`.
    pub(crate) fn is_name_taken(&self, name: &str) -> bool {
        self.position(name).is_some() || self.joining.iter().any(|joining| joining.definition.name() == name)
    }

    /// Replaces the recorded failures of the changed objects by `failures`. Returns the failures of
    /// objects that had no failure in the same index before.
    ///
    /// The failures of indexes under construction stay in `failures`.
    pub(crate) fn note_failures(
        &mut self,
        changes: &[Change<AnyObject>],
        failures: &mut Vec<IndexFailure>,
    ) -> Vec<IndexFailure> {
        if failures.is_empty() && self.indexes.iter().all(|notes| notes.failures.is_empty()) {
            return Vec::new();
        }
        let mut earlier = HashSet::new();
        for notes in self.indexes.iter_mut().filter(|notes| !notes.failures.is_empty()) {
            let known = changes.iter().filter_map(|change| notes.failures.remove(change.key()));
            earlier.extend(known.map(|failure| (failure.index, failure.key)));
        }
        let mut new = Vec::new();
        for notes in &mut self.indexes {
            let of_this = |failure: &mut IndexFailure| failure.index == notes.definition.name();
            for failure in failures.extract_if(.., of_this) {
                let known = earlier.contains(&(failure.index.clone(), failure.key.clone()));
                new.extend((!known).then(|| failure.clone()));
                notes.failures.insert(failure.key.clone(), failure);
            }
        }
        new
    }

    /// Returns the indexes whose functions the writer calls: the complete ones, then those in
    /// `joining`.
    pub(crate) fn definitions(&self) -> Vec<Arc<dyn AnyIndex>> {
        let joining = self.joining.iter().map(|joining| Arc::clone(&joining.definition));
        self.indexes.iter().map(|notes| Arc::clone(&notes.definition)).chain(joining).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Index, Indexer, StoreWriter, store};
    use informer_core::Uid;

    const MANY: u64 = 20_000;
    const FEW: u64 = 100;

    fn object(n: u64) -> Cached<u64> {
        let key = ObjectKey::namespaced("ns", &n.to_string());
        Cached::from_parts(key, ResourceVersion::empty(), Uid::default(), n)
    }

    fn filled() -> (StoreWriter<u64>, Indexer<u64>, Index<u64, u64>) {
        let (mut writer, indexer) = store::<u64>();
        let by_value = indexer.add_index("value", |n: &u64| [*n, n % 7 + MANY]).expect("a free name");
        writer.replace((0..MANY).map(object).collect(), &ResourceVersion::empty());
        (writer, indexer, by_value)
    }

    /// Returns the numbers of objects and of index rows for which memory is allocated.
    fn room(writer: &StoreWriter<u64>) -> (usize, usize) {
        let shared = writer.shared();
        let rows = shared.write.lock().indexes.iter().map(|notes| notes.by_slot.capacity()).max();
        (shared.state.read().objects.entries().capacity(), rows.unwrap_or_default())
    }

    fn check(indexer: &Indexer<u64>, by_value: &Index<u64, u64>, from: u64) {
        assert_eq!(
            (indexer.len() as u64, indexer.in_namespace("ns").len() as u64),
            (MANY - from, MANY - from)
        );
        for n in (from..MANY).step_by(97).chain(MANY - FEW..MANY) {
            assert!(indexer.get(object(n).key()).is_some_and(|object| *object == n));
            let found: Vec<u64> = by_value.get(&n).iter().map(|object| **object).collect();
            assert_eq!(found, [n]);
        }
        let of_seven: usize = (MANY..MANY + 7).map(|value| by_value.count(&value)).sum();
        assert_eq!((of_seven as u64, by_value.values().len() as u64), (MANY - from, MANY - from + 7));
    }

    #[test]
    fn small_list_after_a_large_one_frees_memory() {
        let (mut writer, indexer, by_value) = filled();
        let (snapshot, before) = (indexer.snapshot(), room(&writer));
        assert!(before.0 >= MANY as usize && before.1 >= MANY as usize);
        writer.replace((MANY - FEW..MANY).map(object).collect(), &ResourceVersion::empty());
        check(&indexer, &by_value, MANY - FEW);
        let after = room(&writer);
        assert!(after.0 <= 2_048 && after.1 <= 2_048, "{after:?}");
        assert!((0..MANY).all(|n| by_value.get_in(&snapshot, &n).len() == 1), "a snapshot does not change");
        writer.replace((0..MANY).map(object).collect(), &ResourceVersion::empty());
        check(&indexer, &by_value, 0);
    }

    #[test]
    fn removing_objects_one_by_one_frees_memory() {
        let (mut writer, indexer, by_value) = filled();
        for n in 0..MANY - FEW {
            _ = writer.remove(object(n).key());
            if n % 1_999 == 0 {
                check(&indexer, &by_value, n + 1);
            }
        }
        check(&indexer, &by_value, MANY - FEW);
        let after = room(&writer);
        assert!(after.0 <= 8_192 && after.1 <= 8_192, "{after:?}");
    }

    #[test]
    fn values_removed_from_existing_objects_free_memory() {
        let (mut writer, indexer, _) = filled();
        let by_state = indexer.add_index("state", |n: &u64| Some(*n)).expect("a free name");
        let same_value = |n: u64| {
            let key = ObjectKey::namespaced("ns", &n.to_string());
            Change::Put(Cached::from_parts(key, ResourceVersion::empty(), Uid::default(), 7))
        };
        writer.transaction((0..MANY).map(same_value).collect(), None);
        assert_eq!((by_state.values(), by_state.count(&7)), (vec![7], MANY as usize));
        let state = indexer.snapshot().state;
        assert!(state.indexes.iter().all(|named| !named.index.is_sparse()));
        writer.transaction(vec![Change::Put(object(1))], None);
        assert_eq!((by_state.count(&1), by_state.count(&7)), (1, MANY as usize - 1));
    }

    #[test]
    fn no_slot_moves_while_an_index_is_built() {
        let (writer, indexer, _) = filled();
        let writer = Arc::new(Mutex::new(Some(writer)));
        let in_function = Arc::clone(&writer);
        let meanwhile = move |change: &dyn Fn(&mut StoreWriter<u64>)| {
            // The writer is taken out of the mutex, because the writer calls the index function, which
            // locks the mutex again.
            let taken = in_function.lock().take();
            if let Some(mut writer) = taken {
                change(&mut writer);
                *in_function.lock() = Some(writer);
            }
        };
        let by_half = indexer
            .add_index("half", move |n: &u64| {
                match *n {
                    // The objects change during the first round, so that there is a second round, and
                    // then a third round.
                    5 => meanwhile(&|writer| {
                        let changed = (0..2_000).map(|n| Change::Remove(object(n).key().clone()));
                        writer.transaction(changed.collect(), None);
                        writer.put(object(MANY + 1));
                    }),
                    n if n == MANY + 1 || n == MANY + 2 => meanwhile(&|writer| {
                        writer.put(object(n + 1));
                    }),
                    // The third round was the last one, and the index has joined.
                    n if n == MANY + 3 => meanwhile(&|writer| {
                        writer.replace((MANY - FEW..MANY).map(object).collect(), &ResourceVersion::empty());
                        writer.put(object(MANY + 4));
                        assert_eq!(room(writer).0, 20_480, "no slot has moved");
                    }),
                    _ => {}
                }
                Some(*n / 2)
            })
            .expect("a free name");
        for n in (MANY - FEW..MANY).chain([MANY + 4]) {
            assert!(by_half.get(&(n / 2)).iter().any(|object| **object == n), "{n}");
        }
        assert_eq!(by_half.values().len() as u64, FEW / 2 + 1);
        let mut writer = writer.lock().take().expect("the writer was put back");
        writer.put(object(MANY + 3));
        assert_eq!(
            by_half.count(&(MANY / 2 + 1)),
            1,
            "the next transaction moves objects and indexes together"
        );
        assert!(room(&writer).0 <= 2_048);
    }
}
