//! [`WriteTracker`]: the writes of a controller that its caches have not received yet, by key.
//!
//! A cache is always a little late. If a controller creates a child and is called again before the
//! cache has this child, the controller creates another one. KEP-5647 solves this inside
//! Kubernetes: before a key is reconciled again, the cache must have the last write for the key.
//! client-go has no counterpart; the expectations of the `ReplicaSet` controller count events and
//! don't compare versions.
//!
//! The tracker has one lock. While it is held, no user code is called except `Hash`, `Eq`, `Clone`
//! and `Drop` of keys.

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

use pending::{Condition, Pending, Watermarks};

pub use in_flight::WriteInFlight;
pub use key_writes::KeyWrites;

/// The writes of a controller that its caches have not received yet, by key. A clone is another
/// handle to the same tracker.
///
/// After a write is recorded [for a key](Self::of), that key is not [ready](KeyWrites::is_ready)
/// until the cache has the write. A [`ControllerRunner`](crate::ControllerRunner) has a tracker and
/// [passes it](crate::ReconcileRequest::writes) to each call. Other code that reads a cache after a
/// write can use a tracker directly:
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
///     writes.ready().await; // `children` now has all earlier writes for this parent.
///     writes.track(children, child, server.create(&PostParams::default(), child)).await?;
///     Ok(())
/// }
/// ```
///
/// A key no longer waits for a write
///
/// - when the store has the written version or a later one;
/// - when a deleted object, identified by its UID, has left the store or has a deletion timestamp
///   there;
/// - at once, if the informer will never receive it: the object is in another namespace or has
///   other labels, the object's version is not a number, or the informer has stopped;
/// - when the server has rejected it;
/// - if the outcome of the request is unknown (a lost connection, a timeout or a 5xx status): when
///   the store has the state of the object that [`KeyWrites::ready`] has read from the server;
/// - at the [deadline](Self::with_deadline) in all other cases. One example is a write with an
///   unknown outcome whose object is not known. Another example is a write to an object that the
///   informer does not receive because of its field selector.
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
    /// The total number of timed-out writes. A write times out if `deadline` is over before the
    /// caches are known to have the write.
    timed_out: AtomicU64,
}

struct Keys<T> {
    pending: HashMap<T, Vec<Arc<Pending>>>,
    next_id: u64,
    /// While fewer keys than this have writes, the tracker does not search the writes of all keys
    /// for expired ones. A write is expired when its deadline is over.
    sweep_at: usize,
}

/// The removed records of writes. They are dropped while the tracker's lock is not held: a record
/// can hold the last reference to a store, and the drop of its objects can run user code.
type Garbage = Vec<Arc<Pending>>;

/// The minimum of [`Keys::sweep_at`]. While fewer keys than this have writes, the tracker does not
/// search the writes of all keys for expired ones. A write is expired when its deadline is over.
const MIN_KEYS_TO_SWEEP: usize = 1_024;

/// The maximum of [`Shared::deadline`], after which a key no longer waits for a write: a year.
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

    /// Returns a tracker with this deadline. After a write is recorded [for a key](Self::of), the
    /// key is not [ready](KeyWrites::is_ready) until the caches have the write or the deadline is
    /// over. Until then, a controller does not reconcile the key.
    ///
    /// The deadline counts from the start of the write's request, and starts again when the request
    /// ends or is cancelled. If the outcome is unknown, the deadline also starts again when
    /// [`KeyWrites::ready`] has read the object from the server. The deadline should be longer than
    /// the lag of the caches when the server is busy. After a cancelled request, except a deletion,
    /// the key waits for the whole deadline.
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
        KeyWrites::new(self.clone(), key.clone())
    }

    /// Returns the number of keys with pending writes. A write that the caches have received, or
    /// whose deadline is over, can count as pending until [`KeyWrites::is_ready`] or
    /// [`KeyWrites::ready`] is called for its key.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.shared.keys.lock().pending.len()
    }

    /// Returns the total number of timed-out writes. A write times out if its
    /// [deadline](Self::with_deadline) is over before the caches are known to have the write.
    ///
    /// A timed-out write is counted when [`KeyWrites::is_ready`] or [`KeyWrites::ready`] is called
    /// for its key. If a newer write is recorded before such a call, the older write is possibly
    /// never counted. A write whose request ends after the deadline gets a new deadline, and can be
    /// counted again.
    #[must_use]
    pub fn timed_out(&self) -> u64 {
        self.shared.timed_out.load(Ordering::Relaxed)
    }

    fn until(&self) -> Instant {
        Instant::now() + self.shared.deadline
    }

    /// Records a write for `key`. Returns the id of the write, and `condition` unchanged.
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

    /// Makes [`KeyWrites::ready`] for the key wait until a store has reached `version`. Of several
    /// versions for the same key and store, only the latest is kept.
    fn add_version(&self, key: &T, watermarks: Watermarks, version: ResourceVersion) {
        let until = self.until();
        let mut keys = self.shared.keys.lock();
        let mut known = keys.pending.get(key).into_iter().flatten();
        if known
            .any(|other| other.condition.version_in(&watermarks).is_some_and(|it| it.is_newer_than(&version)))
        {
            return;
        }
        let mut garbage = keys.sweep(Instant::now());
        garbage.extend(keys.remove(key, |other| other.condition.version_in(&watermarks).is_some()));
        keys.push(key, until, Condition::Version { watermarks, version });
        drop(keys);
        drop(garbage);
    }

    fn remove(&self, key: &T, id: u64) -> Option<Arc<Pending>> {
        let mut keys = self.shared.keys.lock();
        keys.remove(key, |pending| pending.id == id).pop()
    }

    /// Sets the condition that ends the wait for a write, and restarts the deadline of the write,
    /// even if the deadline was over.
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

    /// Ends the wait for the outcome of a write, after its object was read from the server. The key
    /// now waits until the cache meets `condition`, if there is one.
    fn settle(&self, key: &T, id: u64, condition: Option<Condition>) {
        // The condition is added before the write is removed, so that the key waits without a gap.
        if let Some(condition) = condition {
            self.add(key, condition);
        }
        drop(self.remove(key, id));
    }

    /// Removes each write for the key whose condition is met, or whose deadline is over. Returns
    /// the remaining writes, and whether any write was late: its deadline was over and its
    /// condition was not met.
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

    /// Removes every write whose deadline is over. Does nothing while fewer than `sweep_at` keys
    /// have writes.
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

    /// Removes each write for the key if the write's deadline is over. Does nothing unless the
    /// number of the key's writes is a power of two, so that adding many writes for one key stays
    /// fast.
    fn sweep_key(&mut self, key: &T, now: Instant) -> Garbage {
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
