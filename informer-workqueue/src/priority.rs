//! [`Priority`]: what goes first.

/// How urgent a key is. What is more urgent is handed out first, but not only that; see the
/// [crate's documentation](crate#priorities).
///
/// A key that is added again while it waits has the higher of both priorities.
// Complete: each level costs every queue a lane, and three are what controllers tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Priority {
    /// For what nobody waits for: objects that were there when the program started, and resyncs.
    Low,
    /// For changes that have just happened.
    #[default]
    Normal,
    /// For what must overtake even those.
    High,
}

impl Priority {
    /// How many there are.
    pub(crate) const COUNT: usize = 3;

    /// From 0, the least urgent.
    #[inline]
    pub(crate) fn level(self) -> usize {
        self as usize
    }
}
