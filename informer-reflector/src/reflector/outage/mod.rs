//! [`Outage`]: the reflectors that wait for an unavailable server (the waiters), and the order of
//! their requests.
//!
//! A waiter needs a permission to send its request. There are two kinds:
//! - A turn: for a waiter whose backoff is over, some time after the last turn of any waiter.
//! - An extra permission: for a waiter whose backoff can still last. Up to two extra permissions
//!   become available when a reflector gets its first response after an outage.
//!
//! A recovery begins with a reflector's first response after an outage. It ends when the
//! reflector's list is complete, its watch has lasted a second, or the reflector must wait after an
//! error.

mod queue;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep, sleep_until};

use self::queue::{MAX_SPACING, MIN_SPACING, Permission, Queue};

/// The longest random pause before a request with an extra permission. It spreads the requests.
const MAX_EXTRA_JITTER: Duration = Duration::from_millis(100);

/// The failed requests of one reflector since the server became unavailable.
pub(super) struct OutageFailures {
    outage: Arc<Outage>,
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

impl Drop for OutageFailures {
    fn drop(&mut self) {
        self.outage.change(|state| {
            state.failing -= 1;
            state.forget_unwatched();
        });
    }
}

#[derive(Default)]
pub(super) struct Outage {
    /// The number of responses to all reflectors, not counting those that show that the server is
    /// unavailable.
    responses: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    queue: Queue,
    /// The number of reflectors that have failed and got no response since.
    failing: usize,
    recovering: RecoveryCounts,
    logged: Option<LoggedOutage>,
}

struct LoggedOutage {
    since: Instant,
    /// The number of waiters when the outage was last logged, without waiters for whom only their
    /// own resource is unavailable.
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

impl State {
    /// Forgets that the outage was logged if all its reflectors were stopped: no reflector will log
    /// its end.
    fn forget_unwatched(&mut self) {
        if self.failing == 0 && self.recovering.pending == 0 {
            self.logged = None;
        }
    }
}

impl Outage {
    /// Calls `change` under the lock, and then wakes the waiters in `to_wake`.
    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let (result, to_wake) = {
            let mut state = self.state.lock();
            (change(&mut state), std::mem::take(&mut state.queue.to_wake))
        };
        // I8: a waker can run the woken task at once, so the lock is not held here.
        to_wake.iter().for_each(|waiter| waiter.notify_one());
        result
    }

    /// Counts a reflector as failing until the returned value is dropped.
    pub(super) fn begin_failures(self: &Arc<Self>, resource: &str) -> OutageFailures {
        self.change(|state| state.failing += 1);
        OutageFailures {
            outage: Arc::clone(self),
            resource: resource.into(),
            error: String::new(),
            since: Instant::now(),
            count: 0,
            only_own_resource: false,
            wait: Duration::ZERO,
            retry_after_server: Duration::ZERO,
        }
    }

