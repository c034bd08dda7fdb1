//! [`CacheController`]: runs a reflector that fills a queue, and a function that processes the
//! queue.
//!
//! client-go: `Controller` of tools/cache/controller.go. Shared informers are built on
//! `CacheController`. A `CacheController` is also useful alone, to process the changes of a
//! resource without a store.

mod config;
mod process;

use std::fmt;
use std::panic::resume_unwind;
use std::time::Duration;

use informer_core::{Batch, Completion, DeltaFifo, Pending, ResourceVersion};
use tokio::task::{JoinSet, yield_now};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::instrument::{Instrument, WithSubscriber};

pub use config::CacheControllerConfig;

use crate::source::{self, SourceStatus, SourceTask};
use config::ShouldResync;
use process::Process;

/// The wait after the first batch in which all items failed. After each further such batch, the
/// wait is twice as long as the one before, up to [`MAX_RETRY_WAIT`].
const MIN_RETRY_WAIT: Duration = Duration::from_millis(5);

const MAX_RETRY_WAIT: Duration = Duration::from_secs(1);

/// Runs a [`Reflector`](informer_reflector::Reflector) that fills a queue, and a function that
/// processes the queue.
///
/// ```no_run
/// # async fn run(client: kube::Client) {
/// use std::sync::Arc;
/// use informer_factory::cache_controller::{CacheController, CacheControllerConfig};
/// use informer_factory::informer_reflector::KubeListWatch;
/// use k8s_openapi::api::core::v1::Event;
///
/// let events = KubeListWatch::<Event>::all(client);
/// let controller = CacheController::new(CacheControllerConfig::new(Arc::new(events)), |pending| {
///     println!("{}: {} changes", pending.key, pending.deltas.len());
///     Ok::<_, std::convert::Infallible>(())
/// });
/// controller.run(tokio_util::sync::CancellationToken::new()).await;
/// # }
/// ```
pub struct CacheController<K: 'static> {
    queue: OwnQueue<K>,
    source: SourceTask<K>,
    process: Process<K>,
    resync: Option<ResyncTimer>,
}

/// The controller's queue. Dropping this value ends all waits for the initial list, because nothing
/// processes the queue any more.
struct OwnQueue<K: 'static>(DeltaFifo<K>);

impl<K: 'static> Drop for OwnQueue<K> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

struct ResyncTimer {
    period: Duration,
    is_due: ShouldResync,
}

