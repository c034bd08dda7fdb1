//! [`Priority`]: the priority of a key.

/// The priority of a key. Higher priorities are taken first, but not exclusively; see the
/// [crate's documentation](crate#priorities).
///
/// A waiting key that is added again gets the higher of both priorities.
// Exhaustive: controllers need three levels, and each level costs every queue a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Priority {
    /// For objects that existed when the program started, and resyncs.
    Low,
    /// For changes.
    #[default]
    Normal,
    /// For keys that must overtake changes.
    High,
}

impl Priority {
    /// The number of priorities.
    pub(crate) const COUNT: usize = 3;

    /// Returns the index from 0, the lowest priority.
    #[inline]
    pub(crate) fn level(self) -> usize {
        self as usize
    }
}
