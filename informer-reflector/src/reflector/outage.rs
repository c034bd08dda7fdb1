//! [`Outage`]: the reflectors that wait for an unavailable server (the waiters), and the order of
//! their requests.
//!
//! A waiter needs a permission to send its request. There are two kinds:
//! - A turn: for a waiter whose backoff is over, some time after the last turn of any waiter.
//! - An extra permission: for a waiter whose backoff can still last. Two extra permissions become
//!   available when a reflector gets its first response after an outage.
//!
//! A recovery begins with a reflector's first response after an outage. It ends when the
//! reflector's list is complete, its watch has lasted a second, or the reflector must wait after an
//! error.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};

/// The minimum time between two turns.
const MIN_SPACING: Duration = Duration::from_millis(300);

/// The maximum time between two turns.
const MAX_SPACING: Duration = Duration::from_secs(5);

/// The number of extra permissions that a reflector's first response after an outage creates.
const EXTRA_PER_RESPONSE: usize = 2;

/// The longest random pause before a request with an extra permission. It spreads the requests.
const MAX_EXTRA_JITTER: Duration = Duration::from_millis(100);

/// The failed requests of one reflector since the server became unavailable.
#[derive(Debug, Clone)]
pub(super) struct OutageFailures {
    /// The resource and scope, for logs.
    pub(super) resource: Arc<str>,
    /// The last error, for logs.
    pub(super) error: String,
    /// The time of the first failure.
    pub(super) since: Instant,
    pub(super) count: u32,
    /// Whether only this reflector's resource fails, while the server responds to other reflectors.
    pub(super) only_own_resource: bool,
    /// The backoff after the last failure.
    pub(super) wait: Duration,
    /// The wait that the server requested (`Retry-After`); zero if it requested none.
    pub(super) retry_after_server: Duration,
}

#[derive(Default)]
pub(super) struct Outage {
    /// The number of responses to all reflectors, not counting 502, 503 and 504.
    responses: AtomicU64,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    waiters: Vec<Waiter>,
    next_id: u64,
    last_turn: Option<Instant>,
    /// The number of available extra permissions: those that no waiter has received yet.
    extra_permissions: usize,
    logged: Option<LoggedOutage>,
    recovering: RecoveryCounts,
}

struct LoggedOutage {
    since: Instant,
    /// The number of reflectors that waited for the server when the outage was logged.
    waiting: usize,
}

/// Numbers of reflectors that got a response after the outage, by the state of their recovery.
#[derive(Default)]
struct RecoveryCounts {
    /// The number of reflectors whose recovery is in progress.
    pending: usize,
    /// The number of reflectors whose watch has lasted a second.
    resumed: usize,
    /// The number of reflectors whose list is complete.
    relisted: usize,
}

/// A reflector that waits to send its request to the unavailable server.
struct Waiter {
    id: u64,
    since: Instant,
    only_own_resource: bool,
    /// The time by which waiters are sorted. The longer a reflector has been failing, the later is
    /// this time, so that a permanent failure delays no other reflectors.
    sort_time: Instant,
    /// The end of the wait that the server requested (`Retry-After`), or the time of joining the
    /// queue if it requested none. The waiter receives no permission before this time.
    retry_after_until: Instant,
    /// The end of the backoff. Before it, the reflector can send a request only with an extra
    /// permission.
    ready_at: Instant,
    permission: Option<Permission>,
    wake: Arc<Notify>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Permission {
    Turn,
    Extra,
}

impl Waiter {
    /// Returns the key that orders the waiters: the waiter with the lowest key is first. Waiters for
    /// whom only their own resource is unavailable come last.
    fn rank(&self) -> (bool, Instant, u64) {
        (self.only_own_resource, self.sort_time, self.id)
    }

    /// Returns the minimum pause before this waiter's turn, measured from the last turn of any
    /// waiter. The longer the reflector has been failing, the longer is the pause.
    fn spacing(&self, now: Instant) -> Duration {
        (now.saturating_duration_since(self.since) / 5).clamp(MIN_SPACING, MAX_SPACING)
    }

    fn permit(&mut self, permission: Permission) {
        self.permission = Some(permission);
        self.wake.notify_one();
    }
}

impl Queue {
    /// Adds a reflector whose last request has failed. Returns the ID of its entry, and the
    /// notification that wakes its task.
    fn join(&mut self, failures: &OutageFailures, now: Instant) -> (u64, Arc<Notify>) {
        // The request has failed, so the server can still be unavailable.
        self.extra_permissions = 0;
        let id = self.next_id;
        self.next_id += 1;
        let wake = Arc::new(Notify::new());
        self.waiters.push(Waiter {
            id,
            since: failures.since,
            only_own_resource: failures.only_own_resource,
            sort_time: now + now.saturating_duration_since(failures.since),
            retry_after_until: now + failures.retry_after_server,
            ready_at: now + failures.wait.max(failures.retry_after_server),
            permission: None,
            wake: Arc::clone(&wake),
        });
        (id, wake)
    }

