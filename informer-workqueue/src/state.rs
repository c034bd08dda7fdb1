//! [`State`]: all that a queue knows, and the rules of it, without lock and clock.
//!
//! client-go: `Typed` of `util/workqueue/queue.go`, whose sets `dirty` and `processing` are the [`Place`] of a key here,
//! and `delayingType` of `delaying_queue.go`.
//!
//! A key can be in two places at once: queued or with a worker, and delayed as well. When the delay is over, that is an
//! add like any other. So a key that is to be looked at in an hour is, even if somebody looks at it before.

use std::task::Waker;
use std::time::Duration;

use smallvec::SmallVec;
use tokio::time::Instant;

use crate::delays::Delays;
use crate::lanes::Lanes;
use crate::slots::{Delay, Entrant, List, Place, Slots};
use crate::waiters::{Ticket, Waiters};
use crate::{Priority, UnfinishedWork};

/// Who is to be woken when the lock has been released: one, mostly.
pub(crate) type Wakers = SmallVec<[Waker; 1]>;

/// Whether the queue takes anything in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Open,
    /// Nothing comes in, and somebody waits for the rest to be processed.
    Draining,
    /// Nothing comes in, and nobody waits.
    Down,
}

/// Who wakes up when the earliest delay is over.
#[derive(Debug, Clone, Copy)]
struct Timekeeper {
    ticket: Ticket,
    /// When its timer ends.
    wakes_at: Instant,
}

#[derive(Debug)]
pub(crate) struct State<T> {
    slots: Slots<T>,
    lanes: Lanes,
    /// What workers have, in the order in which they took it.
    running: List,
    /// How many of these are to be queued again.
    returning: usize,
    delays: Delays,
    mode: Mode,
    getters: Waiters,
    timekeeper: Option<Timekeeper>,
    drainers: Waiters,
    /// How many keys have become pending since somebody asked.
    added: usize,
    /// How many items were dropped without a word.
    abandoned: u64,
}

/// An item for a worker.
pub(crate) struct Taken<T> {
    pub(crate) id: u32,
    pub(crate) key: T,
    pub(crate) priority: Priority,
    pub(crate) waited: Option<Duration>,
}

/// What comes of looking for an item.
pub(crate) enum Look<T> {
    Taken(Taken<T>),
    /// The queue is shut down, and nothing will come any more.
    Over,
    Nothing,
}

/// What becomes of a key whose item ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Next {
    Nothing,
    /// It is added at once.
    Now,
    /// It is added then.
    At(Instant),
}

/// An item has ended.
pub(crate) struct Ended<T> {
    /// The key, to be dropped outside the lock, if it was known only because of this item.
    pub(crate) key: Option<T>,
    pub(crate) worked: Option<Duration>,
    /// Whether the key is going to be added again.
    pub(crate) is_added: bool,
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

    /// Returns how many keys have become pending since the last time.
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

