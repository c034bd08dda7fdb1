//! [`Population`]: the progress of the initial list through the queue.

/// The progress of the initial list.
///
/// The list arrives in parts. Its keys are counted while they are queued and while they are in
/// flight. The batch with the last of them announces the end of the list, and counts as one more
/// key in flight. So an empty list has a batch, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Population {
    /// No part of the list has arrived yet.
    Awaited,
    Arriving {
        /// Whether the whole list has been queued.
        arrived: bool,
        /// The number of its queued keys.
        queued: usize,
        /// The number of its keys in flight, plus one if the batch in flight announces the end.
        in_flight: usize,
        /// Whether a batch has announced the end.
        announced: bool,
    },
    Complete,
}

impl Population {
    #[inline]
    pub(super) fn is_complete(self) -> bool {
        self == Self::Complete
    }

    /// Returns whether the next batch must announce the end of the list, even if it has no items.
    #[inline]
    pub(super) fn is_end_due(self) -> bool {
        matches!(self, Self::Arriving { arrived: true, queued: 0, announced: false, .. })
    }

    /// Completes the population of a queue whose first change is not a list.
    #[inline]
    pub(super) fn skip_list(&mut self) {
        if *self == Self::Awaited {
            *self = Self::Complete;
        }
    }

    /// Returns whether a list that arrives now is the initial one.
    pub(super) fn is_first_list(self) -> bool {
        matches!(self, Self::Awaited | Self::Arriving { arrived: false, .. })
    }

    /// Returns whether a part of the list has arrived, but not its end.
    pub(super) fn is_arriving(self) -> bool {
        matches!(self, Self::Arriving { arrived: false, .. })
    }

    /// Adds queued keys of the list. `is_all`: the list has ended.
    pub(super) fn queued(&mut self, keys: usize, is_all: bool) {
        if *self == Self::Awaited {
            *self = Self::Arriving { arrived: false, queued: 0, in_flight: 0, announced: false };
        }
        let Self::Arriving { arrived, queued, .. } = self else { return };
        *queued += keys;
        *arrived |= is_all;
    }

    /// Moves keys from the queue to the batch in flight. Returns whether that batch announces the
    /// end.
    pub(super) fn taken(&mut self, keys: usize) -> bool {
        let Self::Arriving { arrived, queued, in_flight, announced } = self else { return false };
        *queued -= keys;
        *in_flight += keys;
        let is_last = *arrived && *queued == 0 && !*announced;
        *announced |= is_last;
        *in_flight += usize::from(is_last);
        is_last
    }

    /// Moves a key from the batch in flight back to the queue. `is_counted`: the key is also
    /// queued, and counted there already. The batch no longer announces the end.
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

    /// Revokes the end that a batch has announced, because the batch has not been processed.
    pub(super) fn revoke_end(&mut self) {
        let Self::Arriving { in_flight, announced, .. } = self else { return };
        *in_flight -= 1;
        *announced = false;
    }

    /// Removes the keys of a processed batch. Returns whether the whole list has been processed
    /// now.
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
