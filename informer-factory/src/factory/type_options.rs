//! [`TypeOptions`]: the settings for the informers of one type.

use std::any::{TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use informer_core::AnyObject;
use informer_reflector::{Ingest, PrunePaths, ReflectorConfig, Storage};
use kube::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The settings for the informers of one type of objects, in every scope; see
/// [`FactoryBuilder::configure`](crate::FactoryBuilder::configure).
#[must_use]
pub struct TypeOptions<K> {
    pub(super) name: Option<String>,
    pub(super) resync_period: Option<Duration>,
    pub(super) reflector: Option<ChangeReflector>,
    pub(super) prune: Option<PrunePaths>,
    pub(super) ingest: Ingest,
    _type: PhantomData<fn(K)>,
}

/// Returns the reflector configuration of one type, based on the factory's configuration.
pub(super) type ChangeReflector = Arc<dyn Fn(ReflectorConfig) -> ReflectorConfig + Send + Sync>;

impl<K: Resource + 'static> TypeOptions<K> {
    fn new() -> Self {
        Self {
            name: None,
            resync_period: None,
            reflector: None,
            prune: None,
            ingest: Ingest::of::<K>(),
            _type: PhantomData,
        }
    }

    /// Sets a prefix for the resource name in messages. It follows the prefix of the
    /// [factory](crate::FactoryBuilder::name): with the factory name `scheduler` and the name
    /// `bound`, `pods` becomes `scheduler/bound/pods`. Default: none.
    #[doc(alias = "WithInformerName")]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the resync period of handlers that do not set their own; zero means no resync. Default:
    /// the factory's [default](crate::FactoryBuilder::default_resync).
    #[doc(alias = "WithCustomResyncConfig")]
    pub fn resync_period(mut self, period: Duration) -> Self {
        self.resync_period = Some(period);
        self
    }

    /// Sets a function that receives the [factory's](crate::FactoryBuilder::reflector) reflector
    /// configuration and returns the configuration for this type. Default: no change.
    ///
    /// If the streaming list of one informer stalls, all informers of its resource use paged lists
    /// for 10 to 30 minutes. So if several object types of one resource have different
    /// [`list_stall_timeout`](ReflectorConfig::list_stall_timeout)s, the shortest timeout
    /// determines when all informers of the resource change to paged lists.
    pub fn reflector(
        mut self,
        change: impl Fn(ReflectorConfig) -> ReflectorConfig + Send + Sync + 'static,
    ) -> Self {
        self.reflector = Some(Arc::new(change));
        self
    }

    /// Sets the fields to skip when objects are decoded. Default: `metadata.managedFields`.
    /// Informers that an accessor of `#[derive(Informer)]` creates also skip the derive's `prune`
    /// fields by default.
    pub fn prune(mut self, paths: PrunePaths) -> Self {
        self.prune = Some(paths);
        self
    }

    /// Sets a function that changes each object before it is cached; see
    /// [`Reflector::transform`](informer_reflector::Reflector::transform). It runs after the
    /// factory's [`transform_metadata`](crate::FactoryBuilder::transform_metadata). Default: none.
    #[doc(alias = "WithTransform")]
    pub fn transform<E: fmt::Display>(
        mut self,
        transform: impl Fn(&mut K) -> Result<(), E> + Send + Sync + 'static,
    ) -> Self {
        self.ingest.set_transform(transform);
        self
    }

    /// Sets the form in which objects are stored: decoded, or encoded as bytes. See
    /// [`Reflector::storage`](informer_reflector::Reflector::storage). Default:
    /// [`Storage::Decoded`].
    ///
    /// ```no_run
    /// # fn build(client: kube::Client) {
    /// use informer_factory::informer_reflector::Storage;
    /// use informer_factory::SharedInformerFactory;
    /// use k8s_openapi::api::core::v1::Secret;
    ///
    /// // The program reads few of the secrets, so it stores them encoded.
    /// let factory =
    ///     SharedInformerFactory::builder(client).configure::<Secret>(|it| it.storage(Storage::Encoded)).build();
    /// # }
    /// ```
    pub fn storage(mut self, storage: Storage) -> Self
    where
        K: Serialize + DeserializeOwned + Send + Sync,
    {
        self.ingest.set_storage::<K>(storage);
        self
    }
}

impl<K> fmt::Debug for TypeOptions<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypeOptions")
            .field("object", &type_name::<K>())
            .field("name", &self.name)
            .field("resync_period", &self.resync_period)
            .field("reflector", &self.reflector.is_some())
            .field("prune", &self.prune)
            .field("ingest", &self.ingest)
            .finish()
    }
}

impl<K> TypeOptions<K> {
    fn cast<T>(self) -> TypeOptions<T> {
        let Self { name, resync_period, reflector, prune, ingest, _type } = self;
        TypeOptions { name, resync_period, reflector, prune, ingest, _type: PhantomData }
    }
}

#[derive(Default)]
pub(super) struct OptionsByType(HashMap<TypeId, TypeOptions<AnyObject>>);

impl OptionsByType {
    pub(super) fn get<K: 'static>(&self) -> Option<&TypeOptions<AnyObject>> {
        self.0.get(&TypeId::of::<K>())
    }

    pub(super) fn change<K: Resource + 'static>(
        &mut self,
        change: impl FnOnce(TypeOptions<K>) -> TypeOptions<K>,
    ) {
        let before = self.0.remove(&TypeId::of::<K>());
        let options = change(before.map_or_else(TypeOptions::new, TypeOptions::cast));
        self.0.insert(TypeId::of::<K>(), options.cast());
    }
}
