//! [`Population`]: the progress of the initial list.
//!
//! The batch in flight is the batch that the consumer has taken from the queue and has not
//! processed yet. At most one batch is in flight. If the consumer fails to process a key of this
//! batch, it requeues the key: it puts the key back into the queue.
//!
//! The last batch of the initial list is taken after the whole list has arrived, and leaves no key
//! of the list in the queue. Its
//! [`Batch::completes_initial_list`](super::Batch::completes_initial_list) is `true`. It can have
//! no items. If the consumer requeues a key of the list from this batch, a later batch is the last.

/// The progress of the initial list, with the number of keys that the consumer has not processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Population {
    /// No part of the initial list has arrived yet.
    Awaited,
    Arriving {
        /// Whether the whole initial list has been queued.
        arrived: bool,
        /// How many of the queued keys belong to the initial list.
        queued: usize,
        /// How many keys of the batch in flight belong to the initial list, without requeued keys.
        /// One more if this batch is the last batch of the list.
        in_flight: usize,
        /// Whether the consumer has taken the last batch of the list.
        announced: bool,
    },
    /// The consumer has processed the whole initial list, or there is no initial list.
    Complete,
}

impl Population {
    #[inline]
    pub(super) fn is_complete(self) -> bool {
        self == Self::Complete
    }

    /// Returns whether the next batch is the last batch of the initial list, even if the batch has
    /// no items.
    #[inline]
    pub(super) fn is_end_due(self) -> bool {
        matches!(self, Self::Arriving { arrived: true, queued: 0, announced: false, .. })
    }

    /// Sets the progress to [`Complete`](Self::Complete) if no part of a list has arrived yet.
    /// Called for each change that does not come from a list: if the first input of the queue is
    /// such a change, the queue has no initial list.
    #[inline]
    pub(super) fn skip_initial_list(&mut self) {
        if *self == Self::Awaited {
            *self = Self::Complete;
        }
    }

    /// Returns whether a list that arrives now is the initial list.
    pub(super) fn is_first_list(self) -> bool {
        matches!(self, Self::Awaited | Self::Arriving { arrived: false, .. })
    }

    /// Returns whether the queue has received a part of the initial list, but not the whole list.
    pub(super) fn is_arriving(self) -> bool {
        matches!(self, Self::Arriving { arrived: false, .. })
    }

    /// Adds `keys` to the number of queued keys of the initial list. `is_all` is `true` if the
    /// whole initial list has now been queued.
    pub(super) fn queued(&mut self, keys: usize, is_all: bool) {
        if *self == Self::Awaited {
            *self = Self::Arriving { arrived: false, queued: 0, in_flight: 0, announced: false };
        }
        let Self::Arriving { arrived, queued, .. } = self else { return };
        *queued += keys;
        *arrived |= is_all;
    }

    /// Records that the consumer has taken a batch with `keys` keys of the initial list. Returns
    /// whether this batch is the last batch of the list.
    pub(super) fn taken(&mut self, keys: usize) -> bool {
        let Self::Arriving { arrived, queued, in_flight, announced } = self else { return false };
        *queued -= keys;
        *in_flight += keys;
        let is_last = *arrived && *queued == 0 && !*announced;
        *announced |= is_last;
        *in_flight += usize::from(is_last);
        is_last
    }

    /// Records that the consumer has requeued a key of the batch in flight. Does nothing if
    /// `is_initial` is `false`: the key does not belong to the initial list.
    ///
    /// - `is_counted`: whether `queued` already includes the key, because of a newer change.
    /// - `completes_initial`: whether the batch is the last batch of the list. This method sets it
    ///   to `false`, because a later batch is now the last batch.
    pub(super) fn requeued(&mut self, is_initial: bool, is_counted: bool, completes_initial: &mut bool) {
        let Self::Arriving { queued, in_flight, announced, .. } = self else { return };
        if !is_initial {
            return;
        }
        *in_flight -= 1;
        *queued += usize::from(!is_counted);
        if std::mem::take(completes_initial) {
            *in_flight -= 1;
        }
        *announced = false;
    }

    /// Records that the batch in flight is no longer the last batch of the initial list; a later
    /// batch is. Call this when the last batch is requeued.
    pub(super) fn revoke_end(&mut self) {
        let Self::Arriving { in_flight, announced, .. } = self else { return };
        *in_flight -= 1;
        *announced = false;
    }

    /// Records that the consumer has processed the batch in flight. Returns whether the whole
    /// initial list has now been processed.
    ///
    /// - `keys`: how many keys of the batch belong to the initial list, without requeued keys.
    /// - `completes_initial`: whether the batch is the last batch of the list.
    pub(super) fn processed(&mut self, keys: usize, completes_initial: bool) -> bool {
        let Self::Arriving { queued, in_flight, announced, .. } = self else { return false };
        *in_flight -= keys + usize::from(completes_initial);
        let is_complete = *announced && *queued == 0 && *in_flight == 0;
        if is_complete {
            *self = Self::Complete;
        }
        is_complete
    }
}
