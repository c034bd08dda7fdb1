//! [`StoreWriter`]: the write half of a store.
//!
//! A transaction first calls the users' index functions, while no lock is held. The other steps are
//! in [`crate::transaction`].

use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use informer_core::{AnyObject, Cached, NamespaceProgress, ObjectKey, ResourceVersion, Watermarks};

use crate::index::{AnyIndex, Definition, Values, compute_all};
use crate::shared::{IndexId, IndexNotes, NamedIndex, Shared, State, WriterNotes};
use crate::slot_map::{Cursor, SlotMap};
use crate::sync::{Condvar, Mutex, RwLock};
use crate::transaction::{PreparedTransaction, Transaction};
use crate::{IndexFailure, Indexer};

/// A change of one object that a caller requests from [`StoreWriter::transaction`].
#[derive(Debug)]
#[non_exhaustive]
pub enum Change<K> {
    /// Adds or replaces an object.
    Put(Cached<K>),
    /// Removes the object with this key.
    Remove(ObjectKey),
}

impl<K: 'static> Change<K> {
    fn cast<T: 'static>(self) -> Change<T> {
        match self {
            Self::Put(object) => Change::Put(object.cast()),
            Self::Remove(key) => Change::Remove(key),
        }
    }

    /// Returns the key of the object that changes.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        match self {
            Self::Put(object) => object.key(),
            Self::Remove(key) => key,
        }
    }

    /// Returns the resource version of the object that is put; empty for a removal.
    pub(crate) fn resource_version(&self) -> ResourceVersion {
        match self {
            Self::Put(object) => object.resource_version().clone(),
            Self::Remove(_) => ResourceVersion::empty(),
        }
    }
}

/// The write half of a store. Each store has one writer, and any number of readers ([`Indexer`]).
pub struct StoreWriter<K> {
    writer: Writer,
    _type: PhantomData<fn(K)>,
}

/// The part of the writer that does not depend on the type of the objects.
struct Writer {
    shared: Arc<Shared>,
    /// A copy of [`WriterNotes::definitions`]. It is outdated if `generation` differs from
    /// [`WriterNotes::generation`].
    definitions: Vec<Arc<dyn AnyIndex>>,
    generation: u64,
}

/// Creates an empty store, and returns its writer and a reader.
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
    let shared = new_shared();
    (StoreWriter::over(Arc::clone(&shared)), Indexer::from_shared(shared))
}

fn new_shared() -> Arc<Shared> {
    let id = IndexId::next();
    let by_namespace = Definition::<Arc<str>>::of_key(crate::NAMESPACE_INDEX, |key| {
        key.namespace().map(Arc::from).into_iter().collect::<Values<_>>()
    });
    let by_namespace: Arc<dyn AnyIndex> = Arc::new(by_namespace);
    let state = State {
        objects: SlotMap::new(),
        encoded_bytes: None,
        indexes: vec![NamedIndex {
            id,
            definition: Arc::clone(&by_namespace),
            index: by_namespace.new_state(),
        }],
        watermark: ResourceVersion::empty(),
        watermarks: Arc::new(Watermarks::default()),
    };
    let indexes =
        vec![IndexNotes { definition: by_namespace, by_slot: Vec::new(), failures: HashMap::new() }];
    let notes = WriterNotes { indexes, joining: Vec::new(), generation: 0 };
    Arc::new(Shared { state: RwLock::new(state), write: Mutex::new(notes), build_ended: Condvar::new() })
}

