//! [`Waiters`]: the waiting tasks in order, and the number of woken tasks that are still
//! registered.
//!
//! Waiters are part of the locked state, so that a wake-up and its reason are consistent. A woken
//! waiter is removed from the list. At its next poll, it passes its ticket, and checks again or
//! stops waiting.

use std::collections::VecDeque;
use std::task::Waker;

#[derive(Debug, Default)]
pub(crate) struct Waiters {
    waiting: VecDeque<(Ticket, Waker)>,
    last: u64,
    /// The number of woken waiters that have not unregistered.
    awake: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket(u64);

impl Waiters {
    /// Returns whether there is no waiter to wake.
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

    /// Removes a waiter, woken or not. Returns its unused waker.
    pub(crate) fn unregister(&mut self, ticket: Ticket) -> Option<Waker> {
        let position = self.waiting.iter().position(|(other, _)| *other == ticket);
        if position.is_none() {
            self.awake -= 1;
        }
        self.waiting.remove(position?).map(|(_, waker)| waker)
    }

    /// Selects the oldest waiter except `unless`, or `unless` if it is the only waiter.
    pub(crate) fn choose_except(&mut self, unless: Option<Ticket>) -> Option<(Ticket, Waker)> {
        let other = self.waiting.iter().position(|(ticket, _)| Some(*ticket) != unless);
        let chosen = self.waiting.remove(other.unwrap_or(0))?;
        self.awake += 1;
        Some(chosen)
    }

    /// Selects this waiter, unless it was woken already.
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
