//! [`Outage`]: the reflectors that wait for an unavailable server (the waiters), and the order of
//! their requests.
//!
//! [`Queue`] implements the rules without clock and tasks. A turn is the permission for one waiter
//! to send a request. There is no separate task that grants turns: each waiter that wakes grants
//! the turns that are due, to itself or to another waiter. A response from the server releases
//! waiters, which then need no turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};

/// The minimum time between the turns of two reflectors to send a request during an outage.
const MIN_SPACING: Duration = Duration::from_millis(300);

/// The maximum time between the turns of two reflectors to send a request during an outage.
const MAX_SPACING: Duration = Duration::from_secs(5);

/// The number of waiting reflectors that one response releases: they can send a
/// request without waiting for their turn.
const RELEASES_PER_RESPONSE: usize = 2;

/// The maximum pause before a request that a reflector sends without waiting for its turn, because
/// another reflector got a response. Each pause is random, so that the requests do not arrive all
/// at once.
const MAX_RELEASE_JITTER: Duration = Duration::from_millis(100);

/// The failed requests of one reflector to an unavailable server.
#[derive(Debug, Clone)]
pub(super) struct OutageFailures {
    /// The resource and scope, for logs.
    pub(super) resource: Arc<str>,
    /// The last error, for logs.
    pub(super) error: String,
    /// The time of the first failure since the last response.
    pub(super) since: Instant,
    /// The number of failures since the last response.
    pub(super) count: u32,
    /// Whether another reflector got a response between two failures of this reflector. If so, only
    /// the resource of this reflector is unavailable, and not the server.
    pub(super) only_own_resource: bool,
    /// The backoff of this reflector after its last failure.
    pub(super) wait: Duration,
    /// The wait that the server requested (`Retry-After`); zero if it requested none.
    pub(super) retry_after_server: Duration,
}

/// The reflectors of one client that wait because their server is unavailable.
#[derive(Default)]
pub(super) struct Outage {
    /// The number of responses to all reflectors, which shows a failing reflector whether the
    /// server is available to others.
    responses: AtomicU64,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    waiters: Vec<Waiter>,
    next_id: u64,
    last_turn: Option<Instant>,
    /// The number of unused releases. A release permits one waiter to send a request without a
    /// turn. It stays unused while all waiters wait for the end of their `Retry-After`.
    releases: usize,
    logged: Option<LoggedOutage>,
    recovering: Recovering,
}

/// An outage that has been logged.
struct LoggedOutage {
    since: Instant,
    /// The number of reflectors that waited when the outage was logged.
    waiting: usize,
}

/// The numbers of reflectors that got a response after the outage.
#[derive(Default)]
struct Recovering {
    /// The number of reflectors that got a response, and whose list or watch has not succeeded yet.
    now: usize,
    /// The number of reflectors that have resumed their watch.
    resumed: usize,
    /// The number of reflectors that have completed a list.
    relisted: usize,
}

struct Waiter {
    id: u64,
    since: Instant,
    only_own_resource: bool,
    /// The main part of the [sort key](Self::rank): the time at which the waiter was added, plus
    /// the time for which its reflector has been failing. So reflectors that have been failing for
    /// longer get later turns.
    due: Instant,
    /// The end of the server's `Retry-After`, before which the waiter is not released.
    retry_after_until: Instant,
    /// The end of the backoff, before which the waiter gets no turn.
    ready_at: Instant,
    permission: Option<Permission>,
    wake: Arc<Notify>,
}

/// The permission of a waiter to send its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Permission {
    Turn,
    Released,
}

impl Waiter {
    /// Returns the sort key of the waiter. Waiters come last if only their own resource is
    /// unavailable, and not the server.
    fn rank(&self) -> (bool, Instant, u64) {
        (self.only_own_resource, self.due, self.id)
    }

    fn spacing(&self, now: Instant) -> Duration {
        (now.saturating_duration_since(self.since) / 5).clamp(MIN_SPACING, MAX_SPACING)
    }

    fn permit(&mut self, permission: Permission) {
        self.permission = Some(permission);
        self.wake.notify_one();
    }
}

impl Queue {
    /// Adds a waiter whose request has failed. Returns its ID, and the notification that wakes it.
    /// Cancels the unused `releases`, because the server can still be unavailable.
    fn join(&mut self, failures: &OutageFailures, now: Instant) -> (u64, Arc<Notify>) {
        self.releases = 0;
        let id = self.next_id;
        self.next_id += 1;
        let wake = Arc::new(Notify::new());
        self.waiters.push(Waiter {
            id,
            since: failures.since,
            only_own_resource: failures.only_own_resource,
            due: now + now.saturating_duration_since(failures.since),
            retry_after_until: now + failures.retry_after_server,
            ready_at: now + failures.wait.max(failures.retry_after_server),
            permission: None,
            wake: Arc::clone(&wake),
        });
        (id, wake)
    }

