//! [`TypeOptions`]: what is different for the informers of one type.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use informer_reflector::{PrunePaths, ReflectorConfig, Storage};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::times::Times;

/// What is different for the informers of one type of objects, whatever their scope; see
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

/// Sets how objects are held; the hook itself needs more of a type than others do.
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

    /// Sets a name that messages have before the resource, after the factory's [own](crate::FactoryBuilder::name):
    /// `scheduler/bound/pods`. Default: none.
    #[doc(alias = "WithInformerName")]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets how often handlers that ask for nothing else get every object handed out again; zero: never. Default: the
    /// factory's [default](crate::FactoryBuilder::default_resync).
    #[doc(alias = "WithCustomResyncConfig")]
    pub fn resync_period(mut self, period: Duration) -> Self {
        self.resync_period = Some(period);
        self
    }

    /// Asks for lists in pages of so many items, as
    /// [`ReflectorConfig::page_size`](informer_reflector::ReflectorConfig::page_size) says. Default: the factory's.
    #[doc(alias = "WatchListPageSize")]
    pub fn page_size(mut self, items: u32) -> Self {
        self.page_size = Some(items);
        self
    }

    /// Sets how long watches last at least before the server ends them, as
    /// [`FactoryBuilder::watch_timeout`](crate::FactoryBuilder::watch_timeout) does for all types. Default: the factory's.
    #[doc(alias = "MinWatchTimeout")]
    pub fn watch_timeout(mut self, at_least: Duration) -> Self {
        self.times.watch_timeout = Some(at_least);
        self
    }

    /// Sets how long a watch may be silent until its connection is taken for dead, as
    /// [`FactoryBuilder::watch_idle_timeout`](crate::FactoryBuilder::watch_idle_timeout) does for all types. Default: the factory's.
    pub fn watch_idle_timeout(mut self, at_most: Duration) -> Self {
        self.times.watch_idle_timeout = Some(at_most);
        self
    }

    /// Sets how long a streaming list may pause until it is given up for a list in pages, as
    /// [`FactoryBuilder::list_stall_timeout`](crate::FactoryBuilder::list_stall_timeout) does for all types. Default: the factory's.
    ///
    /// What one informer finds out about streams of a resource holds for all of it, for 10 to 30 minutes: where there are
    /// several types of the same resource, the most impatient one decides.
    pub fn list_stall_timeout(mut self, at_most: Duration) -> Self {
        self.times.list_stall_timeout = Some(at_most);
        self
    }

    /// Sets which fields are stepped over when objects are decoded. Default: what `#[derive(Informer)]` says, else just
    /// `metadata.managedFields`.
    pub fn prune(mut self, paths: PrunePaths) -> Self {
        self.prune = Some(paths);
        self
    }

    /// Sets a function that changes each object before it is cached, as
    /// [`ReflectorConfig::transform`](informer_reflector::ReflectorConfig::transform) says. It runs after the factory's
    /// [`transform_metadata`](crate::FactoryBuilder::transform_metadata). Default: nothing.
    #[doc(alias = "WithTransform")]
    pub fn transform<E: fmt::Display>(
        mut self,
        transform: impl Fn(&mut K) -> Result<(), E> + Send + Sync + 'static,
    ) -> Self {
        self.transform = Some(Arc::new(move |object| transform(object).map_err(|error| error.to_string())));
        self
    }

    /// Sets a function that decides of each object how it is held, as
    /// [`ReflectorConfig::storage`](informer_reflector::ReflectorConfig::storage) says. Default: [`Storage::Open`].
    ///
    /// ```no_run
    /// # fn build(client: kube::Client) {
    /// use informer_factory::informer_reflector::Storage;
    /// use informer_factory::SharedInformerFactory;
    /// use k8s_openapi::api::core::v1::Secret;
    ///
    /// // Of all the secrets that are held, few are ever looked at.
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

/// The options of each type that has any.
#[derive(Default)]
pub(super) struct OptionsByType(HashMap<TypeId, Box<dyn Any + Send + Sync>>);

impl OptionsByType {
    pub(super) fn get<K: 'static>(&self) -> Option<&TypeOptions<K>> {
        self.0.get(&TypeId::of::<K>())?.downcast_ref()
    }

    /// Changes those of a type, from what has been said before.
    pub(super) fn change<K: 'static>(&mut self, change: impl FnOnce(TypeOptions<K>) -> TypeOptions<K>) {
        let before = self.0.remove(&TypeId::of::<K>()).and_then(|options| options.downcast().ok());
        let options = change(before.map_or_else(TypeOptions::new, |options| *options));
        self.0.insert(TypeId::of::<K>(), Box::new(options));
    }
}
