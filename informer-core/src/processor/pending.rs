//! [`Pending`]: the coalesced events of one handler that has fallen behind. No lock, no waiting.
//!
//! What the handler takes from the shared backlog is merged here, by the handler's own task and a slice at a time. Events are
//! handed out in small pieces: what stays here can still be merged, so a handler that is far behind holds one entry per key,
//! and not another one in its hand (I11).

use std::collections::VecDeque;
use std::sync::Arc;

use super::coalesce::{Coalesced, Merge};
use super::cursor::Cursor;
use super::inbox::{Garbage, SharedBatch};
use super::shared_backlog::Period;

/// How many coalesced events are handed out at a time.
const PIECE: usize = 64;

/// The pending events of one handler.
pub(super) struct Pending<K> {
    coalesced: Coalesced<K>,
    /// What is not among them yet, in order.
    incoming: VecDeque<Incoming<K>>,
    keeps_old: bool,
    merged: u64,
}

struct Incoming<K> {
    source: Source<K>,
    /// How many of its entries have been merged.
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

    /// Merges up to `limit` of the entries that have been added; returns whether that was all of them.
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

    /// Takes over a period as a whole if this handler alone needs it and nothing is pending before it.
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

    /// The number of pending events, of those that have been merged.
    pub(super) fn len(&self) -> usize {
        self.coalesced.len()
    }

    /// The number of events that have been merged into others so far.
    pub(super) fn merged(&self) -> u64 {
        self.merged
    }

    /// Takes the oldest events, with their number; `None` if there are none.
    pub(super) fn take(&mut self, threshold: Option<usize>) -> Option<(Cursor<K>, usize)> {
        if self.coalesced.is_empty() {
            return None;
        }
        let events = self.coalesced.take(threshold.map_or(PIECE, |threshold| threshold.min(PIECE)));
        let count = events.len();
        let cursor = Cursor::over_own(events, self.coalesced.take_initial_end());
        if self.coalesced.is_empty() {
            // A large table goes with the last entry.
            self.coalesced = Coalesced::new(self.keeps_old);
        }
        Some((cursor, count))
    }

    /// Takes everything, to be dropped elsewhere (I8).
    pub(super) fn clear(&mut self) -> Self {
        std::mem::replace(self, Self { merged: self.merged, ..Self::new(self.keeps_old) })
    }
}
