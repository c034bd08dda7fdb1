//! [`State`]: the state of a queue and the rules of its changes, without a lock and a clock.
//!
//! client-go: `Typed` of `util/workqueue/queue.go`, and `delayingType` of `delaying_queue.go`. The
//! sets `dirty` and `processing` of client-go correspond to the [`Place`] of a key.
//!
//! A worker takes a key as an item, and processes the key until the item ends. A getter is a worker
//! that waits for an item. A drainer is a task that waits in `shut_down_with_drain`.
//!
//! A key can be delayed while it is queued or processed by a worker. When the delay is over, the
//! key is added, even if a worker has processed it during the delay. A key is pending if it is
//! queued, or if it was added while a worker processes it.

use std::task::Waker;
use std::time::Duration;

use smallvec::SmallVec;
use tokio::time::Instant;

use crate::delays::Delays;
use crate::lanes::Lanes;
use crate::slots::{Delay, List, NewKey, Place, Slots};
use crate::waiters::{Ticket, Waiters};
use crate::{Priority, UnfinishedWork};

/// Wakers, usually one, which must be called while the queue's lock is not held.
pub(crate) type Wakers = SmallVec<[Waker; 1]>;

/// Whether the queue is shut down, and by which method: `shut_down` or `shut_down_with_drain`. If
/// both were called, the mode is that of the later call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Open,
    /// `shut_down_with_drain` was called, and `shut_down` was not called afterwards.
    Draining,
    /// `shut_down` was called, and `shut_down_with_drain` was not called afterwards. No call of
    /// `shut_down_with_drain` waits in this mode.
    Down,
}

/// The getter that must wake itself with a timer when the earliest delay is over.
#[derive(Debug, Clone, Copy)]
struct Timekeeper {
    ticket: Ticket,
    wakes_at: Instant,
}

#[derive(Debug)]
pub(crate) struct State<T> {
    slots: Slots<T>,
    lanes: Lanes,
    /// The items that workers have, in the order in which they were taken.
    running: List,
    /// The number of running items whose keys were added while a worker had the item. Such a key is
    /// queued again when its item ends.
    returning: usize,
    delays: Delays,
    mode: Mode,
    getters: Waiters,
    timekeeper: Option<Timekeeper>,
    drainers: Waiters,
    /// The number of keys that became pending since the last call of `take_added`.
    added: usize,
    /// The number of items that workers dropped without ending them, and of items for which the
    /// rate limiter panicked when they were ended.
    abandoned: u64,
}

pub(crate) struct Taken<T> {
    pub(crate) id: u32,
    pub(crate) key: T,
    pub(crate) priority: Priority,
    pub(crate) waited: Option<Duration>,
}

/// When an added key becomes pending.
#[derive(Debug, Clone, Copy)]
pub(crate) enum When {
    /// Now. Contains the current time; `None` if times are not recorded.
    Now(Option<Instant>),
    /// At this time. Until then, the key is delayed.
    At(Instant),
}

/// The key of an ended item if the queue no longer has the key, and data for the metrics.
pub(crate) struct Ended<T> {
    /// The key of the ended item, to be dropped while the lock is not held. `None` if the key is
    /// still queued or delayed.
    pub(crate) key: Option<T>,
    /// How long the worker had the item. `None` if the queue has no metrics.
    pub(crate) worked: Option<Duration>,
    /// Whether `end` added the key again: its argument `again` was given, and the queue is open.
    pub(crate) is_added_again: bool,
}

