//! [`SharedInformerFactory`]: one informer per resource and scope, made on first use, started and stopped together.
//!
//! client-go: `SharedInformerFactory` of informers/factory.go.

mod builder;
mod registry;
mod scope;
mod wait;

use std::any::TypeId;
use std::fmt;
use std::sync::Arc;

use informer_reflector::{KubeListWatch, ReflectorConfig, SharedServer};
use kube::{Client, Resource};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::{InformerOptions, InformerTask, SharedIndexInformer};
pub use builder::FactoryBuilder;
use registry::{Entry, InformerKey, Registry};
pub use scope::InformerScope;

/// Makes informers and shares them: whoever asks for the same resource gets the same informer, so that a process has
/// one watch and one copy of it. Cloning gives another handle on the same factory.
///
/// Informers run until [`shutdown`](Self::shutdown), or until the last handle on the factory is dropped.
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
}

struct Inner {
    client: Client,
    config: builder::FactoryConfig,
    /// What the informers know together about the server.
    server: SharedServer,
    informers: Registry,
    tasks: TaskTracker,
    /// Held by who starts informers and by who stops them: none is started once all have been told to stop.
    starting: Mutex<()>,
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

    fn with_config(client: Client, config: builder::FactoryConfig) -> Self {
        let shutdown = CancellationToken::new();
        let inner = Inner {
            client,
            config,
            server: SharedServer::new(),
            informers: Registry::new(),
            tasks: TaskTracker::new(),
            starting: Mutex::new(()),
            _stop: shutdown.clone().drop_guard(),
            shutdown,
        };
        Self { inner: Arc::new(inner) }
    }

    /// Returns the informer of a resource, made on first use. It stays empty until [`start`](Self::start); after
    /// [`shutdown`](Self::shutdown), a new one has stopped before it began.
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
    #[expect(clippy::missing_panics_doc, reason = "the key has the type in it, so the entry is of that type")]
    pub fn informer_with<K>(
        &self,
        make: impl FnOnce(KubeListWatch<K>, InformerOptions<K>) -> (SharedIndexInformer<K>, InformerTask<K>),
    ) -> SharedIndexInformer<K>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
        K::Scope: InformerScope,
    {
        let namespace = K::Scope::namespace(self.inner.config.namespace.as_deref());
        let key = InformerKey { object: TypeId::of::<K>(), namespace: namespace.map(str::to_owned) };
        let existing = self.inner.informers.get(&key).map(|entry| entry.informer());
        let informer = existing.unwrap_or_else(|| {
            let (list_watch, options) = self.defaults(namespace);
            // I8: with no lock on the registry.
            let (informer, task) = make(list_watch, options);
            self.register(key, Entry::new(informer, task))
        });
        informer.expect("an informer is registered under the type of its objects")
    }

    /// What an informer is made of where nobody says otherwise.
    fn defaults<K>(&self, namespace: Option<&str>) -> (KubeListWatch<K>, InformerOptions<K>)
    where
        K: Resource<DynamicType = ()>,
    {
        let client = self.inner.client.clone();
        let mut lister_watcher = match namespace {
            Some(namespace) => KubeListWatch::<K>::namespaced(client, namespace),
            None => KubeListWatch::<K>::all(client),
        };
        if let Some(tweak) = &self.inner.config.tweak_list_options {
            lister_watcher = lister_watcher.tweak_list_options(|options| tweak(options));
        }
        let reflector = ReflectorConfig::new()
            .server(self.inner.server.clone())
            .streaming_lists(!self.inner.config.only_pages);
        let mut options = InformerOptions::new().reflector(reflector);
        if let Some(period) = self.inner.config.resync_period {
            options = options.resync_period(period);
        }
        (lister_watcher, options)
    }

    /// Puts an informer into the registry, unless somebody else has been quicker; returns the one that is there.
    fn register<K: 'static>(&self, key: InformerKey, new: Entry) -> Option<SharedIndexInformer<K>> {
        let mut new = Some(new);
        let entry = self.inner.informers.entry(key);
        let entry = entry.or_insert_with(|| new.take().expect("this is called but once"));
        let informer = entry.informer();
        let never_to_run = self.inner.shutdown.is_cancelled().then(|| entry.take_task());
        // I8: handlers may go with these, so they go when the registry is free again.
        drop(entry);
        drop((never_to_run, new));
        informer
    }

    /// Starts the informers that have not been started yet; to be called again after others were asked for. Does
    /// nothing after [`shutdown`](Self::shutdown).
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start(&self) {
        let _starting = self.inner.starting.lock();
        if self.inner.shutdown.is_cancelled() {
            return;
        }
        for entry in &self.inner.informers {
            if let Some(run) = entry.take_task() {
                self.inner.tasks.spawn(run(self.inner.shutdown.child_token()));
            }
        }
    }

    /// Stops all informers, those included that have not been started, and waits until nothing of them is left
    /// running. Their stores can still be read.
    ///
    /// # Cancel safety
    /// The informers stop even if the future is dropped.
    pub async fn shutdown(&self) {
        {
            let _starting = self.inner.starting.lock();
            self.inner.shutdown.cancel();
        }
        // I12: nobody goes on waiting for those that will never be started.
        let never_to_run: Vec<_> = self.inner.informers.iter().map(|entry| entry.take_task()).collect();
        drop(never_to_run);
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
    }
}

impl fmt::Debug for SharedInformerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let informers: Vec<_> = self.inner.informers.iter().map(|entry| entry.cache.waiting_for()).collect();
        f.debug_struct("SharedInformerFactory").field("informers", &informers).finish_non_exhaustive()
    }
}
