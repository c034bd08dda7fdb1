//! [`Election`]: the rules of leader election for one candidate, without clock and I/O. A [`Claim`]
//! is the part of a lease that names the holder and the start of its leadership.
//!
//! client-go: `tryAcquireOrRenew` and `tryRelease` of tools/leaderelection/leaderelection.go. Two
//! candidates do not lead at once, within the limits in [`super`]. The leader counts the duration
//! of its lease from the start of its write; other candidates count from their first read of that
//! write, which is later. Dates in leases do not decide when a lease ends, because each machine has
//! its own clock.
//!
//! Two rules are stricter than client-go's. A leader that reads the name of another holder in the
//! lease stops leading at once, and not only at its renew deadline. A lease that names this
//! candidate's identity counts as the lease of another candidate, unless this candidate has written
//! it.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::Timestamp;
use tokio::time::Instant;

use super::LeaderElectionConfig;
use super::record::{self, Claim};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Request {
    Get,
    Create(Box<Lease>),
    /// An update of the lease. The server rejects the update if its resource version is outdated.
    Replace(Box<Lease>),
}

#[derive(Debug, Clone)]
pub(super) enum Response {
    /// The lease that the request has read or written.
    Lease(Box<Lease>),
    /// The lease does not exist. Only a [`Request::Get`] has this response.
    NotFound,
    /// The server rejected the write, because another request has created or changed the lease.
    Conflict,
    /// There was no usable response. The server has possibly applied the request, or can still
    /// apply it.
    Failed,
}

/// The next request of an attempt to acquire or renew the lease, or the outcome of the attempt.
#[derive(Debug, PartialEq)]
pub(super) enum Next {
    Send(Request),
    End(Outcome),
}

/// The outcome of an attempt to acquire or renew the lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// This candidate leads, and must renew the lease before [`Election::renew_by`].
    Leading,
    /// The attempt neither made this candidate the leader nor extended its leadership. A candidate
    /// that already leads continues to lead until its renew deadline.
    Failed,
    /// This candidate was the leader, but its claim is no longer in the lease.
    Lost,
}

#[derive(Debug)]
pub(super) struct Election {
    config: LeaderElectionConfig,
    /// The lease as last read or written, and the local time at which this candidate first saw this
    /// version of the lease.
    seen: Option<(Lease, Instant)>,
    /// The claim that this candidate last wrote, or tried to write, into the lease.
    claim: Option<Claim>,
    /// The start of the last request that acquired or renewed the lease; `None` while this
    /// candidate does not lead.
    renewed: Option<Instant>,
    /// Whether the lease that this candidate last read or wrote is possibly outdated. If so, the
    /// next attempt to renew or release the lease begins with a read.
    is_seen_outdated: bool,
}

impl Election {
    pub(super) fn new(config: LeaderElectionConfig) -> Self {
        Self { config, seen: None, claim: None, renewed: None, is_seen_outdated: true }
    }

    /// Returns the last known holder of the lease, if there is one.
    pub(super) fn leader(&self) -> Option<&str> {
        self.seen.as_ref().and_then(|(lease, _)| record::holder(lease))
    }

    /// Returns the time at which the leader cancels its work if it has not renewed the lease.
    /// `None` if this candidate does not lead.
    pub(super) fn renew_by(&self) -> Option<Instant> {
        Some(self.renewed? + self.config.renew_deadline)
    }

    /// Returns the time at which the leader drops work that did not end after its cancellation.
    /// `None` if this candidate does not lead.
    pub(super) fn work_until(&self) -> Option<Instant> {
        Some(self.renewed? + self.config.work_limit())
    }

    /// Records that the work has ended, so that this candidate no longer leads.
    pub(super) fn step_down(&mut self) {
        self.renewed = None;
    }

    /// Returns the first request of an attempt to acquire or renew the lease. `date` is the current
    /// date, which is written into the lease.
    pub(super) fn begin(&self, date: Timestamp) -> Request {
        match (&self.seen, &self.claim, self.renewed) {
            (Some((lease, _)), Some(claim), Some(_)) if !self.is_seen_outdated && claim.holds(lease) => {
                self.write(claim, lease.clone(), date)
            }
            _ => Request::Get,
        }
    }

    /// Processes the response to a request to acquire or renew the lease. Returns the next request,
    /// or the outcome of the attempt.
    ///
    /// `sent` is the local time at which the request was started, and `now` the local time after
    /// the response. If the next request is a write, it writes `date` into the lease.
    pub(super) fn process_response(
        &mut self,
        request: &Request,
        response: Response,
        sent: Instant,
        now: Instant,
        date: Timestamp,
    ) -> Next {
        match (request, response) {
            (Request::Get, Response::Lease(lease)) => self.process_read(*lease, now, date),
            (Request::Get, Response::NotFound) => {
                self.seen = None;
                self.is_seen_outdated = true;
                let claim = self.claim(None, date);
                let LeaderElectionConfig { namespace, name, lease_duration, .. } = &self.config;
                Next::Send(Request::Create(Box::new(claim.create(namespace, name, *lease_duration, date))))
            }
            (Request::Get, _) => Next::End(Outcome::Failed),
            (_, Response::Lease(lease)) => Next::End(self.process_write(*lease, sent, now)),
            // The update failed, possibly because the lease in `seen` was outdated. So read the
            // lease now.
            (Request::Replace(_), _) if !self.is_seen_outdated => {
                self.is_seen_outdated = true;
                Next::Send(Request::Get)
            }
            _ => Next::End(Outcome::Failed),
        }
    }

