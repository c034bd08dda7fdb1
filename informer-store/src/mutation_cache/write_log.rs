//! [`WriteLog`]: the recent writes of this process, at most one per object, and tombstones of
//! recent deletions. This code uses no lock, no clock and no store.

use std::time::{Duration, Instant};

use informer_core::{Cached, Deleted, ObjectKey, ResourceVersion, Uid};

use super::recent::Recent;

/// The maximum number of tombstones, as a multiple of the maximum number of writes.
// Objects that other clients delete get tombstones, too.
const TOMBSTONES_PER_WRITE: usize = 10;

pub(super) struct WriteLog<K> {
    pub(super) writes: Recent<Cached<K>>,
    /// Recent deletions, separate from the writes, so that many deletions don't displace writes.
    tombstones: Recent<Tombstone>,
}

#[derive(Debug)]
struct Tombstone {
    resource_version: ResourceVersion,
    uid: Uid,
}

impl Tombstone {
    /// Returns `true` if `object` has the tombstone's UID, or if its version is not newer than the
    /// tombstone's. All other objects count as created after the deletion.
    fn covers<K>(&self, object: &Cached<K>) -> bool {
        let is_same_object = !self.uid.is_missing() && self.uid == *object.uid();
        is_same_object || !object.resource_version().is_newer_than(&self.resource_version)
    }
}

impl<K> WriteLog<K> {
    pub(super) fn new(capacity: usize, ttl: Duration) -> Self {
        Self {
            writes: Recent::new(capacity, ttl),
            tombstones: Recent::new(capacity.saturating_mul(TOMBSTONES_PER_WRITE), ttl),
        }
    }

    /// Records a write, unless a later write or the deletion of the object is known. Returns
    /// whether the write was recorded.
    ///
    /// Moves dropped writes to `forgotten`, for example `object` if it is not recorded.
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
        // The newest write is the last one to be dropped, so only a capacity of 0 drops it at once.
        self.writes.len() > 0
    }

    /// Removes and returns the recorded write of an object, unless the write is newer. `stored` is
    /// the object in the store.
    pub(super) fn seen(&mut self, stored: &Cached<K>) -> Option<Cached<K>> {
        let (key, version) = (stored.key(), stored.resource_version());
        if let Some(tombstone) = self.tombstones.entry_mut(key)
            && !tombstone.resource_version.is_newer_than(version)
        {
            if version.is_comparable() {
                // The object exists again, so the tombstone now covers only writes up to the stored
                // version.
                *tombstone = Tombstone { resource_version: version.clone(), uid: Uid::default() };
            } else {
                self.tombstones.remove(key);
            }
        }
        self.writes.remove_if(key, |written| !written.resource_version().is_newer_than(version))
    }

    /// Adds a tombstone for a deleted object. Removes and returns the recorded write of the object,
    /// unless the write created the object again.
    pub(super) fn deleted(&mut self, deleted: &Deleted<K>, now: Instant) -> Option<Cached<K>> {
        // Without a last known state, the UID and the version of the object are unknown, so there
        // is nothing to record.
        let last = deleted.last_known()?;
        let key = deleted.key();
        let (resource_version, uid) = (last.resource_version().clone(), last.uid().clone());
        let tombstone = Tombstone { resource_version, uid };
        let covered = self.writes.remove_if(key, |written| tombstone.covers(written));
        self.tombstones.insert(key.clone(), tombstone, now, &mut Vec::new());
        covered
    }

    /// Removes the tombstone and the recorded write of an object that the informer no longer
    /// watches. Returns the write.
    pub(super) fn released(&mut self, key: &ObjectKey) -> Option<Cached<K>> {
        self.tombstones.remove(key);
        self.writes.remove(key)
    }

    /// Removes and returns this write, unless a later write of its key has replaced it.
    pub(super) fn forget(&mut self, written: &Cached<K>) -> Option<Cached<K>> {
        self.writes.remove_if(written.key(), |last| last.ptr_eq(written))
    }
}
