//! [`Priority`]: the priority of a key.

/// The priority of a key. Keys with a higher priority are taken first, but cannot starve the other
/// keys; see the [crate's documentation](crate#priorities).
///
/// If a queued key is added again, it gets the higher of both priorities.
// This enum is exhaustive, because no further level is planned. Each level costs every queue a
// lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Priority {
    /// For objects that existed when the program started, and for resyncs.
    Low,
    /// For objects that change while the program runs.
    #[default]
    Normal,
    /// For keys that must be processed before ordinary changes.
    High,
}

impl Priority {
    pub(crate) const COUNT: usize = 3;

    /// Returns the index of the priority; 0 is the lowest priority.
    #[inline]
    pub(crate) fn level(self) -> usize {
        self as usize
    }
}
