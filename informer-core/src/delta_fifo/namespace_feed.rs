//! [`NamespaceFeed`]: the end of a queue at which one namespace comes in, where several do side by side.
//!
//! Each is the store of a reflector of its own. What it lists is complete for its namespace, and says nothing of others.

use std::fmt;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;

use super::Shared;
use super::feeds::Promises;
use super::list::{Listed, Scope};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::{
    Cached, Completion, Delta, DeltaFifo, FeedId, ObjectKey, ReflectorStore, Replacement, ResourceVersion,
};

/// The end of a [`DeltaFifo`] at which one namespace comes in; for the reflector of that namespace.
///
/// What comes in and is of another namespace is left out, and logged once: two reflectors must not tell of one object.
pub struct NamespaceFeed<K: 'static> {
    shared: Arc<Shared<K>>,
    scope: Scope,
    promises: Promises,
    has_strangers: AtomicBool,
}

impl<K: 'static> DeltaFifo<K> {
    /// Returns the end at which `namespace` comes in. A queue is fed either as a whole or in this way, and has one such
    /// end per namespace at a time; where one has been [released](NamespaceFeed::release), there can be another at once.
    ///
    /// Those that are made before [`start_feeds`](Self::start_feeds) make up the first list of the queue
    /// ([`synced`](Self::synced)); each has a [promise of its own](NamespaceFeed::synced) too.
    #[must_use]
    #[expect(clippy::missing_panics_doc, reason = "the change is made before this goes on")]
    pub fn feed(&self, namespace: &str) -> NamespaceFeed<K> {
        let namespace: Arc<str> = namespace.into();
        let mut added = None;
        self.shared.change(|state| added = Some(state.feeds.add(Arc::clone(&namespace))));
        let (id, promises) = added.expect("the change has been made");
        NamespaceFeed {
            shared: Arc::clone(&self.shared),
            scope: Scope { id, namespace },
            promises,
            has_strangers: AtomicBool::new(false),
        }
    }

    /// Says that the feeds which there are by now make up the first list; if there are none, it is complete. The queue is
    /// not synced before.
    pub fn start_feeds(&self) {
        self.shared.change(|state| {
            state.feeds.start();
            state.await_feeds();
        });
    }
}

impl<K: 'static> NamespaceFeed<K> {
    /// Returns what tells this feed from others, also from an earlier one of its namespace.
    #[must_use]
    pub fn id(&self) -> FeedId {
        self.scope.id
    }

    /// Returns the namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.scope.namespace
    }

    /// Returns the promise that the namespace's first list has been processed.
    #[must_use]
    pub fn synced(&self) -> Completion {
        self.promises.synced.clone()
    }

    /// Returns the promise that the namespace has been released and nothing of it is queued or being processed; given up
    /// if the queue is closed before.
    #[must_use]
    pub fn released(&self) -> Completion {
        self.promises.released.clone()
    }

    /// Makes the namespace optional for the [first list of the queue](DeltaFifo::synced): that is complete without this
    /// namespace, provided that another one has listed. What the namespace lists afterwards is not of the first list.
    ///
    /// Returns whether this changed anything: not if the namespace has listed, or came after
    /// [`start_feeds`](DeltaFifo::start_feeds).
    pub fn make_optional(&self) -> bool {
        let mut is_changed = false;
        self.shared.change(|state| {
            is_changed = state.feeds.make_optional(self.scope.id);
            state.await_feeds();
        });
        is_changed
    }

    /// Ends the feed: what is known or under way of the namespace is queued as [released](Delta::Released), and what
    /// comes from here on is left out. A second time changes nothing.
    ///
    /// To be called when the namespace's reflector has ended.
    pub fn release(&self) {
        self.promises.synced.give_up();
        for promise in self.shared.release(&self.scope) {
            promise.set();
        }
    }

    fn is_own(&self, key: &ObjectKey) -> bool {
        let is_own = key.namespace() == Some(&*self.scope.namespace);
        if !is_own && !self.has_strangers.swap(true, Ordering::Relaxed) {
            tracing::error!(
                namespace = %self.scope.namespace,
                %key,
                "the source of a namespace returned an object of another one; such objects are ignored. Use a source that \
                 lists and watches only this namespace"
            );
        }
        is_own
    }

    /// Takes what is not of this namespace out.
    fn only_own<T>(&self, items: &mut Vec<T>, key: impl Fn(&T) -> &ObjectKey) -> Vec<T> {
        items.extract_if(.., |item| !self.is_own(key(item))).collect()
    }
}

impl<K: Send + Sync + 'static> ReflectorStore<K> for NamespaceFeed<K> {
    fn apply(&self, mut changes: Vec<Delta<K>>, resource_version: &ResourceVersion) {
        let strangers = self.only_own(&mut changes, Delta::key);
        self.shared.change(|state| state.apply_to_feed(self.scope.id, changes, resource_version));
        drop(strangers);
    }

    /// As [`DeltaFifo::list_part`](ReflectorStore::list_part), for the namespace.
    fn list_part(&self, mut objects: Vec<Cached<K>>) -> Vec<Cached<K>> {
        let strangers = self.only_own(&mut objects, Cached::key);
        let mut superfluous = Vec::new();
        let (scope, known) = (Some(&self.scope), self.shared.known.as_deref());
        self.shared.change_indexed(|state| superfluous = state.list_part(&mut objects, scope, known));
        // I8: here, where the queue is not locked.
        drop((superfluous, strangers));
        objects
    }

    /// As [`DeltaFifo::replace`](ReflectorStore::replace), for the namespace: what is known of others stays.
    fn replace(&self, mut replacement: Replacement<K>) {
        let strangers = self.only_own(&mut replacement.objects, Cached::key);
        let listed = Listed::new(replacement, Some(self.scope.clone()));
        self.shared.replace(&listed);
        // I8: as above.
        drop((listed, strangers));
    }

    fn wait_for_room(&self) -> Option<BoxFuture<'static, ()>> {
        let is_full = self.shared.is_full();
        is_full.then(|| Arc::clone(&self.shared).wait_for_room().boxed())
    }
}

impl<K: 'static> fmt::Debug for NamespaceFeed<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NamespaceFeed").field("scope", &self.scope).finish_non_exhaustive()
    }
}
