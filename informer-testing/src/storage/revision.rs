//! The cluster-wide revision counter, from which all resource versions come.

use std::time::Duration;

use tokio::sync::watch;

use crate::status::{self, Refusal};

/// How long a read waits for a resource version that has not been reached, as in the real server.
const PATIENCE: Duration = Duration::from_secs(3);

/// Counts the writes to all resources together, like the revision of an etcd.
///
/// So versions have gaps within one resource, and one resource's version says nothing of another's.
#[derive(Clone, Debug)]
pub(crate) struct Revision(watch::Sender<u64>);

impl Revision {
    pub(crate) fn starting_at(revision: u64) -> Self {
        Self(watch::Sender::new(revision))
    }

    pub(crate) fn current(&self) -> u64 {
        *self.0.borrow()
    }

    /// Takes the next revision. The caller must hold the lock of the table that it writes to, so that whoever
    /// reads a revision and then locks the table finds every event up to that revision.
    pub(crate) fn advance(&self) -> u64 {
        let mut taken = 0;
        self.0.send_modify(|revision| {
            *revision += 1;
            taken = *revision;
        });
        taken
    }

    /// Waits until the counter has reached `wanted`, and refuses after 3 seconds.
    pub(crate) async fn reach(&self, wanted: u64) -> Result<(), Refusal> {
        let mut receiver = self.0.subscribe();
        let reached = receiver.wait_for(|current| *current >= wanted);
        match tokio::time::timeout(PATIENCE, reached).await {
            Ok(_) => Ok(()),
            Err(_) => Err(status::too_large_resource_version(wanted, self.current())),
        }
    }
}
