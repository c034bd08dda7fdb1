//! [`Indexer`]: the read half of a store.
//!
//! client-go: `Indexer` and `Store` of tools/cache/index.go and store.go. There the same value reads and writes; here
//! writing takes the [`StoreWriter`](crate::StoreWriter), of which there is one.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use informer_core::{Cached, KnownObjects, ObjectKey, ResourceVersion, Watermarks};

use crate::index::{AnyIndex, Definition, Index, IndexState, IndexValue, Values, install, with_common_value};
use crate::objects::Objects;
use crate::posting::Posting;
use crate::shared::{Shared, State};
use crate::{IndexError, IndexFailure, Snapshot};

/// The name of the index by namespace that every store has.
#[doc(alias = "NamespaceIndex")]
pub const NAMESPACE_INDEX: &str = "namespace";

/// Reads a store: by key, by index, or whole. Cloning gives another handle on the same store.
///
/// Each query is answered from one state of objects and indices (I7), and never waits for a transaction to be built.
/// For several queries on one state take a [`snapshot`](Self::snapshot).
#[doc(alias = "ThreadSafeStore")]
#[doc(alias = "Store")]
pub struct Indexer<K> {
    shared: Arc<Shared<K>>,
}

impl<K> Indexer<K> {
    pub(crate) fn from_shared(shared: Arc<Shared<K>>) -> Self {
        Self { shared }
    }

    /// Returns the object with this key.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<Cached<K>> {
        self.shared.state.read().get(key).map(|(_, object)| object.clone())
    }

    /// Returns the object with this key, given as `namespace/name` or `name`.
    #[must_use]
    #[doc(alias = "GetByKey")]
    pub fn get_by_key(&self, key: &str) -> Option<Cached<K>> {
        self.shared.state.read().get_by_text(key).cloned()
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
        self.list().iter().map(|object| object.key().clone()).collect()
    }

    /// Returns how many objects there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.state.read().objects.len()
    }

    /// Returns how many handles on the store there are: indexers, listers, indices, and the writer. Snapshots and lists of
    /// objects are none.
    #[must_use]
    pub fn handle_count(&self) -> usize {
        Arc::strong_count(&self.shared)
    }

    /// Returns whether there are no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the server's resource version whose state the store has, empty if it has none yet (I9). Where namespaces
    /// come one by one, this is the least of [theirs](Self::watermarks): the store has at least this of each.
    #[must_use]
    #[doc(alias = "LastStoreSyncResourceVersion")]
    pub fn watermark(&self) -> ResourceVersion {
        self.shared.state.read().watermark.clone()
    }

    /// Returns the resource version of each namespace whose state the store has, where namespaces come one by one (I9);
    /// none otherwise, nor of one whose first list is not there.
    #[must_use]
    pub fn watermarks(&self) -> Arc<Watermarks> {
        Arc::clone(&self.shared.state.read().watermarks)
    }

    /// Returns the present state for any number of queries. Costs a few reference counts, however large the store is;
    /// objects that change later live on until the snapshot is dropped.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<K> {
        Snapshot { state: self.shared.state.read().clone() }
    }

    /// Returns the objects that have `value` in the index named `name`, if its values are `String`s. For others, and
    /// for speed, use the [`Index`] handle.
    ///
    /// # Errors
    /// [`IndexError::Unknown`] if there is no such index, [`IndexError::WrongType`] if its values are not `String`s.
    #[doc(alias = "ByIndex")]
    pub fn by_index(&self, name: &str, value: &str) -> Result<Objects<K>, IndexError> {
        if name == NAMESPACE_INDEX {
            return Ok(self.in_namespace(value));
        }
        Ok(self.index::<String>(name)?.get(value))
    }

    /// Returns the keys of the objects that [`by_index`](Self::by_index) finds, in order.
    ///
    /// # Errors
    /// As [`by_index`](Self::by_index).
    #[doc(alias = "IndexKeys")]
    pub fn index_keys(&self, name: &str, value: &str) -> Result<Vec<ObjectKey>, IndexError> {
        Ok(self.by_index(name, value)?.sorted_keys())
    }

    /// Returns the values that any object has in the index named `name`, if they are `String`s, in no particular order.
    ///
    /// # Errors
    /// As [`by_index`](Self::by_index).
    #[doc(alias = "ListIndexFuncValues")]
    pub fn index_values(&self, name: &str) -> Result<Vec<String>, IndexError> {
        if name == NAMESPACE_INDEX {
            return Ok(self.index::<Arc<str>>(name)?.values().iter().map(ToString::to_string).collect());
        }
        Ok(self.index::<String>(name)?.values())
    }

    /// Returns the objects that have a value in common with `object` in the index named `name`, whatever the type of its
    /// values: [`Index::with_common_value`].
    ///
    /// # Errors
    /// [`IndexError::Unknown`] if there is no such index, [`IndexError::Unplaceable`] if its function fails for `object`.
    #[doc(alias = "Index")]
    pub fn with_common_value(&self, name: &str, object: &Cached<K>) -> Result<Objects<K>, IndexError> {
        let id = {
            let state = self.shared.state.read();
            let named = state.indices.iter().find(|named| named.name() == name);
            named.map(|named| named.id).ok_or_else(|| unknown_index(name, &state))?
        };
        with_common_value(&self.shared, id, object)
    }

    /// Returns the handle of the index named `name`.
    ///
    /// # Errors
    /// [`IndexError::Unknown`] if there is no such index, [`IndexError::WrongType`] if its values are not `V`s.
    pub fn index<V: IndexValue>(&self, name: &str) -> Result<Index<K, V>, IndexError> {
        let state = self.shared.state.read();
        let Some(named) = state.indices.iter().find(|named| named.name() == name) else {
            return Err(unknown_index(name, &state));
        };
        let index = Index::new(Arc::clone(&self.shared), named.id, name);
        if index.exists_in(&state) {
            Ok(index)
        } else {
            Err(IndexError::WrongType { name: name.to_owned(), asked: std::any::type_name::<V>() })
        }
    }

    /// Returns the names of the indices.
    #[must_use]
    #[doc(alias = "GetIndexers")]
    pub fn index_names(&self) -> Vec<String> {
        self.shared.state.read().index_names().into_iter().map(str::to_owned).collect()
    }

    /// Returns whether an index of this name, with values of this type, is just being added.
    pub(crate) fn is_joining<V: IndexValue>(&self, name: &str) -> bool {
        let is_it = |index: &dyn AnyIndex<K>| {
            index.name() == name && index.new_state().as_any().is::<IndexState<V>>()
        };
        self.shared.write.lock().joining.iter().any(|joining| is_it(joining.definition.as_ref()))
    }

    /// Returns the objects that index functions can't place at present, and why.
    #[must_use]
    pub fn index_failures(&self) -> Vec<IndexFailure> {
        self.shared.write.lock().indices.iter().flat_map(|index| index.failures.values().cloned()).collect()
    }
}

