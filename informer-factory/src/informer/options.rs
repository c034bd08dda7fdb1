//! [`InformerOptions`]: what has to be settled before an informer is made.

use std::time::Duration;

use informer_reflector::ReflectorConfig;

/// What has to be settled before an informer is made; afterwards it can't be changed.
#[derive(Debug)]
#[must_use]
pub struct InformerOptions<K> {
    pub(super) resync_period: Option<Duration>,
    pub(super) verify_period: Option<Duration>,
    pub(super) reflector: ReflectorConfig<K>,
}

impl<K> InformerOptions<K> {
    /// Returns the defaults: no resync, and [`ReflectorConfig::new`].
    pub fn new() -> Self {
        Self { resync_period: None, verify_period: None, reflector: ReflectorConfig::new() }
    }

    /// Has the store [verified](super::SharedIndexInformer::verify) about so often: each period is up to a tenth longer
    /// or shorter, so that informers take turns. Default, and if it is zero: never.
    ///
    /// Each time costs a list of metadata, which is little next to a list, and more than nothing: think of hours.
    /// Differences are logged; [`last_verification`](super::SharedIndexInformer::last_verification) has the details.
    pub fn verify_every(mut self, period: Duration) -> Self {
        self.verify_period = Some(period).filter(|period| !period.is_zero());
        self
    }

    /// Sets how often handlers that ask for nothing else get every object handed out again. Default: never.
    pub fn resync_period(mut self, period: Duration) -> Self {
        self.resync_period = Some(period);
        self
    }

    /// Sets how often handlers get every object handed out again, unless that has been set.
    pub(crate) fn resync_period_unless_set(mut self, period: Duration) -> Self {
        self.resync_period.get_or_insert(period);
        self
    }

    /// Sets how objects are listed, watched and transformed.
    pub fn reflector(mut self, config: ReflectorConfig<K>) -> Self {
        self.reflector = config;
        self
    }
}

impl<K> Default for InformerOptions<K> {
    fn default() -> Self {
        Self::new()
    }
}
