//! [`SharedInformerFactory`]: one informer per resource, scope and form, created on first use.
//!
//! client-go: `SharedInformerFactory` of informers/factory.go, and the factories for dynamic
//! objects and metadata (dynamic/dynamicinformer, metadata/metadatainformer), in one type.

mod builder;
mod discovery;
mod dynamic;
mod make;
mod namespaces;
mod registry;
mod report;
mod scope;
mod stop;
mod type_options;
mod wait;

use std::fmt;
use std::sync::Arc;

use informer_reflector::{KubeListWatch, SharedServer};
use kube::{Client, Resource};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::runtime::Handle;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::{InformerOptions, InformerTask, SharedIndexInformer};
use discovery::Discovery;
use namespaces::Followed;
use registry::{Entry, Registry};
use scope::Scope;

pub use builder::FactoryBuilder;
pub use discovery::ForResourceError;
pub use dynamic::{DynamicInformers, MetadataInformers};
pub use report::InformerReport;
pub use scope::InformerScope;
pub use type_options::TypeOptions;

/// Creates and shares informers: all requests for the same resource return the same informer, so
/// that a process has one watch and one copy of it. Clones are handles of the same factory.
///
/// There is one informer per resource, scope and form. The scope belongs to the handle: the
/// factory's own, or another one from [`in_namespace`](Self::in_namespace),
/// [`with_labels`](Self::with_labels) and similar methods. The form is the type of the objects:
/// whole objects, slim views, [metadata](Self::metadata), or [dynamic objects](Self::dynamic).
///
/// An informer runs until it is [stopped](Self::stop), the factory is [shut down](Self::shutdown),
/// or the last handle of the factory is dropped. With
/// [`stop_idle_after`](FactoryBuilder::stop_idle_after), unused informers stop too.
///
/// ```no_run
/// # async fn run(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
/// use informer_factory::SharedInformerFactory;
/// use k8s_openapi::api::core::v1::Pod;
///
/// let factory = SharedInformerFactory::new(client).in_namespace("default");
/// let pods = factory.core().v1().pods();
/// let by_node = pods.add_index("node", |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone()))?;
/// let handler = pods.add_handlers(|handlers| handlers.on_delete(|pod| println!("- {}", pod.key())));
/// factory.start();
/// factory.wait_for_cache_sync().await?;
/// for pod in by_node.get("node-1") {
///     println!("{}", pod.key());
/// }
/// factory.shutdown().await;
/// # drop(handler);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SharedInformerFactory {
    inner: Arc<Inner>,
    /// The scope of this handle.
    scope: Scope,
}

struct Inner {
    client: Client,
    config: builder::FactoryConfig,
    /// The changing set of namespaces, if the factory has one.
    followed: Option<Followed>,
    /// The knowledge about the server that the informers share.
    server: SharedServer,
    discovery: Discovery,
    informers: Registry,
    tasks: TaskTracker,
    /// The runtime of the informers, since the first start. Starting and shutting down hold this
    /// lock, so that no informer starts after the shutdown.
    starting: Mutex<Option<Handle>>,
    shutdown: CancellationToken,
    /// Stops the informers when the factory is dropped.
    _stop: DropGuard,
}

