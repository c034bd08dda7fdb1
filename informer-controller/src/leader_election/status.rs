//! [`ElectionStatus`]: who leads, and what is wrong, for everybody to see; and the one place where that is logged.

use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

/// What there is to know of an election.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Standing {
    leader: Option<String>,
    is_leading: bool,
    problem: Option<ElectionProblem>,
}

/// Why a candidate can't take part at present. It goes on trying.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ElectionProblem {
    /// The credentials don't allow it (403). This is what the server said.
    Forbidden(String),
    /// The server doesn't answer, or otherwise than it should.
    Failing(String),
}

impl fmt::Display for ElectionProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forbidden(message) => {
                let remedy = "grant get, create and update of leases in the group coordination.k8s.io";
                write!(f, "{message}; {remedy}")
            }
            Self::Failing(message) => f.write_str(message),
        }
    }
}

/// Tells who leads. Cloning gives another view on the same candidate.
#[derive(Debug, Clone)]
pub struct ElectionStatus {
    standing: watch::Receiver<Standing>,
}

impl ElectionStatus {
    /// Returns the identity of who held the lease when this candidate last looked; it may have ended since. `None` if
    /// nobody did, or if it has not looked yet.
    #[must_use]
    #[doc(alias = "GetLeader")]
    pub fn leader(&self) -> Option<String> {
        self.standing.borrow().leader.clone()
    }

    /// Returns whether this candidate has the lease for its work. At shutdown that is so until the work has ended; when the
    /// lease is lost, no longer, though the work may have a moment left to end in.
    #[must_use]
    #[doc(alias = "IsLeader")]
    pub fn is_leading(&self) -> bool {
        self.standing.borrow().is_leading
    }

    /// Returns why the last try came to nothing, if it wasn't just that somebody else leads.
    #[must_use]
    pub fn problem(&self) -> Option<ElectionProblem> {
        self.standing.borrow().problem.clone()
    }

    /// Waits until any of this is other than when it was last waited for. Returns `false`, and at once, when the elector
    /// is gone.
    ///
    /// Of several changes between two calls only the last is seen.
    ///
    /// # Cancel safety
    /// No change is lost if the future is dropped: the next call returns at once.
    #[doc(alias = "OnNewLeader")]
    pub async fn changed(&mut self) -> bool {
        self.standing.changed().await.is_ok()
    }
}

/// The side that tells.
#[derive(Debug, Clone)]
pub(super) struct Reporter {
    lease: Arc<str>,
    standing: watch::Sender<Standing>,
}

impl Reporter {
    pub(super) fn new(lease: &str) -> Self {
        Self { lease: lease.into(), standing: watch::Sender::new(Standing::default()) }
    }

    pub(super) fn status(&self) -> ElectionStatus {
        ElectionStatus { standing: self.standing.subscribe() }
    }

    /// A try is over: who leads, as far as is known, and what was wrong.
    pub(super) fn tried(&self, leader: Option<&str>, problem: Option<ElectionProblem>) {
        let (lease, now) = (&self.lease, problem.clone());
        let before = self.change(|standing| {
            standing.leader = leader.map(str::to_owned);
            standing.problem = problem;
        });
        match now {
            now if now == before.problem => {}
            Some(problem) => {
                tracing::warn!(%lease, %problem, "lease request failed; retrying (repeats are not logged)");
            }
            None => tracing::info!(%lease, "lease requests succeed again"),
        }
        if let Some(leader) = leader.filter(|leader| before.leader.as_deref() != Some(leader)) {
            tracing::info!(%lease, leader, "lease has a new leader");
        }
    }

    /// The work begins; it is over when what is returned is dropped, however that comes about.
    #[must_use]
    pub(super) fn started_leading(&self) -> Leading {
        self.change(|standing| standing.is_leading = true);
        tracing::info!(lease = %self.lease, "started leading");
        Leading(self.clone())
    }

    pub(super) fn stopped_leading(&self, why: &str) {
        let before = self.change(|standing| standing.is_leading = false);
        if before.is_leading {
            tracing::info!(lease = %self.lease, reason = why, "stopped leading");
        }
    }

    /// Changes the standing, and wakes those who wait if it is another then. Returns what it was before.
    fn change(&self, change: impl FnOnce(&mut Standing)) -> Standing {
        let mut before = Standing::default();
        self.standing.send_if_modified(|standing| {
            before = standing.clone();
            change(standing);
            *standing != before
        });
        before
    }
}

/// While there is one, work goes on.
#[derive(Debug)]
pub(super) struct Leading(Reporter);

impl Drop for Leading {
    fn drop(&mut self) {
        self.0.stopped_leading("the work has ended");
    }
}
