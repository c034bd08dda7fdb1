//! The cluster-wide revision counter, from which all resource versions come, as one API server sees it.

use std::time::Duration;

use tokio::sync::watch;

use super::past::At;
use crate::status::{self, Refusal};

/// How long a read waits for a resource version that has not been reached, as in the real server.
const PATIENCE: Duration = Duration::from_secs(3);

/// Counts the writes to all resources together, like the revision of an etcd.
///
/// So versions have gaps within one resource, and one resource's version says nothing of another's. A second API
/// server in front of the same etcd may not have seen the latest of them yet.
#[derive(Clone, Debug)]
pub(crate) struct Revision {
    stored: watch::Sender<u64>,
    /// How far behind a second API server is; none for the first, which knows of each write at once.
    lag: Option<watch::Sender<Lag>>,
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

/// Tells a watch of a server that is behind when there may be more to see.
#[derive(Debug)]
pub(crate) struct Progress {
    stored: watch::Receiver<u64>,
    lag: watch::Receiver<Lag>,
}

impl Revision {
    pub(crate) fn starting_at(revision: u64) -> Self {
        Self { stored: watch::Sender::new(revision), lag: None }
    }

    /// The same counter, as another API server sees it that can fall behind.
    pub(crate) fn of_replica(&self) -> Self {
        let lag = watch::Sender::new(Lag { behind: 0, floor: 0 });
        Self { stored: self.stored.clone(), lag: Some(lag) }
    }

    /// The newest revision that this API server knows of.
    pub(crate) fn current(&self) -> u64 {
        let stored = self.stored();
        self.lag.as_ref().map_or(stored, |lag| lag.borrow().of(stored))
    }

    /// The newest revision that is stored.
    pub(crate) fn stored(&self) -> u64 {
        *self.stored.borrow()
    }

    /// The state that this API server gives to whoever takes any.
    pub(crate) fn at_hand(&self) -> At {
        if self.lag.is_some() { At::Cached(self.current()) } else { At::Latest }
    }

    /// Sets how far this API server is behind from now on; never further than it was.
    pub(crate) fn fall_behind(&self, behind: u64) {
        let floor = self.current();
        if let Some(lag) = &self.lag {
            lag.send_replace(Lag { behind, floor });
        }
    }

    /// Takes the next revision. The caller must hold the lock of the table that it writes to, so that whoever
    /// reads a revision and then locks the table finds every event up to that revision.
    pub(crate) fn advance(&self) -> u64 {
        let mut taken = 0;
        self.stored.send_modify(|revision| {
            *revision += 1;
            taken = *revision;
        });
        taken
    }

    /// Goes on from another revision, which may be an earlier one.
    pub(crate) fn reset(&self, revision: u64) {
        self.stored.send_replace(revision);
    }

    /// Waits until the counter has reached `wanted`, and refuses after 3 seconds.
    pub(crate) async fn reach(&self, wanted: u64) -> Result<(), Refusal> {
        let reached = async {
            let mut stored = self.stored.subscribe();
            let mut progress = self.progress();
            while self.current() < wanted {
                match &mut progress {
                    Some(progress) => progress.next().await,
                    // The sender lives as long as this.
                    None => _ = stored.changed().await,
                }
            }
        };
        match tokio::time::timeout(PATIENCE, reached).await {
            Ok(()) => Ok(()),
            Err(_) => Err(status::too_large_resource_version(wanted, self.current())),
        }
    }

    /// Announces from now on that a server that can be behind knows more; the first server has nothing to announce,
    /// because there each write tells of itself.
    pub(crate) fn progress(&self) -> Option<Progress> {
        let lag = self.lag.as_ref()?;
        Some(Progress { stored: self.stored.subscribe(), lag: lag.subscribe() })
    }
}

impl Progress {
    /// Waits until there may be more to see.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            biased;
            _ = self.stored.changed() => {}
            _ = self.lag.changed() => {}
        }
    }
}
