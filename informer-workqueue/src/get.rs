//! The futures of a queue: [`Get`] waits for an item, and [`Drain`] waits for the end of a drain.
//!
//! The queue starts no task for delayed keys. Instead, one of the tasks that wait for an item, the
//! timekeeper, sleeps until the earliest delay is over. If no task waits for an item, no timer is
//! needed: the next `get` adds the keys whose delay is over.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use crate::Item;
use crate::shared::{GetOutcome, Shared};
use crate::sync::Timer;
use crate::waiters::Ticket;

pub(crate) struct Get<'a, T> {
    shared: &'a Arc<Shared<T>>,
    ticket: Option<Ticket>,
    timer: Timer,
}

impl<'a, T> Get<'a, T> {
    pub(crate) fn new(shared: &'a Arc<Shared<T>>) -> Self {
        Self { shared, ticket: None, timer: Timer::default() }
    }
}

impl<T: Clone> Future for Get<'_, T> {
    type Output = Option<Item<T>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Item<T>>> {
        // Without this, a worker that always finds items might never yield to other tasks of its
        // thread.
        let budget = ready!(tokio::task::coop::poll_proceed(cx));
        let this = &mut *self;
        loop {
            match this.shared.take_or_register(&mut this.ticket, cx.waker()) {
                GetOutcome::Item(item) => {
                    budget.made_progress();
                    return Poll::Ready(Some(item));
                }
                GetOutcome::Over => return Poll::Ready(None),
                GetOutcome::Nothing(None) => return Poll::Pending,
                GetOutcome::Nothing(Some(until)) => {
                    if this.timer.poll(&this.shared.clock, until, cx).is_pending() {
                        return Poll::Pending;
                    }
                }
            }
        }
    }
}

impl<T> Drop for Get<'_, T> {
    fn drop(&mut self) {
        // If this task was woken for an item or is the timekeeper, another waiting task must take
        // over.
        if let Some(ticket) = self.ticket.take() {
            self.shared.cancel_getter(ticket);
        }
    }
}

/// A future that returns `true` after a complete drain, and `false` if a shutdown without a drain
/// ends the wait.
pub(crate) struct Drain<'a, T> {
    shared: &'a Shared<T>,
    ticket: Option<Ticket>,
}

impl<'a, T> Drain<'a, T> {
    pub(crate) fn new(shared: &'a Shared<T>) -> Self {
        Self { shared, ticket: None }
    }
}

impl<T> Future for Drain<'_, T> {
    type Output = bool;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<bool> {
        let this = &mut *self;
        this.shared.poll_drained(&mut this.ticket, cx.waker()).map_or(Poll::Pending, Poll::Ready)
    }
}

impl<T> Drop for Drain<'_, T> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.shared.cancel_drainer(ticket);
        }
    }
}
