//! [`QueueMetrics`]: the metrics of queues in Prometheus' text format, with client-go's names.
//!
//! client-go: `MetricsProvider` of `util/workqueue/metrics.go`. Names and histogram buckets are
//! those of `component-base/metrics/prometheus/workqueue`, which Kubernetes' own programs use.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::{Metrics, UnfinishedWork, Workqueue};

/// Collects the metrics of any number of queues, and formats them for Prometheus without a metrics
/// library.
///
/// The [`Display`](fmt::Display) output is a page in Prometheus' text format, with client-go's
/// names and a label `name` for the queue. A program with other metrics appends this page to its
/// own. Dashboards and alerts for controllers in Go work unchanged.
///
/// ```
/// use std::sync::Arc;
/// use informer_workqueue::{QueueMetrics, Workqueue};
///
/// let metrics = Arc::new(QueueMetrics::new());
/// let queue = Workqueue::builder().name("pods").metrics(Arc::clone(&metrics)).build();
/// metrics.follow(&queue);
/// queue.add("shop/apple");
/// assert!(metrics.to_string().contains("workqueue_adds_total{name=\"pods\"} 1\n"));
/// ```
#[derive(Default)]
#[doc(alias = "MetricsProvider")]
pub struct QueueMetrics {
    queues: Mutex<BTreeMap<String, Numbers>>,
    followed: Mutex<Vec<Followed>>,
}

/// A queue whose gauges are part of the metrics. `gauges` returns `None` once the queue has been
/// dropped.
struct Followed {
    name: String,
    gauges: Box<dyn Fn() -> Option<Gauges> + Send + Sync>,
}

/// The gauges of all queues with the same name.
#[derive(Default)]
struct Gauges {
    depth: u64,
    /// The unfinished work of the queues; `None` if the queues record no times.
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
#[derive(Default)]
struct Numbers {
    /// Whether a queue with this name was passed to [`QueueMetrics::follow`].
    is_followed: bool,
    adds: u64,
    retries: u64,
    waited: Histogram,
    worked: Histogram,
}

#[derive(Default)]
struct Histogram {
    /// For each bound, the number of durations up to this bound and above the previous bound.
    /// Durations above the last bound are counted only in `count`.
    buckets: [u64; BOUNDS.len()],
    count: u64,
    sum: Duration,
}

/// The upper bounds of the histogram buckets, from 10 ns to 10 s, with their labels in Prometheus.
const BOUNDS: [(Duration, &str); 10] = [
    (Duration::from_nanos(10), "1e-08"),
    (Duration::from_nanos(100), "1e-07"),
    (Duration::from_micros(1), "1e-06"),
    (Duration::from_micros(10), "1e-05"),
    (Duration::from_micros(100), "0.0001"),
    (Duration::from_millis(1), "0.001"),
    (Duration::from_millis(10), "0.01"),
    (Duration::from_millis(100), "0.1"),
    (Duration::from_secs(1), "1"),
    (Duration::from_secs(10), "10"),
];

impl QueueMetrics {
    /// Returns metrics that contain no queue yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the gauges of `queue`, until the queue is dropped: its exact depth, and its unfinished
    /// work. Build the queue with these or other [metrics](crate::WorkqueueBuilder::metrics). A
    /// queue without metrics records no times, and its unfinished work is missing.
    ///
    /// For queues that are not passed to this method, the depth is the difference between the
    /// reported adds and takes.
    pub fn follow<T: Hash + Eq + Clone + Send + 'static>(&self, queue: &Workqueue<T>) {
        let shared = Arc::downgrade(queue.shared());
        let gauges = Box::new(move || {
            let shared = shared.upgrade()?;
            Some(Gauges { depth: shared.len() as u64, unfinished: shared.unfinished() })
        });
        self.change(queue.name(), |numbers| numbers.is_followed = true);
        self.followed.lock().push(Followed { name: queue.name().to_owned(), gauges });
    }

    fn change(&self, queue: &str, change: impl FnOnce(&mut Numbers)) {
        let mut queues = self.queues.lock();
        if let Some(numbers) = queues.get_mut(queue) {
            return change(numbers);
        }
        change(queues.entry(queue.to_owned()).or_default());
    }

    /// Reads the gauges of the queues that have not been dropped.
    fn gauges(&self) -> BTreeMap<String, Gauges> {
        let mut followed = self.followed.lock();
        let mut found = BTreeMap::<String, Gauges>::new();
        followed.retain(|queue| {
            let gauges = (queue.gauges)();
            let is_there = gauges.is_some();
            gauges.iter().for_each(|gauges| found.entry(queue.name.clone()).or_default().merge(gauges));
            is_there
        });
        found
    }
}

impl Metrics for QueueMetrics {
    fn added(&self, queue: &str) {
        self.change(queue, |numbers| numbers.adds += 1);
    }

