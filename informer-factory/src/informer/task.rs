//! [`InformerTask`]: the work of an informer, for whoever runs it.

use informer_core::SharedProcessor;
use kube::Resource;
use tokio_util::sync::CancellationToken;

use crate::Controller;

/// The work of a [`SharedIndexInformer`](crate::SharedIndexInformer). There is one per informer, so it runs once.
#[derive(Debug)]
#[must_use = "an informer stays empty until its task is run"]
pub struct InformerTask<K: 'static> {
    pub(super) controller: Controller<K>,
    pub(super) processor: SharedProcessor<K>,
}

impl<K: Resource + Send + Sync + 'static> InformerTask<K> {
    /// Keeps the informer's store current and its handlers informed until `shutdown`; then stops the reflector, the
    /// queue, the store and the processor, in this order, and ends (I12). The store can still be read.
    ///
    /// Handlers run in tasks of their own, which belong to this future.
    ///
    /// # Cancel safety
    /// Dropping the future stops everything; events that wait for handlers are lost.
    pub async fn run(self, shutdown: CancellationToken) {
        let Self { mut controller, processor } = self;
        if let Some(period) = processor.fix_check_period() {
            let due = processor.clone();
            controller = controller.resync_every(period, move || due.check_resync());
        }
        let handlers = CancellationToken::new();
        let work = async {
            controller.run(shutdown).await;
            handlers.cancel();
        };
        tokio::join!(work, processor.run(handlers.clone()));
    }
}
