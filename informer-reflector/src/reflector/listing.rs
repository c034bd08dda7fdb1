//! [`Listing`]: what a list has said so far.
//!
//! It holds handles, and mostly on objects that the store has too: those that are unchanged, and in a first list those
//! that have been handed on already. So a list is never held twice. What comes out is in the same order whenever the same
//! goes in, so that a run can be repeated.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use informer_core::{Cached, ListWatchError, ObjectKey, RejectedObject, Replacement, ResourceVersion};

/// A list is checked for repetitions when it has so many objects, and whenever it has doubled since.
const MIN_CHECKED: usize = 4_096;

pub(super) struct Listing<K> {
    objects: Vec<Cached<K>>,
    /// With so many objects it is checked for repetitions.
    check_at: usize,
    /// What a streaming list said after its first change: it may be about an object that it has listed before. `None`:
    /// it is deleted.
    changes: BTreeMap<ObjectKey, Option<Cached<K>>>,
    has_changes: bool,
    quarantined: BTreeSet<ObjectKey>,
    /// How many objects that can't be taken in have no readable name either.
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

    /// How many objects have come, those included that could not be taken in.
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

    /// Drops objects that have come again, so that the memory of an endless list is bounded.
    ///
    /// # Errors
    /// If more than half of the objects have come again: the list goes in circles.
    pub(super) fn check_for_repetitions(&mut self) -> Result<(), ListWatchError> {
        if self.objects.len() < self.check_at {
            return Ok(());
        }
        let outcome = self.refuse_repetitions();
        self.check_at = MIN_CHECKED.max(2 * self.objects.len());
        outcome
    }

    /// The same, at any number of objects.
    pub(super) fn refuse_repetitions(&mut self) -> Result<(), ListWatchError> {
        let before = self.objects.len();
        self.drop_repeated();
        if self.objects.len() < before / 2 {
            return Err(ListWatchError::Protocol(
                "the list repeats the same objects; the server may never end it".into(),
            ));
        }
        Ok(())
    }

    /// Keeps the last of the objects with the same key.
    fn drop_repeated(&mut self) {
        let mut keys = HashSet::with_capacity(self.objects.len());
        let mut is_last: Vec<_> =
            self.objects.iter().rev().map(|object| keys.insert(object.key().clone())).collect();
        self.objects.retain(|_| is_last.pop().unwrap_or(true));
    }

    /// From here on objects may come that have come before.
    pub(super) fn expect_changes(&mut self) {
        self.has_changes = true;
    }

    /// The object is gone, although it may have come before.
    pub(super) fn remove(&mut self, key: ObjectKey) {
        self.has_changes = true;
        self.quarantined.remove(&key);
        self.changes.insert(key, None);
    }

    /// I10: an object exists that can't be taken in. An earlier version of it that could stays.
    pub(super) fn quarantine(&mut self, malformed: &RejectedObject) {
        self.received += 1;
        match &malformed.key {
            Some(key) => _ = self.quarantined.insert(key.clone()),
            None => self.nameless += 1,
        }
    }

    /// Which objects exist that could not be taken in.
    pub(super) fn all_quarantined(&self) -> &BTreeSet<ObjectKey> {
        &self.quarantined
    }

    pub(super) fn into_replacement(mut self, resource_version: ResourceVersion) -> Replacement<K> {
        if !self.changes.is_empty() {
            self.objects.retain(|object| !self.changes.contains_key(object.key()));
            self.objects.extend(self.changes.into_values().flatten());
        }
        Replacement {
            objects: self.objects,
            complete: self.nameless == 0,
            quarantined: self.quarantined.into_iter().collect(),
            resource_version,
        }
    }
}