impl<K: 'static> StoreWriter<K> {
    pub(crate) fn over(shared: Arc<Shared>) -> Self {
        Self { writer: Writer::over(shared), _type: PhantomData }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.writer.shared
    }

    /// Applies all changes and sets the watermark (the resource version that the store has
    /// reached), in one step. If a key is changed twice, the last change counts. If `watermark` is
    /// `None`, the watermark stays the same.
    ///
    /// Returns the new failures. Each means that an index lacks a changed object:
    /// - The index function failed for the object. This failure is not new if the index also has a
    ///   failure of the previous version.
    /// - The `Hash` or `Eq` of an index value panicked. This failure is always new.
    ///
    /// [`Indexer::index_failures`] returns all current failures.
    pub fn transaction(
        &mut self,
        changes: Vec<Change<K>>,
        watermark: Option<&ResourceVersion>,
    ) -> Vec<IndexFailure> {
        self.prepare(changes, watermark, &[]).finish()
    }

    /// Calls the index functions and takes the store's write lock. Readers see the changes once the
    /// returned transaction is [committed](PreparedTransaction::commit).
    ///
    /// Use this if other work, such as publishing events, must happen at the moment of the commit.
    /// Otherwise use [`transaction`](Self::transaction), which also commits.
    ///
    /// `watermark` is the resource version that the store reaches with these changes; `None` if it
    /// stays the same. If each namespace has its own watch, `of_namespaces` contains each namespace
    /// with a new resource version, and each namespace that is no longer watched.
    pub fn prepare<'a>(
        &'a mut self,
        changes: Vec<Change<K>>,
        watermark: Option<&'a ResourceVersion>,
        of_namespaces: &'a [NamespaceProgress],
    ) -> PreparedTransaction<'a> {
        self.writer.prepare(changes.into_iter().map(Change::cast).collect(), watermark, of_namespaces)
    }

    /// Adds or replaces an object. The [watermark](Indexer::watermark), the resource version that
    /// the store has reached, stays the same, because the store can lack earlier changes of other
    /// objects. For many objects, [`transaction`](Self::transaction) is faster.
    ///
    /// Returns the new failures of indexes, like [`transaction`](Self::transaction).
    #[doc(alias = "Add")]
    #[doc(alias = "Update")]
    pub fn put(&mut self, object: Cached<K>) -> Vec<IndexFailure> {
        self.transaction(vec![Change::Put(object)], None)
    }

    /// Removes and returns the object with this key; `None` if the store does not have it. The
    /// [watermark](Indexer::watermark) stays the same.
    #[doc(alias = "Delete")]
    pub fn remove(&mut self, key: &ObjectKey) -> Option<Cached<K>> {
        // There is no other writer that could change the object before the transaction.
        let removed = self.indexer().get(key)?;
        self.transaction(vec![Change::Remove(key.clone())], None);
        Some(removed)
    }

    /// Replaces all objects of the store with `objects` and sets the
    /// [watermark](Indexer::watermark) to `resource_version`, in one step.
    ///
    /// If the store already contains the same version of an object, the store keeps its copy of the
    /// object, unless `objects` contains the key twice.
    ///
    /// Returns the new failures of indexes, like [`transaction`](Self::transaction).
    #[doc(alias = "Replace")]
    pub fn replace(
        &mut self,
        objects: Vec<Cached<K>>,
        resource_version: &ResourceVersion,
    ) -> Vec<IndexFailure> {
        self.replace_except(objects, resource_version, |_| false)
    }

    /// Adds or replaces `objects`, removes all other objects except those whose key satisfies
    /// `is_kept`, and sets the watermark to `resource_version`, in one step.
    pub(crate) fn replace_except(
        &mut self,
        objects: Vec<Cached<K>>,
        resource_version: &ResourceVersion,
        is_kept: impl Fn(&ObjectKey) -> bool,
    ) -> Vec<IndexFailure> {
        self.writer.replace_except(&mut objects.into_iter().map(Cached::cast), resource_version, &is_kept)
    }

    /// Returns a handle for reading the store.
    #[must_use]
    pub fn indexer(&self) -> Indexer<K> {
        Indexer::from_shared(Arc::clone(self.shared()))
    }
}

impl Writer {
    fn over(shared: Arc<Shared>) -> Self {
        let (definitions, generation) = {
            let notes = shared.write.lock();
            (notes.definitions(), notes.generation)
        };
        Self { shared, definitions, generation }
    }

    fn prepare<'a>(
        &'a mut self,
        changes: Vec<Change<AnyObject>>,
        watermark: Option<&'a ResourceVersion>,
        of_namespaces: &'a [NamespaceProgress],
    ) -> PreparedTransaction<'a> {
        loop {
            let (computed, failures) = compute_all(&self.definitions, &changes);
            let notes = self.shared.write.lock();
            if notes.generation == self.generation {
                let transaction = Transaction::new(changes, watermark, of_namespaces, computed);
                return PreparedTransaction::new(transaction, failures, notes, &self.shared.state);
            }
            // An index was added or removed meanwhile, so the index functions must be called again.
            self.generation = notes.generation;
            let outdated = std::mem::replace(&mut self.definitions, notes.definitions());
            drop(notes);
            // I8: `outdated` can hold the last reference to a removed index's function.
            drop(outdated);
        }
    }

    fn replace_except(
        &mut self,
        objects: &mut dyn Iterator<Item = Cached<AnyObject>>,
        resource_version: &ResourceVersion,
        is_kept: &dyn Fn(&ObjectKey) -> bool,
    ) -> Vec<IndexFailure> {
        let before = self.shared.state.read().clone();
        let mut is_listed = vec![false; before.objects.entries().capacity()];
        let mut changes = Vec::new();
        let mut cursor = Cursor::default();
        for object in objects {
            let key = object.key();
            let old = cursor.find(&before.objects, key.hash_value(), |old| old.key() == key);
            // If a key is listed twice, the last object counts.
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
        // If `before` still existed, the transaction would have to copy the parts that it changes.
        drop(before);
        self.prepare(changes, Some(resource_version), &[]).finish()
    }
}

impl<K: 'static> fmt::Debug for StoreWriter<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreWriter")
            .field("len", &self.shared().state.read().objects.len())
            .finish_non_exhaustive()
    }
}
