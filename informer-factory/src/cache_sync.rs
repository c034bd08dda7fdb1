//! [`wait_for_cache_sync`]: waits until informers and handlers are synced.
//!
//! client-go: `WaitForCacheSync`, which polls, and `WaitFor` of `tools/cache/shared_informer.go`.

use std::time::Duration;

use futures::future::try_join_all;
use informer_core::{Completion, HandlerRegistration, NeverSynced};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::SharedIndexInformer;
use crate::status::{InformerState, SourceStatus};

/// A cache for which [`wait_for_cache_sync`] can wait: an informer, one of its namespaces, or a
/// handler.
pub trait CacheSync: Send + Sync {
    /// Returns a [`Completion`] that is set when the informer or handler has processed its initial
    /// list.
    fn synced(&self) -> Completion;

    /// Returns a [`Completion`] that is set when the initial list of one namespace has been
    /// processed. Default: the completion of the whole initial list ([`synced`](Self::synced)).
    fn synced_in(&self, namespace: &str) -> Completion {
        _ = namespace;
        self.synced()
    }

    /// Returns whether this cache watches a namespace, or watched it before. Default:
    /// [`NamespaceWatch::Unrecorded`].
    fn namespace_watch(&self, namespace: &str) -> NamespaceWatch {
        _ = namespace;
        NamespaceWatch::Unrecorded
    }

    /// Returns a description of the informer or handler, with the reason why it is not synced.
    fn waiting_for(&self) -> String;
}

/// Whether a cache watches one namespace, or watched the namespace before.
#[derive(Debug, Clone)]
pub enum NamespaceWatch {
    /// The cache has no record of this namespace. For an informer, the meaning depends on how the
    /// informer was created:
    ///
    /// - If namespaces can be added to the informer, the informer does not watch this namespace. It
    ///   may have done so long ago: it always records the namespaces of the last 10,000 removals,
    ///   but can drop the records of earlier ones.
    /// - If the namespaces of the informer are fixed, its store has no objects of this namespace.
    ///   The informer can watch the namespace nevertheless.
    Unrecorded,
    /// The cache watches the namespace.
    Watched {
        /// Cancelled when the namespace is removed from the cache, before the first of the
        /// namespace's objects leaves the store. Never cancelled if the namespaces of the cache
        /// cannot be removed.
        removed: CancellationToken,
    },
    /// The namespace was removed from the cache and not added again. The cache can lack objects of
    /// this namespace that exist on the server.
    Released {
        /// Set when the namespace is added to the cache again; cancelled when the informer stops.
        watched_again: Completion,
    },
}

/// One namespace of an informer, for which [`wait_for_cache_sync`] can wait; see
/// [`SharedIndexInformer::cache_in`].
#[derive(Debug, Clone)]
pub struct NamespaceCache<K: 'static> {
    informer: SharedIndexInformer<K>,
    namespace: String,
}

impl<K: Send + Sync + 'static> SharedIndexInformer<K> {
    /// Returns a [`CacheSync`] for one namespace of this informer; see
    /// [`synced_in`](Self::synced_in). This `CacheSync` stays unsynced while the server refuses the
    /// namespace, although the informer itself [syncs](Self::synced) without refused namespaces.
    ///
    /// ```no_run
    /// # async fn run(
    /// #     pods: informer_factory::SharedIndexInformer<k8s_openapi::api::core::v1::Pod>,
    /// # ) -> Result<(), informer_factory::NotSynced> {
    /// use std::time::Duration;
    /// use informer_factory::wait_for_cache_sync;
    ///
    /// // Fails if the server refuses "payments". Other refused namespaces are no error.
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

    /// Returns the completion of the initial list, if `namespace` is this cache's namespace. For
    /// any other `namespace`, returns a completion that is already set.
    fn synced_in(&self, namespace: &str) -> Completion {
        if namespace == self.namespace {
            return self.synced();
        }
        let synced = Completion::new();
        synced.set();
        synced
    }

    fn namespace_watch(&self, namespace: &str) -> NamespaceWatch {
        if namespace == self.namespace {
            self.informer.namespace_watch(namespace)
        } else {
            NamespaceWatch::Unrecorded
        }
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

    fn namespace_watch(&self, namespace: &str) -> NamespaceWatch {
        self.namespace_watch(namespace)
    }

    fn waiting_for(&self) -> String {
        waiting_for(self.status(), self.state())
    }
}

/// Describes an informer, and the reason why it is not synced.
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

/// The error of functions that wait for caches: at least one cache is not synced.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("these caches are not synced: {}", pending.join("; "))]
#[non_exhaustive]
pub struct NotSynced {
    /// Descriptions of caches that are not synced, with the reasons.
    pub pending: Vec<String>,
}

impl NotSynced {
    /// Returns an error that lists the caches whose completion is not set; `Ok` if all are set.
    pub(crate) fn unless_all_set<'a>(
        caches: impl IntoIterator<Item = (&'a dyn CacheSync, Completion)>,
    ) -> Result<(), Self> {
        let waiting = caches.into_iter().filter(|(_, synced)| !synced.has_synced());
        let mut pending: Vec<_> = waiting.map(|(cache, _)| cache.waiting_for()).collect();
        pending.sort_unstable();
        if pending.is_empty() { Ok(()) } else { Err(Self { pending }) }
    }
}

/// Waits until all completions are set. Fails as soon as any completion is cancelled (invariant I12
/// in ARCHITECTURE.md).
pub(crate) async fn all_set(completions: impl IntoIterator<Item = Completion>) -> Result<(), NeverSynced> {
    let waits = completions.into_iter().map(|completion| async move { completion.wait().await });
    try_join_all(waits).await.map(drop)
}

/// Waits until all `caches` are synced, at most for `timeout`.
///
/// A handler is synced when it has processed its initial list, usually later than its informer. A
/// program that uses results of handlers must wait for the handlers, too.
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
/// [`NotSynced`] after the timeout, or as soon as one of the caches stops before it is synced. The
/// error names the caches that are not synced.
///
/// # Cancel safety
/// Cancel safe: dropping the future has no effect.
#[doc(alias = "WaitForCacheSync")]
#[doc(alias = "WaitForNamedCacheSync")]
pub async fn wait_for_cache_sync(caches: &[&dyn CacheSync], timeout: Duration) -> Result<(), NotSynced> {
    let synced: Vec<_> = caches.iter().map(|cache| cache.synced()).collect();
    match tokio::time::timeout(timeout, all_set(synced.clone())).await {
        Ok(Ok(())) => Ok(()),
        // The completions are not read again: if a namespace was removed meanwhile, its cache now
        // returns the completion of the whole informer.
        _ => NotSynced::unless_all_set(caches.iter().copied().zip(synced)),
    }
}
