//! Stops informers: one, the unused ones, or all.
//!
//! client-go stops all informers or none. Note: the store of a stopped informer can still be read
//! and no longer changes. So the informer leaves the factory, and the next request creates a new
//! one.

use std::sync::Weak;
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{Inner, SharedInformerFactory};
use crate::SharedIndexInformer;

impl SharedInformerFactory {
    /// Stops one informer, waits until nothing of it is left running, and takes it out of the
    /// factory; the others go on. Its store can still be read, and stays as it is. The next request
    /// creates a new informer, to be started by the next [`start`](Self::start).
    ///
    /// Returns `false` for an informer of another factory, and for one that has been removed
    /// before.
    ///
    /// ```no_run
    /// # async fn run(factory: &informer_factory::SharedInformerFactory) {
    /// let secrets = factory.core().v1().secrets();
    /// factory.start();
    /// // When it is clear that they are not needed any more:
    /// factory.stop(&secrets).await;
    /// # }
    /// ```
    ///
    /// # Cancel safety
    /// The informer stops even if the future is dropped.
    pub async fn stop<K>(&self, informer: &SharedIndexInformer<K>) -> bool {
        let informer = informer.cast();
        let informers = &self.inner.informers;
        let key = informers.iter().find(|entry| entry.is(&informer)).map(|entry| entry.key().clone());
        let removed = key.and_then(|key| informers.remove_if(&key, |_, entry| entry.is(&informer)));
        let Some((_, entry)) = removed else { return false };
        // I8: handlers may go with these, and no lock is held here.
        drop((entry.stop(), entry));
        informer.stopped().await;
        true
    }

    /// Stops all informers, those included that have not been started, and waits until nothing of
    /// them is left running. Their stores can still be read.
    ///
    /// # Cancel safety
    /// The informers stop even if the future is dropped.
    pub async fn shutdown(&self) {
        {
            let _starting = self.inner.starting.lock();
            self.inner.shutdown.cancel();
        }
        // I12: this ends waits for informers that will never be started.
        let never_to_run: Vec<_> = self.inner.informers.iter().map(|entry| entry.stop()).collect();
        drop(never_to_run);
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
    }
}

impl Inner {
    /// Stops the informers that have been unused for this time.
    fn stop_idle(&self, period: Duration) {
        let is_idle = |entry: &super::Entry| entry.is_idle_for(period);
        let idle: Vec<_> =
            self.informers.iter().filter(|entry| is_idle(entry)).map(|entry| entry.key().clone()).collect();
        for key in idle {
            // A request before this makes the informer used; a later one creates another.
            if let Some((_, entry)) = self.informers.remove_if(&key, |_, entry| is_idle(entry)) {
                let resource = entry.report().description;
                tracing::info!(%resource, unused_for = ?period, "informer stopped because it was unused");
                drop((entry.stop(), entry));
            }
        }
    }
}

/// Checks for unused informers until `shutdown` or the end of the factory. It does not keep the
/// factory alive.
pub(super) async fn stop_idle_informers(factory: Weak<Inner>, period: Duration, shutdown: CancellationToken) {
    let watch = async {
        loop {
            sleep(period / 4).await;
            let Some(factory) = factory.upgrade() else { return };
            factory.stop_idle(period);
        }
    };
    shutdown.run_until_cancelled(watch).await;
}
