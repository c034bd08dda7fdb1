//! [`CacheControllerConfig`]: the settings of a controller, with the source of its objects.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use informer_core::{DeltaFifo, ListerWatcher};
use informer_reflector::{Ingest, ReflectorConfig};
use kube::Resource;

pub(super) type ShouldResync = Box<dyn FnMut() -> bool + Send>;

/// The settings of a [`CacheController`](super::CacheController), with the source of its objects.
///
/// client-go: `Config` of tools/cache/controller.go. The process function is an argument of
/// [`CacheController::new`](super::CacheController::new) instead.
#[must_use]
pub struct CacheControllerConfig<K: 'static> {
    pub(super) lister_watcher: Arc<dyn ListerWatcher<K>>,
    pub(super) queue: DeltaFifo<K>,
    pub(super) reflector: ReflectorConfig,
    pub(super) ingest: Ingest,
    pub(super) resync_period: Option<Duration>,
    pub(super) should_resync: Option<ShouldResync>,
    pub(super) retry_on_error: bool,
}

impl<K: Resource + 'static> CacheControllerConfig<K> {
    /// Returns the default settings: a new queue ([`DeltaFifo::new`]), no resyncs, and no retries
    /// of failed items.
    pub fn new(lister_watcher: Arc<dyn ListerWatcher<K>>) -> Self {
        Self {
            lister_watcher,
            queue: DeltaFifo::new(),
            reflector: ReflectorConfig::new(),
            ingest: Ingest::of::<K>(),
            resync_period: None,
            should_resync: None,
            retry_on_error: false,
        }
    }

    /// Sets the queue. Default: [`DeltaFifo::new`], a queue that does not read the store of the
    /// objects.
    ///
    /// With a queue that reads the store ([`DeltaFifo::with_known_objects`]), the controller can
    /// resync. The controller then also queues deletions of the stored objects that are missing
    /// from a [complete](informer_core::Replacement::complete) list.
    pub fn queue(mut self, queue: DeltaFifo<K>) -> Self {
        self.queue = queue;
        self
    }

    /// Sets the configuration of the reflector. Default: [`ReflectorConfig::new`].
    pub fn reflector(mut self, config: ReflectorConfig) -> Self {
        self.reflector = config;
        self
    }

    /// Sets a function that changes each object before it is processed; see
    /// [`Reflector::transform`](informer_reflector::Reflector::transform). Default: none.
    #[doc(alias = "Transform")]
    pub fn transform<E: fmt::Display>(
        mut self,
        transform: impl Fn(&mut K) -> Result<(), E> + Send + Sync + 'static,
    ) -> Self {
        self.ingest.set_transform(transform);
        self
    }

    /// Sets the resync period. Default: no resyncs. Zero also means no resyncs.
    #[doc(alias = "FullResyncPeriod")]
    pub fn resync_period(mut self, period: Duration) -> Self {
        self.resync_period = Some(period).filter(|period| !period.is_zero());
        self
    }

    /// Sets a function that decides at the end of each resync period whether to resync. Default:
    /// always.
    #[doc(alias = "ShouldResync")]
    pub fn should_resync(mut self, is_due: impl FnMut() -> bool + Send + 'static) -> Self {
        self.should_resync = Some(Box::new(is_due));
        self
    }

    /// Requeues failed items until they succeed. Default: the error is logged, and the object is
    /// not processed until its next change or resync, or the next list.
    ///
    /// If all items of a batch fail and no other change is queued, the controller waits before it
    /// retries them: 5 ms at first, doubled after each failure up to one second. After shutdown, it
    /// retries without a wait, until the queue is empty or all items of a batch fail.
    #[doc(alias = "RetryOnError")]
    pub fn retry_on_error(mut self) -> Self {
        self.retry_on_error = true;
        self
    }
}

impl<K: 'static> fmt::Debug for CacheControllerConfig<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheControllerConfig")
            .field("resource", &self.lister_watcher.description())
            .field("reflector", &self.reflector)
            .field("resync_period", &self.resync_period)
            .field("retry_on_error", &self.retry_on_error)
            .finish_non_exhaustive()
    }
}
