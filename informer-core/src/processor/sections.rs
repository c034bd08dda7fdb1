//! [`Sections`]: the coalesced events of a [shared backlog](super::shared_backlog). This code takes
//! no lock and never waits.
//!
//! A section has the coalesced events of consecutive batches. While a section is open, later events
//! can be merged into it. If several handlers need a section, the section is sealed when the first
//! of these handlers takes it, so that all of them receive the same events. A sealed section is
//! opened again if the section after it must be merged into it.

use std::collections::VecDeque;
use std::sync::Arc;

use super::batch::{Batch, SharedBatch};
use super::coalesce::Coalesced;
use super::inbox::Garbage;
use super::shared_backlog::Sequence;
use crate::{Event, EventBatch};

/// The maximum number of events that a handler takes at once from coalesced events that no other
/// handler needs. One event more is possible: an object that was removed and added again has two
/// events, which are taken together.
const PIECE: usize = 64;

/// The events of one shared backlog, in sections. A section has the coalesced events of consecutive
/// batches, and the sections are in the order of their batches.
pub(super) struct Sections<K> {
    sections: VecDeque<Section<K>>,
    keeps_old: bool,
}

/// The coalesced events of consecutive batches. Coalesced batches cannot be separated again, so no
/// handler can begin to take events at a later batch than the first.
struct Section<K> {
    start: Sequence,
    content: Content<K>,
    /// The number of events that were merged into other events.
    merged: u64,
}

enum Content<K> {
    Open(Coalesced<K>),
    /// The events are fixed, so that several handlers can share them: as long as the section is
    /// sealed, no later events are merged into it.
    Sealed {
        events: SharedBatch<K>,
        /// The number of keys with events. `events` can be longer, because an object that was
        /// removed and added again has two events.
        len: usize,
        resyncs: usize,
    },
}

/// Coalesced events that a handler has taken from a shared backlog.
pub(super) struct TakenEvents<K> {
    pub(super) events: SharedBatch<K>,
    /// The number of resyncs in these events.
    pub(super) resyncs: usize,
    /// The number of events that were merged into these events.
    pub(super) merged: u64,
    /// Whether the handler has now taken all events of the section. A section has the coalesced
    /// events of consecutive batches.
    pub(super) is_whole: bool,
}

impl<K> Sections<K> {
    pub(super) fn new(keeps_old: bool) -> Self {
        Self { sections: VecDeque::new(), keeps_old }
    }

    /// Merges the events of a batch into the last section, which has the coalesced events of the
    /// batches before. Adds a new section if `starts_section` is `true`, if there is no section, or
    /// if the last section is sealed: its events are fixed, because handlers share them.
    pub(super) fn push(
        &mut self,
        sequence: Sequence,
        batch: &EventBatch<K>,
        starts_section: bool,
        garbage: &mut Garbage<K>,
    ) {
        let is_open = |last: &Section<K>| matches!(last.content, Content::Open(_));
        if starts_section || !self.sections.back().is_some_and(is_open) {
            let content = Content::Open(Coalesced::new(self.keeps_old));
            self.sections.push_back(Section { start: sequence, content, merged: 0 });
        }
        if let Some(last) = self.sections.back_mut() {
            last.merge(batch, batch.events.len(), self.keeps_old, garbage);
        }
    }

    /// Seals the section that begins at `start`, if it exists: its events can then be shared, and
    /// no later events are merged into them. The cost depends on the number of its events.
    pub(super) fn seal(&mut self, start: Sequence) {
        if let Some(at) = self.find(start) {
            self.sections[at].seal(self.keeps_old);
        }
    }

    /// Takes the next events of a handler from the section that begins with the batch `start`. A
    /// section has the coalesced events of consecutive batches. Returns `None` if no section begins
    /// there.
    ///
    /// If several handlers need the section, it must have been [sealed](Self::seal), and the
    /// handler takes all its events. Otherwise the handler takes up to `limit` events, but at most
    /// [`PIECE`], and later events can still be merged into the remaining events. One event more is
    /// possible: an object that was removed and added again has two events, which are taken
    /// together.
    pub(super) fn take(&mut self, start: Sequence, limit: Option<usize>) -> Option<TakenEvents<K>> {
        let at = self.find(start)?;
        let section = &mut self.sections[at];
        match &mut section.content {
            Content::Sealed { events, resyncs, .. } => Some(TakenEvents {
                events: Arc::clone(events),
                resyncs: *resyncs,
                merged: section.merged,
                is_whole: true,
            }),
            Content::Open(coalesced) => {
                // I11: the handler holds a few events, and the rest is still one event per key.
                let events = coalesced.take(limit.map_or(PIECE, |limit| limit.min(PIECE)));
                let completes_initial_list = coalesced.take_initial_end();
                Some(TakenEvents {
                    resyncs: count_resyncs(&events),
                    merged: std::mem::take(&mut section.merged),
                    is_whole: coalesced.is_empty(),
                    events: Batch::shared(EventBatch { events, completes_initial_list }),
                })
            }
        }
    }

