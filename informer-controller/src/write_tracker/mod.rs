//! [`WriteTracker`]: the writes of a controller that its caches have not received yet, by key.
//!
//! A cache is always a little late. If a controller creates a child and is called again before the
//! cache has this child, the controller creates another one. KEP-5647 solves this inside
//! Kubernetes: before a key is reconciled again, the cache must have the last write for the key.
//! client-go has no counterpart; the expectations of the `ReplicaSet` controller count events and
//! don't compare versions.
//!
//! A write is expired when its deadline is over: its key no longer waits for this write. The
//! tracker has one lock. While it is held, no user code is called except `Hash`, `Eq`, `Clone` and
//! `Drop` of keys.

mod in_flight;
mod key_writes;
mod pending;
mod settlement;

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use informer_core::ResourceVersion;
use parking_lot::Mutex;
use tokio::time::Instant;

use pending::{Condition, Pending, StoreCheck, Watermark, has_reached};

pub use in_flight::WriteInFlight;
pub use key_writes::KeyWrites;

/// The writes of a controller that its caches have not received yet, by key. A clone is another
/// handle to the same tracker.
///
/// After a write is recorded [for a key](Self::of), that key is not [ready](KeyWrites::is_ready)
/// until the cache has the write. A [`ControllerRunner`](crate::ControllerRunner) has a tracker and
/// passes [a handle](crate::ReconcileRequest::writes) to each call. Other code that reads a cache
/// after a write can use a tracker directly:
///
/// ```no_run
/// use informer_controller::WriteTracker;
/// use informer_factory::{ObjectKey, SharedIndexInformer};
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::api::{Api, PostParams};
///
/// async fn create(
///     tracker: &WriteTracker<ObjectKey>,
///     children: &SharedIndexInformer<ConfigMap>,
///     server: &Api<ConfigMap>,
///     parent: &ObjectKey,
///     child: &ConfigMap,
/// ) -> Result<(), kube::Error> {
///     let writes = tracker.of(parent);
///     writes.ready().await; // Waits until `children` has all earlier writes for this parent.
///     writes.track(children, child, server.create(&PostParams::default(), child)).await?;
///     Ok(())
/// }
/// ```
///
/// A key waits for a write until one of these is true:
///
/// - The store has the written version of the object, or a later version, or has removed the object
///   because it no longer matches the informer's selector.
/// - The write was a deletion, and the store does not have the object (identified by its UID), or
///   has it with a deletion timestamp.
/// - The program has [reported](WriteInFlight::refused) that the server rejected the write.
/// - The store has the state that [`KeyWrites::ready`] has read from the server, after
///   [`KeyWrites::track`] or [`KeyWrites::track_deletion`] returned an error.
/// - The [deadline](Self::with_deadline) is over.
///
/// After the outcome of a request is known, a key does not wait in these cases:
///
/// - The informer never receives the object: the object is in another namespace, or its labels do
///   not match the informer's selector. While the key still waits for an earlier write in the same
///   cache, this write counts like the earlier one.
/// - The version of the object in the response is not a number.
/// - The informer has stopped.
///
/// Note: if only the informer's field selector excludes the object, the key can wait until the
/// deadline.
///
/// Only the key for which a write is recorded waits for the write. If a write concerns several
/// keys, record it for each of these keys. A deletion of a collection can't be tracked: delete the
/// objects one by one.
#[doc(alias = "ConsistencyStore")]
#[doc(alias = "expectations")]
pub struct WriteTracker<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    deadline: Duration,
    keys: Mutex<Keys<T>>,
    /// The number of expired writes that [`unmet`](WriteTracker::unmet) has removed.
    timed_out: AtomicU64,
}

struct Keys<T> {
    pending: HashMap<T, Vec<Arc<Pending>>>,
    next_id: u64,
    /// With fewer keys than this in `pending`, [`sweep`](Self::sweep) does nothing.
    sweep_at: usize,
}

/// Writes that were removed from the tracker. Drop them while the tracker's lock is not held.
// I8: a write can hold the last handle to a store, and destructors of objects are user code.
type Garbage = Vec<Arc<Pending>>;

/// The lowest value of [`Keys::sweep_at`]: a tracker with fewer keys never searches all keys for
/// expired writes.
const MIN_KEYS_TO_SWEEP: usize = 1_024;

/// The longest deadline that a tracker can have: a year.
const MAX_DEADLINE: Duration = Duration::from_secs(365 * 24 * 3600);

impl<T: Hash + Eq + Clone> WriteTracker<T> {
    /// The default [deadline](Self::with_deadline), after which a key no longer waits for a write:
    /// ten seconds.
    pub const DEADLINE: Duration = Duration::from_secs(10);

