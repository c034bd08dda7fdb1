//! [`Shared`]: the locked state of a queue, and the parts that are used while it is not locked.
//!
//! An item is a key that a worker has taken. Until the item ends, no other worker gets the key.
//!
//! There is one lock, that of the state. The only foreign code that runs under this lock is `Eq`
//! and `Clone` of keys, and `Clone` of wakers. Keys are hashed before the lock is taken. Rate
//! limiters, metrics, wakers and destructors of keys run after the lock is released. But if `Eq`
//! panics, the keys that were passed are dropped under the lock.
//!
//! After a shutdown, methods that add keys no longer do so. Items can still be ended.

use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use smallvec::SmallVec;
use tokio::time::Instant;

use crate::slots::{Hashing, NewKey};
use crate::state::{Mode, State, When};
use crate::sync::{Clock, Mutex};
use crate::waiters::Ticket;
use crate::{Item, Metrics, Priority, RateLimiter, UnfinishedWork};

/// A function that returns the hash of a key's group, for example of its namespace. In a fair
/// queue, the groups take turns.
pub(crate) type Grouping<T> = Box<dyn Fn(&T) -> u64 + Send + Sync>;

/// The maximum delay of a key: thirty years. Longer delays are shortened, because they could
/// overflow the clock.
const MAX_DELAY: Duration = Duration::from_secs(30 * 365 * 86_400);

/// The wait before the retry of a key for which the rate limiter has panicked.
const DELAY_AFTER_PANIC: Duration = Duration::from_secs(1);

pub(crate) struct Shared<T> {
    pub(crate) name: String,
    state: Mutex<State<T>>,
    hashing: Hashing,
    grouping: Option<Grouping<T>>,
    pub(crate) limiter: Box<dyn RateLimiter<T>>,
    metrics: Option<Box<dyn Metrics>>,
    pub(crate) clock: Clock,
}

pub(crate) enum GetOutcome<T> {
    Item(Item<T>),
    Over,
    /// There is no item now. If a time is given, check again at this time.
    Nothing(Option<Instant>),
}

/// A guard that wakes workers for the queued keys if a key's `Eq` or `Clone` panics.
struct WakesOnPanic<'s, T>(&'s Mutex<State<T>>);

impl<T> Drop for WakesOnPanic<'_, T> {
    fn drop(&mut self) {
        let wakers = self.0.lock().choose_wakers();
        if let Some(wakers) = wakers {
            wakers.into_iter().for_each(Waker::wake);
        }
    }
}

/// A guard that ends an item if the rate limiter panics. The item is counted as abandoned, and its
/// key is added again after [`DELAY_AFTER_PANIC`].
struct EndsOnPanic<'s, T>(&'s Shared<T>, u32);

impl<T> Drop for EndsOnPanic<'_, T> {
    fn drop(&mut self) {
        self.0.end(self.1, Some(DELAY_AFTER_PANIC), true);
    }
}

impl<T> Shared<T> {
    pub(crate) fn new(
        name: String,
        grouping: Option<Grouping<T>>,
        limiter: Box<dyn RateLimiter<T>>,
        metrics: Option<Box<dyn Metrics>>,
    ) -> Self {
        let state = Mutex::new(State::new(grouping.is_some()));
        Self { name, state, hashing: Hashing::default(), grouping, limiter, metrics, clock: Clock::new() }
    }

    /// Calls `change` with the locked state, and then wakes waiters and reports metrics.
    #[inline]
    fn change<R>(&self, change: impl FnOnce(&mut State<T>) -> R) -> R {
        let wakes_on_panic = WakesOnPanic(&self.state);
        let mut state = self.state.lock();
        let result = change(&mut state);
        let wakers = state.choose_wakers();
        let added = state.take_added();
        drop(state);
        // No panic: the code below wakes the workers.
        std::mem::forget(wakes_on_panic);
        if let Some(wakers) = wakers {
            wakers.into_iter().for_each(Waker::wake);
        }
        if let Some(metrics) = &self.metrics {
            (0..added).for_each(|_| metrics.added(&self.name));
        }
        result
    }

    /// Adds the keys whose delay is over, and calls [`change`](Self::change). The closure receives
    /// the current time, or `None` if the queue has no metrics.
    fn change_now<R>(&self, change: impl FnOnce(&mut State<T>, Option<Instant>) -> R) -> R {
        let now = self.timed_now();
        self.change(|state| {
            let now = now.or_else(|| state.has_delays().then(|| self.clock.now()));
            if let Some(now) = now {
                state.promote(now, self.is_timed());
            }
            change(state, now.filter(|_| self.is_timed()))
        })
    }

    /// Returns whether times are recorded, for metrics. Without metrics, the clock is read only for
    /// delays, because reading it costs about as much as adding a key.
    fn is_timed(&self) -> bool {
        self.metrics.is_some()
    }

    fn timed_now(&self) -> Option<Instant> {
        self.is_timed().then(|| self.clock.now())
    }

    /// Returns when a key with a delay that begins now becomes pending. `now` is the current time;
    /// `None` if times are not recorded.
    fn after(&self, delay: Duration, now: Option<Instant>) -> When {
        if delay.is_zero() { When::Now(now) } else { When::At(self.clock.now() + delay.min(MAX_DELAY)) }
    }

    pub(crate) fn len(&self) -> usize {
        self.change_now(|state, _| state.len())
    }

    pub(crate) fn delayed(&self) -> usize {
        self.change_now(|state, _| state.delayed())
    }

    pub(crate) fn abandoned(&self) -> u64 {
        self.state.lock().abandoned()
    }

    pub(crate) fn is_open(&self) -> bool {
        self.state.lock().is_open()
    }

