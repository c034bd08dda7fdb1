//! [`WriteTracker`]: which of a controller's own writes its caches have not seen yet, by the key they were made for.
//!
//! A cache is always a little late. A controller that has just created a child, and is called again before the cache
//! has it, creates another; one that has just written a status writes the next on top of a version that is no more, and
//! is refused. KEP-5647 mends that inside Kubernetes: before a key is looked at again, the cache must have come as far
//! as the last write that was made for it. client-go has no counterpart; the expectations of the controller of
//! `ReplicaSet`s count what is to come and don't compare versions.
//!
//! A write without an answer may have happened. A read of its object settles that, where the object is known; otherwise the
//! write counts as one that has happened, until its deadline.
//!
//! Locks: there is one, the tracker's, and nothing is called under it but `Hash`, `Eq` and `Clone` of keys.

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

use pending::{Awaited, Pending, Watermarks};

pub use in_flight::WriteInFlight;
pub use key_writes::KeyWrites;

/// Knows of a controller's own writes that its caches have not seen yet, by the key they were made for. Cloning gives
/// another handle on the same tracker.
///
/// A write that is recorded [for a key](Self::of) holds that key up until the cache has it. A
/// [`ControllerRunner`](crate::ControllerRunner) has a tracker and [hands it out](crate::ReconcileRequest::writes) with
/// each key; by itself it serves anything that reads a cache after having written:
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
///     writes.ready().await; // From here on, `children` has all that was written for this parent.
///     writes.track(children, child, server.create(&PostParams::default(), child)).await?;
///     Ok(())
/// }
/// ```
///
/// A write ends to hold its key up
///
/// - when the store has come to the written version, or to a later one (I9);
/// - when a deleted object, told by its UID, is gone from the store or known to be on its way out;
/// - at once, if the informer will never hear of it: the object is in another namespace or has other labels, the version
///   has no order, or the informer has stopped;
/// - when the server has refused it;
/// - when the store has come to what a [read of the object](KeyWrites::track) finds, after a request that has failed
///   with an unknown outcome, such as a lost connection, a timeout, or an answer of the 5xx kind;
/// - at the [deadline](Self::with_deadline), whatever else: among others for a write with an unknown outcome whose object is
///   not known, and for one that only a field selector keeps out of the informer.
///
/// Writes hold up the key they are recorded for, and no other. One that several keys are looked at by is recorded for
/// each of them. A deletion of many objects at once can't be followed: delete them one by one.
#[doc(alias = "ConsistencyStore")]
#[doc(alias = "expectations")]
pub struct WriteTracker<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    deadline: Duration,
    keys: Mutex<Keys<T>>,
    /// Writes that somebody waited for until their deadline.
    timed_out: AtomicU64,
}

struct Keys<T> {
    pending: HashMap<T, Vec<Arc<Pending>>>,
    next_id: u64,
    /// With so many keys, those that nobody has asked for in time are let go.
    sweep_at: usize,
}

/// What nobody may drop under the lock: the last to hold on to a store, perhaps.
type Garbage = Vec<Arc<Pending>>;

/// Fewer keys than these are not worth a sweep.
const FEW: usize = 1_024;

/// Nobody waits longer than this, a year.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

impl<T: Hash + Eq + Clone> WriteTracker<T> {
    /// The deadline of a tracker that was given none: ten seconds.
    pub const DEADLINE: Duration = Duration::from_secs(10);

    /// Returns a tracker with the [usual deadline](Self::DEADLINE).
    #[must_use]
    pub fn new() -> Self {
        Self::with_deadline(Self::DEADLINE)
    }

    /// Returns a tracker whose writes hold their keys up for `deadline` at most, counted from the answer; and for those
    /// that never get one, from when that is clear.
    ///
    /// It should be longer than a cache is late when the server is busy, and it is how long a key waits after a request
    /// that was given up.
    #[must_use]
    pub fn with_deadline(deadline: Duration) -> Self {
        let keys = Keys { pending: HashMap::new(), next_id: 0, sweep_at: FEW };
        let deadline = deadline.min(LONGEST);
        let shared = Shared { deadline, keys: Mutex::new(keys), timed_out: AtomicU64::new(0) };
        Self { shared: Arc::new(shared) }
    }

    /// Returns what has been, and is to be, written for `key`.
    #[must_use]
    pub fn of(&self, key: &T) -> KeyWrites<T> {
        KeyWrites::new(self.clone(), key.clone())
    }

