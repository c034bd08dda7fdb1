//! [`Population`]: the progress of the initial list.
//!
//! The batch in flight is the batch that the consumer has taken from the queue and has not
//! processed yet. At most one batch is in flight. If the consumer fails to process a key of this
//! batch, it requeues the key: it puts the key back into the queue.
//!
//! The final batch completes the initial list: when this batch is taken, the whole list has
//! arrived, and no key of the list stays in the queue. The final batch can be empty. Only for the
//! final batch, [`Batch::completes_initial_list`](super::Batch::completes_initial_list) returns
//! `true`. If the consumer requeues a key of the list from the final batch, a later batch becomes
//! the final batch instead.

/// The progress of the initial list, with the number of keys that the consumer has not processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Population {
    /// No part of the initial list has been [recorded](Population::queued) yet.
    Awaited,
    Arriving {
        /// Whether the whole initial list has been queued.
        arrived: bool,
        /// The number of queued keys that belong to the initial list.
        queued: usize,
        /// The number of keys in the batch in flight that belong to the initial list. If the
        /// consumer requeues one of these keys, the number falls by one.
        ///
        /// If the batch in flight is the final batch, the number is one higher. For example, the
        /// number is 1 for an empty final batch.
        in_flight: usize,
        /// Whether the final batch has been taken. Becomes `false` if a key of the list is requeued
        /// or the consumer panics, because a later batch is then the final batch.
        announced: bool,
    },
    /// The consumer has processed the whole initial list, or the queue has no initial list.
    Complete,
}

impl Population {
    #[inline]
    pub(super) fn is_complete(self) -> bool {
        self == Self::Complete
    }

    /// Returns whether an empty batch would now be the final batch.
    #[inline]
    pub(super) fn is_end_due(self) -> bool {
        matches!(self, Self::Arriving { arrived: true, queued: 0, announced: false, .. })
    }

    /// Records a change that does not come from a list. If this is the queue's first input, the
    /// queue has no initial list, and later lists are relists.
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

    /// Returns whether a part of the initial list has been [recorded](Self::queued), but not the
    /// whole list.
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
    /// whether this batch is the final batch.
    pub(super) fn taken(&mut self, keys: usize) -> bool {
        let Self::Arriving { arrived, queued, in_flight, announced } = self else { return false };
        *queued -= keys;
        *in_flight += keys;
        let is_last = *arrived && *queued == 0 && !*announced;
        *announced |= is_last;
        // The final batch can be empty.
        *in_flight += usize::from(is_last);
        is_last
    }

    /// Records that the consumer has requeued a key from the batch in flight.
    ///
    /// - `is_initial`: whether the key belongs to the initial list.
    /// - `is_counted`: whether a newer change of the key is queued, which counts in `queued`.
    /// - `is_final_batch`: becomes `false` if the key belongs to the initial list.
    pub(super) fn requeued(&mut self, is_initial: bool, is_counted: bool, is_final_batch: &mut bool) {
        let Self::Arriving { queued, in_flight, announced, .. } = self else { return };
        if !is_initial {
            return;
        }
        *in_flight -= 1;
        *queued += usize::from(!is_counted);
        if std::mem::take(is_final_batch) {
            *in_flight -= 1;
        }
        *announced = false;
    }

    /// Records that not the batch in flight, but a later batch is the final batch.
    ///
    /// Call this if the consumer panics before it has processed a final batch without keys of the
    /// initial list, such as an empty batch. If a final batch has keys of the list, they are
    /// requeued, and [`requeued`](Self::requeued) has the same effect.
    pub(super) fn revoke_end(&mut self) {
        let Self::Arriving { in_flight, announced, .. } = self else { return };
        *in_flight -= 1;
        *announced = false;
    }

    /// Records that the consumer has processed the batch in flight. Returns whether the whole
    /// initial list has now been processed.
    ///
    /// `keys` is the number of keys in this batch that belong to the list and were not requeued.
    pub(super) fn processed(&mut self, keys: usize, is_final_batch: bool) -> bool {
        let Self::Arriving { queued, in_flight, announced, .. } = self else { return false };
        *in_flight -= keys + usize::from(is_final_batch);
        let is_complete = *announced && *queued == 0 && *in_flight == 0;
        if is_complete {
            *self = Self::Complete;
        }
        is_complete
    }
}
