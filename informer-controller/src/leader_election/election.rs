//! [`Election`]: the rules of an election, as one candidate goes by them; no clock, no I/O.
//!
//! client-go: `tryAcquireOrRenew` and `tryRelease` of tools/leaderelection/leaderelection.go. What keeps two from leading
//! at once: others count a lease's duration from when they first saw its present state, which is after it was written;
//! the leader counts its own time from when it began to write it, which is before. The fact people get wrong: the dates
//! in a lease say nothing, for every machine has a clock of its own.
//!
//! Stricter than client-go, where a leader goes on until its renew deadline although it sees that somebody else has the
//! lease: here it has lost at once. And what was claimed under the same name, but not by this candidate, is another's.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::Timestamp;
use tokio::time::Instant;

use super::LeaderElectionConfig;
use super::record::{self, Claim};

/// What to ask the server for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Request {
    Get,
    Create(Box<Lease>),
    /// Only if it is still in the version that it has here.
    Replace(Box<Lease>),
}

/// What came of a request.
#[derive(Debug, Clone)]
pub(super) enum Answer {
    /// The lease as it is now.
    Lease(Box<Lease>),
    /// There is no such lease. Only for [`Request::Get`].
    NotFound,
    /// Somebody else was quicker.
    Conflict,
    /// There was no answer, or none of use. The server may have done what was asked, or may do it yet.
    Failed,
}

/// What follows from an answer.
#[derive(Debug, PartialEq)]
pub(super) enum Next {
    /// There is more to ask.
    Ask(Request),
    /// The lease is this candidate's, until [`Election::renew_by`].
    Leading,
    /// It is not, or not surely; try again later.
    NotLeading,
    /// It was, and is another's now, or nobody's.
    Lost,
}

/// What one candidate knows, and what follows from it.
#[derive(Debug)]
pub(super) struct Election {
    config: LeaderElectionConfig,
    /// The lease as it was last seen or written, and since when it is known to be so.
    seen: Option<(Lease, Instant)>,
    /// The term that was last asked for.
    claim: Option<Claim>,
    /// While leading: when the last request that succeeded was begun.
    renewed: Option<Instant>,
    /// Whether `seen` may be outdated by something that this candidate has sent itself.
    doubtful: bool,
}

impl Election {
    pub(super) fn new(config: LeaderElectionConfig) -> Self {
        Self { config, seen: None, claim: None, renewed: None, doubtful: true }
    }

    /// Returns who holds the lease, as far as is known.
    pub(super) fn leader(&self) -> Option<&str> {
        self.seen.as_ref().and_then(|(lease, _)| record::holder(lease))
    }

    /// Returns until when a leader must have renewed its lease, or tell its work to stop.
    pub(super) fn renew_by(&self) -> Option<Instant> {
        Some(self.renewed? + self.config.renew_deadline)
    }

    /// Returns from when on the work may not go on.
    pub(super) fn work_until(&self) -> Option<Instant> {
        Some(self.renewed? + self.config.work_limit())
    }

    /// The work is over, so that this is no leader any more, whatever the lease says.
    pub(super) fn step_down(&mut self) {
        self.renewed = None;
    }

    /// Begins a try to get the lease, or to keep it.
    pub(super) fn begin(&self, date: Timestamp) -> Request {
        match (&self.seen, &self.claim, self.renewed) {
            (Some((lease, _)), Some(claim), Some(_)) if !self.doubtful && claim.holds(lease) => {
                self.write(claim, lease.clone(), date)
            }
            _ => Request::Get,
        }
    }

    /// Takes the answer to a request that was begun at `sent`.
    pub(super) fn answered(
        &mut self,
        request: &Request,
        answer: Answer,
        sent: Instant,
        now: Instant,
        date: Timestamp,
    ) -> Next {
        match (request, answer) {
            (Request::Get, Answer::Lease(lease)) => self.looked(*lease, now, date),
            (Request::Get, Answer::NotFound) => {
                self.seen = None;
                self.doubtful = true;
                let claim = self.claim(None, date);
                let LeaderElectionConfig { namespace, name, lease_duration, .. } = &self.config;
                Next::Ask(Request::Create(Box::new(claim.create(namespace, name, *lease_duration, date))))
            }
            (Request::Get, _) => Next::NotLeading,
            (_, Answer::Lease(lease)) => self.wrote(*lease, sent, now),
            // The lease was known, it seemed, and not looked at before: look at it now.
            (Request::Replace(_), _) if !self.doubtful => {
                self.doubtful = true;
                Next::Ask(Request::Get)
            }
            _ => Next::NotLeading,
        }
    }

