//! [`ElectionStatus`]: the leader and the last failure. Changes are also logged, except that there
//! is no leader any more.

use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct ElectionState {
    leader: Option<String>,
    is_leading: bool,
    problem: Option<ElectionProblem>,
}

/// The failure of a candidate's last attempt to acquire, renew or release the lease. The candidate
/// repeats failed attempts to acquire the lease and, until the renew deadline, to renew it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ElectionProblem {
    /// The server forbids the request (403), usually because the credentials do not allow it.
    /// Contains the server's message.
    Forbidden(String),
    /// The request failed for another reason, such as a timeout or a server error. Contains the
    /// text of the error.
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

/// The current status of an election, as one candidate sees it. Clones show the same candidate.
#[derive(Debug, Clone)]
pub struct ElectionStatus {
    state: watch::Receiver<ElectionState>,
}

impl ElectionStatus {
    /// Returns the holder of the lease at the last successful check; `None` if there was no holder,
    /// or no such check yet. The holder's lease can have expired since then.
    #[must_use]
    #[doc(alias = "GetLeader")]
    pub fn leader(&self) -> Option<String> {
        self.state.borrow().leader.clone()
    }

    /// Returns whether this candidate leads. At shutdown, the result is `true` until the work has
    /// ended. When the lease is lost, the result is `false` at once, before the cancelled work
    /// ends.
    #[must_use]
    #[doc(alias = "IsLeader")]
    pub fn is_leading(&self) -> bool {
        self.state.borrow().is_leading
    }

    /// Returns why the last attempt to acquire, renew or release the lease failed. `None` if the
    /// attempt did not fail. Another leader, a conflict with another write, and an interruption by
    /// the renew deadline do not count as failures.
    ///
    /// An attempt can send several requests. If one of them fails and the attempt continues, the
    /// failure of this request can be returned until the attempt ends.
    #[must_use]
    pub fn problem(&self) -> Option<ElectionProblem> {
        self.state.borrow().problem.clone()
    }

    /// Waits until the result of [`leader`](Self::leader), [`is_leading`](Self::is_leading) or
    /// [`problem`](Self::problem) has changed since the last call. Returns `true` after a change,
    /// and `false` if nothing has changed and the elector has been dropped.
    ///
    /// Several changes between two calls count as one.
    ///
    /// # Cancel safety
    /// Cancel safe: after a change, the next call returns at once.
    #[doc(alias = "OnNewLeader")]
    pub async fn changed(&mut self) -> bool {
        self.state.changed().await.is_ok()
    }
}

/// Updates the [`ElectionStatus`] of a candidate, and logs its changes, except that there is no
/// leader any more.
#[derive(Debug, Clone)]
pub(super) struct Reporter {
    lease: Arc<str>,
    state: watch::Sender<ElectionState>,
}

impl Reporter {
    pub(super) fn new(lease: &str) -> Self {
        Self { lease: lease.into(), state: watch::Sender::new(ElectionState::default()) }
    }

    pub(super) fn status(&self) -> ElectionStatus {
        ElectionStatus { state: self.state.subscribe() }
    }

    /// Records the last known holder of the lease (`None` if there is none) and the failure of a
    /// request. `None` as `problem` removes the recorded failure.
    pub(super) fn record(&self, leader: Option<&str>, problem: Option<ElectionProblem>) {
        let (lease, now) = (&self.lease, problem.clone());
        let before = self.change(|state| {
            state.leader = leader.map(str::to_owned);
            state.problem = problem;
        });
        match now {
            now if now == before.problem => {}
            Some(problem) => {
                tracing::warn!(
                    %lease,
                    %problem,
                    "lease request failed (consecutive repeats of this failure are not logged)"
                );
            }
            None => tracing::info!(%lease, "lease requests succeed again"),
        }
        if let Some(leader) = leader.filter(|leader| before.leader.as_deref() != Some(leader)) {
            tracing::info!(%lease, leader, "lease has a new leader");
        }
    }

    /// Records that this candidate leads, until the returned guard is dropped or
    /// [`stopped_leading`](Self::stopped_leading) is called.
    #[must_use]
    pub(super) fn started_leading(&self) -> Leading {
        self.change(|state| state.is_leading = true);
        tracing::info!(lease = %self.lease, "this candidate started leading");
        Leading(self.clone())
    }

    pub(super) fn stopped_leading(&self, why: &str) {
        let before = self.change(|state| state.is_leading = false);
        if before.is_leading {
            tracing::info!(lease = %self.lease, reason = why, "this candidate stopped leading");
        }
    }

    /// Changes the status, and returns the previous status. Wakes waiters only if the new status is
    /// different.
    fn change(&self, change: impl FnOnce(&mut ElectionState)) -> ElectionState {
        let mut before = ElectionState::default();
        self.state.send_if_modified(|state| {
            before = state.clone();
            change(state);
            *state != before
        });
        before
    }
}

#[derive(Debug)]
pub(super) struct Leading(Reporter);

impl Drop for Leading {
    fn drop(&mut self) {
        self.0.stopped_leading("the work has ended or was dropped");
    }
}
