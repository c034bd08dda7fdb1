//! [`Watermarks`]: the watermark of each namespace, when each namespace has its own watch.
//!
//! The store's objects of a namespace equal the server's state at the watermark of the namespace.
//! Exceptions are quarantined objects and incomplete lists (I10 in ARCHITECTURE.md).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ResourceVersion;

/// Identifies a [`NamespaceFeed`](crate::NamespaceFeed), the input of a queue for one namespace. A
/// namespace that is watched again later gets a new feed with a new ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FeedId(pub(crate) u64);

/// The watermark of one namespace after a [`Batch`](crate::Batch) has been processed: the
/// consumer's store then contains the namespace's objects as of this resource version.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamespaceProgress {
    /// The ID of the [`NamespaceFeed`](crate::NamespaceFeed), the queue's input for this namespace.
    pub feed: FeedId,
    /// The name of the namespace.
    pub namespace: Arc<str>,
    /// The watermark. Empty if the server sent no resource version with the last list of the
    /// namespace, and none since.
    ///
    /// `None` if the namespace is no longer watched: the feed with the ID `feed` was
    /// [released](crate::NamespaceFeed::release). After the batch, the store contains no objects of
    /// this feed.
    pub reached: Option<ResourceVersion>,
}

/// The watermark of each watched namespace whose initial list has been processed: the resource
/// version that the store has reached for this namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Watermarks {
    by_namespace: BTreeMap<Arc<str>, (FeedId, ResourceVersion)>,
}

impl Watermarks {
    /// Updates the watermarks with the [progress](crate::Batch::namespaces) of a batch.
    pub fn apply(&mut self, progress: &[NamespaceProgress]) {
        for NamespaceProgress { feed, namespace, reached } in progress {
            if let Some(version) = reached {
                self.by_namespace.insert(Arc::clone(namespace), (*feed, version.clone()));
            } else if self.of_feed(namespace, *feed).is_some() {
                // If the namespace already has a new feed, the release of the old feed must not
                // remove the watermark of the new feed.
                self.by_namespace.remove(namespace);
            }
        }
    }

    /// Returns the watermark of a namespace: the resource version that the store has reached for
    /// this namespace. Returns `None` if the initial list of the namespace has not been processed,
    /// or if the namespace was removed and its objects have left the store.
    #[must_use]
    pub fn get(&self, namespace: &str) -> Option<&ResourceVersion> {
        self.by_namespace.get(namespace).map(|(_, version)| version)
    }

    /// Returns the watermark of a namespace, if it comes from the
    /// [`NamespaceFeed`](crate::NamespaceFeed) with the ID `feed`. Otherwise returns `None`.
    #[must_use]
    pub fn of_feed(&self, namespace: &str, feed: FeedId) -> Option<&ResourceVersion> {
        self.by_namespace.get(namespace).filter(|(current, _)| *current == feed).map(|(_, version)| version)
    }

    /// Returns each namespace with its watermark, ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ResourceVersion)> {
        self.by_namespace.iter().map(|(namespace, (_, version))| (&**namespace, version))
    }

    /// Returns whether there are no watermarks, because the store has not processed the initial
    /// list of any namespace that has its own watch.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_namespace.is_empty()
    }
}
