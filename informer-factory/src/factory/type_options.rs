//! [`TypeOptions`]: the settings for the informers of one type.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use informer_reflector::{Ingest, PrunePaths, ReflectorConfig, Storage};
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
    pub(super) transform: Option<Transform<K>>,
    pub(super) ingest: Ingest<K>,
}

pub(super) type Transform<K> = Arc<dyn Fn(&mut K) -> Result<(), String> + Send + Sync>;

/// Changes the configuration of the factory's reflectors.
pub(super) type ChangeReflector = Arc<dyn Fn(ReflectorConfig) -> ReflectorConfig + Send + Sync>;

impl<K> TypeOptions<K> {
    fn new() -> Self {
        Self {
            name: None,
            resync_period: None,
            reflector: None,
            prune: None,
            transform: None,
            ingest: Ingest::default(),
        }
    }

    /// Sets a prefix for the resource in messages, after the factory's
    /// [own](crate::FactoryBuilder::name): `scheduler/bound/pods`. Default: none.
    #[doc(alias = "WithInformerName")]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the resync period of handlers without their own; zero means no resync. Default: the
    /// factory's [default](crate::FactoryBuilder::default_resync).
    #[doc(alias = "WithCustomResyncConfig")]
    pub fn resync_period(mut self, period: Duration) -> Self {
        self.resync_period = Some(period);
        self
    }

    /// Changes the configuration of the reflectors, beginning with the factory's
    /// [own](crate::FactoryBuilder::reflector). Default: no change.
    ///
    /// If one informer falls back to pages, all informers of the resource use pages for 10 to 30
    /// minutes. So with several types of one resource, the shortest
    /// [`list_stall_timeout`](ReflectorConfig::list_stall_timeout) decides.
    pub fn reflector(
        mut self,
        change: impl Fn(ReflectorConfig) -> ReflectorConfig + Send + Sync + 'static,
    ) -> Self {
        self.reflector = Some(Arc::new(change));
        self
    }

    /// Sets the fields that are not decoded. Default: those of `#[derive(Informer)]`, otherwise
    /// `metadata.managedFields`.
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
        self.transform = Some(Arc::new(move |object| transform(object).map_err(|error| error.to_string())));
        self
    }

    /// Sets a function that chooses the storage form of each object; see
    /// [`Reflector::storage`](informer_reflector::Reflector::storage). Default: [`Storage::Open`].
    ///
    /// ```no_run
    /// # fn build(client: kube::Client) {
    /// use informer_factory::informer_reflector::Storage;
    /// use informer_factory::SharedInformerFactory;
    /// use k8s_openapi::api::core::v1::Secret;
    ///
    /// // The program reads few of the many secrets.
    /// let factory =
    ///     SharedInformerFactory::builder(client).configure::<Secret>(|it| it.storage(|_| Storage::Packed)).build();
    /// # }
    /// ```
    pub fn storage(mut self, decide: impl Fn(&K) -> Storage + Send + Sync + 'static) -> Self
    where
        K: Serialize + DeserializeOwned + 'static,
    {
        self.ingest.set_storage(decide);
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
            .field("transform", &self.transform.is_some())
            .field("ingest", &self.ingest)
            .finish()
    }
}

/// The settings by type.
#[derive(Default)]
pub(super) struct OptionsByType(HashMap<TypeId, Box<dyn Any + Send + Sync>>);

impl OptionsByType {
    pub(super) fn get<K: 'static>(&self) -> Option<&TypeOptions<K>> {
        self.0.get(&TypeId::of::<K>())?.downcast_ref()
    }

    /// Changes the settings of a type.
    pub(super) fn change<K: 'static>(&mut self, change: impl FnOnce(TypeOptions<K>) -> TypeOptions<K>) {
        let before = self.0.remove(&TypeId::of::<K>()).and_then(|options| options.downcast().ok());
        let options = change(before.map_or_else(TypeOptions::new, |options| *options));
        self.0.insert(TypeId::of::<K>(), Box::new(options));
    }
}
