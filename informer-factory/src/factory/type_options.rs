//! [`TypeOptions`]: the settings for the informers of one type.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use informer_reflector::{PrunePaths, ReflectorConfig, Storage};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::times::Times;

/// The settings for the informers of one type of objects, in every scope; see
/// [`FactoryBuilder::configure`](crate::FactoryBuilder::configure).
#[must_use]
pub struct TypeOptions<K> {
    pub(super) name: Option<String>,
    pub(super) resync_period: Option<Duration>,
    pub(super) page_size: Option<u32>,
    pub(super) times: Times,
    pub(super) prune: Option<PrunePaths>,
    pub(super) transform: Option<Transform<K>>,
    pub(super) storage: Option<SetStorage<K>>,
}

pub(super) type Transform<K> = Arc<dyn Fn(&mut K) -> Result<(), String> + Send + Sync>;

/// Sets the storage form. A function, because only this setting needs `K` to be serializable.
pub(super) type SetStorage<K> = Arc<dyn Fn(ReflectorConfig<K>) -> ReflectorConfig<K> + Send + Sync>;

impl<K> TypeOptions<K> {
    fn new() -> Self {
        Self {
            name: None,
            resync_period: None,
            page_size: None,
            times: Times::default(),
            prune: None,
            transform: None,
            storage: None,
        }
    }

    /// Sets a prefix for the resource in messages, after the factory's [own](crate::FactoryBuilder::name):
    /// `scheduler/bound/pods`. Default: none.
    #[doc(alias = "WithInformerName")]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the resync period of handlers without their own; zero means no resync. Default: the factory's
    /// [default](crate::FactoryBuilder::default_resync).
    #[doc(alias = "WithCustomResyncConfig")]
    pub fn resync_period(mut self, period: Duration) -> Self {
        self.resync_period = Some(period);
        self
    }

    /// Sets the page size of lists, in items; see
    /// [`ReflectorConfig::page_size`](informer_reflector::ReflectorConfig::page_size). Default: the factory's.
    #[doc(alias = "WatchListPageSize")]
    pub fn page_size(mut self, items: u32) -> Self {
        self.page_size = Some(items);
        self
    }

    /// Sets the minimum duration of a watch, as [`FactoryBuilder::watch_timeout`](crate::FactoryBuilder::watch_timeout) does for all
    /// types. Default: the factory's.
    #[doc(alias = "MinWatchTimeout")]
    pub fn watch_timeout(mut self, at_least: Duration) -> Self {
        self.times.watch_timeout = Some(at_least);
        self
    }

    /// Sets the time without data after which the connection of a watch counts as dead, as
    /// [`FactoryBuilder::watch_idle_timeout`](crate::FactoryBuilder::watch_idle_timeout) does for all types. Default: the factory's.
    pub fn watch_idle_timeout(mut self, at_most: Duration) -> Self {
        self.times.watch_idle_timeout = Some(at_most);
        self
    }

    /// Sets the time without data after which a streaming list is replaced by pages, as
    /// [`FactoryBuilder::list_stall_timeout`](crate::FactoryBuilder::list_stall_timeout) does for all types. Default: the factory's.
    ///
    /// If one informer falls back to pages, all informers of the resource use pages for 10 to 30 minutes. So with several types of one
    /// resource, the shortest timeout decides.
    pub fn list_stall_timeout(mut self, at_most: Duration) -> Self {
        self.times.list_stall_timeout = Some(at_most);
        self
    }

    /// Sets the fields that are not decoded. Default: those of `#[derive(Informer)]`, otherwise `metadata.managedFields`.
    pub fn prune(mut self, paths: PrunePaths) -> Self {
        self.prune = Some(paths);
        self
    }

    /// Sets a function that changes each object before it is cached; see
    /// [`ReflectorConfig::transform`](informer_reflector::ReflectorConfig::transform). It runs after the factory's
    /// [`transform_metadata`](crate::FactoryBuilder::transform_metadata). Default: none.
    #[doc(alias = "WithTransform")]
    pub fn transform<E: fmt::Display>(
        mut self,
        transform: impl Fn(&mut K) -> Result<(), E> + Send + Sync + 'static,
    ) -> Self {
        self.transform = Some(Arc::new(move |object| transform(object).map_err(|error| error.to_string())));
        self
    }

    /// Sets a function that chooses the storage form of each object; see
    /// [`ReflectorConfig::storage`](informer_reflector::ReflectorConfig::storage). Default: [`Storage::Open`].
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
        let decide = Arc::new(decide);
        self.storage = Some(Arc::new(move |config| {
            let decide = Arc::clone(&decide);
            config.storage(move |object| decide(object))
        }));
        self
    }
}

impl<K> fmt::Debug for TypeOptions<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypeOptions")
            .field("object", &type_name::<K>())
            .field("name", &self.name)
            .field("resync_period", &self.resync_period)
            .field("page_size", &self.page_size)
            .field("times", &self.times)
            .field("prune", &self.prune)
            .field("transform", &self.transform.is_some())
            .field("storage", &self.storage.is_some())
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
