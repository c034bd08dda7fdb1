//! [`Sections`]: the coalesced events of a [shared backlog](super::shared_backlog). This code takes
//! no lock and never waits.
//!
//! A section contains the coalesced events of consecutive batches. The start of a section is the
//! sequence number of its first batch. A handler needs a section until the handler has taken all
//! events of the section.
//!
//! A section is open until it is sealed: new events are merged into the last section while that
//! section is open. Before several handlers take the same section, it is sealed, and later events
//! go to a new section. Two neighboring sections are merged again once every handler that needs the
//! later one also needs the earlier one.

use std::collections::VecDeque;
use std::sync::Arc;

use super::batch::{HandlerBatch, SharedBatch};
use super::coalesce::Coalesced;
use super::inbox::Garbage;
use super::shared_backlog::Sequence;
use crate::{Event, EventBatch};

/// The approximate maximum number of events that a handler takes at once from an open section.
// The events that stay in the section can still be merged with later events.
const MAX_TAKEN: usize = 64;

/// The sections of a shared backlog, in the order of their batches.
pub(super) struct Sections<K> {
    sections: VecDeque<Section<K>>,
    keeps_old: bool,
}

/// The events of consecutive batches, merged to at most one change per key.
// Merged batches cannot be separated again. So a batch is merged into a section only if every
// handler that needs the batch also needs the section's first batch.
struct Section<K> {
    start: Sequence,
    content: Content<K>,
    /// The number of events that disappeared because they were merged into other events of this
    /// section. [`take`](Sections::take) sets this number to zero if the section is open.
    merged: u64,
}

enum Content<K> {
    Open(Coalesced<K>),
    /// The events do not change, so that several handlers can share them.
    Sealed {
        events: SharedBatch<K>,
        resyncs: usize,
    },
}

/// Coalesced events that a slow handler has taken.
pub(super) struct TakenEvents<K> {
    pub(super) events: SharedBatch<K>,
    pub(super) resyncs: usize,
    /// The number of events that the handler skips, because they were merged into other events. The
    /// caller adds this number to the handler's total.
    pub(super) merged: u64,
    /// Whether the handler has now taken all events of the section.
    pub(super) ends_section: bool,
}

impl<K> Sections<K> {
    pub(super) fn new(keeps_old: bool) -> Self {
        Self { sections: VecDeque::new(), keeps_old }
    }

    /// Merges a batch into the last section. Starts a new section if `starts_section` is `true` or
    /// the last one is sealed. Moves replaced objects to `garbage`.
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
            last.merge(batch, self.keeps_old, garbage);
        }
    }

    /// Seals the section with this start, so that several handlers can take the same events. Does
    /// nothing if no section has this start.
    pub(super) fn seal(&mut self, start: Sequence) {
        if let Some(at) = self.find(start) {
            self.sections[at].seal(self.keeps_old);
        }
    }

    /// Takes events from the section with this start; `None` if there is no such section. From an
    /// open section, removes at most about [`MAX_TAKEN`] events, or `limit` events if that is less.
    /// Returns all events of a sealed section, which keeps them.
    ///
    /// If several handlers need the section, the caller must [seal](Self::seal) it first.
    pub(super) fn take(&mut self, start: Sequence, limit: Option<usize>) -> Option<TakenEvents<K>> {
        let at = self.find(start)?;
        let section = &mut self.sections[at];
        match &mut section.content {
            Content::Sealed { events, resyncs } => Some(TakenEvents {
                events: Arc::clone(events),
                resyncs: *resyncs,
                merged: section.merged,
                ends_section: true,
            }),
            Content::Open(coalesced) => {
                // I11: the handler holds a few events, and the rest is still one event per key. One
                // event more than the limit is possible; see `Coalesced::take`.
                let events = coalesced.take(limit.map_or(MAX_TAKEN, |limit| limit.min(MAX_TAKEN)));
                let completes_initial_list = coalesced.take_initial_end();
                Some(TakenEvents {
                    resyncs: count_resyncs(&events),
                    merged: std::mem::take(&mut section.merged),
                    ends_section: coalesced.is_empty(),
                    events: HandlerBatch::shared(EventBatch { events, completes_initial_list }),
                })
            }
        }
    }

    /// Returns the start of the next section, if any. `start` is the start of the current section.
    pub(super) fn after(&self, start: Sequence) -> Option<Sequence> {
        let next = self.sections.partition_point(|section| section.start <= start);
        self.sections.get(next).map(|section| section.start)
    }

    /// Returns the number of events in the sections whose start is in `from..to`, and the number of
    /// other events that were merged into these events.
    pub(super) fn count(&self, from: Sequence, to: Sequence) -> (usize, u64) {
        let own = self.sections.iter().filter(|section| (from..to).contains(&section.start));
        own.fold((0, 0), |(events, merged), section| (events + section.len(), merged + section.merged))
    }

    /// Moves the sections whose start is less than `first_needed` to `garbage`. The caller must
    /// ensure that no handler needs their events.
    pub(super) fn trim(&mut self, first_needed: Sequence, garbage: &mut Garbage<K>) {
        while self.sections.front().is_some_and(|section| section.start < first_needed) {
            let unused = self.sections.pop_front();
            garbage.batches.extend(unused.map(|section| section.content.into_batch()));
        }
    }

    /// Returns the start of each section: the sequence number of the section's first batch.
    pub(super) fn starts(&self) -> impl Iterator<Item = Sequence> {
        self.sections.iter().map(|section| section.start)
    }

    /// Merges each section whose start is in `starts` into the section before it. Moves events that
    /// merging has replaced to `garbage`, for the caller to drop.
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
        let later = later.content.into_batch();
        earlier.merge(&later, self.keeps_old, garbage);
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
    /// Returns the number of events in this section.
    fn len(&self) -> usize {
        match &self.content {
            Content::Open(coalesced) => coalesced.len(),
            Content::Sealed { events, .. } => events.events.len(),
        }
    }

    /// Merges the next batch into this section. A sealed section is opened: it first copies its
    /// events, because handlers share them.
    fn merge(&mut self, batch: &EventBatch<K>, keeps_old: bool, garbage: &mut Garbage<K>) {
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
        self.merged += (before + batch.events.len() - self.len()) as u64;
    }

    fn seal(&mut self, keeps_old: bool) {
        if let Content::Open(coalesced) = &mut self.content {
            let events = std::mem::replace(coalesced, Coalesced::new(keeps_old)).into_batch();
            let resyncs = count_resyncs(&events.events);
            self.content = Content::Sealed { events: HandlerBatch::shared(events), resyncs };
        }
    }
}

impl<K> Content<K> {
    fn into_batch(self) -> SharedBatch<K> {
        match self {
            Self::Open(coalesced) => HandlerBatch::shared(coalesced.into_batch()),
            Self::Sealed { events, .. } => events,
        }
    }
}

fn count_resyncs<K>(events: &[Event<K>]) -> usize {
    events.iter().filter(|event| matches!(event, Event::Resynced(_))).count()
}
