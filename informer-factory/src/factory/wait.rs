//! Waits until the informers of a factory are synced.

use std::any::type_name;
use std::time::Duration;

use futures::FutureExt;
use informer_core::Completion;

use super::SharedInformerFactory;
use super::registry::Entry;
use crate::NotSynced;
use crate::cache_sync::all_set;

impl SharedInformerFactory {
    /// Waits until every informer of the factory has its initial list in its store.
    ///
    /// If an informer was not [started](Self::start), this method logs a warning at once and waits
    /// for the other informers. If the informer is then still not started, the method returns an
    /// error that names it, because its store is empty. client-go ignores informers that were not
    /// started.
    ///
    /// This can take forever: an informer without permission keeps retrying. To limit the wait, use
    /// [`wait_for_cache_sync_within`](Self::wait_for_cache_sync_within). To wait for one informer,
    /// use [`synced`](crate::SharedIndexInformer::synced); to wait for some, use
    /// [`wait_for_cache_sync`](crate::wait_for_cache_sync()).
    ///
    /// # Errors
    /// [`NotSynced`] if an informer stops before it is synced, as all do when the factory is shut
    /// down, or if an informer is still not started when all others are synced. An informer that
    /// the program [stops](Self::stop) leaves the factory, so it causes no error.
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future has no effect.
    #[doc(alias = "WaitForCacheSync")]
    pub async fn wait_for_cache_sync(&self) -> Result<(), NotSynced> {
        let informers = self.unstarted();
        if !informers.is_empty() {
            tracing::warn!(
                ?informers,
                "some informers are not started; unless `start` is called meanwhile, the wait ends with an error"
            );
        }
        loop {
            self.wait_for(Entry::is_started).await?;
            let pending = self.unstarted();
            if !pending.is_empty() {
                return Err(NotSynced { pending });
            }
            // An informer can be started between the two calls above. The wait did not include this
            // informer, so one more query checks all informers.
            if self.unless_synced(|_| true).is_ok() {
                return Ok(());
            }
        }
    }

    /// Waits until all informers for objects of this type are synced, in any scope.
    ///
    /// # Errors
    /// [`NotSynced`] at once if there is no informer of this type, or one of them was not started;
    /// later if one of them stops before it is synced, unless the program [stops](Self::stop) it.
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future has no effect.
    #[doc(alias = "WaitForCacheSync")]
    pub async fn wait_for_cache_sync_of<K: 'static>(&self) -> Result<(), NotSynced> {
        if !self.inner.informers.iter().any(|entry| entry.is_of::<K>()) {
            let pending = format!("{} (no informer of this type was requested)", type_name::<K>());
            return Err(NotSynced { pending: vec![pending] });
        }
        // One query decides, because an informer can be started between two queries.
        self.unless_synced(|entry| entry.is_of::<K>() && !entry.is_started())?;
        self.wait_for(Entry::is_of::<K>).await
    }

    /// Waits up to `timeout` until every informer of the factory has its initial list in its store.
    ///
    /// # Errors
    /// [`NotSynced`], which names the informers that are not synced, and the reasons. The error is
    /// returned when one of these events occurs:
    ///
    /// - The timeout ends.
    /// - An informer stops before it is synced.
    /// - All started informers are synced, and at least one informer was not started.
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future has no effect.
    pub async fn wait_for_cache_sync_within(&self, timeout: Duration) -> Result<(), NotSynced> {
        tokio::time::timeout(timeout, self.wait_for_cache_sync()).await.unwrap_or_else(|_| {
            let mut pending = self.unstarted();
            pending.extend(self.unless_synced(Entry::is_started).err().into_iter().flat_map(|it| it.pending));
            if pending.is_empty() { Ok(()) } else { Err(NotSynced { pending }) }
        })
    }

    /// Returns one line for each informer that was not started, such as
    /// ``pods (not started: call `start` again)``.
    fn unstarted(&self) -> Vec<String> {
        let waiting = self.inner.informers.iter().filter(|entry| !entry.is_started());
        let mut unstarted: Vec<_> = waiting
            .map(|entry| format!("{} (not started: call `start` again)", entry.description()))
            .collect();
        unstarted.sort_unstable();
        unstarted
    }

    async fn wait_for(&self, concerned: impl Fn(&Entry) -> bool) -> Result<(), NotSynced> {
        loop {
            // The iterator locks the current entry. `stop` removes an informer's entry before the
            // informer's completion is cancelled, so an informer that the program stops is not
            // found.
            if self.inner.informers.iter().any(|it| concerned(&it) && is_cancelled(&it.cache().synced())) {
                return self.unless_synced(concerned);
            }
            let entries = self.inner.informers.iter().filter(|entry| concerned(entry));
            let completions: Vec<_> = entries.map(|entry| entry.cache().synced()).collect();
            if completions.iter().all(Completion::has_synced) {
                return Ok(());
            }
            // During the wait, informers can be started, stopped or removed, so the next iteration
            // checks all informers again.
            let _ = all_set(completions).await;
        }
    }

    fn unless_synced(&self, concerned: impl Fn(&Entry) -> bool) -> Result<(), NotSynced> {
        let entries: Vec<_> = self.inner.informers.iter().filter(|entry| concerned(entry)).collect();
        NotSynced::unless_all_set(entries.iter().map(|entry| (entry.cache(), entry.cache().synced())))
    }
}

/// Returns whether a completion was cancelled, because the informer stopped before it was synced.
fn is_cancelled(completion: &Completion) -> bool {
    completion.wait().now_or_never().is_some_and(|outcome| outcome.is_err())
}
