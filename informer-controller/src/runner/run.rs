//! [`ControllerRunner::run`]: waits for the caches, runs the workers, and shuts down.

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use informer_core::HandlerRegistration;
use informer_workqueue::Workqueue;
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::overdue::Overdue;
use super::parking::ParkingLot;
use super::readiness::{ReadCache, Readiness};
use super::worker::Worker;
use super::{ControllerRunner, ReconcileRequest, Reconciled};
use informer_factory::{CacheSync, NotSynced, wait_for_cache_sync};

impl<T: Hash + Eq + Clone + fmt::Debug + Send + Sync + 'static> ControllerRunner<T> {
    /// Waits until all informers are synced, and calls `reconcile` with keys until `shutdown`.
    /// Running calls can then complete within the [drain timeout](Self::drain_timeout).
    ///
    /// After an error, a panic or a timeout of `reconcile`, the key is retried when the queue's
    /// rate limiter allows. The text of the error is logged, so it must not contain the content of
    /// objects.
    ///
    /// At shutdown, informers queue nothing more, and running calls can complete. Queued keys, and
    /// parked keys (which wait for a cache), are not processed. Then the queue is shut down. If
    /// other code shuts the queue down, workers process the queued keys, but not the parked ones,
    /// and this future ends.
    ///
    /// Workers are tasks that end with this future.
    ///
    /// # Errors
    /// [`NotSynced`] with the caches and handlers that are not synced, if the
    /// [sync timeout](Self::sync_timeout) is over or one of them stops before it is synced.
    ///
    /// # Panics
    /// If the queue's rate limiter or metrics, the `Debug` of a key, or the function `namespace_of`
    /// of [`with_keys`](Self::with_keys) panics.
    ///
    /// # Cancel safety
    /// Dropping the future stops the controller, and drops running calls at the await where they
    /// wait.
    #[doc(alias = "Reconciler")]
    #[doc(alias = "Start")]
    pub async fn run<F, R, E>(self, reconcile: F, shutdown: CancellationToken) -> Result<(), NotSynced>
    where
        F: Fn(ReconcileRequest<T>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Reconciled, E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>> + 'static,
    {
        // Shuts the queue down when this function returns, because the workers then take no further
        // keys.
        let queue = ShutDown(self.queue.clone());
        let registrations: Vec<_> = self.feeds.into_iter().map(|add_handler| add_handler()).collect();
        let synced = synced(&self.caches, &registrations, self.sync_timeout);
        match shutdown.run_until_cancelled(synced).await {
            Some(synced) => synced?,
            None => return Ok(()),
        }
        let overdue = Overdue::new(self.queue.name(), self.sync_timeout);
        let readiness = Arc::new(Readiness::new(self.tracker, self.caches, self.namespace_of, overdue));
        let (park, arrivals) = unbounded_channel();
        let lot = ParkingLot {
            queue: self.queue.clone(),
            readiness: Arc::clone(&readiness),
            monitor: self.monitor.clone(),
            arrivals,
            parked: HashMap::new(),
        };
        let mut workers = JoinSet::new();
        let reconcile = Arc::new(reconcile);
        self.monitor.expect_workers(self.workers.get());
        for number in 0..self.workers.get() {
            let worker = Worker {
                number,
                queue: self.queue.clone(),
                readiness: Arc::clone(&readiness),
                park: park.clone(),
                limit: self.reconcile_timeout,
                monitor: self.monitor.clone(),
                reconcile: Arc::clone(&reconcile),
            };
            workers.spawn(worker.run(shutdown.clone()));
        }
        tokio::select! {
            biased;
            () = shutdown.cancelled() => {}
            () = ended(&mut workers) => {}
            () = lot.run() => {}
        }
        // I12: the handlers stop first, then running calls end, then the queue shuts down.
        drop(registrations);
        if timeout(self.drain_timeout, ended(&mut workers)).await.is_err() {
            tracing::warn!(
                controller = queue.0.name(),
                calls = workers.len(),
                drain_timeout = ?self.drain_timeout,
                "reconcile calls did not end within the drain timeout and are dropped"
            );
            workers.shutdown().await;
        }
        Ok(())
    }
}

/// Waits until the caches are synced and the handlers have queued the keys of existing objects.
async fn synced(
    caches: &[ReadCache],
    handlers: &[HandlerRegistration],
    limit: Duration,
) -> Result<(), NotSynced> {
    let handlers = handlers.iter().map(|handler| handler as &dyn CacheSync);
    let all: Vec<_> = caches.iter().map(|read| read.cache.as_ref()).chain(handlers).collect();
    wait_for_cache_sync(&all, limit).await
}

/// Waits until all workers have ended. Panics if a worker has panicked.
async fn ended(workers: &mut JoinSet<()>) {
    while let Some(joined) = workers.join_next().await {
        if let Err(error) = joined
            && let Ok(panic) = error.try_into_panic()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

struct ShutDown<T: Hash + Eq + Clone + Send + 'static>(Workqueue<T>);

impl<T: Hash + Eq + Clone + Send + 'static> Drop for ShutDown<T> {
    fn drop(&mut self) {
        self.0.shut_down();
    }
}
