//! [`SharedBacklog`]: the batches that slow handlers have not received, coalesced once for all of
//! these handlers.
//!
//! Publishing only appends the batch, so its cost does not depend on the number of slow handlers.
//! Later, when the publisher has released the store's locks, it coalesces the batch. If another
//! thread holds the lock `sections` at that moment, that thread coalesces the batch, and the
//! publisher does not wait.
//!
//! Lock order: `sections`, `Mailbox::state`, `staged`. Objects are dropped while none of these
//! locks is held.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::inbox::{Garbage, SharedBatch};
use super::sections::{Sections, TakenEvents};
use crate::ObjectKey;
use crate::sync::Mutex;

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
    sections: Mutex<Sections<K>>,
}

/// The part of the shared backlog that a slow handler has not taken.
pub(super) struct SharedPart {
    /// The first batch of the section that the handler takes next.
    from: Sequence,
    /// The sequence number after the last batch that was published for the handler.
    to: Sequence,
    /// The handler receives resyncs only from sections before this batch.
    resyncs_end: Option<Sequence>,
}

struct Staged<K> {
    /// The sequence number of the batch that is being published, or of the next batch if none is
    /// being published.
    next: Sequence,
    /// Whether the batch with the number `next` has been added to `batches`.
    has_next: bool,
    /// The batches that have not been coalesced yet.
    batches: VecDeque<(Sequence, SharedBatch<K>)>,
    /// The batches that begin a section: for each, the number of handlers whose part of the backlog
    /// or whose resyncs end or begin there.
    boundaries: BTreeMap<Sequence, usize>,
    /// The keys of releases that were waiting in the inboxes of slow handlers when these handlers
    /// fell behind.
    released: Vec<ObjectKey>,
}

impl<K> Staged<K> {
    /// Returns whether a section must begin with the batch `start`, because the part of a handler
    /// begins there, or can still begin there.
    fn is_boundary(&self, start: Sequence) -> bool {
        // The part of another handler can still begin with the batch that is being published.
        start >= self.next || self.boundaries.contains_key(&start)
    }

    /// Returns the sequence number of the first batch that any handler needs or can still need.
    fn first_needed(&self) -> Sequence {
        self.boundaries.first_key_value().map_or(self.next, |(first, _)| self.next.min(*first))
    }

    /// Returns whether only one handler needs the section at `start`.
    fn has_one_reader(&self, start: Sequence) -> bool {
        // Another handler can still become a reader of the batch that is being published.
        start < self.next && self.boundaries.first_key_value() == Some((&start, &1))
    }

    /// Returns the first batch that is not in any section.
    fn first_uncoalesced(&self) -> Sequence {
        let next = self.next + u64::from(self.has_next);
        self.batches.front().map_or(next, |(sequence, _)| *sequence)
    }

    fn stage(&mut self, batch: &SharedBatch<K>) -> Sequence {
        if !std::mem::replace(&mut self.has_next, true) {
            self.batches.push_back((self.next, Arc::clone(batch)));
        }
        self.next
    }

    fn add_boundary(&mut self, at: Sequence) {
        *self.boundaries.entry(at).or_default() += 1;
    }

    fn remove_boundary(&mut self, at: Sequence) {
        if let Some(count) = self.boundaries.get_mut(&at) {
            *count -= 1;
            if *count == 0 {
                self.boundaries.remove(&at);
            }
        }
    }

    /// Removes the first section from the part of a handler. `next` is the start of the section
    /// after it. Returns whether batches are left.
    fn advance(&mut self, part: &mut SharedPart, next: Option<Sequence>) -> bool {
        self.remove_boundary(part.from);
        part.from = next.unwrap_or_else(|| self.first_uncoalesced());
        if let Some(end) = part.resyncs_end.take_if(|end| *end <= part.from) {
            self.remove_boundary(end);
        }
        let has_more = part.from < part.to;
        if has_more {
            self.add_boundary(part.from);
        }
        has_more
    }

