//! [`ReflectedStore`]: a store as the direct destination of a reflector, without a queue.
//!
//! Use it for a local copy of objects without handlers. client-go: `NewReflector` with a
//! `NewStore`; kube-rs: `reflector()`.

use std::fmt;
use std::sync::Arc;

use informer_core::{Cached, Completion, Delta, ObjectKey, ReflectorStore, Replacement, ResourceVersion};

use crate::{Change, IndexFailure, Indexer, StoreWriter};

/// A store that a reflector fills directly. Each call of the reflector changes the store in at most
/// one transaction.
///
/// The objects of the initial list are visible to readers as they arrive. Once the list is
/// complete, the store equals the server's state at the [watermark](Indexer::watermark), except
/// that it keeps the last known state of quarantined objects, which could not be decoded or
/// transformed. If a list contains a quarantined object without a readable key, the list removes no
/// objects from the store: any object that is missing in the list could be the quarantined object.
/// Resyncs are ignored. A failure of an index is logged without its error, which
/// [`Indexer::index_failures`] returns. If the index function fails again for the next version of
/// the object, that is not logged.
///
/// The reflector's calls must not overlap, because a store has only one writer.
///
/// ```
/// use std::sync::Arc;
/// use informer_core::ReflectorStore;
/// use informer_store::{ReflectedStore, store};
/// use k8s_openapi::api::core::v1::Pod;
///
/// let (writer, pods) = store::<Pod>();
/// let store = Arc::new(ReflectedStore::new(writer));
/// let synced = store.synced();
/// let for_the_reflector: Arc<dyn ReflectorStore<Pod>> = store;
/// // Start a reflector with this store, wait with `synced.wait().await`, and then read `pods`.
/// # assert!(!synced.has_synced() && pods.is_empty());
/// ```
pub struct ReflectedStore<K> {
    indexer: Indexer<K>,
    synced: Completion,
}

impl<K: Send + Sync + 'static> ReflectedStore<K> {
    /// Wraps the store of this writer, so that a reflector can fill it.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "the only writer of the store moves here")]
    pub fn new(writer: StoreWriter<K>) -> Self {
        Self { indexer: writer.indexer(), synced: Completion::new() }
    }

    /// Returns a handle for reading the store.
    #[must_use]
    pub fn indexer(&self) -> Indexer<K> {
        self.indexer.clone()
    }

    /// Returns a [`Completion`] that is set when the initial list is in the store. If the
    /// `ReflectedStore` is dropped before, for example because its reflector has stopped, the
    /// completion is cancelled.
    #[must_use]
    pub fn synced(&self) -> Completion {
        self.synced.clone()
    }

    /// Creates a writer for one call of the reflector. The calls must not overlap, because a store
    /// has only one writer.
    fn writer(&self) -> StoreWriter<K> {
        // I8: a writer in a field would need a lock, held while index functions run.
        StoreWriter::over(Arc::clone(&self.indexer.shared))
    }

    fn change(delta: Delta<K>) -> Option<Change<K>> {
        match delta {
            Delta::Added(object) | Delta::Updated(object) | Delta::Replaced(object) => {
                Some(Change::Put(object))
            }
            Delta::Sync(_) => None,
            Delta::Deleted(deleted) => Some(Change::Remove(deleted.key().clone())),
            Delta::Released(object) => Some(Change::Remove(object.key().clone())),
        }
    }
}

impl<K> Drop for ReflectedStore<K> {
    fn drop(&mut self) {
        // I12: waits for an initial list that will never arrive must end.
        self.synced.cancel();
    }
}

fn report(failures: Vec<IndexFailure>) {
    // I10: each new failure is logged. Its error is not, because it can contain data of a Secret.
    for IndexFailure { index, key, resource_version, .. } in failures {
        tracing::warn!(
            %index, %key, %resource_version,
            "indexing of the object failed, so the index lacks it; \
             `Indexer::index_failures` returns the error"
        );
    }
}

impl<K: Send + Sync + 'static> ReflectorStore<K> for ReflectedStore<K> {
    fn apply(&self, changes: Vec<Delta<K>>, resource_version: &ResourceVersion) {
        let changes: Vec<Change<K>> = changes.into_iter().filter_map(Self::change).collect();
        let watermark = (!resource_version.is_empty()).then_some(resource_version);
        if !changes.is_empty() || watermark.is_some() {
            report(self.writer().transaction(changes, watermark));
        }
    }

    fn list_part(&self, mut objects: Vec<Cached<K>>) -> Vec<Cached<K>> {
        let mut changes = Vec::new();
        for object in &mut objects {
            match self.indexer.get(object.key()).filter(|known| known.same_version(object)) {
                Some(known) => *object = known,
                None => changes.push(Change::Put(object.clone())),
            }
        }
        if !self.synced.has_synced() && !changes.is_empty() {
            report(self.writer().transaction(changes, None));
        }
        objects
    }

    fn replace(&self, replacement: Replacement<K>) {
        let Replacement { objects, mut quarantined, complete, resource_version } = replacement;
        quarantined.sort_unstable();
        let is_kept = |key: &ObjectKey| !complete || quarantined.binary_search(key).is_ok();
        report(self.writer().replace_except(objects, &resource_version, is_kept));
        self.synced.set();
    }
}

impl<K: 'static> fmt::Debug for ReflectedStore<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReflectedStore")
            .field("indexer", &self.indexer)
            .field("has_synced", &self.synced.has_synced())
            .finish()
    }
}
