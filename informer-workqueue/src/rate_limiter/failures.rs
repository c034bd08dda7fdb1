//! [`Failures`]: how often each key has failed, in bounded memory.
//!
//! A key is forgotten when somebody says so, and otherwise some time after its last failure: from time to time, when the
//! table has doubled, it is searched for such. So it holds no more than twice as many keys as have failed lately.

use std::fmt;
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hashbrown::HashMap;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::slots::Hashing;

/// The table is not searched while it has fewer keys.
const SMALL: usize = 1_024;

/// A key that hasn't failed for so long may be forgotten, even where delays are short.
const AT_LEAST: Duration = Duration::from_secs(600);

pub(super) struct Failures<T> {
    table: Mutex<Table<T>>,
    /// Whether the table has any, so that forgetting costs nothing while nothing fails. Whoever has counted a failure of
    /// a key and whoever forgets it meet at a queue's lock, or have no order.
    is_empty: AtomicBool,
    /// For how long a key is remembered at least.
    keep: Duration,
}

struct Table<T> {
    failures: HashMap<T, Failed, Hashing>,
    /// With how many keys the table is searched next.
    search_at: usize,
}

struct Failed {
    times: u32,
    last: Instant,
}

impl<T> Failures<T> {
    /// A key is kept for twice the longest delay: who is tried again after it, and fails again, has not been forgotten.
    pub(super) fn new(longest_delay: Duration) -> Self {
        let table = Table { failures: HashMap::default(), search_at: SMALL };
        Self {
            table: Mutex::new(table),
            is_empty: AtomicBool::new(true),
            keep: longest_delay.saturating_mul(2).max(AT_LEAST),
        }
    }
}

impl<T: Hash + Eq + Clone> Failures<T> {
    /// Counts a failure; returns how many there were before.
    pub(super) fn count(&self, key: &T) -> u32 {
        let now = Instant::now();
        let (before, _garbage) = {
            let mut table = self.table.lock();
            let garbage = table.search(now, self.keep);
            let failed = table.failures.entry_ref(key).or_insert(Failed { times: 0, last: now });
            let before = failed.times;
            *failed = Failed { times: before.saturating_add(1), last: now };
            self.is_empty.store(false, Ordering::Relaxed);
            (before, garbage)
        };
        before
    }

    pub(super) fn forget(&self, key: &T) {
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
    /// Takes out what has not failed for so long, if it is time to look.
    fn search(&mut self, now: Instant, keep: Duration) -> Vec<(T, Failed)> {
        if self.failures.len() < self.search_at {
            return Vec::new();
        }
        let is_old = |failed: &Failed| now.saturating_duration_since(failed.last) > keep;
        let old = self.failures.extract_if(|_, failed| is_old(failed)).collect();
        self.failures.shrink_to(self.failures.len() * 2);
        self.search_at = SMALL.max(self.failures.len() * 2);
        old
    }
}

impl<T> fmt::Debug for Failures<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failures").field("keys", &self.table.lock().failures.len()).finish_non_exhaustive()
    }
}