    /// Makes a key pending, unless it is.
    fn pend(&mut self, id: u32, priority: Priority, now: Option<Instant>) {
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

    /// Delays a key until then, or until it was to come already, if that is earlier.
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

    /// Makes pending what is due. With `is_timed`, it is pending since now.
    pub(crate) fn promote(&mut self, now: Instant, is_timed: bool) {
        while let Some(id) = self.delays.pop_due(now) {
            if let Some(delay) = self.slots.get_mut(id).delay.take() {
                self.pend(id, delay.priority, is_timed.then_some(now));
            }
        }
    }

    /// Ends an item; what becomes of its key is decided in the same step.
    pub(crate) fn end(&mut self, id: u32, next: Next, now: Option<Instant>) -> Ended<T> {
        self.running.remove(&mut self.slots, id);
        let slot = self.slots.get_mut(id);
        let since = slot.running_since.take();
        let worked = now.zip(since).map(|(now, since)| now.saturating_duration_since(since));
        let priority = slot.priority;
        let place = std::mem::replace(&mut slot.place, Place::Idle);
        if let Place::Running { again: Some(again) } = place {
            // It has been pending since it was added, and has been counted then.
            slot.place = Place::Queued;
            slot.priority = again;
            self.returning -= 1;
            self.lanes.push(&mut self.slots, id);
        }
        let is_added = self.is_open() && !matches!(next, Next::Nothing);
        match next {
            Next::Now if is_added => self.pend(id, priority, now),
            Next::At(at) if is_added => self.delay(id, at, priority),
            Next::Nothing | Next::Now | Next::At(_) => {}
        }
        Ended { key: self.slots.release(id), worked, is_added }
    }

    /// Counts an item that was dropped without a word.
    pub(crate) fn count_abandoned(&mut self) {
        self.abandoned += 1;
    }

    /// Takes nothing in any more. Returns the keys that were only delayed, to be dropped outside the lock.
    pub(crate) fn shut_down(&mut self, mode: Mode) -> Vec<T> {
        self.mode = mode;
        let mut keys = Vec::new();
        for id in self.delays.take_all() {
            self.slots.get_mut(id).delay = None;
            keys.extend(self.slots.release(id));
        }
        keys
    }

    /// Whether nothing will come out any more: what a worker has may still come back while the queue is drained.
    fn is_over(&self) -> bool {
        let may_come_back = self.mode == Mode::Draining && self.returning > 0;
        !self.is_open() && self.lanes.is_empty() && !may_come_back
    }

    /// Whether a drain is at its end; and whether that is because all has been processed.
    fn drained(&self) -> Option<bool> {
        let is_drained = self.lanes.is_empty() && self.running.is_empty();
        (is_drained || self.mode == Mode::Down).then_some(is_drained)
    }

    /// Someone who has waited for an item comes back, to look again or to give up.
    pub(crate) fn come_back(&mut self, ticket: Ticket) -> Option<Waker> {
        self.timekeeper = self.timekeeper.filter(|keeper| keeper.ticket != ticket);
        self.getters.come_back(ticket)
    }

    /// Registers someone who has found nothing. If it is the one to keep the time, also says until when.
    pub(crate) fn wait(&mut self, waker: &Waker) -> (Ticket, Option<Instant>) {
        let ticket = self.getters.register(waker);
        let due = self.unattended();
        if let Some(wakes_at) = due {
            self.timekeeper = Some(Timekeeper { ticket, wakes_at });
        }
        (ticket, due)
    }

    /// When the earliest delay is over, if nobody wakes up in time.
    fn unattended(&self) -> Option<Instant> {
        let earliest = self.delays.earliest()?;
        self.timekeeper.is_none_or(|keeper| earliest < keeper.wakes_at).then_some(earliest)
    }

    /// One who waits for the end of a drain looks whether that is reached, or waits.
    pub(crate) fn look_drained(&mut self, ticket: &mut Option<Ticket>, waker: &Waker) -> Option<bool> {
        let drained = self.drained();
        if drained.is_none() {
            *ticket = Some(self.drainers.register(waker));
        }
        drained
    }

    /// As [`come_back`](Self::come_back), of one who waits for the end of a drain.
    pub(crate) fn drainer_comes_back(&mut self, ticket: Ticket) -> Option<Waker> {
        self.drainers.come_back(ticket)
    }

    /// Chooses whom to wake, after any change:
    ///
    /// - as many getters as there are items, counting those that are awake already;
    /// - one to keep the time, if there are delays and nobody will wake up at the earliest. One that is awake already will
    ///   see to it, or take an item and go; then that is the next change;
    /// - everyone, when it is over.
    #[inline]
    pub(crate) fn choose_whom_to_wake(&mut self) -> Option<Wakers> {
        // While all workers are at work, and the queue is open, there is nothing to choose.
        let nobody_waits = self.is_open() && self.getters.nobody_waits();
        (!nobody_waits).then(|| self.choose_among_waiters())
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
        while self.getters.awake() < self.lanes.len() {
            let keeper = self.timekeeper.map(|keeper| keeper.ticket);
            let Some((ticket, waker)) = self.getters.choose_but(keeper) else { break };
            self.timekeeper = self.timekeeper.filter(|keeper| keeper.ticket != ticket);
            wakers.push(waker);
        }
        if self.getters.awake() == 0 && self.unattended().is_some() {
            wakers.extend(match self.timekeeper.take() {
                Some(keeper) => self.getters.choose(keeper.ticket),
                None => self.getters.choose_but(None).map(|(_, waker)| waker),
            });
        }
        wakers
    }
}

impl<T: Eq> State<T> {
    /// Adds a key. Returns what is to be dropped outside the lock.
    pub(crate) fn add(&mut self, entrant: Entrant<T>, priority: Priority, now: Option<Instant>) -> Option<T> {
        if !self.is_open() {
            return Some(entrant.key);
        }
        let (id, garbage) = self.slots.find_or_insert(entrant);
        self.pend(id, priority, now);
        garbage
    }

    /// Adds a key then. Returns what is to be dropped outside the lock.
    pub(crate) fn add_at(&mut self, entrant: Entrant<T>, priority: Priority, at: Instant) -> Option<T> {
        if !self.is_open() {
            return Some(entrant.key);
        }
        let (id, garbage) = self.slots.find_or_insert(entrant);
        self.delay(id, at, priority);
        garbage
    }
}

impl<T: Clone> State<T> {
    /// Takes the next item, if there is one.
    pub(crate) fn look(&mut self, now: Option<Instant>) -> Look<T> {
        // The key is copied before anything changes, since that is user code, and may panic.
        let key = self.lanes.next().and_then(|id| self.slots.key(id)).cloned();
        let Some((key, id)) = key.zip(self.lanes.pop(&mut self.slots)) else {
            return if self.is_over() { Look::Over } else { Look::Nothing };
        };
        self.running.push(&mut self.slots, id);
        let slot = self.slots.get_mut(id);
        slot.place = Place::Running { again: None };
        slot.running_since = now;
        let since = slot.pending_since.take();
        let waited = now.zip(since).map(|(now, since)| now.saturating_duration_since(since));
        Look::Taken(Taken { id, key, priority: slot.priority, waited })
    }
}
