//! [`Listing`]: the objects of a list that is arriving.
//!
//! The listing shares all unchanged objects, and all objects of an initial list, with the store. So
//! these objects are in memory only once. The order of the objects is deterministic, so that
//! simulations can be repeated.
//!
//! An object is quarantined if the list contains it, but it can't be decoded or transformed.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use informer_core::{Cached, ListWatchError, ObjectKey, RejectedObject, Replacement, ResourceVersion};

/// While a list has fewer objects than this, [`Listing::check_for_repetitions`] does nothing.
const MIN_CHECKED: usize = 4_096;

pub(super) struct Listing<K> {
    objects: Vec<Cached<K>>,
    /// While the list has fewer objects than this,
    /// [`check_for_repetitions`](Self::check_for_repetitions) does nothing.
    check_at: usize,
    /// All objects that a streaming list sends from its first `MODIFIED` or `DELETED` event on. The
    /// value is `None` if the object was deleted. When the list is complete, each entry replaces or
    /// removes the object with the same key in `objects`.
    changes: BTreeMap<ObjectKey, Option<Cached<K>>>,
    has_changes: bool,
    quarantined: BTreeSet<ObjectKey>,
    /// The number of objects whose name can't be read.
    nameless: usize,
    received: usize,
}

impl<K> Listing<K> {
    pub(super) fn new() -> Self {
        Self {
            objects: Vec::new(),
            check_at: MIN_CHECKED,
            changes: BTreeMap::new(),
            has_changes: false,
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
        if !self.has_changes {
            self.objects.extend(objects);
            return;
        }
        for object in objects {
            self.quarantined.remove(object.key());
            self.changes.insert(object.key().clone(), Some(object));
        }
    }

    /// Calls [`check_for_repetitions_now`](Self::check_for_repetitions_now) whenever the length of
    /// the list has doubled. So the memory of an endless list that repeats its objects is bounded.
    pub(super) fn check_for_repetitions(&mut self) -> Result<(), ListWatchError> {
        if self.objects.len() < self.check_at {
            return Ok(());
        }
        let outcome = self.check_for_repetitions_now();
        self.check_at = MIN_CHECKED.max(2 * self.objects.len());
        outcome
    }

    /// Drops each object whose key occurs again later in the list. Fails if more than half of the
    /// objects are dropped, because such a list may never end.
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

    /// Keeps the last object of each key.
    fn drop_repeated(&mut self) {
        let mut keys = HashSet::with_capacity(self.objects.len());
        let mut is_last: Vec<_> =
            self.objects.iter().rev().map(|object| keys.insert(object.key().clone())).collect();
        self.objects.retain(|_| is_last.pop().unwrap_or(true));
    }

    /// Records that the stream has sent a modification or deletion. An object that arrives after
    /// this call replaces earlier objects with the same key.
    pub(super) fn begin_changes(&mut self) {
        self.has_changes = true;
    }

    pub(super) fn remove(&mut self, key: ObjectKey) {
        self.has_changes = true;
        self.quarantined.remove(&key);
        self.changes.insert(key, None);
    }

    /// Records that an object of the list can't be decoded or transformed. The store then keeps the
    /// object's last valid version. If a valid version has arrived earlier in the list, that
    /// version is stored.
    pub(super) fn quarantine(&mut self, rejected: &RejectedObject) {
        // I10: the object exists on the server, although the list lacks it.
        self.received += 1;
        match &rejected.key {
            Some(key) => _ = self.quarantined.insert(key.clone()),
            None => self.nameless += 1,
        }
    }

    pub(super) fn all_quarantined(&self) -> &BTreeSet<ObjectKey> {
        &self.quarantined
    }

    /// Returns the complete list, and the number of its objects, including quarantined ones.
    pub(super) fn into_replacement(mut self, resource_version: ResourceVersion) -> (Replacement<K>, usize) {
        if !self.changes.is_empty() {
            self.objects.retain(|object| !self.changes.contains_key(object.key()));
            self.objects.extend(self.changes.into_values().flatten());
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
