//! [`StoreWriter`]: the one hand that changes a store.
//!
//! A transaction has three steps. The index functions run first, with no lock held. Then the changes are either
//! applied to a copy beside the state that readers see (many changes), or kept ready (few). Last, under the lock, the
//! copy takes the old state's place, or the few changes are made. So a reader never waits for more than a few hundred
//! changes, whatever the size of the transaction. client-go holds its lock while it rebuilds every index
//! (`threadSafeMap.Replace`).

use std::fmt;
use std::sync::Arc;

use informer_core::{Cached, ObjectKey, ResourceVersion};
use parking_lot::{Mutex, RwLock};

use crate::index::{AnyIndex, Applied, Definition, Values};
use crate::shared::{IndexId, IndexNotes, NamedIndex, Shared, State, WriterNotes};
use crate::slot_map::SlotMap;
use crate::{IndexFailure, Indexer};

/// Up to so many changes are made in place, which takes some hundred microseconds at most.
const IN_PLACE: usize = 256;

/// A change of the store.
#[derive(Debug)]
pub enum Change<K> {
    /// The object is there, new or instead of an earlier version of itself.
    Put(Cached<K>),
    /// There is no object of this key any more.
    Remove(ObjectKey),
}

impl<K> Change<K> {
    /// Returns the key of the object that changes.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        match self {
            Self::Put(object) => object.key(),
            Self::Remove(key) => key,
        }
    }
}

/// The write half of a store. There is one per store; readers hold an [`Indexer`].
pub struct StoreWriter<K> {
    shared: Arc<Shared<K>>,
    /// The indices as they were when this writer last looked, and when that was.
    definitions: Vec<Arc<dyn AnyIndex<K>>>,
    generation: u64,
}

/// Returns the two halves of a new, empty store.
///
/// ```
/// use informer_core::Cached;
/// use informer_store::{Change, store};
/// use k8s_openapi::api::core::v1::Node;
///
/// let (mut writer, nodes) = store::<Node>();
/// let mut node = Node::default();
/// node.metadata.name = Some("node-1".into());
/// writer.transaction(vec![Change::Put(Cached::new(node)?)], None);
/// assert!(nodes.get_by_key("node-1").is_some());
/// # Ok::<(), informer_core::KeyError>(())
/// ```
#[must_use]
pub fn store<K: Send + Sync + 'static>() -> (StoreWriter<K>, Indexer<K>) {
    let id = IndexId::next();
    let by_namespace = Definition::<K, Arc<str>>::of_key(crate::NAMESPACE_INDEX, |key| {
        key.namespace().map(Arc::from).into_iter().collect::<Values<_>>()
    });
    let state = State {
        objects: SlotMap::new(),
        indices: vec![NamedIndex::new(id, &by_namespace, by_namespace.new_state())],
        watermark: ResourceVersion::empty(),
    };
    let notes = WriterNotes { indices: vec![IndexNotes::new(Arc::new(by_namespace))], generation: 0 };
    let definitions = notes.definitions();
    let shared = Arc::new(Shared { state: RwLock::new(state), write: Mutex::new(notes) });
    let writer = StoreWriter { shared: Arc::clone(&shared), definitions, generation: 0 };
    (writer, Indexer::from_shared(shared))
}

impl<K: Send + Sync + 'static> StoreWriter<K> {
    /// Makes all changes and moves the watermark, in one step (I3). Where a key is changed twice, the last change
    /// counts.
    ///
    /// Returns what the index functions could not place and could before; all that they can't place at present is in
    /// [`Indexer::index_failures`].
    pub fn transaction(
        &mut self,
        changes: Vec<Change<K>>,
        watermark: Option<&ResourceVersion>,
    ) -> Vec<IndexFailure> {
        self.transaction_with(changes, watermark, |commit| commit())
    }

    /// As [`transaction`](Self::transaction), but leaves it to `publish` when the changes become visible: they do when
    /// it calls the function that it is given, once. If it doesn't, they do at the end.
    ///
    /// `publish` must not call back into this store's writing or indices.
    pub fn transaction_with(
        &mut self,
        changes: Vec<Change<K>>,
        watermark: Option<&ResourceVersion>,
        publish: impl FnOnce(&mut dyn FnMut()),
    ) -> Vec<IndexFailure> {
        loop {
            let mut failures = Vec::new();
            let computed =
                self.definitions.iter().map(|index| index.compute(&changes, &mut failures)).collect();
            let mut notes = self.shared.write.lock();
            if notes.generation == self.generation {
                let new_failures = notes.note_failures(&changes, failures);
                let transaction = Transaction { changes, computed, watermark };
                let garbage = transaction.commit(&self.shared.state, &mut notes, publish);
                drop(notes);
                drop(garbage);
                return new_failures;
            }
            // An index was added or removed since the last look; then the functions have to run again.
            self.generation = notes.generation;
            self.definitions = notes.definitions();
        }
    }

    /// Makes `objects` the whole content of the store, in one step.
    ///
    /// Objects whose version is the same as in the store stay as they are in memory. Returns the same as
    /// [`transaction`](Self::transaction).
    #[doc(alias = "Replace")]
    pub fn replace(
        &mut self,
        objects: Vec<Cached<K>>,
        resource_version: &ResourceVersion,
    ) -> Vec<IndexFailure> {
        let before = Indexer::from_shared(Arc::clone(&self.shared)).snapshot().state;
        let mut is_listed = vec![false; before.objects.entries().capacity()];
        let mut changes = Vec::new();
        for object in objects {
            let old = before.get(object.key());
            if let Some((slot, _)) = old {
                is_listed[slot as usize] = true;
            }
            if old.is_none_or(|(_, old)| !old.same_version(&object)) {
                changes.push(Change::Put(object));
            }
        }
        for (old, is_listed) in before.objects.entries().iter().zip(is_listed) {
            changes.extend(old.iter().filter(|_| !is_listed).map(|old| Change::Remove(old.key().clone())));
        }
        // Else the transaction would copy what nobody looks at any more.
        drop(before);
        self.transaction(changes, Some(resource_version))
    }

    /// Returns a read handle.
    #[must_use]
    pub fn indexer(&self) -> Indexer<K> {
        Indexer::from_shared(Arc::clone(&self.shared))
    }
}

