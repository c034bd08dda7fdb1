//! [`Metrics`]: receives the events of a queue, for use with any metrics library.
//!
//! client-go: `MetricsProvider` of `util/workqueue/metrics.go`. In client-go, a background task
//! sets the two gauges of unfinished work every half second. Here, no task is needed, because the
//! gauges are computed when they are read.

use std::sync::Arc;
use std::time::Duration;

/// Receives the events of a queue. By default, the methods do nothing.
///
/// The methods are called without the queue's lock, by the thread that has added, taken or ended an
/// item. A thread that reads the number of queued or delayed keys can also call `added`, for keys
/// whose delay is over. Several threads can call them at the same time. They should be quick, and
/// must not panic.
/// Together with the gauges of the [queue](crate::Workqueue), they provide client-go's metrics:
///
/// | client-go's name | source |
/// |---|---|
/// | `workqueue_depth` | [`Workqueue::len`](crate::Workqueue::len) when the gauge is read |
/// | `workqueue_adds_total` | counts [`added`](Self::added) |
/// | `workqueue_queue_duration_seconds` | histogram of [`taken`](Self::taken) |
/// | `workqueue_work_duration_seconds` | histogram of [`finished`](Self::finished) |
/// | `workqueue_retries_total` | counts [`retried`](Self::retried) |
/// | `workqueue_unfinished_work_seconds` | [`UnfinishedWork::total`] |
/// | `workqueue_longest_running_processor_seconds` | [`UnfinishedWork::longest`] |
///
/// Calls of several threads can come in any order: `taken` can be called before `added` for the
/// same key. So use these methods for counters, and read gauges from the queue.
///
/// `QueueMetrics` of the crate informer-monitor provides the metrics under these names, for
/// Prometheus. Implement this trait only to use another metrics library.
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
    /// Called when a key becomes pending: the key is queued, or is added while a worker has it. Not
    /// called when a pending key is added again.
    fn added(&self, queue: &str) {
        let _ = queue;
    }

    /// Called when a worker has taken an item. `waited` is the time since the key became pending.
    fn taken(&self, queue: &str, waited: Duration) {
        let _ = (queue, waited);
    }

    /// Called when a worker has ended an item, for example with [`done`](crate::Item::done), or has
    /// dropped the item. `worked` is the time since the worker took the item.
    fn finished(&self, queue: &str, worked: Duration) {
        let _ = (queue, worked);
    }

    /// Called when a key is retried, or is added with a delay, for example by `add_after` or
    /// [`done_after`](crate::Item::done_after), even if the delay is zero. The call happens at the
    /// beginning of the delay. Not called after a shutdown.
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

/// A snapshot of a queue: the number of items that workers have, and the sum and the maximum of the
/// items' ages. The age of an item is the time since a worker took the item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct UnfinishedWork {
    /// The number of items that workers have.
    pub items: usize,
    /// The sum of the ages of all items that workers have. If the sum grows as fast as time passes,
    /// a worker is stuck.
    pub total: Duration,
    /// The age of the oldest item that a worker has.
    pub longest: Duration,
}
