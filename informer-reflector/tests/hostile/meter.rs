//! Counts the memory that a test allocates.

use std::cell::Cell;

use parking_lot::{Mutex, MutexGuard};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Counters are of the whole process, so one test is measured at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Counts as long as it lives. Start it before anything large is made: tests in other threads wait
/// for its end.
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

    /// Counts anew.
    pub(crate) fn reset(&self) {
        ALLOCATOR.reset_peak_usage();
        self.before.set(ALLOCATOR.current_usage());
    }

    /// The largest number of bytes that came into use since the start or the last reset.
    pub(crate) fn peak(&self) -> usize {
        ALLOCATOR.peak_usage().saturating_sub(self.before.get())
    }
}
