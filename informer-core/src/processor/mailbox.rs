//! [`Mailbox`]: passes published batches to one handler or stream, which is the consumer.
//!
//! The publisher pushes, one consumer takes, and any thread can close the mailbox. A push wakes the
//! consumer at most once. The consumer sleeps only if it has found the inbox empty under the lock.
//! Lock order: `pending`, `state`, then the locks of [`super::shared_backlog`]. The publisher never
//! takes `pending`. No user code runs under these locks: no waker, and no destructor of an object.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::cursor::Cursor;
use super::inbox::{Garbage, Inbox, Replay, SharedBatch};
use super::pending::Pending;
use super::shared_backlog::SharedBacklog;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The maximum number of events that a handler's task coalesces before it yields.
const SLICE: usize = 4_096;

/// The waiting events of one consumer, with their locks: an [`Inbox`], and the events that the
/// consumer has coalesced.
pub(super) struct Mailbox<K> {
    /// The events that the consumer has coalesced.
    pending: Mutex<Pending<K>>,
    state: Mutex<State<K>>,
    shared: Arc<SharedBacklog<K>>,
    /// The number of events that the consumer has taken and not finished yet.
    in_flight: AtomicUsize,
    /// A copy of `State::closed` that can be read without the lock.
    closed: AtomicBool,
}

struct State<K> {
    inbox: Inbox<K>,
    /// The waker of the consumer, while the consumer sleeps.
    waker: Option<Waker>,
    closed: bool,
}

/// The backlog of a handler: the events that the handler has not processed.
#[derive(Clone, Copy)]
pub(super) struct Backlog {
    /// The number of waiting events, including the event of the current call.
    pub(super) pending: usize,
    pub(super) is_coalescing: bool,
    pub(super) merged: u64,
}

/// The outcome of an attempt to take events.
enum Taken<K> {
    Closed,
    Events(Cursor<K>),
    /// The consumer must coalesce the backlog before it can take events.
    IsBehind,
    Nothing,
}

impl<K> Mailbox<K> {
    pub(super) fn new(threshold: Option<usize>, keeps_old: bool, shared: Arc<SharedBacklog<K>>) -> Self {
        let state = State { inbox: Inbox::new(threshold), waker: None, closed: false };
        Self {
            pending: Mutex::new(Pending::new(keeps_old)),
            state: Mutex::new(state),
            shared,
            in_flight: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
        }
    }

    /// Sets the objects that existed when the handler was added, which are delivered first. Must be
    /// called before the first take.
    pub(super) fn start_with(&self, replay: Replay<K>, completes_initial_list: bool) {
        self.state.lock().inbox.start_with(replay, completes_initial_list);
    }

    /// Adds `batch` to the inbox; for a slow handler, adds `for_backlog` to the shared backlog
    /// instead. Does nothing if the mailbox is closed. Returns the consumer's waker if the consumer
    /// sleeps, and whether the shared backlog was used.
    ///
    /// All slow handlers share `for_backlog`; a handler receives the resyncs of that batch only if
    /// `wants_resyncs` is `true`. The cost of a push does not depend on the handler's lag.
    pub(super) fn push(
        &self,
        batch: &SharedBatch<K>,
        for_backlog: &SharedBatch<K>,
        wants_resyncs: bool,
    ) -> (Option<Waker>, bool) {
        let mut state = self.state.lock();
        if state.closed || (batch.events.is_empty() && !batch.completes_initial_list) {
            return (None, false);
        }
        let inbox = &mut state.inbox;
        let is_shared = inbox.needs_backlog(batch, self.in_flight.load(Ordering::Relaxed));
        if is_shared {
            let sequence = if inbox.has_shared() {
                self.shared.stage(for_backlog)
            } else {
                self.shared.join(for_backlog, (!inbox.is_behind()).then(|| inbox.released()))
            };
            inbox.push_shared(sequence, wants_resyncs);
        } else {
            inbox.push(Arc::clone(batch));
        }
        let waker = if state.inbox.is_empty() { None } else { state.waker.take() };
        (waker, is_shared)
    }