impl SharedInformerFactory {
    /// Returns a factory for all namespaces with default settings.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self::builder(client).build()
    }

    /// Returns a builder for a factory.
    pub fn builder(client: Client) -> FactoryBuilder {
        FactoryBuilder::new(client)
    }

    fn with_config(
        client: Client,
        scope: Scope,
        followed: Option<Followed>,
        config: builder::FactoryConfig,
    ) -> Self {
        let shutdown = CancellationToken::new();
        let inner = Inner {
            client,
            config,
            followed,
            server: SharedServer::new(),
            discovery: Discovery::default(),
            informers: Registry::new(),
            tasks: TaskTracker::new(),
            starting: Mutex::new(None),
            _stop: shutdown.clone().drop_guard(),
            shutdown,
        };
        Self { inner: Arc::new(inner), scope }
    }

    /// Returns the informer of a resource and creates it on first use. It stays empty until
    /// [`start`](Self::start). After [`shutdown`](Self::shutdown), a new informer is already
    /// stopped. An informer that stopped because its source or a hook of the reflector panicked is
    /// replaced by a new one, which the next `start` starts.
    ///
    /// `K` is any type that kube can list: a type of k8s-openapi, a custom resource, or a slim view
    /// of either. A slim view is an informer of its own.
    #[doc(alias = "InformerFor")]
    #[must_use]
    pub fn informer<K>(&self) -> SharedIndexInformer<K>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
        K::Scope: InformerScope,
    {
        self.informer_with(|list_watch, options| {
            SharedIndexInformer::over(Arc::new(list_watch.cast()), options)
        })
    }

    /// Returns the informer of a resource like [`informer`](Self::informer), but calls `make` to
    /// create it: from another source, with a selector, with other options, or with indexes and
    /// handlers from the start. `make` receives the source and the options that the factory would
    /// use.
    ///
    /// `make` is not called if the informer exists. It is called without a lock; of two informers
    /// that are created at the same time, one is dropped.
    ///
    /// ```no_run
    /// # fn run(factory: &informer_factory::SharedInformerFactory) {
    /// use std::sync::Arc;
    /// use informer_factory::SharedIndexInformer;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let web = factory.informer_with::<Pod>(|list_watch, options| {
    ///     SharedIndexInformer::new(Arc::new(list_watch.label_selector("app=web")), options)
    /// });
    /// # drop(web);
    /// # }
    /// ```
    #[doc(alias = "InformerFor")]
    #[must_use]
    pub fn informer_with<K>(
        &self,
        make: impl FnOnce(KubeListWatch<K>, InformerOptions<K>) -> (SharedIndexInformer<K>, InformerTask),
    ) -> SharedIndexInformer<K>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
        K::Scope: InformerScope,
    {
        self.shared(None, K::Scope::is_namespaced(), &(), make)
    }

    /// Starts all informers that are not started. Call it again after further informers were
    /// requested. It does nothing after [`shutdown`](Self::shutdown).
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start(&self) {
        let mut starting = self.inner.starting.lock();
        if self.inner.shutdown.is_cancelled() {
            return;
        }
        let here = Handle::current();
        let is_first = starting.is_none();
        let runtime = starting.get_or_insert_with(|| here.clone());
        if let Some(period) = self.inner.config.stop_idle_after.filter(|_| is_first) {
            let factory = Arc::downgrade(&self.inner);
            let watch = stop::stop_idle_informers(factory, period, self.inner.shutdown.clone());
            self.inner.tasks.spawn_on(watch, runtime);
        }
        for entry in &self.inner.informers {
            if let Some(run) = entry.start(&self.inner.shutdown) {
                self.inner.tasks.spawn_on(run, &here);
            }
        }
    }

    /// Returns the status of each informer, ordered by description.
    ///
    /// ```no_run
    /// # fn show(factory: &informer_factory::SharedInformerFactory) {
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let informers = factory.informers();
    /// let pods_are_there = informers.iter().filter(|it| it.is_of::<Pod>()).all(|it| it.has_synced);
    /// for informer in &informers {
    ///     println!("{informer}");
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn informers(&self) -> Vec<InformerReport> {
        let mut reports: Vec<_> = self.inner.informers.iter().map(|entry| entry.report()).collect();
        reports.sort_unstable_by(|a, b| (&a.description, a.object).cmp(&(&b.description, b.object)));
        reports
    }
}

impl fmt::Debug for SharedInformerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let informers: Vec<_> = self.informers().iter().map(ToString::to_string).collect();
        f.debug_struct("SharedInformerFactory")
            .field("name", &self.inner.config.name)
            .field("scope", &self.scope)
            .field("informers", &informers)
            .finish_non_exhaustive()
    }
}
