//! What a list does to the queue's content: what it says that is new is queued, and what it lacks is queued as deleted.
//!
//! The newest that is known of a key is its last queued change; if there is none, the last that is being processed; and
//! else what the store has. A listed object of the same version is no news, and is not queued: so a list costs its reader
//! what has changed, and not what there is. client-go: `Replace` of `tools/cache/delta_fifo.go`, which queues everything.

use std::sync::Arc;

use foldhash::HashMap;
use hashbrown::HashTable;

use super::state::State;
use crate::{Cached, Deleted, Delta, FeedId, KnownObjects, ObjectKey, Replacement, ResourceVersion, Synced};

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

    /// Says whether this list would have an object of this key, if there were one.
    fn covers(&self, key: &ObjectKey) -> bool {
        self.scope.as_ref().is_none_or(|scope| key.namespace() == Some(&*scope.namespace))
    }

    fn position(&self, key: &ObjectKey) -> Option<usize> {
        self.by_key.find(key.hash_value(), |&position| self.objects[position].key() == key).copied()
    }

    /// Says whether nothing that is listed, or was set aside, has this key.
    fn lacks(&self, key: &ObjectKey) -> bool {
        self.complete
            && self.covers(key)
            && self.position(key).is_none()
            && self.set_aside.binary_search(key).is_err()
    }
}

/// Whether a list is the first, and of what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FirstList {
    /// One that the queue is not synced without.
    OfQueue,
    /// That of a namespace that was added later.
    OfFeed,
    Over,
}

fn is_same<K>(one: &Cached<K>, other: &Cached<K>) -> bool {
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

    fn first_list(&self, scope: Option<&Scope>) -> FirstList {
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
            Some(last) if last.is_end() => None,
            Some(last) => last.object().cloned(),
            None => known?.known(key),
        }
    }

    /// Queues of a complete list what is news, then a deletion for all that is known or under way but not in it.
    pub(super) fn replace(&mut self, listed: &Listed<K>, known: Option<&dyn KnownObjects<K>>) {
        let first = self.first_list(listed.scope.as_ref());
        match &listed.scope {
            Some(scope) if !self.feeds.is_followed(scope.id) => return,
            Some(scope) => self.feeds.listed(scope.id, &listed.resource_version),
            None => self.reach(&listed.resource_version),
        }
        self.queue_difference(listed, known, |key, last| Delta::Deleted(Deleted::missed(key.clone(), last)));
        if first == FirstList::OfQueue {
            let not_counted = self.items.iter_mut().filter(|item| !item.initial && listed.covers(&item.key));
            let new_keys = not_counted.map(|pending| pending.initial = true).count();
            self.population.queued(new_keys, listed.scope.is_none());
            self.await_feeds();
        }
    }

    /// Queues what there is of a namespace as released. Returns the promises that are to be kept at once, when the queue is
    /// not locked, because there is nothing.
    pub(super) fn release(&mut self, scope: &Scope, known: Option<&dyn KnownObjects<K>>) -> Vec<Synced> {
        if !self.feeds.is_followed(scope.id) {
            return Vec::new();
        }
        let kept = self.feeds.release(scope.id);
        if kept.is_none() {
            let nothing = Replacement {
                objects: Vec::new(),
                set_aside: Vec::new(),
                complete: true,
                resource_version: ResourceVersion::empty(),
            };
            let nothing = Listed::new(nothing, Some(scope.clone()));
            self.queue_difference(&nothing, known, |key, last| {
                // Whatever is known or under way comes with an object.
                let missed = |last| Delta::Deleted(Deleted::missed(key.clone(), last));
                last.map_or_else(|| missed(None), Delta::Released)
            });
        }
        self.await_feeds();
        kept.unwrap_or_default()
    }

    /// The queue's first list may be complete without another object.
    pub(super) fn await_feeds(&mut self) {
        if self.population.is_first_list() && self.feeds.has_start_arrived() {
            self.feeds.end_start();
            self.population.queued(0, true);
        }
    }

    /// Queues what is news in a list, then the end of all that it should have and doesn't.
    fn queue_difference(
        &mut self,
        listed: &Listed<K>,
        known: Option<&dyn KnownObjects<K>>,
        end: impl Fn(&ObjectKey, Option<Cached<K>>) -> Delta<K>,
    ) {
        let in_flight = self.in_flight_objects();
        let mut missing: Vec<Delta<K>> = Vec::new();
        let mut unchanged = vec![false; listed.objects.len()];
        if let Some(known) = known {
            let mut compare = |object: &Cached<K>| {
                let key = object.key();
                if self.is_queued(key) || in_flight.contains_key(key) {
                    return;
                }
                match listed.position(key) {
                    Some(position) => unchanged[position] = is_same(object, &listed.objects[position]),
                    None if listed.lacks(key) => {
                        missing.push(end(key, Some(object.clone())));
                    }
                    None => {}
                }
            };
            let held = match &listed.scope {
                Some(scope) => known.for_each_known_in(&scope.namespace, &mut compare),
                None => known.for_each_known(&mut compare),
            };
            self.held.extend(held);
        }
        let lacked = self.lacked_under_way(listed, &in_flight);
        missing.extend(lacked.into_iter().map(|(key, last)| end(&key, last)));
        for (position, object) in listed.objects.iter().enumerate() {
            let counts = listed.position(object.key()) == Some(position);
            if counts && !unchanged[position] && !self.is_under_way(object, &in_flight) {
                self.enqueue(Delta::Replaced(object.clone()));
            }
        }
        for end in missing {
            self.enqueue(end);
        }
    }

    /// Says whether the newest change on its way is to this version of the object.
    fn is_under_way(&self, object: &Cached<K>, in_flight: &HashMap<ObjectKey, Delta<K>>) -> bool {
        let last = self.last_queued(object.key()).or_else(|| in_flight.get(object.key()));
        last.filter(|last| !last.is_end())
            .and_then(Delta::object)
            .is_some_and(|newest| is_same(newest, object))
    }

    /// What is queued or being processed, and not listed.
    fn lacked_under_way(
        &self,
        listed: &Listed<K>,
        in_flight: &HashMap<ObjectKey, Delta<K>>,
    ) -> Vec<(ObjectKey, Option<Cached<K>>)> {
        let queued = self.items.iter().map(|pending| (&pending.key, pending.last()));
        let in_flight = in_flight.iter().filter(|(key, _)| !self.is_queued(key));
        let lacked = queued.chain(in_flight).filter(|(key, last)| !last.is_end() && listed.lacks(key));
        lacked.map(|(key, last)| (key.clone(), last.object().cloned())).collect()
    }
}
