//! [`Indexer`]: the read half of a store.
//!
//! client-go: `Indexer` and `Store` of tools/cache/index.go and store.go. In client-go, every
//! handle can read and write. Here, an indexer only reads the objects, and only the single
//! [`StoreWriter`](crate::StoreWriter) changes them.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use informer_core::{Cached, KnownObjects, ObjectKey, ResourceVersion, Watermarks};

use ref_cast::{RefCastCustom, ref_cast_custom};

use crate::index::{Definition, Index, IndexState, IndexValue, Values, install, with_common_value};
use crate::objects::Objects;
use crate::posting::Posting;
use crate::shared::{NamedIndex, Shared, State};
use crate::{IndexError, IndexFailure, Snapshot};

/// The name of the index by namespace, which every store has.
#[doc(alias = "NamespaceIndex")]
pub const NAMESPACE_INDEX: &str = "namespace";

/// Reads the objects of a store: by key, by index, or all objects. A clone is another handle to the
/// same store.
///
/// Each query reads one consistent state of objects and indexes. A query can wait while a commit
/// changes this state, for less than a millisecond; [`index_failures`](Self::index_failures) can
/// wait longer. For several queries of the same state, use a [`snapshot`](Self::snapshot).
#[doc(alias = "ThreadSafeStore")]
#[doc(alias = "Store")]
#[derive(RefCastCustom)]
#[repr(transparent)]
pub struct Indexer<K> {
    pub(crate) shared: Arc<Shared>,
    _type: PhantomData<fn() -> K>,
}

impl<K: 'static> Indexer<K> {
    pub(crate) fn from_shared(shared: Arc<Shared>) -> Self {
        Self { shared, _type: PhantomData }
    }

    /// Changes only the static type of the objects, without a check.
    #[doc(hidden)]
    #[must_use]
    pub fn cast_ref<T: 'static>(&self) -> &Indexer<T> {
        Indexer::from_shared_ref(&self.shared)
    }

    #[ref_cast_custom]
    fn from_shared_ref(shared: &Arc<Shared>) -> &Self;

    /// Returns the object with this key; `None` if the store does not have it.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<Cached<K>> {
        self.shared.state.read().get(key).map(|(_, object)| object.clone().cast())
    }

    /// Returns the object with the key `namespace/name` or `name`; `None` if the store lacks it.
    #[must_use]
    #[doc(alias = "GetByKey")]
    pub fn get_by_key(&self, key: &str) -> Option<Cached<K>> {
        self.shared.state.read().get_by_text(key).cloned().map(Cached::cast)
    }

    /// Returns all objects.
    #[must_use]
    pub fn list(&self) -> Objects<K> {
        Objects::all(&self.shared.state.read())
    }

    /// Returns the objects in a namespace.
    #[must_use]
    pub fn in_namespace(&self, namespace: &str) -> Objects<K> {
        self.shared.state.read().in_namespace(namespace)
    }

    /// Returns the keys of all objects.
    #[must_use]
    #[doc(alias = "ListKeys")]
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.list().stored().map(|object| object.key().clone()).collect()
    }

    /// Returns the number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.state.read().objects.len()
    }

    /// Returns the number of existing handles to the store: indexers, listers, index handles, and
    /// the writer. Snapshots and lists of objects are not counted.
    #[must_use]
    pub fn handle_count(&self) -> usize {
        Arc::strong_count(&self.shared)
    }

    /// Returns whether there are no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the watermark: the resource version up to which the store has all changes. Empty
    /// before the first version is reached. If namespaces are watched separately, the result is the
    /// lowest of [their watermarks](Self::watermarks); empty while one is missing, or if they can't
    /// be compared. Exceptions (I10 in ARCHITECTURE.md): an object that can't be decoded or
    /// transformed can be older or missing, and deleted objects can remain if a listed object has
    /// no readable name or namespace.
    #[must_use]
    #[doc(alias = "LastStoreSyncResourceVersion")]
    pub fn watermark(&self) -> ResourceVersion {
        self.shared.state.read().watermark.clone()
    }

    /// Returns the [watermark](Self::watermark) of each namespace whose initial list has been
    /// processed. Empty if the namespaces are not watched separately.
    #[must_use]
    pub fn watermarks(&self) -> Arc<Watermarks> {
        Arc::clone(&self.shared.state.read().watermarks)
    }

    /// Returns a snapshot of the current state, for any number of queries. Taking a snapshot copies
    /// no objects, so its cost does not depend on the size of the store. The snapshot keeps objects
    /// that are replaced later in memory.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<K> {
        Snapshot::new(self.shared.state.read().clone())
    }

    /// Returns the objects that have `value` in the index `name`, an index of `String`s or
    /// [`NAMESPACE_INDEX`]. An [`Index`] handle is faster and supports other types.
    ///
    /// # Errors
    /// [`IndexError::Unknown`] if there is no such index; [`IndexError::WrongType`] if the values
    /// of the index have another type.
    #[doc(alias = "ByIndex")]
    pub fn by_index(&self, name: &str, value: &str) -> Result<Objects<K>, IndexError> {
        if name == NAMESPACE_INDEX {
            return Ok(self.in_namespace(value));
        }
        Ok(self.index::<String>(name)?.get(value))
    }

    /// Returns the sorted keys of the objects that have `value` in the index `name`.
    ///
    /// # Errors
    /// If no index has this name, or if its values are neither `String`s nor namespaces.
    #[doc(alias = "IndexKeys")]
    pub fn index_keys(&self, name: &str, value: &str) -> Result<Vec<ObjectKey>, IndexError> {
        Ok(self.by_index(name, value)?.sorted_keys())
    }

    /// Returns all values of an index of `String`s, or of [`NAMESPACE_INDEX`], in any order.
    ///
    /// # Errors
    /// If no index has this name, or if its values are neither `String`s nor namespaces.
    #[doc(alias = "ListIndexFuncValues")]
    pub fn index_values(&self, name: &str) -> Result<Vec<String>, IndexError> {
        if name == NAMESPACE_INDEX {
            return Ok(self.index::<Arc<str>>(name)?.values().iter().map(ToString::to_string).collect());
        }
        Ok(self.index::<String>(name)?.values())
    }

    /// Returns the objects that have a value in common with `object` in the index `name`. The
    /// values can have any type. See [`Index::with_common_value`].
    ///
    /// # Errors
    /// [`IndexError::Unknown`] if there is no such index; [`IndexError::Function`] if the index
    /// function fails for `object`.
    #[doc(alias = "Index")]
    pub fn with_common_value(&self, name: &str, object: &Cached<K>) -> Result<Objects<K>, IndexError> {
        let id = self.shared.state.read().index_named(name)?.id;
        with_common_value(&self.shared, id, object.cast_ref()).map(Objects::cast)
    }

    /// Returns the handle of the index named `name`.
    ///
    /// # Errors
    /// [`IndexError::Unknown`] if there is no such index; [`IndexError::WrongType`] if its values
    /// are not `V`s.
    pub fn index<V: IndexValue>(&self, name: &str) -> Result<Index<K, V>, IndexError> {
        let state = self.shared.state.read();
        let index = Index::new(Arc::clone(&self.shared), state.index_named(name)?.id, name);
        if index.exists_in(&state) {
            Ok(index)
        } else {
            Err(IndexError::WrongType { name: name.to_owned(), asked: std::any::type_name::<V>() })
        }
    }

    /// Returns the names of all indexes.
    #[must_use]
    #[doc(alias = "GetIndexers")]
    pub fn index_names(&self) -> Vec<String> {
        self.shared.state.read().index_names().into_iter().map(str::to_owned).collect()
    }

    /// Returns whether an index with this name and this type of values is in the last phase of its
    /// construction.
    #[cfg(feature = "kubernetes")]
    pub(crate) fn is_under_construction<V: IndexValue>(&self, name: &str) -> bool {
        self.shared
            .write
            .lock()
            .joining
            .iter()
            .map(|joining| &joining.definition)
            .any(|index| index.name() == name && index.new_state().as_any().is::<IndexState<V>>())
    }

    /// Returns the current failures of indexes, with the affected objects and the errors.
    #[must_use]
    pub fn index_failures(&self) -> Vec<IndexFailure> {
        self.shared.write.lock().indexes.iter().flat_map(|index| index.failures.values().cloned()).collect()
    }
}

