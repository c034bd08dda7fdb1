//! [`Population`]: the progress of the initial list through the queue.

/// The progress of the initial list through the queue.
///
/// The list arrives in parts. Its keys are counted while they are queued and while they are in
/// flight. The batch that takes the last queued key announces the end of the list. If the list ends
/// when no key is queued, for example because it is empty, the next batch announces the end, even
/// without items. Until the announcing batch has been processed, the announcement counts as one
/// more key in flight. The list is complete when its end was announced and the counts are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Population {
    /// No part of the initial list has arrived yet.
    Awaited,
    Arriving {
        /// Whether all parts of the initial list have been queued.
        arrived: bool,
        /// The number of keys of the initial list that are queued.
        queued: usize,
        /// The number of keys of the initial list that are in flight, plus one if the batch in
        /// flight announces the end of the list.
        in_flight: usize,
        /// Whether a batch that the consumer took has announced the end of the list.
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

    /// Skips the initial list, because the first input of the queue is not a list. Has no effect
    /// after the first input.
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

    /// Counts keys of the initial list that were queued. `is_all` means that the list has ended.
    pub(super) fn queued(&mut self, keys: usize, is_all: bool) {
        if *self == Self::Awaited {
            *self = Self::Arriving { arrived: false, queued: 0, in_flight: 0, announced: false };
        }
        let Self::Arriving { arrived, queued, .. } = self else { return };
        *queued += keys;
        *arrived |= is_all;
    }

    /// Counts keys that moved from the queue to the batch in flight. Returns whether this batch
    /// announces the end of the initial list.
    pub(super) fn taken(&mut self, keys: usize) -> bool {
        let Self::Arriving { arrived, queued, in_flight, announced } = self else { return false };
        *queued -= keys;
        *in_flight += keys;
        let is_last = *arrived && *queued == 0 && !*announced;
        *announced |= is_last;
        *in_flight += usize::from(is_last);
        is_last
    }

    /// Updates the counts after a key moved from the batch in flight back to the queue. Changes
    /// nothing if `is_initial` is `false`: the key does not belong to the initial list.
    ///
    /// Otherwise, the key counts as queued, and no longer as in flight. If `is_counted` is `true`,
    /// it counts as queued already, because of a newer change, and is not counted twice.
    /// `announces` becomes `false`: a later batch announces the end of the list.
    pub(super) fn requeued(&mut self, is_initial: bool, is_counted: bool, announces: &mut bool) {
        let Self::Arriving { queued, in_flight, announced, .. } = self else { return };
        if !is_initial {
            return;
        }
        *in_flight -= 1;
        *queued += usize::from(!is_counted);
        if std::mem::take(announces) {
            *in_flight -= 1;
        }
        *announced = false;
    }

    /// Revokes the announcement of the end of the list, because the batch that announced the end
    /// has not been processed.
    pub(super) fn revoke_end(&mut self) {
        let Self::Arriving { in_flight, announced, .. } = self else { return };
        *in_flight -= 1;
        *announced = false;
    }

    /// Subtracts the keys of a processed batch. Returns whether this batch was the last part of the
    /// initial list.
    pub(super) fn processed(&mut self, keys: usize, announced_end: bool) -> bool {
        let Self::Arriving { queued, in_flight, announced, .. } = self else { return false };
        *in_flight -= keys + usize::from(announced_end);
        let is_complete = *announced && *queued == 0 && *in_flight == 0;
        if is_complete {
            *self = Self::Complete;
        }
        is_complete
    }
}
