//! Counts the memory that a test allocates.

use std::cell::Cell;

use parking_lot::{Mutex, MutexGuard};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The counters are process-wide, so only one test measures at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Measures allocations until dropped. Create a `Meter` before anything large: `start` waits until
/// the meters of tests in other threads are dropped.
pub(crate) struct Meter {
    before: Cell<usize>,
    _alone: MutexGuard<'static, ()>,
}

impl Meter {
    pub(crate) fn start() -> Self {
        let alone = ONE_AT_A_TIME.lock();
        let meter = Self { before: Cell::new(0), _alone: alone };
        meter.reset();
        meter
    }

    /// Resets the peak to the current memory use.
    pub(crate) fn reset(&self) {
        ALLOCATOR.reset_peak_usage();
        self.before.set(ALLOCATOR.current_usage());
    }

    /// Returns the peak of allocated bytes since the start or the last reset, above the memory in
    /// use then.
    pub(crate) fn peak(&self) -> usize {
        ALLOCATOR.peak_usage().saturating_sub(self.before.get())
    }
}
