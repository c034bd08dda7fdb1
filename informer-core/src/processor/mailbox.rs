//! [`Mailbox`]: passes published batches to one handler or stream, which is the consumer. A slow
//! consumer takes its events from the [shared backlog](super::shared_backlog), where the events of
//! all slow consumers are coalesced.
//!
//! A push wakes the consumer only if the consumer sleeps. The consumer sleeps only after it has
//! found the mailbox empty under the lock. No user code runs under the lock: no waker, and no
//! destructor of an object. The lock order is in [`super::shared_backlog`].

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::batch::SharedBatch;
use super::cursor::Cursor;
use super::inbox::{Garbage, Inbox, Replay};
use super::sections::Sections;
use super::shared_backlog::SharedBacklog;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The waiting events of one handler or stream (the consumer), with their lock.
pub(super) struct Mailbox<K> {
    state: Mutex<State<K>>,
    shared: Arc<SharedBacklog<K>>,
    /// The number of events that the consumer has taken and not finished yet. Initial adds of
    /// objects that existed when the consumer was added are not included.
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

/// The events that waited in a mailbox when the mailbox was closed. The caller drops these events
/// last, after waking all tasks that wait for the removal of the handler.
// I12: a destructor of an object can panic, and the tasks must be woken nevertheless.
pub(super) type Unread<K> = (Inbox<K>, Garbage<K>);

/// Statistics about the events that are waiting for one handler.
#[derive(Clone, Copy)]
pub(super) struct Backlog {
    /// The number of waiting events, including the event of the current call. The replay is not
    /// included.
    pub(super) pending: usize,
    /// Whether new events are merged into waiting events of the same object.
    pub(super) is_coalescing: bool,
    /// The total number of events that have been merged into other events since the handler was
    /// added.
    pub(super) merged: u64,
}

/// The consumer's next events, or the reason why the mailbox returned no events.
enum Taken<K> {
    /// The mailbox is closed: the consumer receives no more events.
    Closed,
    Events(Cursor<K>),
    /// The consumer is slow: its next events are in the shared backlog. The caller must call
    /// [`Mailbox::take_shared`].
    IsBehind,
    /// No events are waiting. The consumer now sleeps until its waker is called.
    Nothing,
}

impl<K> Mailbox<K> {
    pub(super) fn new(threshold: Option<usize>, shared: Arc<SharedBacklog<K>>) -> Self {
        let state = State { inbox: Inbox::new(threshold), waker: None, closed: false };
        Self {
            state: Mutex::new(state),
            shared,
            in_flight: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
        }
    }

    /// Sets the replay, and whether the initial list is already complete. Call this before the
    /// handler takes its first event.
    pub(super) fn start_with(&self, replay: Replay<K>, completes_initial_list: bool) {
        self.state.lock().inbox.start_with(replay, completes_initial_list);
    }

    /// Adds a published batch to the inbox, or to the shared backlog if the handler is slow.
    /// Returns the waker of a sleeping consumer, and whether the backlog was used.
    ///
    /// `batch` contains resyncs only if `wants_resyncs` is `true`. `for_backlog` is the same batch,
    /// but contains resyncs if any handler wants them.
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
            self.shared.push(for_backlog, &mut inbox.shared, wants_resyncs);
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
                Taken::IsBehind => {
                    if let Some(cursor) = self.take_shared() {
                        return Poll::Ready(Some(cursor));
                    }
                }
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

    /// Takes a slow handler's next events from the shared backlog. After `None`, the caller must
    /// call [`take_or_sleep`](Self::take_or_sleep) again.
    fn take_shared(&self) -> Option<Cursor<K>> {
        let mut garbage = Garbage::none();
        let taken = self.shared.with_sections(&mut garbage, |sections, garbage| {
            self.shared.coalesce(sections, garbage);
            // The publisher can wait for the lock `state`, so work whose cost depends on the number
            // of events is done without this lock.
            let from = self.state.lock().inbox.shared.as_ref()?.from;
            self.shared.seal(sections, from);
            let (cursor, ends_section) = self.take_coalesced(sections)?;
            if ends_section {
                self.shared.tidy(sections, garbage);
            }
            Some(cursor)
        });
        // I8: objects are dropped after the locks are released.
        drop(garbage);
        taken
    }

    /// Takes a slow handler's next events from `sections`, the coalesced events of the shared
    /// backlog. Returns `None` if no events have been coalesced for the handler yet.
    ///
    /// A section contains the coalesced events of consecutive batches. The flag in the result is
    /// `true` if the handler has now taken all events of a section. The caller must then call
    /// [`SharedBacklog::tidy`], which removes sections that no handler needs.
    fn take_coalesced(&self, sections: &mut Sections<K>) -> Option<(Cursor<K>, bool)> {
        let mut state = self.state.lock();
        let Inbox { shared, merged, threshold, .. } = &mut state.inbox;
        let (taken, wants_resyncs) = self.shared.take(sections, shared, *threshold)?;
        *merged += taken.merged;
        let skipped = if wants_resyncs { 0 } else { taken.resyncs };
        self.in_flight.store(taken.events.events.len() - skipped, Ordering::Relaxed);
        Some((Cursor::of_backlog(taken.events, wants_resyncs), taken.ends_section))
    }

