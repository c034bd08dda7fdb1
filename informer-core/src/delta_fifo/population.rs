//! [`Population`]: how far the objects of the first list have come on their way through the queue.

/// How far the first list has come.
///
/// It comes in parts. Its objects are counted while they are queued and while they are being processed. The batch that
/// takes the last of them out is told so, and counts as one more until it is processed: so an empty list is a batch too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Population {
    /// Nothing has come in yet.
    Awaited,
    /// On its way.
    Coming {
        /// Whether all of it has come into the queue.
        arrived: bool,
        /// So many of its keys are queued.
        queued: usize,
        /// So many are being processed, the batch that was told included.
        taken: usize,
        /// Whether a batch has been told that it is the last.
        announced: bool,
    },
    Complete,
}

impl Population {
    #[inline]
    pub(super) fn is_complete(self) -> bool {
        self == Self::Complete
    }

    /// Returns whether a batch is due that may have nothing else to say than that the first list ends with it.
    #[inline]
    pub(super) fn is_to_be_told(self) -> bool {
        matches!(self, Self::Coming { arrived: true, queued: 0, announced: false, .. })
    }

    /// A queue that is filled by single changes has no first list to wait for.
    #[inline]
    pub(super) fn no_list(&mut self) {
        if *self == Self::Awaited {
            *self = Self::Complete;
        }
    }

    /// Returns whether what a list brings is of the first one.
    pub(super) fn is_first_list(self) -> bool {
        matches!(self, Self::Awaited | Self::Coming { arrived: false, .. })
    }

    /// Returns whether part of the first list has come and its end has not.
    pub(super) fn is_arriving(self) -> bool {
        matches!(self, Self::Coming { arrived: false, .. })
    }

    /// So many keys more of the first list are in the queue; `is_all` says whether nothing more of it will come.
    pub(super) fn queued(&mut self, keys: usize, is_all: bool) {
        if *self == Self::Awaited {
            *self = Self::Coming { arrived: false, queued: 0, taken: 0, announced: false };
        }
        let Self::Coming { arrived, queued, .. } = self else { return };
        *queued += keys;
        *arrived |= is_all;
    }

    /// So many of its keys are taken out; returns whether they are the last.
    pub(super) fn taken(&mut self, keys: usize) -> bool {
        let Self::Coming { arrived, queued, taken, announced } = self else { return false };
        *queued -= keys;
        *taken += keys;
        let is_last = *arrived && *queued == 0 && !*announced;
        *announced |= is_last;
        *taken += usize::from(is_last);
        is_last
    }

    /// A key goes back from a batch into the queue, where it may be counted already. A batch that was told it is the
    /// last no longer is.
    pub(super) fn requeued(&mut self, is_initial: bool, is_counted: bool, was_told: &mut bool) {
        let Self::Coming { queued, taken, announced, .. } = self else { return };
        if !is_initial {
            return;
        }
        *taken -= 1;
        *queued += usize::from(!is_counted);
        if std::mem::take(was_told) {
            *taken -= 1;
        }
        *announced = false;
    }

    /// A batch that was told it is the last, and has nothing of the first list to put back, has not been processed.
    pub(super) fn untold(&mut self) {
        let Self::Coming { taken, announced, .. } = self else { return };
        *taken -= 1;
        *announced = false;
    }

    /// A batch with so many of its keys is processed; returns whether with it all of them are.
    pub(super) fn processed(&mut self, keys: usize, was_told: bool) -> bool {
        let Self::Coming { queued, taken, announced, .. } = self else { return false };
        *taken -= keys + usize::from(was_told);
        let is_complete = *announced && *queued == 0 && *taken == 0;
        if is_complete {
            *self = Self::Complete;
        }
        is_complete
    }
}
