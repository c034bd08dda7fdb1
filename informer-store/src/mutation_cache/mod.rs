//! [`MutationCache`]: reads a store with this process's latest writes applied.
//!
//! client-go: `tools/cache/mutation_cache.go`. Differences from client-go:
//!
//! - Queries by index find a written object only by its new index values.
//! - A written object that the store lacks counts as deleted once the store has reached the
//!   resource version of the write.
//! - Versions that cannot be compared cause no panic.
//! - Recorded deletions don't displace recorded writes.
//!
//! The only lock protects the log of writes. No function of the store and no user code is called
//! under this lock.

mod recent;
mod write_log;

use std::borrow::Borrow;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::{Duration, Instant};

use informer_core::{Cached, Deleted, EventHandler, ObjectKey};
use parking_lot::RwLock;

use crate::{Index, IndexValue, Indexer, Snapshot};
use write_log::WriteLog;

/// The settings of a [`MutationCache`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MutationCacheOptions {
    /// The maximum number of recorded writes. If there are more, the oldest write is dropped.
    /// Recorded deletions have a separate limit, ten times this number. Default: 100.
    #[doc(alias = "MaxCacheSize")]
    pub capacity: usize,
    /// The maximum time for which a recorded write has an effect if the store does not reach the
    /// write's version. The limit also applies to recorded deletions. Default: five minutes.
    pub ttl: Duration,
    /// Whether reads return written objects that the store does not contain. Default: `false`.
    ///
    /// Such an object may have been deleted since the write. Reads can return the object until the
    /// cache detects the deletion, or until [`ttl`](Self::ttl) is over. The cache detects the
    /// deletion in two cases:
    /// - The store has reached the resource version of the write, and lacks the object. If the
    ///   object's namespace is watched separately, the namespace's own watermark counts
    ///   ([`Indexer::watermarks`]), otherwise [`Indexer::watermark`].
    /// - The cache is an event handler of the informer, and receives the deletion.
    pub include_adds: bool,
}

impl Default for MutationCacheOptions {
    fn default() -> Self {
        Self { capacity: 100, ttl: Duration::from_secs(5 * 60), include_adds: false }
    }
}

impl MutationCacheOptions {
    /// Returns the default options.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum number of recorded writes.
    #[must_use]
    pub fn capacity(mut self, capacity: usize) -> Self {
        self.capacity = capacity;
        self
    }

    /// Sets the maximum time for which a recorded write or deletion has an effect.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Sets whether reads return written objects that the store does not contain.
    #[must_use]
    pub fn include_adds(mut self, include_adds: bool) -> Self {
        self.include_adds = include_adds;
        self
    }
}

/// Reads a store with this process's latest writes applied, before they arrive over the watch.
///
/// After a write, [record](Self::record) the object that the server returned. Reads then return
/// this object instead of the stored object, until the store has the same or a later version, or
/// the write exceeds a limit of the [options](MutationCacheOptions). If versions can't be compared
/// ([`ResourceVersion::compare`](informer_core::ResourceVersion::compare)), reads return the stored
/// object. A clone is another handle to the same cache.
///
/// Register a clone as an event handler of the informer, too. The cache then drops a write when the
/// store has it, and does not record a write to an object that was deleted recently.
///
/// ```
/// use informer_core::Cached;
/// use informer_store::{MutationCache, store};
/// use k8s_openapi::api::core::v1::Pod;
///
/// # fn replace_on_server(pod: Pod) -> Pod { pod }
/// # fn example(mut pod: Pod) -> Result<(), informer_core::KeyError> {
/// let (_writer, pods) = store::<Pod>();
/// let pods = MutationCache::new(pods);
/// pod.metadata.finalizers = None;
/// let written = Cached::new(replace_on_server(pod))?;
/// let key = written.key().clone();
/// pods.record(written);
/// // Returns the written object if the store has an older version of it.
/// let pod = pods.get(&key);
/// # Ok(())
/// # }
/// ```
///
/// # When to use it
/// An informer's `wait_until` is simpler: it waits, usually for milliseconds, until the store
/// reaches the version of the write. The store then also has the earlier changes of all other
/// objects. Use a mutation cache in code that can't wait, such as a function that is not async, or
/// a loop that writes many objects. The cache adds only writes of this process, and drops old
/// writes. The informer's transform and pruning are not applied to written objects.
#[doc(alias = "OnAddOrUpdate")]
pub struct MutationCache<K> {
    shared: Arc<Shared<K>>,
}

