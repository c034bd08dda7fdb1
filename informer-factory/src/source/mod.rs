//! Where an informer's objects come from: one reflector for all that there is, or one for each namespace.
//!
//! [`Source`] is what others ask about it, [`SourceTask`] the work. What is common to both is behind these two, so that
//! queue, store, handlers and whoever looks at an informer need not know which it is.

mod namespace_error;
mod namespaces;
mod status;

use std::fmt;
use std::sync::Arc;

use informer_core::{DeltaFifo, ListerWatcher};
use informer_reflector::{Ingest, Reflector, ReflectorConfig, ReflectorStatus, RelistHandle};
use kube::Resource;
use tokio_util::sync::CancellationToken;

pub use namespace_error::NamespaceError;
use namespaces::NamespacesTask;
pub(crate) use namespaces::{MakeSource, Namespaces};
pub use status::SourceStatus;

/// Where objects come from.
pub(crate) enum Source<K: 'static> {
    Whole(Part<K>),
    Namespaces(Arc<Namespaces<K>>),
}

/// One reflector, and what it lists and watches.
pub(crate) struct Part<K> {
    /// Which namespace it is for, where each has its own.
    pub(crate) namespace: Option<Arc<str>>,
    pub(crate) lister_watcher: Arc<dyn ListerWatcher<K>>,
    pub(crate) status: ReflectorStatus,
    pub(crate) relist: RelistHandle,
}

/// The work of getting objects into a queue.
pub(crate) enum SourceTask<K: 'static> {
    Whole(Box<Reflector<K>>),
    Namespaces(NamespacesTask<K>),
}

/// Returns the source that one reflector is, and its work.
pub(crate) fn whole<K: Resource + Send + Sync + 'static>(
    lister_watcher: Arc<dyn ListerWatcher<K>>,
    queue: &DeltaFifo<K>,
    (config, ingest): (ReflectorConfig, Ingest<K>),
) -> (Source<K>, SourceTask<K>) {
    let reflector =
        Reflector::new(Arc::clone(&lister_watcher), Arc::new(queue.clone()), config).ingest(ingest);
    let (status, relist) = (reflector.status(), reflector.relist());
    let part = Part { namespace: None, lister_watcher, status, relist };
    (Source::Whole(part), SourceTask::Whole(Box::new(reflector)))
}

/// The same for namespaces that are all added later, of a resource that is known.
pub(crate) fn divided<K: Resource + Send + Sync + 'static>(
    make: MakeSource<K>,
    resource: &str,
    queue: &DeltaFifo<K>,
    (config, ingest): (ReflectorConfig, Ingest<K>),
) -> (Source<K>, SourceTask<K>) {
    of_namespaces(Namespaces::of(resource.into(), make, queue.clone(), (config, ingest)))
}

/// Returns the source that namespaces are which come and go, and its work.
pub(crate) fn namespaces<K: Resource + Send + Sync + 'static>(
    make: MakeSource<K>,
    names: &[String],
    queue: &DeltaFifo<K>,
    (config, ingest): (ReflectorConfig, Ingest<K>),
) -> Result<(Source<K>, SourceTask<K>), NamespaceError> {
    Namespaces::new(make, names, queue.clone(), (config, ingest)).map(of_namespaces)
}

fn of_namespaces<K: Resource + Send + Sync + 'static>(
    namespaces: Namespaces<K>,
) -> (Source<K>, SourceTask<K>) {
    let namespaces = Arc::new(namespaces);
    let task = NamespacesTask::new(Arc::clone(&namespaces));
    (Source::Namespaces(namespaces), SourceTask::Namespaces(task))
}

impl<K: Resource + Send + Sync + 'static> Source<K> {
    pub(crate) fn status(&self) -> SourceStatus {
        match self {
            Self::Whole(part) => SourceStatus::whole(part.status.clone()),
            Self::Namespaces(namespaces) => namespaces.status(),
        }
    }

    /// All reflectors that there are at present.
    pub(crate) fn parts(&self) -> Vec<Part<K>> {
        match self {
            Self::Whole(part) => vec![part.clone()],
            Self::Namespaces(namespaces) => namespaces.parts(),
        }
    }
}

impl<K: Resource + Send + Sync + 'static> SourceTask<K> {
    pub(crate) fn status(&self) -> SourceStatus {
        match self {
            Self::Whole(reflector) => SourceStatus::whole(reflector.status()),
            Self::Namespaces(task) => task.status(),
        }
    }

    /// Lists and watches until `shutdown`. Which namespaces are of the first list is settled when this is called, not when
    /// the future is first polled.
    ///
    /// # Cancel safety
    /// Dropping the future stops it; what has been queued stays.
    pub(crate) fn run(self, shutdown: CancellationToken) -> impl Future<Output = ()> + Send + 'static {
        if let Self::Namespaces(task) = &self {
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
            Self::Namespaces(task) => task.status().fmt(f),
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
