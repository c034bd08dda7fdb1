//! [`Population`]: the progress of the initial list.
//!
//! The consumer takes the queued keys in batches. The batch in flight is the batch that the
//! consumer has taken from the queue and has not processed yet. At most one batch is in flight.
//! When the consumer fails to process a key of the batch, the consumer requeues the key: the
//! consumer puts the key back into the queue.

/// Counts the keys of the initial list that the consumer has not processed yet.
///
/// The list arrives in parts. The batch that takes the last queued key announces the end of the
/// list: its [`Batch::completes_initial_list`](super::Batch::completes_initial_list) is `true`. If
/// no key is queued after the last part, for example because the list is empty, the next batch
/// announces the end, even without items. The list is complete when its end was announced, and
/// `queued` and `in_flight` are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Population {
    /// No part of the initial list has arrived yet.
    Awaited,
    Arriving {
        /// Whether the whole initial list has been queued.
        arrived: bool,
        /// How many of the queued keys belong to the initial list.
        queued: usize,
        /// How many keys of the batch in flight belong to the initial list; plus one if this batch
        /// announces the end of the list. A key that the consumer puts back into the queue no
        /// longer counts.
        in_flight: usize,
        /// Whether the consumer has taken the batch that announces the end of the list.
        announced: bool,
    },
    Complete,
}

impl Population {
    #[inline]
    pub(super) fn is_complete(self) -> bool {
        self == Self::Complete
    }

    /// Returns whether the next batch must announce the end of the initial list, even if the batch
    /// has no items.
    #[inline]
    pub(super) fn is_end_due(self) -> bool {
        matches!(self, Self::Arriving { arrived: true, queued: 0, announced: false, .. })
    }

    /// Records that a change has arrived outside a list. If it is the first input of the queue, the
    /// initial list counts as complete.
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

    /// Returns whether a part of the initial list has arrived, but not its end.
    pub(super) fn is_arriving(self) -> bool {
        matches!(self, Self::Arriving { arrived: false, .. })
    }

    /// Counts keys of the initial list that were queued. `is_all` means that no key follows.
    pub(super) fn queued(&mut self, keys: usize, is_all: bool) {
        if *self == Self::Awaited {
            *self = Self::Arriving { arrived: false, queued: 0, in_flight: 0, announced: false };
        }
        let Self::Arriving { arrived, queued, .. } = self else { return };
        *queued += keys;
        *arrived |= is_all;
    }

    /// Records that the consumer has taken a batch. `keys` says how many keys of the batch belong
    /// to the initial list. Returns whether this batch
    /// [completes the initial list](super::Batch::completes_initial_list).
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
    /// `is_initial` is `false`, because the key does not belong to the initial list.
    ///
    /// Otherwise, subtracts one from `in_flight`. Adds one to `queued` only if `is_counted` is
    /// `false`. `true` means that `queued` already contains the key, because of a newer change.
    /// Sets `completes_initial` to `false`, because the batch no longer completes the initial list.
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

    /// Revokes the announcement that the initial list ends. A later batch announces the end again.
    pub(super) fn revoke_end(&mut self) {
        let Self::Arriving { in_flight, announced, .. } = self else { return };
        *in_flight -= 1;
        *announced = false;
    }

    /// Records that the consumer has processed the batch in flight. `keys` says how many of the
    /// processed keys belong to the initial list. Requeued keys are not processed and do not count.
    /// Returns whether the whole initial list has now been processed.
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
