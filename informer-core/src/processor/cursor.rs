//! [`Cursor`]: iterates over the events that a handler has taken from its mailbox. This code takes
//! no lock and never waits.
//!
//! A cursor returns references to the events of shared batches. With a hundred handlers, cloning
//! the events would be the largest cost, because each clone changes the reference count of an
//! object, which all handlers share.

use std::collections::VecDeque;

use super::batch::SharedBatch;
use super::inbox::Replay;
use crate::Event;

pub(super) struct Cursor<K> {
    replay: Option<Replay<K>>,
    replay_completes: bool,
    batches: VecDeque<SharedBatch<K>>,
    /// The index of the next event in the first batch of `batches`.
    position: usize,
    skips_resyncs: bool,
}

pub(super) enum Next<'a, K> {
    /// A shared batch, and the index of an event in it.
    Shared(&'a SharedBatch<K>, usize),
    /// An event that only the cursor's handler receives: the add of an object that existed when the
    /// handler was added.
    Own(Event<K>),
    /// The end of the initial objects. These are the objects of the informer's initial list, or the
    /// objects in the store if the handler was added after that list.
    InitialComplete,
}

impl<K> Cursor<K> {
    pub(super) fn new(
        replay: Option<Replay<K>>,
        replay_completes: bool,
        batches: VecDeque<SharedBatch<K>>,
    ) -> Self {
        let replay_completes = replay_completes && replay.is_some();
        Self { replay, replay_completes, batches, position: 0, skips_resyncs: false }
    }

    /// Returns a cursor over events that a slow handler has taken from the shared backlog. If
    /// `wants_resyncs` is `false`, the cursor skips all resyncs.
    pub(super) fn of_backlog(events: SharedBatch<K>, wants_resyncs: bool) -> Self {
        Self { skips_resyncs: !wants_resyncs, ..Self::new(None, false, VecDeque::from([events])) }
    }

    /// Returns the next event, or [`Next::InitialComplete`]; `None` if nothing is left. Drops each
    /// batch after the last event of the batch.
    pub(super) fn next(&mut self) -> Option<Next<'_, K>> {
        // I5: the replay first.
        if let Some(replay) = &mut self.replay {
            if let Some(object) = replay.next() {
                return Some(Next::Own(Event::Added { object, is_in_initial_list: true }));
            }
            self.replay = None;
            if std::mem::take(&mut self.replay_completes) {
                return Some(Next::InitialComplete);
            }
        }
        while let Some(batch) = self.batches.front() {
            let at = self.position;
            if at < batch.events.len() {
                self.position += 1;
                if self.skips_resyncs && matches!(batch.events[at], Event::Resynced(_)) {
                    continue;
                }
                return self.batches.front().map(|batch| Next::Shared(batch, at));
            }
            self.position = 0;
            let done = self.batches.pop_front();
            if done.is_some_and(|batch| batch.completes_initial_list) {
                return Some(Next::InitialComplete);
            }
        }
        None
    }
}

impl<K> Default for Cursor<K> {
    fn default() -> Self {
        Self::new(None, false, VecDeque::new())
    }
}
