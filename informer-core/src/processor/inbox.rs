//! [`Inbox`]: what is waiting for one handler. No lock, no waiting.
//!
//! While a handler keeps up, shared batches wait here as they are. Once more than `threshold` events wait, what comes
//! next is coalesced per key behind them (I11).

use std::collections::VecDeque;
use std::sync::Arc;

use super::coalesce::Coalesced;
use crate::{Cached, Event, EventBatch};

/// The objects that existed when a handler joined, to be handed out one by one from a snapshot.
pub(super) type Replay<K> = Box<dyn Iterator<Item = Cached<K>> + Send>;

/// What waits for a handler.
pub(super) struct Inbox<K> {
    replay: Option<Replay<K>>,
    batches: VecDeque<SharedBatch<K>>,
    /// How many events wait in `batches`.
    queued: usize,
    coalesced: Option<Coalesced<K>>,
    /// How many events wait in `batches` at most, give or take one batch; `None`: no limit.
    threshold: Option<usize>,
    /// Whether the handler is synced once it has seen all that waits now.
    completes_initial_list: bool,
    merged: u64,
    pub(super) closed: bool,
}

pub(super) struct SharedBatch<K> {
    pub(super) batch: Arc<EventBatch<K>>,
    /// Whether the handler is due the resyncs in it.
    pub(super) with_resyncs: bool,
}

/// All that waited for a handler at one moment, in the order in which it is to be delivered.
pub(super) struct Delivery<K> {
    pub(super) replay: Option<Replay<K>>,
    pub(super) batches: VecDeque<SharedBatch<K>>,
    pub(super) coalesced: Option<Coalesced<K>>,
    pub(super) completes_initial_list: bool,
}

impl<K> Inbox<K> {
    pub(super) fn new(threshold: Option<usize>) -> Self {
        Self {
            replay: None,
            batches: VecDeque::new(),
            queued: 0,
            coalesced: None,
            threshold,
            completes_initial_list: false,
            merged: 0,
            closed: false,
        }
    }

    /// Puts what existed before the handler joined ahead of all else.
    pub(super) fn start_with(&mut self, replay: Replay<K>, completes_initial_list: bool) {
        self.replay = Some(replay);
        self.completes_initial_list = completes_initial_list;
    }

    /// Adds a batch of which so many events are for this handler.
    pub(super) fn push(&mut self, batch: &Arc<EventBatch<K>>, count: usize, with_resyncs: bool) {
        self.completes_initial_list |= batch.completes_initial_list;
        if count == 0 {
            return;
        }
        let full = self.threshold.is_some_and(|threshold| self.queued >= threshold.max(1));
        if !full && self.coalesced.is_none() {
            self.queued += count;
            self.batches.push_back(SharedBatch { batch: Arc::clone(batch), with_resyncs });
            return;
        }
        let coalesced = self.coalesced.get_or_insert_with(Coalesced::new);
        for event in &batch.events {
            if with_resyncs || !matches!(event, Event::Resynced(_)) {
                self.merged += u64::from(coalesced.push(event));
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.replay.is_none()
            && self.batches.is_empty()
            && self.coalesced.is_none()
            && !self.completes_initial_list
    }

    /// How many events wait; those of a replay are not counted.
    pub(super) fn len(&self) -> usize {
        self.queued + self.coalesced.as_ref().map_or(0, Coalesced::len)
    }

    /// How many events have been merged into others so far.
    pub(super) fn merged(&self) -> u64 {
        self.merged
    }

    pub(super) fn take(&mut self) -> Delivery<K> {
        self.queued = 0;
        Delivery {
            replay: self.replay.take(),
            batches: std::mem::take(&mut self.batches),
            coalesced: self.coalesced.take(),
            completes_initial_list: std::mem::take(&mut self.completes_initial_list),
        }
    }
}