    /// Returns the sequence number of the first batch of the section that follows the section at
    /// `start`; `None` if no section follows.
    pub(super) fn after(&self, start: Sequence) -> Option<Sequence> {
        let next = self.sections.partition_point(|section| section.start <= start);
        self.sections.get(next).map(|section| section.start)
    }

    /// Counts the events of the sections whose first batch is in the range `from..to`, and the
    /// events that were merged into them.
    pub(super) fn count(&self, from: Sequence, to: Sequence) -> (usize, u64) {
        let own = self.sections.iter().filter(|section| (from..to).contains(&section.start));
        own.fold((0, 0), |(events, merged), section| (events + section.len(), merged + section.merged))
    }

    /// Removes all sections that begin before the batch `first`. No handler needs these sections.
    pub(super) fn trim(&mut self, first: Sequence, garbage: &mut Garbage<K>) {
        while self.sections.front().is_some_and(|section| section.start < first) {
            let unused = self.sections.pop_front();
            garbage.batches.extend(unused.map(|section| section.content.into_batch()));
        }
    }

    /// Returns the sequence number of the first batch of each section. A section has the coalesced
    /// events of consecutive batches, and a batch has the events of one transaction.
    pub(super) fn starts(&self) -> impl Iterator<Item = Sequence> {
        self.sections.iter().map(|section| section.start)
    }

    /// Merges each section that begins at one of `starts` into the section before it.
    pub(super) fn join(&mut self, starts: &[Sequence], garbage: &mut Garbage<K>) {
        let mut at = 1;
        while let Some(start) = self.sections.get(at).map(|section| section.start) {
            if starts.contains(&start) {
                self.join_at(at, garbage);
            } else {
                at += 1;
            }
        }
    }

    fn join_at(&mut self, at: usize, garbage: &mut Garbage<K>) {
        let Some(later) = self.sections.remove(at) else { return };
        let earlier = &mut self.sections[at - 1];
        earlier.merged += later.merged;
        let len = later.len();
        let later = later.content.into_batch();
        earlier.merge(&later, len, self.keeps_old, garbage);
        garbage.batches.push(later);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.sections.len()
    }

    fn find(&self, start: Sequence) -> Option<usize> {
        self.sections.binary_search_by_key(&start, |section| section.start).ok()
    }
}

impl<K> Section<K> {
    fn len(&self) -> usize {
        match &self.content {
            Content::Open(coalesced) => coalesced.len(),
            Content::Sealed { len, .. } => *len,
        }
    }

    /// Merges a batch that has `len` entries and directly follows the events of this section. If
    /// the section is sealed, later events can then be merged into it again.
    fn merge(&mut self, batch: &EventBatch<K>, len: usize, keeps_old: bool, garbage: &mut Garbage<K>) {
        let before = self.len();
        if let Content::Sealed { events, .. } = &self.content {
            let mut coalesced = Coalesced::new(keeps_old);
            coalesced.push_all(events, &mut garbage.events);
            let sealed = std::mem::replace(&mut self.content, Content::Open(coalesced));
            garbage.batches.push(sealed.into_batch());
        }
        if let Content::Open(coalesced) = &mut self.content {
            coalesced.push_all(batch, &mut garbage.events);
        }
        self.merged += (before + len - self.len()) as u64;
    }

    fn seal(&mut self, keeps_old: bool) {
        if let Content::Open(coalesced) = &mut self.content {
            let len = coalesced.len();
            let events = std::mem::replace(coalesced, Coalesced::new(keeps_old)).into_batch();
            let resyncs = count_resyncs(&events.events);
            self.content = Content::Sealed { events: Batch::shared(events), len, resyncs };
        }
    }
}

impl<K> Content<K> {
    fn into_batch(self) -> SharedBatch<K> {
        match self {
            Self::Open(coalesced) => Batch::shared(coalesced.into_batch()),
            Self::Sealed { events, .. } => events,
        }
    }
}

fn count_resyncs<K>(events: &[Event<K>]) -> usize {
    events.iter().filter(|event| matches!(event, Event::Resynced(_))).count()
}
