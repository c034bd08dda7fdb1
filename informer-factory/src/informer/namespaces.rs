//! An informer of several namespaces, which can be added and removed while it runs.
//!
//! client-go has no counterpart: it needs an informer for each namespace, or permissions for all
//! namespaces.

use std::sync::Arc;

use informer_core::{AnyObject, Completion, DeltaFifo, InNamespace, ListerWatcher, any_in_namespace};
use informer_store::store;
use kube::Resource;
use tokio_util::sync::CancellationToken;

use super::{InformerOptions, InformerTask, Shared, SharedIndexInformer};
use crate::namespaces::NamespaceWatch;
use crate::source::{self, NamespaceError, Namespaces, Source};

impl<K: Resource + Send + Sync + 'static> SharedIndexInformer<K> {
    /// Returns an informer of several namespaces, which can be [added](Self::add_namespace) and
    /// [removed](Self::remove_namespace) at any time, and the task that runs it. Each time a
    /// namespace is added, `make` is called and returns the source of this namespace only.
    ///
    /// The informer has one store, one set of indexes and one set of handlers for all namespaces.
    /// It differs from other informers in these points:
    ///
    /// - It is [synced](Self::synced) when it has listed all namespaces that it had at the start of
    ///   its task, except namespaces that the server refuses. If the server refuses all of them,
    ///   the informer is not synced. A namespace that is added later has its own [`Completion`],
    ///   and its objects are not part of the initial list.
    /// - Each namespace has its own watermark, the resource version that the store has reached for
    ///   it; see [`Indexer::watermarks`](informer_store::Indexer::watermarks).
    ///   [`watermark`](Self::watermark) returns the lowest of them, and an empty version until all
    ///   namespaces, even refused ones, have been listed.
    /// - [`wait_until`](Self::wait_until) waits for all namespaces, even refused ones, and
    ///   [`wait_for_write`](Self::wait_for_write) for the namespace of the written object.
    /// - A namespace that the server refuses, or whose requests fail, does not delay the others.
    ///   [`status`](Self::status) reports the status of each namespace.
    /// - When a namespace is removed, its objects leave the store. Handlers receive them as
    ///   [released](informer_core::Event::Released) and not as deleted, because the objects can
    ///   still exist on the server.
    ///
    /// ```no_run
    /// # async fn run(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use std::sync::Arc;
    /// use informer_factory::informer_reflector::KubeListWatch;
    /// use informer_factory::{InformerOptions, SharedIndexInformer};
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let make = move |namespace: &str| {
    ///     Arc::new(KubeListWatch::<Pod>::namespaced(client.clone(), namespace)) as Arc<_>
    /// };
    /// let (pods, task) = SharedIndexInformer::new_in_namespaces(make, ["shop"], InformerOptions::new())?;
    /// tokio::spawn(task.run(tokio_util::sync::CancellationToken::new()));
    /// pods.add_namespace("payments")?.wait().await?;
    /// pods.remove_namespace("shop")?.wait().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`NamespaceError::InvalidName`] if one of `namespaces` is not a valid name.
    pub fn new_in_namespaces<N: Into<String>>(
        make: impl Fn(&str) -> Arc<dyn ListerWatcher<K>> + Send + Sync + 'static,
        namespaces: impl IntoIterator<Item = N>,
        options: InformerOptions<K>,
    ) -> Result<(Self, InformerTask), NamespaceError> {
        let make = any_in_namespace(Box::new(make));
        let names: Vec<String> = namespaces.into_iter().map(Into::into).collect();
        let (shared, task) = Shared::in_namespaces(make, &names, options.cast())?;
        Ok((Self::of(shared), task))
    }
}

