//! [`Published`]: what remains to be done after a batch has been published, when the publisher's locks are free.

use std::fmt;
use std::sync::Arc;
use std::task::Waker;

use smallvec::SmallVec;

use super::handover::{Handover, Parcel};
use super::inbox::{Garbage, SharedBatch};
use super::shared_backlog::SharedBacklog;
use crate::{Event, EventBatch};

/// The shared backlog of handlers that want old states, and that of those that forgo them.
pub(super) struct Backlogs<K> {
    keeping_old: Arc<SharedBacklog<K>>,
    forgoing_old: Arc<SharedBacklog<K>>,
}

impl<K> Backlogs<K> {
    pub(super) fn new() -> Self {
        Self {
            keeping_old: Arc::new(SharedBacklog::new(true)),
            forgoing_old: Arc::new(SharedBacklog::new(false)),
        }
    }

    pub(super) fn of(&self, keeps_old: bool) -> &Arc<SharedBacklog<K>> {
        if keeps_old { &self.keeping_old } else { &self.forgoing_old }
    }

    fn each(&self) -> [&SharedBacklog<K>; 2] {
        [&self.keeping_old, &self.forgoing_old]
    }
}

impl<K> Clone for Backlogs<K> {
    fn clone(&self) -> Self {
        Self { keeping_old: Arc::clone(&self.keeping_old), forgoing_old: Arc::clone(&self.forgoing_old) }
    }
}

/// What remains of a publication: when this is dropped, the handlers are woken, what handlers that are behind have to
/// receive is coalesced, and unused objects are dropped.
///
/// A caller that [publishes](super::SharedProcessor::publish) under a lock keeps this until the lock is free again: wakers
/// and drops of objects may run any code (I8).
pub struct Published<K> {
    wakers: SmallVec<[Waker; 4]>,
    batch: SharedBatch<K>,
    /// A batch of its own for those who are not due the resyncs, which they would hold in memory else (I11).
    without_resyncs: Option<SharedBatch<K>>,
    has_resyncs: bool,
    /// Whether any handler is due the resyncs.
    wants_resyncs: bool,
    backlogs: Backlogs<K>,
    /// Whether the batch is in one of them.
    is_shared: bool,
}

impl<K> Published<K> {
    pub(super) fn new(batch: EventBatch<K>, backlogs: Backlogs<K>) -> Self {
        let has_resyncs = batch.events.iter().any(|event| matches!(event, Event::Resynced(_)));
        Self {
            wakers: SmallVec::new(),
            batch: Arc::new(batch),
            without_resyncs: None,
            has_resyncs,
            wants_resyncs: false,
            backlogs,
            is_shared: false,
        }
    }

    pub(super) fn has_resyncs(&self) -> bool {
        self.has_resyncs
    }

    /// Sets whether any handler is due the resyncs, before the first one receives the batch.
    pub(super) fn set_wants_resyncs(&mut self, wants_resyncs: bool) {
        self.wants_resyncs = wants_resyncs;
    }

    /// Returns the batch to one handler.
    pub(super) fn hand_to(&mut self, handover: &Handover<K>, with_resyncs: bool) {
        let Self { batch, without_resyncs, .. } = self;
        if self.has_resyncs && !(with_resyncs && self.wants_resyncs) {
            without_resyncs.get_or_insert_with(|| Arc::new(batch.without_resyncs()));
        }
        let all = &*batch;
        let others = without_resyncs.as_ref().unwrap_or(all);
        let parcel = Parcel {
            batch: if with_resyncs { all } else { others },
            for_backlog: if self.wants_resyncs { all } else { others },
            wants_resyncs: with_resyncs && self.has_resyncs,
        };
        let (waker, is_shared) = handover.push(&parcel);
        self.wakers.extend(waker);
        self.is_shared |= is_shared;
    }

    /// Notes that all handlers have received the batch.
    pub(super) fn finish(&self) {
        if self.is_shared {
            self.backlogs.each().into_iter().for_each(SharedBacklog::finish);
        }
    }

    pub(super) fn batch(&self) -> &EventBatch<K> {
        &self.batch
    }
}

impl<K> Drop for Published<K> {
    fn drop(&mut self) {
        self.wakers.drain(..).for_each(Waker::wake);
        if !self.is_shared {
            return;
        }
        let mut garbage = Garbage::none();
        self.backlogs.each().into_iter().for_each(|backlog| backlog.settle(&mut garbage));
    }
}

impl<K> fmt::Debug for Published<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Published").field("events", &self.batch.events.len()).finish_non_exhaustive()
    }
}
