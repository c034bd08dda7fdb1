//! [`InformerTask`]: the work of an informer; the program or a factory runs it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use informer_core::{AnyObject, SharedProcessor};
use tokio_util::sync::CancellationToken;

use super::state::StateKeeper;
use super::verify::Verifier;
use crate::cache_controller::CacheController;

/// The work of a [`SharedIndexInformer`](crate::SharedIndexInformer). There is one per informer, so
/// it runs once.
///
/// If it is dropped instead, the informer has stopped before it began.
#[must_use = "an informer stays empty until its task is run"]
pub struct InformerTask {
    controller: CacheController<AnyObject>,
    handlers: Handlers,
    verifier: Arc<Verifier>,
    verify_period: Option<Duration>,
    state: StateKeeper,
}

/// The handlers. Dropping it stops them.
struct Handlers(SharedProcessor<AnyObject>);

impl Drop for Handlers {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl InformerTask {
    pub(super) fn new(
        controller: CacheController<AnyObject>,
        processor: SharedProcessor<AnyObject>,
        verifier: Arc<Verifier>,
        verify_period: Option<Duration>,
        state: StateKeeper,
    ) -> Self {
        Self { controller, handlers: Handlers(processor), verifier, verify_period, state }
    }

    /// Keeps the informer's store current and its handlers informed until `shutdown`; then stops
    /// the reflector, the queue, the store and the processor, in this order, and ends (I12). The
    /// store can still be read.
    ///
    /// The reflector and the handlers run in tasks of their own, which belong to this future.
    ///
    /// # Cancel safety
    /// Dropping the future stops everything; events that wait for handlers are lost. Those tasks
    /// are aborted when they next wait for something.
    pub async fn run(self, shutdown: CancellationToken) {
        let Self { mut controller, handlers, verifier, verify_period, state } = self;
        state.running();
        let processor = &handlers.0;
        if let Some(period) = processor.fix_check_period() {
            let due = processor.clone();
            controller = controller.resync_every(period, move || due.check_resync());
        }
        let stop_handlers = CancellationToken::new();
        let verify = async {
            if let Some(period) = verify_period {
                shutdown.run_until_cancelled(verifier.verify_every(period)).await;
            }
        };
        let work = async {
            controller.run(shutdown.clone()).await;
            stop_handlers.cancel();
        };
        tokio::join!(work, processor.run(stop_handlers.clone()), verify);
        drop(handlers);
        state.shut_down();
    }
}

impl fmt::Debug for InformerTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InformerTask")
            .field("controller", &self.controller)
            .field("processor", &self.handlers.0)
            .finish_non_exhaustive()
    }
}
