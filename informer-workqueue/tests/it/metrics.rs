//! The metrics of a queue.

use std::sync::{Arc, Mutex};

use informer_workqueue::{ItemExponential, Metrics, QueueMetrics, Workqueue};
use tokio::time::advance;

use crate::{ms, soon, take};

#[derive(Default)]
struct Log(Mutex<Vec<String>>);

impl Log {
    fn record(&self, queue: &str, what: String) {
        assert_eq!(queue, "test");
        self.0.lock().expect("no panic").push(what);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().expect("no panic"))
    }
}

impl Metrics for Log {
    fn added(&self, queue: &str) {
        self.record(queue, "added".into());
    }

    fn taken(&self, queue: &str, waited: std::time::Duration) {
        self.record(queue, format!("taken after {waited:?}"));
    }

    fn finished(&self, queue: &str, worked: std::time::Duration) {
        self.record(queue, format!("finished after {worked:?}"));
    }

    fn retried(&self, queue: &str) {
        self.record(queue, "retried".into());
    }
}

fn queue() -> (Workqueue<&'static str>, Arc<Log>) {
    let log = Arc::new(Log::default());
    let queue = Workqueue::builder()
        .name("test")
        .rate_limiter(ItemExponential::new(ms(1), ms(1_000)))
        .metrics(Arc::clone(&log))
        .build();
    (queue, log)
}

#[tokio::test(start_paused = true)]
async fn adds_waits_and_work_are_counted_like_client_go() {
    let (queue, log) = queue();
    queue.add("a");
    advance(ms(50)).await;
    queue.add("a");
    assert_eq!(log.take(), ["added"], "a second add of a pending key is not counted");
    let item = take(&queue).expect("an item");
    assert_eq!(log.take(), ["taken after 50ms"]);
    advance(ms(25)).await;
    queue.add("a");
    assert_eq!(log.take(), ["added"], "a key with a worker can be pending");
    advance(ms(25)).await;
    item.done();
    assert_eq!(log.take(), ["finished after 50ms"]);
    advance(ms(10)).await;
    take(&queue).expect("an item").done();
    assert_eq!(log.take(), ["taken after 35ms", "finished after 0ns"]);
}

