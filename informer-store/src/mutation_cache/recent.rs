//! [`Recent`]: a map with a maximum age and a maximum number of entries. Each insertion removes
//! expired entries, and then the oldest entries beyond the maximum number.
//!
//! The age of an entry counts from its last insertion; reading does not change it. client-go:
//! `LRUExpireCache` of apimachinery, which drops the least recently used entries first.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use informer_core::ObjectKey;

#[derive(Debug)]
pub(super) struct Recent<V> {
    capacity: usize,
    ttl: Duration,
    entries: HashMap<ObjectKey, Entry<V>>,
    /// The keys by insertion number, oldest first.
    by_age: BTreeMap<u64, ObjectKey>,
    insertions: u64,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    inserted: Instant,
    insertion: u64,
}

impl<V> Recent<V> {
    pub(super) fn new(capacity: usize, ttl: Duration) -> Self {
        Self { capacity, ttl, entries: HashMap::new(), by_age: BTreeMap::new(), insertions: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn get(&self, key: &ObjectKey, now: Instant) -> Option<&V> {
        let entry = self.entries.get(key)?;
        (!self.is_too_old(entry, now)).then_some(&entry.value)
    }

    /// Returns a mutable reference to the value of a key, even if the value has expired.
    pub(super) fn entry_mut(&mut self, key: &ObjectKey) -> Option<&mut V> {
        self.entries.get_mut(key).map(|entry| &mut entry.value)
    }

    /// Returns the values that have not expired, oldest first.
    pub(super) fn iter(&self, now: Instant) -> impl Iterator<Item = &V> {
        self.by_age.values().filter_map(move |key| self.get(key, now))
    }

    /// Adds or replaces the value of a key. Moves removed values to `forgotten`, so that the caller
    /// decides when to drop them.
    pub(super) fn insert(&mut self, key: ObjectKey, value: V, now: Instant, forgotten: &mut Vec<V>) {
        self.insertions += 1;
        self.by_age.insert(self.insertions, key.clone());
        let entry = Entry { value, inserted: now, insertion: self.insertions };
        if let Some(old) = self.entries.insert(key, entry) {
            self.by_age.remove(&old.insertion);
            forgotten.push(old.value);
        }
        while let Some((_, oldest)) = self.by_age.first_key_value() {
            let too_many = self.entries.len() > self.capacity;
            if !too_many && self.entries.get(oldest).is_some_and(|entry| !self.is_too_old(entry, now)) {
                break;
            }
            let oldest = oldest.clone();
            forgotten.extend(self.remove(&oldest));
        }
    }

    pub(super) fn remove(&mut self, key: &ObjectKey) -> Option<V> {
        let entry = self.entries.remove(key)?;
        self.by_age.remove(&entry.insertion);
        Some(entry.value)
    }

    /// Removes and returns the value of a key if the value satisfies `condition`, even if it has
    /// expired.
    pub(super) fn remove_if(&mut self, key: &ObjectKey, condition: impl FnOnce(&V) -> bool) -> Option<V> {
        if condition(&self.entries.get(key)?.value) { self.remove(key) } else { None }
    }

    fn is_too_old(&self, entry: &Entry<V>, now: Instant) -> bool {
        now.saturating_duration_since(entry.inserted) > self.ttl
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(n: u8) -> ObjectKey {
        ObjectKey::cluster_scoped(&format!("o{n}"))
    }

    proptest! {
        #[test]
        fn recent_writes_behave_like_a_bounded_list(
            steps in prop::collection::vec((0..3_u8, 0..8_u8, 0..4_u64), 0..200),
        ) {
            let mut now = Instant::now();
            let mut recent = Recent::new(5, Duration::from_secs(6));
            let mut model: Vec<(u8, u64, Instant)> = Vec::new();
            for (value, (kind, n, seconds)) in (0..).zip(steps) {
                now += Duration::from_secs(seconds);
                if kind == 0 {
                    let expected = model.iter().find(|entry| entry.0 == n).map(|entry| entry.1);
                    model.retain(|entry| entry.0 != n);
                    prop_assert_eq!(recent.remove(&key(n)), expected);
                } else {
                    let before = model.len();
                    model.retain(|entry| entry.0 != n);
                    model.push((n, value, now));
                    model.retain(|entry| now - entry.2 <= Duration::from_secs(6));
                    model.drain(..model.len().saturating_sub(5));
                    let mut forgotten = Vec::new();
                    recent.insert(key(n), value, now, &mut forgotten);
                    prop_assert_eq!(forgotten.len(), before + 1 - model.len());
                }
                // Expired entries stay until the next insertion, but are not returned.
                let seen: Vec<_> = model.iter().filter(|entry| now - entry.2 <= Duration::from_secs(6)).collect();
                prop_assert!(recent.iter(now).eq(seen.iter().map(|entry| &entry.1)));
                for entry in &model {
                    let is_seen = seen.iter().any(|seen| seen.0 == entry.0);
                    prop_assert_eq!(recent.get(&key(entry.0), now).is_some(), is_seen);
                }
                prop_assert_eq!((recent.len(), recent.by_age.len()), (model.len(), model.len()));
            }
        }
    }

    #[test]
    fn map_with_zero_capacity_keeps_nothing() {
        let (mut recent, mut forgotten) = (Recent::new(0, Duration::MAX), Vec::new());
        recent.insert(key(1), 7, Instant::now(), &mut forgotten);
        assert_eq!((recent.len(), forgotten), (0, vec![7]));
    }
}