    /// Removes a reflector. An unused permission passes to the next reflector.
    fn leave(&mut self, id: u64, has_used_permission: bool) {
        let Some(position) = self.waiters.iter().position(|waiter| waiter.id == id) else { return };
        match self.waiters.remove(position).permission {
            Some(Permission::Turn) if !has_used_permission => self.last_turn = None,
            Some(Permission::Extra) if !has_used_permission => self.extra_permissions += 1,
            _ => {}
        }
        // The removed waiter was possibly the first one. The waiter that is the first now must wake
        // to grant turns.
        if let Some(first) = self.first(|_| true) {
            first.wake.notify_one();
        }
        // The last waiter was stopped, so no reflector will log the outage's end.
        if !has_used_permission && self.waiters.is_empty() && self.recovering.pending == 0 {
            self.logged = None;
        }
    }

    /// Returns the first reflector that has no permission and satisfies the condition.
    fn first(&mut self, condition: impl Fn(&Waiter) -> bool) -> Option<&mut Waiter> {
        let waiting =
            self.waiters.iter_mut().filter(|waiter| waiter.permission.is_none() && condition(waiter));
        waiting.min_by_key(|waiter| waiter.rank())
    }

    /// Returns the earliest time for a turn of `waiter`. Turns of other waiters can delay it.
    fn turn_of(&self, waiter: &Waiter, now: Instant) -> Instant {
        let spaced = self.last_turn.map_or(now, |last| last + waiter.spacing(now));
        waiter.ready_at.max(spaced)
    }

    /// Grants a turn to the first reflector whose backoff is over, if enough time has passed since
    /// the last turn.
    fn grant_turn(&mut self, now: Instant) {
        let last_turn = self.last_turn;
        let first = self.first(|waiter| waiter.ready_at <= now);
        if let Some(first) = first
            && last_turn.is_none_or(|last| last + first.spacing(now) <= now)
        {
            first.permit(Permission::Turn);
            self.last_turn = Some(now);
        }
    }

    /// Gives each available extra permission to the first waiter without a permission. The waiter's
    /// backoff can still last, but its `Retry-After` must be over. Extra permissions for which
    /// there is no such waiter stay available.
    fn grant_extra(&mut self, now: Instant) {
        while self.extra_permissions > 0 {
            let Some(first) = self.first(|waiter| waiter.retry_after_until <= now) else { return };
            first.permit(Permission::Extra);
            self.extra_permissions -= 1;
        }
    }

    /// Returns two times: when the task of reflector `id` must wake to grant permissions, and when
    /// this reflector will probably send its own next request.
    fn next_wake(&self, id: u64, now: Instant) -> (Instant, Instant) {
        let Some(own) = self.waiters.iter().find(|waiter| waiter.id == id) else { return (now, now) };
        let before = self.waiters.iter().filter(|waiter| {
            waiter.permission.is_none()
                && waiter.ready_at <= own.ready_at.max(now)
                && waiter.rank() < own.rank()
        });
        let before = u32::try_from(before.count()).unwrap_or(u32::MAX);
        let turn = self.turn_of(own, now);
        // The time can have passed: a waiter with a longer spacing comes first and is not due yet.
        let expected = (turn + own.spacing(now).saturating_mul(before)).max(now);
        let wake_at = if self.extra_permissions > 0 && own.retry_after_until > now {
            own.retry_after_until
        } else {
            turn
        };
        (wake_at.max(now), expected)
    }
}

impl Outage {
    /// Waits until the reflector can send its next request to the unavailable server. If the
    /// reflector still waits at the end of its backoff, calls `queued` with the expected time of
    /// its request, and calls `queued` again when the expected time changes.
    ///
    /// # Cancel safety
    /// If the future is dropped, an unused permission passes to the next reflector in the queue.
    pub(super) async fn wait_for_turn(&self, failures: &OutageFailures, mut queued: impl FnMut(Instant)) {
        let (id, wake) = self.queue.lock().join(failures, Instant::now());
        let mut entry = QueueEntry { outage: self, id, has_used_permission: false };
        self.log_outage(failures);
        let mut reported_turn = None;
        let permission = loop {
            let now = Instant::now();
            let (permission, wake_at, expected, ready_at) = {
                let mut queue = self.queue.lock();
                queue.grant_extra(now);
                queue.grant_turn(now);
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
            // At the end of the backoff, `queued` reports the wait for the turn.
            let wake_at = if ready_at > now { wake_at.min(ready_at) } else { wake_at };
            tokio::select! {
                biased;
                () = wake.notified() => {}
                () = sleep_until(wake_at) => {}
            }
        };
        if permission == Permission::Extra {
            sleep(MAX_EXTRA_JITTER.mul_f64(fastrand::f64())).await;
        }
        entry.has_used_permission = true;
        drop(entry);
    }

    /// Logs that the server is unavailable. Logs it again only when four times as many reflectors
    /// wait as at the last log line. Does not log a reflector's first failure if its wait is short,
    /// because the server may only be restarting.
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
        tracing::warn!(
            waiting, %resource, %error,
            "API server unavailable; informers wait, and then retry one after another"
        );
    }