#[tokio::test(start_paused = true)]
async fn metrics_count_retries_and_adds_of_delayed_keys() {
    let (queue, log) = queue();
    queue.add_after("a", ms(10));
    assert_eq!(log.take(), ["retried"]);
    advance(ms(15)).await;
    assert_eq!(queue.len(), 1);
    assert_eq!(log.take(), ["added"]);
    advance(ms(1)).await;
    let item = take(&queue).expect("an item");
    assert_eq!(log.take(), ["taken after 1ms"], "pending since the call that found the key due");
    item.retry();
    assert_eq!(log.take(), ["finished after 0ns", "retried"]);
    soon(queue.get()).await.expect("not shut down").done_after(ms(0));
    assert_eq!(log.take(), ["added", "taken after 0ns", "added", "finished after 0ns", "retried"]);
    drop(take(&queue));
    assert_eq!(log.take(), ["taken after 0ns", "finished after 0ns", "retried"]);
    queue.add_rate_limited("b");
    assert_eq!(log.take(), ["retried"]);
    queue.shut_down();
    queue.add("c");
    queue.add_after("c", ms(10));
    assert_eq!(log.take(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn unfinished_work_is_the_age_of_taken_items() {
    let (queue, _) = queue();
    let work = || queue.unfinished_work().map(|work| (work.items, work.total, work.longest));
    assert_eq!(work(), Some((0, ms(0), ms(0))));
    queue.add("a");
    queue.add("b");
    let first = take(&queue).expect("an item");
    advance(ms(30)).await;
    let second = take(&queue).expect("an item");
    advance(ms(10)).await;
    assert_eq!(work(), Some((2, ms(50), ms(40))));
    first.done();
    assert_eq!(work(), Some((1, ms(10), ms(10))));
    second.done();
    assert_eq!(work(), Some((0, ms(0), ms(0))));
}

#[tokio::test(start_paused = true)]
async fn queue_without_metrics_measures_no_times() {
    let queue = Workqueue::new();
    queue.add("a");
    let item = take(&queue).expect("an item");
    assert_eq!(queue.unfinished_work(), None);
    item.done();
}

#[tokio::test(start_paused = true)]
async fn dropped_queue_drops_its_metrics() {
    let (queue, log) = queue();
    queue.add_after("a", ms(10));
    queue.shut_down();
    drop(queue);
    assert_eq!(Arc::strong_count(&log), 1);
}

#[tokio::test(start_paused = true)]
async fn prometheus_text_has_client_go_names() {
    let metrics = Arc::new(QueueMetrics::new());
    let limiter = ItemExponential::new(ms(1), ms(1_000));
    let queue = Workqueue::builder().name("pods").rate_limiter(limiter).metrics(Arc::clone(&metrics)).build();
    metrics.follow(&queue);
    queue.add("done");
    queue.add("in hand");
    queue.add("waits");
    advance(ms(50)).await;
    let done = take(&queue).expect("an item");
    let in_hand = take(&queue).expect("an item");
    advance(ms(2_000)).await;
    done.done();
    advance(ms(500)).await;
    queue.add_rate_limited("later");
    let text = metrics.to_string();
    for expected in [
        "# TYPE workqueue_depth gauge\nworkqueue_depth{name=\"pods\"} 1\n",
        "# TYPE workqueue_adds_total counter\nworkqueue_adds_total{name=\"pods\"} 3\n",
        "# TYPE workqueue_retries_total counter\nworkqueue_retries_total{name=\"pods\"} 1\n",
        "# TYPE workqueue_queue_duration_seconds histogram\n",
        "workqueue_queue_duration_seconds_bucket{name=\"pods\",le=\"0.01\"} 0\n",
        "workqueue_queue_duration_seconds_bucket{name=\"pods\",le=\"0.1\"} 2\n",
        "workqueue_queue_duration_seconds_bucket{name=\"pods\",le=\"+Inf\"} 2\n",
        "workqueue_queue_duration_seconds_sum{name=\"pods\"} 0.1\n",
        "workqueue_queue_duration_seconds_count{name=\"pods\"} 2\n",
        "workqueue_work_duration_seconds_bucket{name=\"pods\",le=\"1\"} 0\n",
        "workqueue_work_duration_seconds_bucket{name=\"pods\",le=\"10\"} 1\n",
        "workqueue_work_duration_seconds_sum{name=\"pods\"} 2\n",
        "# TYPE workqueue_unfinished_work_seconds gauge\nworkqueue_unfinished_work_seconds{name=\"pods\"} 2.5\n",
        "workqueue_longest_running_processor_seconds{name=\"pods\"} 2.5\n",
    ] {
        assert!(text.contains(expected), "{expected} is not in\n{text}");
    }
    in_hand.done();
    drop(queue);
    assert!(!metrics.to_string().contains("unfinished_work_seconds{"), "the queue was dropped");
}

#[test]
fn queue_name_is_escaped_in_labels() {
    let metrics = QueueMetrics::new();
    metrics.added("a\"b\\c\nd");
    let text = metrics.to_string();
    assert!(text.contains(r#"workqueue_depth{name="a\"b\\c\nd"} 1"#), "{text}");
}

#[test]
fn depth_stays_correct_when_a_take_is_reported_first() {
    let metrics = QueueMetrics::new();
    metrics.taken("pods", ms(0));
    assert!(metrics.to_string().contains("workqueue_depth{name=\"pods\"} 0\n"));
    metrics.added("pods");
    assert!(metrics.to_string().contains("workqueue_depth{name=\"pods\"} 0\n"));
}

#[tokio::test(start_paused = true)]
async fn depth_of_followed_queue_is_its_length() {
    let metrics = Arc::new(QueueMetrics::new());
    let build = || Workqueue::builder().name("pods").metrics(Arc::clone(&metrics)).build();
    let depth = |expected: u32| {
        let line = format!("workqueue_depth{{name=\"pods\"}} {expected}\n");
        assert!(metrics.to_string().contains(&line), "{line} is not in\n{metrics}");
    };
    let (queue, other) = (build(), build());
    metrics.follow(&queue);
    metrics.follow(&other);
    depth(0);
    queue.add_all(["a", "b", "a"], informer_workqueue::Priority::Normal);
    other.add("c");
    queue.add_after("d", ms(10));
    depth(3);
    let item = take(&queue).expect("an item");
    depth(2);
    queue.add(*item.key());
    depth(2);
    item.done();
    advance(ms(20)).await;
    depth(4);
    drop((queue, other));
    depth(0);
}
