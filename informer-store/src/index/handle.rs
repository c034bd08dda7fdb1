//! [`Index`]: the typed handle to an index.

use std::borrow::Borrow;
use std::fmt;
use std::hash::Hash;
use std::marker::PhantomData;
use std::sync::Arc;

use informer_core::{AnyObject, Cached, ObjectKey};

use super::{IndexState, IndexValue, Values};
use crate::objects::Objects;
use crate::shared::{IndexId, Shared, State};
use crate::{IndexError, Snapshot};

/// Finds the objects of a store by values of type `V`. A clone is another handle to the same index.
///
/// Each result comes from one state of the store. After the index has been removed, results are
/// empty, except from older snapshots.
pub struct Index<K, V> {
    shared: Arc<Shared>,
    id: IndexId,
    name: Arc<str>,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K: 'static, V: IndexValue> Index<K, V> {
    pub(crate) fn new(shared: Arc<Shared>, id: IndexId, name: &str) -> Self {
        Self { shared, id, name: name.into(), types: PhantomData }
    }

    /// Returns the name of the index.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the objects that have `value` in the index.
    #[must_use]
    #[doc(alias = "ByIndex")]
    pub fn get<Q: Hash + Eq + ?Sized>(&self, value: &Q) -> Objects<K>
    where
        V: Borrow<Q>,
    {
        self.get_from(&self.shared.state.read(), value)
    }

    /// Returns the objects that have `value` in a snapshot of the same store.
    ///
    /// The result is empty if the index did not exist when the snapshot was taken.
    #[must_use]
    pub fn get_in<Q: Hash + Eq + ?Sized>(&self, snapshot: &Snapshot<K>, value: &Q) -> Objects<K>
    where
        V: Borrow<Q>,
    {
        self.get_from(&snapshot.state, value)
    }

    /// Returns the objects that have at least one index value in common with `object`, each of them
    /// once. `object` need not be in the store; the result includes the stored object with the same
    /// key only if it has one of these values. Calls the index function for `object`, while no lock
    /// is held.
    ///
    /// # Errors
    /// [`IndexError::Function`] if the index function fails for `object`.
    #[doc(alias = "Index")]
    pub fn with_common_value(&self, object: &Cached<K>) -> Result<Objects<K>, IndexError> {
        with_common_value(&self.shared, self.id, object.cast_ref()).map(Objects::cast)
    }

    /// Returns the sorted keys of the objects that have `value` in the index.
    #[must_use]
    #[doc(alias = "IndexKeys")]
    pub fn keys<Q: Hash + Eq + ?Sized>(&self, value: &Q) -> Vec<ObjectKey>
    where
        V: Borrow<Q>,
    {
        self.get(value).sorted_keys()
    }

    fn get_from<Q: Hash + Eq + ?Sized>(&self, state: &State, value: &Q) -> Objects<K>
    where
        V: Borrow<Q>,
    {
        let posting = self.state_in(state).map(|index| index.posting(value)).unwrap_or_default();
        Objects::of_posting(state, posting)
    }

    fn state_in<'a>(&self, state: &'a State) -> Option<&'a IndexState<V>> {
        state.index(self.id)?.as_any().downcast_ref()
    }

    pub(crate) fn exists_in(&self, state: &State) -> bool {
        self.state_in(state).is_some()
    }

    /// Returns whether the index function returns `value` for an object, which need not be in the
    /// store; `false` if the index has been removed. Calls the index function, so the caller must
    /// not hold a lock.
    pub(crate) fn has_value<Q: Hash + Eq + ?Sized>(&self, object: &Cached<K>, value: &Q) -> bool
    where
        V: Borrow<Q>,
    {
        let Some(definition) = self.shared.state.read().definition(self.id) else { return false };
        let values = definition
            .values_of(object.cast_ref())
            .ok()
            .and_then(|values| values.downcast::<Values<V>>().ok());
        values.is_some_and(|values| values.iter().any(|own| own.borrow() == value))
    }

    /// Returns the number of objects that have `value` in the index.
    #[must_use]
    pub fn count<Q: Hash + Eq + ?Sized>(&self, value: &Q) -> usize
    where
        V: Borrow<Q>,
    {
        let state = self.shared.state.read();
        self.state_in(&state).map_or(0, |index| index.posting(value).len())
    }

    /// Returns all values in the index, in no particular order.
    #[must_use]
    #[doc(alias = "ListIndexFuncValues")]
    pub fn values(&self) -> Vec<V> {
        // A copy of the state is used, so that the writer does not wait while the values are
        // copied.
        let state = self.shared.state.read().clone();
        self.state_in(&state).map(|index| index.values().cloned().collect()).unwrap_or_default()
    }
}

/// Returns the objects that have an index value in common with `object`.
pub(crate) fn with_common_value(
    shared: &Shared,
    id: IndexId,
    object: &Cached<AnyObject>,
) -> Result<Objects<AnyObject>, IndexError> {
    let definition = shared.state.read().definition(id);
    // I8: the function runs without a lock.
    let values = definition.map(|definition| {
        let function_failed = |error| IndexError::Function {
            name: definition.name().to_owned(),
            key: object.key().clone(),
            error,
        };
        definition.values_of(object).map_err(function_failed)
    });
    let values = values.transpose()?;
    // A copy of the state is used, so that the writer does not wait while postings are merged.
    let state = shared.state.read().clone();
    let posting = state.index(id).zip(values).map(|(index, values)| index.union_of(values.as_ref()));
    Ok(Objects::of_posting(&state, posting.unwrap_or_default()))
}

impl<K, V> Clone for Index<K, V> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            id: self.id,
            name: Arc::clone(&self.name),
            types: PhantomData,
        }
    }
}

impl<K, V> fmt::Debug for Index<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index").field("name", &self.name).finish_non_exhaustive()
    }
}
