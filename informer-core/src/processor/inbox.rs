//! [`Inbox`]: what is waiting for one handler. No lock, no waiting.
//!
//! While a handler keeps up, shared batches wait here as they are. Once `threshold` events wait, they are coalesced per
//! key, and what comes next with them (I11). What is coalesced is handed out in small pieces: whatever stays here can
//! still be merged, so that a handler that is far behind costs one entry per key, and not another for what it has in
//! hand.

use std::collections::VecDeque;
use std::sync::Arc;

use super::coalesce::Coalesced;
use super::cursor::Cursor;
use crate::{Cached, Event, EventBatch};

/// The objects that existed when a handler joined, to be handed out one by one from a snapshot.
pub(super) type Replay<K> = Box<dyn Iterator<Item = Cached<K>> + Send>;

/// How many coalesced events are handed out at a time.
const PIECE: usize = 64;

/// What waits for a handler.
pub(super) struct Inbox<K> {
    replay: Option<Replay<K>>,
    /// Whether the handler is synced once it has seen the replay.
    replay_completes: bool,
    batches: VecDeque<SharedBatch<K>>,
    /// How many events wait in `batches`.
    queued: usize,
    coalesced: Option<Coalesced<K>>,
    /// From how many waiting events on further ones are coalesced; `None`: never.
    threshold: Option<usize>,
    /// Whether coalesced updates come with the state that the handler was told last.
    keeps_old: bool,
    merged: u64,
}

/// A batch as it comes to all handlers that are due the same of it.
pub(super) type SharedBatch<K> = Arc<EventBatch<K>>;

/// What nobody needs any more, to be dropped where no lock is held (I8).
pub(super) struct Garbage<K> {
    events: Vec<Event<K>>,
    batches: Vec<SharedBatch<K>>,
}

impl<K> Garbage<K> {
    pub(super) fn none() -> Self {
        Self { events: Vec::new(), batches: Vec::new() }
    }
}

impl<K> Inbox<K> {
    pub(super) fn new(threshold: Option<usize>, keeps_old: bool) -> Self {
        Self {
            replay: None,
            replay_completes: false,
            batches: VecDeque::new(),
            queued: 0,
            coalesced: None,
            threshold: threshold.map(|threshold| threshold.max(1)),
            keeps_old,
            merged: 0,
        }
    }

    /// Puts what existed before the handler joined ahead of all else.
    pub(super) fn start_with(&mut self, replay: Replay<K>, completes_initial_list: bool) {
        self.replay = Some(replay);
        self.replay_completes = completes_initial_list;
    }

    /// Adds a batch for this handler, which has `in_hand` other events still before it. What need not be told any more
    /// goes to `garbage` (I8).
    pub(super) fn push(&mut self, batch: SharedBatch<K>, in_hand: usize, garbage: &mut Garbage<K>) {
        let count = batch.events.len();
        if count == 0 && !batch.completes_initial_list {
            return;
        }
        // I11: what the handler has taken and not been called with waits as well.
        let full = count > 0 && self.threshold.is_some_and(|threshold| in_hand + self.queued >= threshold);
        if !full && self.coalesced.is_none() {
            self.queued += count;
            self.batches.push_back(batch);
            return;
        }
        self.queued = 0;
        self.batches.push_back(batch);
        let coalesced = self.coalesced.get_or_insert_with(|| Coalesced::new(self.keeps_old));
        // The first time that is all that waits.
        for batch in self.batches.drain(..) {
            for event in &batch.events {
                self.merged += u64::from(coalesced.push(event, &mut garbage.events));
            }
            if batch.completes_initial_list {
                coalesced.complete_initial();
            }
            garbage.batches.push(batch);
        }
        self.drop_empty();
    }

    /// Shared batches can wait again once nothing is coalesced before them.
    fn drop_empty(&mut self) {
        if self.coalesced.as_ref().is_some_and(Coalesced::is_empty) {
            self.coalesced = None;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.replay.is_none() && self.batches.is_empty() && self.coalesced.is_none()
    }

    /// How many events wait; those of a replay are not counted.
    pub(super) fn len(&self) -> usize {
        self.queued + self.coalesced.as_ref().map_or(0, Coalesced::len)
    }

    /// Says whether so much waits that events are coalesced.
    pub(super) fn is_coalescing(&self) -> bool {
        self.coalesced.is_some()
    }

    /// How many events have been merged into others so far.
    pub(super) fn merged(&self) -> u64 {
        self.merged
    }

    /// Takes what is to be delivered next, with the number of its events; `None` if nothing waits.
    pub(super) fn take(&mut self) -> Option<(Cursor<K>, usize)> {
        if let Some(replay) = self.replay.take() {
            // Alone, because its objects aren't counted: what waits behind it goes on waiting here.
            return Some((Cursor::over(Some(replay), self.replay_completes, VecDeque::new()), 0));
        }
        if !self.batches.is_empty() {
            let count = std::mem::take(&mut self.queued);
            let batches = std::mem::take(&mut self.batches);
            return Some((Cursor::over(None, false, batches), count));
        }
        let coalesced = self.coalesced.as_mut()?;
        let events = coalesced.take(self.threshold.map_or(PIECE, |threshold| threshold.min(PIECE)));
        let count = events.len();
        let cursor = Cursor::over_own(events, coalesced.take_initial_end());
        self.drop_empty();
        Some((cursor, count))
    }

    /// Takes everything, to be dropped elsewhere (I8).
    pub(super) fn clear(&mut self) -> Self {
        std::mem::replace(self, Self { merged: self.merged, ..Self::new(self.threshold, self.keeps_old) })
    }
}
