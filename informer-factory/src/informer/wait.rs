//! Waits until the store has reached a resource version, or has a written object, so that a
//! controller reads its own writes (invariant I9 in ARCHITECTURE.md). The watermark is the resource
//! version that the store has reached.

use std::time::Duration;

use futures::StreamExt;
use informer_core::{AnyObject, ListOptions, ListPart, ListWatchError, ObjectKey, ResourceVersion, Uid};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use tokio::sync::watch;

use super::{Shared, SharedIndexInformer};
use crate::source::{Namespaces, Source};

/// How a wait for a resource version or a written object ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub enum WaitOutcome {
    /// The store has reached the requested version or a later one.
    ///
    /// Exceptions (I10 in ARCHITECTURE.md):
    ///
    /// - An object that could not be decoded or transformed can be missing or have an earlier
    ///   version.
    /// - If the server's list had an object without a readable name or namespace, the store can
    ///   still have deleted objects.
    ///
    /// [`wait_for_write`](SharedIndexInformer::wait_for_write) also returns this when the write has
    /// moved an object out of the informer's selector, and the store no longer has the object.
    Reached,
    /// The store did not reach the version within the timeout.
    TimedOut,
    /// The written object is outside the informer's namespace or selector, so the store will not
    /// have this version of the object.
    NotCovered,
    /// The resource version cannot be compared with others, because it is not a decimal number
    /// above zero without leading zeros.
    NotComparable,
    /// The informer stopped before its store reached the version.
    Stopped,
}

/// A prediction of what an informer receives from the server because of a write.
///
/// The informer's source checks its namespace, its label selector, and the fields `metadata.name`
/// and `metadata.namespace` of its field selector. The prediction can be wrong if the source cannot
/// check a condition that excludes the object: for example, only the server can check other fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// The informer receives no event, because the object was outside the informer's namespace or
    /// selector both before and after the write.
    Nothing,
    /// The informer receives the written version of the object or a later one, because the object
    /// matches the informer's namespace and selector.
    TheWrite,
    /// The informer receives a delete event, because the store has the object and the write moved
    /// it out of the informer's selector.
    LeavesSelector,
}

