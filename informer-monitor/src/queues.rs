//! [`QueueMetrics`]: the metrics of work queues, with client-go's names.
//!
//! A queue is followed if the program has passed the queue to [`QueueMetrics::follow`]. The metrics
//! then read the depth and the unfinished work from the queue itself, until the queue is dropped.
//!
//! client-go: `MetricsProvider` of `util/workqueue/metrics.go`. Names and histogram buckets are
//! those of `component-base/metrics/prometheus/workqueue`, which Kubernetes' own programs use.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use informer_workqueue::{Metrics, UnfinishedWork, Workqueue};
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType::{self, Counter, Gauge};
use prometheus_client::metrics::histogram::Histogram;

use crate::write;

/// The metrics of any number of work queues. A clone is another handle to the same metrics.
///
/// Names are client-go's, and buckets are those of Kubernetes' own programs, so dashboards and
/// alerts for these programs work unchanged. Each series has the label `name` with the name of the
/// queue.
///
/// ```
/// use informer_monitor::QueueMetrics;
/// use informer_workqueue::Workqueue;
/// use prometheus_client::registry::Registry;
///
/// let metrics = QueueMetrics::new();
/// let mut registry = Registry::default();
/// registry.register_collector(Box::new(metrics.clone()));
///
/// let queue = Workqueue::builder().name("pods").metrics(metrics.clone()).build();
/// metrics.follow(&queue);
/// queue.add("shop/apple");
///
/// let mut page = String::new();
/// prometheus_client::encoding::text::encode(&mut page, &registry)?;
/// assert!(page.contains("workqueue_adds_total{name=\"pods\"} 1"));
/// # Ok::<(), std::fmt::Error>(())
/// ```
#[derive(Clone, Default)]
#[doc(alias = "MetricsProvider")]
pub struct QueueMetrics {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    queues: Mutex<BTreeMap<String, Numbers>>,
    followed: Mutex<Vec<Arc<Followed>>>,
}

/// A followed queue. `gauges` returns `None` once the queue has been dropped.
struct Followed {
    name: String,
    gauges: Box<dyn Fn() -> Option<Gauges> + Send + Sync>,
}

/// Values that were read from one followed queue. [`merge`](Self::merge) combines the values of
/// queues with the same name.
#[derive(Default)]
struct Gauges {
    /// The number of queued keys.
    depth: u64,
    /// The number of keys that workers have, and how long the workers have had them. `None` for
    /// queues that were built without metrics.
    unfinished: Option<UnfinishedWork>,
}

impl Gauges {
    fn merge(&mut self, other: &Self) {
        self.depth += other.depth;
        if let Some(more) = &other.unfinished {
            let work = self.unfinished.get_or_insert_default();
            work.items += more.items;
            work.total += more.total;
            work.longest = work.longest.max(more.longest);
        }
    }
}

/// The counters and histograms of all queues with the same name.
struct Numbers {
    adds: u64,
    takes: u64,
    retries: u64,
    waited: Histogram,
    worked: Histogram,
}

impl Default for Numbers {
    fn default() -> Self {
        // The buckets range from 10 ns to 10 s.
        let histogram = || Histogram::new((-8..=1).map(|exponent| 10_f64.powi(exponent)));
        Self { adds: 0, takes: 0, retries: 0, waited: histogram(), worked: histogram() }
    }
}

impl QueueMetrics {
    /// Returns metrics that contain no queue yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the exact depth and the unfinished work of `queue` for these metrics, until the queue
    /// is dropped. If the queue was built without
    /// [metrics](informer_workqueue::WorkqueueBuilder::metrics), only the depth is read.
    ///
    /// Queues with the same name share one set of series. After all followed queues with a name
    /// have been dropped, the series with this name end.
    ///
    /// A queue that was built with these metrics has series from its first key on, even if no queue
    /// with its name is followed. Its depth is then computed: the number of added keys minus the
    /// number of keys that workers have received. Its series remain after the queue is dropped.
    pub fn follow<T: Hash + Eq + Clone + Send + 'static>(&self, queue: &Workqueue<T>) {
        let observe = queue.observer();
        let gauges = Box::new(move || {
            let (depth, unfinished) = observe()?;
            Some(Gauges { depth: depth as u64, unfinished })
        });
        let followed = Arc::new(Followed { name: queue.name().to_owned(), gauges });
        self.shared.followed.lock().push(followed);
    }

    fn change(&self, queue: &str, change: impl FnOnce(&mut Numbers)) {
        let mut queues = self.shared.queues.lock();
        if let Some(numbers) = queues.get_mut(queue) {
            return change(numbers);
        }
        change(queues.entry(queue.to_owned()).or_default());
    }

    /// Returns the current values of all followed queues by name, and the names whose last followed
    /// queue was dropped since the last call.
    fn gauges(&self) -> (BTreeMap<String, Gauges>, BTreeSet<String>) {
        // I8: a call of `Followed::gauges` can drop the queue with its keys, so the calls are made
        // without the lock.
        let followed = self.shared.followed.lock().clone();
        let mut found = BTreeMap::<String, Gauges>::new();
        let mut ended = Vec::new();
        for queue in &followed {
            match (queue.gauges)() {
                Some(gauges) => found.entry(queue.name.clone()).or_default().merge(&gauges),
                None => ended.push(queue),
            }
        }
        let has_ended = |queue: &mut Arc<Followed>| ended.iter().any(|&ended| Arc::ptr_eq(ended, queue));
        let mut followed = self.shared.followed.lock();
        let mut dropped: BTreeSet<_> =
            followed.extract_if(.., has_ended).map(|queue| queue.name.clone()).collect();
        // Another queue with the same name can have been created meanwhile.
        followed.iter().for_each(|queue| _ = dropped.remove(&queue.name));
        (found, dropped)
    }
}

