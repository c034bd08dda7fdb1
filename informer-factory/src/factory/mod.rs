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

use crate::{InformerOptions, SharedIndexInformer};
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
    #[expect(clippy::missing_panics_doc, reason = "the key has the type in it, so the entry is of that type")]
    pub fn informer<K>(&self) -> SharedIndexInformer<K>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
        K::Scope: InformerScope,
    {
        let namespace = K::Scope::namespace(self.inner.config.namespace.as_deref());
        let key = InformerKey { object: TypeId::of::<K>(), namespace: namespace.map(str::to_owned) };
        let entry = self.inner.informers.entry(key).or_insert_with(|| self.make::<K>(namespace));
        let informer = entry.informer().expect("an informer is registered under the type of its objects");
        let never_to_run = self.inner.shutdown.is_cancelled().then(|| entry.take_task());
        // I8: handlers may go with it, so it goes when the registry is free again.
        drop(entry);
        drop(never_to_run);
        informer
    }

    fn make<K>(&self, namespace: Option<&str>) -> Entry
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
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
        let (informer, task) = SharedIndexInformer::new(Arc::new(lister_watcher), options);
        Entry::new(informer, task)
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
