//! [`SharedBacklog`]: the batches that slow handlers have not received, coalesced once for all of
//! these handlers.
//!
//! Publishing only appends the batch, once for all slow handlers. Later, when the publisher has
//! released the store's locks, it coalesces the batch. If another thread holds the lock `sections`
//! at that moment, that thread coalesces the batch, and the publisher does not wait.
//!
//! Lock order: `sections`, `Mailbox::state`, `staged`. Objects are dropped while none of these
//! locks is held.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::batch::SharedBatch;
use super::inbox::Garbage;
use super::sections::{Sections, TakenEvents};
use crate::sync::Mutex;

#[cfg(test)]
mod tests;

/// The sequence number of a batch in a shared backlog.
pub(super) type Sequence = u64;

/// The coalesced events that slow handlers share: one backlog whose updates keep the old and the
/// new object, and one whose updates keep only the new object.
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

/// The part of the shared backlog that a slow handler has not taken: a range of batches.
pub(super) struct SharedPart {
    /// The start of the part: the sequence number of its first batch.
    from: Sequence,
    /// The exclusive end of the part: one more than the sequence number of the last batch that was
    /// published for the handler.
    to: Sequence,
    /// The exclusive end of the batches with resyncs that were due for this handler. A section (the
    /// coalesced events of consecutive batches) can begin before this number, and also contain
    /// later batches. The handler then receives all resyncs of the section, even those that were
    /// due only for other handlers.
    resyncs_end: Sequence,
}

impl SharedPart {
    /// Returns the sequence number of the first batch of this part of the shared backlog.
    pub(super) fn start(&self) -> Sequence {
        self.from
    }
}

struct Staged<K> {
    /// The sequence number of the batch that is being published, or of the next batch if none is
    /// being published.
    next: Sequence,
    /// Whether the batch with the number `next` has been added to `batches`.
    has_next: bool,
    /// The batches that have not been coalesced yet.
    batches: VecDeque<(Sequence, SharedBatch<K>)>,
    /// For each batch, the number of handlers whose untaken batches begin with it.
    readers: BTreeMap<Sequence, usize>,
    /// Whether [`SharedBacklog::tidy`] must run: it removes coalesced events that no handler needs,
    /// and merges coalesced events that need not be separate.
    is_untidy: bool,
}

impl<K> Staged<K> {
    /// Returns whether a handler needs, or can still need, the events from the batch `start` on,
    /// but no earlier events. If so, the batch must not be merged with the batches before it.
    fn is_boundary(&self, start: Sequence) -> bool {
        // Until the publication of the batch `next` ends, `push` can add this batch for another
        // handler, as the first batch that the handler needs.
        start >= self.next || self.readers.contains_key(&start)
    }

    /// Returns the sequence number of the first batch that a handler needs, or can still need. The
    /// batches before it can be removed.
    fn first_needed(&self) -> Sequence {
        // The batch `next` is kept: see `is_boundary`.
        self.readers.first_key_value().map_or(self.next, |(first, _)| self.next.min(*first))
    }

    /// Returns whether exactly one handler needs the coalesced events whose first batch is `start`.
    fn has_one_reader(&self, start: Sequence) -> bool {
        // Another handler can still become a reader of the batch that is being published.
        start < self.next && self.readers.first_key_value() == Some((&start, &1))
    }

    /// Returns the sequence number of the first batch that has not been coalesced. If all batches
    /// have been coalesced, returns the number of the batch that will be published next.
    fn first_uncoalesced(&self) -> Sequence {
        let next = self.next + u64::from(self.has_next);
        self.batches.front().map_or(next, |(sequence, _)| *sequence)
    }

    /// Returns whether there are batches to coalesce, or coalesced events that
    /// [`SharedBacklog::tidy`] may have to remove, or to merge with others.
    fn needs_work(&self) -> bool {
        self.is_untidy || !self.batches.is_empty()
    }

    fn stage(&mut self, batch: &SharedBatch<K>) -> Sequence {
        if !std::mem::replace(&mut self.has_next, true) {
            self.batches.push_back((self.next, Arc::clone(batch)));
        }
        self.next
    }

    fn add_reader(&mut self, at: Sequence) {
        *self.readers.entry(at).or_default() += 1;
    }

    fn remove_reader(&mut self, at: Sequence) {
        if let Some(count) = self.readers.get_mut(&at) {
            *count -= 1;
            if *count == 0 {
                self.readers.remove(&at);
            }
        }
    }

