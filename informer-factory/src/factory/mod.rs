//! [`SharedInformerFactory`]: one informer per resource, scope and object type, created on first
//! use.
//!
//! client-go: `SharedInformerFactory` of informers/factory.go, and the factories for dynamic
//! objects and metadata (dynamic/dynamicinformer, metadata/metadatainformer), in one type.

mod builder;
mod discovery;
mod dynamic;
mod health;
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
use parking_lot::{Mutex, MutexGuard};
use serde::de::DeserializeOwned;
use tokio::runtime::Handle;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::{InformerOptions, InformerTask, SharedIndexInformer};
use discovery::Discovery;
use namespaces::WatchedNamespaces;
use registry::{Entry, Registry};
use scope::Scope;

pub use builder::FactoryBuilder;
pub use discovery::ForResourceError;
pub use dynamic::{DynamicInformers, MetadataInformers};
pub use health::FactoryHealth;
pub use report::InformerReport;
pub use scope::InformerScope;
pub use type_options::TypeOptions;

/// Creates and shares informers: all requests for the same resource, scope and object type return
/// the same informer, so that handlers share its watch and its copy of the objects. Clones are
/// handles of the same factory.
///
/// The scope belongs to the handle: [`in_namespace`](Self::in_namespace),
/// [`with_labels`](Self::with_labels) and similar methods return a handle with another scope. The
/// objects can be whole objects, slim views (structs with some of the fields),
/// [metadata](Self::metadata), or [dynamic objects](Self::dynamic).
///
/// An informer runs until it is [stopped](Self::stop), the factory is [shut down](Self::shutdown),
/// or the last handle of the factory is dropped. With
/// [`stop_idle_after`](FactoryBuilder::stop_idle_after), the factory also stops unused informers.
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
    /// The namespaces and selectors of the informers that are requested from this handle.
    scope: Scope,
}

struct Inner {
    client: Client,
    config: builder::FactoryConfig,
    /// The namespaces that the informers watch, each with its own watch. `None` if the factory was
    /// built without [`namespaces`](FactoryBuilder::namespaces).
    watched_namespaces: Option<WatchedNamespaces>,
    server: SharedServer,
    discovery: Discovery,
    informers: Registry,
    tasks: TaskTracker,
    /// The tokio runtime of the first [`start`](SharedInformerFactory::start) call. Locked while
    /// informers are marked as started, and not while their tasks are spawned. A shutdown cancels
    /// `shutdown`, and then locks this mutex to wait for a start that has not seen it.
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

    /// Returns the informer of a resource. Creates it on first use, and again after the informer
    /// was [stopped](Self::stop) or its task panicked. A new informer stays empty until the next
    /// [`start`](Self::start). With [`stop_idle_after`](FactoryBuilder::stop_idle_after), it starts
    /// at once if `start` was called before. After [`shutdown`](Self::shutdown), a new informer is
    /// already stopped.
    ///
    /// `K` is any type that kube can list: a type of k8s-openapi, a custom resource, or a slim view
    /// of either. Each type has its own informer, even for the same resource.
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
    /// create the informer. So `make` can use another source, a selector or other options, and can
    /// add indexes and handlers before the informer starts. `make` receives the source and the
    /// options that the factory would use.
    ///
    /// `make` is not called if the informer exists. Two threads can call `make` for the same
    /// informer at the same time; one of the two results is then dropped.
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

    /// Starts all informers that are not started. Call this method again after you have requested
    /// more informers. After [`shutdown`](Self::shutdown), it does nothing.
    ///
    /// # Panics
    /// If called outside a tokio runtime.
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
            let checks = stop::stop_idle_informers(factory, period, self.inner.shutdown.clone());
            self.inner.tasks.spawn_on(checks, runtime);
        }
        self.start_unstarted(starting, &here);
    }

    /// Starts all informers that are not started, on `runtime`. `starting` is the guard of
    /// [`Inner::starting`].
    fn start_unstarted(&self, starting: MutexGuard<'_, Option<Handle>>, runtime: &Handle) {
        let Inner { informers, tasks, .. } = self.inner.as_ref();
        let started: Vec<_> = informers.iter().filter_map(|entry| entry.start()).collect();
        // A shutdown waits for this token, and thereby for tasks that are spawned after its begin.
        let _spawning = tasks.token();
        // I8: a runtime that has ended drops a task at once, which can drop handlers.
        drop(starting);
        for run in started {
            tasks.spawn_on(run, runtime);
        }
    }

    /// Returns the status of each informer, ordered by description, and then by the creation of the
    /// informers. [`health`](Self::health) returns only the informers with a problem.
    ///
    /// ```no_run
    /// # fn show(factory: &informer_factory::SharedInformerFactory) {
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let informers = factory.informers();
    /// let pods_are_synced = informers.iter().filter(|it| it.is_of::<Pod>()).all(|it| it.has_synced);
    /// for informer in &informers {
    ///     println!("{informer}");
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn informers(&self) -> Vec<InformerReport> {
        // I8: the reports are created after the registry is unlocked.
        let reporters: Vec<_> = self.inner.informers.iter().map(|entry| entry.reporter()).collect();
        let mut reports: Vec<_> = reporters.into_iter().map(|report| report()).collect();
        reports.sort_unstable_by(|a, b| (&a.description, a.number).cmp(&(&b.description, b.number)));
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
