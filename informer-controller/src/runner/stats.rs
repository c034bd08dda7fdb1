//! [`RunnerMonitor`]: the statistics of a controller.
//!
//! controller-runtime: `pkg/internal/controller/metrics`. The queue has its own
//! [`Metrics`](informer_workqueue::Metrics).

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use informer_workqueue::Workqueue;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::Reconciled;
use super::key_log::{FailedKey, KeyLog, ParkedKey};

/// Access to the statistics of a [`ControllerRunner`](crate::ControllerRunner), which are updated
/// while it runs. Clones show the same controller.
#[derive(Clone, Default)]
pub struct RunnerMonitor {
    state: Arc<Mutex<MonitorState>>,
    queue: Option<Arc<Queue>>,
}

/// Access to the controller's queue, without the type of its keys. Does not keep the queue alive.
struct Queue {
    name: String,
    /// Returns the number of queued keys, or `None` once the queue has been dropped.
    len: Box<dyn Fn() -> Option<usize> + Send + Sync>,
}

#[derive(Debug, Default)]
struct MonitorState {
    stats: RunnerStats,
    /// The start of each worker's current call; `None` for an idle worker.
    begun: Vec<Option<Instant>>,
    keys: KeyLog,
}

/// The statistics of a [`ControllerRunner`](crate::ControllerRunner) at one moment. A call is one
/// call of the reconcile function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RunnerStats {
    /// The number of successful reconcile calls, including those that returned
    /// [`RequeueAfter`](crate::Reconciled::RequeueAfter).
    pub succeeded: u64,
    /// The number of reconcile calls that returned
    /// [`RequeueAfter`](crate::Reconciled::RequeueAfter).
    pub requeued: u64,
    /// The number of reconcile calls that returned an error.
    pub failed: u64,
    /// The number of reconcile calls that timed out.
    pub timed_out: u64,
    /// The number of reconcile calls that panicked.
    pub panicked: u64,
    /// How often a key was dropped without a reconcile call, because its namespace was
    /// [removed](informer_factory::SharedIndexInformer::remove_namespace), or because an informer
    /// stopped before it had listed this namespace.
    pub dropped: u64,
    /// The number of times that a key was parked, for all keys together. A parked key waits for a
    /// cache, without occupying a worker, for one of these reasons:
    ///
    /// - The cache has not listed the key's namespace, or no longer watches it.
    /// - The cache has possibly not received a write that the controller made for the key.
    pub parked: u64,
    /// How often a parked key was queued again although a cache possibly lacked a write that the
    /// controller made for the key, because the
    /// [deadline](crate::WriteTracker::with_deadline) of the write was over.
    pub parked_timed_out: u64,
    /// The number of keys that wait for a cache now, without occupying a worker.
    pub parked_now: usize,
    /// The number of reconcile calls that run now.
    pub active: usize,
    /// How long the oldest of the running reconcile calls has been running; zero if none runs.
    pub longest_active: Duration,
    /// The duration of the longest reconcile call that has ended.
    pub longest: Duration,
}

pub(super) enum CallOutcome {
    Reconciled(Reconciled),
    Failed(String),
    TimedOut(Duration),
    Panicked(String),
}

