//! [`Waiters`]: the list of waiting tasks, oldest first, and the number of woken tasks.
//!
//! Waiters are part of the locked state of the queue. So a change of the state and the selection of
//! the tasks to wake are one step. A selected waiter leaves the list, and counts as woken until it
//! calls `unregister`: at a later poll, or when it is dropped.

use std::collections::VecDeque;
use std::task::Waker;

#[derive(Debug, Default)]
pub(crate) struct Waiters {
    waiting: VecDeque<(Ticket, Waker)>,
    last: u64,
    /// The number of waiters that have been woken and have not unregistered yet.
    awake: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket(u64);

impl Waiters {
    /// Returns whether no task waits, not counting tasks that have been woken.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) fn awake(&self) -> usize {
        self.awake
    }

    pub(crate) fn register(&mut self, waker: &Waker) -> Ticket {
        self.last += 1;
        self.waiting.push_back((Ticket(self.last), waker.clone()));
        Ticket(self.last)
    }

    /// Unregisters the waiter with this ticket. If the waiter has not been woken, returns its
    /// unused waker.
    pub(crate) fn unregister(&mut self, ticket: Ticket) -> Option<Waker> {
        let position = self.waiting.iter().position(|(other, _)| *other == ticket);
        if position.is_none() {
            self.awake -= 1;
        }
        self.waiting.remove(position?).map(|(_, waker)| waker)
    }

    /// Selects a waiter to wake: the oldest waiter other than `unless`, or `unless` if it is the
    /// only waiter. Returns its ticket and waker.
    pub(crate) fn choose_except(&mut self, unless: Option<Ticket>) -> Option<(Ticket, Waker)> {
        let other = self.waiting.iter().position(|(ticket, _)| Some(*ticket) != unless);
        let chosen = self.waiting.remove(other.unwrap_or(0))?;
        self.awake += 1;
        Some(chosen)
    }

    /// Returns the waker of the waiter with this ticket. The caller must call the waker. Returns
    /// `None` if the waiter has been woken already.
    pub(crate) fn choose(&mut self, ticket: Ticket) -> Option<Waker> {
        let position = self.waiting.iter().position(|(other, _)| *other == ticket)?;
        let (_, waker) = self.waiting.remove(position)?;
        self.awake += 1;
        Some(waker)
    }

    pub(crate) fn choose_all(&mut self) -> impl Iterator<Item = Waker> {
        self.awake += self.waiting.len();
        self.waiting.drain(..).map(|(_, waker)| waker)
    }
}
