//! [`CacheControllerConfig`]: what a controller reads from, and how it goes about it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use informer_core::{DeltaFifo, ListerWatcher};
use informer_reflector::{Ingest, ReflectorConfig};

pub(super) type ShouldResync = Box<dyn FnMut() -> bool + Send>;

/// What a [`CacheController`](super::CacheController) reads from, and how it goes about it.
///
/// client-go: `Config` of tools/cache/controller.go. What to do with the objects is not part of it: it goes to
/// [`CacheController::new`](super::CacheController::new).
#[must_use]
pub struct CacheControllerConfig<K: 'static> {
    pub(super) lister_watcher: Arc<dyn ListerWatcher<K>>,
    pub(super) queue: DeltaFifo<K>,
    pub(super) reflector: ReflectorConfig,
    pub(super) ingest: Ingest<K>,
    pub(super) resync_period: Option<Duration>,
    pub(super) should_resync: Option<ShouldResync>,
    pub(super) retry_on_error: bool,
}

impl<K: 'static> CacheControllerConfig<K> {
    /// Returns the defaults: a queue of its own with no store behind it, no resyncs, no retries.
    pub fn new(lister_watcher: Arc<dyn ListerWatcher<K>>) -> Self {
        Self {
            lister_watcher,
            queue: DeltaFifo::new(),
            reflector: ReflectorConfig::new(),
            ingest: Ingest::default(),
            resync_period: None,
            should_resync: None,
            retry_on_error: false,
        }
    }

    /// Sets the queue. One made [with known objects](DeltaFifo::with_known_objects) knows which objects of the consumer
    /// are missing in a list, and can resync.
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

    /// Sets how often all known objects are queued again. Default, and if it is zero: never.
    #[doc(alias = "FullResyncPeriod")]
    pub fn resync_period(mut self, period: Duration) -> Self {
        self.resync_period = Some(period).filter(|period| !period.is_zero());
        self
    }

    /// Sets what is asked each resync period whether there is to be one. Default: always.
    #[doc(alias = "ShouldResync")]
    pub fn should_resync(mut self, is_due: impl FnMut() -> bool + Send + 'static) -> Self {
        self.should_resync = Some(Box::new(is_due));
        self
    }

    /// Puts an object that could not be processed back into the queue, until it can be. Default: the error is logged,
    /// and the object left until something else happens to it.
    ///
    /// As long as there is nothing else to be processed, there is a wait after each try: 5 ms, then twice as long each
    /// time, up to a second. A controller that is stopping doesn't wait: it ends when all that is left fails.
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
