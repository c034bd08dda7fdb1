//! [`Watermarks`]: how far a store is with each namespace, where namespaces come one by one.
//!
//! Each has a watch of its own, so each is at a version of its own (I9); the namespace's part of the store is the
//! server's state at that version.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ResourceVersion;

/// Names one of the feeds of a [`DeltaFifo`](crate::DeltaFifo). A namespace that is followed again is another feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FeedId(pub(crate) u64);

/// What a consumer has of a namespace with a [`Batch`](crate::Batch).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeedNews {
    /// Which feed this is about.
    pub feed: FeedId,
    /// Its namespace.
    pub namespace: Arc<str>,
    /// The version whose state the consumer has now, empty if it can't be named; `None` if the namespace has been
    /// released, and the consumer has nothing of it any more.
    pub reached: Option<ResourceVersion>,
}

/// How far a store is with each namespace whose first list it has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Watermarks {
    by_namespace: BTreeMap<Arc<str>, (FeedId, ResourceVersion)>,
}

impl Watermarks {
    /// Makes news true.
    pub fn apply(&mut self, news: &[FeedNews]) {
        for FeedNews { feed, namespace, reached } in news {
            match reached {
                Some(version) => {
                    _ = self.by_namespace.insert(Arc::clone(namespace), (*feed, version.clone()));
                }
                // Where it is followed again already, this was about the feed before.
                None if self.by_namespace.get(namespace).is_some_and(|(current, _)| current == feed) => {
                    self.by_namespace.remove(namespace);
                }
                None => {}
            }
        }
    }

    /// Returns the version whose state there is of this namespace; `None` if its first list has not been processed.
    #[must_use]
    pub fn get(&self, namespace: &str) -> Option<&ResourceVersion> {
        self.by_namespace.get(namespace).map(|(_, version)| version)
    }

    /// Returns the same, but only if it comes from this feed.
    #[must_use]
    pub fn of_feed(&self, namespace: &str, feed: FeedId) -> Option<&ResourceVersion> {
        self.by_namespace.get(namespace).filter(|(current, _)| *current == feed).map(|(_, version)| version)
    }

    /// Returns each namespace and its version, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ResourceVersion)> {
        self.by_namespace.iter().map(|(namespace, (_, version))| (&**namespace, version))
    }

    /// Returns whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_namespace.is_empty()
    }
}