    fn taken(&self, queue: &str, waited: Duration) {
        self.change(queue, |numbers| numbers.waited.observe(waited));
    }

    fn finished(&self, queue: &str, worked: Duration) {
        self.change(queue, |numbers| numbers.worked.observe(worked));
    }

    fn retried(&self, queue: &str) {
        self.change(queue, |numbers| numbers.retries += 1);
    }
}

impl Numbers {
    /// Returns the number of queued keys. If no gauge is available, computes the number from the
    /// reported adds and takes.
    fn depth(&self, gauges: Option<&Gauges>) -> u64 {
        let reported = if self.is_followed { 0 } else { self.adds.saturating_sub(self.waited.count) };
        gauges.map_or(reported, |gauges| gauges.depth)
    }
}

impl Histogram {
    fn observe(&mut self, time: Duration) {
        if let Some(bucket) = BOUNDS.iter().position(|(bound, _)| time <= *bound) {
            self.buckets[bucket] += 1;
        }
        self.count += 1;
        self.sum += time;
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, metric: &str, queue: &Label<'_>) -> fmt::Result {
        let mut below = 0;
        for (count, (_, bound)) in self.buckets.iter().zip(BOUNDS) {
            below += count;
            writeln!(f, "{metric}_bucket{{name=\"{queue}\",le=\"{bound}\"}} {below}")?;
        }
        writeln!(f, "{metric}_bucket{{name=\"{queue}\",le=\"+Inf\"}} {}", self.count)?;
        writeln!(f, "{metric}_sum{{name=\"{queue}\"}} {}", self.sum.as_secs_f64())?;
        writeln!(f, "{metric}_count{{name=\"{queue}\"}} {}", self.count)
    }
}

/// A label value, which is escaped when it is written.
struct Label<'a>(&'a str);

impl fmt::Display for Label<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '\\' => f.write_str("\\\\"),
            '"' => f.write_str("\\\""),
            '\n' => f.write_str("\\n"),
            other => f.write_char(other),
        })
    }
}

fn head(f: &mut fmt::Formatter<'_>, metric: &str, kind: &str, help: &str) -> fmt::Result {
    writeln!(f, "# HELP {metric} {help}\n# TYPE {metric} {kind}")
}

impl fmt::Display for QueueMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The gauges are read while `queues` is not locked.
        let asked = self.gauges();
        let queues = self.queues.lock();
        head(f, "workqueue_depth", "gauge", "Number of queued keys.")?;
        for (queue, of_queue) in &*queues {
            let depth = of_queue.depth(asked.get(queue));
            writeln!(f, "workqueue_depth{{name=\"{}\"}} {depth}", Label(queue))?;
        }
        let numbers = [
            (
                "adds_total",
                "counter",
                "Number of keys that were queued.",
                (|it| it.adds) as fn(&Numbers) -> u64,
            ),
            ("retries_total", "counter", "Number of keys that were added with a delay or retried.", |it| {
                it.retries
            }),
        ];
        for (metric, kind, help, number) in numbers {
            let metric = format!("workqueue_{metric}");
            head(f, &metric, kind, help)?;
            for (queue, of_queue) in &*queues {
                writeln!(f, "{metric}{{name=\"{}\"}} {}", Label(queue), number(of_queue))?;
            }
        }
        let times = [
            (
                "queue",
                "Time in seconds that keys waited until a worker took them.",
                (|it| &it.waited) as fn(&Numbers) -> &Histogram,
            ),
            ("work", "Time in seconds that workers took to process items.", |it| &it.worked),
        ];
        for (metric, help, histogram) in times {
            let metric = format!("workqueue_{metric}_duration_seconds");
            head(f, &metric, "histogram", help)?;
            queues.iter().try_for_each(|(queue, it)| histogram(it).write(f, &metric, &Label(queue)))?;
        }
        let gauges = [
            (
                "unfinished_work",
                "Total time in seconds since workers took their unfinished items.",
                (|it| it.total) as fn(&UnfinishedWork) -> Duration,
            ),
            (
                "longest_running_processor",
                "Time in seconds since a worker took the oldest unfinished item.",
                |it| it.longest,
            ),
        ];
        for (metric, help, time) in gauges {
            let metric = format!("workqueue_{metric}_seconds");
            head(f, &metric, "gauge", help)?;
            let timed = asked.iter().filter_map(|(queue, it)| Some((queue, it.unfinished.as_ref()?)));
            for (queue, work) in timed {
                writeln!(f, "{metric}{{name=\"{}\"}} {}", Label(queue), time(work).as_secs_f64())?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for QueueMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let queues: Vec<_> = self.queues.lock().keys().cloned().collect();
        f.debug_struct("QueueMetrics").field("queues", &queues).finish_non_exhaustive()
    }
}