impl<K: Send + Sync + 'static> CacheController<K> {
    /// Returns a controller that calls `process` with the changes of one key at a time. The
    /// controller does nothing until it is [run](Self::run).
    ///
    /// [`CacheControllerConfig::retry_on_error`] determines whether failed keys are retried.
    #[must_use]
    pub fn new<E: fmt::Display>(
        config: CacheControllerConfig<K>,
        mut process: impl FnMut(&Pending<K>) -> Result<(), E> + Send + 'static,
    ) -> Self {
        let process = move |pending: &Pending<K>| process(pending).map_err(|error| error.to_string());
        let process = Process::each(process, config.retry_on_error);
        Self::with_process(config, process)
    }

    /// Returns a controller that calls `process` with batches. A batch contains all changes that
    /// are in the queue at that time.
    ///
    /// `process` must requeue failed items itself ([`Batch::requeue`]).
    #[must_use]
    #[doc(alias = "ProcessBatch")]
    pub fn with_batches(
        config: CacheControllerConfig<K>,
        process: impl FnMut(&mut Batch<K>) + Send + 'static,
    ) -> Self {
        Self::with_process(config, Process::batches(process))
    }

    fn with_process(config: CacheControllerConfig<K>, process: Process<K>) -> Self {
        let CacheControllerConfig {
            lister_watcher,
            queue,
            reflector,
            ingest,
            resync_period,
            should_resync,
            retry_on_error: _,
        } = config;
        let (_, source) = source::whole(lister_watcher, &queue, (reflector, ingest));
        let is_due = should_resync.unwrap_or_else(|| Box::new(|| true));
        let resync = resync_period.map(|period| ResyncTimer { period, is_due });
        Self { queue: OwnQueue(queue), source, process, resync }
    }

    /// Returns a controller that runs `source` and processes `queue` in batches. The caller must
    /// create `source` so that it writes to `queue`.
    pub(crate) fn over(
        queue: DeltaFifo<K>,
        source: SourceTask<K>,
        process: impl FnMut(&mut Batch<K>) + Send + 'static,
    ) -> Self {
        Self { queue: OwnQueue(queue), source, process: Process::batches(process), resync: None }
    }

    /// Sets the resync timer: after each `period`, the controller resyncs if `is_due` returns
    /// `true`.
    pub(crate) fn resync_every(
        mut self,
        period: Duration,
        is_due: impl FnMut() -> bool + Send + 'static,
    ) -> Self {
        self.resync = Some(ResyncTimer { period, is_due: Box::new(is_due) });
        self
    }

    /// Returns whether the initial list has been processed.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.queue.0.has_synced()
    }

    /// Returns a [`Completion`] that is set when the initial list has been processed. Call this
    /// method before [`run`](Self::run), which consumes the controller.
    #[must_use]
    pub fn synced(&self) -> Completion {
        self.queue.0.synced()
    }

    /// Returns the status of listing and watching, which is updated while the controller runs. Call
    /// this method before [`run`](Self::run), which consumes the controller.
    #[must_use]
    pub fn status(&self) -> SourceStatus {
        self.source.status()
    }

    /// Returns the resource version up to which all changes have been queued. [`run`](Self::run)
    /// consumes the controller; to read the version while it runs, call
    /// [`SourceStatus::last_sync_resource_version`] on its [status](Self::status).
    #[must_use]
    #[doc(alias = "LastSyncResourceVersion")]
    pub fn last_sync_resource_version(&self) -> ResourceVersion {
        self.source.status().last_sync_resource_version()
    }

    /// Lists, watches and processes changes until `shutdown`. Then stops the reflector, processes
    /// the rest of the queue, and returns.
    ///
    /// The reflector runs in its own task, which ends with this future. The task has the tracing
    /// span and subscriber that are current when this future is first polled, but not the
    /// task-local values.
    ///
    /// # Panics
    /// Panics if the process function panics; the remaining items are then not processed. Also
    /// panics if the source or [`should_resync`](CacheControllerConfig::should_resync) panics;
    /// changes that are in the queue at that time may stay unprocessed.
    ///
    /// # Cancel safety
    /// Dropping the future stops the work: queued changes are not processed, and the reflector's
    /// task is aborted at its next await.
    pub async fn run(self, shutdown: CancellationToken) {
        let Self { queue, source, mut process, resync } = self;
        let status = source.status();
        let source_ended = CancellationToken::new();
        let reflect = async {
            reflect(source, shutdown.clone()).await;
            source_ended.cancel();
            queue.0.close();
        };
        let consume = async {
            let mut retry_wait = MIN_RETRY_WAIT;
            loop {
                // If the source has ended, the next batch is the last one, unless a part fails.
                let is_last = source_ended.is_cancelled();
                let Some(mut batch) = queue.0.pop_batch().await else { break };
                let all_failed = process.run(&mut batch, status.description());
                let more = batch.wait_for_more();
                drop(batch);
                if !all_failed {
                    retry_wait = MIN_RETRY_WAIT;
                    // After this yield, the handler that was woken last usually runs on this
                    // thread, while the objects are still in the CPU's caches.
                    yield_now().await;
                    continue;
                }
                if is_last {
                    // I12: a stopping controller ends when all items of a batch have failed.
                    break;
                }
                let is_open = !queue.0.is_closed();
                tokio::select! {
                    biased;
                    () = source_ended.cancelled() => {}
                    // If the queue is closed, `more` is always ready and would end the pause.
                    () = more, if is_open => {}
                    () = sleep(retry_wait) => {}
                }
                retry_wait = (retry_wait * 2).min(MAX_RETRY_WAIT);
            }
        };
        let tick = async {
            if let Some(timer) = resync {
                shutdown.run_until_cancelled(run_timer(timer, &queue.0)).await;
            }
        };
        tokio::join!(reflect, consume, tick);
    }
}

/// Runs the source in a separate task. Dropping this future aborts the task.
async fn reflect<K: Send + Sync + 'static>(source: SourceTask<K>, shutdown: CancellationToken) {
    let mut task = JoinSet::new();
    // As in client-go, changes are decoded while the controller processes earlier ones.
    task.spawn(source.run(shutdown).in_current_span().with_current_subscriber());
    let ended = task.join_next().await;
    if let Some(Err(error)) = ended
        && error.is_panic()
    {
        resume_unwind(error.into_panic());
    }
}

async fn run_timer<K: 'static>(mut timer: ResyncTimer, queue: &DeltaFifo<K>) {
    loop {
        // The period counts from the end of the last check, so that a handler with this period
        // that was due at that check is due again at the next one.
        sleep(timer.period).await;
        if (timer.is_due)() {
            queue.resync();
        }
    }
}

impl<K> fmt::Debug for CacheController<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheController")
            .field("queue", &self.queue.0)
            .field("source", &self.source)
            .field("resync", &self.resync.as_ref().map(|timer| timer.period))
            .finish_non_exhaustive()
    }
}
