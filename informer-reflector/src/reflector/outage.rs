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

/// The minimum time between two turns.
const MIN_SPACING: Duration = Duration::from_millis(300);

/// The maximum time between two turns.
const MAX_SPACING: Duration = Duration::from_secs(5);

/// The number of waiting reflectors that one response releases: they can send a request without a turn.
const RELEASED_BY_ANSWER: usize = 2;

/// The maximum pause of a released reflector before its request. Each pause is random, so that the
/// requests do not arrive all at once.
const SPREAD: Duration = Duration::from_millis(100);

/// The failures of an unavailable server, as one waiting reflector has counted them.
#[derive(Debug, Clone)]
pub(super) struct Trouble {
    /// The resource and scope, for logs.
    pub(super) resource: Arc<str>,
    /// The last error, for logs.
    pub(super) error: String,
    /// The time of the first failure since the last response.
    pub(super) since: Instant,
    /// The number of failures since the last response.
    pub(super) failures: u32,
    /// Whether another reflector got a response between two failures of this reflector. If so, only
    /// the resource of this reflector is unavailable, and not the server.
    pub(super) is_own: bool,
    /// The reflector's own backoff.
    pub(super) wait: Duration,
    /// The wait that the server requested (`Retry-After`); zero if it requested none.
    pub(super) asked_for: Duration,
}

/// The reflectors of one client that wait because their server is unavailable.
#[derive(Default)]
pub(super) struct Outage {
    /// The number of responses to all reflectors, which shows a failing reflector whether the
    /// server is available to others.
    answers: AtomicU64,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    waiters: Vec<Waiter>,
    next_id: u64,
    last_turn: Option<Instant>,
    /// The number of releases that no waiter could use yet, because all waiters still wait for the
    /// end of their `Retry-After`.
    releases: usize,
    announced: Option<Announced>,
    recovering: Recovering,
}

/// An outage that has been logged.
struct Announced {
    since: Instant,
    /// The number of reflectors that waited when the outage was logged.
    waiting: usize,
}

/// The numbers of reflectors that got a response after the outage.
#[derive(Default)]
struct Recovering {
    /// The reflectors whose list or watch has not succeeded yet.
    now: usize,
    /// The reflectors that have resumed their watch.
    resumed: usize,
    /// The reflectors that have completed a list.
    relisted: usize,
}

struct Waiter {
    id: u64,
    since: Instant,
    is_own: bool,
    /// The sort key for the order of the waiters: the longer a reflector has been failing, the
    /// later its turn.
    due: Instant,
    /// The end of the server's `Retry-After`, before which the waiter is not released.
    shielded_until: Instant,
    /// The end of the backoff, before which the waiter gets no turn.
    ready_at: Instant,
    go: Option<Go>,
    wake: Arc<Notify>,
}

/// The permission of a waiter to send its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Go {
    Turn,
    Released,
}

impl Waiter {
    /// Returns the sort key of the waiter. Waiters come last if only their own resource is
    /// unavailable, and not the server.
    fn rank(&self) -> (bool, Instant, u64) {
        (self.is_own, self.due, self.id)
    }

    fn spacing(&self, now: Instant) -> Duration {
        (now.saturating_duration_since(self.since) / 5).clamp(MIN_SPACING, MAX_SPACING)
    }

    fn permit(&mut self, go: Go) {
        self.go = Some(go);
        self.wake.notify_one();
    }
}

impl Queue {
    /// Adds a waiter whose request has failed. Unused releases are cancelled, because the server is
    /// still unavailable.
    fn join(&mut self, trouble: &Trouble, now: Instant) -> (u64, Arc<Notify>) {
        self.releases = 0;
        let id = self.next_id;
        self.next_id += 1;
        let wake = Arc::new(Notify::new());
        self.waiters.push(Waiter {
            id,
            since: trouble.since,
            is_own: trouble.is_own,
            due: now + now.saturating_duration_since(trouble.since),
            shielded_until: now + trouble.asked_for,
            ready_at: now + trouble.wait.max(trouble.asked_for),
            go: None,
            wake: Arc::clone(&wake),
        });
        (id, wake)
    }

    /// Removes a waiter. If the waiter has not used its permission, the next waiter gets it.
    fn leave(&mut self, id: u64, has_used_permission: bool) {
        let Some(position) = self.waiters.iter().position(|waiter| waiter.id == id) else { return };
        match self.waiters.remove(position).go {
            Some(Go::Turn) if !has_used_permission => self.last_turn = None,
            Some(Go::Released) if !has_used_permission => self.releases += 1,
            _ => {}
        }
        // The removed waiter was possibly the first one. The waiter that is the first now must wake
        // to grant turns.
        if let Some(first) = self.first(|_| true) {
            first.wake.notify_one();
        }
    }

    /// Returns the first waiter that satisfies the condition.
    fn first(&mut self, may_go: impl Fn(&Waiter) -> bool) -> Option<&mut Waiter> {
        let waiting = self.waiters.iter_mut().filter(|waiter| waiter.go.is_none() && may_go(waiter));
        waiting.min_by_key(|waiter| waiter.rank())
    }

    /// Returns the earliest time of this waiter's turn.
    fn turn_of(&self, waiter: &Waiter, now: Instant) -> Instant {
        let spaced = self.last_turn.map_or(now, |last| last + waiter.spacing(now));
        waiter.ready_at.max(spaced)
    }

