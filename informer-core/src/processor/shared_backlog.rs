//! [`SharedBacklog`]: the batches that slow handlers have not taken, coalesced once for all of
//! these handlers.
//!
//! A publisher only appends its batch to `staged`. Later, when the publisher has released the
//! store's locks, it merges the batch into a section: the coalesced events of consecutive batches.
//! If another thread has locked the sections at that moment, the publisher does not wait. The other
//! thread merges the batch after it has unlocked the sections. A batch is untaken for a handler
//! until the handler has taken all events of the batch's section.
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

/// The waiting events of slow handlers: batches that have not been coalesced yet, and the coalesced
/// events of earlier batches.
pub(super) struct SharedBacklog<K> {
    staged: Mutex<Staged<K>>,
    sections: Mutex<Sections<K>>,
}

/// The untaken batches of one slow handler: those with sequence numbers in `from..to`.
pub(super) struct SharedPart {
    /// The sequence number of the first untaken batch. Once this batch is coalesced, it is the
    /// first batch of a section.
    from: Sequence,
    /// One more than the sequence number of the last untaken batch.
    to: Sequence,
    /// One more than the sequence number of the last batch with resyncs for this handler. The
    /// handler skips the resyncs of a section that begins with this number or a later one.
    // The merged events of several batches are taken together, so the handler can also receive
    // resyncs that were due only for other handlers.
    resyncs_end: Sequence,
}

impl SharedPart {
    /// Returns the sequence number of the first untaken batch.
    pub(super) fn start(&self) -> Sequence {
        self.from
    }
}

/// The batches that have not been coalesced yet, and the batch with which each slow handler
/// continues.
struct Staged<K> {
    /// The sequence number of the batch that is being published, or otherwise of the next batch.
    next: Sequence,
    /// Whether [`SharedBacklog::push`] has been called for the batch `next`.
    is_next_pushed: bool,
    batches: VecDeque<(Sequence, SharedBatch<K>)>,
    /// The number of handlers whose first untaken batch has this sequence number. There is no entry
    /// for zero handlers.
    readers: BTreeMap<Sequence, usize>,
    /// Whether [`SharedBacklog::tidy`] must be called, because it can possibly remove or merge
    /// sections.
    is_untidy: bool,
}

impl<K> Staged<K> {
    /// Returns whether a section must begin with the batch `start`, because this batch is or can
    /// become the first untaken batch of a handler.
    fn is_boundary(&self, start: Sequence) -> bool {
        // Until `finish` is called for the batch `next`, this batch can become the first untaken
        // batch of another handler.
        start >= self.next || self.readers.contains_key(&start)
    }

    /// Returns the sequence number of the oldest batch that must be kept. No handler needs the
    /// batches before it.
    fn first_needed(&self) -> Sequence {
        // The batch `next` is kept: see `is_boundary`.
        self.readers.first_key_value().map_or(self.next, |(first, _)| self.next.min(*first))
    }

    /// Returns `true` only if a single handler needs the batch `start`. Always returns `false` for
    /// the batch that is being published, because more handlers can still need that batch.
    fn has_one_reader(&self, start: Sequence) -> bool {
        // Another handler can still become a reader of the batch that is being published.
        start < self.next && self.readers.first_key_value() == Some((&start, &1))
    }

    /// Returns the sequence number of the oldest batch in `batches`. If `batches` is empty, returns
    /// the number of the batch that is added to it next.
    fn first_uncoalesced(&self) -> Sequence {
        let next = self.next + u64::from(self.is_next_pushed);
        self.batches.front().map_or(next, |(sequence, _)| *sequence)
    }

    /// Returns whether [`SharedBacklog::coalesce`] has work to do.
    fn needs_work(&self) -> bool {
        self.is_untidy || !self.batches.is_empty()
    }

