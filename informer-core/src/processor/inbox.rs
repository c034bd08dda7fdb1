//! [`Inbox`]: the events that wait for one handler. This code takes no lock and never waits.
//!
//! A handler that is added to a running informer first receives a replay: an initial add for each
//! stored object.
//!
//! While the handler keeps up, the inbox contains batches, which all handlers share. Once
//! `threshold` events are waiting, further batches are added to the [shared
//! backlog](super::shared_backlog): the handler is then behind, and the inbox only records which of
//! these batches the handler has not taken.

use std::collections::VecDeque;

use super::batch::SharedBatch;
use super::cursor::Cursor;
use super::shared_backlog::SharedPart;
use crate::{Cached, Event, EventBatch};

/// The objects that existed when the handler was added. The handler receives these objects before
/// all other events.
pub(super) type Replay<K> = Box<dyn Iterator<Item = Cached<K>> + Send>;

/// The events that a handler has not taken yet: the replay, batches, and the handler's part of the
/// shared backlog.
pub(super) struct Inbox<K> {
    replay: Option<Replay<K>>,
    /// Whether the initial list was complete when the handler was added. If `false`, the rest of
    /// the list arrives in batches.
    replay_completes: bool,
    batches: VecDeque<SharedBatch<K>>,
    /// The number of events in `batches`.
    queued: usize,
    /// If this number of events or more is waiting, new events are coalesced; `None` means never.
    pub(super) threshold: Option<usize>,
    /// The batches in the shared backlog that the handler has not taken; `None` if there are none.
    pub(super) shared: Option<SharedPart>,
    /// The number of events that disappeared because events of the same object were merged. For
    /// example, if three updates became one, two events disappeared. Events that disappeared in the
    /// shared backlog are counted here once the handler takes the merged events.
    pub(super) merged: u64,
}

/// Events and batches that a shared backlog no longer needs. They must be dropped while no lock is
/// held, because destructors of objects are user code.
pub(super) struct Garbage<K> {
    pub(super) events: Vec<Event<K>>,
    pub(super) batches: Vec<SharedBatch<K>>,
}

impl<K> Garbage<K> {
    pub(super) fn none() -> Self {
        Self { events: Vec::new(), batches: Vec::new() }
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
            shared: None,
            merged: 0,
        }
    }

    pub(super) fn start_with(&mut self, replay: Replay<K>, completes_initial_list: bool) {
        self.replay = Some(replay);
        self.replay_completes = completes_initial_list;
    }

    /// Returns whether a batch must be added to the shared backlog instead of this inbox.
    /// `in_flight` is the number of events that the handler has taken and not finished.
    pub(super) fn needs_backlog(&self, batch: &EventBatch<K>, in_flight: usize) -> bool {
        // I11: events in flight count, too.
        let is_full = |threshold| !batch.events.is_empty() && in_flight + self.queued >= threshold;
        self.is_behind() || self.threshold.is_some_and(is_full)
    }

    /// Adds a batch to the inbox of a handler that keeps up: [`needs_backlog`](Self::needs_backlog)
    /// has returned `false` for this batch.
    pub(super) fn push(&mut self, batch: SharedBatch<K>) {
        self.queued += batch.events.len();
        self.batches.push_back(batch);
    }

    /// Returns whether the handler is so slow that new events are merged into waiting events of the
    /// same object.
    pub(super) fn is_behind(&self) -> bool {
        self.shared.is_some()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.replay.is_none() && self.batches.is_empty() && !self.is_behind()
    }

    /// Returns the number of waiting events, without those in the shared backlog and without the
    /// replay.
    pub(super) fn len(&self) -> usize {
        self.queued
    }

    /// Takes the replay or, if there is none, all batches, and returns their events with their
    /// number; `None` if there are no batches either. The objects of a replay are not counted.
    pub(super) fn take(&mut self) -> Option<(Cursor<K>, usize)> {
        if let Some(replay) = self.replay.take() {
            // The batches stay in the inbox, so that their events are counted while the replay is
            // delivered.
            return Some((Cursor::new(Some(replay), self.replay_completes, VecDeque::new()), 0));
        }
        if self.batches.is_empty() {
            return None;
        }
        let batches = std::mem::take(&mut self.batches);
        Some((Cursor::new(None, false, batches), std::mem::take(&mut self.queued)))
    }

    /// Takes the whole content, so that the caller can drop it while no lock is held.
    pub(super) fn clear(&mut self) -> Self {
        std::mem::replace(self, Self { merged: self.merged, ..Self::new(self.threshold) })
    }
}