struct Shared<K> {
    indexer: Indexer<K>,
    options: MutationCacheOptions,
    clock: Box<dyn Fn() -> Instant + Send + Sync>,
    log: RwLock<WriteLog<K>>,
}

impl<K: 'static> MutationCache<K> {
    /// Returns a cache that reads this store, with the default options.
    #[must_use]
    #[doc(alias = "NewIntegerResourceVersionMutationCache")]
    pub fn new(indexer: Indexer<K>) -> Self {
        Self::with_options(indexer, MutationCacheOptions::default())
    }

    /// Returns a cache that reads this store.
    #[must_use]
    #[doc(alias = "NewIntegerResourceVersionMutationCacheWithOptions")]
    pub fn with_options(indexer: Indexer<K>, options: MutationCacheOptions) -> Self {
        Self::with_clock(indexer, options, Instant::now)
    }

    /// Returns a cache that reads this store, with a clock that tests can control.
    #[must_use]
    pub fn with_clock(
        indexer: Indexer<K>,
        options: MutationCacheOptions,
        clock: impl Fn() -> Instant + Send + Sync + 'static,
    ) -> Self {
        let log = RwLock::new(WriteLog::new(options.capacity, options.ttl));
        Self { shared: Arc::new(Shared { indexer, options, clock: Box::new(clock), log }) }
    }

    /// Records the object that the server returned for a write. Returns whether the object was
    /// recorded. It is not recorded in these cases:
    /// - The store has the same or a later version of the object, or the versions can't be
    ///   compared.
    /// - The store has reached the version of the write, and lacks the object: the object counts as
    ///   deleted, as for [`include_adds`](MutationCacheOptions::include_adds).
    /// - The program has added the cache to the informer as an event handler, and the cache has
    ///   recorded the deletion of the object.
    /// - A later version is recorded.
    /// - The [`capacity`](MutationCacheOptions::capacity) is 0.
    #[doc(alias = "Mutation")]
    #[expect(clippy::must_use_candidate, reason = "most callers do not need the result")]
    pub fn record(&self, object: Cached<K>) -> bool {
        let now = (self.shared.clock)();
        if !lacks_write(&self.shared.indexer.snapshot(), &object) {
            return false;
        }
        // I8: objects are dropped after the lock is released.
        let mut forgotten = Vec::new();
        let recorded = self.shared.log.write().record(object, now, &mut forgotten);
        drop(forgotten);
        recorded
    }

    /// Returns the object with this key: the stored or the recorded object, whichever has the later
    /// version. If the store lacks the object, returns the recorded object only if
    /// [`include_adds`](MutationCacheOptions::include_adds) is `true` and the store has not reached
    /// the version of the write.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<Cached<K>> {
        // The log is read before the store. If the store receives the write between the two reads,
        // and the log drops it, this order finds the write in the store. In the opposite order,
        // neither read would find it.
        let Some(written) = self.written(key) else { return self.shared.indexer.get(key) };
        let state = self.shared.indexer.snapshot();
        let stored = state.get(key);
        if !lacks_write(&state, &written) {
            self.forget(&written);
            return stored;
        }
        (stored.is_some() || self.shared.options.include_adds).then_some(written)
    }

    /// Returns the object with the key `namespace/name` or `name`: the stored or the recorded
    /// object, whichever has the later version. An object that the store lacks is returned only
    /// with [`include_adds`](MutationCacheOptions::include_adds), as by [`get`](Self::get).
    #[must_use]
    #[doc(alias = "GetByKey")]
    pub fn get_by_key(&self, key: &str) -> Option<Cached<K>> {
        self.get(&ObjectKey::from_text(key.into()))
    }

    /// Returns the objects with `value` in an index of the same store, in no particular order. If a
    /// recorded write is later than the stored object, only the index values of the written object
    /// count. Written objects that the store lacks are returned only with
    /// [`include_adds`](MutationCacheOptions::include_adds).
    ///
    /// Each call runs the index function at most once for each recorded write. The result is empty
    /// if the index has been removed.
    #[must_use]
    #[doc(alias = "ByIndex")]
    pub fn by_index<V, Q>(&self, index: &Index<K, V>, value: &Q) -> Vec<Cached<K>>
    where
        V: IndexValue + Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let written = self.all_written();
        let state = self.shared.indexer.snapshot();
        if !index.exists_in(&state.state) {
            return Vec::new();
        }
        let (mut shown, behind): (Vec<_>, Vec<_>) =
            written.into_iter().partition(|written| lacks_write(&state, written));
        behind.iter().for_each(|written| self.forget(written));
        shown.retain(|written| self.shared.options.include_adds || state.get(written.key()).is_some());
        let mut found = index.get_in(&state, value).to_vec();
        // If the snapshot still existed while the index functions run, the writer would have to
        // copy the parts that it changes.
        drop(state);
        found.retain(|stored| !shown.iter().any(|written| written.key() == stored.key()));
        found.extend(shown.into_iter().filter(|written| index.has_value(written, value)));
        found
    }

    /// Returns the number of recorded writes, including expired writes that are not dropped yet.
    /// Recorded deletions do not count.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.log.read().writes.len()
    }

    /// Returns whether the number of recorded writes ([`len`](Self::len)) is 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn written(&self, key: &ObjectKey) -> Option<Cached<K>> {
        if self.is_empty() {
            return None;
        }
        let now = (self.shared.clock)();
        self.shared.log.read().writes.get(key, now).cloned()
    }

    fn all_written(&self) -> Vec<Cached<K>> {
        let now = (self.shared.clock)();
        self.shared.log.read().writes.iter(now).cloned().collect()
    }

    fn forget(&self, written: &Cached<K>) {
        // I8: this statement releases the lock, and the object is dropped afterwards.
        let _forgotten = self.shared.log.write().forget(written);
    }

    fn seen(&self, object: &Cached<K>) {
        let _forgotten = self.shared.log.write().seen(object);
    }
}

