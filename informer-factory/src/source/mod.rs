//! The source of an informer's objects: one reflector, or one for each namespace.
//!
//! If each namespace has its own reflector, each reflector has a feed: its input to the informer's
//! queue.

mod namespace_error;
mod namespaces;
mod status;

use std::fmt;
use std::sync::{Arc, OnceLock};

use informer_core::{DeltaFifo, FeedId, InNamespace, ListerWatcher};
use informer_reflector::{Ingest, Reflector, ReflectorConfig, ReflectorStatus, RelistHandle};
use tokio_util::sync::CancellationToken;

pub use namespace_error::NamespaceError;
pub(crate) use namespaces::Namespaces;
use namespaces::NamespacesTask;
pub use status::SourceStatus;

pub(crate) enum Source<K: 'static> {
    Whole(Part<K>),
    Namespaces(Arc<Namespaces<K>>),
}

/// Handles to one reflector of a [`Source`].
pub(crate) struct Part<K> {
    /// The namespace of this reflector, and the ID of its feed. `None` if the informer has one
    /// reflector for all objects.
    pub(crate) namespace: Option<(Arc<str>, FeedId)>,
    pub(crate) lister_watcher: Arc<dyn ListerWatcher<K>>,
    pub(crate) status: ReflectorStatus,
    pub(crate) relist: RelistHandle,
}

/// The reflectors of an informer, ready to run. They add changes to the informer's queue.
pub(crate) enum SourceTask<K: 'static> {
    Whole(Box<Reflector<K>>),
    Namespaces(NamespacesTask<K>),
}

/// Creates a source with one reflector, which adds changes to `queue`. The [`SourceTask`] runs the
/// reflector.
pub(crate) fn whole<K: Send + Sync + 'static>(
    lister_watcher: Arc<dyn ListerWatcher<K>>,
    queue: &DeltaFifo<K>,
    (config, ingest): (ReflectorConfig, Ingest),
) -> (Source<K>, SourceTask<K>) {
    let reflector =
        Reflector::with_ingest(Arc::clone(&lister_watcher), Arc::new(queue.clone()), config, ingest);
    let (status, relist) = (reflector.status(), reflector.relist());
    let part = Part { namespace: None, lister_watcher, status, relist };
    (Source::Whole(part), SourceTask::Whole(Box::new(reflector)))
}

/// Creates a source whose set of namespaces is still empty. Each namespace that the program adds
/// gets its own reflector.
///
/// `all` is a [`ListerWatcher`] of all namespaces. It lists and watches nothing here: it only
/// supplies the name of the resource and the description of the source.
pub(crate) fn divided<K: Send + Sync + 'static>(
    make: InNamespace<K>,
    all: &dyn ListerWatcher<K>,
    queue: &DeltaFifo<K>,
    reflector: (ReflectorConfig, Ingest),
) -> (Source<K>, SourceTask<K>) {
    let resource = OnceLock::from(Arc::<str>::from(all.resource()));
    of_namespaces(Namespaces::of(all.description().into(), resource, make, queue.clone(), reflector))
}

/// Creates a source with one reflector for each namespace in `namespaces`. Namespaces can be added
/// and removed later. The [`SourceTask`] runs the reflectors.
pub(crate) fn of_namespaces<K: Send + Sync + 'static>(
    namespaces: Namespaces<K>,
) -> (Source<K>, SourceTask<K>) {
    let namespaces = Arc::new(namespaces);
    let task = NamespacesTask { namespaces: Arc::clone(&namespaces) };
    (Source::Namespaces(namespaces), SourceTask::Namespaces(task))
}

impl<K: Send + Sync + 'static> Source<K> {
    pub(crate) fn status(&self) -> SourceStatus {
        match self {
            Self::Whole(part) => SourceStatus::whole(part.status.clone()),
            Self::Namespaces(namespaces) => namespaces.status(),
        }
    }

    /// Returns the name of the resource, such as `deployments.apps`. For an exception, see
    /// [`Namespaces::resource`].
    pub(crate) fn resource(&self) -> &str {
        match self {
            Self::Whole(part) => part.lister_watcher.resource(),
            Self::Namespaces(namespaces) => namespaces.resource(),
        }
    }

    /// Returns whether the informer still has the reflector `part`: its namespace was not removed.
    /// `false` after a removal, even if the namespace was added again, with another reflector.
    pub(crate) fn has(&self, part: &Part<K>) -> bool {
        // A namespace that is removed and added again gets a feed with another ID.
        self.parts().iter().any(|current| current.namespace == part.namespace)
    }

    pub(crate) fn parts(&self) -> Vec<Part<K>> {
        match self {
            Self::Whole(part) => vec![part.clone()],
            Self::Namespaces(namespaces) => namespaces.parts(),
        }
    }
}

impl<K: Send + Sync + 'static> SourceTask<K> {
    pub(crate) fn status(&self) -> SourceStatus {
        match self {
            Self::Whole(reflector) => SourceStatus::whole(reflector.status()),
            Self::Namespaces(task) => task.namespaces.status(),
        }
    }

    /// Runs the reflectors until `shutdown`. The informer's initial list consists of the lists of
    /// all namespaces that were added before this call.
    ///
    /// # Cancel safety
    /// Dropping the future stops the work. Queued changes stay queued.
    pub(crate) fn run(self, shutdown: CancellationToken) -> impl Future<Output = ()> + Send + 'static {
        if let Self::Namespaces(task) = &self {
            // Before the first poll, so that later namespaces do not belong to the initial list.
            task.begin();
        }
        async move {
            match self {
                Self::Whole(reflector) => reflector.run(shutdown).await,
                Self::Namespaces(task) => task.run(shutdown).await,
            }
        }
    }
}

impl<K: 'static> fmt::Debug for SourceTask<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(reflector) => reflector.fmt(f),
            Self::Namespaces(task) => task.namespaces.status().fmt(f),
        }
    }
}

impl<K: 'static> Part<K> {
    /// Returns the description of `lister_watcher` without the namespace. For example,
    /// `pods in namespace "shop" with labels "app=web"` becomes `pods with labels "app=web"`.
    ///
    /// If the description does not contain the text ` in namespace "…"`, returns only the name of
    /// the resource.
    fn description_without_namespace(&self) -> Arc<str> {
        let (source, namespace) = (&self.lister_watcher, self.namespace.as_ref());
        let scope = namespace.map(|(name, _)| format!(" in namespace \"{name}\"")).unwrap_or_default();
        match source.description().split_once(&scope) {
            Some((resource, selectors)) => format!("{resource}{selectors}").into(),
            None => source.resource().into(),
        }
    }
}

impl<K> Clone for Part<K> {
    fn clone(&self) -> Self {
        Self {
            namespace: self.namespace.clone(),
            lister_watcher: Arc::clone(&self.lister_watcher),
            status: self.status.clone(),
            relist: self.relist.clone(),
        }
    }
}
