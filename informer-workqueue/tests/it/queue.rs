//! Adding and taking keys.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::task::noop_waker;
use informer_workqueue::Workqueue;
use tokio::task::JoinSet;

use crate::{counting_waker, soon, take, take_all};

#[test]
fn keys_are_returned_in_the_order_of_their_adds() {
    let queue = Workqueue::new();
    [3, 1, 2].into_iter().for_each(|key| queue.add(key));
    assert_eq!(take_all(&queue), [3, 1, 2]);
}

#[test]
fn queued_key_is_not_queued_twice() {
    let queue = Workqueue::new();
    queue.add("a");
    queue.add("b");
    queue.add("a");
    assert_eq!(queue.len(), 2);
    assert_eq!(take_all(&queue), ["a", "b"]);
}

#[test]
fn processed_key_is_exclusive_and_requeued_once() {
    let queue = Workqueue::new();
    queue.add("a");
    let item = take(&queue).expect("an item");
    queue.add("a");
    queue.add("a");
    assert!(take(&queue).is_none() && queue.is_empty());
    item.done();
    assert_eq!(queue.len(), 1);
    assert_eq!(take_all(&queue), ["a"]);
    assert!(take(&queue).is_none());
}

#[test]
fn key_added_after_done_is_queued_again() {
    let queue = Workqueue::new();
    for _ in 0..2 {
        queue.add("a");
        assert_eq!(take_all(&queue), ["a"]);
    }
}

#[test]
fn length_counts_queued_keys_only() {
    let queue = Workqueue::new();
    queue.add("a");
    queue.add("b");
    assert_eq!(queue.len(), 2);
    let item = take(&queue).expect("an item");
    assert_eq!(queue.len(), 1);
    item.done();
    assert_eq!(queue.len(), 1);
    assert!(!queue.is_empty());
}

#[test]
fn done_key_is_dropped() {
    let queue = Workqueue::new();
    let key = Arc::new("a");
    queue.add(Arc::clone(&key));
    queue.add(Arc::clone(&key));
    take(&queue).expect("an item").done();
    assert_eq!(Arc::strong_count(&key), 1);
    queue.add(Arc::clone(&key));
    queue.add_after(Arc::clone(&key), crate::ms(1));
    take(&queue).expect("an item").done();
    assert_eq!(Arc::strong_count(&key), 2, "the queue holds the delayed key");
    queue.shut_down();
    assert_eq!(Arc::strong_count(&key), 1);
}

#[test]
fn ten_thousand_keys_are_processed_repeatedly() {
    let queue = Workqueue::new();
    for _ in 0..2 {
        (0..10_000).for_each(|key| queue.add(key));
        assert_eq!(queue.len(), 10_000);
        assert!(take_all(&queue).into_iter().eq(0..10_000));
    }
}

#[tokio::test(start_paused = true)]
async fn add_without_runtime_wakes_a_waiter() {
    let queue = Workqueue::new();
    let worker = tokio::spawn({
        let queue = queue.clone();
        async move { queue.get().await.expect("not shut down").done() }
    });
    tokio::task::yield_now().await;
    std::thread::spawn({
        let queue = queue.clone();
        move || {
            queue.add_after("b", crate::ms(1));
            queue.add("a");
        }
    })
    .join()
    .expect("no panic");
    soon(worker).await.expect("no panic");
}

#[test]
fn dropped_get_passes_the_item_on() {
    let queue = Workqueue::new();
    let mut cancelled = Box::pin(queue.get());
    let mut next = Box::pin(queue.get());
    let waker = noop_waker();
    let mut cx = Context::from_waker(&waker);
    assert!(cancelled.as_mut().poll(&mut cx).is_pending());
    let (woken, wakes) = counting_waker();
    assert!(next.as_mut().poll(&mut Context::from_waker(&woken)).is_pending());
    queue.add("a");
    assert_eq!(wakes.get(), 0, "the first waiter is woken");
    drop(cancelled);
    assert_eq!(wakes.get(), 1, "the dropped future wakes the second waiter");
    assert!(matches!(next.as_mut().poll(&mut cx), Poll::Ready(Some(_))));
}

