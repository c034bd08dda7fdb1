//! [`Resources`]: amounts of all resources that pods compete for.

use std::ops::{Add, AddAssign, SubAssign};

/// The amounts of the resources that pods use or that nodes offer. Amounts have 128 bits, because
/// requests have up to 64 bits and sums must not overflow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Resources {
    /// Processor time, in thousandths of a processor.
    pub(crate) cpu: u128,
    /// Memory, in bytes.
    pub(crate) memory: u128,
    pub(crate) pods: u128,
}

impl Resources {
    /// The minimum that a pod uses: one of the node's pod slots.
    pub(crate) const ONE_POD: Self = Self { cpu: 0, memory: 0, pods: 1 };

    /// Returns the maximum of each amount.
    pub(crate) fn max(self, other: Self) -> Self {
        Self {
            cpu: self.cpu.max(other.cpu),
            memory: self.memory.max(other.memory),
            pods: self.pods.max(other.pods),
        }
    }

    /// Returns the free share of the scarcest resource, in thousandths, if `self` is used and `all` is
    /// the capacity. Returns `None` if `self` exceeds `all`.
    pub(crate) fn left_of(self, all: Self) -> Option<u128> {
        let left = |used: u128, all: u128| {
            let free = all.checked_sub(used)?;
            Some((free * 1000).checked_div(all).unwrap_or_default())
        };
        let scarcest = left(self.cpu, all.cpu)?.min(left(self.memory, all.memory)?);
        Some(scarcest.min(left(self.pods, all.pods)?))
    }
}

impl AddAssign for Resources {
    fn add_assign(&mut self, other: Self) {
        self.cpu += other.cpu;
        self.memory += other.memory;
        self.pods += other.pods;
    }
}

impl SubAssign for Resources {
    fn sub_assign(&mut self, other: Self) {
        self.cpu -= other.cpu;
        self.memory -= other.memory;
        self.pods -= other.pods;
    }
}

impl Add for Resources {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}
