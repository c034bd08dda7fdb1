//! [`InformerTask`]: the work of an informer. The program or a factory runs it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use informer_core::{AnyObject, SharedProcessor};
use tokio_util::sync::CancellationToken;

use super::state::StateKeeper;
use super::verify::Verifier;
use crate::cache_controller::CacheController;

/// The work of a [`SharedIndexInformer`](crate::SharedIndexInformer): each informer has one task,
/// which can be run once.
///
/// If the task is dropped without being run, the informer is stopped.
#[must_use = "an informer stays empty until its task is run"]
pub struct InformerTask {
    controller: CacheController<AnyObject>,
    handlers: Handlers,
    verifier: Arc<Verifier>,
    verify_period: Option<Duration>,
    state: StateKeeper,
}

/// Stops the informer's handlers when dropped.
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

    /// Updates the informer's store and calls its handlers until `shutdown` is cancelled. Then
    /// stops the reflector, the queue, the store and the handlers, in this order, and returns. The
    /// store can still be read.
    ///
    /// The reflector and the handlers run in separate tokio tasks, which end with this future.
    ///
    /// # Cancel safety
    /// Dropping the future stops the informer. Events that handlers have not received are lost, and
    /// the tasks of the reflector and the handlers are aborted at their next await.
    pub async fn run(self, shutdown: CancellationToken) {
        let Self { mut controller, handlers, verifier, verify_period, state } = self;
        state.running();
        let processor = &handlers.0;
        if let Some(period) = processor.freeze_check_period() {
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
