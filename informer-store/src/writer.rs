//! [`StoreWriter`]: the one hand that changes a store.
//!
//! A transaction has three steps. The index functions run first, with no lock held. Then the changes are either
//! applied to a copy beside the state that readers see (many changes), or kept ready (few). Last, under the lock, the
//! copy takes the old state's place, or the few changes are made. So a reader never waits for more than a few hundred
//! changes, whatever the size of the transaction. client-go holds its lock while it rebuilds every index
//! (`threadSafeMap.Replace`).

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use informer_core::{Cached, FeedNews, ObjectKey, ResourceVersion, Watermarks};

use crate::index::{
    AnyIndex, Applied, Computed, Definition, Failures, Logged, LoggedChange, Values, lasting, value_panicked,
};
use crate::shared::{IndexId, IndexNotes, NamedIndex, Shared, State, WriterNotes};
use crate::slot_map::{Cursor, SlotMap};
use crate::sync::{Condvar, Mutex, RwLock};
use crate::{IndexFailure, Indexer};

/// Up to so many changes are made in place, which takes some hundred microseconds at most.
const IN_PLACE: usize = 256;

/// A change of the store.
#[derive(Debug)]
#[non_exhaustive]
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

    /// The version of the object that is put; empty where one is removed.
    pub(crate) fn resource_version(&self) -> ResourceVersion {
        match self {
            Self::Put(object) => object.resource_version().clone(),
            Self::Remove(_) => ResourceVersion::empty(),
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
    let by_namespace: Arc<dyn AnyIndex<K>> = Arc::new(by_namespace);
    let state = State {
        objects: SlotMap::new(),
        indices: vec![NamedIndex {
            id,
            definition: Arc::clone(&by_namespace),
            index: by_namespace.new_state(),
        }],
        watermark: ResourceVersion::empty(),
        watermarks: Arc::new(Watermarks::default()),
    };
    let notes =
        WriterNotes { indices: vec![IndexNotes::new(by_namespace)], joining: Vec::new(), generation: 0 };
    let shared =
        Arc::new(Shared { state: RwLock::new(state), write: Mutex::new(notes), joined: Condvar::new() });
    (StoreWriter::over(Arc::clone(&shared)), Indexer::from_shared(shared))
}

impl<K: Send + Sync + 'static> StoreWriter<K> {
    pub(crate) fn over(shared: Arc<Shared<K>>) -> Self {
        let (definitions, generation) = {
            let notes = shared.write.lock();
            (notes.definitions(), notes.generation)
        };
        Self { shared, definitions, generation }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared<K>> {
        &self.shared
    }

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
        self.transaction_with(changes, watermark, &[], |commit| commit())
    }

    /// As [`transaction`](Self::transaction), with news of the watermarks of namespaces that come one by one, and leaves it to `publish` when the changes become visible: they do when
    /// it calls the function that it is given, once. If it doesn't, they do at the end.
    ///
    /// `publish` must not call back into this store's writing or indices.
    pub fn transaction_with(
        &mut self,
        changes: Vec<Change<K>>,
        watermark: Option<&ResourceVersion>,
        of_namespaces: &[FeedNews],
        publish: impl FnOnce(&mut dyn FnMut()),
    ) -> Vec<IndexFailure> {
        let mut transaction = Transaction::new(changes, watermark, of_namespaces);
        loop {
            let mut failures = Failures::new();
            let changes = &transaction.changes;
            let computed = self.definitions.iter().map(|index| index.compute(changes, &mut failures));
            transaction.computed = computed.collect();
            let mut failures = lasting(failures, changes);
            let mut notes = self.shared.write.lock();
            if notes.generation == self.generation {
                let mut new_failures = notes.note_failures(&transaction.changes, &mut failures);
                let published = transaction.commit(&self.shared.state, &mut notes, publish);
                notes.add_failures(&transaction.panicked, &mut new_failures);
                transaction.log(&mut notes, failures);
                if let Err(panic) = published {
                    resume_unwind(panic);
                }
                // I8: first the lock, then what the transaction has put out of use.
                drop(notes);
                drop(transaction);
                return new_failures;
            }
            // An index was added or removed since the last look; then the functions have to run again.
            self.generation = notes.generation;
            let outdated = std::mem::replace(&mut self.definitions, notes.definitions());
            drop(notes);
            // I8: it may hold the last reference to a removed index's function.
            drop(outdated);
        }
    }

    /// Puts an object in its place, new or instead of an earlier version of itself. The watermark stays where it is: one
    /// object's version doesn't say that nothing else has changed. Returns the same as [`transaction`](Self::transaction).
    ///
    /// Many objects at once are cheaper in one transaction.
    #[doc(alias = "Add")]
    #[doc(alias = "Update")]
    pub fn put(&mut self, object: Cached<K>) -> Vec<IndexFailure> {
        self.transaction(vec![Change::Put(object)], None)
    }

    /// Removes the object with this key, and returns it if there was one. The watermark stays where it is.
    #[doc(alias = "Delete")]
    pub fn remove(&mut self, key: &ObjectKey) -> Option<Cached<K>> {
        // Nobody else can put or remove it in between.
        let removed = self.indexer().get(key)?;
        self.transaction(vec![Change::Remove(key.clone())], None);
        Some(removed)
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
        self.replace_but(objects, resource_version, |_| false)
    }

    /// As [`replace`](Self::replace), but objects that are not listed stay if `is_kept` says so.
    pub(crate) fn replace_but(
        &mut self,
        objects: Vec<Cached<K>>,
        resource_version: &ResourceVersion,
        is_kept: impl Fn(&ObjectKey) -> bool,
    ) -> Vec<IndexFailure> {
        let before = self.indexer().snapshot().state;
        let mut is_listed = vec![false; before.objects.entries().capacity()];
        let mut changes = Vec::new();
        let mut cursor = Cursor::default();
        for object in objects {
            let key = object.key();
            let old = cursor.find(&before.objects, key.hash_value(), |old| old.key() == key);
            // Where a key is listed twice, the last one counts, as ever.
            let is_first =
                old.is_none_or(|(slot, _)| !std::mem::replace(&mut is_listed[slot as usize], true));
            if !is_first || old.is_none_or(|(_, old)| !old.same_version(&object)) {
                changes.push(Change::Put(object));
            }
        }
        for (old, is_listed) in before.objects.entries().iter().zip(is_listed) {
            let gone = old.iter().filter(|old| !is_listed && !is_kept(old.key()));
            changes.extend(gone.map(|old| Change::Remove(old.key().clone())));
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

/// Changes for which the index functions have spoken; and afterwards, what they have put out of use. So it may only be
/// dropped when no lock is held (I8).
struct Transaction<'a, K> {
    changes: Vec<Change<K>>,
    watermark: Option<&'a ResourceVersion>,
    of_namespaces: &'a [FeedNews],
    /// In the order of [`WriterNotes::definitions`].
    computed: Vec<Computed>,
    /// For each change the slot that it concerns, and whether the object is new there.
    slots: Vec<Option<(u32, bool)>>,
    replaced: Vec<Cached<K>>,
    old_state: Option<State<K>>,
    /// Objects that an index has no place for, because a value's `Hash` or `Eq` panicked.
    panicked: Vec<IndexFailure>,
}

impl<'a, K> Transaction<'a, K> {
    fn new(
        changes: Vec<Change<K>>,
        watermark: Option<&'a ResourceVersion>,
        of_namespaces: &'a [FeedNews],
    ) -> Self {
        let slots = Vec::with_capacity(changes.len());
        Self {
            changes,
            watermark,
            of_namespaces,
            computed: Vec::new(),
            slots,
            replaced: Vec::new(),
            old_state: None,
            panicked: Vec::new(),
        }
    }

    fn commit(
        &mut self,
        state: &RwLock<State<K>>,
        notes: &mut WriterNotes<K>,
        publish: impl FnOnce(&mut dyn FnMut()),
    ) -> std::thread::Result<()> {
        // The logs of indices under construction name slots.
        let may_compact = notes.joining.is_empty();
        let beside = {
            let current = state.read();
            let is_large = self.changes.len() > IN_PLACE || current.would_grow(self.changes.len());
            (is_large || (may_compact && current.is_sparse())).then(|| current.clone())
        };
        if let Some(mut next) = beside {
            self.apply(&mut next, notes);
            if may_compact && next.is_sparse() {
                next.compact(notes);
            }
            let mut next = Some(next);
            once(publish, || {
                self.old_state = next.take().map(|next| std::mem::replace(&mut *state.write(), next));
            })
        } else {
            once(publish, || self.apply(&mut state.write(), notes))
        }
    }

    fn apply(&mut self, state: &mut State<K>, notes: &mut WriterNotes<K>) {
        let mut cursor = Cursor::default();
        for change in &self.changes {
            self.slots.push(apply_change(&mut state.objects, change, &mut cursor, &mut self.replaced));
        }
        let indices = state.indices.iter_mut().zip(&mut notes.indices).zip(&mut self.computed);
        for ((named, notes), computed) in indices {
            let mut applied = self.changes.iter().zip(&self.slots).map(|(change, slot)| {
                let key = matches!(change, Change::Put(_)).then(|| change.key());
                slot.map(|(slot, is_new)| Applied { slot, key, is_new })
            });
            let definition = &notes.definition;
            let panicked = definition.apply(named.index.as_mut(), &mut notes.by_slot, computed, &mut applied);
            let changes = panicked.into_iter().map(|position| &self.changes[position]);
            self.panicked
                .extend(changes.map(|change| {
                    value_panicked(definition.name(), change.key(), change.resource_version())
                }));
        }
        if let Some(watermark) = self.watermark {
            state.watermark = watermark.clone();
        }
        if !self.of_namespaces.is_empty() {
            Arc::make_mut(&mut state.watermarks).apply(self.of_namespaces);
        }
    }

    /// Notes what the transaction means for the indices under construction, to which what is left of `failures` belongs.
    fn log(&mut self, notes: &mut WriterNotes<K>, mut failures: Vec<IndexFailure>) {
        let computed = self.computed.drain(notes.indices.len()..);
        for (joining, computed) in notes.joining.iter_mut().zip(computed) {
            let changes = self.changes.iter().zip(&self.slots).map(|(change, slot)| LoggedChange {
                key: change.key().clone(),
                resource_version: change.resource_version(),
                is_put: matches!(change, Change::Put(_)),
                slot: *slot,
            });
            let of_this = |failure: &mut IndexFailure| failure.index == joining.definition.name();
            joining.log.push(Logged {
                computed,
                changes: changes.collect(),
                failures: failures.extract_if(.., of_this).collect(),
            });
        }
    }
}

/// Has `publish` call `change`, and calls it if `publish` doesn't, also if that panics.
fn once(publish: impl FnOnce(&mut dyn FnMut()), change: impl FnOnce()) -> std::thread::Result<()> {
    let mut change = Some(change);
    let mut call = || {
        if let Some(change) = change.take() {
            change();
        }
    };
    let published = catch_unwind(AssertUnwindSafe(|| publish(&mut call)));
    call();
    published
}

/// Makes one change in the table of objects; returns the slot it concerns, and whether the object is new there.
fn apply_change<K>(
    objects: &mut SlotMap<Cached<K>>,
    change: &Change<K>,
    cursor: &mut Cursor,
    replaced: &mut Vec<Cached<K>>,
) -> Option<(u32, bool)> {
    let key = change.key();
    let found = cursor.find(objects, key.hash_value(), |object| object.key() == key).map(|(slot, _)| slot);
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
