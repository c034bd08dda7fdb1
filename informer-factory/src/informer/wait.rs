//! Waiting for the store to have what one knows to be true: a controller that reads its own writes (I9).

use std::time::Duration;

use informer_core::{ObjectKey, ResourceVersion};
use kube::Resource;
use kube::api::ObjectMeta;

use super::SharedIndexInformer;
use crate::source::{Namespaces, Source};

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

impl<K: Resource + Send + Sync + 'static> SharedIndexInformer<K> {
    /// Waits until the store has everything up to `resource_version`, at most for `timeout` (I9).
    ///
    /// The version has to be of the same resource, and of a state that concerns the informer: one of an object
    /// outside its namespace or selector is only reached with the next bookmark or event, mostly within a minute. Where
    /// the object is at hand, [`wait_for_write`](Self::wait_for_write) knows better.
    ///
    /// An informer that follows several namespaces one by one has to have reached it in each, and there is a bookmark for
    /// each, so that a quiet one can hold this up for a minute, and one that can't be listed until the timeout.
    ///
    /// # Cancel safety
    /// Nothing is lost if the future is dropped.
    pub async fn wait_until(&self, resource_version: &ResourceVersion, timeout: Duration) -> WaitOutcome {
        if !resource_version.is_comparable() {
            return WaitOutcome::NotComparable;
        }
        let has_reached = |watermark: &ResourceVersion| match self.shared.source.as_ref() {
            Source::Whole(_) => watermark.is_at_least(resource_version),
            Source::Namespaces(namespaces) => {
                namespaces.have_reached(&self.shared.indexer.watermarks(), resource_version)
            }
        };
        self.wait_until_it(has_reached, timeout).await
    }

    /// Waits until a condition holds, which is looked at whenever the store has got further.
    async fn wait_until_it(
        &self,
        condition: impl FnMut(&ResourceVersion) -> bool,
        timeout: Duration,
    ) -> WaitOutcome {
        let mut watermark = self.shared.watermark.clone();
        match tokio::time::timeout(timeout, watermark.wait_for(condition)).await {
            Ok(Ok(_)) => WaitOutcome::Reached,
            Ok(Err(_)) => WaitOutcome::Stopped,
            Err(_) => WaitOutcome::TimedOut,
        }
    }

    /// Waits until the store has an object as the server returned it from a write, or a later version of it, at most
    /// for `timeout` (I9). So a controller can read its own writes.
    ///
    /// Answers [`WaitOutcome::NotCovered`] at once for an object that the store does not have and, as it was written, will
    /// not get, because it is in another namespace or its labels don't match; also when its namespace ceases to be followed
    /// meanwhile. Of several namespaces that are followed one by one, its own is waited for, and no other. A write that takes an object out of the
    /// selector is reached when the store has let go of it, and not covered from then on. If an earlier version did
    /// match and is still on its way, the store may yet have that one for a moment. A field selector is only understood
    /// where it is about `metadata.name` and `metadata.namespace`; for others the answer comes with the timeout.
    ///
    /// # Cancel safety
    /// Nothing is lost if the future is dropped.
    pub async fn wait_for_write(&self, written: &K, timeout: Duration) -> WaitOutcome {
        let meta = written.meta();
        // A write that takes an object out of the selector reaches the informer as its deletion, with that version.
        let has_it = ObjectKey::of(written).is_ok_and(|key| self.shared.indexer.get(&key).is_some());
        let whole = match self.shared.source.as_ref() {
            Source::Whole(whole) => whole,
            Source::Namespaces(namespaces) => {
                return self.wait_in_its_namespace(namespaces, meta, has_it, timeout).await;
            }
        };
        if !has_it && !whole.lister_watcher.covers(meta) {
            return WaitOutcome::NotCovered;
        }
        self.wait_until(&meta.resource_version.as_deref().into(), timeout).await
    }

    async fn wait_in_its_namespace(
        &self,
        namespaces: &Namespaces<K>,
        meta: &ObjectMeta,
        has_it: bool,
        timeout: Duration,
    ) -> WaitOutcome {
        let place = namespaces.place_of(meta).filter(|place| has_it || place.covers);
        let (Some(place), Some(namespace)) = (place, meta.namespace.as_deref()) else {
            return WaitOutcome::NotCovered;
        };
        let resource_version = ResourceVersion::from(meta.resource_version.as_deref());
        if !resource_version.is_comparable() {
            return WaitOutcome::NotComparable;
        }
        let has_reached = |_: &ResourceVersion| {
            let watermarks = self.shared.indexer.watermarks();
            let reached = watermarks.of_feed(namespace, place.feed);
            reached.is_some_and(|reached| reached.is_at_least(&resource_version))
        };
        tokio::select! {
            biased;
            () = place.removed.cancelled() => WaitOutcome::NotCovered,
            outcome = self.wait_until_it(has_reached, timeout) => outcome,
        }
    }
}
