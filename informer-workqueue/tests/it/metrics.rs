//! The metrics of a queue.

use std::sync::{Arc, Mutex};

use informer_workqueue::{ItemExponential, Metrics, Workqueue};
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