    /// Removes a waiter. If the waiter has not used its permission, the next waiter gets it.
    fn leave(&mut self, id: u64, has_used_permission: bool) {
        let Some(position) = self.waiters.iter().position(|waiter| waiter.id == id) else { return };
        match self.waiters.remove(position).permission {
            Some(Permission::Turn) if !has_used_permission => self.last_turn = None,
            Some(Permission::Released) if !has_used_permission => self.releases += 1,
            _ => {}
        }
        // The removed waiter was possibly the first one. The waiter that is the first now must wake
        // to grant turns.
        if let Some(first) = self.first(|_| true) {
            first.wake.notify_one();
        }
    }

    /// Returns the first waiter that has no permission yet and satisfies the condition.
    fn first(&mut self, condition: impl Fn(&Waiter) -> bool) -> Option<&mut Waiter> {
        let waiting =
            self.waiters.iter_mut().filter(|waiter| waiter.permission.is_none() && condition(waiter));
        waiting.min_by_key(|waiter| waiter.rank())
    }

    /// Returns the earliest time of this waiter's turn.
    fn turn_of(&self, waiter: &Waiter, now: Instant) -> Instant {
        let spaced = self.last_turn.map_or(now, |last| last + waiter.spacing(now));
        waiter.ready_at.max(spaced)
    }

    /// Grants a turn to the first waiter whose backoff is over, if enough time has passed since the
    /// last turn.
    fn grant(&mut self, now: Instant) {
        let last_turn = self.last_turn;
        let first = self.first(|waiter| waiter.ready_at <= now);
        if let Some(first) = first
            && last_turn.is_none_or(|last| last + first.spacing(now) <= now)
        {
            first.permit(Permission::Turn);
            self.last_turn = Some(now);
        }
    }

    /// Uses the `releases`: for each of them, permits one waiter to send a request without a turn.
    /// Skips waiters whose `Retry-After` is not over.
    fn release(&mut self, now: Instant) {
        while self.releases > 0 {
            let Some(first) = self.first(|waiter| waiter.retry_after_until <= now) else { return };
            first.permit(Permission::Released);
            self.releases -= 1;
        }
    }

    /// Returns the time at which the waiter must wake to grant the turns and releases that are due,
    /// and the expected time of its own turn.
    fn next_wake(&self, id: u64, now: Instant) -> (Instant, Instant) {
        let Some(own) = self.waiters.iter().find(|waiter| waiter.id == id) else { return (now, now) };
        let before = self.waiters.iter().filter(|waiter| {
            waiter.permission.is_none()
                && waiter.ready_at <= own.ready_at.max(now)
                && waiter.rank() < own.rank()
        });
        let before = u32::try_from(before.count()).unwrap_or(u32::MAX);
        let turn = self.turn_of(own, now);
        let expected = turn + own.spacing(now).saturating_mul(before);
        let wake_at =
            if self.releases > 0 && own.retry_after_until > now { own.retry_after_until } else { turn };
        (wake_at.max(now), expected)
    }
}

impl Outage {
    /// Waits for the reflector's turn. After the reflector's own backoff, calls `queued` with the
    /// expected time of the turn, and again if that time has changed when the waiter wakes.
    ///
    /// # Cancel safety
    /// If the future is dropped, a granted turn goes to the next waiter.
    pub(super) async fn wait_for_turn(&self, failures: &OutageFailures, mut queued: impl FnMut(Instant)) {
        let (id, wake) = self.queue.lock().join(failures, Instant::now());
        let mut place = Place { outage: self, id, has_used_permission: false };
        self.log_outage(failures);
        let mut reported_turn = None;
        let permission = loop {
            let now = Instant::now();
            let (permission, wake_at, expected, ready_at) = {
                let mut queue = self.queue.lock();
                queue.release(now);
                queue.grant(now);
                let own = queue.waiters.iter().find(|waiter| waiter.id == id);
                let (permission, ready_at) = own.map_or((None, now), |own| (own.permission, own.ready_at));
                let (wake_at, expected) = queue.next_wake(id, now);
                (permission, wake_at, expected, ready_at)
            };
            if let Some(permission) = permission {
                break permission;
            }
            if ready_at <= now && reported_turn != Some(expected) {
                reported_turn = Some(expected);
                queued(expected);
            }
            // This waiter would be due, but the first waiter is not due yet: it has been failing
            // for longer, so it needs more time after the last turn. Check again later.
            let wake_at = if wake_at <= now { now + MIN_SPACING } else { wake_at };
            tokio::select! {
                biased;
                () = wake.notified() => {}
                () = sleep_until(wake_at) => {}
            }
        };
        place.has_used_permission = true;
        drop(place);
        if permission == Permission::Released {
            sleep(MAX_RELEASE_JITTER.mul_f64(fastrand::f64())).await;
        }
    }

