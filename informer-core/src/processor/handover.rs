//! [`Handover`]: the place where what is published passes to the handler that is to hear of it.
//!
//! One side pushes, any number of others may close; one consumer takes. It is woken once per batch at most, and sleeps
//! only after it has seen the inbox empty under the lock. The lock is the last in the order: under it nothing is called
//! that belongs to somebody else, neither wakers nor drops of objects (I8).

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use smallvec::SmallVec;

use super::cursor::Cursor;
use super::inbox::{Garbage, Inbox, Replay, SharedBatch};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::{Event, EventBatch};

/// An inbox that is filled from one side and emptied from another.
pub(super) struct Handover<K> {
    state: Mutex<State<K>>,
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

/// What remains of a publication: when this is dropped, the handlers are woken, and what nobody needs any more goes.
///
/// Whoever [publishes](super::SharedProcessor::publish) under a lock of his own keeps it until the lock is free again:
/// wakers and drops of objects may do anything (I8).
pub struct Published<K> {
    wakers: SmallVec<[Waker; 4]>,
    /// Held only to be dropped after the others have been woken.
    garbage: Garbage<K>,
    batch: SharedBatch<K>,
    /// A batch of its own for those who are not due the resyncs, which they would hold in memory else (I11).
    without_resyncs: Option<SharedBatch<K>>,
    has_resyncs: bool,
}

impl<K> Published<K> {
    pub(super) fn new(batch: EventBatch<K>) -> Self {
        let has_resyncs = batch.events.iter().any(|event| matches!(event, Event::Resynced(_)));
        let batch = Arc::new(batch);
        Self { wakers: SmallVec::new(), garbage: Garbage::none(), batch, without_resyncs: None, has_resyncs }
    }

    pub(super) fn has_resyncs(&self) -> bool {
        self.has_resyncs
    }

    /// Gives the batch to one handler.
    pub(super) fn hand_to(&mut self, handover: &Handover<K>, with_resyncs: bool) {
        let batch = if with_resyncs || !self.has_resyncs {
            &self.batch
        } else {
            self.without_resyncs.get_or_insert_with(|| Arc::new(self.batch.without_resyncs()))
        };
        self.wakers.extend(handover.push(Arc::clone(batch), &mut self.garbage));
    }

    pub(super) fn batch(&self) -> &EventBatch<K> {
        &self.batch
    }
}

impl<K> Drop for Published<K> {
    fn drop(&mut self) {
        self.wakers.drain(..).for_each(Waker::wake);
    }
}

impl<K> fmt::Debug for Published<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Published").field("events", &self.batch.events.len()).finish_non_exhaustive()
    }
}

/// How much waits on either side.
#[derive(Clone, Copy)]
pub(super) struct Backlog {
    /// Events in the inbox and in the consumer's hand.
    pub(super) pending: usize,
    pub(super) is_coalescing: bool,
    pub(super) merged: u64,
}

impl<K> Handover<K> {
    pub(super) fn new(threshold: Option<usize>, keeps_old: bool) -> Self {
        let state = State { inbox: Inbox::new(threshold, keeps_old), waker: None, closed: false };
        Self { state: Mutex::new(state), in_hand: AtomicUsize::new(0), closed: AtomicBool::new(false) }
    }

    /// Puts what existed before the handler joined ahead of all else; before anybody takes.
    pub(super) fn start_with(&self, replay: Replay<K>, completes_initial_list: bool) {
        self.state.lock().inbox.start_with(replay, completes_initial_list);
    }

    /// Adds a batch; after it has been closed, nothing. What falls out goes
    /// to `garbage`; the consumer's waker is returned if it sleeps.
    fn push(&self, batch: SharedBatch<K>, garbage: &mut Garbage<K>) -> Option<Waker> {
        let mut state = self.state.lock();
        if state.closed {
            return None;
        }
        let in_hand = self.in_hand.load(Ordering::Relaxed);
        state.inbox.push(batch, in_hand, garbage);
        if state.inbox.is_empty() { None } else { state.waker.take() }
    }

    /// Takes what is to be delivered next, waiting for it; `None` once it is closed.
    pub(super) fn poll_take(&self, cx: &mut Context<'_>) -> Poll<Option<Cursor<K>>> {
        let mut waker = Some(cx.waker().clone());
        let mut state = self.state.lock();
        if state.closed {
            return Poll::Ready(None);
        }
        let taken = state.inbox.take();
        self.in_hand.store(taken.as_ref().map_or(0, |(_, count)| *count), Ordering::Relaxed);
        if taken.is_none() {
            std::mem::swap(&mut state.waker, &mut waker);
        }
        // I8: the waker that is left over goes after the lock.
        drop(state);
        match taken {
            Some((cursor, _)) => Poll::Ready(Some(cursor)),
            None => Poll::Pending,
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

    /// Ends the hand-over: what waits is dropped, and the consumer told. Returns whether it was open.
    pub(super) fn close(&self) -> bool {
        if self.closed.swap(true, Ordering::AcqRel) {
            return false;
        }
        let (dropped, waker) = {
            let mut state = self.state.lock();
            state.closed = true;
            (state.inbox.clear(), state.waker.take())
        };
        waker.into_iter().for_each(Waker::wake);
        drop(dropped);
        true
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(super) fn backlog(&self) -> Backlog {
        let state = self.state.lock();
        Backlog {
            pending: state.inbox.len() + self.in_hand.load(Ordering::Relaxed),
            is_coalescing: state.inbox.is_coalescing(),
            merged: state.inbox.merged(),
        }
    }
}
