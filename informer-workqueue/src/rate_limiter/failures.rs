//! [`Failures`]: the number of failures of each key.
//!
//! A cleanup drops the keys whose last failure is old. It runs when the number of keys has doubled
//! since the last cleanup, but only from 1,024 keys on.

use std::fmt;
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hashbrown::HashMap;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::slots::Hashing;

/// The minimum number of keys at which a cleanup runs.
const MIN_CLEANUP: usize = 1_024;

/// The minimum time for which cleanups keep the failures of a key after its last failure.
const MIN_RETENTION: Duration = Duration::from_secs(600);

pub(super) struct Failures<T> {
    table: Mutex<Table<T>>,
    /// Whether the table has no keys. If so, a reset takes no lock.
    is_empty: AtomicBool,
    /// A cleanup drops the failures of a key only if the last failure is older than this time. At
    /// least [`MIN_RETENTION`].
    keep: Duration,
}

struct Table<T> {
    failures: HashMap<T, Failed, Hashing>,
    /// The number of keys at which the next cleanup runs.
    cleanup_at: usize,
}

struct Failed {
    times: u32,
    last: Instant,
}

impl<T> Failures<T> {
    /// Returns an empty table. `longest_delay` is the longest wait that the limiter returns.
    pub(super) fn new(longest_delay: Duration) -> Self {
        let table = Table { failures: HashMap::default(), cleanup_at: MIN_CLEANUP };
        Self {
            table: Mutex::new(table),
            is_empty: AtomicBool::new(true),
            // A failure after the longest wait must be added to the earlier failures of the key.
            keep: longest_delay.saturating_mul(2).max(MIN_RETENTION),
        }
    }
}

impl<T: Hash + Eq + Clone> Failures<T> {
    /// Counts a failure of a key, and returns the number of its earlier failures.
    pub(super) fn count(&self, key: &T) -> u32 {
        let now = Instant::now();
        let (before, _garbage) = {
            let mut table = self.table.lock();
            let garbage = table.clean_up(now, self.keep);
            let failed = table.failures.entry_ref(key).or_insert(Failed { times: 0, last: now });
            let before = failed.times;
            *failed = Failed { times: before.saturating_add(1), last: now };
            self.is_empty.store(false, Ordering::Relaxed);
            (before, garbage)
        };
        before
    }

    pub(super) fn forget(&self, key: &T) {
        // `Relaxed` is enough: a worker counts a failure of a key before it queues the key. The
        // queue's lock synchronizes this worker with the next worker that takes the key.
        if self.is_empty.load(Ordering::Relaxed) {
            return;
        }
        let mut table = self.table.lock();
        let forgotten = table.failures.remove_entry(key);
        self.is_empty.store(table.failures.is_empty(), Ordering::Relaxed);
        drop(table);
        drop(forgotten);
    }

    pub(super) fn times(&self, key: &T) -> u32 {
        self.table.lock().failures.get(key).map_or(0, |failed| failed.times)
    }
}

impl<T: Hash + Eq> Table<T> {
    /// If the table has at least `cleanup_at` keys, removes and returns the keys whose last failure
    /// is older than `keep`.
    fn clean_up(&mut self, now: Instant, keep: Duration) -> Vec<(T, Failed)> {
        if self.failures.len() < self.cleanup_at {
            return Vec::new();
        }
        let is_old = |failed: &Failed| now.saturating_duration_since(failed.last) > keep;
        let old = self.failures.extract_if(|_, failed| is_old(failed)).collect();
        self.failures.shrink_to(self.failures.len() * 2);
        self.cleanup_at = MIN_CLEANUP.max(self.failures.len() * 2);
        old
    }
}

impl<T> fmt::Debug for Failures<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.table.lock().failures.len();
        f.debug_struct("Failures").field("keys", &keys).finish_non_exhaustive()
    }
}