impl<K: Send + Sync + 'static> Indexer<K> {
    /// Adds an index. The store can already have objects. `values` returns the index values of an
    /// object, for example as an `Option`, a `Vec` or an array.
    ///
    /// The index is built without blocking readers; the writer waits only briefly. The index is
    /// complete when this function returns. `values` can be called from any thread, and more than
    /// once for an object. If `values` panics for an object, the index does not contain the object,
    /// and [`index_failures`](Self::index_failures) returns the failure.
    ///
    /// # Errors
    /// [`IndexError::Duplicate`] if an index with this name exists. If several calls add one at the
    /// same time, only one of them succeeds.
    #[doc(alias = "AddIndexers")]
    pub fn add_index<V, I>(
        &self,
        name: &str,
        values: impl Fn(&K) -> I + Send + Sync + 'static,
    ) -> Result<Index<K, V>, IndexError>
    where
        V: IndexValue,
        I: IntoIterator<Item = V>,
    {
        let function = move |object: &Cached<K>| Ok(object.read(&values).into_iter().collect::<Values<V>>());
        self.install(name, function)
    }

    /// Adds an index. `function` receives the handle to an object, so that it can read the metadata
    /// without decoding the whole object.
    pub(crate) fn install<V: IndexValue>(
        &self,
        name: &str,
        function: impl Fn(&Cached<K>) -> Result<Values<V>, String> + Send + Sync + 'static,
    ) -> Result<Index<K, V>, IndexError> {
        install(&self.shared, Definition::of_object(name.to_owned(), function))
    }

    /// Adds an index. Unlike for [`add_index`](Self::add_index), `values` can return an error. If
    /// `values` fails for an object, the index does not contain the object, and
    /// [`index_failures`](Self::index_failures) returns the failure.
    ///
    /// # Errors
    /// [`IndexError::Duplicate`] if an index with this name exists. If several calls add one at the
    /// same time, only one of them succeeds.
    pub fn try_add_index<V, I, E>(
        &self,
        name: &str,
        values: impl Fn(&K) -> Result<I, E> + Send + Sync + 'static,
    ) -> Result<Index<K, V>, IndexError>
    where
        V: IndexValue,
        I: IntoIterator<Item = V>,
        E: fmt::Display,
    {
        let function = move |object: &Cached<K>| match object.read(&values) {
            Ok(values) => Ok(values.into_iter().collect::<Values<V>>()),
            Err(error) => Err(error.to_string()),
        };
        self.install(name, function)
    }

    /// Returns the handle of the index `name`. If the index does not exist, adds it with the index
    /// function `values`, which can return an error. If another thread adds the index first, waits
    /// until the index is complete.
    ///
    /// # Errors
    /// [`IndexError::WrongType`] if an index with this name and another type of values exists;
    /// [`IndexError::Unknown`] if another thread failed to add the index, or has just removed it.
    pub fn index_or_try_add<V, I, E>(
        &self,
        name: &str,
        values: impl Fn(&K) -> Result<I, E> + Send + Sync + 'static,
    ) -> Result<Index<K, V>, IndexError>
    where
        V: IndexValue,
        I: IntoIterator<Item = V>,
        E: fmt::Display,
    {
        match self.index(name) {
            Err(IndexError::Unknown { .. }) => {}
            found => return found,
        }
        match self.try_add_index(name, values) {
            Err(IndexError::Duplicate { .. }) => {
                self.shared.wait_while_building(name);
                self.index(name)
            }
            added => added,
        }
    }

    /// Removes an index. Queries through handles of the index then return no objects, except from
    /// older snapshots. The index by namespace can't be removed.
    ///
    /// # Errors
    /// [`IndexError::Unknown`] if no such index exists, or if it is the index by namespace.
    pub fn remove_index(&self, name: &str) -> Result<(), IndexError> {
        let mut notes = self.shared.write.lock();
        let Some(position) = notes.position(name).filter(|_| name != NAMESPACE_INDEX) else {
            return Err(unknown_index(name, &self.shared.state.read()));
        };
        notes.generation += 1;
        let removed_notes = notes.indexes.remove(position);
        let removed_state = self.shared.state.write().indexes.remove(position);
        drop(notes);
        drop((removed_notes, removed_state));
        Ok(())
    }
}

