//! The metrics of work queues.

use std::time::Duration;

use informer_monitor::QueueMetrics;
use informer_workqueue::{ItemExponential, Metrics, Priority, Workqueue};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio::time::advance;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn page(metrics: &QueueMetrics) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(metrics.clone()));
    let mut page = String::new();
    encode(&mut page, &registry).expect("a string");
    page
}

#[tokio::test(start_paused = true)]
async fn metrics_have_client_go_names() {
    let metrics = QueueMetrics::new();
    let limiter = ItemExponential::new(ms(1), ms(1_000));
    let queue = Workqueue::builder().name("pods").rate_limiter(limiter).metrics(metrics.clone()).build();
    metrics.follow(&queue);
    queue.add("done");
    queue.add("in hand");
    queue.add("waits");
    advance(ms(50)).await;
    let done = queue.get().await.expect("an item");
    let in_hand = queue.get().await.expect("an item");
    advance(ms(2_000)).await;
    done.done();
    advance(ms(500)).await;
    queue.add_rate_limited("later");
    let text = page(&metrics);
    for expected in [
        "# TYPE workqueue_depth gauge\nworkqueue_depth{name=\"pods\"} 1.0\n",
        "workqueue_adds_total{name=\"pods\"} 3.0\n",
        "workqueue_retries_total{name=\"pods\"} 1.0\n",
        "# TYPE workqueue_queue_duration_seconds histogram\n",
        "workqueue_queue_duration_seconds_bucket{le=\"0.01\",name=\"pods\"} 0\n",
        "workqueue_queue_duration_seconds_bucket{le=\"0.1\",name=\"pods\"} 2\n",
        "workqueue_queue_duration_seconds_bucket{le=\"+Inf\",name=\"pods\"} 2\n",
        "workqueue_queue_duration_seconds_sum{name=\"pods\"} 0.1\n",
        "workqueue_queue_duration_seconds_count{name=\"pods\"} 2\n",
        "workqueue_work_duration_seconds_bucket{le=\"1.0\",name=\"pods\"} 0\n",
        "workqueue_work_duration_seconds_bucket{le=\"10.0\",name=\"pods\"} 1\n",
        "workqueue_work_duration_seconds_sum{name=\"pods\"} 2.0\n",
        "# TYPE workqueue_unfinished_work_seconds gauge\nworkqueue_unfinished_work_seconds{name=\"pods\"} 2.5\n",
        "workqueue_longest_running_processor_seconds{name=\"pods\"} 2.5\n",
    ] {
        assert!(text.contains(expected), "{expected} is not in\n{text}");
    }
    in_hand.done();
    drop(queue);
    let text = page(&metrics);
    assert!(!text.contains("name=\"pods\""), "the queue was dropped:\n{text}");
}

#[test]
fn depth_stays_correct_when_a_take_is_reported_first() {
    let metrics = QueueMetrics::new();
    metrics.taken("pods", ms(0));
    assert!(page(&metrics).contains("workqueue_depth{name=\"pods\"} 0.0\n"));
    metrics.added("pods");
    assert!(page(&metrics).contains("workqueue_depth{name=\"pods\"} 0.0\n"));
}

#[tokio::test(start_paused = true)]
async fn depth_of_followed_queue_is_its_length() {
    let metrics = QueueMetrics::new();
    let build = || Workqueue::builder().name("pods").metrics(metrics.clone()).build();
    let depth = |expected: u32| {
        let (line, page) = (format!("workqueue_depth{{name=\"pods\"}} {expected}.0\n"), page(&metrics));
        assert!(page.contains(&line), "{line} is not in\n{page}");
    };
    let (queue, other) = (build(), build());
    metrics.follow(&queue);
    metrics.follow(&other);
    depth(0);
    queue.add_all(["a", "b", "a"], Priority::Normal);
    other.add("c");
    queue.add_after("d", ms(10));
    depth(3);
    let item = queue.get().await.expect("an item");
    depth(2);
    queue.add(*item.key());
    depth(2);
    item.done();
    advance(ms(20)).await;
    depth(4);
    drop(other);
    depth(3);
    drop(queue);
    assert_eq!(page(&metrics).find("pods"), None);
}
