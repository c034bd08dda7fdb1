//! [`PublishGuard`]: a batch of events that is already in the mailboxes of the handlers. Dropping
//! the guard wakes the handlers. The guard holds no lock.
//!
//! A handler is slow while its waiting events are coalesced. Slow handlers share two backlogs: one
//! with the old objects of updates, and one without. Publishing only appends the batch to a
//! backlog. Dropping the guard merges the batch with the earlier events in the backlog, unless
//! another thread does this.

use std::fmt;
use std::task::Waker;

use smallvec::SmallVec;

use super::batch::{HandlerBatch, SharedBatch};
use super::inbox::Garbage;
use super::mailbox::Mailbox;
use super::shared_backlog::Backlogs;
use crate::{AnyObject, Event, EventBatch};

/// A batch of events that is already in the mailboxes of the handlers. Dropping the guard wakes the
/// handlers, coalesces the batch for slow handlers, and drops unused objects.
///
/// A caller that [publishes](super::SharedProcessor::publish) under a lock must release the lock
/// before it drops the guard, because wakers and destructors of objects can run any code.
pub struct PublishGuard {
    wakers: SmallVec<[Waker; 4]>,
    batch: SharedBatch<AnyObject>,
    /// The same batch without its resyncs, for handlers whose resync is not due. Created when the
    /// first of these handlers needs it.
    without_resyncs: Option<SharedBatch<AnyObject>>,
    has_resyncs: bool,
    any_wants_resyncs: bool,
    backlogs: Backlogs,
    /// Whether [`push_to`](Self::push_to) has appended the batch to a backlog, because at least one
    /// handler is slow.
    is_shared: bool,
}

impl PublishGuard {
    pub(super) fn new(batch: EventBatch<AnyObject>, backlogs: Backlogs) -> Self {
        let has_resyncs = batch.events.iter().any(|event| matches!(event, Event::Resynced(_)));
        Self {
            wakers: SmallVec::new(),
            batch: HandlerBatch::shared(batch),
            without_resyncs: None,
            has_resyncs,
            any_wants_resyncs: false,
            backlogs,
            is_shared: false,
        }
    }

    pub(super) fn has_resyncs(&self) -> bool {
        self.has_resyncs
    }

    /// Sets whether the resync of at least one handler is due. If not, no handler receives the
    /// resyncs of this batch. Must be called before the first [`push_to`](Self::push_to).
    pub(super) fn set_any_wants_resyncs(&mut self, any_wants_resyncs: bool) {
        self.any_wants_resyncs = any_wants_resyncs;
    }

    /// Adds the batch to the mailbox of one handler. If `wants_resyncs` is `false`, leaves out the
    /// resyncs of the batch.
    ///
    /// Exception: slow handlers share a backlog, so a slow handler can also receive resyncs that
    /// are due only for another handler.
    pub(super) fn push_to(&mut self, mailbox: &Mailbox<AnyObject>, wants_resyncs: bool) {
        let Self { batch, without_resyncs, .. } = self;
        if self.has_resyncs && !(wants_resyncs && self.any_wants_resyncs) {
            without_resyncs.get_or_insert_with(|| HandlerBatch::shared(batch.without_resyncs()));
        }
        let all = &*batch;
        let others = without_resyncs.as_ref().unwrap_or(all);
        let own = if wants_resyncs { all } else { others };
        let for_backlog = if self.any_wants_resyncs { all } else { others };
        let (waker, is_shared) = mailbox.push(own, for_backlog, wants_resyncs && self.has_resyncs);
        self.wakers.extend(waker);
        self.is_shared |= is_shared;
    }

    /// Declares that [`push_to`](Self::push_to) has been called for all handlers. Must be called
    /// before another batch is published.
    pub(super) fn finish(&self) {
        if self.is_shared {
            // Until this call, a backlog treats every batch that it receives as this batch, and
            // stores it only once.
            self.backlogs.finish();
        }
    }

    pub(super) fn batch(&self) -> &EventBatch<AnyObject> {
        &self.batch
    }
}

impl Drop for PublishGuard {
    fn drop(&mut self) {
        // I8: wakers and destructors run after the publisher has released its locks.
        self.wakers.drain(..).for_each(Waker::wake);
        if self.is_shared {
            self.backlogs.settle(&mut Garbage::none());
        }
    }
}

impl fmt::Debug for PublishGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublishGuard").field("events", &self.batch.events.len()).finish_non_exhaustive()
    }
}