    /// Returns how many keys have writes that were not seen when somebody last looked.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.shared.keys.lock().pending.len()
    }

    /// Returns how many writes somebody has waited for in vain, until their deadline.
    #[must_use]
    pub fn timed_out(&self) -> u64 {
        self.shared.timed_out.load(Ordering::Relaxed)
    }

    fn until(&self) -> Instant {
        Instant::now() + self.shared.deadline
    }

    /// Adds a write, and returns by what it is known, and what is waited for.
    fn add(&self, key: &T, awaited: Awaited) -> (u64, Awaited) {
        let until = self.until();
        let mut keys = self.shared.keys.lock();
        let now = Instant::now();
        let mut garbage = keys.sweep(now);
        garbage.extend(keys.sweep_key(key, now));
        let id = keys.push(key, until, awaited.clone());
        drop(keys);
        drop(garbage);
        (id, awaited)
    }

    /// Adds a write that a store is to come to; of several in one store, the latest stands for all.
    fn add_version(&self, key: &T, watermarks: Watermarks, version: ResourceVersion) {
        let until = self.until();
        let mut keys = self.shared.keys.lock();
        let mut known = keys.pending.get(key).into_iter().flatten();
        if known
            .any(|other| other.awaited.version_in(&watermarks).is_some_and(|it| it.is_newer_than(&version)))
        {
            return;
        }
        let mut garbage = keys.sweep(Instant::now());
        garbage.extend(keys.remove(key, |other| other.awaited.version_in(&watermarks).is_some()));
        keys.push(key, until, Awaited::Version { watermarks, version });
        drop(keys);
        drop(garbage);
    }

    /// Takes a write out.
    fn remove(&self, key: &T, id: u64) -> Option<Arc<Pending>> {
        let mut keys = self.shared.keys.lock();
        keys.remove(key, |pending| pending.id == id).pop()
    }

    /// Returns a write its full time from now on, also one that was let go because it had had it.
    fn prolong(&self, key: &T, id: u64, awaited: Awaited) {
        let prolonged = Arc::new(Pending { id, until: self.until(), awaited });
        let mut keys = self.shared.keys.lock();
        let all = keys.pending.entry(key.clone()).or_default();
        let old = match all.iter_mut().find(|one| one.id == id) {
            Some(place) => Some(std::mem::replace(place, prolonged)),
            None => {
                all.push(prolonged);
                None
            }
        };
        drop(keys);
        drop(old);
    }

    /// Puts what the cache has to come to in the place of a write whose outcome was unknown.
    fn settle(&self, key: &T, id: u64, awaited: Option<Awaited>) {
        // First this, so that the key stays held throughout.
        if let Some(awaited) = awaited {
            self.add(key, awaited);
        }
        drop(self.remove(key, id));
    }

    /// Lets go of what has been seen or has had its time, and returns one of those that are left; and how many had no
    /// more time.
    fn look(&self, key: &T) -> (Option<Arc<Pending>>, u64) {
        let Some(all) = self.shared.keys.lock().pending.get(key).cloned() else { return (None, 0) };
        // I8: stores are read with no lock held.
        let now = Instant::now();
        let (seen, unseen): (Vec<_>, Vec<_>) = all.into_iter().partition(|pending| pending.awaited.is_seen());
        let (late, mut left): (Vec<_>, Vec<_>) = unseen.into_iter().partition(|pending| pending.until <= now);
        if !seen.is_empty() || !late.is_empty() {
            let is_over =
                |pending: &Arc<Pending>| seen.iter().chain(&late).any(|over| Arc::ptr_eq(over, pending));
            let garbage = self.shared.keys.lock().remove(key, is_over);
            drop(garbage);
        }
        (left.pop(), late.len() as u64)
    }
}

impl<T: Hash + Eq + Clone> Keys<T> {
    fn push(&mut self, key: &T, until: Instant, awaited: Awaited) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.pending.entry(key.clone()).or_default().push(Arc::new(Pending { id, until, awaited }));
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

    /// Lets go of what has had its time, when there are twice as many keys as the last time left.
    fn sweep(&mut self, now: Instant) -> Garbage {
        let mut garbage = Garbage::new();
        if self.pending.len() >= self.sweep_at {
            self.pending.retain(|_, pending| {
                garbage.extend(pending.extract_if(.., |pending| pending.until <= now));
                !pending.is_empty()
            });
            self.sweep_at = FEW.max(self.pending.len() * 2);
        }
        garbage
    }

    /// Lets go of what has had its time of one key, when there are twice as many of it as before.
    fn sweep_key(&mut self, key: &T, now: Instant) -> Garbage {
        match self.pending.get(key) {
            Some(pending) if pending.len().is_power_of_two() => {
                self.remove(key, |pending| pending.until <= now)
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
