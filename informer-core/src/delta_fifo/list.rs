//! What a list does to the queue's content, apart from the difference between them, which is in `difference.rs`.
//!
//! The newest that is known of a key is its last queued change; if there is none, the last that is being processed; and
//! else what the store has.

use std::sync::Arc;

use hashbrown::HashTable;

use super::state::State;
use crate::{Cached, Delta, FeedId, KnownObjects, ObjectKey, Replacement, ResourceVersion};

/// The namespace that a list is complete for, where it isn't complete for all.
#[derive(Debug, Clone)]
pub(super) struct Scope {
    pub(super) id: FeedId,
    pub(super) namespace: Arc<str>,
}

/// A complete list whose objects can be found by key; made before the queue is locked.
pub(super) struct Listed<K> {
    objects: Vec<Cached<K>>,
    /// Positions in `objects`. Where a key is listed twice, the last one counts.
    by_key: HashTable<usize>,
    set_aside: Vec<ObjectKey>,
    complete: bool,
    resource_version: ResourceVersion,
    scope: Option<Scope>,
}

impl<K> Listed<K> {
    pub(super) fn new(replacement: Replacement<K>, scope: Option<Scope>) -> Self {
        let Replacement { objects, mut set_aside, complete, resource_version } = replacement;
        set_aside.sort_unstable();
        let mut by_key = HashTable::with_capacity(objects.len());
        for (position, object) in objects.iter().enumerate() {
            let same = |&other: &usize| objects[other].key() == object.key();
            let hash_of = |&other: &usize| objects[other].key().hash_value();
            by_key
                .entry(object.key().hash_value(), same, hash_of)
                .and_modify(|earlier| *earlier = position)
                .or_insert(position);
        }
        Self { objects, by_key, set_aside, complete, resource_version, scope }
    }

    /// Returns whether this list would have an object of this key, if there were one.
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

    /// A list of a namespace in which there is nothing.
    pub(super) fn nothing(scope: Scope) -> Self {
        let nothing = Replacement {
            objects: Vec::new(),
            set_aside: Vec::new(),
            complete: true,
            resource_version: ResourceVersion::empty(),
        };
        Self::new(nothing, Some(scope))
    }

    /// Returns whether nothing that is listed, or was set aside, has this key.
    pub(super) fn lacks(&self, key: &ObjectKey) -> bool {
        self.complete
            && self.covers(key)
            && self.position(key).is_none()
            && self.set_aside.binary_search(key).is_err()
    }
}

/// Whether a list is the first, and of what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FirstList {
    /// One that the queue is not synced without.
    OfQueue,
    /// That of a namespace that was added later.
    OfFeed,
    Over,
}

pub(super) fn is_same<K>(one: &Cached<K>, other: &Cached<K>) -> bool {
    one.ptr_eq(other) || one.same_version(other)
}

impl<K: 'static> State<K> {
    /// Puts the objects that are known already in the place of their new copies. Returns what is not needed any more, to
    /// be dropped when the queue is not locked. Of the first list the others are queued at once, if there is a store:
    /// without one, nobody would know at the end of the list which of them have been handed out.
    pub(super) fn list_part(
        &mut self,
        objects: &mut [Cached<K>],
        scope: Option<&Scope>,
        known: Option<&dyn KnownObjects<K>>,
    ) -> Vec<Cached<K>> {
        let first = self.first_list(scope);
        let is_awaited = known.is_some() && first != FirstList::Over;
        let mut superfluous = Vec::new();
        let mut new_keys = 0;
        for object in objects {
            match self.newest(object.key(), known) {
                Some(newest) if is_same(&newest, object) => {
                    superfluous.push(std::mem::replace(object, newest));
                }
                newest => {
                    // The store may have let go of it by now.
                    superfluous.extend(newest);
                    if is_awaited {
                        self.enqueue(Delta::Replaced(object.clone()));
                        if first == FirstList::OfQueue {
                            new_keys += usize::from(self.mark_initial(object.key()));
                        }
                    }
                }
            }
        }
        if is_awaited {
            self.arriving(new_keys, scope, first);
        }
        superfluous
    }

    pub(super) fn first_list(&self, scope: Option<&Scope>) -> FirstList {
        match scope {
            None if self.population.is_first_list() => FirstList::OfQueue,
            Some(scope) if !self.feeds.is_first_list(scope.id) => FirstList::Over,
            Some(scope) if self.feeds.is_of_start(scope.id) => FirstList::OfQueue,
            Some(_) => FirstList::OfFeed,
            None => FirstList::Over,
        }
    }

    /// Part of a first list has come.
    fn arriving(&mut self, new_keys: usize, scope: Option<&Scope>, first: FirstList) {
        if let Some(scope) = scope {
            self.feeds.arriving(scope.id);
        }
        if first == FirstList::OfQueue {
            self.population.queued(new_keys, false);
        }
    }

    /// What is known of a key after all that is on its way; `None` if it does not exist.
    fn newest(&self, key: &ObjectKey, known: Option<&dyn KnownObjects<K>>) -> Option<Cached<K>> {
        match self.last_queued(key).or_else(|| self.last_in_flight(key)) {
            Some(Delta::Sync(_)) | None => known?.known(key),
            Some(last) if last.is_end() => None,
            Some(last) => last.object().cloned(),
        }
    }

    /// A complete list is about to be queued. Returns whether it is wanted.
    pub(super) fn begin_list(&mut self, listed: &Listed<K>) -> bool {
        match &listed.scope {
            Some(scope) if !self.feeds.is_followed(scope.id) => return false,
            Some(scope) => self.feeds.listed(scope.id, &listed.resource_version),
            None => self.reach(&listed.resource_version),
        }
        true
    }

    /// All of a list has been queued.
    pub(super) fn end_list(&mut self, listed: &Listed<K>, first: FirstList) {
        if first == FirstList::OfQueue {
            let not_counted = self.items.iter_mut().filter(|item| !item.initial && listed.covers(&item.key));
            let new_keys = not_counted.map(|pending| pending.initial = true).count();
            self.population.queued(new_keys, listed.scope.is_none());
            self.await_feeds();
        }
    }

    /// The queue's first list may be complete without another object.
    pub(super) fn await_feeds(&mut self) {
        if self.population.is_first_list() && self.feeds.has_start_arrived() {
            self.feeds.end_start();
            self.population.queued(0, true);
        }
    }
}
