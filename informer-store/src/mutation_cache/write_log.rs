//! [`WriteLog`]: what this process has written lately, and what it knows to be deleted. No lock, no clock, no store.
//!
//! The one rule: a write counts as long as its version is known to be later than what else is known of the object.
//! Versions that can't be compared don't show that, and so never hide what a store has.

use std::time::{Duration, Instant};

use informer_core::{Cached, Deleted, ObjectKey, ResourceVersion, Uid};

use super::recent::Recent;

/// Tombstones are small, and every deletion leaves one, not only those of objects that were written here.
const TOMBSTONES_PER_WRITE: usize = 10;

pub(super) struct WriteLog<K> {
    writes: Recent<Cached<K>>,
    /// Apart from the writes, so that a wave of deletions doesn't push these out.
    tombstones: Recent<Tombstone>,
}

/// What was known of an object when it was deleted.
#[derive(Debug)]
struct Tombstone {
    resource_version: ResourceVersion,
    uid: Uid,
}

impl Tombstone {
    /// Returns whether `object` is, or may be, what is buried here, and not a later life under the same name.
    fn covers<K>(&self, object: &Cached<K>) -> bool {
        let same_life = !self.uid.is_missing() && self.uid == *object.uid();
        same_life || !object.resource_version().is_newer_than(&self.resource_version)
    }
}

impl<K> WriteLog<K> {
    pub(super) fn new(capacity: usize, ttl: Duration) -> Self {
        Self {
            writes: Recent::new(capacity, ttl),
            tombstones: Recent::new(capacity.saturating_mul(TOMBSTONES_PER_WRITE), ttl),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.writes.len()
    }

    /// The last write of this key that counts.
    pub(super) fn get(&self, key: &ObjectKey, now: Instant) -> Option<&Cached<K>> {
        self.writes.get(key, now)
    }

    /// All writes that count.
    pub(super) fn writes(&self, now: Instant) -> impl Iterator<Item = &Cached<K>> {
        self.writes.iter(now)
    }

    /// Takes note of a write, unless something later is known of the object. Says whether it did; what is out of use
    /// comes into `forgotten`.
    pub(super) fn record(&mut self, object: Cached<K>, now: Instant, forgotten: &mut Vec<Cached<K>>) -> bool {
        let key = object.key();
        let later = self
            .writes
            .get(key, now)
            .is_some_and(|known| known.resource_version().is_newer_than(object.resource_version()));
        if later || self.tombstones.get(key, now).is_some_and(|tombstone| tombstone.covers(&object)) {
            forgotten.push(object);
            return false;
        }
        self.writes.insert(key.clone(), object, now, forgotten);
        true
    }

    /// Forgets what the store has come up with.
    pub(super) fn seen(&mut self, stored: &Cached<K>) -> Option<Cached<K>> {
        let (key, version) = (stored.key(), stored.resource_version());
        if let Some(tombstone) = self.tombstones.entry_mut(key)
            && !tombstone.resource_version.is_newer_than(version)
        {
            if version.is_comparable() {
                // The object is there, be it in another life or found again; but what was written before is of the past.
                *tombstone = Tombstone { resource_version: version.clone(), uid: Uid::default() };
            } else {
                self.tombstones.remove(key);
            }
        }
        let written = self.writes.entry(key)?;
        (!written.resource_version().is_newer_than(version)).then(|| self.writes.remove(key)).flatten()
    }

    /// Forgets the write of an object that is gone, and leaves a tombstone.
    pub(super) fn deleted(&mut self, deleted: &Deleted<K>, now: Instant) -> Option<Cached<K>> {
        // Without it nothing tells which life of the object has ended.
        let last = deleted.last_known()?;
        let key = deleted.key();
        let (resource_version, uid) = (last.resource_version().clone(), last.uid().clone());
        let tombstone = Tombstone { resource_version, uid };
        let covered = self.writes.entry(key).is_some_and(|written| tombstone.covers(written));
        self.tombstones.insert(key.clone(), tombstone, now, &mut Vec::new());
        covered.then(|| self.writes.remove(key)).flatten()
    }

    /// Forgets all that is known of an object.
    pub(super) fn released(&mut self, key: &ObjectKey) -> Option<Cached<K>> {
        self.tombstones.remove(key);
        self.writes.remove(key)
    }

    /// Forgets this very write, if it is still the last of its key.
    pub(super) fn forget(&mut self, written: &Cached<K>) -> Option<Cached<K>> {
        let is_last = self.writes.entry(written.key()).is_some_and(|last| last.ptr_eq(written));
        is_last.then(|| self.writes.remove(written.key())).flatten()
    }
}