    /// Logs the outage once for all reflectors, and again when four times as many reflectors wait.
    /// A first failure is logged only if its backoff is long, so that a quick restart of the server
    /// is not logged.
    fn log_outage(&self, failures: &OutageFailures) {
        if failures.only_own_resource || (failures.count < 2 && failures.wait < MAX_SPACING) {
            return;
        }
        let waiting = {
            let mut queue = self.queue.lock();
            let waiting = queue.waiters.iter().filter(|waiter| !waiter.only_own_resource).count();
            if queue.logged.as_ref().is_some_and(|logged| waiting < 4 * logged.waiting) {
                return;
            }
            queue.logged = Some(LoggedOutage { since: failures.since, waiting });
            waiting
        };
        let OutageFailures { resource, error, .. } = failures;
        tracing::warn!(waiting, %resource, %error, "API server unavailable; informers wait and retry in turns");
    }

    /// Records the first response to a reflector after its requests failed in an outage. Up to two
    /// more of the waiting reflectors can then send their requests without waiting for their turns.
    pub(super) fn begin_recovery(this: &Arc<Self>) -> Recovery {
        let mut queue = this.queue.lock();
        queue.recovering.now += 1;
        queue.last_turn = None;
        queue.releases = (queue.releases + RELEASES_PER_RESPONSE).min(queue.waiters.len());
        queue.release(Instant::now());
        // All waiters wake and check for a release. A waiter whose `Retry-After` is not over checks
        // again when it is over.
        queue.waiters.iter().for_each(|waiter| waiter.wake.notify_one());
        drop(queue);
        Recovery { outage: Arc::clone(this), outcome: None }
    }

    /// Counts a response to any reflector.
    pub(super) fn count_response(&self) {
        self.responses.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of responses to all reflectors so far.
    pub(super) fn responses(&self) -> u64 {
        self.responses.load(Ordering::Relaxed)
    }

    /// Records the outcome of a reflector's [`Recovery`]. Logs the end of the outage when no
    /// reflector is recovering any more and at least one has recovered.
    fn count_recovery(&self, outcome: Option<Outcome>) {
        let over = {
            let mut queue = self.queue.lock();
            let recovering = &mut queue.recovering;
            recovering.now -= 1;
            match outcome {
                Some(Outcome::Resumed) => recovering.resumed += 1,
                Some(Outcome::Relisted) => recovering.relisted += 1,
                None => {}
            }
            if recovering.now > 0 || recovering.resumed + recovering.relisted == 0 {
                return;
            }
            let counted = std::mem::take(recovering);
            queue.logged.take().map(|logged| (logged, counted, queue.waiters.len()))
        };
        if let Some((logged, Recovering { resumed, relisted, .. }, waiting)) = over {
            let outage = logged.since.elapsed();
            tracing::info!(?outage, resumed, relisted, waiting, "API server is back");
        }
    }
}

/// A waiter's place in the queue. Dropping it removes the waiter.
struct Place<'o> {
    outage: &'o Outage,
    id: u64,
    /// Whether the reflector has used its permission to send a request.
    has_used_permission: bool,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.outage.queue.lock().leave(self.id, self.has_used_permission);
    }
}

/// The first success of a reflector after an outage: a resumed watch or a complete list.
#[derive(Debug, Clone, Copy)]
pub(super) enum Outcome {
    Resumed,
    Relisted,
}

/// The recovery of a reflector that got a response after an outage. Dropping this value reports the
/// outcome.
pub(super) struct Recovery {
    outage: Arc<Outage>,
    /// `None` until a list or watch succeeds. It stays `None` if the reflector fails again or is
    /// stopped.
    outcome: Option<Outcome>,
}

impl Recovery {
    pub(super) fn finish_recovery(mut self, outcome: Outcome) {
        self.outcome = Some(outcome);
    }
}

impl Drop for Recovery {
    fn drop(&mut self) {
        self.outage.count_recovery(self.outcome);
    }
}
