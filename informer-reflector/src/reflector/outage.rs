//! [`Outage`]: the reflectors that wait because their server is unavailable, and which of them asks next.
//!
//! [`Queue`] has the rules, without clock and tasks. The waiters drive it: the first one that wakes grants the turn to the
//! waiter whose turn it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};

/// Turns are granted at least this far apart,
const MIN_SPACING: Duration = Duration::from_millis(300);

/// and at most this far.
const MAX_SPACING: Duration = Duration::from_secs(5);

/// How many waiters one answer releases.
const RELEASED_BY_ANSWER: usize = 2;

/// Released waiters go on within this time, not all at the same moment.
const SPREAD: Duration = Duration::from_millis(100);

/// Why a reflector waits.
#[derive(Debug, Clone)]
pub(super) struct Trouble {
    /// What is listed and watched, and what went wrong, for logs.
    pub(super) resource: Arc<str>,
    pub(super) error: String,
    /// When the first of its failures in a row was.
    pub(super) since: Instant,
    /// How many failures in a row there were.
    pub(super) failures: u32,
    /// Another reflector got an answer between two of these failures: the resource is unavailable, not the server.
    pub(super) is_own: bool,
    /// How long its own backoff is.
    pub(super) wait: Duration,
    /// How much of that the server asked for.
    pub(super) asked_for: Duration,
}

/// The reflectors of one client that wait because their server is unavailable.
#[derive(Default)]
pub(super) struct Outage {
    /// Requests that were answered, so that those that fail can tell whether the server is there for others.
    answers: AtomicU64,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    waiters: Vec<Waiter>,
    next_id: u64,
    last_turn: Option<Instant>,
    /// Waiters to release that were still in a wait that the server asked for.
    releases: usize,
    announced: Option<Announced>,
    recovering: Recovering,
}

/// An outage that has been logged.
struct Announced {
    since: Instant,
    /// How many reflectors waited at that time.
    waiting: usize,
}

/// The reflectors that got an answer and have not shown yet that they go on.
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
    /// Waiters go in this order: the longer one has been failing, the later.
    due: Instant,
    /// Until then, only the server's `Retry-After` counts.
    shielded_until: Instant,
    /// From then on it is granted turns.
    ready_at: Instant,
    go: Option<Go>,
    wake: Arc<Notify>,
}

/// Why a waiter may send its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Go {
    Turn,
    Released,
}

impl Waiter {
    /// The place in the order. Resources that are unavailable by themselves come last.
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
    /// Adds a waiter whose request has just failed. That failure stops releases.
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

    /// Removes a waiter. If it `went` without its permission being used, the next one gets it.
    fn leave(&mut self, id: u64, went: bool) {
        let Some(position) = self.waiters.iter().position(|waiter| waiter.id == id) else { return };
        match self.waiters.remove(position).go {
            Some(Go::Turn) if !went => self.last_turn = None,
            Some(Go::Released) if !went => self.releases += 1,
            _ => {}
        }
        // Another one may be next now.
        if let Some(first) = self.first(|_| true) {
            first.wake.notify_one();
        }
    }

    /// The waiter that goes next, of those for which this holds.
    fn first(&mut self, may_go: impl Fn(&Waiter) -> bool) -> Option<&mut Waiter> {
        let waiting = self.waiters.iter_mut().filter(|waiter| waiter.go.is_none() && may_go(waiter));
        waiting.min_by_key(|waiter| waiter.rank())
    }

    /// When the next turn can be granted to this waiter.
    fn turn_of(&self, waiter: &Waiter, now: Instant) -> Instant {
        let spaced = self.last_turn.map_or(now, |last| last + waiter.spacing(now));
        waiter.ready_at.max(spaced)
    }

    /// Grants a turn, if it is time for one.
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

    /// Releases as many waiters as there are releases left.
    fn release(&mut self, now: Instant) {
        while self.releases > 0 {
            let Some(first) = self.first(|waiter| waiter.shielded_until <= now) else { return };
            first.permit(Go::Released);
            self.releases -= 1;
        }
    }

    /// When the waiter should look again, and when it expects its turn.
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
    /// Waits until the reflector may send its next request. Calls `queued` with the expected time of its turn once its own
    /// backoff is over.
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
            // A turn that another waiter took at this moment leads here again later.
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

    /// Logs that the server is unavailable, once for all reflectors, and again only when four times as many wait. A first
    /// failure is not logged, unless its backoff is long: a server that restarts quickly is of no interest.
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

    /// Notes an answer after a failure, and releases two waiters.
    pub(super) fn answered(this: &Arc<Self>) -> Recovery {
        let mut queue = this.queue.lock();
        queue.recovering.now += 1;
        queue.last_turn = None;
        queue.releases = (queue.releases + RELEASED_BY_ANSWER).min(queue.waiters.len());
        queue.release(Instant::now());
        // Those that are still shielded look again when they no longer are.
        queue.waiters.iter().for_each(|waiter| waiter.wake.notify_one());
        drop(queue);
        Recovery { outage: Arc::clone(this), outcome: None }
    }

    /// Counts an answer to any reflector.
    pub(super) fn count_answer(&self) {
        self.answers.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many requests have been answered so far.
    pub(super) fn answers(&self) -> u64 {
        self.answers.load(Ordering::Relaxed)
    }

    /// Counts a reflector that goes on, or has failed again; the last one logs that the outage is over.
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

/// A place in the queue, left when this is dropped.
struct Place<'o> {
    outage: &'o Outage,
    id: u64,
    /// Whether the reflector goes on to its request.
    went: bool,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.outage.queue.lock().leave(self.id, self.went);
    }
}

/// How a reflector went on after an outage.
#[derive(Debug, Clone, Copy)]
pub(super) enum Outcome {
    Resumed,
    Relisted,
}

/// A reflector that got an answer after an outage. Dropping it says how that went on.
pub(super) struct Recovery {
    outage: Arc<Outage>,
    /// `None`: it has failed again, or was stopped.
    outcome: Option<Outcome>,
}

impl Recovery {
    pub(super) fn went_on(mut self, outcome: Outcome) {
        self.outcome = Some(outcome);
    }
}

impl Drop for Recovery {
    fn drop(&mut self) {
        self.outage.recovered(self.outcome);
    }
}