#[test]
fn each_item_wakes_one_worker() {
    let queue = Workqueue::new();
    let (waker, wakes) = counting_waker();
    let mut gets: Vec<_> = (0..3).map(|_| Box::pin(queue.get())).collect();
    for get in &mut gets {
        assert!(get.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    queue.add("a");
    queue.add("a");
    assert_eq!(wakes.get(), 1);
    queue.add("b");
    assert_eq!(wakes.get(), 2);
}

#[tokio::test]
async fn busy_worker_yields_to_other_tasks() {
    let queue = Workqueue::new();
    let other = tokio::spawn(async {});
    for n in 0..1_000_000 {
        queue.add(n);
        queue.get().await.expect("not shut down").done();
        if other.is_finished() {
            return;
        }
    }
    panic!("the other task was not polled");
}

/// This test corresponds to client-go's `TestBasic` and `TestAddWhileProcessing`.
#[tokio::test]
async fn fifty_producers_and_ten_workers_lose_no_key() {
    for with_drain in [false, true] {
        let queue = Workqueue::new();
        let done = Arc::new(Mutex::new(Vec::new()));
        let mut workers = JoinSet::new();
        for _ in 0..10 {
            let (queue, done) = (queue.clone(), Arc::clone(&done));
            workers.spawn(async move {
                while let Some(item) = queue.get().await {
                    let is_first = {
                        let mut done = done.lock().expect("no panic");
                        done.push(*item.key());
                        done.iter().filter(|key| *key == item.key()).count() == 1
                    };
                    if is_first {
                        queue.add(*item.key());
                    }
                    tokio::task::yield_now().await;
                    item.done();
                }
            });
        }
        let mut producers = JoinSet::new();
        for producer in 0..50 {
            let queue = queue.clone();
            producers.spawn(async move {
                for n in 0..10 {
                    queue.add((producer, n));
                    tokio::task::yield_now().await;
                }
            });
        }
        producers.join_all().await;
        // Each of the 500 keys is added and processed twice. The shutdown must wait for this,
        // because it would refuse later adds.
        let all_are_seen = async {
            while done.lock().expect("no panic").len() < 1_000 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), all_are_seen)
            .await
            .expect("every key is processed in time");
        if with_drain {
            assert!(queue.shut_down_with_drain().await);
        } else {
            queue.shut_down();
        }
        workers.join_all().await;
        let mut done = std::mem::take(&mut *done.lock().expect("no panic"));
        done.sort_unstable();
        let twice = (0..50).flat_map(|producer| (0..10).map(move |n| (producer, n))).flat_map(|key| [key; 2]);
        assert!(done.into_iter().eq(twice));
    }
}

/// Records the queue's length at each add that is reported to the metrics.
#[derive(Default)]
struct Lengths {
    queue: std::sync::OnceLock<Workqueue<&'static str>>,
    seen: Mutex<Vec<usize>>,
}

impl informer_workqueue::Metrics for Lengths {
    fn added(&self, _: &str) {
        let length = self.queue.get().map_or(0, Workqueue::len);
        self.seen.lock().expect("no panic").push(length);
    }
}

#[test]
fn keys_added_together_are_queued_in_one_step() {
    let lengths = Arc::new(Lengths::default());
    let queue = Workqueue::builder().metrics(Arc::clone(&lengths)).build();
    assert!(lengths.queue.set(queue.clone()).is_ok());
    queue.add_all(["a", "b", "a", "c"], informer_workqueue::Priority::Low);
    assert_eq!(
        *lengths.seen.lock().expect("no panic"),
        [3, 3, 3],
        "all keys are queued before the first report"
    );
    queue.add_all([], informer_workqueue::Priority::Low);
    assert_eq!(take_all(&queue), ["a", "b", "c"]);
    queue.shut_down();
    queue.add_all(["d"], informer_workqueue::Priority::Low);
    assert!(queue.is_empty());
}
