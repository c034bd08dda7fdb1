//! [`Handover`]: the place where what is published passes to one handler.
//!
//! One side pushes, any number of others may close; one consumer takes. It is woken once per batch at most, and sleeps
//! only after it has seen the inbox empty under the lock. Lock order: `pending`, `state`, then those of the shared backlog
//! ([`super::shared_backlog`]); the publisher never takes `pending`. No user code runs under them, neither wakers nor drops
//! of objects (I8).

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::cursor::Cursor;
use super::inbox::{Garbage, Inbox, Replay, SharedBatch};
use super::pending::Pending;
use super::shared_backlog::SharedBacklog;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// How many events a handler's task coalesces before other tasks have their turn.
const SLICE: usize = 4_096;

/// An inbox that is filled from one side and emptied from another.
pub(super) struct Handover<K> {
    /// What the consumer has coalesced.
    pending: Mutex<Pending<K>>,
    state: Mutex<State<K>>,
    shared: Arc<SharedBacklog<K>>,
    /// How many events the consumer has taken out and not finished.
    in_hand: AtomicUsize,
    /// As in the state, for those who only want to know.
    closed: AtomicBool,
}

struct State<K> {
    inbox: Inbox<K>,
    /// The consumer, if it sleeps.
    waker: Option<Waker>,
    closed: bool,
}

/// How much waits on either side.
#[derive(Clone, Copy)]
pub(super) struct Backlog {
    /// Events in the inbox and in the consumer's hand.
    pub(super) pending: usize,
    pub(super) is_coalescing: bool,
    pub(super) merged: u64,
}

/// A batch on its way to one handler.
pub(super) struct Parcel<'a, K> {
    /// What the handler receives.
    pub(super) batch: &'a SharedBatch<K>,
    /// What all handlers receive that are behind; the resyncs in it are for those only that want them.
    pub(super) for_backlog: &'a SharedBatch<K>,
    pub(super) wants_resyncs: bool,
}

/// The outcome of a try to take.
enum Taken<K> {
    Closed,
    Events(Cursor<K>),
    /// The consumer has to coalesce what waits first.
    IsBehind,
    Nothing,
}

impl<K> Handover<K> {
    pub(super) fn new(threshold: Option<usize>, keeps_old: bool, shared: Arc<SharedBacklog<K>>) -> Self {
        let state = State { inbox: Inbox::new(threshold), waker: None, closed: false };
        Self {
            pending: Mutex::new(Pending::new(keeps_old)),
            state: Mutex::new(state),
            shared,
            in_hand: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
        }
    }

    /// Puts what existed before the handler joined ahead of all else; before anybody takes.
    pub(super) fn start_with(&self, replay: Replay<K>, completes_initial_list: bool) {
        self.state.lock().inbox.start_with(replay, completes_initial_list);
    }

    /// Adds a batch; after it has been closed, nothing. Returns the consumer's waker if it sleeps, and whether the batch is in
    /// the shared backlog.
    ///
    /// The cost does not depend on how far the handler is behind (I11).
    pub(super) fn push(&self, parcel: &Parcel<'_, K>) -> (Option<Waker>, bool) {
        let Parcel { batch, for_backlog, wants_resyncs } = parcel;
        let mut state = self.state.lock();
        if state.closed || (batch.events.is_empty() && !batch.completes_initial_list) {
            return (None, false);
        }
        let inbox = &mut state.inbox;
        let is_shared = inbox.needs_backlog(batch, self.in_hand.load(Ordering::Relaxed));
        if is_shared {
            let sequence = if inbox.has_shared() {
                self.shared.stage(for_backlog)
            } else {
                self.shared.join(for_backlog, (!inbox.is_behind()).then(|| inbox.released()))
            };
            inbox.push_shared(sequence, *wants_resyncs);
        } else {
            inbox.push(Arc::clone(batch));
        }
        let waker = if state.inbox.is_empty() { None } else { state.waker.take() };
        (waker, is_shared)
    }

    /// Takes what is to be delivered next, waiting for it; `None` once it is closed.
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
                self.in_hand.store(taken.as_ref().map_or(0, |(_, count)| *count), Ordering::Relaxed);
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
        self.in_hand.store(taken.as_ref().map_or(0, |(_, count)| *count), Ordering::Relaxed);
        let outcome = match taken {
            Some((cursor, _)) => Taken::Events(cursor),
            None if state.inbox.is_behind() => Taken::IsBehind,
            None => {
                std::mem::swap(&mut state.waker, &mut waker);
                Taken::Nothing
            }
        };
        // I8: the waker that is left over goes after the lock.
        drop(state);
        outcome
    }

    /// Coalesces up to `limit` of the events that wait, and calls `then` with all that is pending, whether nothing else
    /// waits, and the threshold.
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
        // I8: objects go when the lock is free.
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

    /// Notes that the consumer is done with one event. Only the consumer calls it, so load and store are enough.
    pub(super) fn finish_one(&self) {
        let left = self.in_hand.load(Ordering::Relaxed).saturating_sub(1);
        self.in_hand.store(left, Ordering::Relaxed);
    }

    /// Notes that the consumer is gone, with what it had in hand.
    pub(super) fn consumer_gone(&self) {
        self.in_hand.store(0, Ordering::Relaxed);
    }

    /// Ends the hand-over: what waits is dropped, and the consumer woken. Returns whether it was open.
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

    /// Returns whether the backlog is so long that events are coalesced.
    pub(super) fn is_behind(&self) -> bool {
        self.state.lock().inbox.is_behind()
    }

    /// Counts what waits; for a handler that is behind, it is coalesced first.
    pub(super) fn backlog(&self) -> Backlog {
        if self.is_behind() {
            self.coalesce(usize::MAX, |_, _, _| ());
        }
        let pending = self.pending.lock();
        let state = self.state.lock();
        Backlog {
            pending: state.inbox.len() + pending.len() + self.in_hand.load(Ordering::Relaxed),
            is_coalescing: state.inbox.is_behind(),
            merged: pending.merged(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cached, Event, EventBatch, ObjectKey};

    #[test]
    fn i11_two_who_coalesce_at_the_same_time_count_the_handler_once() {
        let shared = Arc::new(SharedBacklog::new(true));
        let handover = Handover::<u64>::new(Some(1), true, Arc::clone(&shared));
        let push = || {
            let object = Cached::from_parts(ObjectKey::cluster_scoped("a"), 1.into(), Default::default(), 0);
            let events = vec![Event::Updated { old: object.clone(), new: object }];
            let batch = Arc::new(EventBatch { events, completes_initial_list: false });
            let parcel = Parcel { batch: &batch, for_backlog: &batch, wants_resyncs: false };
            let (_, is_shared) = handover.push(&parcel);
            shared.finish();
            is_shared
        };
        assert!(!push() && push());
        let waker = futures::task::noop_waker();
        let mut context = Context::from_waker(&waker);
        assert!(matches!(handover.take_or_sleep(&context), Taken::IsBehind));
        // A read of the statistics between the two takes everything there is.
        assert_eq!(handover.backlog().pending, 1);
        assert!(handover.poll_take(&mut context).is_ready());
        handover.coalesce(SLICE, |pending, _, _| assert!(pending.is_empty()));
        assert!(!handover.is_behind());
        handover.finish_one();
        assert!(!push(), "it is not behind, and has one event waiting as it is");
        handover.coalesce(SLICE, |pending, _, _| assert!(pending.is_empty()));
        assert_eq!(handover.backlog().pending, 1);
        assert!(handover.poll_take(&mut context).is_ready());
    }
}