    pub(crate) fn unfinished(&self) -> Option<UnfinishedWork> {
        let now = self.timed_now()?;
        Some(self.state.lock().unfinished(now))
    }

    /// Ends an item whose key was processed, and resets the failures of the key. If `again` is
    /// given, adds the key again after this delay.
    pub(crate) fn done(&self, id: u32, key: &T, again: Option<Duration>) {
        self.ends_on_panic(id, || self.limiter.forget(key));
        self.end(id, again, false);
    }

    /// Counts a failure of a key. Returns the wait before the retry.
    pub(crate) fn count_failure(&self, key: &T) -> Duration {
        self.limiter.when(key).min(MAX_DELAY)
    }

    /// Ends a failed item, and adds its key again after the returned delay. `is_abandoned` is
    /// `true` if the worker dropped the item.
    pub(crate) fn retry(&self, id: u32, key: &T, is_abandoned: bool) -> Duration {
        let delay = self.ends_on_panic(id, || self.count_failure(key));
        self.end(id, Some(delay), is_abandoned);
        delay
    }

    /// Calls the rate limiter, `limit`. If it panics, ends the item and adds its key again.
    #[inline]
    fn ends_on_panic<R>(&self, id: u32, limit: impl FnOnce() -> R) -> R {
        let guard = EndsOnPanic(self, id);
        let result = limit();
        std::mem::forget(guard);
        result
    }

    /// Ends an item whose key the worker did not process. The number of failures of the key stays
    /// the same. Queues the key again only if the key was added while the worker had the item.
    pub(crate) fn release(&self, id: u32) {
        self.end(id, None, false);
    }

    fn end(&self, id: u32, again: Option<Duration>, is_abandoned: bool) {
        let now = self.timed_now();
        let again = again.map(|delay| self.after(delay, now));
        let ended = self.change(|state| {
            if is_abandoned {
                state.count_abandoned();
            }
            state.end(id, again, now)
        });
        drop(ended.key);
        if let Some(metrics) = &self.metrics {
            metrics.finished(&self.name, ended.worked.unwrap_or_default());
            if ended.is_added_again {
                metrics.retried(&self.name);
            }
        }
    }

    pub(crate) fn shut_down(&self, mode: Mode) {
        drop(self.change(|state| state.shut_down(mode)));
    }

    /// Returns the result of `shut_down_with_drain` once its wait has ended. Until then, stores the
    /// ticket of `waker` in `ticket`, and returns `None`.
    pub(crate) fn poll_drained(&self, ticket: &mut Option<Ticket>, waker: &Waker) -> Option<bool> {
        let (drained, _garbage) = self.change(|state| state.poll_drained(ticket, waker));
        drained
    }

    pub(crate) fn cancel_drainer(&self, ticket: Ticket) {
        drop(self.change(|state| state.unregister_drainer(ticket)));
    }

    pub(crate) fn cancel_getter(&self, ticket: Ticket) {
        drop(self.change(|state| state.unregister_getter(ticket)));
    }
}

impl<T: Hash + Eq> Shared<T> {
    fn new_key(&self, key: T) -> NewKey<T> {
        let hash = self.hashing.hash_one(&key);
        let group = self.grouping.as_ref().map_or(0, |grouping| grouping(&key));
        NewKey { key, hash, group }
    }

    pub(crate) fn add(&self, key: T, priority: Priority) {
        let new_key = self.new_key(key);
        let now = When::Now(self.timed_now());
        drop(self.change(|state| state.add(new_key, now, priority)));
    }

    /// Adds several keys, and takes the lock only once.
    pub(crate) fn add_all(&self, keys: impl Iterator<Item = T>, priority: Priority) {
        // The caller's iterator is user code, so it runs while the lock is not held.
        let new_keys: SmallVec<[NewKey<T>; 2]> = keys.map(|key| self.new_key(key)).collect();
        let now = When::Now(self.timed_now());
        let garbage: SmallVec<[T; 2]> = self.change(|state| {
            new_keys.into_iter().filter_map(|new_key| state.add(new_key, now, priority)).collect()
        });
        drop(garbage);
    }

    pub(crate) fn add_after(&self, key: T, delay: Duration, priority: Priority) {
        let new_key = self.new_key(key);
        let when = self.after(delay, self.timed_now());
        let (is_open, _garbage) = self.change(|state| (state.is_open(), state.add(new_key, when, priority)));
        if let Some(metrics) = self.metrics.as_ref().filter(|_| is_open) {
            metrics.retried(&self.name);
        }
    }
}

impl<T: Clone> Shared<T> {
    pub(crate) fn take_or_register(
        self: &Arc<Self>,
        ticket: &mut Option<Ticket>,
        waker: &Waker,
    ) -> GetOutcome<T> {
        let (mut waited, mut garbage) = (None, None);
        let found = self.change_now(|state, now| {
            garbage = ticket.take().and_then(|ticket| state.unregister_getter(ticket));
            if let Some(taken) = state.take_next(now) {
                waited = taken.waited;
                // From now on, dropping the item retries the key.
                return GetOutcome::Item(Item::new(Arc::clone(self), taken));
            }
            if state.is_over() {
                return GetOutcome::Over;
            }
            let (new, until) = state.wait(waker);
            *ticket = Some(new);
            GetOutcome::Nothing(until)
        });
        drop(garbage);
        if let (Some(waited), Some(metrics)) = (waited, &self.metrics) {
            metrics.taken(&self.name, waited);
        }
        found
    }
}

impl<T> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (len, delayed, is_open) = {
            let state = self.state.lock();
            (state.len(), state.delayed(), state.is_open())
        };
        f.debug_struct("Workqueue")
            .field("name", &self.name)
            .field("len", &len)
            .field("delayed", &delayed)
            .field("is_shutting_down", &!is_open)
            .finish_non_exhaustive()
    }
}
