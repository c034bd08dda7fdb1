//! [`FactoryBuilder`]: the settings of a factory and of all its informers.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use informer_reflector::{ListTweaks, ReflectorConfig, SharedServer};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Client, Resource};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::discovery::Discovery;
use super::registry::Registry;
use super::scope::{NamespaceScope, Scope};
use super::type_options::{OptionsByType, TypeOptions};
use super::{Inner, SharedInformerFactory};
use crate::namespaces::NamespaceError;

/// Builds a [`SharedInformerFactory`].
///
/// If several places set the same setting of an informer, the first of these places takes
/// precedence:
///
/// 1. [`informer_with`](SharedInformerFactory::informer_with), for one informer,
/// 2. [`configure`](Self::configure), for one type,
/// 3. the other methods of this builder, for all types,
/// 4. `#[derive(Informer)]` (`prune`, `default_resync`), for informers that its accessor creates.
///
/// Two settings are combined instead: the name prefix of a type ([`TypeOptions::name`]) is appended
/// to the factory's prefix ([`name`](Self::name)), and the transform of `informer_with` or of the
/// type runs after the factory's transform.
#[must_use]
pub struct FactoryBuilder {
    client: Client,
    scope: Scope,
    /// The initial namespaces, if informers watch each namespace separately.
    namespaces: Option<BTreeSet<String>>,
    config: FactoryConfig,
}

pub(super) type TweakListOptions = Arc<dyn Fn(&mut ListTweaks) + Send + Sync>;

pub(super) type TransformMetadata = Arc<dyn Fn(&mut ObjectMeta) + Send + Sync>;

#[derive(Default)]
pub(super) struct FactoryConfig {
    pub(super) name: Option<String>,
    pub(super) resync_period: Option<Duration>,
    pub(super) verify_period: Option<Duration>,
    pub(super) reflector: ReflectorConfig,
    pub(super) tweak_list_options: Option<TweakListOptions>,
    pub(super) transform_metadata: Option<TransformMetadata>,
    pub(super) stop_idle_after: Option<Duration>,
    pub(super) by_type: OptionsByType,
}

/// The minimum of [`FactoryBuilder::stop_idle_after`].
const MIN_IDLE: Duration = Duration::from_secs(1);

impl FactoryBuilder {
    pub(super) fn new(client: Client) -> Self {
        Self { client, scope: Scope::default(), namespaces: None, config: FactoryConfig::default() }
    }

