//! [`SharedBacklog`]: the batches that slow handlers have not received, coalesced once for all of
//! these handlers.
//!
//! Consecutive batches form a period; a new period begins where the backlog of a handler begins. A
//! handler merges the periods of its backlog in its own task. Publishing only appends the batch, so
//! its cost does not depend on the number of slow handlers. Later, when the publisher has released
//! the store's locks, it coalesces the batch. If the task of a handler holds the lock `periods` at
//! that moment, this task coalesces the batch, and the publisher does not wait.
//!
//! Lock order: `Mailbox::pending`, `periods`, `Mailbox::state`, `staged`. Objects are dropped while
//! none of these locks is held.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::coalesce::{Coalesced, Merge, Released};
use super::inbox::{Garbage, SharedBatch};
use crate::sync::Mutex;
use crate::{Event, ObjectKey};

#[cfg(test)]
mod tests;

/// The sequence number of a batch in a shared backlog.
pub(super) type Sequence = u64;

/// Two shared backlogs: one for handlers that need old objects, and one for the other handlers.
pub(super) struct Backlogs<K> {
    keeping_old: Arc<SharedBacklog<K>>,
    dropping_old: Arc<SharedBacklog<K>>,
}

/// The batches and coalesced events of all slow handlers that have the same effective value of
/// [`coalesce_drops_old`](crate::HandlerOptions::coalesce_drops_old).
pub(super) struct SharedBacklog<K> {
    staged: Mutex<Staged<K>>,
    periods: Mutex<Periods<K>>,
    keeps_old: bool,
}

struct Staged<K> {
    /// The sequence number of the batch that is being published, or of the next batch if none is
    /// being published.
    next: Sequence,
    /// Whether the batch with the number `next` has been added to `batches`.
    has_next: bool,
    /// The batches that have not been coalesced yet.
    batches: VecDeque<(Sequence, SharedBatch<K>)>,
    /// For each batch, the number of handlers whose backlog begins with it.
    readers: BTreeMap<Sequence, usize>,
    /// The number of slow handlers, including those that have taken their whole backlog and are
    /// still processing it.
    handlers_behind: usize,
    /// The keys of releases that were waiting in the inboxes of slow handlers when these handlers
    /// fell behind. They are later moved to `Periods::released`.
    released: Vec<ObjectKey>,
}

struct Periods<K> {
    periods: Vec<Arc<Period<K>>>,
    released: Released,
}

/// The coalesced events of consecutive batches. The backlog of a handler can begin with the first
/// of these batches, but not with a later one.
pub(super) struct Period<K> {
    start: Sequence,
    pub(super) coalesced: Coalesced<K>,
    /// The number of events that were merged into other events.
    pub(super) merged: u64,
}

impl<K> Staged<K> {
    /// Returns whether a [`Period`] must begin with the batch `start`, because the backlog of a
    /// handler begins there, or can still begin there.
    fn is_boundary(&self, start: Sequence) -> bool {
        // The backlog of further handlers can begin with the batch that is being published.
        start >= self.next || self.readers.contains_key(&start)
    }

    /// Returns the sequence number of the first batch that any handler needs or can still need.
    fn first_needed(&self) -> Sequence {
        self.readers.first_key_value().map_or(self.next, |(first, _)| self.next.min(*first))
    }

    fn stage(&mut self, batch: &SharedBatch<K>) -> Sequence {
        if !std::mem::replace(&mut self.has_next, true) {
            self.batches.push_back((self.next, Arc::clone(batch)));
        }
        self.next
    }

    fn leave(&mut self, from: Sequence) {
        if let Some(readers) = self.readers.get_mut(&from) {
            *readers -= 1;
            if *readers == 0 {
                self.readers.remove(&from);
            }
        }
    }
}

impl<K> Backlogs<K> {
    pub(super) fn new() -> Self {
        Self {
            keeping_old: Arc::new(SharedBacklog::new(true)),
            dropping_old: Arc::new(SharedBacklog::new(false)),
        }
    }

