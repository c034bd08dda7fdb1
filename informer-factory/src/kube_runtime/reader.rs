//! [`StoreReader`]: reads an informer's store with the methods of kube-runtime's `Store`.

use std::fmt;

use informer_core::{Cached, NeverSynced, ObjectKey};
use kube::core::{Selector, SelectorExt};
use kube::{Resource, ResourceExt};

use ::kube_runtime::reflector::ObjectRef;

use crate::SharedIndexInformer;

/// Reads an informer's store with the methods of `kube_runtime::reflector::Store`. The methods
/// return [`Cached<K>`] instead of `Arc<K>`; both are reference-counted pointers to an immutable
/// `K`.
///
/// `find` and `state_filter` scan all objects. The informer's
/// [indexes](SharedIndexInformer::add_index) and its [`Lister`](crate::Lister) are faster.
pub struct StoreReader<K: 'static> {
    informer: SharedIndexInformer<K>,
}

impl<K: Resource<DynamicType = ()> + Send + Sync + 'static> StoreReader<K> {
    /// Returns a reader of the informer's store.
    #[must_use]
    pub fn new(informer: &SharedIndexInformer<K>) -> Self {
        Self { informer: informer.clone() }
    }

    /// Waits until the initial list is in the store.
    ///
    /// # Errors
    /// [`NeverSynced`] if the informer stops before it is synced.
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future has no effect.
    pub async fn wait_until_ready(&self) -> Result<(), NeverSynced> {
        self.informer.synced().wait().await
    }

    /// Returns the object to which `key` refers; `None` if the store does not have it. For
    /// cluster-scoped resources, the namespace of `key` is ignored.
    #[must_use]
    pub fn get(&self, key: &ObjectRef<K>) -> Option<Cached<K>> {
        let named = self.informer.get(&ObjectKey::new(key.namespace.as_deref(), &key.name));
        named.or_else(|| self.informer.get(&ObjectKey::cluster_scoped(&key.name)))
    }

    /// Returns all objects of one consistent state of the store.
    #[must_use]
    pub fn state(&self) -> Vec<Cached<K>> {
        self.informer.indexer().list().to_vec()
    }

    /// Returns an object for which `predicate` returns `true`; `None` if there is none. No lock of
    /// the store is held while `predicate` runs.
    pub fn find(&self, predicate: impl Fn(&K) -> bool) -> Option<Cached<K>> {
        self.informer.indexer().list().iter().find(|object| predicate(object)).cloned()
    }

    /// Returns the objects for which `predicate` returns `true`. No lock of the store is held while
    /// `predicate` runs.
    #[must_use]
    pub fn state_filter(&self, predicate: impl Fn(&K) -> bool) -> Vec<Cached<K>> {
        self.informer.indexer().list().iter().filter(|object| predicate(object)).cloned().collect()
    }

    /// Returns the objects whose labels match `selector`.
    #[must_use]
    pub fn state_filter_selector(&self, selector: &Selector) -> Vec<Cached<K>> {
        self.state_filter(|object| selector.matches(object.labels()))
    }

    /// Returns the number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.informer.indexer().len()
    }

    /// Returns whether the store has no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.informer.indexer().is_empty()
    }
}

impl<K: 'static> Clone for StoreReader<K> {
    fn clone(&self) -> Self {
        Self { informer: self.informer.clone() }
    }
}

impl<K: 'static> fmt::Debug for StoreReader<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreReader").field("informer", &self.informer).finish()
    }
}