impl<T> State<T> {
    pub(crate) fn new(is_fair: bool) -> Self {
        Self {
            slots: Slots::new(),
            lanes: Lanes::new(is_fair),
            running: List::new(),
            returning: 0,
            delays: Delays::default(),
            mode: Mode::Open,
            getters: Waiters::default(),
            timekeeper: None,
            drainers: Waiters::default(),
            added: 0,
            abandoned: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.lanes.len()
    }

    pub(crate) fn delayed(&self) -> usize {
        self.delays.len()
    }

    pub(crate) fn has_delays(&self) -> bool {
        !self.delays.is_empty()
    }

    pub(crate) fn abandoned(&self) -> u64 {
        self.abandoned
    }

    pub(crate) fn is_open(&self) -> bool {
        self.mode == Mode::Open
    }

    /// Returns the number of keys that became pending since the last call.
    pub(crate) fn take_added(&mut self) -> usize {
        std::mem::take(&mut self.added)
    }

    pub(crate) fn unfinished(&self, now: Instant) -> UnfinishedWork {
        let mut work = UnfinishedWork::default();
        for since in self.running.iter(&self.slots).filter_map(|slot| slot.running_since) {
            let so_far = now.saturating_duration_since(since);
            work.items += 1;
            work.total += so_far;
            work.longest = work.longest.max(so_far);
        }
        work
    }

    /// Makes a key pending. If the key was pending before, keeps the higher of the old and new
    /// priority.
    fn make_pending(&mut self, id: u32, priority: Priority, now: Option<Instant>) {
        let slot = self.slots.get_mut(id);
        match slot.place {
            Place::Idle => {
                slot.place = Place::Queued;
                slot.priority = priority;
                slot.pending_since = now;
                self.added += 1;
                self.lanes.push(&mut self.slots, id);
            }
            Place::Queued if priority > slot.priority => {
                self.lanes.remove(&mut self.slots, id);
                self.slots.get_mut(id).priority = priority;
                self.lanes.push(&mut self.slots, id);
            }
            Place::Queued => {}
            Place::Running { again: Some(before) } => {
                slot.place = Place::Running { again: Some(before.max(priority)) };
            }
            Place::Running { again: None } => {
                slot.place = Place::Running { again: Some(priority) };
                slot.pending_since = now;
                self.added += 1;
                self.returning += 1;
            }
        }
    }

    /// Delays a key until `at`. If the key was delayed before, keeps the earlier time and the
    /// higher priority.
    fn delay(&mut self, id: u32, at: Instant, priority: Priority) {
        let slot = self.slots.get_mut(id);
        match &mut slot.delay {
            Some(delay) if delay.at <= at => delay.priority = delay.priority.max(priority),
            Some(delay) => {
                self.delays.remove(delay.at, delay.number);
                let priority = delay.priority.max(priority);
                *delay = Delay { at, number: self.delays.insert(at, id), priority };
            }
            None => slot.delay = Some(Delay { at, number: self.delays.insert(at, id), priority }),
        }
    }

    /// Makes a key pending, now or when its delay is over.
    fn schedule(&mut self, id: u32, when: When, priority: Priority) {
        match when {
            When::Now(now) => self.make_pending(id, priority, now),
            When::At(at) => self.delay(id, at, priority),
        }
    }

    /// Makes each key pending whose delay is over. Records `now` as the start of a key's wait only
    /// if `is_timed` is `true`.
    pub(crate) fn promote(&mut self, now: Instant, is_timed: bool) {
        while let Some(id) = self.delays.pop_due(now) {
            if let Some(delay) = self.slots.get_mut(id).delay.take() {
                self.make_pending(id, delay.priority, is_timed.then_some(now));
            }
        }
    }

    /// Ends an item. If its key was added while a worker had the item, queues the key. If `again`
    /// is given, also adds the key again, unless the queue is shut down.
    pub(crate) fn end(&mut self, id: u32, again: Option<When>, now: Option<Instant>) -> Ended<T> {
        self.running.remove(&mut self.slots, id);
        let slot = self.slots.get_mut(id);
        let since = slot.running_since.take();
        let worked = now.zip(since).map(|(now, since)| now.saturating_duration_since(since));
        let priority = slot.priority;
        let place = std::mem::replace(&mut slot.place, Place::Idle);
        if let Place::Running { again: Some(added_with) } = place {
            // The key was counted as pending when it was added.
            slot.place = Place::Queued;
            slot.priority = added_with;
            self.returning -= 1;
            self.lanes.push(&mut self.slots, id);
        }
        let again = again.filter(|_| self.is_open());
        if let Some(when) = again {
            self.schedule(id, when, priority);
        }
        Ended { key: self.slots.release(id), worked, is_added_again: again.is_some() }
    }

    pub(crate) fn count_abandoned(&mut self) {
        self.abandoned += 1;
    }

    /// Stops accepting keys, and cancels all delays. Returns the keys that were only delayed. They
    /// must be dropped while the lock is not held.
    pub(crate) fn shut_down(&mut self, mode: Mode) -> Vec<T> {
        self.mode = mode;
        let mut keys = Vec::new();
        for id in self.delays.take_all() {
            self.slots.get_mut(id).delay = None;
            keys.extend(self.slots.release(id));
        }
        keys
    }

    /// Returns whether `get` returns `None`: the queue is shut down, no key is queued, and, in a
    /// drain, no key will be queued again.
    pub(crate) fn is_over(&self) -> bool {
        // The keys that `returning` counts will be queued again, and a drain processes them, too.
        let may_come_back = self.mode == Mode::Draining && self.returning > 0;
        !self.is_open() && self.lanes.is_empty() && !may_come_back
    }

    /// Returns the result of `shut_down_with_drain`, or `None` if the wait must continue. The
    /// result is `true` after a complete drain.
    fn drained(&self) -> Option<bool> {
        let is_drained = self.lanes.is_empty() && self.running.is_empty();
        (is_drained || self.mode == Mode::Down).then_some(is_drained)
    }

    /// Unregisters a getter. Returns its waker; `None` if the queue has woken the getter.
    pub(crate) fn unregister_getter(&mut self, ticket: Ticket) -> Option<Waker> {
        self.timekeeper = self.timekeeper.filter(|keeper| keeper.ticket != ticket);
        self.getters.unregister(ticket)
    }

    /// Registers a worker as a getter. Returns its ticket for
    /// [`unregister_getter`](Self::unregister_getter). If a time is also returned, the worker must
    /// set a timer for this time.
    pub(crate) fn wait(&mut self, waker: &Waker) -> (Ticket, Option<Instant>) {
        let ticket = self.getters.register(waker);
        let due = self.needed_timer();
        if let Some(wakes_at) = due {
            self.timekeeper = Some(Timekeeper { ticket, wakes_at });
        }
        (ticket, due)
    }

    /// Returns the end of the earliest delay, if a getter must set a timer for this time.
    fn needed_timer(&self) -> Option<Instant> {
        let earliest = self.delays.earliest()?;
        self.timekeeper.is_none_or(|keeper| earliest < keeper.wakes_at).then_some(earliest)
    }

    /// Returns the result of `shut_down_with_drain`, or `None` if its wait continues. For `None`,
    /// registers `waker`, and stores its ticket in `ticket`. Also returns the waker of the previous
    /// poll if the queue has not used it. This waker must be dropped while the lock is not held.
    pub(crate) fn poll_drained(
        &mut self,
        ticket: &mut Option<Ticket>,
        waker: &Waker,
    ) -> (Option<bool>, Option<Waker>) {
        let was_waiting = ticket.is_some();
        let garbage = ticket.take().and_then(|ticket| self.drainers.unregister(ticket));
        // If the queue is not drained, a shutdown without a drain has woken this drainer and ended
        // its wait, even if another drain has begun since.
        let was_woken = was_waiting && garbage.is_none();
        let drained = self.drained().or(was_woken.then_some(false));
        if drained.is_none() {
            *ticket = Some(self.drainers.register(waker));
        }
        (drained, garbage)
    }

    /// Unregisters a drainer. Returns its waker; `None` if the queue has woken the drainer.
    pub(crate) fn unregister_drainer(&mut self, ticket: Ticket) -> Option<Waker> {
        self.drainers.unregister(ticket)
    }

    /// Selects the tasks to wake after a change, and returns their wakers.
    #[inline]
    pub(crate) fn choose_wakers(&mut self) -> Option<Wakers> {
        // If the queue is open and no worker waits, there is nothing to select.
        let is_idle = self.is_open() && self.getters.is_empty();
        (!is_idle).then(|| self.choose_among_waiters())
    }

    fn choose_among_waiters(&mut self) -> Wakers {
        let mut wakers = Wakers::new();
        if !self.is_open() {
            if self.is_over() {
                self.timekeeper = None;
                wakers.extend(self.getters.choose_all());
            }
            if self.drained().is_some() {
                wakers.extend(self.drainers.choose_all());
            }
        }
        // A selected getter counts as awake until it unregisters: when it checks for a key, or is
        // dropped.
        while self.getters.awake() < self.lanes.len() {
            let keeper = self.timekeeper.map(|keeper| keeper.ticket);
            let Some((ticket, waker)) = self.getters.choose_except(keeper) else { break };
            self.timekeeper = self.timekeeper.filter(|keeper| keeper.ticket != ticket);
            wakers.push(waker);
        }
        // If the woken getter waits again, it sets the timer, unless another getter has set it.
        if self.getters.awake() == 0 && self.needed_timer().is_some() {
            wakers.extend(match self.timekeeper.take() {
                Some(keeper) => self.getters.choose(keeper.ticket),
                None => self.getters.choose_except(None).map(|(_, waker)| waker),
            });
        }
        wakers
    }
}

impl<T: Eq> State<T> {
    /// Adds a key, unless the queue is shut down. Returns the passed key if the queue does not store
    /// it. The caller must drop it while the lock is not held.
    pub(crate) fn add(&mut self, new_key: NewKey<T>, when: When, priority: Priority) -> Option<T> {
        if !self.is_open() {
            return Some(new_key.key);
        }
        let (id, garbage) = self.slots.find_or_insert(new_key);
        self.schedule(id, when, priority);
        garbage
    }
}

impl<T: Clone> State<T> {
    pub(crate) fn take_next(&mut self, now: Option<Instant>) -> Option<Taken<T>> {
        // The key is cloned before any change, because `Clone` is user code and can panic.
        let key = self.slots.get(self.lanes.next()?).key.clone()?;
        let id = self.lanes.pop(&mut self.slots)?;
        self.running.push(&mut self.slots, id);
        let slot = self.slots.get_mut(id);
        slot.place = Place::Running { again: None };
        slot.running_since = now;
        let since = slot.pending_since.take();
        let waited = now.zip(since).map(|(now, since)| now.saturating_duration_since(since));
        Some(Taken { id, key, priority: slot.priority, waited })
    }
}