    /// Waits until the reflector can send its next request to the unavailable server.
    ///
    /// If the reflector must still wait when its backoff is over, `queued` is called with the
    /// expected time of the request. `queued` is called again if the expected time has changed when
    /// the reflector's task wakes.
    ///
    /// # Cancel safety
    /// If the future is dropped, an unused permission passes to the next reflector in the queue.
    pub(super) async fn wait_for_turn(&self, failures: &OutageFailures, mut queued: impl FnMut(Instant)) {
        let (id, wake) = self.change(|state| state.queue.join(failures, Instant::now()));
        let mut entry = QueueEntry { outage: self, id, has_used_permission: false };
        self.log_outage(failures);
        let mut reported_turn = None;
        let permission = loop {
            let now = Instant::now();
            let (permission, wake_at, expected, ready_at) = self.change(|State { queue, .. }| {
                queue.grant_extra(now);
                queue.grant_turn(now);
                let own = queue.waiters.iter().find(|waiter| waiter.id == id);
                let (permission, ready_at) = own.map_or((None, now), |own| (own.permission, own.ready_at));
                let (wake_at, expected) = queue.next_wake(id, now);
                (permission, wake_at, expected, ready_at)
            });
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

    /// Logs that the server is unavailable. The next line follows only when four times as many
    /// reflectors wait.
    fn log_outage(&self, failures: &OutageFailures) {
        // After a first failure with a short wait, the server may only be restarting.
        if failures.only_own_resource || (failures.count < 2 && failures.wait < MAX_SPACING) {
            return;
        }
        let waiting = {
            let mut state = self.state.lock();
            let waiting = state.queue.waiters.iter().filter(|waiter| !waiter.only_own_resource).count();
            if state.logged.as_ref().is_some_and(|logged| waiting < 4 * logged.waiting) {
                return;
            }
            let since =
                state.logged.as_ref().map_or(failures.since, |logged| logged.since.min(failures.since));
            state.logged = Some(LoggedOutage { since, waiting });
            waiting
        };
        let OutageFailures { resource, error, .. } = failures;
        tracing::warn!(
            waiting, %resource, %error,
            "API server unavailable; informers wait, and then retry one after another"
        );
    }

    /// Starts the recovery of a reflector that got its first response after an outage. The recovery
    /// ends when the caller drops the returned guard.
    pub(super) fn begin_recovery(self: &Arc<Self>) -> Recovery {
        self.change(|state| {
            state.recovering.pending += 1;
            state.queue.permit_more(Instant::now());
        });
        Recovery { outage: Arc::clone(self), outcome: None }
    }

    pub(super) fn count_response(&self) {
        self.responses.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn responses(&self) -> u64 {
        self.responses.load(Ordering::Relaxed)
    }

    /// Counts the end of one [`Recovery`]. If the outage was logged and is over, logs its end.
    /// `outcome` is the recovery's [`outcome`](Recovery#structfield.outcome).
    fn end_recovery(&self, outcome: Option<Outcome>) {
        let over = {
            let mut state = self.state.lock();
            let is_awaited = state.queue.waiters.iter().any(|waiter| !waiter.only_own_resource);
            let recovering = &mut state.recovering;
            recovering.pending -= 1;
            let mut is_over = false;
            match outcome {
                Some(Outcome::Resumed) => recovering.resumed += 1,
                Some(Outcome::Relisted) => recovering.relisted += 1,
                Some(Outcome::Failed) => is_over = !is_awaited,
                None => {}
            }
            // One complete list or lasting watch of any reflector shows that the server works.
            is_over |= recovering.resumed + recovering.relisted > 0;
            if recovering.pending > 0 || !is_over {
                state.forget_unwatched();
                return;
            }
            let counted = std::mem::take(recovering);
            state.logged.take().map(|logged| (logged, counted, state.queue.waiters.len()))
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
        self.outage.change(|state| state.queue.leave(self.id, self.has_used_permission));
    }
}

/// How a reflector's recovery has ended.
#[derive(Debug, Clone, Copy)]
pub(super) enum Outcome {
    /// The reflector's watch has lasted a second.
    Resumed,
    /// The reflector's list is complete.
    Relisted,
    /// The server has responded, but the reflector's list or watch has failed, for example with
    /// status 429.
    Failed,
}

/// The recovery of a reflector from an outage. Dropping this guard ends the recovery.
pub(super) struct Recovery {
    outage: Arc<Outage>,
    /// How the recovery ended. `None` during the recovery, and if the server becomes unavailable
    /// again or the reflector is stopped.
    pub(super) outcome: Option<Outcome>,
}

impl Drop for Recovery {
    fn drop(&mut self) {
        self.outage.end_recovery(self.outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures_since(outage: &Arc<Outage>, since: Instant, wait: Duration) -> OutageFailures {
        let mut failures = outage.begin_failures("pods");
        (failures.since, failures.wait, failures.count) = (since, wait, 1);
        failures
    }

    #[tokio::test(start_paused = true)]
    async fn expected_turn_is_never_in_the_past() {
        let (outage, start) = (Arc::new(Outage::default()), Instant::now());
        tokio::time::advance(Duration::from_secs(40)).await;
        // The first reflector uses a turn. The second has failed for long, so its turn is five
        // seconds later. The third has just failed, and comes after the second.
        let first = failures_since(&outage, Instant::now(), Duration::from_millis(40_900));
        let second = failures_since(&outage, start, Duration::from_secs(41));
        let third = async {
            tokio::time::sleep(Duration::from_secs(41)).await;
            let failures = failures_since(&outage, Instant::now(), Duration::ZERO);
            let mut reports = 0;
            let queued = |until: Instant| {
                reports += 1;
                assert!(until >= Instant::now(), "report {reports}");
            };
            outage.wait_for_turn(&failures, queued).await;
            reports
        };
        let first = outage.wait_for_turn(&first, |_| {});
        let second = outage.wait_for_turn(&second, |_| {});
        let ((), (), reports) = tokio::join!(first, second, third);
        assert!(reports > 1, "the third waits for the turn of the second");
    }

    #[tokio::test(start_paused = true)]
    async fn permission_of_a_dropped_wait_passes_to_the_next() {
        let outage = Arc::new(Outage::default());
        let failures = failures_since(&outage, Instant::now(), Duration::from_secs(60 * 60));
        let mut waits: Vec<_> = (0..3).map(|_| Box::pin(outage.wait_for_turn(&failures, |_| {}))).collect();
        for wait in &mut waits {
            assert!(futures::poll!(wait).is_pending(), "the backoff of an hour is not over");
        }
        let _recovery = outage.begin_recovery();
        for wait in &mut waits {
            assert!(futures::poll!(wait).is_pending(), "the first two pause before their requests");
        }
        let last = waits.pop().expect("three reflectors wait");
        drop(waits);
        let outcome = tokio::time::timeout(Duration::from_secs(1), last).await;
        assert!(outcome.is_ok(), "the first two have not used their permissions");
    }
}
