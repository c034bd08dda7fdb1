//! [`Snapshot`]: a consistent, read-only view of a store at one time.

use std::fmt;
use std::marker::PhantomData;

use informer_core::{Cached, ObjectKey, ResourceVersion, Watermarks};

use crate::objects::Objects;
use crate::shared::State;

/// One immutable state of a store, so that the results of several queries are consistent.
///
/// To query an index in a snapshot, use [`Index::get_in`](crate::Index::get_in).
pub struct Snapshot<K> {
    pub(crate) state: State,
    _type: PhantomData<fn() -> K>,
}

impl<K: 'static> Snapshot<K> {
    pub(crate) fn new(state: State) -> Self {
        Self { state, _type: PhantomData }
    }

    /// Returns the object with this key; `None` if the snapshot does not have it.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<Cached<K>> {
        self.state.get(key).map(|(_, object)| object.clone().cast())
    }

    /// Returns a reference to the object with this key; `None` if the snapshot does not have it.
    /// This is faster than [`get`](Self::get). Use only the key, version and metadata of the
    /// result: dereferencing it panics if the object is stored in encoded form.
    #[doc(hidden)]
    #[must_use]
    pub fn stored(&self, key: &ObjectKey) -> Option<&Cached<K>> {
        self.state.get(key).map(|(_, object)| object.cast_ref())
    }

    /// Returns the object with the key `namespace/name` or `name`; `None` if the snapshot does not
    /// have it.
    #[must_use]
    pub fn get_by_key(&self, key: &str) -> Option<Cached<K>> {
        self.state.get_by_text(key).map(|object| object.clone().cast())
    }

    /// Returns all objects.
    #[must_use]
    pub fn list(&self) -> Objects<K> {
        Objects::all(&self.state)
    }

    /// Returns the number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.state.objects.len()
    }

    /// Returns whether there are no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of bytes of all objects that are stored in encoded form (compressed, if
    /// they are compressed); `None` if the store has never had such an object. The dictionaries of
    /// compressed objects, and the allocations around the bytes, are not included.
    #[must_use]
    pub fn encoded_bytes(&self) -> Option<usize> {
        self.state.encoded_bytes
    }

    /// Returns the watermark of this state: the resource version that the store had reached; empty
    /// if there is none. If each namespace is watched separately, this is the minimum of [the
    /// namespaces' watermarks](Self::watermarks), and empty while one of them is missing.
    #[must_use]
    pub fn watermark(&self) -> &ResourceVersion {
        &self.state.watermark
    }

    /// Returns, for each namespace, the resource version that the store had reached there
    /// (watermark). The result is empty unless each namespace has its own watch.
    #[must_use]
    pub fn watermarks(&self) -> &Watermarks {
        &self.state.watermarks
    }
}

impl<K: 'static> Clone for Snapshot<K> {
    fn clone(&self) -> Self {
        Self::new(self.state.clone())
    }
}

impl<K: 'static> fmt::Debug for Snapshot<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("len", &self.len())
            .field("watermark", self.watermark())
            .finish_non_exhaustive()
    }
}