    /// Moves the start of `part` to the batch `next`, because the handler has taken all earlier
    /// events. `part` is the range of batches that the handler has not taken. If `next` is `None`,
    /// moves the start to the first batch that has not been coalesced. Returns whether batches are
    /// left in `part`.
    fn advance(&mut self, part: &mut SharedPart, next: Option<Sequence>) -> bool {
        self.remove_reader(part.from);
        part.from = next.unwrap_or_else(|| self.first_uncoalesced());
        let has_more = part.from < part.to;
        if has_more {
            self.add_reader(part.from);
        }
        has_more
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
            is_untidy: false,
        };
        Self { staged: Mutex::new(staged), sections: Mutex::new(Sections::new(keeps_old)) }
    }

    /// Adds the batch that is being published to `part`, the range of batches that a slow handler
    /// has not taken. `part` is `None` if the handler has become slow at this batch. Also adds the
    /// batch to the backlog, unless the batch has already been added for another handler.
    pub(super) fn push(&self, batch: &SharedBatch<K>, part: &mut Option<SharedPart>, wants_resyncs: bool) {
        // I11: publishing only appends the batch; it is coalesced later.
        let mut staged = self.staged.lock();
        let sequence = staged.stage(batch);
        let part = part.get_or_insert_with(|| {
            staged.add_reader(sequence);
            SharedPart { from: sequence, to: sequence, resyncs_end: sequence }
        });
        part.to = sequence + 1;
        if wants_resyncs {
            part.resyncs_end = part.to;
        }
    }

    /// Records that the current batch has been pushed for all handlers that need it. The next
    /// [`push`](Self::push) is then for a new batch.
    pub(super) fn finish(&self) {
        let mut staged = self.staged.lock();
        if std::mem::take(&mut staged.has_next) {
            // A handler's task may have coalesced the batch already. Until now, the section of the
            // batch was kept separate for handlers that the publisher had not reached. If no
            // handler's part begins with this section, `tidy` can now remove the section, or merge
            // it into the section before it.
            staged.is_untidy |= staged.batches.back().is_none_or(|(last, _)| *last != staged.next);
            staged.next += 1;
        }
    }

    /// Locks the sections, which have the coalesced events of this backlog, and calls `f` with
    /// them. After releasing the lock, coalesces the batches that were published while the lock was
    /// held, because their publishers could not do so.
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

    /// Seals the section that begins with the batch `from`, if several handlers can need it: later
    /// events are then not merged into it, so all of these handlers take the same events. A section
    /// has the coalesced events of consecutive batches.
    pub(super) fn seal(&self, sections: &mut Sections<K>, from: Sequence) {
        // While this thread has the sections, no handler becomes a new reader of an existing
        // section, unless the section begins with the batch that is being published.
        if !self.staged.lock().has_one_reader(from) {
            sections.seal(from);
        }
    }

    /// Takes the next events of a handler. Returns the events, and whether the handler wants the
    /// resyncs among them. `part` is the range of batches that the handler has not taken, and
    /// becomes `None` if the handler has then taken all batches. Returns `None` if `part` is
    /// `None`, or if the first batch of `part` has not been coalesced.
    ///
    /// [`seal`](Self::seal) must be called before. [`tidy`](Self::tidy) must be called after if
    /// [`TakenEvents::is_whole`] is `true`.
    pub(super) fn take(
        &self,
        sections: &mut Sections<K>,
        part: &mut Option<SharedPart>,
        limit: Option<usize>,
    ) -> Option<(TakenEvents<K>, bool)> {
        let own = part.as_mut()?;
        let taken = sections.take(own.from, limit)?;
        let wants_resyncs = own.from < own.resyncs_end;
        if taken.is_whole && !self.staged.lock().advance(own, sections.after(own.from)) {
            *part = None;
        }
        Some((taken, wants_resyncs))
    }

    /// Counts the events of `part`, the range of batches that a handler has not taken. Also counts
    /// the events that have been merged into these events.
    pub(super) fn count(&self, sections: &Sections<K>, part: &SharedPart) -> (usize, u64) {
        let (events, merged) = sections.count(part.from, part.to);
        let staged = self.staged.lock();
        let own = staged.batches.iter().filter(|(sequence, _)| (part.from..part.to).contains(sequence));
        (events + own.map(|(_, batch)| batch.events.len()).sum::<usize>(), merged)
    }

    /// Ends the use of the backlog by a handler that has been removed. `part` is the range of
    /// batches that the handler has not taken.
    pub(super) fn remove(&self, part: &SharedPart, garbage: &mut Garbage<K>) {
        {
            let mut staged = self.staged.lock();
            staged.remove_reader(part.from);
            staged.is_untidy = true;
        }
        self.settle(garbage);
    }

    /// Coalesces the published batches, and removes coalesced events that no handler needs. If
    /// another thread has locked the coalesced events, returns at once, and that thread does this
    /// work.
    pub(super) fn settle(&self, garbage: &mut Garbage<K>) {
        // A thread that has the sections checks `needs_work` again after it has released them.
        while self.staged.lock().needs_work()
            && let Some(mut sections) = self.sections.try_lock()
        {
            self.coalesce(&mut sections, garbage);
        }
    }

    /// Merges the events of all staged batches, in order, into the [sections](super::sections) of the
    /// backlog, and then [tidies](Self::tidy) the sections. Does nothing if no work is due.
    pub(super) fn coalesce(&self, sections: &mut Sections<K>, garbage: &mut Garbage<K>) {
        if !self.staged.lock().needs_work() {
            return;
        }
        loop {
            let (sequence, batch, starts_section) = {
                let mut staged = self.staged.lock();
                let Some((sequence, batch)) = staged.batches.pop_front() else { break };
                (sequence, batch, staged.is_boundary(sequence))
            };
            sections.push(sequence, &batch, starts_section, garbage);
            garbage.batches.push(batch);
        }
        self.tidy(sections, garbage);
    }

    /// Removes the sections that no handler needs. A section has the coalesced events of
    /// consecutive batches. Then merges each section into the section before it, unless a handler
    /// can need the later section without the earlier one.
    pub(super) fn tidy(&self, sections: &mut Sections<K>, garbage: &mut Garbage<K>) {
        let (first, unneeded) = {
            let mut staged = self.staged.lock();
            staged.is_untidy = false;
            let starts = sections.starts().filter(|start| !staged.is_boundary(*start));
            (staged.first_needed(), starts.collect::<Vec<_>>())
        };
        // The lock is released, so that a publisher does not wait for this work.
        sections.trim(first, garbage);
        sections.join(&unneeded, garbage);
    }
}
