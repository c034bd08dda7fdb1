//! The cluster-wide revision counter, from which all resource versions come, as one API server sees it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::compaction::Compaction;
use super::notifier::{Listener, Notifier};
use super::past::At;
use super::watch_cache::WatchCache;
use crate::status::{self, Refusal};

/// How long a read waits for a resource version that has not been reached, as in the real server.
const PATIENCE: Duration = Duration::from_secs(3);

/// Counts the writes to all resources together, like the revision of an etcd.
///
/// So versions have gaps within one resource, and one resource's version says nothing of another's. A second API
/// server in front of the same etcd may not have seen the latest of them yet.
#[derive(Clone, Debug)]
pub(crate) struct Revision {
    stored: Arc<Stored>,
    /// How far behind a second API server is; none for the first, which knows of each write at once.
    lag: Option<Arc<Mutex<Lag>>>,
    /// The memory of this API server.
    watch_cache: WatchCache,
}

/// The counter itself.
#[derive(Debug)]
struct Stored {
    revision: AtomicU64,
    /// Rung when some API server knows more than before.
    bell: Notifier,
    compaction: Mutex<Compaction>,
}

/// How far the watch cache of an API server is behind: as many revisions as this, but never before the floor, because
/// what it has seen it has seen.
#[derive(Clone, Copy, Debug)]
struct Lag {
    behind: u64,
    floor: u64,
}

impl Lag {
    fn of(self, stored: u64) -> u64 {
        stored.min(self.floor.max(stored.saturating_sub(self.behind)))
    }
}

impl Revision {
    /// Begins to count, and to forget what is older than one or two of the intervals; nothing, if it is zero.
    pub(crate) fn starting_at(revision: u64, compaction_interval: Duration) -> Self {
        let compaction = Mutex::new(Compaction::every(compaction_interval));
        let stored = Stored { revision: AtomicU64::new(revision), bell: Notifier::default(), compaction };
        Self { stored: Arc::new(stored), lag: None, watch_cache: WatchCache::default() }
    }

    /// The same counter, as another API server sees it that can fall behind.
    pub(crate) fn of_replica(&self) -> Self {
        let lag = Mutex::new(Lag { behind: 0, floor: 0 });
        let watch_cache = WatchCache::default();
        Self { stored: Arc::clone(&self.stored), lag: Some(Arc::new(lag)), watch_cache }
    }

    /// The memory of this API server.
    pub(crate) fn watch_cache(&self) -> &WatchCache {
        &self.watch_cache
    }

    /// Returns whether it is a second API server's.
    pub(crate) fn is_of_replica(&self) -> bool {
        self.lag.is_some()
    }

    /// The newest revision that this API server knows of.
    pub(crate) fn current(&self) -> u64 {
        let stored = self.stored();
        self.lag.as_ref().map_or(stored, |lag| lag.lock().of(stored))
    }

    /// The newest revision that is stored.
    pub(crate) fn stored(&self) -> u64 {
        self.stored.revision.load(Ordering::SeqCst)
    }

    /// The revision before which etcd has forgotten everything by now.
    pub(crate) fn compacted(&self) -> u64 {
        self.stored.compaction.lock().up_to(self.stored())
    }

    /// The state that this API server gives to whoever takes any.
    pub(crate) fn at_hand(&self) -> At {
        if self.lag.is_some() { At::Cached(self.current()) } else { At::Latest }
    }

    /// Sets how far this API server is behind from now on; never further than it was.
    pub(crate) fn fall_behind(&self, behind: u64) {
        let floor = self.current();
        if let Some(lag) = &self.lag {
            *lag.lock() = Lag { behind, floor };
            self.stored.bell.ring();
        }
    }

    /// Takes the next revision. The caller must hold the lock of the table that it writes to, so that whoever
    /// reads a revision and then locks the table finds every event up to that revision.
    pub(crate) fn advance(&self) -> u64 {
        // What is due by now knows nothing of this write.
        self.compacted();
        let taken = self.stored.revision.fetch_add(1, Ordering::SeqCst) + 1;
        self.stored.bell.ring();
        taken
    }

    /// Goes on from another revision, which may be an earlier one.
    pub(crate) fn reset(&self, revision: u64) {
        self.stored.revision.store(revision, Ordering::SeqCst);
        self.stored.compaction.lock().begin_anew();
        self.stored.bell.ring();
    }

    /// Waits until the counter has reached `wanted`, and refuses after 3 seconds.
    pub(crate) async fn reach(&self, wanted: u64) -> Result<(), Refusal> {
        // Most reads need not wait, and a server on which nothing is written would never forget who has listened.
        if self.current() >= wanted {
            return Ok(());
        }
        let progress = self.stored.bell.listen();
        let reached = async {
            while self.current() < wanted {
                progress.heard().await;
            }
        };
        match tokio::time::timeout(PATIENCE, reached).await {
            Ok(()) => Ok(()),
            Err(_) => Err(status::too_large_resource_version(wanted, self.current())),
        }
    }

    /// Refuses a revision that is not stored, at once: etcd knows what it has not, and there is nothing to wait for.
    pub(crate) fn check_stored(&self, wanted: u64) -> Result<(), Refusal> {
        let stored = self.stored();
        if wanted <= stored {
            return Ok(());
        }
        let mut refusal = status::too_large_resource_version(wanted, stored);
        if let Some(details) = &mut refusal.details {
            details.retry_after_seconds = 0;
        }
        Err(refusal)
    }

    /// Announces from now on that a server that can be behind knows more; the first server has nothing to announce,
    /// because there each write tells of itself.
    pub(crate) fn progress(&self) -> Option<Listener> {
        self.lag.is_some().then(|| self.stored.bell.listen())
    }
}

#[cfg(test)]
mod tests {
    //! Waiting for a revision.

    use super::{Duration, Notifier, Revision};

    #[tokio::test]
    async fn whoever_need_not_wait_does_not_listen() {
        let revision = Revision::starting_at(7, Duration::ZERO);
        revision.reach(7).await.unwrap();
        assert_eq!(format!("{:?}", revision.stored.bell), format!("{:?}", Notifier::default()));
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_hears_of_the_revision_or_is_refused_in_the_end() {
        let revision = Revision::starting_at(7, Duration::ZERO);
        let (reached, _) = tokio::join!(revision.reach(8), async { revision.advance() });
        assert!(reached.is_ok());
        assert!(revision.reach(9).await.is_err());
    }
}
