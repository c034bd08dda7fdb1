//! What a list does to the queue's content: what it says that is new is queued, and what it lacks is queued as deleted.
//!
//! The newest that is known of a key is its last queued change; if there is none, the last that is being processed; and
//! else what the store has. A listed object of the same version is no news, and is not queued: so a list costs its reader
//! what has changed, and not what there is. client-go: `Replace` of `tools/cache/delta_fifo.go`, which queues everything.

use foldhash::HashMap;
use hashbrown::HashTable;

use super::state::State;
use crate::{Cached, Deleted, Delta, KnownObjects, ObjectKey, Replacement, ResourceVersion};

/// A complete list whose objects can be found by key; made before the queue is locked.
pub(super) struct Listed<K> {
    objects: Vec<Cached<K>>,
    /// Positions in `objects`. Where a key is listed twice, the last one counts.
    by_key: HashTable<usize>,
    set_aside: Vec<ObjectKey>,
    complete: bool,
    resource_version: ResourceVersion,
}

impl<K> Listed<K> {
    pub(super) fn new(replacement: Replacement<K>) -> Self {
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
        Self { objects, by_key, set_aside, complete, resource_version }
    }

    fn position(&self, key: &ObjectKey) -> Option<usize> {
        self.by_key.find(key.hash_value(), |&position| self.objects[position].key() == key).copied()
    }

    /// Says whether nothing that is listed, or was set aside, has this key.
    fn lacks(&self, key: &ObjectKey) -> bool {
        self.complete && self.position(key).is_none() && self.set_aside.binary_search(key).is_err()
    }
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
        known: Option<&dyn KnownObjects<K>>,
    ) -> Vec<Cached<K>> {
        let is_awaited = known.is_some() && self.population.is_first_list();
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
                        new_keys += usize::from(self.mark_initial(object.key()));
                    }
                }
            }
        }
        if is_awaited {
            self.population.queued(new_keys, false);
        }
        superfluous
    }

    /// What is known of a key after all that is on its way; `None` if it does not exist.
    fn newest(&self, key: &ObjectKey, known: Option<&dyn KnownObjects<K>>) -> Option<Cached<K>> {
        match self.last_queued(key).or_else(|| self.last_in_flight(key)) {
            Some(Delta::Deleted(_)) => None,
            Some(last) => last.object().cloned(),
            None => known?.known(key),
        }
    }

    /// Queues of a complete list what is news, then a deletion for all that is known or under way but not in it.
    pub(super) fn replace(&mut self, listed: &Listed<K>, known: Option<&dyn KnownObjects<K>>) {
        let in_flight = self.in_flight_objects();
        let mut missing: Vec<Deleted<K>> = Vec::new();
        let mut unchanged = vec![false; listed.objects.len()];
        if let Some(known) = known {
            let held = known.for_each_known(&mut |object| {
                let key = object.key();
                if self.is_queued(key) || in_flight.contains_key(key) {
                    return;
                }
                match listed.position(key) {
                    Some(position) => unchanged[position] = is_same(object, &listed.objects[position]),
                    None if listed.lacks(key) => {
                        missing.push(Deleted::missed(key.clone(), Some(object.clone())));
                    }
                    None => {}
                }
            });
            self.held.extend(held);
        }
        self.find_missing_under_way(listed, &in_flight, &mut missing);
        for (position, object) in listed.objects.iter().enumerate() {
            let counts = listed.position(object.key()) == Some(position);
            if counts && !unchanged[position] && !self.is_under_way(object, &in_flight) {
                self.enqueue(Delta::Replaced(object.clone()));
            }
        }
        for deleted in missing {
            self.enqueue(Delta::Deleted(deleted));
        }
        self.reach(&listed.resource_version);
        if self.population.is_first_list() {
            let not_counted = self.items.iter_mut().filter(|pending| !pending.initial);
            let new_keys = not_counted.map(|pending| pending.initial = true).count();
            self.population.queued(new_keys, true);
        }
    }

    /// Says whether the newest change on its way is to this version of the object.
    fn is_under_way(&self, object: &Cached<K>, in_flight: &HashMap<ObjectKey, Delta<K>>) -> bool {
        let last = self.last_queued(object.key()).or_else(|| in_flight.get(object.key()));
        last.filter(|last| !last.is_deleted())
            .and_then(Delta::object)
            .is_some_and(|newest| is_same(newest, object))
    }

    /// What is queued or being processed, and not listed.
    fn find_missing_under_way(
        &self,
        listed: &Listed<K>,
        in_flight: &HashMap<ObjectKey, Delta<K>>,
        missing: &mut Vec<Deleted<K>>,
    ) {
        let queued = self.items.iter().map(|pending| (&pending.key, pending.last()));
        let in_flight = in_flight.iter().filter(|(key, _)| !self.is_queued(key));
        for (key, last) in queued.chain(in_flight) {
            if !last.is_deleted() && listed.lacks(key) {
                missing.push(Deleted::missed(key.clone(), last.object().cloned()));
            }
        }
    }
}
