//! [`MutationCache`]: this process's own latest writes, laid over a store.
//!
//! A write comes back over the watch a little later; who reads the store before that finds the state before the write,
//! and may do its work twice. client-go: `tools/cache/mutation_cache.go`. Unlike there, an object is found under the
//! index values that it has after the write; the store's watermark tells that an added object is gone, even if its deletion
//! was never seen; versions that can't be compared are no reason to panic; and deletions don't push writes out.
//!
//! Locks: the memory's lock is the only one here, and nothing else is called while it is held, the store included.

mod recent;
mod write_log;

use std::borrow::Borrow;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::{Duration, Instant};

use informer_core::{Cached, Deleted, EventHandler, ObjectKey};
use parking_lot::RwLock;

use crate::clock::Clock;
use crate::{Index, IndexValue, Indexer, Snapshot};
use write_log::WriteLog;

/// How much a [`MutationCache`] remembers, and what it shows.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MutationCacheOptions {
    /// How many writes are remembered; beyond that, the oldest is forgotten. Ten times as many deletions are
    /// remembered. Default: 100.
    #[doc(alias = "MaxCacheSize")]
    pub capacity: usize,
    /// How long a write is remembered if the store doesn't catch up before. Default: five minutes.
    pub ttl: Duration,
    /// Whether objects are shown that the store does not have (yet). Default: no.
    ///
    /// Such an object may have been deleted meanwhile. That is noticed as soon as the store's watermark has passed the
    /// write, as it does in an informer, or by its deletion, if the cache is a handler of the informer; else only the
    /// [`ttl`](Self::ttl) ends it.
    pub include_adds: bool,
}

impl Default for MutationCacheOptions {
    fn default() -> Self {
        Self { capacity: 100, ttl: Duration::from_secs(5 * 60), include_adds: false }
    }
}

impl MutationCacheOptions {
    /// Returns the defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how many writes are remembered.
    #[must_use]
    pub fn capacity(mut self, capacity: usize) -> Self {
        self.capacity = capacity;
        self
    }

    /// Sets how long a write is remembered.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Sets whether objects are shown that the store does not have.
    #[must_use]
    pub fn include_adds(mut self, include_adds: bool) -> Self {
        self.include_adds = include_adds;
        self
    }
}

/// Reads a store as it will be once this process's own latest writes have come back over the watch.
///
/// [`record`](Self::record) what the server returned for a write; from then on it is read instead of what the store has,
/// until the store has something as new. A write is shown only while its version is *known* to be later than the
/// store's: where versions can't be compared ([`ResourceVersion::compare`](informer_core::ResourceVersion::compare)),
/// the store's object is the answer. Cloning gives another handle on the same cache.
///
/// Best register a clone as an event handler of the informer too. Then writes are forgotten as soon as they are in the
/// store, and a write that is recorded after the deletion of its object has already been heard of is not believed.
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
/// // If the store has an older version of it, this is what was just written.
/// let pod = pods.get(&key);
/// # Ok(())
/// # }
/// ```
///
/// # Is it what you need?
/// An informer's `wait_until` is simpler, and also right where a write has effects on other objects or indices: wait
/// until the store has come as far as the version that was written, which mostly takes milliseconds. A mutation cache is
/// for code that can't wait, such as a sync function or a loop that writes many objects one after the other. It knows
/// this process's writes only, shows objects as they were recorded (an informer's transform or pruning has not been
/// applied to them), and may forget.
#[doc(alias = "OnAddOrUpdate")]
pub struct MutationCache<K> {
    shared: Arc<Shared<K>>,
}

struct Shared<K> {
    indexer: Indexer<K>,
    options: MutationCacheOptions,
    clock: Clock,
    memory: RwLock<WriteLog<K>>,
}

impl<K> MutationCache<K> {
    /// Returns a cache over a store, with the default options.
    #[must_use]
    #[doc(alias = "NewIntegerResourceVersionMutationCache")]
    pub fn new(indexer: Indexer<K>) -> Self {
        Self::with_options(indexer, MutationCacheOptions::default())
    }

    /// Returns a cache over a store.
    #[must_use]
    #[doc(alias = "NewIntegerResourceVersionMutationCacheWithOptions")]
    pub fn with_options(indexer: Indexer<K>, options: MutationCacheOptions) -> Self {
        Self::with_clock(indexer, options, Instant::now)
    }

    /// As [`with_options`](Self::with_options), but takes the time from `clock`, for tests.
    #[must_use]
    pub fn with_clock(
        indexer: Indexer<K>,
        options: MutationCacheOptions,
        clock: impl Fn() -> Instant + Send + Sync + 'static,
    ) -> Self {
        let memory = RwLock::new(WriteLog::new(options.capacity, options.ttl));
        Self { shared: Arc::new(Shared { indexer, options, clock: Clock::new(clock), memory }) }
    }

