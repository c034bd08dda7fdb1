//! An informer of several namespaces, which can be added and removed while it runs.
//!
//! It has one queue, one store with its indexes, and one set of handlers; each namespace has its
//! own reflector. client-go has no counterpart: it needs an informer for each namespace, or
//! permissions for all namespaces.

use std::sync::Arc;

use informer_core::{Completion, DeltaFifo, ListerWatcher};
use informer_store::store;
use kube::Resource;

use super::{InformerOptions, InformerTask, SharedIndexInformer};
use crate::Following;
use crate::source::{self, NamespaceError, Source};

impl<K: Resource + Send + Sync + 'static> SharedIndexInformer<K> {
    /// Returns an informer of several namespaces, which can be [added](Self::add_namespace) and
    /// [removed](Self::remove_namespace) at any time, and the task that makes it live. `make` makes
    /// what lists and watches a namespace, and nothing but that namespace; it is called once each
    /// time that one is added.
    ///
    /// It is one informer, with one store, one lister, one set of indexes and of handlers. It
    /// differs in this:
    ///
    /// - It is [synced](Self::synced) when the namespaces are that it has when its task is run,
    ///   without those that the server refuses. One that comes later has a promise of its own, and
    ///   its objects are not in the initial list.
    /// - Each namespace is at a resource version of its own (I9):
    ///   [`Indexer::watermarks`](informer_store::Indexer::watermarks).
    ///   [`watermark`](Self::watermark) is the least of them, and empty as long as one has not been
    ///   listed.
    /// - [`wait_until`](Self::wait_until) waits for all of them;
    ///   [`wait_for_write`](Self::wait_for_write) for that of the object.
    /// - One namespace that is refused or fails holds up none of the others;
    ///   [`status`](Self::status) has each.
    /// - Objects of a namespace that is removed are [released](informer_core::Event::Released), not
    ///   deleted.
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
    /// [`NamespaceError::InvalidName`] if one of `namespaces` can't be the name of a namespace.
    pub fn new_in_namespaces<N: Into<String>>(
        make: impl Fn(&str) -> Arc<dyn ListerWatcher<K>> + Send + Sync + 'static,
        namespaces: impl IntoIterator<Item = N>,
        options: InformerOptions<K>,
    ) -> Result<(Self, InformerTask<K>), NamespaceError> {
        let (writer, indexer) = store::<K>();
        let queue = DeltaFifo::with_known_objects(Arc::new(indexer));
        let names: Vec<String> = namespaces.into_iter().map(Into::into).collect();
        let InformerOptions { resync_period, verify_period, reflector, ingest } = options;
        let made = source::namespaces(Box::new(make), &names, &queue, (reflector, ingest))?;
        Ok(Self::assemble(writer, queue, made, resync_period, verify_period))
    }

    /// Follows one more namespace, at any time. Returns the promise that its first list is in the
    /// store; it is given up if the namespace is removed before, or the informer stops. For one
    /// that is followed already it is the promise from then.
    ///
    /// A namespace that is just being removed can be added again at once: its objects are released,
    /// and come back as they are listed anew.
    ///
    /// # Errors
    /// [`NamespaceError::Fixed`] for an informer that was not made [for
    /// this](Self::new_in_namespaces), [`NamespaceError::InvalidName`] if no namespace can have
    /// that name.
    pub fn add_namespace(&self, namespace: &str) -> Result<Completion, NamespaceError> {
        match self.shared.source.as_ref() {
            Source::Namespaces(namespaces) => namespaces.add(namespace),
            Source::Whole(_) => Err(self.fixed()),
        }
    }

    /// Removes a namespace, at any time. Its objects leave the store, and handlers receive each as
    /// [released](informer_core::EventHandler::on_release), not as deleted.
    ///
    /// Returns a [`Completion`] that is set when its reflector has ended and the store has none of
    /// its objects. Each handler receives the releases at its own pace. The completion is set at
    /// once if the namespace is not watched, and given up if the informer stops before.
    ///
    /// # Errors
    /// As [`add_namespace`](Self::add_namespace).
    pub fn remove_namespace(&self, namespace: &str) -> Result<Completion, NamespaceError> {
        match self.shared.source.as_ref() {
            Source::Namespaces(namespaces) => namespaces.remove(namespace),
            Source::Whole(_) => Err(self.fixed()),
        }
    }

    /// Returns the namespaces that are followed one by one, in the order of their names; none for
    /// an informer that was not made [for this](Self::new_in_namespaces).
    ///
    /// A reconciler can use this to distinguish a deleted object from one of a removed namespace.
    #[must_use]
    pub fn namespaces(&self) -> Vec<String> {
        match self.shared.source.as_ref() {
            Source::Namespaces(namespaces) => namespaces.names(),
            Source::Whole(_) => Vec::new(),
        }
    }

    fn fixed(&self) -> NamespaceError {
        NamespaceError::Fixed { resource: self.shared.status.description().to_owned() }
    }
}

impl<K: Send + Sync + 'static> SharedIndexInformer<K> {
    pub(crate) fn following(&self, namespace: &str) -> Following {
        match self.shared.source.as_ref() {
            Source::Namespaces(namespaces) => namespaces.following(namespace),
            Source::Whole(_) => Following::Fixed,
        }
    }
}