    /// Records that the consumer has finished one of the events that it has taken.
    pub(super) fn finish_one(&self) {
        // Only the consumer calls this function, so a load and a store are enough.
        let left = self.in_flight.load(Ordering::Relaxed).saturating_sub(1);
        self.in_flight.store(left, Ordering::Relaxed);
    }

    /// Records that the consumer has ended: the events that it has taken no longer count as
    /// waiting.
    pub(super) fn consumer_ended(&self) {
        self.in_flight.store(0, Ordering::Relaxed);
    }

    /// Closes the mailbox and wakes the consumer. Returns the events that wait for this consumer;
    /// `None` if the mailbox was already closed.
    pub(super) fn close(&self) -> Option<Unread<K>> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return None;
        }
        let mut garbage = Garbage::none();
        let (unread, waker) = self.shared.with_sections(&mut garbage, |sections, _| {
            let mut state = self.state.lock();
            state.closed = true;
            // The statistics of the handler still count the events that were merged for it.
            let part = state.inbox.shared.as_ref();
            state.inbox.merged += part.map_or(0, |part| self.shared.count(sections, part).1);
            (state.inbox.clear(), state.waker.take())
        });
        if let Some(part) = &unread.shared {
            self.shared.remove(part, &mut garbage);
        }
        waker.into_iter().for_each(Waker::wake);
        Some((unread, garbage))
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Returns whether the handler's events are being coalesced.
    pub(super) fn is_behind(&self) -> bool {
        self.state.lock().inbox.is_behind()
    }

    /// Returns statistics about the waiting events. In batches that have not been merged yet, each
    /// event counts separately.
    pub(super) fn backlog(&self) -> Backlog {
        let count = |state: &State<K>, (shared, merged): (usize, u64)| Backlog {
            pending: state.inbox.len() + shared + self.in_flight.load(Ordering::Relaxed),
            is_coalescing: state.inbox.is_behind(),
            merged: state.inbox.merged + merged,
        };
        {
            let state = self.state.lock();
            if !state.inbox.is_behind() {
                return count(&state, (0, 0));
            }
        }
        let mut garbage = Garbage::none();
        // A handler's task takes events under the same two locks, so each event is counted once.
        let backlog = self.shared.with_sections(&mut garbage, |sections, _| {
            let state = self.state.lock();
            let part = state.inbox.shared.as_ref();
            count(&state, part.map_or((0, 0), |part| self.shared.count(sections, part)))
        });
        // I8: objects are dropped after the locks are released.
        drop(garbage);
        backlog
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processor::batch::HandlerBatch;
    use crate::{Cached, Event, EventBatch, ObjectKey};

    fn push(mailbox: &Mailbox<u64>, name: &str) -> bool {
        let object = Cached::from_parts(ObjectKey::cluster_scoped(name), 1.into(), Default::default(), 0);
        let events = vec![Event::Updated { old: object.clone(), new: object }];
        let batch = HandlerBatch::shared(EventBatch { events, completes_initial_list: false });
        let (_, is_shared) = mailbox.push(&batch, &batch, false);
        mailbox.shared.finish();
        is_shared
    }

    #[test]
    fn i11_handler_that_catches_up_uses_its_inbox_again() {
        let mailbox = Mailbox::<u64>::new(Some(1), Arc::new(SharedBacklog::new(true)));
        assert!(!push(&mailbox, "a") && push(&mailbox, "a"));
        let waker = futures::task::noop_waker();
        let mut context = Context::from_waker(&waker);
        assert!(mailbox.poll_take(&mut context).is_ready() && mailbox.is_behind());
        assert!(mailbox.poll_take(&mut context).is_ready() && !mailbox.is_behind());
        mailbox.finish_one();
        assert!(!push(&mailbox, "a"), "the handler is not behind, and one event is in its inbox");
        assert!(mailbox.poll_take(&mut context).is_ready());
    }

    #[test]
    fn reading_the_backlog_leaves_it_as_it_is() {
        let mailbox = Mailbox::<u64>::new(Some(2), Arc::new(SharedBacklog::new(true)));
        for name in ["a", "b", "a", "a", "c"] {
            push(&mailbox, name);
        }
        let read = || {
            let Backlog { pending, merged, is_coalescing } = mailbox.backlog();
            (pending, merged, is_coalescing)
        };
        mailbox.shared.settle(&mut Garbage::none());
        for _ in 0..3 {
            assert_eq!(read(), (4, 1, true), "two events in the inbox, and two keys in the shared backlog");
        }
    }

    #[test]
    fn closed_mailbox_still_counts_merged_events() {
        let mailbox = Mailbox::<u64>::new(Some(1), Arc::new(SharedBacklog::new(true)));
        for name in ["a", "a", "a", "b"] {
            push(&mailbox, name);
        }
        assert_eq!(mailbox.backlog().merged, 0, "the batches are not merged yet");
        mailbox.shared.settle(&mut Garbage::none());
        assert_eq!(mailbox.backlog().merged, 1);
        drop(mailbox.close());
        let Backlog { pending, merged, .. } = mailbox.backlog();
        assert_eq!((pending, merged), (0, 1));
    }
}
