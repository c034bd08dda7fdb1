//! [`Inbox`]: what waits for one handler, as far as it has not been coalesced. No lock, no waiting.
//!
//! While a handler keeps up, shared batches wait here as they are. Once `threshold` events wait, the handler is behind: the
//! batches that follow are in the [shared backlog](super::shared_backlog), and here is only where its part of that begins
//! and ends (I11).

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use super::cursor::Cursor;
use super::shared_backlog::{Period, Sequence};
use crate::{Cached, Event, EventBatch, ObjectKey};

/// The objects that existed when a handler joined, to be handed out one by one from a snapshot.
pub(super) type Replay<K> = Box<dyn Iterator<Item = Cached<K>> + Send>;

/// What waits for a handler.
pub(super) struct Inbox<K> {
    replay: Option<Replay<K>>,
    /// Whether the handler is synced once it has seen the replay.
    replay_completes: bool,
    batches: VecDeque<SharedBatch<K>>,
    /// How many events wait in `batches`.
    queued: usize,
    /// From how many waiting events on the handler is behind; `None`: never.
    threshold: Option<usize>,
    /// Whether the handler has pending events that are coalesced already.
    has_pending: bool,
    shared: Option<SharedPart>,
}

/// The part of the shared backlog that a handler has to receive.
pub(super) struct SharedPart {
    pub(super) batches: Range<Sequence>,
    /// Whether the handler was due the resyncs of one of the batches.
    pub(super) wants_resyncs: bool,
}

/// A batch as it comes to all handlers that are due the same of it.
pub(super) type SharedBatch<K> = Arc<EventBatch<K>>;

/// What nobody needs any more, to be dropped where no lock is held (I8).
pub(super) struct Garbage<K> {
    pub(super) events: Vec<Event<K>>,
    pub(super) batches: Vec<SharedBatch<K>>,
    pub(super) periods: Vec<Arc<Period<K>>>,
}

impl<K> Garbage<K> {
    pub(super) fn none() -> Self {
        Self { events: Vec::new(), batches: Vec::new(), periods: Vec::new() }
    }
}

impl<K> Inbox<K> {
    pub(super) fn new(threshold: Option<usize>) -> Self {
        Self {
            replay: None,
            replay_completes: false,
            batches: VecDeque::new(),
            queued: 0,
            threshold: threshold.map(|threshold| threshold.max(1)),
            has_pending: false,
            shared: None,
        }
    }

    pub(super) fn threshold(&self) -> Option<usize> {
        self.threshold
    }

    /// Puts what existed before the handler joined ahead of all else.
    pub(super) fn start_with(&mut self, replay: Replay<K>, completes_initial_list: bool) {
        self.replay = Some(replay);
        self.replay_completes = completes_initial_list;
    }

    /// Whether the handler, which has `in_hand` other events still before it, has to receive a batch through the shared
    /// backlog.
    pub(super) fn needs_backlog(&self, batch: &EventBatch<K>, in_hand: usize) -> bool {
        // I11: what the handler has taken and not been called with waits as well.
        let is_full = |threshold| !batch.events.is_empty() && in_hand + self.queued >= threshold;
        self.is_behind() || self.threshold.is_some_and(is_full)
    }

    /// Adds a batch for a handler that is not behind.
    pub(super) fn push(&mut self, batch: SharedBatch<K>) {
        self.queued += batch.events.len();
        self.batches.push_back(batch);
    }

    /// Notes that this batch is in the shared backlog.
    pub(super) fn push_shared(&mut self, sequence: Sequence, wants_resyncs: bool) {
        let batches = sequence..sequence;
        let shared = self.shared.get_or_insert(SharedPart { batches, wants_resyncs });
        shared.batches.end = sequence + 1;
        shared.wants_resyncs |= wants_resyncs;
    }

    /// Whether some of the shared backlog is for this handler.
    pub(super) fn has_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// The keys that waiting events release.
    pub(super) fn released(&self) -> Vec<ObjectKey> {
        let released = |event: &Event<K>| match event {
            Event::Released(object) => Some(object.key().clone()),
            _ => None,
        };
        self.batches.iter().flat_map(|batch| &batch.events).filter_map(released).collect()
    }

    /// Returns whether so much waits that events are coalesced.
    pub(super) fn is_behind(&self) -> bool {
        self.has_pending || self.shared.is_some()
    }

    /// Notes whether the handler has pending events that are coalesced already.
    pub(super) fn set_pending(&mut self, has_pending: bool) {
        self.has_pending = has_pending;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.replay.is_none() && self.batches.is_empty() && !self.is_behind()
    }

    /// How many events wait here; those of a replay are not counted.
    pub(super) fn len(&self) -> usize {
        self.queued
    }

    /// Takes what is to be delivered next, with the number of its events; `None` if nothing waits, or it has to be
    /// coalesced first.
    pub(super) fn take(&mut self) -> Option<(Cursor<K>, usize)> {
        if let Some(replay) = self.replay.take() {
            // Alone, because its objects aren't counted: what waits behind it goes on waiting here.
            return Some((Cursor::over(Some(replay), self.replay_completes, VecDeque::new()), 0));
        }
        if self.is_behind() || self.batches.is_empty() {
            return None;
        }
        let (batches, count) = self.take_batches();
        Some((Cursor::over(None, false, batches), count))
    }

    /// Takes what has to be coalesced for a handler that is behind. It counts as pending from now on.
    pub(super) fn take_to_coalesce(&mut self) -> (VecDeque<SharedBatch<K>>, Option<SharedPart>) {
        if !self.is_behind() {
            // Another listener has coalesced everything, and it has been taken.
            return (VecDeque::new(), None);
        }
        self.has_pending = true;
        (self.take_batches().0, self.shared.take())
    }

    fn take_batches(&mut self) -> (VecDeque<SharedBatch<K>>, usize) {
        (std::mem::take(&mut self.batches), std::mem::take(&mut self.queued))
    }

    /// Takes everything, to be dropped elsewhere (I8), and the place in the shared backlog.
    pub(super) fn clear(&mut self) -> (Self, Option<SharedPart>) {
        let mut all = std::mem::replace(self, Self::new(self.threshold));
        let shared = all.shared.take();
        (all, shared)
    }
}
