//! [`Revision`]: the number of the newest write that one API server has reached.
//!
//! [`Stored`] contains the counter of all writes, from which all resource versions come. All API
//! servers on the storage share one `Stored`, but each has its own `Revision`. In this file, "this
//! API server" is the one that has the `Revision`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::compaction::Compaction;
use super::error::ReadError;
use super::notifier::{Listener, Notifier};
use super::past::At;
use super::watch_cache::WatchCache;

/// Maximum time that a read waits for a future resource version, as in the real server.
const MAX_WAIT: Duration = Duration::from_secs(3);

/// The newest write that one API server has reached. A replica can lag behind the counter of all
/// writes in [`Stored`].
#[derive(Clone, Debug)]
pub(crate) struct Revision {
    stored: Arc<Stored>,
    /// The index of this replica in [`Stored::lags`]. `None` for the first API server, which never
    /// lags.
    replica: Option<usize>,
    watch_cache: WatchCache,
}

/// The data that all API servers on the storage share: the counter of writes, the state of etcd's
/// compactions, and the lags of the replicas.
#[derive(Debug)]
struct Stored {
    /// The number of the last write to any resource, like etcd's revision. Resource versions
    /// therefore have gaps within one resource.
    revision: AtomicU64,
    /// Wakes its listeners after each change of `revision`, and after each change of a replica's
    /// lag.
    notifier: Notifier,
    compaction: Mutex<Compaction>,
    /// The lag of each replica.
    lags: Mutex<Vec<Lag>>,
}

/// A test's setting: how far a replica's watch cache lags behind the storage, in revisions.
#[derive(Clone, Copy, Debug)]
struct Lag {
    /// The number of revisions by which the cache should be behind the storage. The actual lag
    /// grows to this number with new writes.
    behind: u64,
    /// The lowest revision of the cache: its revision when `behind` was last changed, or 0 before
    /// the first change. [`Revision::reset`] can lower this revision.
    floor: u64,
}

impl Lag {
    /// Returns the revision of the cache. `stored` is the newest revision in the storage.
    fn reached(self, stored: u64) -> u64 {
        self.floor.max(stored.saturating_sub(self.behind))
    }

    fn set(&mut self, behind: u64, stored: u64) {
        *self = Self { behind, floor: self.reached(stored) };
    }
}

impl Revision {
    /// Creates the `Revision` of the first API server on a new storage. `revision` is the initial
    /// value of the counter of writes. A zero interval disables compactions.
    pub(crate) fn starting_at(revision: u64, compaction_interval: Duration) -> Self {
        let compaction = Mutex::new(Compaction::every(compaction_interval));
        let (revision, notifier, lags) = (AtomicU64::new(revision), Notifier::default(), Mutex::default());
        let stored = Arc::new(Stored { revision, notifier, compaction, lags });
        Self { stored, replica: None, watch_cache: WatchCache::default() }
    }

    /// Creates the `Revision` of a new replica: another API server on the same storage. The new
    /// `Revision` has the same counter of writes, but can lag.
    pub(crate) fn of_replica(&self) -> Self {
        let mut lags = self.stored.lags.lock();
        lags.push(Lag { behind: 0, floor: 0 });
        let replica = Some(lags.len() - 1);
        Self { stored: Arc::clone(&self.stored), replica, watch_cache: WatchCache::default() }
    }

    pub(crate) fn watch_cache(&self) -> &WatchCache {
        &self.watch_cache
    }

    pub(crate) fn is_of_replica(&self) -> bool {
        self.replica.is_some()
    }

    /// Returns the newest revision that this API server has reached. For a replica that lags, this
    /// revision is older than the newest revision in the storage.
    pub(crate) fn current(&self) -> u64 {
        match self.replica {
            None => self.stored(),
            Some(replica) => self.stored.lags.lock()[replica].reached(self.stored()),
        }
    }

