//! [`Readiness`]: decides whether a key is reconciled now, waits for a cache, or is dropped.
//!
//! A trigger cache is a cache whose changes add keys to the queue. A key waits in three cases:
//!
//! - A cache has possibly not received a write that the controller made for the key.
//! - A cache has not listed the key's namespace. The namespace was added after the informer had
//!   started, or the server forbids listing it. A reconcile function would treat the unlisted
//!   objects as missing.
//! - One trigger cache no longer watches the namespace, but another trigger cache does. A reconcile
//!   function would treat the objects that left the cache as deleted.

use std::hash::Hash;

use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use informer_core::Completion;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::overdue::Overdue;
use crate::{KeyWrites, WriteTracker};
use informer_factory::CacheSync;
use informer_factory::namespaces::NamespaceWatch;

pub(super) type NamespaceOf<T> = Box<dyn Fn(&T) -> Option<&str> + Send + Sync>;

/// A cache that the reconcile function reads.
pub(super) struct ReadCache {
    pub(super) cache: Box<dyn CacheSync>,
    /// Whether this cache is a trigger cache: its changes add keys to the queue.
    pub(super) is_trigger: bool,
}

pub(super) struct Readiness<T> {
    tracker: WriteTracker<T>,
    caches: Vec<ReadCache>,
    namespace_of: NamespaceOf<T>,
    overdue: Overdue,
}

/// Whether the caches of a controller have listed a namespace and still watch it.
enum Coverage {
    /// All caches that watch the namespace have listed it.
    Complete,
    /// Keys of the namespace wait for a cache that has not listed it, or for a trigger cache that
    /// no longer watches it.
    Partial {
        /// The cache for which the keys wait: a position in `Readiness::caches`.
        cache_index: usize,
        /// Set when the cache has listed the namespace, or watches it again. Cancelled when this
        /// will never happen, for example because the informer has stopped.
        complete: Completion,
        /// One token for each trigger cache that watches the namespace. A token is cancelled when
        /// its cache stops watching the namespace.
        watch_tokens: Vec<CancellationToken>,
    },
    /// Keys of the namespace are dropped, for one of these reasons:
    ///
    /// - No trigger cache watches the namespace any more.
    /// - A trigger cache no longer watches the namespace, and its informer has stopped. So this
    ///   cache cannot watch the namespace again.
    /// - The informer of a cache has stopped before the cache had listed the namespace.
    Released,
}

/// The next step of a worker that has a key from the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Reconcile,
    /// Hold the key, without occupying a worker, until the caches are ready for it.
    Park,
    /// Remove the key from the queue without a reconcile call, because its namespace is no longer
    /// watched or an informer has stopped; see [`Coverage::Released`].
    Drop,
}

/// Detects, during a reconcile call, that a cache no longer watches the key's namespace.
#[derive(Debug, Clone, Default)]
pub(super) struct NamespaceView {
    /// Whether the namespace was removed from at least one cache before this view was created.
    is_released: bool,
    /// One token for each cache that watched the namespace when this view was created. The token is
    /// cancelled when the namespace is removed from the cache.
    removal_tokens: Vec<CancellationToken>,
}

impl NamespaceView {
    pub(super) fn is_namespace_watched(&self) -> bool {
        !self.is_released && !self.removal_tokens.iter().any(CancellationToken::is_cancelled)
    }
}