    /// The lease is as it was asked to be.
    fn wrote(&mut self, lease: Lease, sent: Instant, now: Instant) -> Next {
        self.seen = Some((lease, now));
        self.doubtful = false;
        // An answer that comes so late says only what was true long ago.
        if now >= sent + self.config.renew_deadline {
            return Next::NotLeading;
        }
        self.renewed = Some(sent);
        Next::Leading
    }

    fn looked(&mut self, lease: Lease, now: Instant, date: Timestamp) -> Next {
        self.doubtful = true;
        let since = self.observe(lease, now);
        let Some((lease, _)) = self.seen.as_ref() else { return Next::NotLeading };
        if let Some(claim) = self.claim.as_ref().filter(|claim| claim.holds(lease)) {
            return Next::Ask(self.write(claim, lease.clone(), date));
        }
        if self.renewed.is_some() {
            return Next::Lost;
        }
        let duration = record::duration(lease).unwrap_or(self.config.lease_duration);
        if record::holder(lease).is_some() && now < since + duration {
            return Next::NotLeading;
        }
        let lease = lease.clone();
        let claim = self.claim(Some(&lease), date);
        Next::Ask(self.write(&claim, lease, date))
    }

    /// Notes how the lease is. Returns since when it is known to be so.
    fn observe(&mut self, lease: Lease, now: Instant) -> Instant {
        let since = match &self.seen {
            Some((seen, since)) if record::version(seen) == record::version(&lease) => *since,
            _ => now,
        };
        self.seen = Some((lease, since));
        since
    }

    /// Returns the claim with which to take a lease over, or to make one. If this was tried before, and nobody knows what
    /// came of it, it is the same claim, so that it can be recognised if it does come to something yet.
    fn claim(&mut self, lease: Option<&Lease>, date: Timestamp) -> Claim {
        let transitions = lease.and_then(|lease| lease.spec.as_ref()?.lease_transitions);
        let transitions = lease.map_or(0, |_| transitions.unwrap_or(0).saturating_add(1));
        let claim = self.claim.take().filter(|claim| claim.transitions == transitions);
        let claim = claim.unwrap_or_else(|| Claim {
            identity: self.config.identity.clone(),
            acquired: record::micro_time(date),
            transitions,
        });
        self.claim = Some(claim.clone());
        claim
    }

    fn write(&self, claim: &Claim, lease: Lease, date: Timestamp) -> Request {
        Request::Replace(Box::new(claim.write(lease, self.config.lease_duration, date)))
    }

    /// Begins to release the lease. Returns nothing if this candidate surely does not hold it.
    pub(super) fn begin_release(&mut self, date: Timestamp) -> Option<Request> {
        let claim = self.claim.as_ref()?;
        match &self.seen {
            Some((lease, _)) if !self.doubtful && claim.holds(lease) => Some(released(lease, date)),
            _ => Some(Request::Get),
        }
    }

    /// Takes the answer to a request of a release. Returns what to ask next; nothing when there is no more to be done.
    pub(super) fn answered_release(
        &mut self,
        request: &Request,
        answer: Answer,
        now: Instant,
        date: Timestamp,
    ) -> Option<Request> {
        match (request, answer) {
            (Request::Get, Answer::Lease(lease)) => {
                self.observe(*lease, now);
                self.doubtful = true;
                let ours = self
                    .seen
                    .as_ref()
                    .filter(|(lease, _)| self.claim.as_ref().is_some_and(|claim| claim.holds(lease)));
                ours.map(|(lease, _)| released(lease, date))
            }
            (Request::Get, _) => None,
            (_, Answer::Lease(lease)) => {
                self.observe(*lease, now);
                self.claim = None;
                None
            }
            (_, Answer::Conflict) => {
                self.doubtful = true;
                Some(Request::Get)
            }
            (_, Answer::NotFound | Answer::Failed) => {
                // Once more at most: whoever does not answer now may never do.
                let look = (!self.doubtful).then_some(Request::Get);
                self.doubtful = true;
                look
            }
        }
    }

    /// How long to wait before the next try, if `share` of the jitter falls to it.
    pub(super) fn pause(&self, share: f64) -> Duration {
        let jitter = if self.renewed.is_some() { 0.0 } else { share * super::config::JITTER_FACTOR };
        self.config.retry_period.mul_f64(1.0 + jitter)
    }
}

fn released(lease: &Lease, date: Timestamp) -> Request {
    Request::Replace(Box::new(record::release(lease.clone(), date)))
}
