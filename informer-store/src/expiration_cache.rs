//! [`ExpirationCache`]: a cache whose objects expire.
//!
//! client-go: `NewTTLStore` and `NewExpirationStore` of `tools/cache/expiration_cache.go`. In
//! client-go, reads take an exclusive lock, and the list of keys contains keys of expired objects.
//!
//! Lock order: `writer`, then the locks of the store. The policy, the clock, and destructors of
//! objects run without a lock.

use std::fmt;
use std::time::{Duration, Instant};

use informer_core::{Cached, ObjectKey, ResourceVersion, Uid};
use parking_lot::Mutex;

use crate::{Change, Indexer, StoreWriter, store};

type Policy<K> = Box<dyn Fn(&Cached<K>, Duration) -> bool + Send + Sync>;

/// A cache of objects of any type. Each object expires some time after it was added.
///
/// A read never returns an expired object, and removes an expired object that it finds. Expired
/// objects that no read finds stay in memory; [`list`](Self::list) removes all of them. All methods
/// except [`with_clock`](Self::with_clock) take `&self`: share the cache between threads in an
/// `Arc`. Any text can be a key ([`ObjectKey::from_text`]). [`Cached::from_parts`] combines an
/// object with its key.
///
/// Use it for data without a watch: responses of other services, objects that were fetched one by
/// one, decisions that expire. For Kubernetes objects that are read often, an informer is better,
/// because it receives changes. To read your own writes, use an informer's `wait_until` or a
/// [`MutationCache`](crate::MutationCache).
///
/// ```
/// use std::time::Duration;
///
/// use informer_core::{Cached, ObjectKey, ResourceVersion, Uid};
/// use informer_store::ExpirationCache;
///
/// let addresses = ExpirationCache::new(Duration::from_secs(30));
/// let key = ObjectKey::from_text("registry.example.com".into());
/// addresses.put(Cached::from_parts(key.clone(), ResourceVersion::empty(), Uid::default(), [203, 0, 113, 7]));
/// assert_eq!(addresses.get(&key).map(|address| *address), Some([203, 0, 113, 7]));
/// ```
#[doc(alias = "TTLStore")]
#[doc(alias = "NewTTLStore")]
pub struct ExpirationCache<K> {
    writer: Mutex<StoreWriter<Entry<K>>>,
    entries: Indexer<Entry<K>>,
    policy: Policy<K>,
    clock: Box<dyn Fn() -> Instant + Send + Sync>,
}

/// An object, and the time at which it was added.
struct Entry<K> {
    object: Cached<K>,
    since: Instant,
}