    /// Remembers an object as the server returned it for a write of this process.
    ///
    /// Returns whether it did. It doesn't if the store or a deletion has something as new already, or another write
    /// something later.
    #[doc(alias = "Mutation")]
    #[expect(clippy::must_use_candidate, reason = "the caller need not care whether the store was faster")]
    pub fn record(&self, object: Cached<K>) -> bool {
        let now = self.shared.clock.now();
        if !is_ahead(&self.shared.indexer.snapshot(), &object) {
            return false;
        }
        // I8: objects are dropped when the lock has been released.
        let mut forgotten = Vec::new();
        let recorded = self.shared.memory.write().record(object, now, &mut forgotten);
        drop(forgotten);
        recorded
    }

    /// Returns the object with this key: the later one of what the store has and what was recorded.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<Cached<K>> {
        // The memory first: what is forgotten by then is in the store.
        let Some(written) = self.written(key) else { return self.shared.indexer.get(key) };
        let state = self.shared.indexer.snapshot();
        let stored = state.get(key).cloned();
        if !is_ahead(&state, &written) {
            self.forget(&written);
            return stored;
        }
        (stored.is_some() || self.shared.options.include_adds).then_some(written)
    }

    /// Returns the object with this key, given as `namespace/name` or `name`.
    #[must_use]
    #[doc(alias = "GetByKey")]
    pub fn get_by_key(&self, key: &str) -> Option<Cached<K>> {
        self.get(&ObjectKey::from_text(key.into()))
    }

    /// Returns the objects that have `value` in an index of the same store, in no particular order. Where a write is
    /// later than what the store has of an object, it is the write's values that count.
    ///
    /// Runs the index function for each write that is remembered. Empty if the index has been removed.
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
            written.into_iter().partition(|written| is_ahead(&state, written));
        behind.iter().for_each(|written| self.forget(written));
        shown.retain(|written| self.shared.options.include_adds || state.get(written.key()).is_some());
        let mut found = index.get_in(&state, value).to_vec();
        // Else the writer would copy what it touches while the index functions run.
        drop(state);
        found.retain(|stored| !shown.iter().any(|written| written.key() == stored.key()));
        found.extend(shown.into_iter().filter(|written| index.holds(written, value)));
        found
    }

    /// Returns how many writes are remembered at present.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.memory.read().len()
    }

    /// Returns whether no writes are remembered at present.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn written(&self, key: &ObjectKey) -> Option<Cached<K>> {
        if self.is_empty() {
            return None;
        }
        let now = self.shared.clock.now();
        self.shared.memory.read().get(key, now).cloned()
    }

    fn all_written(&self) -> Vec<Cached<K>> {
        let now = self.shared.clock.now();
        self.shared.memory.read().writes(now).cloned().collect()
    }

    fn forget(&self, written: &Cached<K>) {
        let forgotten = self.shared.memory.write().forget(written);
        // I8: not under the lock, which is a temporary of the line above.
        drop(forgotten);
    }

    fn seen(&self, object: &Cached<K>) {
        let forgotten = self.shared.memory.write().seen(object);
        drop(forgotten);
    }
}

/// Returns whether a write is later than a state of the store.
fn is_ahead<K>(state: &Snapshot<K>, written: &Cached<K>) -> bool {
    // I9: up to its watermark the store has everything. If the object isn't there, it has been deleted since.
    if state.watermark_for(written.key()).is_at_least(written.resource_version()) {
        return false;
    }
    let stored = state.get(written.key());
    stored.is_none_or(|stored| written.resource_version().is_newer_than(stored.resource_version()))
}

/// Forgets writes that have come back, and remembers what has been deleted.
impl<K: Send + Sync + 'static> EventHandler<K> for MutationCache<K> {
    fn on_add(&self, object: &Cached<K>, _is_in_initial_list: bool) {
        self.seen(object);
    }

    fn on_update(&self, _old: &Cached<K>, new: &Cached<K>) {
        self.seen(new);
    }

    fn on_delete(&self, object: &Deleted<K>) {
        let now = self.shared.clock.now();
        let forgotten = self.shared.memory.write().deleted(object, now);
        drop(forgotten);
    }

    /// The store says nothing of it any more, so there is nothing to be ahead of.
    fn on_release(&self, object: &Cached<K>) {
        let forgotten = self.shared.memory.write().released(object.key());
        drop(forgotten);
    }
}

impl<K> Clone for MutationCache<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K> fmt::Debug for MutationCache<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MutationCache")
            .field("len", &self.len())
            .field("indexer", &self.shared.indexer)
            .finish_non_exhaustive()
    }
}