/// Changes for which the index functions have spoken.
struct Transaction<'a, K> {
    changes: Vec<Change<K>>,
    computed: Vec<Box<dyn std::any::Any + Send>>,
    watermark: Option<&'a ResourceVersion>,
}

/// What a transaction has put out of use, to be dropped when no lock is held.
type Garbage<K> = (Option<State<K>>, Vec<Cached<K>>);

impl<K> Transaction<'_, K> {
    fn commit(
        self,
        state: &RwLock<State<K>>,
        notes: &mut WriterNotes<K>,
        publish: impl FnOnce(&mut dyn FnMut()),
    ) -> Garbage<K> {
        let beside = {
            let current = state.read();
            let beside = self.changes.len() > IN_PLACE || current.would_grow(self.changes.len());
            beside.then(|| current.clone())
        };
        let (mut old_state, mut replaced) = (None, Vec::new());
        if let Some(mut next) = beside {
            self.apply(&mut next, notes, &mut replaced);
            let mut next = Some(next);
            let mut swap = || {
                if let Some(next) = next.take() {
                    old_state = Some(std::mem::replace(&mut *state.write(), next));
                }
            };
            publish(&mut swap);
            swap();
        } else {
            let mut pending = Some(self);
            let mut apply = || {
                if let Some(transaction) = pending.take() {
                    transaction.apply(&mut state.write(), notes, &mut replaced);
                }
            };
            publish(&mut apply);
            apply();
        }
        (old_state, replaced)
    }

    fn apply(self, state: &mut State<K>, notes: &mut WriterNotes<K>, replaced: &mut Vec<Cached<K>>) {
        let mut slots = Vec::with_capacity(self.changes.len());
        for change in &self.changes {
            slots.push(apply_change(&mut state.objects, change, replaced));
        }
        let indices = state.indices.iter_mut().zip(&mut notes.indices).zip(self.computed);
        for ((named, notes), computed) in indices {
            let mut applied = self.changes.iter().zip(&slots).map(|(change, slot)| {
                slot.map(|(slot, is_new)| match change {
                    Change::Put(object) => Applied { slot, object: Some(object), is_new },
                    Change::Remove(_) => Applied { slot, object: None, is_new },
                })
            });
            notes.definition.apply(named.index.as_mut(), &mut notes.by_slot, computed, &mut applied);
        }
        if let Some(watermark) = self.watermark {
            state.watermark = watermark.clone();
        }
    }
}

/// Makes one change in the table of objects; returns the slot it concerns, and whether the object is new there.
fn apply_change<K>(
    objects: &mut SlotMap<Cached<K>>,
    change: &Change<K>,
    replaced: &mut Vec<Cached<K>>,
) -> Option<(u32, bool)> {
    let key = change.key();
    let found = objects.find(key.hash_value(), |object| object.key() == key).map(|(slot, _)| slot);
    match (change, found) {
        (Change::Put(object), Some(slot)) => {
            replaced.extend(objects.set(slot, object.clone()));
            Some((slot, false))
        }
        (Change::Put(object), None) => Some((objects.insert(key.hash_value(), object.clone()), true)),
        (Change::Remove(_), Some(slot)) => {
            replaced.extend(objects.remove(key.hash_value(), slot));
            Some((slot, false))
        }
        (Change::Remove(_), None) => None,
    }
}

impl<K> fmt::Debug for StoreWriter<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreWriter")
            .field("len", &self.shared.state.read().objects.len())
            .finish_non_exhaustive()
    }
}