fn unknown_index(name: &str, state: &State) -> IndexError {
    IndexError::Unknown { name: name.to_owned(), existing: state.index_names().join(", ") }
}

impl State {
    fn index_named(&self, name: &str) -> Result<&NamedIndex, IndexError> {
        let found = self.indexes.iter().find(|named| named.name() == name);
        found.ok_or_else(|| unknown_index(name, self))
    }

    pub(crate) fn in_namespace<K: 'static>(&self, namespace: &str) -> Objects<K> {
        Objects::of_posting(self, self.namespace_posting(namespace))
    }

    pub(crate) fn namespace_posting(&self, namespace: &str) -> Posting {
        self.by_namespace().map(|index| index.posting(namespace)).unwrap_or_default()
    }

    fn by_namespace(&self) -> Option<&IndexState<Arc<str>>> {
        // The namespace index is the first index, and can't be removed.
        self.indexes.first()?.index.as_any().downcast_ref()
    }
}

impl<K: 'static> Snapshot<K> {
    /// Returns the objects in a namespace.
    #[must_use]
    pub fn in_namespace(&self, namespace: &str) -> Objects<K> {
        self.state.in_namespace(namespace)
    }
}

impl<K: Send + Sync + 'static> KnownObjects<K> for Indexer<K> {
    fn known(&self, key: &ObjectKey) -> Option<Cached<K>> {
        self.get(key)
    }

    fn for_each_known(&self, visit: &mut dyn FnMut(&Cached<K>)) -> Option<Box<dyn Any + Send>> {
        let objects = self.list();
        objects.iter().for_each(visit);
        Some(Box::new(objects))
    }

    fn for_each_known_in(
        &self,
        namespace: &str,
        visit: &mut dyn FnMut(&Cached<K>),
    ) -> Option<Box<dyn Any + Send>> {
        let objects = self.in_namespace(namespace);
        objects.iter().for_each(visit);
        Some(Box::new(objects))
    }
}

impl<K: 'static> Clone for Indexer<K> {
    fn clone(&self) -> Self {
        Self::from_shared(Arc::clone(&self.shared))
    }
}

impl<K: 'static> fmt::Debug for Indexer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Indexer")
            .field("len", &self.len())
            .field("watermark", &self.watermark())
            .field("indexes", &self.index_names())
            .finish_non_exhaustive()
    }
}
