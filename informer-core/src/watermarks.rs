//! [`Watermarks`]: the watermark of each namespace, when each namespace has its own watch.
//!
//! Each namespace's part of the store equals the server's state at the namespace's watermark (I9).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ResourceVersion;

/// The identity of a [feed](crate::NamespaceFeed) of a queue. A namespace that is added again gets
/// a new feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FeedId(pub(crate) u64);

/// The progress of one namespace with a [`Batch`](crate::Batch).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamespaceProgress {
    /// The feed of the namespace.
    pub feed: FeedId,
    /// The namespace.
    pub namespace: Arc<str>,
    /// The watermark of the namespace, empty if its state has no version; `None` if the namespace
    /// has been released and the consumer has no objects of it any more.
    pub reached: Option<ResourceVersion>,
}

/// The watermark of each namespace whose initial list has been processed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Watermarks {
    by_namespace: BTreeMap<Arc<str>, (FeedId, ResourceVersion)>,
}

impl Watermarks {
    /// Applies the progress of a batch.
    pub fn apply(&mut self, progress: &[NamespaceProgress]) {
        for NamespaceProgress { feed, namespace, reached } in progress {
            match reached {
                Some(version) => {
                    _ = self.by_namespace.insert(Arc::clone(namespace), (*feed, version.clone()));
                }
                // If the namespace already has a new feed, the release of the old feed must not
                // remove its watermark.
                None if self.by_namespace.get(namespace).is_some_and(|(current, _)| current == feed) => {
                    self.by_namespace.remove(namespace);
                }
                None => {}
            }
        }
    }

    /// Returns the watermark of a namespace; `None` if its initial list has not been processed.
    #[must_use]
    pub fn get(&self, namespace: &str) -> Option<&ResourceVersion> {
        self.by_namespace.get(namespace).map(|(_, version)| version)
    }

    /// Returns the watermark of a namespace if it comes from this feed.
    #[must_use]
    pub fn of_feed(&self, namespace: &str, feed: FeedId) -> Option<&ResourceVersion> {
        self.by_namespace.get(namespace).filter(|(current, _)| *current == feed).map(|(_, version)| version)
    }

    /// Returns each namespace and its watermark, ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ResourceVersion)> {
        self.by_namespace.iter().map(|(namespace, (_, version))| (&**namespace, version))
    }

    /// Returns whether no namespace has a watermark.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_namespace.is_empty()
    }
}