    /// Records the lease that a successful write returned. Returns [`Outcome::Leading`], or
    /// [`Outcome::Failed`] if the response did not arrive before the renew deadline.
    fn process_write(&mut self, lease: Lease, sent: Instant, now: Instant) -> Outcome {
        self.seen = Some((lease, now));
        self.is_seen_outdated = false;
        // The renew deadline counts from the start of the request. After the deadline, the lease is
        // too old to start work.
        if now >= sent + self.config.renew_deadline {
            return Outcome::Failed;
        }
        self.renewed = Some(sent);
        Outcome::Leading
    }

    /// Records a lease that was read from the server. Returns the next request to acquire or renew
    /// the lease, or the outcome if no further request is necessary.
    fn process_read(&mut self, lease: Lease, now: Instant, date: Timestamp) -> Next {
        self.is_seen_outdated = true;
        let since = self.observe(lease.clone(), now);
        if let Some(claim) = self.claim.as_ref().filter(|claim| claim.holds(&lease)) {
            return Next::Send(self.write(claim, lease, date));
        }
        if self.renewed.is_some() {
            return Next::End(Outcome::Lost);
        }
        let duration = record::duration(&lease).unwrap_or(self.config.lease_duration);
        if record::holder(&lease).is_some() && now < since + duration {
            return Next::End(Outcome::Failed);
        }
        let claim = self.claim(Some(&lease), date);
        Next::Send(self.write(&claim, lease, date))
    }

    /// Records the lease. Returns the time at which this candidate first saw this version of it.
    fn observe(&mut self, lease: Lease, now: Instant) -> Instant {
        let since = match &self.seen {
            Some((seen, since)) if record::version(seen) == record::version(&lease) => *since,
            _ => now,
        };
        self.seen = Some((lease, since));
        since
    }

    /// Returns the claim that this candidate writes to acquire the lease. `lease` is `None` if the
    /// server has no lease.
    fn claim(&mut self, lease: Option<&Lease>, date: Timestamp) -> Claim {
        let transitions = lease.and_then(|lease| lease.spec.as_ref()?.lease_transitions);
        let transitions = lease.map_or(0, |_| transitions.unwrap_or(0).saturating_add(1));
        // Unless another candidate has led since, repeat the claim of an earlier attempt: the
        // server can still apply its write, and this candidate must then recognize the lease as its
        // own.
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

    /// Returns the first request to release the lease. `None` if there is nothing to release: this
    /// candidate has not tried to write its claim into the lease since its last successful release.
    pub(super) fn begin_release(&mut self, date: Timestamp) -> Option<Request> {
        let claim = self.claim.as_ref()?;
        match &self.seen {
            Some((lease, _)) if !self.is_seen_outdated && claim.holds(lease) => Some(released(lease, date)),
            _ => Some(Request::Get),
        }
    }

    pub(super) fn process_release_response(
        &mut self,
        request: &Request,
        response: Response,
        now: Instant,
        date: Timestamp,
    ) -> Option<Request> {
        match (request, response) {
            (Request::Get, Response::Lease(lease)) => {
                self.observe(*lease, now);
                self.is_seen_outdated = true;
                let (lease, _) = self.seen.as_ref()?;
                self.claim.as_ref()?.holds(lease).then(|| released(lease, date))
            }
            (Request::Get, _) => None,
            (_, Response::Lease(lease)) => {
                self.observe(*lease, now);
                self.claim = None;
                None
            }
            (_, Response::Conflict) => {
                self.is_seen_outdated = true;
                Some(Request::Get)
            }
            (_, Response::NotFound | Response::Failed) => {
                // At most one retry, because the server is possibly unavailable.
                let retry = (!self.is_seen_outdated).then_some(Request::Get);
                self.is_seen_outdated = true;
                retry
            }
        }
    }

    /// Returns the wait before the next attempt to acquire or renew the lease.
    ///
    /// `share` is random, from 0 to 1. A candidate that does not lead waits for 1 retry period if
    /// `share` is 0, and for 2.2 retry periods if `share` is 1.
    pub(super) fn pause(&self, share: f64) -> Duration {
        let jitter = if self.renewed.is_some() { 0.0 } else { share * super::config::JITTER_FACTOR };
        self.config.retry_period.mul_f64(1.0 + jitter)
    }
}

fn released(lease: &Lease, date: Timestamp) -> Request {
    Request::Replace(Box::new(record::release(lease.clone(), date)))
}