    /// Waits for events and takes the next events; `None` once the mailbox is closed.
    pub(super) fn poll_take(&self, cx: &mut Context<'_>) -> Poll<Option<Cursor<K>>> {
        loop {
            match self.take_or_sleep(cx) {
                Taken::Closed => return Poll::Ready(None),
                Taken::Events(cursor) => return Poll::Ready(Some(cursor)),
                Taken::Nothing => return Poll::Pending,
                Taken::IsBehind => {}
            }
            let (taken, is_all) = self.coalesce(SLICE, |pending, is_all, threshold| {
                let taken = if is_all { pending.take(threshold) } else { None };
                self.in_flight.store(taken.as_ref().map_or(0, |(_, count)| *count), Ordering::Relaxed);
                (taken, is_all)
            });
            if let Some((cursor, _)) = taken {
                return Poll::Ready(Some(cursor));
            }
            if !is_all {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
    }

    fn take_or_sleep(&self, cx: &Context<'_>) -> Taken<K> {
        let mut waker = Some(cx.waker().clone());
        let mut state = self.state.lock();
        if state.closed {
            return Taken::Closed;
        }
        let taken = state.inbox.take();
        self.in_flight.store(taken.as_ref().map_or(0, |(_, count)| *count), Ordering::Relaxed);
        let outcome = match taken {
            Some((cursor, _)) => Taken::Events(cursor),
            None if state.inbox.is_behind() => Taken::IsBehind,
            None => {
                std::mem::swap(&mut state.waker, &mut waker);
                Taken::Nothing
            }
        };
        // I8: the unused waker is dropped after the lock is released.
        drop(state);
        outcome
    }

    /// Coalesces up to `limit` events of the backlog. Then calls `then` with three arguments: the
    /// pending events, whether the whole backlog has been coalesced, and the threshold.
    fn coalesce<R>(&self, limit: usize, then: impl FnOnce(&mut Pending<K>, bool, Option<usize>) -> R) -> R {
        let mut garbage = Garbage::none();
        let mut pending = self.pending.lock();
        let (batches, shared, threshold) = {
            let mut state = self.state.lock();
            let (batches, shared) = state.inbox.take_to_coalesce();
            (batches, shared, state.inbox.threshold())
        };
        pending.add_batches(batches);
        if let Some(part) = shared {
            let periods = self.shared.take(part.batches.start, part.batches.end, &mut garbage);
            pending.add_periods(periods, part.wants_resyncs);
        }
        let is_all = pending.merge(limit, &mut garbage);
        let outcome = then(&mut pending, is_all, threshold);
        self.note_pending(!pending.is_empty());
        // I8: objects are dropped after the lock is released.
        drop(pending);
        drop(garbage);
        outcome
    }

    fn note_pending(&self, has_pending: bool) {
        let mut state = self.state.lock();
        let was_behind = state.inbox.is_behind();
        let has_pending = has_pending && !state.closed;
        state.inbox.set_pending(has_pending);
        if was_behind && !state.inbox.is_behind() && !state.closed {
            self.shared.caught_up();
        }
    }

    /// Counts one event in flight as finished. Only the consumer calls this function, so a load and
    /// a store suffice instead of an atomic subtraction.
    pub(super) fn finish_one(&self) {
        let left = self.in_flight.load(Ordering::Relaxed).saturating_sub(1);
        self.in_flight.store(left, Ordering::Relaxed);
    }

    /// Resets the number of events in flight, because the consumer has ended.
    pub(super) fn consumer_ended(&self) {
        self.in_flight.store(0, Ordering::Relaxed);
    }

    /// Closes the mailbox: drops the backlog and wakes the consumer. Returns whether the mailbox
    /// was open.
    pub(super) fn close(&self) -> bool {
        if self.closed.swap(true, Ordering::AcqRel) {
            return false;
        }
        let (was_behind, (dropped, shared), waker) = {
            let mut state = self.state.lock();
            state.closed = true;
            (state.inbox.is_behind(), state.inbox.clear(), state.waker.take())
        };
        waker.into_iter().for_each(Waker::wake);
        let pending = self.pending.lock().clear();
        let mut garbage = Garbage::none();
        if let Some(part) = shared {
            self.shared.leave(part.batches.start, &mut garbage);
        }
        if was_behind {
            self.shared.caught_up();
        }
        drop((dropped, pending, garbage));
        true
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Returns whether the handler's events are being coalesced, because its backlog has reached
    /// the threshold.
    pub(super) fn is_behind(&self) -> bool {
        self.state.lock().inbox.is_behind()
    }

    /// Counts the backlog of the handler, and leaves it as it is: a reader of the statistics must not
    /// do the work of the handler's task.
    pub(super) fn backlog(&self) -> Backlog {
        let mut garbage = Garbage::none();
        let pending = self.pending.lock();
        let (queued, shared, is_coalescing) = {
            let state = self.state.lock();
            (state.inbox.len(), state.inbox.shared_batches(), state.inbox.is_behind())
        };
        // The handler's task takes its part of the shared backlog under the lock `pending`, so each
        // event is counted once.
        let (shared, merged) =
            shared.map_or((0, 0), |part| self.shared.count(part.start, part.end, &mut garbage));
        let backlog = Backlog {
            pending: queued + pending.len() + shared + self.in_flight.load(Ordering::Relaxed),
            is_coalescing,
            merged: pending.merged() + merged,
        };
        // I8: objects are dropped after the lock is released.
        drop(pending);
        drop(garbage);
        backlog
    }

    /// Coalesces the whole backlog, as the handler's task does in slices.
    #[cfg(test)]
    pub(super) fn coalesce_all(&self) {
        if self.is_behind() {
            self.coalesce(usize::MAX, |_, _, _| ());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cached, Event, EventBatch, ObjectKey};

    fn push(mailbox: &Mailbox<u64>, name: &str) -> bool {
        let object = Cached::from_parts(ObjectKey::cluster_scoped(name), 1.into(), Default::default(), 0);
        let events = vec![Event::Updated { old: object.clone(), new: object }];
        let batch = Arc::new(EventBatch { events, completes_initial_list: false });
        let (_, is_shared) = mailbox.push(&batch, &batch, false);
        mailbox.shared.finish();
        is_shared
    }

    #[test]
    fn i11_handler_that_catches_up_uses_its_inbox_again() {
        let mailbox = Mailbox::<u64>::new(Some(1), true, Arc::new(SharedBacklog::new(true)));
        assert!(!push(&mailbox, "a") && push(&mailbox, "a"));
        let waker = futures::task::noop_waker();
        let mut context = Context::from_waker(&waker);
        assert!(mailbox.poll_take(&mut context).is_ready());
        assert!(!mailbox.is_behind());
        mailbox.finish_one();
        assert!(!push(&mailbox, "a"), "the handler is not behind, and one event is in its inbox");
        assert!(mailbox.poll_take(&mut context).is_ready());
    }

    #[test]
    fn reading_the_backlog_leaves_it_as_it_is() {
        let mailbox = Mailbox::<u64>::new(Some(2), true, Arc::new(SharedBacklog::new(true)));
        for name in ["a", "b", "a", "a", "c"] {
            push(&mailbox, name);
        }
        let mut garbage = Garbage::none();
        mailbox.shared.settle(&mut garbage);
        let parts = || {
            let (pending, state) = (mailbox.pending.lock().len(), mailbox.state.lock());
            (pending, state.inbox.len(), state.inbox.shared_batches())
        };
        let before = parts();
        assert_eq!(
            before,
            (0, 2, Some(0..3)),
            "two events in the inbox, three batches in the shared backlog"
        );
        for _ in 0..3 {
            let Backlog { pending, merged, is_coalescing } = mailbox.backlog();
            assert_eq!((pending, merged, is_coalescing), (4, 1, true));
        }
        assert_eq!(parts(), before);
        mailbox.coalesce_all();
        let Backlog { pending, merged, .. } = mailbox.backlog();
        assert_eq!((pending, merged), (3, 2), "one event per key");
    }
}
