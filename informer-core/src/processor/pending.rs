//! [`Pending`]: the coalesced events of one slow handler. This code takes no lock and never waits.
//!
//! The task of the handler merges the handler's part of the shared backlog into these events, in
//! slices. The task takes the events in small pieces, because later events can still be merged into
//! the remaining ones. So even a very slow handler has about one entry per key.

use std::collections::VecDeque;
use std::sync::Arc;

use super::coalesce::{Coalesced, Merge};
use super::cursor::Cursor;
use super::inbox::{Garbage, SharedBatch};
use super::shared_backlog::Period;

/// The maximum number of coalesced events that a handler takes at once.
const PIECE: usize = 64;

/// The pending events of one handler.
pub(super) struct Pending<K> {
    coalesced: Coalesced<K>,
    /// Events that have not been coalesced yet, in order.
    incoming: VecDeque<Incoming<K>>,
    keeps_old: bool,
    merged: u64,
}

struct Incoming<K> {
    source: Source<K>,
    /// The number of entries of `source` that have been coalesced.
    at: usize,
}

enum Source<K> {
    Batch(SharedBatch<K>),
    Period { period: Arc<Period<K>>, wants_resyncs: bool },
}

impl<K> Source<K> {
    fn len(&self) -> usize {
        match self {
            Self::Batch(batch) => batch.events.len(),
            Self::Period { period, .. } => period.coalesced.places(),
        }
    }

    fn discard(self, garbage: &mut Garbage<K>) {
        match self {
            Self::Batch(batch) => garbage.batches.push(batch),
            Self::Period { period, .. } => garbage.periods.push(period),
        }
    }
}

impl<K> Pending<K> {
    pub(super) fn new(keeps_old: bool) -> Self {
        Self { coalesced: Coalesced::new(keeps_old), incoming: VecDeque::new(), keeps_old, merged: 0 }
    }

    pub(super) fn add_batches(&mut self, batches: impl IntoIterator<Item = SharedBatch<K>>) {
        self.incoming
            .extend(batches.into_iter().map(|batch| Incoming { source: Source::Batch(batch), at: 0 }));
    }

    pub(super) fn add_periods(&mut self, periods: Vec<Arc<Period<K>>>, wants_resyncs: bool) {
        let source = |period| Source::Period { period, wants_resyncs };
        self.incoming.extend(periods.into_iter().map(|period| Incoming { source: source(period), at: 0 }));
    }

    /// Coalesces up to `limit` of the entries in `incoming`. Returns whether all of these entries
    /// have been coalesced.
    pub(super) fn merge(&mut self, mut limit: usize, garbage: &mut Garbage<K>) -> bool {
        while let Some(Incoming { source, at }) = self.incoming.pop_front() {
            let Some(source) = self.adopt(source, at) else { continue };
            let end = source.len().min(at.saturating_add(limit));
            self.merge_part(&source, at, end, garbage);
            limit -= end - at;
            if end < source.len() {
                self.incoming.push_front(Incoming { source, at: end });
                return false;
            }
            source.discard(garbage);
        }
        true
    }

    /// Takes over a [`Period`] without copying it, if only this handler needs the period and no
    /// event is pending. Otherwise returns `source`.
    fn adopt(&mut self, source: Source<K>, at: usize) -> Option<Source<K>> {
        match source {
            Source::Period { period, wants_resyncs }
                if at == 0 && self.coalesced.is_empty() && !period.coalesced.has_special() =>
            {
                let adopted = Arc::try_unwrap(period).map(|period| {
                    self.merged += period.merged;
                    self.coalesced = period.coalesced;
                });
                adopted.err().map(|period| Source::Period { period, wants_resyncs })
            }
            source => Some(source),
        }
    }

    fn merge_part(&mut self, source: &Source<K>, at: usize, end: usize, garbage: &mut Garbage<K>) {
        let is_last = end == source.len();
        match source {
            Source::Batch(batch) => {
                let merge = Merge::Handler { wants_resyncs: true };
                for event in &batch.events[at..end] {
                    self.merged += u64::from(self.coalesced.push(event, merge, &mut garbage.events));
                }
                if is_last && batch.completes_initial_list {
                    self.coalesced.complete_initial();
                }
            }
            Source::Period { period, wants_resyncs } => {
                let merge = Merge::Handler { wants_resyncs: *wants_resyncs };
                self.merged += self.coalesced.absorb(&period.coalesced, at..end, merge, &mut garbage.events);
                if is_last {
                    self.merged += period.merged;
                }
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.coalesced.is_empty() && self.incoming.is_empty()
    }

    /// Returns the number of events, including those that have not been coalesced yet.
    pub(super) fn len(&self) -> usize {
        let incoming = self.incoming.iter().map(|incoming| incoming.source.len() - incoming.at);
        self.coalesced.len() + incoming.sum::<usize>()
    }

    /// Returns the number of events that have been merged into other events so far.
    pub(super) fn merged(&self) -> u64 {
        let of_period = |incoming: &Incoming<K>| match &incoming.source {
            Source::Batch(_) => 0,
            Source::Period { period, .. } => period.merged,
        };
        self.merged + self.incoming.iter().map(of_period).sum::<u64>()
    }

    /// Takes about [`PIECE`] of the oldest events, or `threshold` if that is less. Returns the
    /// events and their number. Returns `None` if neither an event nor the end of the initial list
    /// is pending.
    pub(super) fn take(&mut self, threshold: Option<usize>) -> Option<(Cursor<K>, usize)> {
        if self.coalesced.is_empty() {
            return None;
        }
        // I11: later events can still be merged into the events that remain.
        let events = self.coalesced.take(threshold.map_or(PIECE, |threshold| threshold.min(PIECE)));
        let count = events.len();
        let cursor = Cursor::from_own_events(events, self.coalesced.take_initial_end());
        if self.coalesced.is_empty() {
            // The new value replaces a table that can be large.
            self.coalesced = Coalesced::new(self.keeps_old);
        }
        Some((cursor, count))
    }

    /// Takes all events, so that the caller can drop them while no lock is held.
    pub(super) fn clear(&mut self) -> Self {
        std::mem::replace(self, Self { merged: self.merged, ..Self::new(self.keeps_old) })
    }
}