    pub(super) fn of(&self, keeps_old: bool) -> &Arc<SharedBacklog<K>> {
        if keeps_old { &self.keeping_old } else { &self.dropping_old }
    }

    pub(super) fn finish(&self) {
        self.keeping_old.finish();
        self.dropping_old.finish();
    }

    pub(super) fn settle(&self, garbage: &mut Garbage<K>) {
        self.keeping_old.settle(garbage);
        self.dropping_old.settle(garbage);
    }
}

impl<K> Clone for Backlogs<K> {
    fn clone(&self) -> Self {
        Self { keeping_old: Arc::clone(&self.keeping_old), dropping_old: Arc::clone(&self.dropping_old) }
    }
}

impl<K> SharedBacklog<K> {
    pub(super) fn new(keeps_old: bool) -> Self {
        let staged = Staged {
            next: 0,
            has_next: false,
            batches: VecDeque::new(),
            readers: BTreeMap::new(),
            handlers_behind: 0,
            released: Vec::new(),
        };
        let periods = Periods { periods: Vec::new(), released: Released::new() };
        Self { staged: Mutex::new(staged), periods: Mutex::new(periods), keeps_old }
    }

    /// Adds the batch that is being published, unless it has been added for another handler.
    /// Returns the sequence number of the batch.
    pub(super) fn stage(&self, batch: &SharedBatch<K>) -> Sequence {
        // I11: publishing only appends the batch; it is coalesced later.
        self.staged.lock().stage(batch)
    }

    /// Does the same as [`stage`](Self::stage), for a handler whose backlog begins with this batch.
    /// If the handler has just fallen behind, `released` has the keys of its pending releases.
    pub(super) fn join(&self, batch: &SharedBatch<K>, released: Option<Vec<ObjectKey>>) -> Sequence {
        let mut staged = self.staged.lock();
        let sequence = staged.stage(batch);
        *staged.readers.entry(sequence).or_default() += 1;
        if let Some(released) = released {
            staged.handlers_behind += 1;
            staged.released.extend(released);
        }
        sequence
    }

    /// Ends the publication of the current batch.
    pub(super) fn finish(&self) {
        let mut staged = self.staged.lock();
        if std::mem::take(&mut staged.has_next) {
            staged.next += 1;
        }
    }

    /// Records that a handler is no longer behind: it has caught up or was removed.
    pub(super) fn caught_up(&self) {
        self.staged.lock().handlers_behind -= 1;
    }

    /// Returns the periods that consist of the batches `from..to`, the backlog of a handler. From
    /// now on, the shared backlog does not keep these periods for this handler.
    pub(super) fn take(&self, from: Sequence, to: Sequence, garbage: &mut Garbage<K>) -> Vec<Arc<Period<K>>> {
        let taken = {
            let mut periods = self.periods.lock();
            self.drain(&mut periods, garbage);
            let own = periods.periods.iter().filter(|period| (from..to).contains(&period.start));
            let taken: Vec<_> = own.cloned().collect();
            self.staged.lock().leave(from);
            self.trim(&mut periods, garbage);
            taken
        };
        // The caller becomes the only owner of each taken period that no other handler needs.
        garbage.periods.retain(|period| !taken.iter().any(|own| Arc::ptr_eq(own, period)));
        self.settle(garbage);
        taken
    }

    /// Counts the backlog of a handler that consists of the batches `from..to`. Returns the number of
    /// its events, and the number of events that have been merged into them. Coalesces nothing, so
    /// events of different periods are not merged.
    pub(super) fn count(&self, from: Sequence, to: Sequence, garbage: &mut Garbage<K>) -> (usize, u64) {
        let is_own = |start: &Sequence| (from..to).contains(start);
        let counted = {
            let periods = self.periods.lock();
            let own = periods.periods.iter().filter(|period| is_own(&period.start));
            let (events, merged) =
                own.fold((0, 0), |sum, period| (sum.0 + period.coalesced.len(), sum.1 + period.merged));
            let staged = self.staged.lock();
            let own = staged.batches.iter().filter(|(sequence, _)| is_own(sequence));
            (events + own.map(|(_, batch)| batch.events.len()).sum::<usize>(), merged)
        };
        // A publisher that found `periods` locked meanwhile has left its batch to this thread.
        self.settle(garbage);
        counted
    }

