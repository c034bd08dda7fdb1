//! Stops informers: one, the unused ones, or all.
//!
//! client-go's factory has no method that stops one informer. A single informer that is stopped
//! leaves the factory, because its store no longer changes. A shutdown of the factory keeps the
//! informers.

use std::sync::Weak;
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{Inner, SharedInformerFactory};
use crate::SharedIndexInformer;

impl SharedInformerFactory {
    /// Stops one informer, removes it from the factory, and waits until its tasks have ended. Other
    /// informers continue. The store of the stopped informer can still be read, but no longer
    /// changes. If the program requests this informer from the factory again, as with
    /// `factory.core().v1().secrets()`, the factory creates a new informer, which starts at the
    /// next [`start`](Self::start). With
    /// [`stop_idle_after`](crate::FactoryBuilder::stop_idle_after), it starts at once if `start`
    /// was called before.
    ///
    /// Returns whether this factory had the informer: `false` if the informer belongs to another
    /// factory or was removed before.
    ///
    /// ```no_run
    /// # async fn run(factory: &informer_factory::SharedInformerFactory) {
    /// let secrets = factory.core().v1().secrets();
    /// factory.start();
    /// // When the program no longer needs the secrets:
    /// factory.stop(&secrets).await;
    /// # }
    /// ```
    ///
    /// # Cancel safety
    /// The informer stops even if the future is dropped after its first poll.
    pub async fn stop<K>(&self, informer: &SharedIndexInformer<K>) -> bool {
        let informer = informer.cast();
        let informers = &self.inner.informers;
        let key = informers.iter().find(|entry| entry.is_for(&informer)).map(|entry| entry.key().clone());
        let removed = key.and_then(|key| informers.remove_if(&key, |_, entry| entry.is_for(&informer)));
        let Some((_, entry)) = removed else { return false };
        // I8: dropping the task and the entry can drop handlers, so no lock is held here.
        drop((entry.stop(), entry));
        informer.stopped().await;
        true
    }

    /// Stops all informers, including those that were not started, and waits until their tasks have
    /// ended. Their stores can still be read.
    ///
    /// # Cancel safety
    /// The informers stop even if the future is dropped after its first poll.
    pub async fn shutdown(&self) {
        self.inner.shutdown.cancel();
        // A `start` that has not seen the cancelled token has the lock until its tasks are counted.
        drop(self.inner.starting.lock());
        // I12: dropping the tasks that were not started ends all waits for their informers.
        let never_to_run: Vec<_> = self.inner.informers.iter().map(|entry| entry.stop()).collect();
        drop(never_to_run);
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
    }
}

impl Inner {
    fn stop_idle(&self, period: Duration) {
        let is_idle = |entry: &super::Entry| entry.observe_idleness(period);
        let idle: Vec<_> =
            self.informers.iter().filter(|entry| is_idle(entry)).map(|entry| entry.key().clone()).collect();
        for key in idle {
            // The check is repeated while the entry is locked, because the informer can have been
            // requested since the first check.
            if let Some((_, entry)) = self.informers.remove_if(&key, |_, entry| is_idle(entry)) {
                let resource = entry.description();
                tracing::info!(%resource, unused_for = ?period, "informer stopped because it was unused");
                drop((entry.stop(), entry));
            }
        }
    }
}

/// Stops each informer that the program has not used for `period`. Runs until `shutdown`, or until
/// the factory is dropped.
pub(super) async fn stop_idle_informers(factory: Weak<Inner>, period: Duration, shutdown: CancellationToken) {
    let checks = async {
        loop {
            sleep(period / 4).await;
            let Some(factory) = factory.upgrade() else { return };
            factory.stop_idle(period);
        }
    };
    shutdown.run_until_cancelled(checks).await;
}