    fn stage(&mut self, batch: &SharedBatch<K>) -> Sequence {
        if !std::mem::replace(&mut self.is_next_pushed, true) {
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

    /// Changes the first untaken batch of a handler to `next`. If `next` is `None`, changes it to
    /// the first batch that has not been coalesced. Returns whether the handler still has untaken
    /// batches.
    fn advance(&mut self, untaken: &mut SharedPart, next: Option<Sequence>) -> bool {
        self.remove_reader(untaken.from);
        untaken.from = next.unwrap_or_else(|| self.first_uncoalesced());
        let has_more = untaken.from < untaken.to;
        if has_more {
            self.add_reader(untaken.from);
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
            is_next_pushed: false,
            batches: VecDeque::new(),
            readers: BTreeMap::new(),
            is_untidy: false,
        };
        Self { staged: Mutex::new(staged), sections: Mutex::new(Sections::new(keeps_old)) }
    }

    /// Adds the batch that is being published to `untaken`, the untaken batches of one handler. The
    /// first call for a batch also adds the batch to the backlog. If `wants_resyncs` is `true`, the
    /// handler will also receive the resyncs of this batch.
    pub(super) fn push(&self, batch: &SharedBatch<K>, untaken: &mut Option<SharedPart>, wants_resyncs: bool) {
        // I11: publishing only appends the batch; it is coalesced later.
        let mut staged = self.staged.lock();
        let sequence = staged.stage(batch);
        let untaken = untaken.get_or_insert_with(|| {
            staged.add_reader(sequence);
            SharedPart { from: sequence, to: sequence, resyncs_end: sequence }
        });
        untaken.to = sequence + 1;
        if wants_resyncs {
            untaken.resyncs_end = untaken.to;
        }
    }

    /// Ends the publishing of a batch: the next call of [`push`](Self::push) is for another batch.
    /// Must be called after `push` was called for each slow handler.
    pub(super) fn finish(&self) {
        let mut staged = self.staged.lock();
        if std::mem::take(&mut staged.is_next_pushed) {
            // A handler's task may have coalesced the batch already. Until now, the section of the
            // batch was kept separate for handlers that the publisher had not reached. If no
            // handler begins with this section, `tidy` can now remove the section, or merge it into
            // the section before it.
            staged.is_untidy |= staged.batches.back().is_none_or(|(last, _)| *last != staged.next);
            staged.next += 1;
        }
    }

    /// Calls `f` while the sections are locked, and returns the result of `f`. After unlocking,
    /// calls [`settle`](Self::settle), for the batches that other threads have published meanwhile.
    /// Unused objects are moved to `garbage`.
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

    /// Seals the section that begins with the batch `from`, unless only one handler needs the
    /// section. The events of a sealed section do not change, so that several handlers can take
    /// them.
    pub(super) fn seal(&self, sections: &mut Sections<K>, from: Sequence) {
        // While this thread has the sections, no handler becomes a new reader of an existing
        // section, unless the section begins with the batch that is being published.
        if !self.staged.lock().has_one_reader(from) {
            sections.seal(from);
        }
    }

    /// Takes a handler's next events from the section that begins with the first batch of
    /// `untaken`. Also returns whether the handler wants the resyncs among these events; if not,
    /// the caller must skip them. `limit` is explained at [`Sections::take`].
    ///
    /// Returns `None` if the handler has no untaken batches, or if the first one has not been
    /// coalesced yet.
    ///
    /// The caller must call [`seal`](Self::seal) before this function. If
    /// [`TakenEvents::ends_section`] is `true`, the caller must call [`tidy`](Self::tidy)
    /// afterwards.
    pub(super) fn take(
        &self,
        sections: &mut Sections<K>,
        untaken: &mut Option<SharedPart>,
        limit: Option<usize>,
    ) -> Option<(TakenEvents<K>, bool)> {
        let own = untaken.as_mut()?;
        let taken = sections.take(own.from, limit)?;
        let wants_resyncs = own.from < own.resyncs_end;
        if taken.ends_section && !self.staged.lock().advance(own, sections.after(own.from)) {
            *untaken = None;
        }
        Some((taken, wants_resyncs))
    }

    /// Returns two numbers for the `untaken` batches of a handler:
    ///
    /// - the number of events that the handler has not taken,
    /// - the number of events that are gone, because they were merged with other events of the same
    ///   object.
    pub(super) fn count(&self, sections: &Sections<K>, untaken: &SharedPart) -> (usize, u64) {
        let (events, merged) = sections.count(untaken.from, untaken.to);
        let staged = self.staged.lock();
        let own = staged.batches.iter().filter(|(sequence, _)| (untaken.from..untaken.to).contains(sequence));
        (events + own.map(|(_, batch)| batch.events.len()).sum::<usize>(), merged)
    }

    /// Removes a handler that has not taken the batches `untaken`. Then calls
    /// [`settle`](Self::settle), which removes the sections that no other handler needs.
    pub(super) fn remove(&self, untaken: &SharedPart, garbage: &mut Garbage<K>) {
        {
            let mut staged = self.staged.lock();
            staged.remove_reader(untaken.from);
            staged.is_untidy = true;
        }
        self.settle(garbage);
    }

    /// Merges the published batches into the sections, and removes the sections that no handler
    /// needs. If another thread has locked the sections, returns at once: after unlocking, that
    /// thread calls this function too. Unused objects are moved to `garbage`.
    pub(super) fn settle(&self, garbage: &mut Garbage<K>) {
        // A thread that has the sections checks `needs_work` again after it has released them.
        while self.staged.lock().needs_work()
            && let Some(mut sections) = self.sections.try_lock()
        {
            self.coalesce(&mut sections, garbage);
        }
    }

    /// Merges the published batches into `sections`, in order, and then calls [`tidy`](Self::tidy).
    /// Does nothing if neither is necessary.
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

    /// Removes the sections that no handler needs. Then merges each section into the section before
    /// it, if no handler begins with the later section. See [`Staged::is_boundary`].
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
