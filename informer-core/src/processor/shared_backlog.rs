//! [`SharedBacklog`]: the batches that slow handlers have not taken, coalesced once for all of
//! these handlers.
//!
//! A publisher only appends its batch to `staged`. After it has released the store's locks, it
//! merges the batch into a section: the coalesced events of consecutive batches. If another thread
//! has locked the sections, that thread merges the batch instead. A batch is untaken for a handler
//! until the handler has taken all events of the batch's section. Handlers read a section from its
//! start, so each handler's first untaken batch is the start of a section.
//!
//! Lock order: `sections`, `Mailbox::state`, `staged`. Objects are dropped while none of these
//! locks is held.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::batch::SharedBatch;
use super::inbox::Garbage;
use super::sections::{Sections, TakenEvents};
use crate::AnyObject;
use crate::sync::Mutex;

#[cfg(test)]
mod tests;

/// The sequence number of a batch in a shared backlog.
pub(super) type Sequence = u64;

/// The coalesced events that slow handlers share: one backlog whose updates keep the old and the
/// new object, and one whose updates keep only the new object.
#[derive(Clone)]
pub(super) struct Backlogs {
    keeping_old: Arc<SharedBacklog<AnyObject>>,
    dropping_old: Arc<SharedBacklog<AnyObject>>,
}

/// The waiting events of slow handlers: batches that have not been coalesced yet, and the coalesced
/// events of earlier batches.
pub(super) struct SharedBacklog<K> {
    staged: Mutex<Staged<K>>,
    sections: Mutex<Sections<K>>,
}

/// The untaken batches of one slow handler: those with sequence numbers in `from..to`.
pub(super) struct SharedPart {
    /// The sequence number of the first untaken batch.
    pub(super) from: Sequence,
    /// One more than the sequence number of the last untaken batch.
    to: Sequence,
    /// One more than the sequence number of the last untaken batch whose resyncs are due for the
    /// handler. At most `from` if there is no such batch: the handler then skips all resyncs.
    // Merged events cannot be separated. So in a section that starts before this number, the
    // handler can also receive resyncs that were due only for other handlers.
    resyncs_end: Sequence,
}

/// The batches that have not been coalesced yet, and the first untaken batch of each slow handler.
struct Staged<K> {
    /// The number of batches that have been completely published. The batch that is being
    /// published, or that is published next, has this sequence number.
    next: Sequence,
    /// Whether a batch is being published: [`SharedBacklog::push`] has been called for the batch,
    /// and [`SharedBacklog::finish`] has not.
    is_publishing: bool,
    batches: VecDeque<(Sequence, SharedBatch<K>)>,
    /// The slow handlers, counted by the sequence number of their first untaken batch. A number
    /// without handlers has no entry.
    readers: BTreeMap<Sequence, usize>,
    /// Whether sections may exist that no handler needs, or that can be merged.
    /// [`SharedBacklog::tidy`] removes and merges such sections.
    is_untidy: bool,
}

impl<K> Staged<K> {
    /// Returns whether a section must begin with the batch `start`, because this can be the first
    /// untaken batch of a handler.
    fn is_boundary(&self, start: Sequence) -> bool {
        // Until the publishing of the batch `next` ends, further handlers can receive this batch.
        start >= self.next || self.readers.contains_key(&start)
    }

    /// Returns the sequence number of the oldest batch that must be kept. No handler needs earlier
    /// batches.
    fn first_needed(&self) -> Sequence {
        // The batch `next` is kept: see `is_boundary`.
        self.readers.first_key_value().map_or(self.next, |(first, _)| self.next.min(*first))
    }

    /// Returns whether `start` is the first untaken batch of exactly one handler, and all other
    /// handlers have a later one. Always `false` for the batch `next`.
    fn has_one_reader(&self, start: Sequence) -> bool {
        // Further handlers can receive the batch `next`: see `is_boundary`.
        start < self.next && self.readers.first_key_value() == Some((&start, &1))
    }

    /// Returns the sequence number of the first batch that has not been coalesced. If all published
    /// batches have been coalesced, this is the number of the next batch.
    fn first_uncoalesced(&self) -> Sequence {
        let next = self.next + u64::from(self.is_publishing);
        self.batches.front().map_or(next, |(sequence, _)| *sequence)
    }

    /// Returns whether a batch must be coalesced, or sections can possibly be removed or merged.
    fn needs_work(&self) -> bool {
        self.is_untidy || !self.batches.is_empty()
    }

