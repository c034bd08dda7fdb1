//! Waits until the store has reached a resource version or a write, so that a controller reads its
//! own writes (I9).

use std::time::Duration;

use futures::StreamExt;
use informer_core::{AnyObject, ListOptions, ListPart, ListWatchError, ObjectKey, ResourceVersion, Uid};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use tokio::sync::watch;

use super::{Shared, SharedIndexInformer};
use crate::source::{Namespaces, Source};

/// How a wait for a resource version ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub enum WaitOutcome {
    /// The store has the server's state at that version, or a later one.
    Reached,
    /// The store did not reach the version within the timeout.
    TimedOut,
    /// The object is outside the informer's namespace or selector, so the store will not have it.
    NotCovered,
    /// The version has no order, so it can't be compared.
    NotComparable,
    /// The informer has stopped before.
    Stopped,
}

/// The events that an informer receives because of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// Nothing: the object is outside its namespace or selector, and was before.
    Nothing,
    /// The object as it was written, or a later version.
    TheWrite,
    /// The removal of the object: the written object is outside the selector. If an earlier write
    /// has removed it already, the informer receives nothing else.
    LeavesSelector,
}

impl<K: Send + Sync + 'static> SharedIndexInformer<K> {
    /// Waits until the store has everything up to `resource_version`, at most for `timeout` (I9).
    ///
    /// The version must be one of the same resource. If it is the version of an object outside the
    /// informer's namespace or selector, it is reached with the next bookmark or event, usually
    /// within a minute. If the caller has the object, [`wait_for_write`](Self::wait_for_write) is
    /// more exact.
    ///
    /// With several namespaces, each of them must reach the version. A namespace without changes
    /// delays that until its next bookmark, up to a minute; a namespace that cannot be listed
    /// delays it until the timeout.
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
        wait(self.shared.watermark.clone(), has_reached, timeout).await
    }

    /// Waits until the store has an object as the server returned it from a write, or a later
    /// version of it, at most for `timeout` (I9). So a controller can read its own writes.
    ///
    /// Returns [`WaitOutcome::NotCovered`] at once if the store does not have the object and its
    /// written version is outside the informer's namespace or label selector. It also returns
    /// `NotCovered` if the object's namespace is removed meanwhile. With several namespaces, it
    /// waits for the object's namespace only.
    ///
    /// A write that moves an object out of the selector is reached when the store has removed the
    /// object; later calls return `NotCovered`. If the event of an earlier, matching version is
    /// still pending, the store can contain that version for a moment. Of field selectors, only
    /// `metadata.name` and `metadata.namespace` are evaluated; other fields lead to the timeout.
    ///
    /// # Cancel safety
    /// Nothing is lost if the future is dropped.
    pub async fn wait_for_write(&self, written: &K, timeout: Duration) -> WaitOutcome
    where
        K: Resource,
    {
        self.shared.wait_for_write(written.meta(), timeout).await
    }
}

impl Shared {
    async fn wait_for_write(&self, meta: &ObjectMeta, timeout: Duration) -> WaitOutcome {
        let is_leaving = match self.visibility_of(meta) {
            Visibility::Nothing => return WaitOutcome::NotCovered,
            Visibility::TheWrite => false,
            Visibility::LeavesSelector => true,
        };
        let resource_version = ResourceVersion::from(meta.resource_version.as_deref());
        if !resource_version.is_comparable() {
            return WaitOutcome::NotComparable;
        }
        let has_gone = self.has_gone(meta);
        let has_reached = |watermark: &ResourceVersion| {
            watermark.is_at_least(&resource_version) || is_leaving && has_gone()
        };
        match (self.source.as_ref(), meta.namespace.as_deref()) {
            (Source::Namespaces(namespaces), Some(namespace)) => {
                wait_in(namespaces, namespace, has_reached, timeout).await
            }
            _ => wait(self.watermark.clone(), has_reached, timeout).await,
        }
    }