impl RunnerMonitor {
    pub(super) fn of<T: Hash + Eq + Clone + Send + 'static>(queue: &Workqueue<T>) -> Self {
        let observe = queue.observer();
        let len = Box::new(move || observe().map(|(len, _)| len));
        Self { state: Arc::default(), queue: Some(Arc::new(Queue { name: queue.name().to_owned(), len })) }
    }

    /// Returns the name of the controller's queue; empty if the queue has no name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.queue.as_ref().map_or("", |queue| &queue.name)
    }

    /// Returns the number of queued keys; zero once the queue has been dropped. Delayed keys, and
    /// parked keys (which wait for the caches), do not count.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queue.as_ref().and_then(|queue| (queue.len)()).unwrap_or_default()
    }

    /// Returns up to 256 of the parked keys, which wait for the caches. The key that has waited
    /// longest is the first.
    #[must_use]
    pub fn parked_keys(&self) -> Vec<ParkedKey> {
        self.state.lock().keys.parked()
    }

    /// Returns the keys whose last reconcile call failed, timed out or panicked, the latest failure
    /// first. The list has up to 256 keys: a further key replaces the key with the oldest failure.
    /// A key that is dropped without a call leaves the list.
    #[must_use]
    pub fn failed_keys(&self) -> Vec<FailedKey> {
        self.state.lock().keys.failed()
    }

    /// Returns the current statistics.
    #[must_use]
    pub fn stats(&self) -> RunnerStats {
        let now = Instant::now();
        let state = self.state.lock();
        let begun = || state.begun.iter().flatten();
        let longest_active = begun().map(|begun| now.saturating_duration_since(*begun)).max();
        let longest_active = longest_active.unwrap_or_default();
        RunnerStats { active: begun().count(), longest_active, ..state.stats }
    }

    pub(super) fn expect_workers(&self, workers: usize) {
        self.state.lock().begun = vec![None; workers];
    }

    /// Records the start of a reconcile call. If the returned [`Call`] is dropped without an
    /// outcome, the reconcile call was cancelled and does not count.
    pub(super) fn begin(&self, worker: usize) -> Call<'_> {
        let begun = Instant::now();
        self.state.lock().begun[worker] = Some(begun);
        Call { monitor: self, worker, begun }
    }

    pub(super) fn park(&self, key: &impl fmt::Debug) {
        let key = format!("{key:?}");
        let mut state = self.state.lock();
        state.stats.parked += 1;
        state.stats.parked_now += 1;
        state.keys.park(key);
    }

    pub(super) fn unpark(&self, key: &impl fmt::Debug, timed_out: bool) {
        let key = format!("{key:?}");
        let mut state = self.state.lock();
        state.keys.parked.remove(&key);
        state.stats.parked_now -= 1;
        state.stats.parked_timed_out += u64::from(timed_out);
    }

    pub(super) fn count_dropped(&self) {
        self.state.lock().stats.dropped += 1;
    }

    pub(super) fn forget_parked(&self) {
        let mut state = self.state.lock();
        state.stats.parked_now = 0;
        state.keys.parked.clear();
    }

    /// Records a failed key. `failures` is the number of consecutive failed calls.
    pub(super) fn fail(&self, key: &impl fmt::Debug, failure: &str, failures: u32) {
        let (key, failure, at) = (format!("{key:?}"), failure.to_owned(), Instant::now());
        self.state.lock().keys.fail(FailedKey { key, failure, failures, at, retry_at: at });
    }

    pub(super) fn retry(&self, key: &impl fmt::Debug, retry_in: Duration) {
        let key = format!("{key:?}");
        self.state.lock().keys.retry_at(&key, Instant::now() + retry_in);
    }

    /// Removes `key` from the list of failed keys, after its reconcile call succeeded or the key
    /// was dropped.
    pub(super) fn succeed(&self, key: &impl fmt::Debug) {
        // I8: the key's `Debug` runs without the lock.
        if self.state.lock().keys.failed.is_empty() {
            return;
        }
        let key = format!("{key:?}");
        self.state.lock().keys.failed.remove(&key);
    }
}

#[derive(Debug)]
pub(super) struct Call<'a> {
    monitor: &'a RunnerMonitor,
    worker: usize,
    begun: Instant,
}

impl Call<'_> {
    pub(super) fn end(self, outcome: &CallOutcome) {
        let took = self.begun.elapsed();
        let mut state = self.monitor.state.lock();
        let stats = &mut state.stats;
        stats.longest = stats.longest.max(took);
        let count = match outcome {
            CallOutcome::Reconciled(reconciled) => {
                stats.requeued += u64::from(*reconciled != Reconciled::Done);
                &mut stats.succeeded
            }
            CallOutcome::Failed(_) => &mut stats.failed,
            CallOutcome::TimedOut(_) => &mut stats.timed_out,
            CallOutcome::Panicked(_) => &mut stats.panicked,
        };
        *count += 1;
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.monitor.state.lock().begun[self.worker] = None;
    }
}

impl fmt::Debug for RunnerMonitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunnerMonitor")
            .field("name", &self.name())
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
