//! Waiting for the store to have what one knows to be true: a controller that reads its own writes (I9).

use std::time::Duration;

use informer_core::{ObjectKey, ResourceVersion};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use tokio::sync::watch;

use super::SharedIndexInformer;

/// How a wait for a resource version ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub enum WaitOutcome {
    /// The store has the server's state at that version, or a later one.
    Reached,
    /// It didn't get there in time.
    TimedOut,
    /// The object is outside the informer's namespace or selector, so the store will not have it.
    NotCovered,
    /// The version has no order, so nobody can say.
    NotComparable,
    /// The informer has stopped short of it.
    Stopped,
}

impl<K: Send + Sync + 'static> SharedIndexInformer<K> {
    /// Waits until the store has everything up to `resource_version`, at most for `timeout` (I9).
    ///
    /// The version has to be of the same resource, and of a state that concerns the informer: one of an object
    /// outside its namespace or selector is only reached with the next bookmark or event, mostly within a minute. Where
    /// the object is at hand, [`wait_for_write`](Self::wait_for_write) knows better.
    ///
    /// # Cancel safety
    /// Nothing is lost if the future is dropped.
    pub async fn wait_until(&self, resource_version: &ResourceVersion, timeout: Duration) -> WaitOutcome {
        if !resource_version.is_comparable() {
            return WaitOutcome::NotComparable;
        }
        let mut watermark = self.shared.watermark.clone();
        let reached = watermark.wait_for(|watermark| watermark.is_at_least(resource_version));
        match tokio::time::timeout(timeout, reached).await {
            Ok(Ok(_)) => WaitOutcome::Reached,
            Ok(Err(_)) => WaitOutcome::Stopped,
            Err(_) => WaitOutcome::TimedOut,
        }
    }

    /// Waits until the store has an object as the server returned it from a write, or a later version of it, at most
    /// for `timeout` (I9). So a controller can read its own writes.
    ///
    /// Answers [`WaitOutcome::NotCovered`] at once for an object that the store does not have and, as it was written, will
    /// not get, because it is in another namespace or its labels don't match. A write that takes an object out of the
    /// selector is reached when the store has let go of it, and not covered from then on. If an earlier version did
    /// match and is still on its way, the store may yet have that one for a moment. A field selector is only understood
    /// where it is about `metadata.name` and `metadata.namespace`; for others the answer comes with the timeout.
    ///
    /// # Cancel safety
    /// Nothing is lost if the future is dropped.
    pub async fn wait_for_write(&self, written: &K, timeout: Duration) -> WaitOutcome
    where
        K: Resource,
    {
        let meta = written.meta();
        if !self.hears_of(meta) {
            return WaitOutcome::NotCovered;
        }
        self.wait_until(&meta.resource_version.as_deref().into(), timeout).await
    }
    /// Says whether the store has the object, or gets it as it was written.
    pub(crate) fn hears_of(&self, written: &ObjectMeta) -> bool {
        // A write that takes an object out of the selector reaches the informer as its deletion, with that version.
        let key = written.name.as_deref().map(|name| ObjectKey::new(written.namespace.as_deref(), name));
        let has_it = key.is_some_and(|key| self.shared.indexer.get(&key).is_some());
        has_it || self.shared.lister_watcher.covers(written)
    }

    /// Follows the store's watermark, which moves after the store has; closed once the informer has stopped.
    pub(crate) fn watermarks(&self) -> watch::Receiver<ResourceVersion> {
        self.shared.watermark.clone()
    }
}