impl<K: Send + Sync + 'static> Indexer<K> {
    /// Adds an index, at any time. `values` returns the values of an object: an `Option`, a `Vec`, an array.
    ///
    /// It is built without holding up readers or the writer, and is complete when this returns. `values` may be called
    /// from any thread and more than once for an object; if it panics, the object has no place in the index
    /// ([`index_failures`](Self::index_failures)).
    ///
    /// # Errors
    /// [`IndexError::Duplicate`] if the name is taken.
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
        let function = move |object: &K| Ok(values(object).into_iter().collect::<Values<V>>());
        install(&self.shared, Definition::of_object(name.to_owned(), function))
    }

    /// Adds an index whose function can fail: [`add_index`](Self::add_index) for objects that may not be as expected.
    ///
    /// # Errors
    /// [`IndexError::Duplicate`] if the name is taken.
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
        let function = move |object: &K| match values(object) {
            Ok(values) => Ok(values.into_iter().collect::<Values<V>>()),
            Err(error) => Err(error.to_string()),
        };
        install(&self.shared, Definition::of_object(name.to_owned(), function))
    }

    /// Returns the handle of the index named `name`; where there is none, adds it as
    /// [`try_add_index`](Self::try_add_index) does. Where another thread is just adding it, waits until it is complete.
    ///
    /// An index that is there keeps its function, whatever `values` is.
    ///
    /// # Errors
    /// [`IndexError::WrongType`] if there is one whose values are not `V`s, [`IndexError::Unknown`] if the other thread
    /// could not complete it, or it has been removed at this moment.
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
                self.shared.wait_while_joining(name);
                self.index(name)
            }
            added => added,
        }
    }

    /// Removes an index; its handles find nothing from now on. The index by namespace stays.
    ///
    /// # Errors
    /// [`IndexError::Unknown`] if there is no such index.
    pub fn remove_index(&self, name: &str) -> Result<(), IndexError> {
        let mut notes = self.shared.write.lock();
        match notes.position(name).filter(|_| name != NAMESPACE_INDEX) {
            Some(position) => {
                notes.generation += 1;
                let removed_notes = notes.indices.remove(position);
                let removed_state = self.shared.state.write().indices.remove(position);
                drop(notes);
                drop((removed_notes, removed_state));
                Ok(())
            }
            None => Err(unknown_index(name, &self.shared.state.read())),
        }
    }
}

fn unknown_index<K>(name: &str, state: &State<K>) -> IndexError {
    IndexError::Unknown { name: name.to_owned(), existing: state.index_names().join(", ") }
}

impl<K> State<K> {
    pub(crate) fn in_namespace(&self, namespace: &str) -> Objects<K> {
        Objects::of_posting(self, self.namespace_posting(namespace))
    }

    pub(crate) fn namespace_posting(&self, namespace: &str) -> Posting {
        self.by_namespace().map(|index| index.posting(namespace)).unwrap_or_default()
    }

    fn by_namespace(&self) -> Option<&IndexState<Arc<str>>> {
        // It is the first, and can't be removed.
        self.indices.first()?.index.as_any().downcast_ref()
    }
}

impl<K> Snapshot<K> {
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

impl<K> Clone for Indexer<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K> fmt::Debug for Indexer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Indexer")
            .field("len", &self.len())
            .field("watermark", &self.watermark())
            .field("indices", &self.index_names())
            .finish_non_exhaustive()
    }
}
