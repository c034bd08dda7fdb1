//! The life of a controller: it waits for its caches, works, and ends.

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
    /// Waits until all informers are synced, and calls `reconcile` with one key after the other until `shutdown`; then ends
    /// what is under way, within the [drain timeout](Self::drain_timeout).
    ///
    /// An error of `reconcile`, a panic and a timeout are logged, and the key comes again when the queue's rate limiter
    /// says so. Errors must not contain what is in an object.
    ///
    /// At shutdown informers feed it no more, keys that are queued or parked stay undone, and the calls under way go on to
    /// their end. The queue is shut down when all this is over. If somebody else shuts the queue down, workers end what is
    /// queued, but not what is parked, and this future ends.
    ///
    /// Workers are tasks that belong to this future.
    ///
    /// # Errors
    /// [`NotSynced`] with the informers that are not, and why, if the [sync timeout](Self::sync_timeout) is over or one of
    /// them has stopped.
    ///
    /// # Panics
    /// If the queue's rate limiter or metrics panic.
    ///
    /// # Cancel safety
    /// Dropping the future stops everything: calls are dropped where they wait.
    #[doc(alias = "Reconciler")]
    #[doc(alias = "Start")]
    pub async fn run<F, R, E>(self, reconcile: F, shutdown: CancellationToken) -> Result<(), NotSynced>
    where
        F: Fn(ReconcileRequest<T>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Reconciled, E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>> + 'static,
    {
        // However this ends, nobody will work on what is added.
        let queue = ShutDown(self.queue.clone());
        let registrations: Vec<_> = self.feeds.into_iter().map(|add_handler| add_handler()).collect();
        let synced = synced(&self.caches, &registrations, self.sync_timeout);
        match shutdown.run_until_cancelled(synced).await {
            Some(synced) => synced?,
            None => return Ok(()),
        }
        let overdue = Overdue::new(self.queue.name(), self.sync_timeout);
        let readiness = Readiness::new(self.tracker, self.caches, self.namespace_of, overdue);
        let (park, arrivals) = unbounded_channel();
        let lot = ParkingLot {
            queue: self.queue.clone(),
            readiness: readiness.clone(),
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
                readiness: readiness.clone(),
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
        // I12: nothing comes in any more, then what is under way ends, then the queue.
        drop(registrations);
        if timeout(self.drain_timeout, ended(&mut workers)).await.is_err() {
            tracing::warn!(
                controller = queue.0.name(),
                calls = workers.len(),
                drain_timeout = ?self.drain_timeout,
                "calls did not end in time and are dropped"
            );
            workers.shutdown().await;
        }
        Ok(())
    }
}

/// Waits until the caches have what existed at the start, and the queue the keys of that.
async fn synced(
    caches: &[ReadCache],
    handlers: &[HandlerRegistration],
    limit: Duration,
) -> Result<(), NotSynced> {
    let handlers = handlers.iter().map(|handler| handler as &dyn CacheSync);
    let all: Vec<_> = caches.iter().map(|read| read.cache.as_ref()).chain(handlers).collect();
    wait_for_cache_sync(&all, limit).await
}

/// Waits until all workers have ended.
async fn ended(workers: &mut JoinSet<()>) {
    while let Some(joined) = workers.join_next().await {
        if let Err(error) = joined
            && let Ok(panic) = error.try_into_panic()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

/// Shuts a queue down.
struct ShutDown<T: Hash + Eq + Clone + Send + 'static>(Workqueue<T>);

impl<T: Hash + Eq + Clone + Send + 'static> Drop for ShutDown<T> {
    fn drop(&mut self) {
        self.0.shut_down();
    }
}
