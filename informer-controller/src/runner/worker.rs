//! [`Worker`]: takes keys from the queue, and reconciles, parks or drops each key.

use std::error::Error;
use std::fmt;
use std::hash::Hash;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use informer_core::panic_message;
use informer_workqueue::{Item, Priority, Workqueue};
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::readiness::{self, Readiness};
use super::stats::CallOutcome;
use super::{ReconcileRequest, Reconciled, RunnerMonitor};

pub(super) struct Worker<T, F> {
    pub(super) number: usize,
    pub(super) queue: Workqueue<T>,
    pub(super) readiness: Arc<Readiness<T>>,
    /// Sends keys to the `ParkingLot`, which holds them until the caches are ready.
    pub(super) park: UnboundedSender<(T, Priority)>,
    pub(super) limit: Option<Duration>,
    pub(super) monitor: RunnerMonitor,
    pub(super) reconcile: Arc<F>,
}

impl<T, F, R, E> Worker<T, F>
where
    T: Hash + Eq + Clone + fmt::Debug + Send + Sync + 'static,
    F: Fn(ReconcileRequest<T>) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Reconciled, E>> + Send,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    /// Takes keys from the queue, and reconciles, parks or drops each key. Returns when the queue
    /// is shut down and empty.
    ///
    /// If `stop` is cancelled, returns after the running reconcile call.
    pub(super) async fn run(self, stop: CancellationToken) {
        // The inner `None` is the end of the queue.
        while let Some(Some(item)) = stop.run_until_cancelled(self.queue.get()).await {
            // If `stop` and a key are ready at the same time, `stop` takes precedence.
            if stop.is_cancelled() {
                item.release();
                return;
            }
            // The view is created before the action is chosen, so that it shows all changes after
            // this choice.
            let view = self.readiness.view(item.key());
            match self.readiness.action(item.key()) {
                readiness::Action::Reconcile => {
                    let (key, failures) = (item.key().clone(), item.num_requeues());
                    let writes = self.readiness.writes(&key);
                    self.work(item, ReconcileRequest { key, failures, writes, view }).await;
                }
                readiness::Action::Park => {
                    // The key is sent before the item is released, so that it is never lost. If the
                    // runner has stopped, sending fails, which is harmless.
                    _ = self.park.send((item.key().clone(), item.priority()));
                    item.release();
                }
                readiness::Action::Drop => self.drop_released(item),
            }
        }
    }

    fn drop_released(&self, item: Item<T>) {
        tracing::debug!(
            controller = self.queue.name(),
            key = ?item.key(),
            "key dropped and not reconciled: its namespace is no longer watched, or an informer has stopped"
        );
        self.monitor.count_dropped();
        self.monitor.succeed(item.key());
        item.done();
    }

    async fn work(&self, item: Item<T>, request: ReconcileRequest<T>) {
        let call = self.monitor.begin(self.number);
        let outcome = self.call(request).await;
        call.end(&outcome);
        if matches!(outcome, CallOutcome::Reconciled(_)) {
            self.monitor.succeed(item.key());
        }
        let failure = match outcome {
            CallOutcome::Reconciled(Reconciled::Done) => return item.done(),
            CallOutcome::Reconciled(Reconciled::RequeueAfter(delay)) => return item.done_after(delay),
            CallOutcome::Failed(error) => format!("failed: {error}"),
            CallOutcome::TimedOut(limit) => format!("timed out after {limit:?}"),
            CallOutcome::Panicked(message) => format!("panicked: {message}"),
        };
        let key = item.key().clone();
        // The log line includes `waits_for`, the reason for a longer wait: a key with pending
        // writes is parked after the retry delay.
        let waits_for = self.readiness.writes(&key).wait_reason();
        let failures = item.num_requeues() + 1;
        // Recorded before the retry. After the retry, another worker can succeed with the key, and
        // must then find this record to remove it.
        self.monitor.fail(&key, &failure, failures);
        let retry_in = item.retry();
        self.monitor.retry(&key, retry_in);
        let controller = self.queue.name();
        tracing::warn!(controller, ?key, failure, ?retry_in, waits_for, "reconcile call failed");
    }

    async fn call(&self, request: ReconcileRequest<T>) -> CallOutcome {
        // The block also creates and drops the future and formats the error, so that panics of
        // these steps are caught.
        let call = async {
            let reconcile = (self.reconcile)(request);
            let result = match self.limit {
                Some(limit) => match timeout(limit, reconcile).await {
                    Ok(result) => result,
                    Err(_) => return CallOutcome::TimedOut(limit),
                },
                None => reconcile.await,
            };
            result.map_or_else(
                |error| CallOutcome::Failed(chain(error.into().as_ref())),
                CallOutcome::Reconciled,
            )
        };
        let caught = AssertUnwindSafe(call).catch_unwind().await;
        caught.unwrap_or_else(|panic| CallOutcome::Panicked(panic_message(panic)))
    }
}

/// Formats an error with its causes. Omits a cause whose text is already in the result.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}
