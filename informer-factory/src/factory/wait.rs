//! Waiting until the informers of a factory are synced, or saying which are not, and why.

use std::time::Duration;

use thiserror::Error;

use super::SharedInformerFactory;

/// Some informers have not synced.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("not synced: {}", pending.join("; "))]
#[non_exhaustive]
pub struct NotSynced {
    /// Each informer that has not, and what it is doing instead.
    pub pending: Vec<String>,
}

impl SharedInformerFactory {
    /// Waits until the first list of every informer that has been started is in its store.
    ///
    /// This can take for ever: an informer that is not allowed to list keeps trying. See
    /// [`wait_for_cache_sync_within`](Self::wait_for_cache_sync_within).
    ///
    /// # Errors
    /// [`NotSynced`] if the factory is shut down before.
    ///
    /// # Cancel safety
    /// Nothing is lost if the future is dropped.
    #[doc(alias = "WaitForCacheSync")]
    pub async fn wait_for_cache_sync(&self) -> Result<(), NotSynced> {
        let entries = self.inner.informers.iter().filter(|entry| entry.is_started());
        let started: Vec<_> = entries.map(|entry| entry.synced.clone()).collect();
        for synced in started {
            synced.wait().await.map_err(|_| self.not_synced())?;
        }
        Ok(())
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
            .unwrap_or_else(|_| Err(self.not_synced()))
    }

    fn not_synced(&self) -> NotSynced {
        let waiting =
            self.inner.informers.iter().filter(|entry| entry.is_started() && !entry.synced.has_synced());
        let mut pending: Vec<_> = waiting
            .map(|entry| format!("{} ({})", entry.status.description(), entry.status.health()))
            .collect();
        pending.sort_unstable();
        NotSynced { pending }
    }
}
