//! What writer and readers share: the [`State`] that readers see, and the writer's own notes.
//!
//! Lock order: `write`, then `state`. Under `state` only finished changes are put in place, so readers wait for
//! microseconds at most; under `write` no user code runs either (I8).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use informer_core::{Cached, ObjectKey, ResourceVersion};
use parking_lot::{Mutex, RwLock};

use crate::index::{AnyIndex, AnyIndexState, ValuesBySlot};
use crate::slot_map::SlotMap;
use crate::{Change, IndexFailure};

/// Names an index for as long as it exists, also if another takes its name later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IndexId(u64);

impl IndexId {
    pub(crate) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

pub(crate) struct Shared<K> {
    pub(crate) state: RwLock<State<K>>,
    pub(crate) write: Mutex<WriterNotes<K>>,
}

/// One state of the store: objects, indices and watermark. Copying it costs a few reference counts.
pub(crate) struct State<K> {
    pub(crate) objects: SlotMap<Cached<K>>,
    pub(crate) indices: Vec<NamedIndex>,
    pub(crate) watermark: ResourceVersion,
}

/// An index as readers find it.
pub(crate) struct NamedIndex {
    pub(crate) id: IndexId,
    pub(crate) name: Arc<str>,
    pub(crate) index: Box<dyn AnyIndexState>,
}

impl NamedIndex {
    pub(crate) fn new<K>(id: IndexId, definition: &dyn AnyIndex<K>, index: Box<dyn AnyIndexState>) -> Self {
        Self { id, name: definition.name().into(), index }
    }
}

impl Clone for NamedIndex {
    fn clone(&self) -> Self {
        Self { id: self.id, name: Arc::clone(&self.name), index: self.index.boxed_clone() }
    }
}

/// What only writing needs: how the indices are defined, and which values each object has in them.
pub(crate) struct WriterNotes<K> {
    /// In the same order as [`State::indices`].
    pub(crate) indices: Vec<IndexNotes<K>>,
    /// Counts the indices that were added and removed.
    pub(crate) generation: u64,
}

pub(crate) struct IndexNotes<K> {
    pub(crate) definition: Arc<dyn AnyIndex<K>>,
    pub(crate) by_slot: ValuesBySlot,
    /// The objects that the index function can't place at present.
    pub(crate) failures: HashMap<ObjectKey, IndexFailure>,
}

impl<K> IndexNotes<K> {
    pub(crate) fn new(definition: Arc<dyn AnyIndex<K>>) -> Self {
        Self { definition, by_slot: Vec::new(), failures: HashMap::new() }
    }
}

impl<K> Clone for State<K> {
    fn clone(&self) -> Self {
        Self {
            objects: self.objects.clone(),
            indices: self.indices.clone(),
            watermark: self.watermark.clone(),
        }
    }
}

impl<K> State<K> {
    pub(crate) fn get(&self, key: &ObjectKey) -> Option<(u32, &Cached<K>)> {
        self.objects.find(key.hash_value(), |object| object.key() == key)
    }

    pub(crate) fn get_by_text(&self, key: &str) -> Option<&Cached<K>> {
        let found = self.objects.find(ObjectKey::hash_of(key), |object| object.key().as_str() == key);
        found.map(|(_, object)| object)
    }

    pub(crate) fn index(&self, id: IndexId) -> Option<&dyn AnyIndexState> {
        self.indices.iter().find(|named| named.id == id).map(|named| named.index.as_ref())
    }

    pub(crate) fn index_names(&self) -> Vec<&str> {
        self.indices.iter().map(|named| &*named.name).collect()
    }

    /// Says whether so many changes may make any table grow.
    pub(crate) fn would_grow(&self, changes: usize) -> bool {
        self.objects.would_grow(changes) || self.indices.iter().any(|named| named.index.would_grow(changes))
    }
}

impl<K> WriterNotes<K> {
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.indices.iter().position(|notes| notes.definition.name() == name)
    }

    /// Brings the objects that can't be placed up to date with what the functions said of `changes`; returns the
    /// failures that were not known before.
    pub(crate) fn note_failures(
        &mut self,
        changes: &[Change<K>],
        failures: Vec<IndexFailure>,
    ) -> Vec<IndexFailure> {
        let mut earlier = HashSet::new();
        for notes in self.indices.iter_mut().filter(|notes| !notes.failures.is_empty()) {
            let known = changes.iter().filter_map(|change| notes.failures.remove(change.key()));
            earlier.extend(known.map(|failure| (failure.index, failure.key)));
        }
        let mut new = Vec::new();
        for failure in failures {
            if let Some(position) = self.position(&failure.index) {
                let known = earlier.contains(&(failure.index.clone(), failure.key.clone()));
                new.extend((!known).then(|| failure.clone()));
                self.indices[position].failures.insert(failure.key.clone(), failure);
            }
        }
        new
    }

    pub(crate) fn definitions(&self) -> Vec<Arc<dyn AnyIndex<K>>> {
        self.indices.iter().map(|notes| Arc::clone(&notes.definition)).collect()
    }
}