impl<K> SharedIndexInformer<K> {
    /// Adds a namespace, at any time. Returns a [`Completion`] that is set when the namespace's
    /// first list is in the store. The completion is cancelled if the namespace is removed or the
    /// informer stops before that. If the namespace is already watched, this method returns the
    /// completion of the call that added the namespace.
    ///
    /// A namespace can be added again while it is being removed. For each object, handlers then
    /// receive [`on_release`](informer_core::EventHandler::on_release), and `on_add` when the
    /// object is listed again.
    ///
    /// # Errors
    /// - [`NamespaceError::Fixed`] if the informer was created for one namespace or for all. To
    ///   create an informer whose namespaces can change, use
    ///   [`new_in_namespaces`](Self::new_in_namespaces) or
    ///   [`FactoryBuilder::namespaces`](crate::FactoryBuilder::namespaces).
    /// - [`NamespaceError::InvalidName`] for an invalid name.
    pub fn add_namespace(&self, namespace: &str) -> Result<Completion, NamespaceError> {
        self.namespace_set()?.add(namespace)
    }

    /// Removes a namespace, at any time. Its objects leave the store, and handlers receive each as
    /// [released](informer_core::EventHandler::on_release), not as deleted.
    ///
    /// Returns a [`Completion`] that is set when the namespace's reflector has ended and the store
    /// has no object of the namespace. Handlers can receive the releases later. If the namespace is
    /// not watched, returns the completion of an earlier removal that is still in progress, or a
    /// completion that is already set. The completion is cancelled if the informer stops first, or
    /// has stopped.
    ///
    /// # Errors
    /// - [`NamespaceError::Fixed`] if the informer was created for one namespace or for all.
    /// - [`NamespaceError::InvalidName`] for an invalid name.
    pub fn remove_namespace(&self, namespace: &str) -> Result<Completion, NamespaceError> {
        self.namespace_set()?.remove(namespace)
    }

    /// Returns the current namespaces of an informer to which namespaces can be
    /// [added](Self::add_namespace), sorted by name. Empty for other informers.
    ///
    /// With this list, a reconciler can distinguish a deleted object from an object of a removed
    /// namespace.
    #[must_use]
    pub fn namespaces(&self) -> Vec<String> {
        match self.shared.source.as_ref() {
            Source::Namespaces(namespaces) => namespaces.names(),
            Source::Whole(_) => Vec::new(),
        }
    }

    /// Returns the changing set of namespaces, or [`NamespaceError::Fixed`] if the informer was
    /// created for one namespace or for all.
    pub(crate) fn namespace_set(&self) -> Result<&Namespaces<AnyObject>, NamespaceError> {
        match self.shared.source.as_ref() {
            Source::Namespaces(namespaces) => Ok(namespaces),
            Source::Whole(_) => {
                Err(NamespaceError::Fixed { resource: self.shared.status.description().to_owned() })
            }
        }
    }
}

impl<K> SharedIndexInformer<K> {
    pub(crate) fn namespace_watch(&self, namespace: &str) -> NamespaceWatch {
        match self.shared.source.as_ref() {
            Source::Namespaces(namespaces) => namespaces.namespace_watch(namespace),
            // The scope of the source is unknown. But if the store has an object of the namespace,
            // the informer watches the namespace.
            Source::Whole(_) if self.shared.indexer.in_namespace(namespace).is_empty() => {
                NamespaceWatch::Unrecorded
            }
            Source::Whole(_) => NamespaceWatch::Watched { removed: CancellationToken::new() },
        }
    }
}

impl Shared {
    fn in_namespaces(
        make: InNamespace<AnyObject>,
        names: &[String],
        options: InformerOptions<AnyObject>,
    ) -> Result<(Arc<Self>, InformerTask), NamespaceError> {
        let (writer, indexer) = store();
        let queue = DeltaFifo::with_known_objects(Arc::new(indexer));
        let reflector = (options.reflector.clone(), options.ingest.clone());
        let namespaces = Namespaces::new(make, names, queue.clone(), reflector)?;
        Ok(Self::assemble(writer, queue, source::of_namespaces(namespaces), options))
    }
}
