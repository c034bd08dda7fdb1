//! [`Waiters`]: who waits, in order, and how many have been woken and not come back yet.
//!
//! It is part of the state under the queue's lock, so that being woken and finding out why can't come apart. A waiter
//! that has been woken is in no list; it comes back with its ticket, to look again or to give up.

use std::collections::VecDeque;
use std::task::Waker;

#[derive(Debug, Default)]
pub(crate) struct Waiters {
    waiting: VecDeque<(Ticket, Waker)>,
    last: u64,
    /// How many have been woken and not come back.
    awake: usize,
}

/// Names someone who waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket(u64);

impl Waiters {
    /// Returns whether there is nobody to be woken.
    #[inline]
    pub(crate) fn nobody_waits(&self) -> bool {
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

    /// Someone comes back, woken or not. Returns the waker that isn't needed any more.
    pub(crate) fn come_back(&mut self, ticket: Ticket) -> Option<Waker> {
        let position = self.waiting.iter().position(|(other, _)| *other == ticket);
        if position.is_none() {
            self.awake -= 1;
        }
        self.waiting.remove(position?).map(|(_, waker)| waker)
    }

    /// Chooses who has waited longest, but this one only if there is nobody else.
    pub(crate) fn choose_but(&mut self, unless: Option<Ticket>) -> Option<(Ticket, Waker)> {
        let other = self.waiting.iter().position(|(ticket, _)| Some(*ticket) != unless);
        let chosen = self.waiting.remove(other.unwrap_or(0))?;
        self.awake += 1;
        Some(chosen)
    }

    /// Chooses this one, if it waits.
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
