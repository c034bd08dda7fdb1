//! Lists in the queue: [`Listed`] is a whole list, indexed by key; [`State::list_part`] handles the
//! parts of a list that is still arriving.
//!
//! A feed is the queue's input for one namespace. Without feeds, the queue's initial list is the
//! first whole list; if the queue's first input is a change, there is no initial list. With feeds,
//! each namespace has an initial list: its first whole list. The queue's initial list then consists
//! of the initial lists of all namespaces whose feed was created before
//! [`DeltaFifo::start_feeds`](crate::DeltaFifo::start_feeds). If one of them has been listed, the
//! queue's initial list does not wait for namespaces that have been made optional, for example
//! because the API server refuses to list them.

use std::sync::Arc;

use hashbrown::HashTable;

use super::state::State;
use crate::{Cached, Delta, FeedId, KnownObjects, ObjectKey, Replacement, ResourceVersion};

/// A namespace that is listed separately: its name, and the ID of its feed. A list of all
/// namespaces has no `Scope`.
#[derive(Debug, Clone)]
pub(super) struct Scope {
    pub(super) id: FeedId,
    pub(super) namespace: Arc<str>,
}

/// A whole list, indexed by key before the queue is locked.
pub(super) struct Listed<K> {
    objects: Vec<Cached<K>>,
    /// The position of each key in `objects`. If a key is listed twice, the last object counts.
    by_key: HashTable<usize>,
    quarantined: Vec<ObjectKey>,
    complete: bool,
    resource_version: ResourceVersion,
    scope: Option<Scope>,
}

impl<K> Listed<K> {
    pub(super) fn new(replacement: Replacement<K>, scope: Option<Scope>) -> Self {
        let Replacement { objects, mut quarantined, complete, resource_version } = replacement;
        quarantined.sort_unstable();
        let mut by_key = HashTable::with_capacity(objects.len());
        for (position, object) in objects.iter().enumerate() {
            let same = |&other: &usize| objects[other].key() == object.key();
            let hash_of = |&other: &usize| objects[other].key().hash_value();
            by_key
                .entry(object.key().hash_value(), same, hash_of)
                .and_modify(|earlier| *earlier = position)
                .or_insert(position);
        }
        Self { objects, by_key, quarantined, complete, resource_version, scope }
    }

    /// Returns whether the key is in the namespace of the list. Always `true` for a list of all
    /// namespaces.
    fn covers(&self, key: &ObjectKey) -> bool {
        self.scope.as_ref().is_none_or(|scope| key.namespace() == Some(&*scope.namespace))
    }

    pub(super) fn scope(&self) -> Option<&Scope> {
        self.scope.as_ref()
    }

    pub(super) fn objects(&self) -> &[Cached<K>] {
        &self.objects
    }

    pub(super) fn position(&self, key: &ObjectKey) -> Option<usize> {
        self.by_key.find(key.hash_value(), |&position| self.objects[position].key() == key).copied()
    }

    /// Returns an empty list of the namespace in `scope`.
    /// [`Shared::release`](super::Shared::release) uses this list to find the objects of the
    /// namespace: the list lacks all of them.
    pub(super) fn empty(scope: Scope) -> Self {
        let replacement = Replacement {
            objects: Vec::new(),
            quarantined: Vec::new(),
            complete: true,
            resource_version: ResourceVersion::empty(),
        };
        Self::new(replacement, Some(scope))
    }

    /// Returns whether the list shows that no object with this key exists. A quarantined object,
    /// which could not be decoded or transformed, counts as existing.
    pub(super) fn lacks(&self, key: &ObjectKey) -> bool {
        self.complete
            && self.covers(key)
            && self.position(key).is_none()
            && self.quarantined.binary_search(key).is_err()
    }
}

/// Whether an arriving list is an initial list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FirstList {
    /// The list is the queue's initial list, or one namespace's part of it.
    OfQueue,
    /// The list is the initial list of a namespace, but not a part of the queue's initial list. For
    /// example, the namespace was added after
    /// [`DeltaFifo::start_feeds`](crate::DeltaFifo::start_feeds).
    OfNamespace,
    /// The list is a relist, or its namespace is no longer watched.
    Over,
}