impl<T: Hash + Eq + Clone + Send + Sync + 'static> Readiness<T> {
    pub(super) fn new(
        tracker: WriteTracker<T>,
        caches: Vec<ReadCache>,
        namespace_of: NamespaceOf<T>,
        overdue: Overdue,
    ) -> Self {
        Self { tracker, caches, namespace_of, overdue }
    }

    pub(super) fn writes(&self, key: &T) -> KeyWrites<T> {
        self.tracker.of(key)
    }

    pub(super) fn action(&self, key: &T) -> Action {
        match self.coverage(key) {
            Coverage::Released => Action::Drop,
            Coverage::Complete if self.writes(key).is_ready() => Action::Reconcile,
            Coverage::Complete | Coverage::Partial { .. } => Action::Park,
        }
    }

    pub(super) fn view(&self, key: &T) -> NamespaceView {
        let mut view = NamespaceView::default();
        let Some(namespace) = (self.namespace_of)(key) else { return view };
        for read in &self.caches {
            match read.cache.namespace_watch(namespace) {
                NamespaceWatch::Watched { removed } => view.removal_tokens.push(removed),
                NamespaceWatch::Released { .. } => view.is_released = true,
                NamespaceWatch::Unrecorded => {}
            }
        }
        view
    }

    /// Waits until the [`action`](Self::action) for the key is no longer [`Action::Park`]. If the
    /// namespace is added or removed during the wait for a write, the action can be `Park` again.
    ///
    /// Returns `false` if a cache still lacked a write of the controller at the write's deadline.
    /// Returns `true` in all other cases, also if the action is now [`Action::Drop`].
    pub(super) async fn ready(&self, key: &T) -> bool {
        loop {
            match self.coverage(key) {
                Coverage::Partial { cache_index, complete, watch_tokens } => {
                    let change = coverage_change(&complete, &watch_tokens);
                    if timeout(self.overdue.max_wait, change).await.is_err() {
                        let namespace = (self.namespace_of)(key).unwrap_or_default();
                        self.overdue.report(namespace, || self.caches[cache_index].cache.waiting_for());
                    }
                }
                Coverage::Complete => return self.writes(key).ready().await,
                // The key is queued again, and a worker then drops the key, unless its namespace is
                // watched again.
                Coverage::Released => return true,
            }
        }
    }

    fn coverage(&self, key: &T) -> Coverage {
        let Some(namespace) = (self.namespace_of)(key) else { return Coverage::Complete };
        let (mut watched, mut released, mut unlisted) = (Vec::new(), None, None);
        for (cache_index, read) in self.caches.iter().enumerate() {
            let watch = read.cache.namespace_watch(namespace);
            let listed = read.cache.synced_in(namespace);
            if is_pending(&listed) {
                unlisted = unlisted.or(Some((cache_index, listed)));
            } else if let NamespaceWatch::Watched { removed } = &watch
                && !listed.has_synced()
                && !removed.is_cancelled()
            {
                // `listed` is cancelled. A removal of the namespace would have cancelled `removed`
                // first, so the informer has stopped.
                return Coverage::Released;
            }
            match watch {
                NamespaceWatch::Watched { removed } if read.is_trigger => watched.push(removed),
                NamespaceWatch::Released { watched_again } if read.is_trigger => {
                    // The informer has stopped, so it will never watch the namespace again.
                    if is_cancelled(&watched_again) {
                        return Coverage::Released;
                    }
                    released = Some((cache_index, watched_again));
                }
                NamespaceWatch::Watched { .. }
                | NamespaceWatch::Released { .. }
                | NamespaceWatch::Unrecorded => {}
            }
        }
        if released.is_some() && watched.is_empty() {
            return Coverage::Released;
        }
        match unlisted.or(released) {
            // If `complete` is set, the namespace was listed, or added again, after the loop above
            // had read the state of the cache. `ready` then reads the state again without a wait.
            Some((cache_index, complete)) => {
                Coverage::Partial { cache_index, complete, watch_tokens: watched }
            }
            None => Coverage::Complete,
        }
    }
}

/// Waits until `complete` is set or cancelled, or a token in `watch_tokens` is cancelled. Both are
/// fields of [`Coverage::Partial`].
async fn coverage_change(complete: &Completion, watch_tokens: &[CancellationToken]) {
    let mut removals: FuturesUnordered<_> = watch_tokens.iter().map(CancellationToken::cancelled).collect();
    tokio::select! {
        biased;
        _ = complete.wait() => {}
        Some(()) = removals.next() => {}
    }
}

/// Returns whether this [`Completion`] is neither set nor cancelled.
fn is_pending(completion: &Completion) -> bool {
    !completion.has_synced() && completion.wait().now_or_never().is_none()
}

fn is_cancelled(completion: &Completion) -> bool {
    matches!(completion.wait().now_or_never(), Some(Err(_)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use informer_core::ObjectKey;

    use super::*;

    /// A synced cache that always returns the same answers.
    struct FixedCache(NamespaceWatch);

    impl CacheSync for FixedCache {
        fn synced(&self) -> Completion {
            let synced = Completion::new();
            synced.set();
            synced
        }

        fn namespace_watch(&self, _: &str) -> NamespaceWatch {
            self.0.clone()
        }

        fn waiting_for(&self) -> String {
            String::new()
        }
    }

    fn watched() -> NamespaceWatch {
        NamespaceWatch::Watched { removed: CancellationToken::new() }
    }

    /// Returns the action for a key whose namespace has these states in the caches of a controller.
    fn action(states: impl IntoIterator<Item = NamespaceWatch>) -> Action {
        let read = |state| ReadCache { cache: Box::new(FixedCache(state)), is_trigger: true };
        let caches = states.into_iter().map(read).collect();
        let overdue = Overdue::new("maps", Duration::ZERO);
        let namespace_of: NamespaceOf<ObjectKey> = Box::new(ObjectKey::namespace);
        let readiness = Readiness::new(WriteTracker::new(), caches, namespace_of, overdue);
        readiness.action(&ObjectKey::namespaced("shop", "a"))
    }

    #[test]
    fn key_of_namespace_added_again_during_the_check_is_parked() {
        // One cache watches the namespace. The other cache answers that the namespace was removed,
        // but it has been added to that cache again since the answer.
        let watched_again = Completion::new();
        watched_again.set();
        assert_eq!(action([watched(), NamespaceWatch::Released { watched_again }]), Action::Park);
    }

    #[test]
    fn key_is_dropped_if_one_of_two_released_caches_has_ended() {
        let (ended, running) = (Completion::new(), Completion::new());
        ended.cancel();
        let released = |watched_again| NamespaceWatch::Released { watched_again };
        assert_eq!(action([released(ended), released(running), watched()]), Action::Drop);
    }
}