    /// Grants a turn if one is due.
    fn grant(&mut self, now: Instant) {
        let last_turn = self.last_turn;
        let first = self.first(|waiter| waiter.ready_at <= now);
        if let Some(first) = first
            && last_turn.is_none_or(|last| last + first.spacing(now) <= now)
        {
            first.permit(Go::Turn);
            self.last_turn = Some(now);
        }
    }

    /// Releases waiters until no release is left, or no waiter can use one.
    fn release(&mut self, now: Instant) {
        while self.releases > 0 {
            let Some(first) = self.first(|waiter| waiter.shielded_until <= now) else { return };
            first.permit(Go::Released);
            self.releases -= 1;
        }
    }

    /// Returns the time at which the waiter must wake to grant turns, and the expected time of its
    /// own turn.
    fn next_look(&self, id: u64, now: Instant) -> (Instant, Instant) {
        let Some(own) = self.waiters.iter().find(|waiter| waiter.id == id) else { return (now, now) };
        let before = self.waiters.iter().filter(|waiter| {
            waiter.go.is_none() && waiter.ready_at <= own.ready_at.max(now) && waiter.rank() < own.rank()
        });
        let before = u32::try_from(before.count()).unwrap_or(u32::MAX);
        let turn = self.turn_of(own, now);
        let expected = turn + own.spacing(now).saturating_mul(before);
        let look = if self.releases > 0 && own.shielded_until > now { own.shielded_until } else { turn };
        (look.max(now), expected)
    }
}

impl Outage {
    /// Waits for the reflector's turn. After the reflector's own backoff, calls `queued` with the
    /// expected time of the turn, and again whenever that time changes.
    ///
    /// # Cancel safety
    /// If the future is dropped, a granted turn goes to the next waiter.
    pub(super) async fn wait_for_turn(&self, trouble: &Trouble, mut queued: impl FnMut(Instant)) {
        let (id, wake) = self.queue.lock().join(trouble, Instant::now());
        let mut place = Place { outage: self, id, has_used_permission: false };
        self.announce(trouble);
        let mut announced_at = None;
        let go = loop {
            let now = Instant::now();
            let (go, look, expected, ready_at) = {
                let mut queue = self.queue.lock();
                queue.release(now);
                queue.grant(now);
                let own = queue.waiters.iter().find(|waiter| waiter.id == id);
                let (go, ready_at) = own.map_or((None, now), |own| (own.go, own.ready_at));
                let (look, expected) = queue.next_look(id, now);
                (go, look, expected, ready_at)
            };
            if let Some(go) = go {
                break go;
            }
            if ready_at <= now && announced_at != Some(expected) {
                announced_at = Some(expected);
                queued(expected);
            }
            // If another waiter took the turn at this moment, check again later.
            let look = if look <= now { now + MIN_SPACING } else { look };
            tokio::select! {
                biased;
                () = wake.notified() => {}
                () = sleep_until(look) => {}
            }
        };
        place.has_used_permission = true;
        drop(place);
        if go == Go::Released {
            sleep(SPREAD.mul_f64(fastrand::f64())).await;
        }
    }

    /// Logs the outage once for all reflectors, and again when four times as many reflectors wait.
    /// A first failure is logged only if its backoff is long, so that a quick restart of the server
    /// is not logged.
    fn announce(&self, trouble: &Trouble) {
        if trouble.is_own || (trouble.failures < 2 && trouble.wait < MAX_SPACING) {
            return;
        }
        let waiting = {
            let mut queue = self.queue.lock();
            let waiting = queue.waiters.iter().filter(|waiter| !waiter.is_own).count();
            if queue.announced.as_ref().is_some_and(|announced| waiting < 4 * announced.waiting) {
                return;
            }
            queue.announced = Some(Announced { since: trouble.since, waiting });
            waiting
        };
        let Trouble { resource, error, .. } = trouble;
        tracing::warn!(waiting, %resource, %error, "API server unavailable; informers wait and retry in turns");
    }

    /// Records a response after a failure, and releases two waiters.
    pub(super) fn answered(this: &Arc<Self>) -> Recovery {
        let mut queue = this.queue.lock();
        queue.recovering.now += 1;
        queue.last_turn = None;
        queue.releases = (queue.releases + RELEASED_BY_ANSWER).min(queue.waiters.len());
        queue.release(Instant::now());
        // All waiters wake and check for a release. A waiter whose `Retry-After` is not over checks
        // again when it is over.
        queue.waiters.iter().for_each(|waiter| waiter.wake.notify_one());
        drop(queue);
        Recovery { outage: Arc::clone(this), outcome: None }
    }

    /// Counts a response to any reflector.
    pub(super) fn count_answer(&self) {
        self.answers.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of responses so far.
    pub(super) fn answers(&self) -> u64 {
        self.answers.load(Ordering::Relaxed)
    }

    /// Counts a reflector that has recovered or failed again. After the last of these reflectors,
    /// logs the end of the outage.
    fn recovered(&self, outcome: Option<Outcome>) {
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
            queue.announced.take().map(|announced| (announced, counted, queue.waiters.len()))
        };
        if let Some((announced, Recovering { resumed, relisted, .. }, waiting)) = over {
            let outage = announced.since.elapsed();
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
    /// `None`: the reflector failed again, or was stopped.
    outcome: Option<Outcome>,
}

impl Recovery {
    pub(super) fn finish_recovery(mut self, outcome: Outcome) {
        self.outcome = Some(outcome);
    }
}

impl Drop for Recovery {
    fn drop(&mut self) {
        self.outage.recovered(self.outcome);
    }
}
