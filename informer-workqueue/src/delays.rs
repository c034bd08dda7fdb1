//! [`Delays`]: the delayed keys, ordered by the time at which they will be added. A key is
//! represented by the number of its slot in [`Slots`](crate::slots::Slots).

use std::collections::BTreeMap;

use tokio::time::Instant;

#[derive(Debug, Default)]
pub(crate) struct Delays {
    /// The slots of delayed keys, by the end of the delay, and then by the order of insertion.
    by_time: BTreeMap<(Instant, u64), u32>,
    number: u64,
}

impl Delays {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.by_time.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_time.len()
    }

    #[inline]
    pub(crate) fn earliest(&self) -> Option<Instant> {
        self.by_time.first_key_value().map(|((at, _), _)| *at)
    }

    /// Adds a slot whose delay ends at `at`. Returns the number with which [`remove`](Self::remove)
    /// removes the slot.
    pub(crate) fn insert(&mut self, at: Instant, id: u32) -> u64 {
        self.number += 1;
        self.by_time.insert((at, self.number), id);
        self.number
    }

    pub(crate) fn remove(&mut self, at: Instant, number: u64) {
        self.by_time.remove(&(at, number));
    }

    /// Removes and returns the slot with the earliest delay, if that delay is over.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<u32> {
        let first = self.by_time.first_entry()?;
        let is_due = first.key().0 <= now;
        is_due.then(|| first.remove())
    }

    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = u32> {
        std::mem::take(&mut self.by_time).into_values()
    }
}