    /// Sets a prefix for resource names in messages, to distinguish several factories in one
    /// process: with the name `scheduler`, `pods` becomes `scheduler/pods`. Default: none.
    #[doc(alias = "WithInformerName")]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.config.name = Some(name.into());
        self
    }

    /// Limits namespaced resources to a set of namespaces, which may be empty at first. Namespaces
    /// can be [added](SharedInformerFactory::add_namespace) and
    /// [removed](SharedInformerFactory::remove_namespace) while informers run. Each informer has
    /// one watch per namespace, but one store, one set of indexes and one set of handlers for all
    /// namespaces; see
    /// [`SharedIndexInformer::new_in_namespaces`](crate::SharedIndexInformer::new_in_namespaces).
    /// The set does not limit informers that are requested through
    /// [`factory.in_namespace(...)`](SharedInformerFactory::in_namespace): they can watch any
    /// namespace.
    ///
    /// ```no_run
    /// # async fn run(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use informer_factory::SharedInformerFactory;
    ///
    /// let factory = SharedInformerFactory::builder(client).namespaces(["shop", "payments"])?.build();
    /// let pods = factory.core().v1().pods();
    /// factory.start();
    /// factory.wait_for_cache_sync().await?;
    /// for synced in factory.add_namespace("archive")? {
    ///     synced.wait().await?;
    /// }
    /// factory.remove_namespace("shop")?;
    /// # drop(pods);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`NamespaceError::InvalidName`] if a name is not valid for a namespace.
    pub fn namespaces<N: Into<String>>(
        mut self,
        namespaces: impl IntoIterator<Item = N>,
    ) -> Result<Self, NamespaceError> {
        let names: BTreeSet<String> = namespaces.into_iter().map(Into::into).collect();
        names.iter().try_for_each(|name| NamespaceError::check_name(name))?;
        self.scope.namespace = NamespaceScope::Separate;
        self.namespaces = Some(names);
        Ok(self)
    }

    /// Changes the settings for the informers of one type: resync period, page size, timeouts,
    /// pruned fields, transform, name. Another call for the same type adds to the earlier settings.
    ///
    /// The type is the type of the decoded objects: settings for `Pod` do not apply to
    /// `PartialObjectMeta<Pod>` or to a slim view, and settings for `DynamicObject` apply to
    /// dynamic objects of every resource.
    ///
    /// ```no_run
    /// # fn build(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use informer_factory::{PrunePaths, SharedInformerFactory};
    /// use k8s_openapi::api::core::v1::{Node, Pod};
    ///
    /// let no_volumes = PrunePaths::default().with_path("spec.volumes")?;
    /// let factory = SharedInformerFactory::builder(client)
    ///     .default_resync(Duration::from_secs(3_600))
    ///     .configure::<Node>(|nodes| nodes.resync_period(Duration::from_secs(300)))
    ///     .configure::<Pod>(|pods| {
    ///         pods.prune(no_volumes).transform(|pod| {
    ///             pod.metadata.annotations = None;
    ///             Ok::<_, String>(())
    ///         })
    ///     })
    ///     .build();
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "WithCustomResyncConfig")]
    #[doc(alias = "WithTransform")]
    pub fn configure<K: Resource + 'static>(
        mut self,
        change: impl FnOnce(TypeOptions<K>) -> TypeOptions<K>,
    ) -> Self {
        self.config.by_type.change(change);
        self
    }

    /// Sets a function that changes the metadata of each object of every type before it is cached,
    /// for example to drop unused annotations. The function must not change name, namespace, UID or
    /// resource version. If it does, or if it panics, the object is quarantined: the cached
    /// version, if any, stays. See
    /// [`Reflector::transform`](informer_reflector::Reflector::transform). Default: none.
    ///
    /// Fields that this function removes have already been decoded. [Pruned](TypeOptions::prune)
    /// fields are never decoded, which is cheaper.
    #[doc(alias = "WithTransform")]
    pub fn transform_metadata(mut self, transform: impl Fn(&mut ObjectMeta) + Send + Sync + 'static) -> Self {
        self.config.transform_metadata = Some(Arc::new(transform));
        self
    }

    /// Sets the configuration of all reflectors: page size, backoff, timeouts, `on_failure`.
    /// [`configure`](Self::configure) changes the configuration for one type. Default:
    /// [`ReflectorConfig::new`]. [`ReflectorConfig::server`] has no effect: all informers share
    /// one [`SharedServer`](informer_reflector::SharedServer), which the factory creates.
    ///
    /// ```no_run
    /// # fn build(client: kube::Client) {
    /// use std::time::Duration;
    /// use informer_factory::informer_reflector::ReflectorConfig;
    /// use informer_factory::SharedInformerFactory;
    /// use k8s_openapi::api::core::v1::Event;
    ///
    /// let reflector = ReflectorConfig::new().backoff(Duration::from_secs(1), Duration::from_secs(60));
    /// let factory = SharedInformerFactory::builder(client)
    ///     .reflector(reflector)
    ///     .configure::<Event>(|events| events.reflector(|all| all.page_size(2_000)))
    ///     .build();
    /// # }
    /// ```
    pub fn reflector(mut self, config: ReflectorConfig) -> Self {
        self.config.reflector = config;
        self
    }

    /// Sets how often each store is [verified](crate::SharedIndexInformer::verify); see
    /// [`InformerOptions::verify_every`](crate::InformerOptions::verify_every). Default: never.
    pub fn verify_every(mut self, period: Duration) -> Self {
        self.config.verify_period = Some(period);
        self
    }

    /// Sets the period after which an unused informer is stopped. The informer stops at the latest
    /// 1.5 times this period after its last use. Default: never, as in client-go. Minimum: one
    /// second.
    ///
    /// An informer is in use while it has an event stream or a handler, even a
    /// [detached](crate::HandlerRegistration::detach) one. It is also in use while the program
    /// holds a handle of the informer, of its store (`Indexer`, `Lister`) or of one of its indexes.
    /// A call of the factory's `informers`, `health`, `add_namespace` or `remove_namespace` can
    /// count as a use of all informers, because it holds handles while it runs. A stopped informer
    /// leaves the factory, and its store is freed. An informer whose task has panicked stays in the
    /// factory until the next request for it, so that [`health`](SharedInformerFactory::health)
    /// reports the panic.
    ///
    /// The next request creates a new informer, which lists everything again. In a factory with
    /// this option, an informer that is requested after [`start`](SharedInformerFactory::start)
    /// starts at once, on the runtime of the first `start`.
    pub fn stop_idle_after(mut self, period: Duration) -> Self {
        self.config.stop_idle_after = Some(period.max(MIN_IDLE));
        self
    }

    /// Sets the resync period of handlers that do not set their own. Default: no resync. If this
    /// method is not called, informers that an accessor of `#[derive(Informer)]` creates use the
    /// derive's `default_resync`.
    #[doc(alias = "defaultResync")]
    pub fn default_resync(mut self, period: Duration) -> Self {
        self.config.resync_period = Some(period);
        self
    }

    /// Sets a function that changes the parameters of lists and watches: selectors, and parameters
    /// that only some servers support. The function is called once for each new informer;
    /// [`ListTweaks::resource`] returns the informer's resource. Selectors of
    /// [`with_labels`](SharedInformerFactory::with_labels) and
    /// [`with_fields`](SharedInformerFactory::with_fields) take precedence.
    ///
    /// ```no_run
    /// # fn build(client: kube::Client) {
    /// use informer_factory::SharedInformerFactory;
    ///
    /// let factory = SharedInformerFactory::builder(client)
    ///     .tweak_list_options(|options| options.label_selector = "app.kubernetes.io/part-of=shop".to_owned())
    ///     .build();
    /// # }
    /// ```
    #[doc(alias = "WithTweakListOptions")]
    pub fn tweak_list_options(mut self, tweak: impl Fn(&mut ListTweaks) + Send + Sync + 'static) -> Self {
        self.config.tweak_list_options = Some(Arc::new(tweak));
        self
    }

    /// Returns a factory without informers. This sends no request.
    #[must_use]
    pub fn build(self) -> SharedInformerFactory {
        let shutdown = CancellationToken::new();
        let inner = Inner {
            client: self.client,
            config: self.config,
            watched_namespaces: self.namespaces.map(Mutex::new),
            server: SharedServer::new(),
            discovery: Discovery::default(),
            informers: Registry::new(),
            tasks: TaskTracker::new(),
            starting: Mutex::new(None),
            _stop: shutdown.clone().drop_guard(),
            shutdown,
        };
        SharedInformerFactory { inner: Arc::new(inner), scope: self.scope }
    }
}

impl fmt::Debug for FactoryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FactoryBuilder")
            .field("scope", &self.scope)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for FactoryConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FactoryConfig")
            .field("name", &self.name)
            .field("resync_period", &self.resync_period)
            .field("reflector", &self.reflector)
            .field("stop_idle_after", &self.stop_idle_after)
            .field("tweak_list_options", &self.tweak_list_options.is_some())
            .finish_non_exhaustive()
    }
}
