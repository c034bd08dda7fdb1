//! [`CacheController`]: runs a reflector into a queue, and a function over what comes out of it.
//!
//! client-go: `Controller` of tools/cache/controller.go. This is the machinery below a shared informer; alone it serves
//! whoever wants the changes of a resource without a store.

mod config;
mod process;

use std::fmt;
use std::panic::resume_unwind;
use std::time::Duration;

use informer_core::{Batch, Completion, DeltaFifo, Pending, ResourceVersion};
use kube::Resource;
use tokio::task::{JoinSet, yield_now};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::instrument::{Instrument, WithSubscriber};

pub use config::CacheControllerConfig;

use crate::source::{self, SourceStatus, SourceTask};
use config::ShouldResync;
use process::{Pause, Process};

/// Runs a [`Reflector`](informer_reflector::Reflector) into a queue, and a function over what comes out of it.
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

/// The queue, for as long as somebody takes out of it; afterwards nobody goes on waiting for what it would have brought.
struct OwnQueue<K: 'static>(DeltaFifo<K>);

impl<K: 'static> Drop for OwnQueue<K> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// When everything that is known is put into the queue again.
struct ResyncTimer {
    period: Duration,
    is_due: ShouldResync,
}

impl<K: Resource + Send + Sync + 'static> CacheController<K> {
    /// Returns a controller that calls `process` with the changes of one key at a time. It does nothing until it is
    /// [run](Self::run).
    ///
    /// What becomes of a key for which `process` fails is the [config's](CacheControllerConfig::retry_on_error) to say.
    #[must_use]
    pub fn new<E: fmt::Display>(
        config: CacheControllerConfig<K>,
        mut process: impl FnMut(&Pending<K>) -> Result<(), E> + Send + 'static,
    ) -> Self {
        let process = move |pending: &Pending<K>| process(pending).map_err(|error| error.to_string());
        let process = Process::each(Box::new(process), config.retry_on_error);
        Self::with_process(config, process)
    }

    /// Returns a controller that calls `process` with all that is in the queue at once: one step from one state of the
    /// server to the next ([`Batch::watermark`]).
    ///
    /// What can't be processed has to be put back by `process` itself ([`Batch::requeue`]).
    #[must_use]
    #[doc(alias = "ProcessBatch")]
    pub fn with_batches(
        config: CacheControllerConfig<K>,
        process: impl FnMut(&mut Batch<K>) + Send + 'static,
    ) -> Self {
        Self::with_process(config, Process::batches(Box::new(process)))
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

    /// Returns a controller for an informer, over a queue and what fills it.
    pub(crate) fn over(
        queue: DeltaFifo<K>,
        source: SourceTask<K>,
        process: impl FnMut(&mut Batch<K>) + Send + 'static,
    ) -> Self {
        Self { queue: OwnQueue(queue), source, process: Process::batches(Box::new(process)), resync: None }
    }

    /// Sets the resync timer, for an informer, which knows only when it starts what its handlers want.
    pub(crate) fn resync_every(
        mut self,
        period: Duration,
        is_due: impl FnMut() -> bool + Send + 'static,
    ) -> Self {
        self.resync = Some(ResyncTimer { period, is_due: Box::new(is_due) });
        self
    }

    /// Returns whether the first list has been processed to its end.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.queue.0.has_synced()
    }

    /// Returns the promise that the first list will have been processed to its end; it can be asked while the
    /// controller runs.
    #[must_use]
    pub fn synced(&self) -> Completion {
        self.queue.0.synced()
    }

    /// Returns how listing and watching fares; it can be asked while the controller runs.
    #[must_use]
    pub fn status(&self) -> SourceStatus {
        self.source.status()
    }

    /// Returns the resource version up to which everything has been queued. Once the controller runs, ask its
    /// [status](Self::status).
    #[must_use]
    #[doc(alias = "LastSyncResourceVersion")]
    pub fn last_sync_resource_version(&self) -> ResourceVersion {
        self.source.status().last_sync_resource_version()
    }

    /// Lists, watches and processes until `shutdown`; then stops the reflector, closes the queue, processes what is
    /// left in it, and ends (I12).
    ///
    /// The reflector runs in a task of its own, which belongs to this future. It is in the same span and has the same
    /// subscriber as this future when it is first polled, but none of its task-locals.
    ///
    /// # Panics
    /// If the process function panics: what it was at work on is not processed, and nothing after it. If the source does:
    /// what has been queued by then may not be processed.
    ///
    /// # Cancel safety
    /// Dropping the future stops everything: what was queued is not processed, and the reflector's task is aborted when it
    /// next waits for something.
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
            let mut pause = Pause::new();
            loop {
                // Nothing is queued behind what is taken out then.
                let is_last = source_ended.is_cancelled();
                let Some(mut batch) = queue.0.pop_batch().await else { break };
                let all_failed = process.run(&mut batch, status.description());
                let more = batch.wait_for_more();
                drop(batch);
                if !all_failed {
                    pause.reset();
                    // The handler that was woken last can run in this thread alone, where all that it is told of is in
                    // the caches; what comes next may be processed in another.
                    yield_now().await;
                    continue;
                }
                if is_last {
                    // I12: what fails to the last stays unprocessed, and keeps the controller from being synced.
                    break;
                }
                let is_open = !queue.0.is_closed();
                tokio::select! {
                    biased;
                    () = source_ended.cancelled() => {}
                    // A closed queue is no reason to wait, and would be none ever after.
                    () = more, if is_open => {}
                    () = sleep(pause.take()) => {}
                }
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

/// Gets changes into the queue until `shutdown`. That is done in a task of its own, which belongs to this future: the next
/// changes are decoded while these are processed. client-go has a goroutine for it.
async fn reflect<K: Resource + Send + Sync + 'static>(source: SourceTask<K>, shutdown: CancellationToken) {
    let mut task = JoinSet::new();
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
        // Counted from the last check: a handler that was due then is due again now, whatever the grain of the clock.
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