    /// Starts the recovery of a reflector that got its first response after an outage. Makes two
    /// more extra permissions available to waiters, and lets the next turn follow without a pause.
    /// The recovery ends when the caller drops the returned guard.
    pub(super) fn begin_recovery(this: &Arc<Self>) -> Recovery {
        let mut queue = this.queue.lock();
        queue.recovering.pending += 1;
        queue.last_turn = None;
        queue.extra_permissions = (queue.extra_permissions + EXTRA_PER_RESPONSE).min(queue.waiters.len());
        queue.grant_extra(Instant::now());
        // All waiters wake and check for a permission. A waiter whose `Retry-After` is not over
        // checks again when it is over.
        queue.waiters.iter().for_each(|waiter| waiter.wake.notify_one());
        drop(queue);
        Recovery { outage: Arc::clone(this), outcome: None }
    }

    pub(super) fn count_response(&self) {
        self.responses.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn responses(&self) -> u64 {
        self.responses.load(Ordering::Relaxed)
    }

    /// Counts the end of one [`Recovery`], and logs the end of the outage if the outage is over.
    /// `outcome` is the recovery's [`outcome`](Recovery#structfield.outcome).
    fn end_recovery(&self, outcome: Option<Outcome>) {
        let over = {
            let mut queue = self.queue.lock();
            let is_awaited = queue.waiters.iter().any(|waiter| !waiter.only_own_resource);
            let recovering = &mut queue.recovering;
            recovering.pending -= 1;
            let mut is_over = false;
            match outcome {
                Some(Outcome::Resumed) => recovering.resumed += 1,
                Some(Outcome::Relisted) => recovering.relisted += 1,
                Some(Outcome::Refused) => is_over = !is_awaited,
                None => {}
            }
            // One complete list or lasting watch of any reflector shows that the server works.
            is_over |= recovering.resumed + recovering.relisted > 0;
            if recovering.pending > 0 || !is_over {
                return;
            }
            let counted = std::mem::take(recovering);
            queue.logged.take().map(|logged| (logged, counted, queue.waiters.len()))
        };
        if let Some((logged, RecoveryCounts { resumed, relisted, .. }, waiting)) = over {
            let outage = logged.since.elapsed();
            tracing::info!(?outage, resumed, relisted, waiting, "API server is back");
        }
    }
}

/// A reflector's entry in the queue. Dropping the entry removes it from the queue.
struct QueueEntry<'o> {
    outage: &'o Outage,
    id: u64,
    /// Whether the reflector has used its permission, so that it sends its request now. Stays
    /// `false` if the reflector is stopped while it waits.
    has_used_permission: bool,
}

impl Drop for QueueEntry<'_> {
    fn drop(&mut self) {
        self.outage.queue.lock().leave(self.id, self.has_used_permission);
    }
}

/// How a reflector's recovery has ended.
#[derive(Debug, Clone, Copy)]
pub(super) enum Outcome {
    /// The reflector's watch has lasted a second.
    Resumed,
    /// The reflector's list is complete.
    Relisted,
    /// The available server has responded to the reflector's request with an error, for example
    /// with status 429.
    Refused,
}

/// The recovery of a reflector from an outage. Dropping this guard ends the recovery.
pub(super) struct Recovery {
    outage: Arc<Outage>,
    /// How the recovery ended. `None` during the recovery, and if the server becomes unavailable
    /// again or the reflector is stopped.
    outcome: Option<Outcome>,
}

impl Recovery {
    pub(super) fn finish_recovery(mut self, outcome: Outcome) {
        self.outcome = Some(outcome);
    }
}

impl Drop for Recovery {
    fn drop(&mut self) {
        self.outage.end_recovery(self.outcome);
    }
}
