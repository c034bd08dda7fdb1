//! [`Cursor`]: how far a handler has come in what it has taken out of its inbox. No lock, no waiting.
//!
//! Handlers with a task and streams share it. Events of shared batches are lent, not cloned: with a hundred handlers,
//! counting references per event and handler is what would cost.

use std::collections::VecDeque;

use super::inbox::{Replay, SharedBatch};
use crate::Event;

/// What a handler has taken, in the order in which it is to be delivered.
pub(super) struct Cursor<K> {
    replay: Option<Replay<K>>,
    replay_completes: bool,
    batches: VecDeque<SharedBatch<K>>,
    /// How many events of the first batch are behind us.
    position: usize,
    own: std::vec::IntoIter<Event<K>>,
    own_completes: bool,
}

/// What comes next.
pub(super) enum Next<'a, K> {
    /// An event of a batch that other handlers have too.
    Shared(&'a Event<K>),
    /// An event for this handler alone: of its replay, or coalesced.
    Own(Event<K>),
    /// The handler has been told of everything that the first list, or the replay in its place, had (I6).
    InitialComplete,
}

impl<K> Cursor<K> {
    pub(super) fn over(
        replay: Option<Replay<K>>,
        replay_completes: bool,
        batches: VecDeque<SharedBatch<K>>,
    ) -> Self {
        let replay_completes = replay_completes && replay.is_some();
        Self {
            replay,
            replay_completes,
            batches,
            position: 0,
            own: Vec::new().into_iter(),
            own_completes: false,
        }
    }

    pub(super) fn over_own(events: Vec<Event<K>>, completes_initial_list: bool) -> Self {
        Self {
            own: events.into_iter(),
            own_completes: completes_initial_list,
            ..Self::over(None, false, VecDeque::new())
        }
    }

    /// Returns what comes next; `None` at the end. What is behind is dropped on the way.
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
                return self.batches.front().map(|batch| Next::Shared(&batch.events[at]));
            }
            self.position = 0;
            let done = self.batches.pop_front();
            if done.is_some_and(|batch| batch.completes_initial_list) {
                return Some(Next::InitialComplete);
            }
        }
        if let Some(event) = self.own.next() {
            return Some(Next::Own(event));
        }
        std::mem::take(&mut self.own_completes).then_some(Next::InitialComplete)
    }
}

impl<K> Default for Cursor<K> {
    fn default() -> Self {
        Self::over(None, false, VecDeque::new())
    }
}