/// Returns whether a write is later than the state of the store. For example, the store has an
/// older version of the object.
fn lacks_write<K: 'static>(snapshot: &Snapshot<K>, written: &Cached<K>) -> bool {
    let version = written.resource_version();
    match snapshot.get(written.key()) {
        // The watermark does not matter: the written version can be quarantined, and the store then
        // keeps the older version.
        Some(stored) => version.is_newer_than(stored.resource_version()),
        // I9: the store has all objects up to its watermark, so a missing object counts as deleted.
        None => !snapshot.state.watermark_for(written.key()).is_at_least(version),
    }
}

/// Receives the changes of the store: drops recorded writes that the store has, and records
/// deletions.
impl<K: Send + Sync + 'static> EventHandler<K> for MutationCache<K> {
    fn on_add(&self, object: &Cached<K>, _is_in_initial_list: bool) {
        self.seen(object);
    }

    fn on_update(&self, _old: &Cached<K>, new: &Cached<K>) {
        self.seen(new);
    }

    fn on_delete(&self, object: &Deleted<K>) {
        let now = (self.shared.clock)();
        let _forgotten = self.shared.log.write().deleted(object, now);
    }

    /// Drops the recorded write and the recorded deletion of the object. The object's namespace is
    /// no longer watched, so the store has no state with which to compare them.
    fn on_release(&self, object: &Cached<K>) {
        let _forgotten = self.shared.log.write().released(object.key());
    }
}

impl<K: 'static> Clone for MutationCache<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K: 'static> fmt::Debug for MutationCache<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MutationCache")
            .field("len", &self.len())
            .field("indexer", &self.shared.indexer)
            .finish_non_exhaustive()
    }
}