impl<K: Send + Sync + 'static> SharedIndexInformer<K> {
    /// Waits until the store has all changes up to `resource_version`, at most for `timeout`.
    ///
    /// The version must come from the same resource. If it is the version of an object outside the
    /// informer's namespace or selector, the store reaches it with the next bookmark or event,
    /// usually within a minute. If you have the written object,
    /// [`wait_for_write`](Self::wait_for_write) avoids this delay.
    ///
    /// With several namespaces, each of them must reach the version. A namespace without changes
    /// delays the call until the namespace's next bookmark, for up to a minute. A namespace that
    /// cannot be listed delays the call until the timeout, and so does an empty set of namespaces.
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future has no effect.
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

    /// Waits up to `timeout` until the store has the written object, a later version of it, or its
    /// deletion. `written` is the object that the server returned for the write. With this method,
    /// a controller reads its own writes.
    ///
    /// If the write moves the object out of the informer's label selector, the method waits until
    /// the store has removed the object. An informer of several namespaces waits only for the
    /// object's namespace.
    ///
    /// Returns [`WaitOutcome::NotCovered`] in these cases:
    ///
    /// - The object is outside the informer's namespace or label selector, and the store does not
    ///   have the object. The method then returns at once. After that, a queued older version of
    ///   the object can still enter the store for a short time.
    /// - The program [removes](Self::remove_namespace) the object's namespace from the informer
    ///   during the wait.
    ///
    /// Of a field selector, the method evaluates only `metadata.name` and `metadata.namespace`. If
    /// only another field of the selector excludes the object, the method does not return
    /// `NotCovered` at once. It then waits until the store has all changes up to the written
    /// version, like [`wait_until`](Self::wait_until).
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future has no effect.
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
        let absence_check = self.absence_check(meta);
        let has_reached = |watermark: &ResourceVersion| {
            watermark.is_at_least(&resource_version) || is_leaving && absence_check()
        };
        match (self.source.as_ref(), meta.namespace.as_deref()) {
            (Source::Namespaces(namespaces), Some(namespace)) => {
                wait_in(namespaces, namespace, has_reached, timeout).await
            }
            _ => wait(self.watermark.clone(), has_reached, timeout).await,
        }
    }

    /// Requests the current metadata of one object from the server; see
    /// [`read`](crate::__private::writes::read).
    pub(crate) fn read(
        &self,
        object: &ObjectKey,
    ) -> Option<
        impl Future<Output = Result<Result<ObjectMeta, ResourceVersion>, ListWatchError>> + Send + use<>,
    > {
        let lister = match self.source.as_ref() {
            Source::Whole(whole) => whole.lister_watcher.object_metadata(object),
            Source::Namespaces(namespaces) => {
                namespaces.access(object.namespace()?)?.lister_watcher.object_metadata(object)
            }
        }?;
        Some(async move {
            let (mut parts, mut found) = (lister.list(ListOptions::default()).await?, None);
            loop {
                match parts.next().await.transpose()? {
                    Some(ListPart::Items(items)) => {
                        for item in items {
                            let item = item.map_err(|malformed| ListWatchError::Protocol(malformed.error))?;
                            // Several namespaces can have an object with the name of a key that
                            // has no namespace.
                            if found.replace(item.meta().clone()).is_some() {
                                let error = "several namespaces have an object with this name; set \
                                             metadata.namespace of the written object";
                                return Err(ListWatchError::InvalidRequest(error.into()));
                            }
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

    /// Predicts which event the informer receives because of a write. `written` is the object's
    /// metadata after the write or, for a deletion, before it.
    pub(crate) fn visibility_of(&self, written: &ObjectMeta) -> Visibility {
        let covers = match self.source.as_ref() {
            Source::Whole(whole) => whole.lister_watcher.covers(written),
            Source::Namespaces(namespaces) => {
                let access = written.namespace.as_deref().and_then(|namespace| namespaces.access(namespace));
                let Some(access) = access else { return Visibility::Nothing };
                access.lister_watcher.covers(written)
            }
        };
        match covers {
            true => Visibility::TheWrite,
            false if self.absence_check(written)() => Visibility::Nothing,
            false => Visibility::LeavesSelector,
        }
    }

    /// Returns a function that checks, at each call, whether the store lacks `object`.
    /// - If the store has an object with the same name but another UID, `object` counts as missing.
    /// - If `object` has no UID, only name and namespace are compared.
    pub(crate) fn absence_check(&self, object: &ObjectMeta) -> impl Fn() -> bool + Send + Sync + use<> {
        let key = object.name.as_deref().map(|name| ObjectKey::new(object.namespace.as_deref(), name));
        let (indexer, uid) = (self.indexer.clone(), Uid::from(object.uid.as_deref()));
        move || {
            let cached = key.as_ref().and_then(|key| indexer.get(key));
            cached.is_none_or(|cached| !uid.is_missing() && *cached.uid() != uid)
        }
    }

    /// Returns a receiver of the watermark of the object's namespace or of the whole store. The
    /// channel is closed when the informer stops or the object's namespace is removed.
    pub(crate) fn watermark_for(&self, object: &ObjectMeta) -> watch::Receiver<ResourceVersion> {
        let Source::Namespaces(namespaces) = self.source.as_ref() else {
            return self.watermark.clone();
        };
        let access = object.namespace.as_deref().and_then(|namespace| namespaces.access(namespace));
        access.map_or_else(|| watch::channel(ResourceVersion::empty()).1, |access| access.watermark)
    }
}

/// Waits until `is_met` returns `true` for the current watermark. Fails when the channel is closed.
pub(super) async fn until(
    mut watermark: watch::Receiver<ResourceVersion>,
    is_met: impl Fn(&ResourceVersion) -> bool,
) -> Result<(), watch::error::RecvError> {
    loop {
        // I8: `is_met` can drop objects, so it is called while the channel is not locked.
        let current = watermark.borrow_and_update().clone();
        if is_met(&current) {
            return Ok(());
        }
        watermark.changed().await?;
    }
}

async fn wait(
    watermark: watch::Receiver<ResourceVersion>,
    has_reached: impl Fn(&ResourceVersion) -> bool,
    timeout: Duration,
) -> WaitOutcome {
    match tokio::time::timeout(timeout, until(watermark, has_reached)).await {
        Ok(Ok(())) => WaitOutcome::Reached,
        Ok(Err(_)) => WaitOutcome::Stopped,
        Err(_) => WaitOutcome::TimedOut,
    }
}

/// Waits until `has_reached` returns `true` for the watermark of a namespace. Returns
/// [`WaitOutcome::NotCovered`] if the informer does not watch the namespace, or stops watching it.
async fn wait_in(
    namespaces: &Namespaces<AnyObject>,
    namespace: &str,
    has_reached: impl Fn(&ResourceVersion) -> bool,
    timeout: Duration,
) -> WaitOutcome {
    let Some(access) = namespaces.access(namespace) else { return WaitOutcome::NotCovered };
    match wait(access.watermark, has_reached, timeout).await {
        WaitOutcome::Stopped if access.removed.is_cancelled() => WaitOutcome::NotCovered,
        outcome => outcome,
    }
}