    /// Removes a handler whose backlog begins with the batch `from`.
    pub(super) fn leave(&self, from: Sequence, garbage: &mut Garbage<K>) {
        self.staged.lock().leave(from);
        if let Some(mut periods) = self.periods.try_lock() {
            self.trim(&mut periods, garbage);
        }
        self.settle(garbage);
    }

    /// Coalesces the published batches. If another thread is doing so, returns at once, and that
    /// thread coalesces these batches, too.
    pub(super) fn settle(&self, garbage: &mut Garbage<K>) {
        // A thread that holds `periods` checks `batches` again after it has released this lock.
        while !self.staged.lock().batches.is_empty()
            && let Some(mut periods) = self.periods.try_lock()
        {
            self.drain(&mut periods, garbage);
        }
    }

    fn drain(&self, periods: &mut Periods<K>, garbage: &mut Garbage<K>) {
        loop {
            let (sequence, batch, is_boundary) = {
                let mut staged = self.staged.lock();
                let Some((sequence, batch)) = staged.batches.pop_front() else { break };
                if staged.handlers_behind == 0 {
                    periods.released.clear();
                }
                periods.released.extend(staged.released.drain(..));
                (sequence, batch, staged.is_boundary(sequence))
            };
            periods.push(sequence, &batch, is_boundary, self.keeps_old, garbage);
            garbage.batches.push(batch);
        }
        self.trim(periods, garbage);
        self.join_periods(periods, garbage);
    }

    /// Removes the periods that no handler needs.
    fn trim(&self, periods: &mut Periods<K>, garbage: &mut Garbage<K>) {
        let first = self.staged.lock().first_needed();
        garbage.periods.extend(periods.periods.extract_if(.., |period| period.start < first));
    }

    /// Merges neighbouring periods if no handler's backlog begins between them any more.
    fn join_periods(&self, periods: &mut Periods<K>, garbage: &mut Garbage<K>) {
        let Periods { periods, released } = periods;
        for place in (1..periods.len()).rev() {
            if self.staged.lock().is_boundary(periods[place].start) {
                continue;
            }
            let (before, after) = periods.split_at_mut(place);
            // While a handler reads the earlier period, the period can't be changed; a later call
            // then merges the two periods.
            if let (Some(earlier), Some(later)) = (before.last_mut().and_then(Arc::get_mut), after.first()) {
                earlier.absorb(later, released, garbage);
                garbage.periods.push(periods.remove(place));
            }
        }
    }
}

impl<K> Periods<K> {
    fn push(
        &mut self,
        sequence: Sequence,
        batch: &SharedBatch<K>,
        is_boundary: bool,
        keeps_old: bool,
        garbage: &mut Garbage<K>,
    ) {
        let Self { periods, released } = self;
        if is_boundary || periods.last_mut().and_then(Arc::get_mut).is_none() {
            let coalesced = Coalesced::new(keeps_old);
            periods.push(Arc::new(Period { start: sequence, coalesced, merged: 0 }));
        }
        let Some(last) = periods.last_mut().and_then(Arc::get_mut) else { return };
        for event in &batch.events {
            let keys = last.coalesced.len();
            let was_merged = last.coalesced.push(event, Merge::Period(released), &mut garbage.events);
            last.merged += u64::from(was_merged);
            if let Event::Released(object) = event
                && last.coalesced.len() >= keys
            {
                released.insert(object.key().clone());
            }
        }
        if batch.completes_initial_list {
            last.coalesced.complete_initial();
        }
    }
}

impl<K> Period<K> {
    fn absorb(&mut self, later: &Self, released: &Released, garbage: &mut Garbage<K>) {
        let places = 0..later.coalesced.places();
        let merge = Merge::Period(released);
        self.merged += later.merged;
        self.merged += self.coalesced.absorb(&later.coalesced, places, merge, &mut garbage.events);
    }
}