pub(super) fn is_same<K>(one: &Cached<K>, other: &Cached<K>) -> bool {
    one.ptr_eq(other) || one.same_version(other)
}

impl<K: 'static> State<K> {
    /// Receives one part of an arriving list. Replaces unchanged objects by their existing handles.
    /// Queues the other objects if the list is an initial list and the queue has a store (`known`).
    ///
    /// Returns the handles that are not needed: the new handles of the unchanged objects, and the
    /// existing handles of the changed ones. The caller must drop them while the queue is not
    /// locked.
    pub(super) fn list_part(
        &mut self,
        objects: &mut [Cached<K>],
        scope: Option<&Scope>,
        known: Option<&dyn KnownObjects<K>>,
    ) -> Vec<Cached<K>> {
        let first = self.first_list(scope);
        // `Shared::replace` finds the objects that the consumer has processed meanwhile only in the
        // store. Without a store, it would queue these objects a second time.
        let is_queued = known.is_some() && first != FirstList::Over;
        let mut unused = Vec::new();
        let mut new_keys = 0;
        for object in objects {
            match self.newest(object.key(), known) {
                Some(newest) if is_same(&newest, object) => {
                    unused.push(std::mem::replace(object, newest));
                }
                newest => {
                    // I8: the caller drops `newest`, because it can be the last handle to its object
                    // if the store has removed the object meanwhile.
                    unused.extend(newest);
                    if is_queued {
                        self.enqueue(Delta::Replaced(object.clone()));
                        if first == FirstList::OfQueue {
                            new_keys += usize::from(self.mark_initial(object.key()));
                        }
                    }
                }
            }
        }
        if is_queued {
            if let Some(scope) = scope {
                self.feeds.record_input(scope.id);
            }
            if first == FirstList::OfQueue {
                self.population.queued(new_keys, false);
            }
        }
        unused
    }

    pub(super) fn first_list(&self, scope: Option<&Scope>) -> FirstList {
        match scope {
            None if self.population.is_first_list() => FirstList::OfQueue,
            Some(scope) if !self.feeds.is_first_list(scope.id) => FirstList::Over,
            Some(scope) if self.feeds.is_initial(scope.id) => FirstList::OfQueue,
            Some(_) => FirstList::OfNamespace,
            None => FirstList::Over,
        }
    }

    /// Returns the newest object of a key: queued, in flight or stored. Returns `None` if there is
    /// no object, or if the newest change removes it from the store.
    fn newest(&self, key: &ObjectKey, known: Option<&dyn KnownObjects<K>>) -> Option<Cached<K>> {
        match self.last_queued(key).or_else(|| self.last_in_flight(key)) {
            Some(Delta::Sync(_)) | None => known?.known(key),
            Some(last) if last.is_end() => None,
            Some(last) => last.object().cloned(),
        }
    }

    /// Records the resource version of a whole list, before its changes are queued. Returns `false`
    /// if its namespace is no longer watched. The caller must then queue nothing.
    pub(super) fn begin_list(&mut self, listed: &Listed<K>) -> bool {
        match &listed.scope {
            Some(scope) if !self.feeds.is_watched(scope.id) => return false,
            Some(scope) => self.feeds.end_list(scope.id, &listed.resource_version),
            None => self.set_list_version(&listed.resource_version),
        }
        true
    }

    /// Records that all changes of a whole list have been queued. `first` is the result of
    /// [`first_list`](Self::first_list) before the call of [`begin_list`](Self::begin_list).
    pub(super) fn end_list(&mut self, listed: &Listed<K>, first: FirstList) {
        if first == FirstList::OfQueue {
            let not_counted = self.items.iter_mut().filter(|item| !item.initial && listed.covers(&item.key));
            let new_keys = not_counted.map(|pending| pending.initial = true).count();
            self.population.queued(new_keys, listed.scope.is_none());
            self.check_initial_list();
        }
    }

    /// Ends the queue's initial list if all required namespaces have been listed. Optional
    /// namespaces can be missing: see
    /// [`Feeds::has_initial_list`](super::feeds::Feeds::has_initial_list).
    pub(super) fn check_initial_list(&mut self) {
        if self.population.is_first_list() && self.feeds.has_initial_list() {
            self.feeds.end_initial_list();
            self.population.queued(0, true);
        }
    }
}