    /// Returns a tracker with the [default deadline](Self::DEADLINE).
    #[must_use]
    pub fn new() -> Self {
        Self::with_deadline(Self::DEADLINE)
    }

    /// Returns a tracker with this deadline, at most a year: the longest time for which a key waits
    /// for one write. When the deadline is over, the key is [ready](KeyWrites::is_ready) although a
    /// cache can lack the write, and a controller reconciles the key.
    ///
    /// The time counts from the last of these events:
    ///
    /// - The request starts.
    /// - The request ends or is cancelled.
    /// - [`KeyWrites::ready`] has read the object from the server, because the outcome of the
    ///   request was unknown.
    ///
    /// The time can also start again when another write for the same key and the same cache
    /// succeeds.
    ///
    /// Set a deadline that is longer than the lag of the caches when the server is busy. After a
    /// cancelled create, update or patch, the key waits for the whole deadline.
    #[must_use]
    pub fn with_deadline(deadline: Duration) -> Self {
        let keys = Keys { pending: HashMap::new(), next_id: 0, sweep_at: MIN_KEYS_TO_SWEEP };
        let deadline = deadline.min(MAX_DEADLINE);
        let shared = Shared { deadline, keys: Mutex::new(keys), timed_out: AtomicU64::new(0) };
        Self { shared: Arc::new(shared) }
    }

    /// Returns a handle to the writes for `key`.
    #[must_use]
    pub fn of(&self, key: &T) -> KeyWrites<T> {
        KeyWrites { tracker: self.clone(), key: key.clone() }
    }

    /// Returns the number of keys with pending writes. A write that the caches have received, or
    /// whose deadline is over, can count as pending until [`KeyWrites::is_ready`] or
    /// [`KeyWrites::ready`] is called for its key.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.shared.keys.lock().pending.len()
    }

    /// Returns how many writes had not arrived in the caches at their
    /// [deadline](Self::with_deadline), since the tracker was created.
    ///
    /// The number is not exact:
    ///
    /// - A write is counted when [`KeyWrites::is_ready`] or [`KeyWrites::ready`] is called for its
    ///   key. If a newer write is recorded before this call, the older write is possibly never
    ///   counted.
    /// - If a request takes longer than the deadline, its write is possibly counted twice: during
    ///   the request and after the request.
    #[must_use]
    pub fn timed_out(&self) -> u64 {
        self.shared.timed_out.load(Ordering::Relaxed)
    }

    fn until(&self) -> Instant {
        Instant::now() + self.shared.deadline
    }

    /// Records a write for `key`. The key waits until `condition` is met. Returns the id of the
    /// write and the unchanged argument `condition`.
    fn add(&self, key: &T, condition: Condition) -> (u64, Condition) {
        let until = self.until();
        let mut keys = self.shared.keys.lock();
        let now = Instant::now();
        let mut garbage = keys.sweep(now);
        garbage.extend(keys.sweep_key(key, now));
        let id = keys.push(key, until, condition.clone());
        drop(keys);
        drop(garbage);
        (id, condition)
    }

    /// Records a write whose result is known.
    fn add_known(&self, key: &T, condition: Condition) {
        match condition {
            Condition::Version { watermark, version } => self.add_version(key, watermark, version),
            Condition::Leaving { watermark, version, is_absent } => {
                let is_absent = self.after_earlier_writes(key, &watermark, is_absent);
                let condition = Condition::Leaving { watermark, version, is_absent };
                if !condition.is_met() {
                    self.add(key, condition);
                }
            }
            condition => _ = self.add(key, condition),
        }
    }

    /// Returns a check like `is_absent`, but one that returns `false` until the store has the
    /// version for which the key already waits. An older store possibly lacks the object because it
    /// has not received the object yet.
    fn after_earlier_writes(&self, key: &T, watermark: &Watermark, is_absent: StoreCheck) -> StoreCheck {
        let keys = self.shared.keys.lock();
        let mut writes = keys.pending.get(key).into_iter().flatten();
        // `add_version` keeps one version of each store.
        let earlier = writes.find_map(|write| write.condition.version_in(watermark).cloned());
        drop(keys);
        let (watermark, earlier) = (watermark.clone(), earlier.unwrap_or_default());
        Arc::new(move || has_reached(&watermark, &earlier) && is_absent())
    }

    /// Records that the key waits until the store of `watermark` has this resource version. The key
    /// waits only for the newest version of each store.
    fn add_version(&self, key: &T, watermark: Watermark, mut version: ResourceVersion) {
        let until = self.until();
        let mut keys = self.shared.keys.lock();
        let now = Instant::now();
        let mut garbage = keys.sweep(now);
        let known = keys.remove(key, |other| other.condition.version_in(&watermark).is_some());
        for other in known.iter().filter(|other| !other.expire(now)) {
            let newer = other.condition.version_in(&watermark).filter(|it| it.is_newer_than(&version));
            if let Some(newer) = newer {
                version = newer.clone();
            }
        }
        garbage.extend(known);
        keys.push(key, until, Condition::Version { watermark, version });
        drop(keys);
        drop(garbage);
    }

    fn remove(&self, key: &T, id: u64) -> Option<Arc<Pending>> {
        let mut keys = self.shared.keys.lock();
        keys.remove(key, |pending| pending.id == id).pop()
    }

    /// Changes the condition of the write `id`, and restarts its deadline. Records the write again
    /// if it was removed meanwhile.
    fn replace_condition(&self, key: &T, id: u64, condition: Condition) {
        let replaced = Arc::new(Pending::new(id, self.until(), condition));
        let mut keys = self.shared.keys.lock();
        let all = keys.pending.entry(key.clone()).or_default();
        let old = match all.iter_mut().find(|one| one.id == id) {
            Some(place) => Some(std::mem::replace(place, replaced)),
            None => {
                all.push(replaced);
                None
            }
        };
        drop(keys);
        drop(old);
    }

    /// Removes a write with an unknown outcome, after its object was read from the server. If there
    /// is a `condition`, the key waits for it from now on.
    fn settle(&self, key: &T, id: u64, condition: Option<Condition>) {
        // The condition is added before the write is removed, so that the key waits without a gap.
        if let Some(condition) = condition {
            self.add_known(key, condition);
        }
        drop(self.remove(key, id));
    }

    /// Returns the writes for which the key still waits, and removes its other writes. The second
    /// value is `true` if a removed write has timed out.
    fn unmet(&self, key: &T) -> (Vec<Arc<Pending>>, bool) {
        let all = self.shared.keys.lock().pending.get(key).cloned().unwrap_or_default();
        // I8: stores are read without a lock.
        let now = Instant::now();
        let (met, unmet): (Vec<_>, Vec<_>) = all.into_iter().partition(|pending| pending.condition.is_met());
        let (late, left): (Vec<_>, Vec<_>) = unmet.into_iter().partition(|pending| pending.expire(now));
        if !met.is_empty() || !late.is_empty() {
            let is_over =
                |pending: &Arc<Pending>| met.iter().chain(&late).any(|over| Arc::ptr_eq(over, pending));
            let garbage = self.shared.keys.lock().remove(key, is_over);
            // Several calls can find the same write late. The call that removes the write counts
            // it.
            let timed_out = garbage.iter().filter(|pending| pending.is_expired()).count() as u64;
            self.shared.timed_out.fetch_add(timed_out, Ordering::Relaxed);
        }
        (left, !late.is_empty())
    }
}

