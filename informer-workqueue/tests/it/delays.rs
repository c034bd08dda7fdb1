//! Adds with a delay.

use std::pin::pin;
use std::time::Duration;

use futures::poll;
use informer_workqueue::{Priority, Workqueue};
use tokio::time::{Instant, advance};

use crate::{ms, soon, take, take_all};

#[tokio::test(start_paused = true)]
async fn delayed_key_is_queued_when_due_and_not_before() {
    let queue = Workqueue::new();
    let start = Instant::now();
    queue.add_after("a", ms(50));
    assert!(queue.is_empty() && queue.delayed() == 1);
    advance(ms(49)).await;
    assert!(take(&queue).is_none());
    let item = soon(queue.get()).await.expect("not shut down");
    assert_eq!(start.elapsed().as_millis(), 50);
    item.done();
    assert_eq!(queue.delayed(), 0);
}

#[tokio::test(start_paused = true)]
async fn due_key_counts_as_queued_without_a_waiter() {
    let queue = Workqueue::new();
    queue.add_after("a", ms(50));
    advance(ms(50)).await;
    assert_eq!((queue.len(), queue.delayed()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn earlier_of_two_delays_counts() {
    for [first, second] in [[50, 30], [30, 50]] {
        let queue = Workqueue::new();
        queue.add_after("a", ms(first));
        queue.add_after("a", ms(second));
        assert_eq!(queue.delayed(), 1);
        advance(ms(29)).await;
        assert_eq!(take_all(&queue), [""; 0]);
        advance(ms(1)).await;
        assert_eq!(take_all(&queue), ["a"]);
        advance(ms(100)).await;
        assert_eq!(take_all(&queue), [""; 0], "the later delay is dropped");
    }
}

#[tokio::test(start_paused = true)]
async fn key_added_during_its_delay_is_returned_twice() {
    let queue = Workqueue::new();
    queue.add_after("a", ms(50));
    queue.add("a");
    assert_eq!(take_all(&queue), ["a"]);
    advance(ms(50)).await;
    assert_eq!(take_all(&queue), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn ended_delay_adds_the_key_like_an_add() {
    let queue = Workqueue::new();
    queue.add("a");
    queue.add_after("a", ms(1));
    advance(ms(1)).await;
    assert_eq!(queue.len(), 1);
    let item = take(&queue).expect("an item");
    queue.add_after("a", ms(1));
    advance(ms(1)).await;
    assert!(take(&queue).is_none());
    item.done();
    assert_eq!(take_all(&queue), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn key_with_the_shorter_delay_is_returned_first() {
    let queue = Workqueue::new();
    let start = Instant::now();
    let worker = tokio::spawn({
        let queue = queue.clone();
        async move {
            let mut keys = Vec::new();
            while let Some(item) = queue.get().await {
                keys.push((*item.key(), start.elapsed().as_millis()));
                item.done();
            }
            keys
        }
    });
    queue.add_after("late", Duration::from_secs(3_600));
    // The worker sleeps until the late key is due.
    tokio::task::yield_now().await;
    queue.add_after("early", ms(20));
    // The early key wakes the worker, which then sleeps for a shorter time.
    tokio::time::sleep(Duration::from_secs(3_601)).await;
    queue.shut_down();
    assert_eq!(soon(worker).await.expect("no panic"), [("early", 20), ("late", 3_600_000)]);
}

#[tokio::test(start_paused = true)]
async fn many_delays_end_in_order() {
    let queue = Workqueue::new();
    for n in 0..1_000_u64 {
        queue.add_after(n * 7 % 1_000, ms(1 + n * 7 % 1_000));
    }
    let mut keys = Vec::new();
    for _ in 0..1_000 {
        let item = soon(queue.get()).await.expect("not shut down");
        keys.push(*item.key());
        item.done();
    }
    assert!(keys.into_iter().eq(0..1_000));
}

#[tokio::test(start_paused = true)]
async fn delays_due_together_wake_one_worker_each() {
    let queue = Workqueue::new();
    let workers: Vec<_> = (0..3)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move {
                let item = queue.get().await.expect("not shut down");
                // No worker ends its item before all workers have one.
                Some((*item.key(), item))
            })
        })
        .collect();
    tokio::task::yield_now().await;
    (0..3).for_each(|key| queue.add_after(key, ms(5)));
    let items = soon(futures::future::join_all(workers)).await;
    let mut keys: Vec<u8> = items.iter().flatten().flatten().map(|(key, _)| *key).collect();
    keys.sort_unstable();
    assert_eq!(keys, [0, 1, 2]);
}

#[tokio::test(start_paused = true)]
async fn cancelled_timekeeper_is_replaced() {
    let queue = Workqueue::new();
    queue.add_after("a", ms(50));
    let mut keeper = Box::pin(queue.get());
    assert!(poll!(&mut keeper).is_pending());
    let worker = tokio::spawn({
        let queue = queue.clone();
        async move { *queue.get().await.expect("not shut down").key() }
    });
    tokio::task::yield_now().await;
    drop(keeper);
    assert_eq!(soon(worker).await.expect("no panic"), "a");
}

#[tokio::test(start_paused = true)]
async fn timekeeper_that_takes_an_item_is_replaced() {
    let queue = Workqueue::new();
    queue.add_after("first", ms(10));
    queue.add_after("second", ms(20));
    let start = Instant::now();
    let worker = || {
        let queue = queue.clone();
        tokio::spawn(async move {
            let item = queue.get().await.expect("not shut down");
            (*item.key(), start.elapsed().as_millis(), item)
        })
    };
    let (one, other) = (worker(), worker());
    let (one, other) = (soon(one).await.expect("no panic"), soon(other).await.expect("no panic"));
    let mut times = [(one.0, one.1), (other.0, other.1)];
    times.sort_unstable();
    assert_eq!(times, [("first", 10), ("second", 20)]);
}

#[tokio::test(start_paused = true)]
async fn zero_delay_adds_at_once_and_maximum_delay_is_accepted() {
    let queue = Workqueue::new();
    queue.add_after("a", ms(0));
    queue.add_after("b", Duration::MAX);
    assert_eq!(take_all(&queue), ["a"]);
    assert_eq!(queue.delayed(), 1);
    let mut get = pin!(queue.get());
    assert!(poll!(&mut get).is_pending());
    queue.shut_down();
    assert!(soon(get).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn delayed_key_keeps_its_highest_priority() {
    for priorities in [[Priority::High, Priority::Low], [Priority::Low, Priority::High]] {
        let queue = Workqueue::new();
        for (delay, priority) in [2, 1].into_iter().zip(priorities) {
            queue.add_after_with_priority("a", ms(delay), priority);
        }
        queue.add("b");
        advance(ms(1)).await;
        assert_eq!(take_all(&queue), ["a", "b"]);
    }
}
