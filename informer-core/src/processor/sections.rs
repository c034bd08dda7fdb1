//! [`Sections`]: the coalesced events of a [shared backlog](super::shared_backlog). This code takes
//! no lock and never waits.
//!
//! A section has the events of consecutive batches. It is open while no handler has taken it as a
//! whole: further events are merged into it. Then it is sealed, and handlers share its events.

use std::collections::VecDeque;
use std::sync::Arc;

use super::coalesce::{Coalesced, Released};
use super::inbox::{Garbage, SharedBatch};
use super::shared_backlog::Sequence;
use crate::{Event, EventBatch};

/// The maximum number of events that the only reader of a section takes at once.
const PIECE: usize = 64;

/// All sections of one shared backlog, in order.
pub(super) struct Sections<K> {
    sections: VecDeque<Section<K>>,
    released: Released,
    keeps_old: bool,
}

/// The coalesced events of consecutive batches. The backlog of a handler can begin with the first
/// of these batches, but not with a later one.
struct Section<K> {
    start: Sequence,
    content: Content<K>,
    /// The number of events that were merged into other events.
    merged: u64,
}

enum Content<K> {
    Open(Coalesced<K>),
    /// Handlers have taken these events, and other handlers still need them.
    Sealed {
        events: SharedBatch<K>,
        /// The number of entries that the events had while the section was open.
        len: usize,
    },
}

/// Events that a handler has taken from a section.
pub(super) struct TakenEvents<K> {
    pub(super) events: SharedBatch<K>,
    /// The number of events that were merged into these events.
    pub(super) merged: u64,
    /// Whether the handler has taken the whole section.
    pub(super) is_whole: bool,
}

impl<K> Sections<K> {
    pub(super) fn new(keeps_old: bool) -> Self {
        Self { sections: VecDeque::new(), released: Released::new(), keeps_old }
    }

    /// Adds the events of a batch to the last section, or to a new section if `starts_section` is
    /// `true` or the last section is sealed.
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
        let Self { sections, released, keeps_old } = self;
        if let Some(last) = sections.back_mut() {
            last.merge(batch, batch.events.len(), released, *keeps_old, garbage);
        }
        let keys = batch.events.iter().filter_map(|event| match event {
            Event::Released(object) => Some(object.key().clone()),
            _ => None,
        });
        released.extend(keys);
    }

    /// Adds keys of releases that a slow handler has not received.
    pub(super) fn add_released(&mut self, keys: impl IntoIterator<Item = crate::ObjectKey>) {
        self.released.extend(keys);
    }

    /// Takes the next events of a handler whose backlog begins with the section at `start`. Returns
    /// `None` if there is no such section.
    ///
    /// If the handler is the only one that needs the section, it takes up to `limit` events, and
    /// later events can still be merged into the others. Otherwise it takes the whole section,
    /// which is then sealed.
    pub(super) fn take(
        &mut self,
        start: Sequence,
        is_only_reader: bool,
        limit: Option<usize>,
    ) -> Option<TakenEvents<K>> {
        let at = self.find(start)?;
        let section = &mut self.sections[at];
        if is_only_reader && let Content::Open(coalesced) = &mut section.content {
            // I11: the handler holds a few events, and the rest is still one event per key.
            let events = coalesced.take(limit.map_or(PIECE, |limit| limit.min(PIECE)));
            let completes_initial_list = coalesced.take_initial_end();
            let is_whole = coalesced.is_empty();
            let merged = std::mem::take(&mut section.merged);
            let events = Arc::new(EventBatch { events, completes_initial_list });
            return Some(TakenEvents { events, merged, is_whole });
        }
        Some(TakenEvents { events: section.seal(self.keeps_old), merged: section.merged, is_whole: true })
    }

    /// Returns the start of the section after the section at `start`.
    pub(super) fn after(&self, start: Sequence) -> Option<Sequence> {
        let next = self.sections.partition_point(|section| section.start <= start);
        self.sections.get(next).map(|section| section.start)
    }

    /// Counts the events of the sections that begin with the batches `from..to`, and the events
    /// that were merged into them.
    pub(super) fn count(&self, from: Sequence, to: Sequence) -> (usize, u64) {
        let own = self.sections.iter().filter(|section| (from..to).contains(&section.start));
        own.fold((0, 0), |(events, merged), section| (events + section.len(), merged + section.merged))
    }

    /// Removes the sections before `first`, which no handler needs. If no handler is behind
    /// (`is_unused`), also forgets the keys of pending releases.
    pub(super) fn trim(&mut self, first: Sequence, is_unused: bool, garbage: &mut Garbage<K>) {
        while self.sections.front().is_some_and(|section| section.start < first) {
            let unused = self.sections.pop_front();
            garbage.batches.extend(unused.map(|section| section.content.into_batch()));
        }
        if is_unused {
            self.released.clear();
        }
    }

    /// Merges each section into the one before it, unless `is_boundary` is `true` for its start.
    pub(super) fn join(&mut self, is_boundary: impl Fn(Sequence) -> bool, garbage: &mut Garbage<K>) {
        for at in (1..self.sections.len()).rev() {
            if !is_boundary(self.sections[at].start) {
                self.join_at(at, garbage);
            }
        }
    }

    fn join_at(&mut self, at: usize, garbage: &mut Garbage<K>) {
        let Some(later) = self.sections.remove(at) else { return };
        let Self { sections, released, keeps_old } = self;
        let earlier = &mut sections[at - 1];
        earlier.merged += later.merged;
        let len = later.len();
        let later = later.content.into_batch();
        earlier.merge(&later, len, released, *keeps_old, garbage);
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

    /// Merges a batch that has `len` entries and directly follows the events of this section. A
    /// sealed section is opened again.
    fn merge(
        &mut self,
        batch: &EventBatch<K>,
        len: usize,
        released: &Released,
        keeps_old: bool,
        garbage: &mut Garbage<K>,
    ) {
        let before = self.len();
        if let Content::Sealed { events, .. } = &self.content {
            let mut coalesced = Coalesced::new(keeps_old);
            coalesced.push_all(events, released, &mut garbage.events);
            let sealed = std::mem::replace(&mut self.content, Content::Open(coalesced));
            garbage.batches.push(sealed.into_batch());
        }
        if let Content::Open(coalesced) = &mut self.content {
            coalesced.push_all(batch, released, &mut garbage.events);
        }
        self.merged += (before + len - self.len()) as u64;
    }

    /// Returns the events, and keeps them for the other handlers that need this section.
    fn seal(&mut self, keeps_old: bool) -> SharedBatch<K> {
        let len = self.len();
        let content = std::mem::replace(&mut self.content, Content::Open(Coalesced::new(keeps_old)));
        let events = content.into_batch();
        self.content = Content::Sealed { events: Arc::clone(&events), len };
        events
    }
}

impl<K> Content<K> {
    fn into_batch(self) -> SharedBatch<K> {
        match self {
            Self::Open(coalesced) => Arc::new(coalesced.into_batch()),
            Self::Sealed { events, .. } => events,
        }
    }
}