impl<T: Hash + Eq + Clone> Keys<T> {
    fn push(&mut self, key: &T, until: Instant, condition: Condition) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.pending.entry(key.clone()).or_default().push(Arc::new(Pending::new(id, until, condition)));
        id
    }

    fn remove(&mut self, key: &T, is_over: impl Fn(&Arc<Pending>) -> bool) -> Garbage {
        let Some(pending) = self.pending.get_mut(key) else { return Garbage::new() };
        let garbage = pending.extract_if(.., |pending| is_over(pending)).collect();
        if pending.is_empty() {
            self.pending.remove(key);
        }
        garbage
    }

    /// Removes the expired writes of all keys, if at least `sweep_at` keys have writes. Returns the
    /// removed writes.
    fn sweep(&mut self, now: Instant) -> Garbage {
        let mut garbage = Garbage::new();
        if self.pending.len() >= self.sweep_at {
            self.pending.retain(|_, pending| {
                garbage.extend(pending.extract_if(.., |pending| pending.expire(now)));
                !pending.is_empty()
            });
            self.sweep_at = MIN_KEYS_TO_SWEEP.max(self.pending.len() * 2);
        }
        garbage
    }

    /// Removes expired writes of the key, if the number of its writes is a power of two. Returns
    /// the removed writes.
    fn sweep_key(&mut self, key: &T, now: Instant) -> Garbage {
        // Adding many writes for one key stays fast, because most calls do not search.
        match self.pending.get(key) {
            Some(pending) if pending.len().is_power_of_two() => {
                self.remove(key, |pending| pending.expire(now))
            }
            _ => Garbage::new(),
        }
    }
}

impl<T: Hash + Eq + Clone> Default for WriteTracker<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Clone for WriteTracker<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<T> fmt::Debug for WriteTracker<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.shared.keys.lock();
        f.debug_struct("WriteTracker")
            .field("deadline", &self.shared.deadline)
            .field("keys", &keys.pending.len())
            .field("writes", &keys.pending.values().map(Vec::len).sum::<usize>())
            .finish_non_exhaustive()
    }
}