    /// Returns the newest revision in the storage.
    pub(crate) fn stored(&self) -> u64 {
        self.stored.revision.load(Ordering::SeqCst)
    }

    /// Returns the revision before which compactions have removed etcd's history.
    pub(crate) fn compacted(&self) -> u64 {
        self.stored.compaction.lock().apply_due(self.stored())
    }

    /// Returns the state that this API server uses for reads that accept a state of any age.
    pub(crate) fn cached_state(&self) -> At {
        if self.is_of_replica() { At::Cached(self.current()) } else { At::Latest }
    }

    /// Sets the lag of this replica's watch cache, in revisions. The cache does not go back, so a
    /// larger lag applies only after more writes.
    pub(crate) fn set_lag(&self, behind: u64) {
        if let Some(replica) = self.replica {
            self.stored.lags.lock()[replica].set(behind, self.stored());
            self.stored.notifier.notify_all();
        }
    }

    /// Sets by how many revisions the watch cache of every replica lags behind the storage.
    pub(crate) fn set_all_lags(&self, behind: u64) {
        for lag in &mut *self.stored.lags.lock() {
            lag.set(behind, self.stored());
        }
        self.stored.notifier.notify_all();
    }

    /// Takes the next revision for a write. The caller must hold the write lock of the table.
    pub(crate) fn advance(&self) -> u64 {
        // Applies due compactions first, so that they do not include this write.
        self.compacted();
        // The table stays locked until its history contains the event of this revision. So a reader
        // with the read lock finds all events of the table up to the current revision.
        let taken = self.stored.revision.fetch_add(1, Ordering::SeqCst) + 1;
        self.stored.notifier.notify_all();
        taken
    }

    /// Sets the shared counter to `revision`, to restore a backup. The counter can decrease. The
    /// caller must hold the write locks of all tables.
    pub(crate) fn reset(&self, revision: u64) {
        {
            let mut lags = self.stored.lags.lock();
            self.stored.revision.store(revision, Ordering::SeqCst);
            for lag in &mut *lags {
                lag.floor = lag.floor.min(revision);
            }
        }
        self.stored.compaction.lock().reset();
        self.stored.notifier.notify_all();
    }

    /// Waits up to 3 seconds until this API server has reached `wanted`.
    pub(crate) async fn reach(&self, wanted: u64) -> Result<(), ReadError> {
        // Most reads need not wait.
        if self.current() >= wanted {
            return Ok(());
        }
        let progress = self.stored.notifier.listen();
        let reached = async {
            while self.current() < wanted {
                progress.notified().await;
            }
        };
        match tokio::time::timeout(MAX_WAIT, reached).await {
            Ok(()) => Ok(()),
            Err(_) => Err(ReadError::NotReached { wanted, current: self.current() }),
        }
    }

    /// Returns an error for a future revision. The method does not wait, because etcd, unlike a
    /// watch cache, always has the newest revision.
    pub(crate) fn check_stored(&self, wanted: u64) -> Result<(), ReadError> {
        let stored = self.stored();
        if wanted <= stored { Ok(()) } else { Err(ReadError::NotStored { wanted, stored }) }
    }

    /// Returns a listener that is notified when this replica may have reached new writes. Returns
    /// `None` for the first API server, which never lags.
    pub(crate) fn progress(&self) -> Option<Listener> {
        self.is_of_replica().then(|| self.stored.notifier.listen())
    }
}

#[cfg(test)]
mod tests {
    //! Tests of waiting for a revision.

    use super::{Duration, Revision};

    #[tokio::test(start_paused = true)]
    async fn reach_waits_for_the_revision_or_times_out() {
        let revision = Revision::starting_at(7, Duration::ZERO);
        assert!(revision.reach(7).await.is_ok());
        let (reached, _) = tokio::join!(revision.reach(8), async { revision.advance() });
        assert!(reached.is_ok());
        assert!(revision.reach(9).await.is_err());
    }
}