impl Metrics for QueueMetrics {
    fn added(&self, queue: &str) {
        self.change(queue, |numbers| numbers.adds += 1);
    }

    fn taken(&self, queue: &str, waited: Duration) {
        self.change(queue, |numbers| {
            numbers.takes += 1;
            numbers.waited.observe(waited.as_secs_f64());
        });
    }

    fn finished(&self, queue: &str, worked: Duration) {
        self.change(queue, |numbers| numbers.worked.observe(worked.as_secs_f64()));
    }

    fn retried(&self, queue: &str) {
        self.change(queue, |numbers| numbers.retries += 1);
    }
}

type Labels<'a> = [(&'a str, &'a str); 1];

fn label(queue: &str) -> Labels<'_> {
    [("name", queue)]
}

impl Collector for QueueMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        // The gauges are read while `queues` is not locked.
        let (gauges, dropped) = self.gauges();
        let mut queues = self.shared.queues.lock();
        queues.retain(|queue, _| gauges.contains_key(queue) || !dropped.contains(queue));
        // A followed queue has series even if it was built without metrics. They are created here
        // and not in `follow`, because a scrape at the same time could remove them: the name can be
        // that of a dropped queue.
        for queue in gauges.keys() {
            queues.entry(queue.clone()).or_default();
        }
        let encoder = &mut encoder;
        let depths = queues.iter().map(|(queue, it)| {
            // The depth of a queue that is not followed is computed.
            let computed = it.adds.saturating_sub(it.takes);
            (label(queue), gauges.get(queue).map_or(computed, |gauges| gauges.depth) as f64)
        });
        write(encoder, Gauge, "workqueue_depth", "Number of queued keys", depths)?;
        let adds = queues.iter().map(|(queue, it)| (label(queue), it.adds as f64));
        write(encoder, Counter, "workqueue_adds", "Number of keys that were queued", adds)?;
        let retries = queues.iter().map(|(queue, it)| (label(queue), it.retries as f64));
        write(
            encoder,
            Counter,
            "workqueue_retries",
            "Number of keys that were added with a delay or retried",
            retries,
        )?;

        let (name, help) = ("workqueue_queue_duration_seconds", "Time that keys waited for a worker");
        histogram(encoder, name, help, queues.iter().map(|(queue, it)| (label(queue), &it.waited)))?;
        let (name, help) = ("workqueue_work_duration_seconds", "Time that workers took to process keys");
        histogram(encoder, name, help, queues.iter().map(|(queue, it)| (label(queue), &it.worked)))?;

        let timed = || gauges.iter().filter_map(|(queue, it)| Some((label(queue), it.unfinished.as_ref()?)));
        let totals = timed().map(|(label, work)| (label, work.total.as_secs_f64()));
        let (name, help) = ("workqueue_unfinished_work_seconds", "Total age of the keys that workers have");
        write(encoder, Gauge, name, help, totals)?;
        let longest = timed().map(|(label, work)| (label, work.longest.as_secs_f64()));
        let name = "workqueue_longest_running_processor_seconds";
        write(encoder, Gauge, name, "Age of the oldest key that a worker has", longest)
    }
}

fn histogram<'a>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    samples: impl Iterator<Item = (Labels<'a>, &'a Histogram)>,
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
    for (labels, histogram) in samples {
        histogram.encode(metric.encode_family(&labels)?)?;
    }
    Ok(())
}

impl fmt::Debug for QueueMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let queues: Vec<_> = self.shared.queues.lock().keys().cloned().collect();
        f.debug_struct("QueueMetrics").field("queues", &queues).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;

    #[test]
    fn queues_are_read_without_a_lock() {
        let metrics = QueueMetrics::new();
        let shared = Arc::downgrade(&metrics.shared);
        let gauges = Box::new(move || {
            let shared = shared.upgrade()?;
            let is_unlocked = shared.followed.try_lock().is_some();
            is_unlocked.then(Gauges::default)
        });
        metrics.shared.followed.lock().push(Arc::new(Followed { name: "pods".to_owned(), gauges }));
        assert!(metrics.gauges().0.contains_key("pods"));
    }

    #[test]
    fn series_of_followed_queue_return_after_a_racing_scrape() {
        let metrics = QueueMetrics::new();
        let queue = Workqueue::<&str>::builder().name("pods").build();
        metrics.follow(&queue);
        // The effect of a scrape that runs at the same time, and has found only an earlier queue
        // with this name, which was dropped.
        metrics.shared.queues.lock().clear();
        let mut registry = Registry::default();
        registry.register_collector(Box::new(metrics));
        let mut page = String::new();
        encode(&mut page, &registry).expect("a string");
        assert!(page.contains("workqueue_depth{name=\"pods\"} 0.0\n"), "{page}");
    }
}
