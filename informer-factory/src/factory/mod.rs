//! [`SharedInformerFactory`]: one informer per resource and scope, made on first use, started and stopped together or one
//! by one.
//!
//! client-go: `SharedInformerFactory` of informers/factory.go, and its likes for dynamic objects and metadata
//! (dynamic/dynamicinformer, metadata/metadatainformer), which are one here.

mod builder;
mod discovery;
mod dynamic;
mod make;
mod namespaces;
mod registry;
mod report;
mod scope;
mod stop;
mod times;
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

/// Makes informers and shares them: whoever asks for the same resource gets the same informer, so that a process has
/// one watch and one copy of it. Cloning gives another handle on the same factory.
///
/// There is one informer for each resource, scope and form. The scope is the handle's: that of the factory, or another
/// one from [`in_namespace`](Self::in_namespace), [`with_labels`](Self::with_labels) and the like. The form is the type
/// of the objects: whole, a slim view, [metadata](Self::metadata), or [dynamic](Self::dynamic).
///
/// Informers run until they are [stopped](Self::stop), or [all](Self::shutdown) are, or the last handle on the factory
/// is dropped; and on request until nobody has used them [for a while](FactoryBuilder::stop_idle_after).
///
/// ```no_run
/// # async fn run(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
/// use informer_factory::SharedInformerFactory;
/// use k8s_openapi::api::core::v1::Pod;
///
/// let factory = SharedInformerFactory::builder(client).namespace("default").build();
/// let pods = factory.core().v1().pods();
/// let by_node = pods.add_index("node", |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone()))?;
/// let handler = pods.add_handlers(|handlers| handlers.on_delete(|pod| println!("{} is gone", pod.key())));
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
    /// What this handle asks for.
    scope: Scope,
}

struct Inner {
    client: Client,
    config: builder::FactoryConfig,
    /// The namespaces that it follows one by one, if it does.
    followed: Option<Followed>,
    /// What the informers know together about the server.
    server: SharedServer,
    discovery: Discovery,
    informers: Registry,
    tasks: TaskTracker,
    /// Where informers run, since the first start. Held by who starts informers and by who stops them all: none is
    /// started once they have been told to stop.
    starting: Mutex<Option<Handle>>,
    shutdown: CancellationToken,
    /// Stops the informers when the factory is dropped.
    _stop: DropGuard,
}

impl SharedInformerFactory {
    /// Returns a factory for all namespaces, with the defaults.
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

    /// Returns the informer of a resource, made on first use. It stays empty until [`start`](Self::start); after
    /// [`shutdown`](Self::shutdown), a new one has stopped before it began. One that has ended by itself, because its source
    /// or a hook of the reflector panicked, is replaced by a new one here, which the next `start` starts.
    ///
    /// Any type that kube can list will do: k8s-openapi's, a custom resource, or a slim view of either, which is an
    /// informer of its own.
    #[doc(alias = "InformerFor")]
    #[must_use]
    pub fn informer<K>(&self) -> SharedIndexInformer<K>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
        K::Scope: InformerScope,
    {
        self.informer_with(|list_watch, options| SharedIndexInformer::new(Arc::new(list_watch), options))
    }

    /// Returns the informer of a resource as [`informer`](Self::informer) does, but lets `make` make it on first use: from
    /// another source, with a selector, with other options, or with indices and handlers that are to be there from the
    /// start. `make` is given what the factory would use itself.
    ///
    /// Whoever asks first settles what everybody gets: `make` is not called where there is an informer already. It is
    /// called with no lock held, so where two ask at the same time, what one of them has made is dropped.
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
        make: impl FnOnce(KubeListWatch<K>, InformerOptions<K>) -> (SharedIndexInformer<K>, InformerTask<K>),
    ) -> SharedIndexInformer<K>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
        K::Scope: InformerScope,
    {
        self.shared(None, K::Scope::is_namespaced(), &(), make)
    }

    /// Starts the informers that have not been started yet; to be called again after others were asked for. Does
    /// nothing after [`shutdown`](Self::shutdown).
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

    /// Returns how each informer fares, in the order of their descriptions.
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
