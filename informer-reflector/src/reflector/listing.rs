//! [`Listing`]: the objects of a list that is arriving.
//!
//! If [`list_part`](informer_core::ReflectorStore::list_part) of the store supports it, the listing
//! shares all unchanged objects, and all objects of an initial list, with the store. So these
//! objects are in memory only once. The order of the objects is deterministic, so that simulations
//! can be repeated.
//!
//! An object is quarantined if the list contains it, but it can't be decoded or transformed.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use informer_core::{Cached, ListWatchError, ObjectKey, RejectedObject, Replacement, ResourceVersion};

/// [`Listing::check_for_repetitions`] ignores lists with fewer objects than this, because repeated
/// objects in such a list need little memory.
const MIN_CHECKED: usize = 4_096;

pub(super) struct Listing<K> {
    objects: Vec<Cached<K>>,
    /// The number of objects at which the list is next checked for repeated keys, by
    /// [`check_for_repetitions`](Self::check_for_repetitions). A faulty server can send the same
    /// objects again and again.
    check_at: usize,
    /// The objects that a streaming list sends from its first `MODIFIED` or `DELETED` event on;
    /// `None` before this event. `MODIFIED` events with an undecodable object do not count. In the
    /// map, `None` marks a deleted object.
    changes: Option<BTreeMap<ObjectKey, Option<Cached<K>>>>,
    quarantined: BTreeSet<ObjectKey>,
    /// The number of objects whose name or namespace can't be read.
    nameless: usize,
    received: usize,
}

impl<K> Listing<K> {
    pub(super) fn new() -> Self {
        Self {
            objects: Vec::new(),
            check_at: MIN_CHECKED,
            changes: None,
            quarantined: BTreeSet::new(),
            nameless: 0,
            received: 0,
        }
    }

    /// Returns the number of received objects, including quarantined ones. An object counts again
    /// for each further version that arrives.
    pub(super) fn received(&self) -> usize {
        self.received
    }

    pub(super) fn push(&mut self, objects: Vec<Cached<K>>) {
        self.received += objects.len();
        let Some(changes) = &mut self.changes else {
            self.objects.extend(objects);
            return;
        };
        for object in objects {
            self.quarantined.remove(object.key());
            changes.insert(object.key().clone(), Some(object));
        }
    }

    /// Calls [`check_for_repetitions_now`](Self::check_for_repetitions_now) if the list has doubled
    /// since the last such check.
    pub(super) fn check_for_repetitions(&mut self) -> Result<(), ListWatchError> {
        if self.objects.len() < self.check_at {
            return Ok(());
        }
        let outcome = self.check_for_repetitions_now();
        self.check_at = MIN_CHECKED.max(2 * self.objects.len());
        outcome
    }

    /// Drops each object whose key has arrived again later in the list. Returns an error if fewer
    /// than half of the objects (rounded down) remain.
    pub(super) fn check_for_repetitions_now(&mut self) -> Result<(), ListWatchError> {
        let before = self.objects.len();
        self.drop_repeated();
        if self.objects.len() < before / 2 {
            return Err(ListWatchError::Protocol(
                "the list repeats the same objects, so it may never end".into(),
            ));
        }
        Ok(())
    }

    /// Keeps only the object that arrived last for each key.
    fn drop_repeated(&mut self) {
        let mut keys = HashSet::with_capacity(self.objects.len());
        let mut is_last: Vec<_> =
            self.objects.iter().rev().map(|object| keys.insert(object.key().clone())).collect();
        self.objects.retain(|_| is_last.pop().unwrap_or(true));
    }

    /// Makes later objects replace earlier objects with the same key. Must be called before the
    /// object of the first decodable `MODIFIED` event of a streaming list is added.
    pub(super) fn begin_changes(&mut self) {
        self.changes.get_or_insert_default();
    }

    pub(super) fn remove(&mut self, key: ObjectKey) {
        self.quarantined.remove(&key);
        self.changes.get_or_insert_default().insert(key, None);
    }

    /// Records a listed object that can't be decoded or transformed. At the end of the list, the
    /// object does not count as deleted, although `objects` may lack it.
    pub(super) fn quarantine(&mut self, rejected: &RejectedObject) {
        // I10: the object exists on the server, so the store must not delete it.
        self.received += 1;
        match &rejected.key {
            Some(key) => _ = self.quarantined.insert(key.clone()),
            None => self.nameless += 1,
        }
    }

    /// Returns the keys of all objects that are quarantined after this list:
    /// - each object that this list has quarantined
    /// - if the name or namespace of a listed object can't be read: also each object in `current`
    ///   that the list neither contains nor deletes
    ///
    /// `current` contains the keys that are quarantined now.
    pub(super) fn all_quarantined(&self, mut current: BTreeSet<ObjectKey>) -> BTreeSet<ObjectKey> {
        if self.nameless == 0 {
            return self.quarantined.clone();
        }
        // I10: an object that is missing in an incomplete list may still exist, and be undecodable.
        for key in self.objects.iter().map(Cached::key).chain(self.changes.iter().flat_map(BTreeMap::keys)) {
            current.remove(key);
        }
        current.extend(self.quarantined.iter().cloned());
        current
    }

    /// Returns the complete list, and the number of its objects, including quarantined ones.
    pub(super) fn into_replacement(mut self, resource_version: ResourceVersion) -> (Replacement<K>, usize) {
        if let Some(changes) = self.changes {
            self.objects.retain(|object| !changes.contains_key(object.key()));
            self.objects.extend(changes.into_values().flatten());
        }
        // A quarantined object can also have a valid version in `objects`.
        let valid = self.objects.iter().filter(|object| !self.quarantined.contains(object.key())).count();
        let count = valid + self.quarantined.len() + self.nameless;
        let replacement = Replacement {
            objects: self.objects,
            complete: self.nameless == 0,
            quarantined: self.quarantined.into_iter().collect(),
            resource_version,
        };
        (replacement, count)
    }
}
