//! Waiting until the informers of a factory are synced, or saying which are not, and why.

use std::time::Duration;

use super::SharedInformerFactory;
use crate::NotSynced;
use crate::cache_sync::all_kept;

impl SharedInformerFactory {
    /// Waits until the first list of every informer that has been started is in its store.
    ///
    /// This can take for ever: an informer that is not allowed to list keeps trying. See
    /// [`wait_for_cache_sync_within`](Self::wait_for_cache_sync_within).
    ///
    /// # Errors
    /// [`NotSynced`] if one of them stops before, as all do when the factory is shut down.
    ///
    /// # Cancel safety
    /// Nothing is lost if the future is dropped.
    #[doc(alias = "WaitForCacheSync")]
    pub async fn wait_for_cache_sync(&self) -> Result<(), NotSynced> {
        let entries = self.inner.informers.iter().filter(|entry| entry.is_started());
        let started: Vec<_> = entries.map(|entry| entry.cache.synced()).collect();
        match all_kept(started).await {
            Ok(()) => Ok(()),
            Err(_) => self.unless_synced(),
        }
    }

    /// Waits as [`wait_for_cache_sync`](Self::wait_for_cache_sync), but not longer than `timeout`.
    ///
    /// # Errors
    /// [`NotSynced`] with the informers that have not synced in time, and why.
    ///
    /// # Cancel safety
    /// Nothing is lost if the future is dropped.
    pub async fn wait_for_cache_sync_within(&self, timeout: Duration) -> Result<(), NotSynced> {
        tokio::time::timeout(timeout, self.wait_for_cache_sync())
            .await
            .unwrap_or_else(|_| self.unless_synced())
    }

    fn unless_synced(&self) -> Result<(), NotSynced> {
        let started: Vec<_> = self.inner.informers.iter().filter(|entry| entry.is_started()).collect();
        NotSynced::unless_synced(started.iter().map(|entry| entry.cache.as_ref()))
    }
}
