//! [`Metrics`]: receives the events of a queue, for any metrics library.
//!
//! client-go: `MetricsProvider` of `util/workqueue/metrics.go`. In client-go, a task sets the two
//! gauges of unfinished work every half second. Here, the gauges are computed when they are read,
//! without a task.

use std::sync::Arc;
use std::time::Duration;

/// Receives the events of a queue. By default, the methods do nothing.
///
/// The methods are called without the queue's lock, by the thread that added, took or ended an
/// item, possibly by several threads at once. They should be quick, and must not panic. Together
/// with the gauges of the [queue](crate::Workqueue), they provide client-go's metrics:
///
/// | client-go's name | source |
/// |---|---|
/// | `workqueue_depth` | [`Workqueue::len`](crate::Workqueue::len), read with the gauge |
/// | `workqueue_adds_total` | counts [`added`](Self::added) |
/// | `workqueue_queue_duration_seconds` | histogram of [`taken`](Self::taken) |
/// | `workqueue_work_duration_seconds` | histogram of [`finished`](Self::finished) |
/// | `workqueue_retries_total` | counts [`retried`](Self::retried) |
/// | `workqueue_unfinished_work_seconds` | [`UnfinishedWork::total`] |
/// | `workqueue_longest_running_processor_seconds` | [`UnfinishedWork::longest`] |
///
/// Reports of several threads can arrive in any order: a key can be taken before its `added`
/// arrives. So use these methods for counters, and read gauges from the queue.
///
/// [`QueueMetrics`](crate::QueueMetrics) provides the metrics under these names. Implement the
/// trait for another metrics library.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use informer_workqueue::{Metrics, Workqueue};
///
/// #[derive(Default)]
/// struct Adds(AtomicU64);
///
/// impl Metrics for Adds {
///     fn added(&self, _: &str) {
///         self.0.fetch_add(1, Ordering::Relaxed);
///     }
/// }
///
/// let adds = Arc::new(Adds::default());
/// let queue = Workqueue::builder().name("pods").metrics(Arc::clone(&adds)).build();
/// queue.add("shop/apple");
/// queue.add("shop/apple");
/// assert_eq!((adds.0.load(Ordering::Relaxed), queue.len()), (1, 1));
/// ```
#[doc(alias = "MetricsProvider")]
pub trait Metrics: Send + Sync {
    /// A key became pending. Adding a pending key again is not reported.
    fn added(&self, queue: &str) {
        let _ = queue;
    }

    /// A worker took an item. `waited` is the time since its key became pending.
    fn taken(&self, queue: &str, waited: Duration) {
        let _ = (queue, waited);
    }

    /// A worker's item ended. `worked` is the time since the item was taken.
    fn finished(&self, queue: &str, worked: Duration) {
        let _ = (queue, worked);
    }

    /// A key was added with a delay, or for a retry.
    fn retried(&self, queue: &str) {
        let _ = queue;
    }
}

impl<M: Metrics + ?Sized> Metrics for Arc<M> {
    fn added(&self, queue: &str) {
        (**self).added(queue);
    }

    fn taken(&self, queue: &str, waited: Duration) {
        (**self).taken(queue, waited);
    }

    fn finished(&self, queue: &str, worked: Duration) {
        (**self).finished(queue, worked);
    }

    fn retried(&self, queue: &str) {
        (**self).retried(queue);
    }
}

/// The items that workers have at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct UnfinishedWork {
    /// The number of items.
    pub items: usize,
    /// The sum of the times since workers took these items. If the sum grows as fast as time
    /// passes, a worker is stuck.
    pub total: Duration,
    /// The time since a worker took the oldest of these items.
    pub longest: Duration,
}
