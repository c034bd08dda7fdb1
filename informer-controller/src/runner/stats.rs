//! [`RunnerMonitor`]: how a controller fares, in numbers.
//!
//! controller-runtime: `pkg/internal/controller/metrics`. What the queue does is told by its own
//! [`Metrics`](informer_workqueue::Metrics).

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Tells how a [`ControllerRunner`](crate::ControllerRunner) fares. Cloning gives another handle on the same.
#[derive(Debug, Clone, Default)]
pub struct RunnerMonitor {
    book: Arc<Mutex<Book>>,
}

#[derive(Debug, Default)]
struct Book {
    stats: RunnerStats,
    /// When each worker began with the key it has.
    begun: Vec<Option<Instant>>,
}

/// What a [`ControllerRunner`](crate::ControllerRunner) has done, and is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RunnerStats {
    /// Calls that ended well, those with a wish to be called again included.
    pub succeeded: u64,
    /// Those of them with such a wish.
    pub requeued: u64,
    /// Calls that returned an error.
    pub failed: u64,
    /// Calls that took too long and were dropped.
    pub timed_out: u64,
    /// Calls that panicked.
    pub panicked: u64,
    /// How many keys were dropped without a call, because their namespace was
    /// [removed](informer_factory::SharedIndexInformer::remove_namespace).
    pub dropped: u64,
    /// How often a key was parked, because the caches did not have what was written for it, or one of them was still listing
    /// its namespace for the first time.
    pub parked: u64,
    /// How often that ended with a deadline, so that the caches may have been behind.
    pub parked_timed_out: u64,
    /// How many keys are parked now.
    pub parked_now: usize,
    /// How many calls are under way.
    pub active: usize,
    /// How long the longest of those has been.
    pub longest_active: Duration,
    /// How long the longest call took that has ended.
    pub longest: Duration,
}

/// How a call has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Succeeded { is_requeued: bool },
    Failed,
    TimedOut,
    Panicked,
}

impl RunnerMonitor {
    /// Returns the numbers as they are now.
    #[must_use]
    pub fn stats(&self) -> RunnerStats {
        let now = Instant::now();
        let book = self.book.lock();
        let begun = || book.begun.iter().flatten();
        let longest_active = begun().map(|begun| now.saturating_duration_since(*begun)).max();
        let longest_active = longest_active.unwrap_or_default();
        RunnerStats { active: begun().count(), longest_active, ..book.stats }
    }

    pub(super) fn expect_workers(&self, workers: usize) {
        self.book.lock().begun = vec![None; workers];
    }

    /// Notes that a worker begins with a key. Dropped without an ending, the call was given up.
    pub(super) fn begin(&self, worker: usize) -> Call<'_> {
        let begun = Instant::now();
        self.book.lock().begun[worker] = Some(begun);
        Call { monitor: self, worker, begun }
    }

    pub(super) fn park(&self) {
        let mut book = self.book.lock();
        book.stats.parked += 1;
        book.stats.parked_now += 1;
    }

    pub(super) fn unpark(&self, timed_out: bool) {
        let mut book = self.book.lock();
        book.stats.parked_now -= 1;
        book.stats.parked_timed_out += u64::from(timed_out);
    }

    pub(super) fn count_dropped(&self) {
        self.book.lock().stats.dropped += 1;
    }

    pub(super) fn forget_parked(&self) {
        self.book.lock().stats.parked_now = 0;
    }
}

/// A call that is under way.
#[derive(Debug)]
pub(super) struct Call<'a> {
    monitor: &'a RunnerMonitor,
    worker: usize,
    begun: Instant,
}

impl Call<'_> {
    pub(super) fn end(self, ending: Ending) {
        let took = self.begun.elapsed();
        let mut book = self.monitor.book.lock();
        let stats = &mut book.stats;
        stats.longest = stats.longest.max(took);
        let count = match ending {
            Ending::Succeeded { is_requeued } => {
                stats.requeued += u64::from(is_requeued);
                &mut stats.succeeded
            }
            Ending::Failed => &mut stats.failed,
            Ending::TimedOut => &mut stats.timed_out,
            Ending::Panicked => &mut stats.panicked,
        };
        *count += 1;
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.monitor.book.lock().begun[self.worker] = None;
    }
}