    /// Reads an object's metadata from the server, or the version of the state that lacks the
    /// object. `None` if the informer's source can't read single objects, or the object's namespace
    /// is not watched.
    pub(crate) fn read(
        &self,
        object: &ObjectKey,
    ) -> Option<
        impl Future<Output = Result<Result<ObjectMeta, ResourceVersion>, ListWatchError>> + Send + use<>,
    > {
        let lister = match self.source.as_ref() {
            Source::Whole(whole) => whole.lister_watcher.only(object),
            Source::Namespaces(namespaces) => {
                namespaces.place(object.namespace()?)?.lister_watcher.only(object)
            }
        }?;
        Some(async move {
            let (mut parts, mut found) = (lister.list(ListOptions::default()).await?, None);
            loop {
                match parts.next().await.transpose()? {
                    Some(ListPart::Items(items)) => {
                        for item in items {
                            let item = item.map_err(|malformed| ListWatchError::Protocol(malformed.error))?;
                            found = Some(item.meta().clone());
                        }
                    }
                    Some(ListPart::End(end)) => return Ok(found.ok_or(end.resource_version)),
                    None => {
                        return Err(ListWatchError::Protocol("the list ended without its metadata".into()));
                    }
                }
            }
        })
    }

    /// Returns which events the informer receives because of a write.
    pub(crate) fn visibility_of(&self, written: &ObjectMeta) -> Visibility {
        let covers = match self.source.as_ref() {
            Source::Whole(whole) => whole.lister_watcher.covers(written),
            Source::Namespaces(namespaces) => {
                let place = written.namespace.as_deref().and_then(|namespace| namespaces.place(namespace));
                let Some(place) = place else { return Visibility::Nothing };
                place.lister_watcher.covers(written)
            }
        };
        match covers {
            true => Visibility::TheWrite,
            false if self.has_gone(written)() => Visibility::Nothing,
            false => Visibility::LeavesSelector,
        }
    }

    /// Returns a function that returns whether the store lacks an object, or has removed it.
    pub(crate) fn has_gone(&self, object: &ObjectMeta) -> impl Fn() -> bool + Send + Sync + use<> {
        let key = object.name.as_deref().map(|name| ObjectKey::new(object.namespace.as_deref(), name));
        let (indexer, uid) = (self.indexer.clone(), Uid::from(object.uid.as_deref()));
        move || {
            let cached = key.as_ref().and_then(|key| indexer.get(key));
            cached.is_none_or(|cached| *cached.uid() != uid)
        }
    }

    /// Returns a receiver of the watermark that concerns this object. The watermark changes after
    /// the store. The channel is closed when the informer stops or the object's namespace is
    /// removed.
    pub(crate) fn watermark_for(&self, object: &ObjectMeta) -> watch::Receiver<ResourceVersion> {
        let Source::Namespaces(namespaces) = self.source.as_ref() else {
            return self.watermark.clone();
        };
        let place = object.namespace.as_deref().and_then(|namespace| namespaces.place(namespace));
        place.map_or_else(|| watch::channel(ResourceVersion::empty()).1, |place| place.watermark)
    }
}

/// Waits until the store reaches a version.
async fn wait(
    mut watermark: watch::Receiver<ResourceVersion>,
    has_reached: impl Fn(&ResourceVersion) -> bool,
    timeout: Duration,
) -> WaitOutcome {
    match tokio::time::timeout(timeout, watermark.wait_for(has_reached)).await {
        Ok(Ok(_)) => WaitOutcome::Reached,
        Ok(Err(_)) => WaitOutcome::Stopped,
        Err(_) => WaitOutcome::TimedOut,
    }
}

/// Waits until a namespace reaches a version or is removed.
async fn wait_in(
    namespaces: &Namespaces<AnyObject>,
    namespace: &str,
    has_reached: impl Fn(&ResourceVersion) -> bool,
    timeout: Duration,
) -> WaitOutcome {
    let Some(place) = namespaces.place(namespace) else { return WaitOutcome::NotCovered };
    match wait(place.watermark, has_reached, timeout).await {
        WaitOutcome::Stopped if place.removed.is_cancelled() => WaitOutcome::NotCovered,
        outcome => outcome,
    }
}
