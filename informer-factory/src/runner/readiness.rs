//! [`Readiness`]: whether a key may be looked at, as far as the caches are concerned.
//!
//! Two things hold a key up: a write of its own that a cache doesn't have yet, and a cache that has begun to follow the
//! key's namespace and has not listed it. The caches are synced when workers begin, so the latter is for namespaces that
//! come later: the parents of one may be told of before its children are listed, and who looked at them then would create
//! each child once more.

use std::any::Any;
use std::hash::Hash;
use std::sync::Arc;

use futures::FutureExt;
use informer_core::{ObjectKey, Synced};

use crate::{CacheSync, KeyWrites, WriteTracker};

/// Knows the caches of a controller, and its writes.
pub(super) struct Readiness<T> {
    tracker: WriteTracker<T>,
    caches: Arc<[Box<dyn CacheSync>]>,
}

impl<T: Hash + Eq + Clone + Send + Sync + 'static> Readiness<T> {
    pub(super) fn new(tracker: WriteTracker<T>, caches: Vec<Box<dyn CacheSync>>) -> Self {
        Self { tracker, caches: caches.into() }
    }

    pub(super) fn writes(&self, key: &T) -> KeyWrites<T> {
        self.tracker.of(key)
    }

    pub(super) fn is_ready(&self, key: &T) -> bool {
        self.unlisted(key).is_none() && self.writes(key).is_ready()
    }

    /// Waits until it may be looked at; `false` if the deadline of a write has passed.
    pub(super) async fn ready(&self, key: &T) -> bool {
        while let Some(promise) = self.unlisted(key) {
            // Given up, it says that the namespace is not followed any more.
            _ = promise.wait().await;
        }
        self.writes(key).ready().await
    }

    /// Returns the promise of a cache that lists the namespace of a key for the first time.
    fn unlisted(&self, key: &T) -> Option<Synced> {
        // A key of another kind says nothing of namespaces.
        let namespace = (key as &dyn Any).downcast_ref::<ObjectKey>()?.namespace()?;
        self.caches.iter().map(|cache| cache.synced_in(namespace)).find(is_open)
    }
}

/// Says whether a promise has been neither kept nor given up.
fn is_open(promise: &Synced) -> bool {
    !promise.has_synced() && promise.wait().now_or_never().is_none()
}

impl<T> Clone for Readiness<T> {
    fn clone(&self) -> Self {
        Self { tracker: self.tracker.clone(), caches: Arc::clone(&self.caches) }
    }
}
