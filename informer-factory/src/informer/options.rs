//! [`InformerOptions`]: the settings of an informer.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use informer_reflector::{Ingest, ReflectorConfig, Storage};
use kube::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The settings of an informer, which cannot be changed later.
#[derive(Debug)]
#[must_use]
pub struct InformerOptions<K> {
    pub(super) resync_period: Option<Duration>,
    pub(super) verify_period: Option<Duration>,
    pub(super) reflector: ReflectorConfig,
    pub(super) ingest: Ingest,
    _type: PhantomData<fn(K)>,
}

impl<K: Resource + 'static> InformerOptions<K> {
    /// Returns the defaults: no resync, no verification, and [`ReflectorConfig::new`].
    pub fn new() -> Self {
        Self::with_ingest(Ingest::of::<K>())
    }
}

impl<K> InformerOptions<K> {
    /// Sets how often the store is [verified](super::SharedIndexInformer::verify). Each period is
    /// up to a tenth longer or shorter, so that informers do not verify at the same time. Default:
    /// never. Zero also means never.
    ///
    /// Each verification lists the metadata of all objects, so periods of hours are appropriate.
    /// Differences are logged, and
    /// [`last_verification`](super::SharedIndexInformer::last_verification) returns the details.
    pub fn verify_every(mut self, period: Duration) -> Self {
        self.verify_period = Some(period).filter(|period| !period.is_zero());
        self
    }

    /// Sets the resync period of handlers that do not set their own; zero means no resync. Default:
    /// no resync. Only informers that are created by code of `#[derive(Informer)]` have another
    /// default: the derive's `default_resync`.
    pub fn resync_period(mut self, period: Duration) -> Self {
        self.resync_period = Some(period);
        self
    }

    pub(crate) fn resync_period_unless_set(mut self, period: Option<Duration>) -> Self {
        self.resync_period = self.resync_period.or(period);
        self
    }

    /// Sets the configuration of the reflector. Default: [`ReflectorConfig::new`].
    pub fn reflector(mut self, config: ReflectorConfig) -> Self {
        self.reflector = config;
        self
    }

    /// Sets a function that changes each object before it is cached; see
    /// [`Reflector::transform`](informer_reflector::Reflector::transform). Default: none.
    #[doc(alias = "SetTransform")]
    pub fn transform<E: fmt::Display>(
        mut self,
        transform: impl Fn(&mut K) -> Result<(), E> + Send + Sync + 'static,
    ) -> Self
    where
        K: 'static,
    {
        self.ingest.set_transform(transform);
        self
    }

    /// Sets the form in which objects are stored: decoded, or encoded as bytes. See
    /// [`Reflector::storage`](informer_reflector::Reflector::storage). Default:
    /// [`Storage::Decoded`].
    pub fn storage(mut self, storage: Storage) -> Self
    where
        K: Serialize + DeserializeOwned + Send + Sync + 'static,
    {
        self.ingest.set_storage::<K>(storage);
        self
    }
}

impl<K> InformerOptions<K> {
    pub(crate) fn with_ingest(ingest: Ingest) -> Self {
        Self {
            resync_period: None,
            verify_period: None,
            reflector: ReflectorConfig::new(),
            ingest,
            _type: PhantomData,
        }
    }

    pub(crate) fn cast<T>(self) -> InformerOptions<T> {
        let Self { resync_period, verify_period, reflector, ingest, _type } = self;
        InformerOptions { resync_period, verify_period, reflector, ingest, _type: PhantomData }
    }
}

impl<K: Resource + 'static> Default for InformerOptions<K> {
    fn default() -> Self {
        Self::new()
    }
}