    fn remove_boundaries(&mut self, part: &SharedPart) {
        self.remove_boundary(part.from);
        part.resyncs_end.into_iter().for_each(|end| self.remove_boundary(end));
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
            boundaries: BTreeMap::new(),
            released: Vec::new(),
        };
        Self { staged: Mutex::new(staged), sections: Mutex::new(Sections::new(keeps_old)) }
    }

    /// Adds the current batch to the part of a handler, and to the backlog unless it was added for
    /// another handler. If the handler has just fallen behind, `part` is
    /// `None`, and `released` has the keys of its pending releases.
    pub(super) fn push(
        &self,
        batch: &SharedBatch<K>,
        part: &mut Option<SharedPart>,
        released: Vec<ObjectKey>,
        wants_resyncs: bool,
    ) {
        // I11: publishing only appends the batch; it is coalesced later.
        let mut staged = self.staged.lock();
        let sequence = staged.stage(batch);
        staged.released.extend(released);
        let part = part.get_or_insert_with(|| {
            staged.add_boundary(sequence);
            SharedPart { from: sequence, to: sequence, resyncs_end: None }
        });
        part.to = sequence + 1;
        if wants_resyncs {
            // The next section begins here, because the handler may not want the resyncs of later
            // batches.
            staged.add_boundary(part.to);
            part.resyncs_end.replace(part.to).into_iter().for_each(|end| staged.remove_boundary(end));
        }
    }

    /// Ends the publication of the current batch.
    pub(super) fn finish(&self) {
        let mut staged = self.staged.lock();
        if std::mem::take(&mut staged.has_next) {
            staged.next += 1;
        }
    }

    /// Locks the sections, and calls `f` with them.
    pub(super) fn with_sections<R>(
        &self,
        garbage: &mut Garbage<K>,
        f: impl FnOnce(&mut Sections<K>, &mut Garbage<K>) -> R,
    ) -> R {
        let outcome = {
            let mut sections = self.sections.lock();
            f(&mut sections, garbage)
        };
        // A publisher that found `sections` locked meanwhile has left its batch to this thread.
        self.settle(garbage);
        outcome
    }

    /// Takes the next events of a handler with their number of merged events, and whether the
    /// handler wants resyncs among them. Returns `None` if the backlog must be coalesced first.
    /// Sets `part` to `None` if the handler has taken its whole part.
    pub(super) fn take(
        &self,
        sections: &mut Sections<K>,
        part: &mut Option<SharedPart>,
        limit: Option<usize>,
        garbage: &mut Garbage<K>,
    ) -> Option<(TakenEvents<K>, bool)> {
        let own = part.as_mut()?;
        let from = own.from;
        // While this thread has the sections, no handler can become a further reader of a section.
        let is_only_reader = self.staged.lock().has_one_reader(from);
        let taken = sections.take(from, is_only_reader, limit)?;
        let wants_resyncs = own.resyncs_end.is_some_and(|end| from < end);
        if taken.is_whole {
            let has_more = self.staged.lock().advance(own, sections.after(from));
            if !has_more {
                *part = None;
            }
            self.tidy(sections, garbage);
        }
        Some((taken, wants_resyncs))
    }

    /// Counts the events of a handler's part, and the events that have been merged into them.
    pub(super) fn count(&self, sections: &Sections<K>, part: &SharedPart) -> (usize, u64) {
        let (events, merged) = sections.count(part.from, part.to);
        let staged = self.staged.lock();
        let own = staged.batches.iter().filter(|(sequence, _)| (part.from..part.to).contains(sequence));
        (events + own.map(|(_, batch)| batch.events.len()).sum::<usize>(), merged)
    }

    /// Removes the part of a handler that has been removed.
    pub(super) fn remove(&self, part: &SharedPart, garbage: &mut Garbage<K>) {
        self.staged.lock().remove_boundaries(part);
        if let Some(mut sections) = self.sections.try_lock() {
            self.tidy(&mut sections, garbage);
        }
        self.settle(garbage);
    }

    /// Coalesces the published batches. If another thread is doing so, returns at once, and that
    /// thread coalesces these batches, too.
    pub(super) fn settle(&self, garbage: &mut Garbage<K>) {
        // A thread that holds `sections` checks `batches` again after it has released this lock.
        while !self.staged.lock().batches.is_empty()
            && let Some(mut sections) = self.sections.try_lock()
        {
            self.coalesce(&mut sections, garbage);
        }
    }

    /// Moves all published batches to the sections.
    pub(super) fn coalesce(&self, sections: &mut Sections<K>, garbage: &mut Garbage<K>) {
        loop {
            let (sequence, batch, starts_section) = {
                let mut staged = self.staged.lock();
                let Some((sequence, batch)) = staged.batches.pop_front() else { break };
                sections.add_released(staged.released.drain(..));
                (sequence, batch, staged.is_boundary(sequence))
            };
            sections.push(sequence, &batch, starts_section, garbage);
            garbage.batches.push(batch);
        }
        self.tidy(sections, garbage);
    }

    /// Removes the sections that no handler needs, and merges sections that need not be separate.
    fn tidy(&self, sections: &mut Sections<K>, garbage: &mut Garbage<K>) {
        let (first, is_unused) = {
            let staged = self.staged.lock();
            (staged.first_needed(), staged.boundaries.is_empty())
        };
        sections.trim(first, is_unused, garbage);
        // The lock is taken for each section, so that a publisher does not wait while sections are
        // merged.
        sections.join(|start| self.staged.lock().is_boundary(start), garbage);
    }
}
