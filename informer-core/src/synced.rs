//! [`Synced`]: a promise that is kept once, and can be asked for or awaited by many.

use tokio_util::sync::CancellationToken;

/// Tells whether something has happened that happens only once: a first list is in the store, a handler has seen its
/// initial objects.
///
/// Clones share one state. Nothing is polled: waiters are woken when it happens.
#[doc(alias = "DoneChecker")]
#[doc(alias = "InformerSynced")]
#[derive(Debug, Clone, Default)]
pub struct Synced {
    // A cancellation token is exactly a latch that can be awaited.
    latch: CancellationToken,
}

impl Synced {
    /// Returns a promise that is not kept yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps the promise and wakes all who wait; later calls change nothing.
    pub fn set(&self) {
        self.latch.cancel();
    }

    /// Says whether the promise has been kept.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.latch.is_cancelled()
    }

    /// Waits until the promise is kept.
    ///
    /// # Cancel safety
    /// Nothing is lost if the future is dropped.
    pub async fn wait(&self) {
        self.latch.cancelled().await;
    }
}
