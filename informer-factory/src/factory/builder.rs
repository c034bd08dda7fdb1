//! [`FactoryBuilder`]: what is the same for all informers of a factory.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use informer_reflector::{ListTweaks, ListWatchFailure};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;

use super::SharedInformerFactory;
use super::namespaces::Followed;
use super::scope::{Scope, Where};
use super::times::Times;
use super::type_options::{OptionsByType, TypeOptions};
use crate::NamespaceError;

/// Builds a [`SharedInformerFactory`].
///
/// What is said here for one type counts before what is said for all, and both before what `#[derive(Informer)]` says
/// (`prune`, `default_resync`). [`informer_with`](SharedInformerFactory::informer_with) has the last word.
#[must_use]
pub struct FactoryBuilder {
    client: Client,
    scope: Scope,
    /// Those to follow one by one.
    namespaces: Option<BTreeSet<String>>,
    config: FactoryConfig,
}

/// Changes what is asked for with every list and watch.
pub(super) type TweakListOptions = Arc<dyn Fn(&mut ListTweaks) + Send + Sync>;

/// Changes the metadata of every object.
pub(super) type TransformMetadata = Arc<dyn Fn(&mut ObjectMeta) + Send + Sync>;

/// Receives each failure of each informer.
pub(super) type OnFailure = Arc<dyn Fn(&ListWatchFailure<'_>) + Send + Sync>;

#[derive(Default)]
pub(super) struct FactoryConfig {
    pub(super) name: Option<String>,
    pub(super) resync_period: Option<Duration>,
    pub(super) verify_period: Option<Duration>,
    pub(super) page_size: Option<u32>,
    pub(super) backoff: Option<(Duration, Duration)>,
    pub(super) times: Times,
    pub(super) only_pages: bool,
    pub(super) tweak_list_options: Option<TweakListOptions>,
    pub(super) transform_metadata: Option<TransformMetadata>,
    pub(super) on_failure: Option<OnFailure>,
    pub(super) stop_idle_after: Option<Duration>,
    pub(super) by_type: OptionsByType,
}

/// Less than this is no time to be idle in.
const MIN_IDLE: Duration = Duration::from_secs(1);

impl FactoryBuilder {
    pub(super) fn new(client: Client) -> Self {
        Self { client, scope: Scope::default(), namespaces: None, config: FactoryConfig::default() }
    }

    /// Sets a name that messages have before each resource, such as `scheduler` for `scheduler/pods`: for processes with
    /// several factories. Default: none.
    #[doc(alias = "WithInformerName")]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.config.name = Some(name.into());
        self
    }

    /// Limits namespaced resources to one namespace. Default, and if the name is empty: all. Cluster-scoped resources are
    /// not affected.
    #[doc(alias = "WithNamespace")]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.scope.namespace = Where::named(&namespace.into());
        self.namespaces = None;
        self
    }

    /// Limits namespaced resources to some namespaces, which can be [added](SharedInformerFactory::add_namespace) and
    /// [removed](SharedInformerFactory::remove_namespace) while informers run; there may be none to begin with. Each
    /// informer has a watch per namespace, and one store, one set of indices and of handlers for all of them, as
    /// [`SharedIndexInformer::new_in_namespaces`](crate::SharedIndexInformer::new_in_namespaces) describes it. Cluster-scoped
    /// resources are not affected.
    ///
    /// ```no_run
    /// # async fn run(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use informer_factory::SharedInformerFactory;
    ///
    /// let factory = SharedInformerFactory::builder(client).namespaces(["shop", "payments"])?.build();
    /// let pods = factory.core().v1().pods();
    /// factory.start();
    /// factory.wait_for_cache_sync().await?;
    /// for promise in factory.add_namespace("archive")? {
    ///     promise.wait().await?;
    /// }
    /// factory.remove_namespace("shop")?;
    /// # drop(pods);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`NamespaceError::InvalidName`] if one of them can't be the name of a namespace.
    pub fn namespaces<N: Into<String>>(
        mut self,
        namespaces: impl IntoIterator<Item = N>,
    ) -> Result<Self, NamespaceError> {
        let names: BTreeSet<String> = namespaces.into_iter().map(Into::into).collect();
        names.iter().try_for_each(|name| NamespaceError::check_name(name))?;
        self.scope.namespace = Where::Followed;
        self.namespaces = Some(names);
        Ok(self)
    }

    /// Changes what is different for the informers of one type: resync period, page size, times, pruned fields, transform,
    /// name. Where this is called again for the same type, that adds to what was said before.
    ///
    /// A type is what objects become: settings for `Pod` don't concern `PartialObjectMeta<Pod>` or a slim view, and those
    /// for `DynamicObject` are for dynamic objects of every resource.
    ///
    /// ```no_run
    /// # fn build(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use informer_factory::{PrunePaths, SharedInformerFactory};
    /// use k8s_openapi::api::core::v1::{Node, Pod};
    ///
    /// let no_volumes = PrunePaths::default().and("spec.volumes")?;
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
    pub fn configure<K: 'static>(mut self, change: impl FnOnce(TypeOptions<K>) -> TypeOptions<K>) -> Self {
        self.config.by_type.change(change);
        self
    }

    /// Sets a function that changes the metadata of each object of every type before it is cached, for example to drop
    /// annotations that nobody reads. It must leave name, namespace, UID and resource version as they are;
    /// [`ReflectorConfig::transform`](informer_reflector::ReflectorConfig::transform) says what becomes of an object where it
    /// doesn't, or where it panics. Default: nothing.
    ///
    /// What it takes away has been decoded; [pruned](TypeOptions::prune) fields never are.
    #[doc(alias = "WithTransform")]
    pub fn transform_metadata(mut self, transform: impl Fn(&mut ObjectMeta) + Send + Sync + 'static) -> Self {
        self.config.transform_metadata = Some(Arc::new(transform));
        self
    }

    /// Asks for lists in pages of so many items, as
    /// [`ReflectorConfig::page_size`](informer_reflector::ReflectorConfig::page_size) says.
    #[doc(alias = "WatchListPageSize")]
    pub fn page_size(mut self, items: u32) -> Self {
        self.config.page_size = Some(items);
        self
    }

    /// Sets how long informers wait after a failure, at first and at most, as
    /// [`ReflectorConfig::backoff`](informer_reflector::ReflectorConfig::backoff) says. Default: 0.8 and 30 seconds.
    #[doc(alias = "BackoffManager")]
    pub fn backoff(mut self, first: Duration, longest: Duration) -> Self {
        self.config.backoff = Some((first, longest));
        self
    }

    /// Sets how long watches last at least before the server ends them, as
    /// [`ReflectorConfig::watch_timeout`](informer_reflector::ReflectorConfig::watch_timeout) says; for servers on which many informers
    /// open new ones too often. Default: 5 minutes.
    #[doc(alias = "MinWatchTimeout")]
    pub fn watch_timeout(mut self, at_least: Duration) -> Self {
        self.config.times.watch_timeout = Some(at_least);
        self
    }

    /// Sets how long a watch may be silent until its connection counts as dead, as
    /// [`ReflectorConfig::watch_idle_timeout`](informer_reflector::ReflectorConfig::watch_idle_timeout) says; for networks on which bookmarks are
    /// often late. Default, and minimum: 65 seconds.
    pub fn watch_idle_timeout(mut self, at_most: Duration) -> Self {
        self.config.times.watch_idle_timeout = Some(at_most);
        self
    }

    /// Sets how long a streaming list may pause until it is given up for a list in pages, as
    /// [`ReflectorConfig::list_stall_timeout`](informer_reflector::ReflectorConfig::list_stall_timeout) says: longer for servers that are slow to
    /// begin, shorter in tests with one that can't stream. Default: 10 seconds.
    pub fn list_stall_timeout(mut self, at_most: Duration) -> Self {
        self.config.times.list_stall_timeout = Some(at_most);
        self
    }

    /// Has every store [verified](crate::SharedIndexInformer::verify) about so often, as
    /// [`InformerOptions::verify_every`](crate::InformerOptions::verify_every) says. Default: never.
    pub fn verify_every(mut self, period: Duration) -> Self {
        self.config.verify_period = Some(period);
        self
    }

    /// Sets what is called after each list or watch of any informer that has failed, as
    /// [`ReflectorConfig::on_failure`](informer_reflector::ReflectorConfig::on_failure) says. Default: nothing.
    #[doc(alias = "SetWatchErrorHandler")]
    pub fn on_failure(mut self, hears: impl Fn(&ListWatchFailure<'_>) + Send + Sync + 'static) -> Self {
        self.config.on_failure = Some(Arc::new(hears));
        self
    }

    /// Has informers stopped that nobody has used for so long. Default: they run until they are
    /// [stopped](SharedInformerFactory::stop), as client-go's do. Least: one second; an informer is stopped at the
    /// latest after one and a half times the period.
    ///
    /// An informer is in use as long as there is a handle on it, on its store (`Indexer`, `Lister`) or on one of its
    /// indices, a handler (also one that is detached) or an event stream. When it is stopped it leaves the factory, and
    /// its store is freed.
    ///
    /// Whoever asks for it again gets a new one, which lists everything again. So that it can't happen that such a one is
    /// never started, in a factory with this option informers that are asked for after
    /// [`start`](SharedInformerFactory::start) are started at once, in the runtime that `start` was called in.
    pub fn stop_idle_after(mut self, period: Duration) -> Self {
        self.config.stop_idle_after = Some(period.max(MIN_IDLE));
        self
    }

    /// Sets how often handlers that ask for nothing else get every object handed out again. Default: never, or what
    /// `#[derive(Informer)]` says.
    #[doc(alias = "defaultResync")]
    pub fn default_resync(mut self, period: Duration) -> Self {
        self.config.resync_period = Some(period);
        self
    }

    /// Sets whether informers ask for what exists in streaming lists where the server has them, as
    /// [`ReflectorConfig::streaming_lists`](informer_reflector::ReflectorConfig::streaming_lists) says. Default: yes.
    #[doc(alias = "WatchListClient")]
    pub fn streaming_lists(mut self, wanted: bool) -> Self {
        self.config.only_pages = !wanted;
        self
    }

    /// Sets a function that changes what the informers ask for: selectors, and parameters that only some servers know.
    /// It is called once for each informer, when that is made, and can tell them apart by [`ListTweaks::resource`]. What a
    /// handle asks for [itself](SharedInformerFactory::with_labels) takes the place of what is set here.
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

    /// Returns the factory. It has no informers yet, and asks nothing of the server.
    #[must_use]
    pub fn build(self) -> SharedInformerFactory {
        SharedInformerFactory::with_config(
            self.client,
            self.scope,
            self.namespaces.map(Followed::new),
            self.config,
        )
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
            .field("page_size", &self.page_size)
            .field("backoff", &self.backoff)
            .field("times", &self.times)
            .field("stop_idle_after", &self.stop_idle_after)
            .field("tweak_list_options", &self.tweak_list_options.is_some())
            .finish_non_exhaustive()
    }
}
