//! [`NamespaceFeed`]: the input of a queue for one namespace, when each namespace has its own
//! reflector.
//!
//! A list on a feed contains all objects of its namespace and does not affect other namespaces.

use std::fmt;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;

use super::Shared;
use super::feeds::FeedCompletions;
use super::list::{Listed, Scope};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::{
    Cached, Completion, Delta, DeltaFifo, FeedId, ObjectKey, ReflectorStore, Replacement, ResourceVersion,
};

/// The input of a [`DeltaFifo`] for one namespace: the [`ReflectorStore`] of that namespace's
/// reflector.
///
/// A feed ignores objects of other namespaces, because each object must come from one reflector. It
/// logs only the first ignored object.
pub struct NamespaceFeed<K: 'static> {
    shared: Arc<Shared<K>>,
    scope: Scope,
    completions: FeedCompletions,
    has_logged: AtomicBool,
}

impl<K: 'static> DeltaFifo<K> {
    /// Creates a feed: the queue's input for a reflector that lists and watches only `namespace`.
    ///
    /// A queue with feeds must have no other input. Only one feed of each namespace may receive
    /// lists and changes. As soon as that feed has been [released](NamespaceFeed::release), another
    /// feed of the same namespace may receive lists and changes.
    ///
    /// The queue is [synced](Self::synced) when the consumer has processed the initial list of each
    /// namespace whose feed was created before [`start_feeds`](Self::start_feeds) and has not been
    /// released. The queue does not wait for [optional](NamespaceFeed::make_optional) namespaces,
    /// unless all namespaces are optional.
    #[must_use]
    pub fn feed(&self, namespace: &str) -> NamespaceFeed<K> {
        let namespace: Arc<str> = namespace.into();
        let (id, completions) = self.shared.change(|state| state.feeds.add(Arc::clone(&namespace)));
        NamespaceFeed {
            shared: Arc::clone(&self.shared),
            scope: Scope { id, namespace },
            completions,
            has_logged: AtomicBool::new(false),
        }
    }

    /// Declares that the [feeds](Self::feed) of all namespaces of the queue's initial list exist.
    ///
    /// The queue is [synced](Self::synced) only after this call. The queue does not wait for the
    /// initial list of a namespace whose feed is created later. If there are no feeds, the queue is
    /// synced when the consumer has processed the next batch, which can be empty.
    pub fn start_feeds(&self) {
        self.shared.change(|state| {
            state.feeds.start();
            state.check_initial_list();
        });
    }
}

impl<K: 'static> NamespaceFeed<K> {
    /// Returns the ID of this feed. If the namespace is removed and added again, its new feed has a
    /// different ID.
    #[must_use]
    pub fn id(&self) -> FeedId {
        self.scope.id
    }

    /// Returns the name of the namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.scope.namespace
    }

    /// Returns a [`Completion`] that is set when the initial list of the namespace has been
    /// processed.
    #[must_use]
    pub fn synced(&self) -> Completion {
        self.completions.synced.clone()
    }

    /// Returns a [`Completion`] that is set when [`release`](Self::release) has been called and the
    /// consumer has removed the objects of this feed, and of earlier feeds of the namespace. The
    /// completion is cancelled if the queue ends first: it is closed and all its changes have been
    /// processed, or it is [abandoned](DeltaFifo::abandon).
    #[must_use]
    pub fn released(&self) -> Completion {
        self.completions.released.clone()
    }

    /// Makes the namespace optional: the queue can be [synced](DeltaFifo::synced) before this
    /// namespace has been listed. If all namespaces are optional, the queue is synced only after at
    /// least one of them has been listed. Objects of this namespace that are listed after the end
    /// of the queue's initial list do not belong to that list.
    ///
    /// Returns whether the call had an effect. It has no effect if the namespace has been listed,
    /// is optional already, has been released, or was added after
    /// [`start_feeds`](DeltaFifo::start_feeds).
    pub fn make_optional(&self) -> bool {
        self.shared.change(|state| {
            let is_changed = state.feeds.make_optional(self.scope.id);
            state.check_initial_list();
            is_changed
        })
    }

    /// Ends the feed, and queues a [`Delta::Released`] for each object of the namespace, so that
    /// the consumer removes the object. The ended feed ignores all changes. A second call changes
    /// nothing.
    ///
    /// If this feed has received neither a list nor a change, ends the feed and queues nothing: the
    /// consumer's objects of the namespace, if any, belong to another feed of this namespace, and
    /// must stay.
    ///
    /// Call this when the namespace is no longer watched, after its reflector has ended.
    pub fn release(&self) {
        self.completions.synced.cancel();
        self.shared.release(&self.scope).iter().for_each(Completion::set);
    }

    fn is_in_namespace(&self, key: &ObjectKey) -> bool {
        let is_in_namespace = key.namespace() == Some(&*self.scope.namespace);
        if !is_in_namespace && !self.has_logged.swap(true, Ordering::Relaxed) {
            tracing::error!(
                namespace = %self.scope.namespace,
                %key,
                "the source of a namespace returned an object of another namespace; such objects are ignored. Use a source that \
                 lists and watches only this namespace"
            );
        }
        is_in_namespace
    }

    /// Removes the items of other namespaces from `items`. Returns the removed items.
    fn remove_foreign<T>(&self, items: &mut Vec<T>, key: impl Fn(&T) -> &ObjectKey) -> Vec<T> {
        items.extract_if(.., |item| !self.is_in_namespace(key(item))).collect()
    }
}

impl<K: Send + Sync + 'static> ReflectorStore<K> for NamespaceFeed<K> {
    fn apply(&self, mut changes: Vec<Delta<K>>, resource_version: &ResourceVersion) {
        let foreign = self.remove_foreign(&mut changes, Delta::key);
        self.shared.change(|state| state.apply_to_feed(self.scope.id, changes, resource_version));
        drop(foreign);
    }

    /// Receives one part of a list. Drops objects of other namespaces, and returns the objects of
    /// this namespace. For an object whose newest version in the queue or the [consumer's
    /// store](DeltaFifo::with_known_objects) is the same version, returns the existing handle.
    ///
    /// If the list is the initial list of this namespace and the queue has access to the store,
    /// queues the new and changed objects of this part at once. Otherwise
    /// [`replace`](ReflectorStore::replace) queues them at the end of the list.
    fn list_part(&self, mut objects: Vec<Cached<K>>) -> Vec<Cached<K>> {
        let foreign = self.remove_foreign(&mut objects, Cached::key);
        let mut unused = Vec::new();
        let (scope, known) = (Some(&self.scope), self.shared.known.as_deref());
        self.shared.index_in_flight_then_change(|state| unused = state.list_part(&mut objects, scope, known));
        // I8: objects are dropped while the queue is not locked.
        drop((unused, foreign));
        objects
    }

    /// Queues a [`Delta::Replaced`] for each new or changed object of the namespace. If the list is
    /// [complete](Replacement::complete), then queues a deletion for each object of the namespace
    /// that the list lacks and that is queued, in flight or in the store, unless the object's
    /// newest change is a removal already. A [released](Self::release) feed queues nothing.
    fn replace(&self, mut replacement: Replacement<K>) {
        let foreign = self.remove_foreign(&mut replacement.objects, Cached::key);
        let listed = Listed::new(replacement, Some(self.scope.clone()));
        self.shared.replace(&listed);
        // I8: objects are dropped while the queue is not locked.
        drop((listed, foreign));
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
