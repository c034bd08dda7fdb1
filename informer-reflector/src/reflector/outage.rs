//! [`Outage`]: the reflectors that wait for an unavailable server, and the order of their requests.
//!
//! [`Queue`] has the rules, without clock and tasks. The waiters drive it: the first waiter that
//! wakes grants the next turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};

/// The minimum time between two turns,
const MIN_SPACING: Duration = Duration::from_millis(300);

/// and the maximum.
const MAX_SPACING: Duration = Duration::from_secs(5);

/// The number of waiters that one response releases.
const RELEASED_BY_ANSWER: usize = 2;

/// Released waiters send their requests at random times within this time.
const SPREAD: Duration = Duration::from_millis(100);

/// The reason for which a reflector waits.
#[derive(Debug, Clone)]
pub(super) struct Trouble {
    /// The resource and scope, and the error, for logs.
    pub(super) resource: Arc<str>,
    pub(super) error: String,
    /// The time of the first failure in a row.
    pub(super) since: Instant,
    /// The number of failures in a row.
    pub(super) failures: u32,
    /// Whether another reflector got a response between two of these failures: then the resource is
    /// unavailable, and not the server.
    pub(super) is_own: bool,
    /// The reflector's own backoff.
    pub(super) wait: Duration,
    /// The part of it that the server requested.
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
    /// Releases that are left, because waiters were still in a wait that the server requested.
    releases: usize,
    announced: Option<Announced>,
    recovering: Recovering,
}

/// An outage that has been logged.
struct Announced {
    since: Instant,
    /// The number of reflectors that waited at that time.
    waiting: usize,
}

/// The reflectors that got a response and whose list or watch has not succeeded yet.
#[derive(Default)]
struct Recovering {
    now: usize,
    resumed: usize,
    relisted: usize,
}

struct Waiter {
    id: u64,
    since: Instant,
    is_own: bool,
    /// The order of the waiters: the longer a reflector has been failing, the later.
    due: Instant,
    /// The end of the server's `Retry-After`.
    shielded_until: Instant,
    /// The time from which turns are granted.
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
    /// Returns the sort key of the waiter. If only its own resource is unavailable, it comes last.
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
    /// Adds a waiter whose request has failed. The failure stops releases.
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

    /// Removes a waiter. Unless it `went`, its unused permission passes to the next waiter.
    fn leave(&mut self, id: u64, went: bool) {
        let Some(position) = self.waiters.iter().position(|waiter| waiter.id == id) else { return };
        match self.waiters.remove(position).go {
            Some(Go::Turn) if !went => self.last_turn = None,
            Some(Go::Released) if !went => self.releases += 1,
            _ => {}
        }
        // Another waiter can be the first now.
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

    /// Uses the remaining releases.
    fn release(&mut self, now: Instant) {
        while self.releases > 0 {
            let Some(first) = self.first(|waiter| waiter.shielded_until <= now) else { return };
            first.permit(Go::Released);
            self.releases -= 1;
        }
    }

    /// Returns the time of the waiter's next check, and the expected time of its turn.
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
    /// expected time of the turn.
    ///
    /// # Cancel safety
    /// If the future is dropped, a granted turn goes to the next waiter.
    pub(super) async fn wait_for_turn(&self, trouble: &Trouble, mut queued: impl FnMut(Instant)) {
        let (id, wake) = self.queue.lock().join(trouble, Instant::now());
        let mut place = Place { outage: self, id, went: false };
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
        place.went = true;
        drop(place);
        if go == Go::Released {
            sleep(SPREAD.mul_f64(fastrand::f64())).await;
        }
    }

    /// Logs the outage once for all reflectors, and again when four times as many wait. A first
    /// failure is logged only if its backoff is long, so that a quick restart of the server is not
    /// logged.
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
        // Waiters within their `Retry-After` check again after it.
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

    /// Counts a reflector that has recovered or failed again. The last one logs the end of the
    /// outage.
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
            let away = announced.since.elapsed();
            tracing::info!(?away, resumed, relisted, waiting, "API server is back");
        }
    }
}

/// A place in the queue. Dropping it leaves the queue.
struct Place<'o> {
    outage: &'o Outage,
    id: u64,
    /// Whether the reflector uses its turn.
    went: bool,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.outage.queue.lock().leave(self.id, self.went);
    }
}

/// The first success of a reflector after an outage.
#[derive(Debug, Clone, Copy)]
pub(super) enum Outcome {
    Resumed,
    Relisted,
}

/// A reflector that got a response after an outage. Dropping it reports the outcome.
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
