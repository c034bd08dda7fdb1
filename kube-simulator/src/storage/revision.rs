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

/// The newest write that one API server has reached. Each API server has its own `Revision`. All
/// API servers share the counter of writes in [`Stored`], but a replica can lag behind the counter.
#[derive(Clone, Debug)]
pub(crate) struct Revision {
    stored: Arc<Stored>,
    /// A test's setting: how far this replica lags behind the counter. `None` for the first API
    /// server, which never lags.
    lag: Option<Arc<Mutex<Lag>>>,
    watch_cache: WatchCache,
}

/// The data that all API servers on the storage share: the counter of writes, and the state of
/// etcd's compactions.
#[derive(Debug)]
struct Stored {
    /// The number of the last write to any resource, like etcd's revision. Resource versions
    /// therefore have gaps within one resource.
    revision: AtomicU64,
    /// Wakes its listeners after each change of `revision`, and after each change of a replica's
    /// lag.
    notifier: Notifier,
    compaction: Mutex<Compaction>,
}

/// A test's setting: how far a replica's watch cache lags behind the storage, in revisions.
#[derive(Clone, Copy, Debug)]
struct Lag {
    /// The number of revisions by which the cache should be behind the storage. The cache does not
    /// go back, so its lag grows to this number only with new writes.
    behind: u64,
    /// The revision of the cache at the last call of [`Revision::set_lag`]. The cache does not go
    /// back to an older revision, unless the storage does.
    floor: u64,
}

impl Lag {
    fn of(self, stored: u64) -> u64 {
        // After a reset, the storage can be at a revision before `floor`. The cache is never newer
        // than the storage.
        stored.min(self.floor.max(stored.saturating_sub(self.behind)))
    }
}

impl Revision {
    /// Creates the `Revision` of the first API server on a new storage. `revision` is the initial
    /// value of the counter of writes. A zero interval disables compactions.
    pub(crate) fn starting_at(revision: u64, compaction_interval: Duration) -> Self {
        let compaction = Mutex::new(Compaction::every(compaction_interval));
        let stored = Stored { revision: AtomicU64::new(revision), notifier: Notifier::default(), compaction };
        Self { stored: Arc::new(stored), lag: None, watch_cache: WatchCache::default() }
    }

    /// Creates the `Revision` of a new replica: another API server on the same storage. The new
    /// `Revision` has the same counter of writes, but can lag.
    pub(crate) fn of_replica(&self) -> Self {
        let lag = Mutex::new(Lag { behind: 0, floor: 0 });
        let watch_cache = WatchCache::default();
        Self { stored: Arc::clone(&self.stored), lag: Some(Arc::new(lag)), watch_cache }
    }

    pub(crate) fn watch_cache(&self) -> &WatchCache {
        &self.watch_cache
    }

    pub(crate) fn is_of_replica(&self) -> bool {
        self.lag.is_some()
    }

    /// Returns the newest revision that this API server has reached. For a replica that lags, this
    /// revision is older than the newest revision in the storage.
    pub(crate) fn current(&self) -> u64 {
        let stored = self.stored();
        self.lag.as_ref().map_or(stored, |lag| lag.lock().of(stored))
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
        if self.lag.is_some() { At::Cached(self.current()) } else { At::Latest }
    }

    /// Sets by how many revisions the watch cache of this replica lags behind the storage. If the
    /// new number is smaller, the cache catches up at once. If it is larger, the cache stays at its
    /// revision until enough writes have followed.
    pub(crate) fn set_lag(&self, behind: u64) {
        let floor = self.current();
        if let Some(lag) = &self.lag {
            *lag.lock() = Lag { behind, floor };
            self.stored.notifier.notify_all();
        }
    }

    /// Takes the next revision for a write. The caller must hold the write lock of the table, so
    /// that a reader with the read lock finds every event of the table up to the current revision.
    pub(crate) fn advance(&self) -> u64 {
        // Applies due compactions first, so that they do not include this write.
        self.compacted();
        let taken = self.stored.revision.fetch_add(1, Ordering::SeqCst) + 1;
        self.stored.notifier.notify_all();
        taken
    }

    /// Sets the shared counter to `revision`, to restore a backup. The counter can decrease.
    pub(crate) fn reset(&self, revision: u64) {
        self.stored.revision.store(revision, Ordering::SeqCst);
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

    /// Returns a listener that is notified when the API server of this `Revision` may have received
    /// new events. Returns `None` for the first API server, which receives each event at once.
    pub(crate) fn progress(&self) -> Option<Listener> {
        self.lag.is_some().then(|| self.stored.notifier.listen())
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
