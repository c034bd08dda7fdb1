//! [`Controller`]: runs a reflector into a queue, and a function over what comes out of it.
//!
//! client-go: `Controller` of tools/cache/controller.go. This is the machinery below a shared informer; alone it serves
//! whoever wants the changes of a resource without a store.

use std::fmt;
use std::time::Duration;

use informer_core::{Batch, DeltaFifo, ResourceVersion};
use informer_reflector::Reflector;
use kube::Resource;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

type Process<K> = Box<dyn FnMut(&Batch<K>) + Send>;

/// Runs a [`Reflector`], and a function over each batch that comes out of its queue.
pub struct Controller<K: 'static> {
    queue: DeltaFifo<K>,
    reflector: Reflector<K>,
    process: Process<K>,
    resync: Option<ResyncTimer>,
}

/// When everything that is known is put into the queue again.
struct ResyncTimer {
    period: Duration,
    is_due: Box<dyn FnMut() -> bool + Send>,
}

impl<K: Resource + Send + Sync + 'static> Controller<K> {
    /// Returns a controller that does nothing until it is [run](Self::run). `reflector` has to fill `queue`.
    #[must_use]
    pub fn new(
        queue: DeltaFifo<K>,
        reflector: Reflector<K>,
        process: impl FnMut(&Batch<K>) + Send + 'static,
    ) -> Self {
        Self { queue, reflector, process: Box::new(process), resync: None }
    }

    /// Asks `is_due` each `period` whether everything that the queue knows is to be queued again.
    #[must_use]
    #[doc(alias = "FullResyncPeriod")]
    #[doc(alias = "ShouldResync")]
    pub fn resync_every(mut self, period: Duration, is_due: impl FnMut() -> bool + Send + 'static) -> Self {
        self.resync = Some(ResyncTimer { period, is_due: Box::new(is_due) });
        self
    }

    /// Says whether the first list has been processed to its end.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.queue.has_synced()
    }

    /// Returns the resource version up to which everything has been queued.
    #[must_use]
    #[doc(alias = "LastSyncResourceVersion")]
    pub fn last_sync_resource_version(&self) -> ResourceVersion {
        self.reflector.status().last_sync_resource_version()
    }

    /// Lists, watches and processes until `shutdown`; then stops the reflector, closes the queue, processes what is
    /// left in it, and ends (I12).
    ///
    /// # Cancel safety
    /// Dropping the future stops everything at once; what was queued is not processed.
    pub async fn run(self, shutdown: CancellationToken) {
        let Self { queue, reflector, mut process, resync } = self;
        let _given_up = GiveUp(queue.clone());
        let reflect = async {
            reflector.run(shutdown.clone()).await;
            queue.close();
        };
        let consume = async {
            while let Some(batch) = queue.pop_batch().await {
                process(&batch);
            }
        };
        let tick = async {
            if let Some(timer) = resync {
                shutdown.run_until_cancelled(run_timer(timer, &queue)).await;
            }
        };
        tokio::join!(reflect, consume, tick);
    }
}

/// Whatever way the run ends, nobody goes on waiting for what it would have brought.
struct GiveUp<K: 'static>(DeltaFifo<K>);

impl<K: 'static> Drop for GiveUp<K> {
    fn drop(&mut self) {
        self.0.close();
        self.0.synced().give_up();
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

impl<K> fmt::Debug for Controller<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller")
            .field("queue", &self.queue)
            .field("reflector", &self.reflector)
            .field("resync", &self.resync.as_ref().map(|timer| timer.period))
            .finish_non_exhaustive()
    }
}
