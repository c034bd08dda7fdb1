//! Waiting until informers and handlers have what existed at the start, or saying which don't, and why.
//!
//! client-go: `WaitForCacheSync` and `WaitFor` of `tools/cache/shared_informer.go`. Nothing is polled here.

use std::time::Duration;

use futures::future::try_join_all;
use informer_core::{Completion, HandlerRegistration, NeverSynced};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::{InformerState, SharedIndexInformer, SourceStatus};

/// Something that begins with what existed at the start: an informer's store, or a handler.
pub trait CacheSync: Send + Sync {
    /// Returns the promise that it has all of that.
    fn synced(&self) -> Completion;

    /// Returns the promise that it has all that existed in a namespace, if it follows that one only since later; otherwise
    /// what [`synced`](Self::synced) does, as it is by default.
    fn synced_in(&self, namespace: &str) -> Completion {
        _ = namespace;
        self.synced()
    }

    /// Returns whether it follows a namespace, where it follows namespaces one by one. Default: [`Following::Fixed`].
    fn following(&self, namespace: &str) -> Following {
        _ = namespace;
        Following::Fixed
    }

    /// Says what it is, and what it is waiting for.
    fn waiting_for(&self) -> String;
}

/// Whether a cache follows a namespace.
// Complete: a namespace is followed, or was, or namespaces are not followed one by one.
#[derive(Debug, Clone)]
pub enum Following {
    /// The cache does not follow namespaces one by one, or has never followed this one.
    Fixed,
    /// The cache follows the namespace.
    Followed {
        /// Cancelled when the namespace is removed, before the first of its objects leaves the store.
        removed: CancellationToken,
    },
    /// The namespace was removed. An object that is not in the cache may exist.
    Released {
        /// Kept when the namespace is added again; given up when the informer stops.
        again: Completion,
    },
}

/// One namespace of an informer, to be waited for by itself; see [`SharedIndexInformer::cache_in`].
#[derive(Debug, Clone)]
pub struct NamespaceCache<K: 'static> {
    informer: SharedIndexInformer<K>,
    namespace: String,
}

impl<K: Send + Sync + 'static> SharedIndexInformer<K> {
    /// Returns one namespace of the informer as a [`CacheSync`], for a program that must not begin without it: the informer
    /// itself syncs also without a namespace that is [refused](Self::synced).
    ///
    /// ```no_run
    /// # async fn run(
    /// #     pods: informer_factory::SharedIndexInformer<k8s_openapi::api::core::v1::Pod>,
    /// # ) -> Result<(), informer_factory::NotSynced> {
    /// use std::time::Duration;
    /// use informer_factory::wait_for_cache_sync;
    ///
    /// // An error if "payments" is refused, and Ok if only others are.
    /// wait_for_cache_sync(&[&pods, &pods.cache_in("payments")], Duration::from_secs(60)).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn cache_in(&self, namespace: &str) -> NamespaceCache<K> {
        NamespaceCache { informer: self.clone(), namespace: namespace.to_owned() }
    }
}

impl<K: Send + Sync + 'static> CacheSync for NamespaceCache<K> {
    fn synced(&self) -> Completion {
        self.informer.synced_in(&self.namespace)
    }

    fn waiting_for(&self) -> String {
        match self.informer.state() {
            InformerState::Idle => CacheSync::waiting_for(&self.informer),
            _ => self.informer.status().waiting_for_namespace(&self.namespace),
        }
    }
}

impl<K: Send + Sync + 'static> CacheSync for SharedIndexInformer<K> {
    fn synced(&self) -> Completion {
        self.synced()
    }

    fn synced_in(&self, namespace: &str) -> Completion {
        self.synced_in(namespace)
    }

    fn following(&self, namespace: &str) -> Following {
        self.following(namespace)
    }

    fn waiting_for(&self) -> String {
        waiting_for(self.status(), self.state())
    }
}

/// Says what an informer is, and what its first list is waiting for.
pub(crate) fn waiting_for(status: &SourceStatus, state: InformerState) -> String {
    match state {
        InformerState::Idle => format!("{} (not started)", status.description()),
        _ => status.waiting_for(),
    }
}

impl CacheSync for HandlerRegistration {
    fn synced(&self) -> Completion {
        self.synced()
    }

    fn waiting_for(&self) -> String {
        let reason = self.waiting_for().unwrap_or_else(|| "synced by now".to_owned());
        format!("handler {} ({reason})", self.name())
    }
}

/// Some caches have not synced.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("not synced: {}", pending.join("; "))]
#[non_exhaustive]
pub struct NotSynced {
    /// Each that has not, and what it is waiting for.
    pub pending: Vec<String>,
}

impl NotSynced {
    /// Names those that have not synced; what has synced in the last moment is none of them.
    pub(crate) fn unless_synced<'a>(caches: impl IntoIterator<Item = &'a dyn CacheSync>) -> Result<(), Self> {
        let waiting = caches.into_iter().filter(|cache| !cache.synced().has_synced());
        let mut pending: Vec<_> = waiting.map(CacheSync::waiting_for).collect();
        pending.sort_unstable();
        if pending.is_empty() { Ok(()) } else { Err(Self { pending }) }
    }
}

/// Waits until all promises are kept. Ends with the first that is given up (I12), whatever its place among them.
pub(crate) async fn all_kept(promises: impl IntoIterator<Item = Completion>) -> Result<(), NeverSynced> {
    let waits = promises.into_iter().map(|promise| async move { promise.wait().await });
    try_join_all(waits).await.map(drop)
}

/// Waits until all of `caches` have what existed at the start, at most for `timeout`.
///
/// A handler is synced later than its informer: once it has returned from the last of its initial adds (I6). Who reads
/// what handlers have built has to wait for them, and not only for the informer.
///
/// ```no_run
/// # async fn run(pods: informer_factory::SharedIndexInformer<k8s_openapi::api::core::v1::Pod>)
/// # -> Result<(), informer_factory::NotSynced> {
/// use std::time::Duration;
/// use informer_factory::wait_for_cache_sync;
///
/// let counted = pods.add_handlers(|handlers| handlers.on_add(|pod, _| println!("+ {}", pod.key())));
/// wait_for_cache_sync(&[&pods, &counted], Duration::from_secs(30)).await?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`NotSynced`] with those that are not, and why, when the time is up or one of them has stopped.
///
/// # Cancel safety
/// Nothing is lost if the future is dropped.
#[doc(alias = "WaitForCacheSync")]
#[doc(alias = "WaitForNamedCacheSync")]
pub async fn wait_for_cache_sync(caches: &[&dyn CacheSync], timeout: Duration) -> Result<(), NotSynced> {
    let all = all_kept(caches.iter().map(|cache| cache.synced()));
    match tokio::time::timeout(timeout, all).await {
        Ok(Ok(())) => Ok(()),
        _ => NotSynced::unless_synced(caches.iter().copied()),
    }
}