    fn stage(&mut self, batch: &SharedBatch<K>) -> Sequence {
        if !std::mem::replace(&mut self.is_publishing, true) {
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

    /// Sets `untaken.from`, the sequence number of a handler's first untaken batch, to `next`. If
    /// `next` is `None`, sets `untaken.from` to the number of the first batch that has not been
    /// coalesced. Returns whether the handler still has untaken batches.
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

impl Backlogs {
    pub(super) fn new() -> Self {
        Self {
            keeping_old: Arc::new(SharedBacklog::new(true)),
            dropping_old: Arc::new(SharedBacklog::new(false)),
        }
    }

    pub(super) fn of(&self, keeps_old: bool) -> &Arc<SharedBacklog<AnyObject>> {
        if keeps_old { &self.keeping_old } else { &self.dropping_old }
    }

    pub(super) fn finish(&self) {
        self.keeping_old.finish();
        self.dropping_old.finish();
    }

    pub(super) fn settle(&self, garbage: &mut Garbage<AnyObject>) {
        self.keeping_old.settle(garbage);
        self.dropping_old.settle(garbage);
    }
}

impl<K> SharedBacklog<K> {
    pub(super) fn new(keeps_old: bool) -> Self {
        let staged = Staged {
            next: 0,
            is_publishing: false,
            batches: VecDeque::new(),
            readers: BTreeMap::new(),
            is_untidy: false,
        };
        Self { staged: Mutex::new(staged), sections: Mutex::new(Sections::new(keeps_old)) }
    }

    /// Adds `batch` to the `untaken` batches of one slow handler. If `wants_resyncs` is `true`, the
    /// handler also receives the resyncs of `batch`.
    ///
    /// After the calls for all slow handlers, the publisher must call [`finish`](Self::finish).
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

    /// Ends the publishing of a batch. The publisher calls this function once, after it has called
    /// [`push`](Self::push) for each slow handler. The next `push` adds another batch.
    pub(super) fn finish(&self) {
        let mut staged = self.staged.lock();
        if std::mem::take(&mut staged.is_publishing) {
            // A handler's task may have coalesced the batch already. Until now, the section of the
            // batch was kept separate for handlers that the publisher had not reached. If no
            // handler begins with this section, `tidy` can now remove the section, or merge it into
            // the section before it.
            staged.is_untidy |= staged.batches.back().is_none_or(|(last, _)| *last != staged.next);
            staged.next += 1;
        }
    }

    /// Calls `f` while the sections are locked. Then merges the batches that were published
    /// meanwhile, and moves unused objects to `garbage`.
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

    /// Seals the section that begins with the batch `from`, if several handlers need this section
    /// or can still receive it. The events of a sealed section do not change, so that several
    /// handlers can take the same events. Later batches go to another section.
    pub(super) fn seal(&self, sections: &mut Sections<K>, from: Sequence) {
        // While this thread has the sections, no handler becomes a new reader of an existing
        // section, unless the section begins with the batch that is being published.
        if !self.staged.lock().has_one_reader(from) {
            sections.seal(from);
        }
    }

    /// Takes a handler's next events; `None` if none have been coalesced yet. The flag in the
    /// result is `false` if the caller must skip the resyncs.
    ///
    /// Call [`seal`](Self::seal) before this function. If [`TakenEvents::ends_section`] is `true`,
    /// call [`tidy`](Self::tidy) afterwards.
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

    /// Returns the number of waiting events in a handler's `untaken` batches, and the number of
    /// other events that were merged into these events.
    pub(super) fn count(&self, sections: &Sections<K>, untaken: &SharedPart) -> (usize, u64) {
        let (events, merged) = sections.count(untaken.from, untaken.to);
        let staged = self.staged.lock();
        let own = staged.batches.iter().filter(|(sequence, _)| (untaken.from..untaken.to).contains(sequence));
        (events + own.map(|(_, batch)| batch.events.len()).sum::<usize>(), merged)
    }

    /// Removes a handler with these `untaken` batches from the backlog, and the sections that only
    /// this handler needed.
    pub(super) fn remove(&self, untaken: &SharedPart, garbage: &mut Garbage<K>) {
        {
            let mut staged = self.staged.lock();
            staged.remove_reader(untaken.from);
            staged.is_untidy = true;
        }
        self.settle(garbage);
    }

    /// Merges the published batches and removes unneeded sections, unless another thread has locked
    /// the sections. Moves unused objects to `garbage`.
    pub(super) fn settle(&self, garbage: &mut Garbage<K>) {
        // A thread that has the sections checks `needs_work` again after it has released them.
        while self.staged.lock().needs_work()
            && let Some(mut sections) = self.sections.try_lock()
        {
            self.coalesce(&mut sections, garbage);
        }
    }

    /// Merges the published batches into `sections`, in order, and removes unneeded sections. Moves
    /// unused objects to `garbage`.
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

    /// Removes the sections that no handler needs, and merges sections that need not be separate.
    /// Moves unused objects to `garbage`.
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
