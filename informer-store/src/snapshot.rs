//! [`Snapshot`]: one state of a store, for as long as it is held.

use std::fmt;

use informer_core::{Cached, ObjectKey, ResourceVersion, Watermarks};

use crate::objects::Objects;
use crate::shared::State;

/// One state of a store: whatever is asked of it, the answers fit together (I7).
///
/// With an index: [`Index::get_in`](crate::Index::get_in).
pub struct Snapshot<K> {
    pub(crate) state: State<K>,
}

impl<K> Snapshot<K> {
    /// Returns the object with this key.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<&Cached<K>> {
        self.state.get(key).map(|(_, object)| object)
    }

    /// Returns the object with this key, given as `namespace/name` or `name`.
    #[must_use]
    pub fn get_by_key(&self, key: &str) -> Option<&Cached<K>> {
        self.state.get_by_text(key)
    }

    /// Returns all objects.
    #[must_use]
    pub fn list(&self) -> Objects<K> {
        Objects::all(&self.state)
    }

    /// Returns how many objects there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.state.objects.len()
    }

    /// Returns whether there are no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the server's resource version whose state this is, empty if there is none. Where namespaces come one by
    /// one, the least of [theirs](Self::watermarks).
    #[must_use]
    pub fn watermark(&self) -> &ResourceVersion {
        &self.state.watermark
    }

    /// Returns the resource version of each namespace whose state this is, where they come one by one; none otherwise.
    #[must_use]
    pub fn watermarks(&self) -> &Watermarks {
        &self.state.watermarks
    }

    /// Returns the resource version up to which everything is here that concerns the object with this key.
    pub(crate) fn watermark_for(&self, key: &ObjectKey) -> &ResourceVersion {
        self.state.watermark_for(key)
    }
}

impl<K> Clone for Snapshot<K> {
    fn clone(&self) -> Self {
        Self { state: self.state.clone() }
    }
}

impl<K> fmt::Debug for Snapshot<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("len", &self.len())
            .field("watermark", self.watermark())
            .finish_non_exhaustive()
    }
}
