//! [`Metrics`]: what a queue reports about itself, for whatever library a program has for metrics.
//!
//! client-go: `MetricsProvider` of `util/workqueue/metrics.go`. Its two gauges about unfinished work are set by a task
//! every half second; here they are worked out when they are asked for, so there is no task.

use std::sync::Arc;
use std::time::Duration;

/// Hears of what happens in a queue. Every method does nothing unless it is implemented.
///
/// The methods are called after the queue's lock has been released, from whoever added, took or ended an item, possibly
/// from several threads at once. They should be quick, and must not panic. Between them and the gauges that a
/// [queue](crate::Workqueue) answers itself, they are client-go's metrics:
///
/// | client-go's name | where it comes from |
/// |---|---|
/// | `workqueue_depth` | [`Workqueue::len`](crate::Workqueue::len), asked when the gauge is read |
/// | `workqueue_adds_total` | counts [`added`](Self::added) |
/// | `workqueue_queue_duration_seconds` | histogram of [`taken`](Self::taken) |
/// | `workqueue_work_duration_seconds` | histogram of [`finished`](Self::finished) |
/// | `workqueue_retries_total` | counts [`retried`](Self::retried) |
/// | `workqueue_unfinished_work_seconds` | [`UnfinishedWork::total`] |
/// | `workqueue_longest_running_processor_seconds` | [`UnfinishedWork::longest`] |
///
/// Several threads can report in another order than they acted: a key can be taken before its `added` arrives here. So count
/// with these methods, and read gauges from the queue.
///
/// [`QueueMetrics`](crate::QueueMetrics) keeps them under these names; implement the trait for another library.
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
    /// A key is pending that was not: it waits, or it will when its worker is done. Adding it again changes nothing.
    fn added(&self, queue: &str) {
        let _ = queue;
    }

    /// A worker has taken an item, this long after it became pending.
    fn taken(&self, queue: &str, waited: Duration) {
        let _ = (queue, waited);
    }

    /// A worker's item has ended, this long after it was taken.
    fn finished(&self, queue: &str, worked: Duration) {
        let _ = (queue, worked);
    }

    /// A key was added with a delay, or for another try.
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

/// What workers have in hand at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct UnfinishedWork {
    /// How many items workers have.
    pub items: usize,
    /// How long they have had them, all together. If it grows as fast as time passes, a worker is stuck.
    pub total: Duration,
    /// How long the oldest of them has taken so far.
    pub longest: Duration,
}