impl<K: Send + Sync + 'static> ExpirationCache<K> {
    /// Returns an empty cache whose objects expire after `ttl`. If `ttl` is zero, objects never
    /// expire.
    #[must_use]
    #[doc(alias = "TTLPolicy")]
    pub fn new(ttl: Duration) -> Self {
        Self::with_policy(move |_, age| !ttl.is_zero() && age > ttl)
    }

    /// Returns an empty cache in which `is_expired` decides whether an object has expired. The
    /// function receives the object and the time since the object was added.
    ///
    /// Reads and [`remove`](Self::remove) call `is_expired` for each object that they find, from
    /// any thread.
    #[must_use]
    #[doc(alias = "NewExpirationStore")]
    #[doc(alias = "ExpirationPolicy")]
    pub fn with_policy(is_expired: impl Fn(&Cached<K>, Duration) -> bool + Send + Sync + 'static) -> Self {
        let (writer, entries) = store();
        let policy = Box::new(is_expired);
        Self { writer: Mutex::new(writer), entries, policy, clock: Box::new(Instant::now) }
    }

    /// Sets the clock, for tests.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Fn() -> Instant + Send + Sync + 'static) -> Self {
        self.clock = Box::new(clock);
        self
    }

    /// Adds an object, or replaces the object with the same key. The age of the new object counts
    /// from this call.
    #[doc(alias = "Add")]
    #[doc(alias = "Update")]
    pub fn put(&self, object: Cached<K>) {
        let entry = entry(object, (self.clock)());
        // I8: the replaced object is dropped after the lock is released.
        let _old = {
            let mut writer = self.writer.lock();
            let old = self.entries.get(entry.key());
            writer.transaction(vec![Change::Put(entry)], None);
            old
        };
    }

    /// Returns the object with this key, if the object has not expired.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<Cached<K>> {
        self.unless_expired(self.entries.get(key)?)
    }

    /// Returns the object with this key, given as a string, if the object has not expired.
    #[must_use]
    #[doc(alias = "GetByKey")]
    pub fn get_by_key(&self, key: &str) -> Option<Cached<K>> {
        self.unless_expired(self.entries.get_by_key(key)?)
    }

    /// Returns the objects that have not expired, in no particular order, and removes all expired
    /// objects.
    #[must_use]
    pub fn list(&self) -> Vec<Cached<K>> {
        let now = (self.clock)();
        let (expired, alive): (Vec<_>, Vec<_>) =
            self.entries.list().into_iter().partition(|entry| self.is_expired(entry, now));
        self.remove_entries(&expired);
        alive.iter().map(|entry| entry.object.clone()).collect()
    }

    /// Returns the keys of the objects that have not expired, and removes all expired objects.
    #[must_use]
    #[doc(alias = "ListKeys")]
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.list().iter().map(|object| object.key().clone()).collect()
    }

    /// Removes the object with this key. Returns the object, unless it had expired.
    #[doc(alias = "Delete")]
    pub fn remove(&self, key: &ObjectKey) -> Option<Cached<K>> {
        let now = (self.clock)();
        let entry = {
            let mut writer = self.writer.lock();
            let entry = self.entries.get(key)?;
            writer.transaction(vec![Change::Remove(key.clone())], None);
            entry
        };
        (!self.is_expired(&entry, now)).then(|| entry.object.clone())
    }

    /// Replaces the whole content of the cache with `objects`, in one step. The age of these
    /// objects counts from this call. If a key occurs twice, the last object counts.
    #[doc(alias = "Replace")]
    pub fn replace(&self, objects: impl IntoIterator<Item = Cached<K>>) {
        let now = (self.clock)();
        let entries: Vec<_> = objects.into_iter().map(|object| entry(object, now)).collect();
        // I8: copies of the entries are kept until the lock is released, so that no object is
        // dropped under the lock, not even an object whose key occurs twice.
        let _new = entries.clone();
        let _old = {
            let mut writer = self.writer.lock();
            let old = self.entries.list();
            writer.replace(entries, &ResourceVersion::empty());
            old
        };
    }

    fn is_expired(&self, entry: &Entry<K>, now: Instant) -> bool {
        (self.policy)(&entry.object, now.saturating_duration_since(entry.since))
    }

    fn unless_expired(&self, entry: Cached<Entry<K>>) -> Option<Cached<K>> {
        if self.is_expired(&entry, (self.clock)()) {
            self.remove_entries(&[entry]);
            return None;
        }
        Some(entry.object.clone())
    }

    /// Removes the entries in `expired`, except entries that have been replaced meanwhile.
    fn remove_entries(&self, expired: &[Cached<Entry<K>>]) {
        if expired.is_empty() {
            return;
        }
        let mut writer = self.writer.lock();
        let still_there = |expired: &&Cached<Entry<K>>| {
            self.entries.get(expired.key()).is_some_and(|entry| entry.ptr_eq(expired))
        };
        let removals = expired.iter().filter(still_there);
        let removals = removals.map(|expired| Change::Remove(expired.key().clone())).collect();
        writer.transaction(removals, None);
    }
}

/// Wraps an object with `since`, the time at which it was added.
fn entry<K: 'static>(object: Cached<K>, since: Instant) -> Cached<Entry<K>> {
    // The entry has no resource version. With a version, `StoreWriter::replace` would keep the old
    // entry, and its time, when the same version of the object is added again.
    let key = object.key().clone();
    Cached::from_parts(key, ResourceVersion::empty(), Uid::default(), Entry { object, since })
}

impl<K> fmt::Debug for ExpirationCache<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExpirationCache").finish_non_exhaustive()
    }
}
