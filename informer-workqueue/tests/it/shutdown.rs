//! Shutdown, with and without a drain.

use std::pin::pin;

use futures::FutureExt;
use futures::poll;
use informer_workqueue::Workqueue;

use crate::{ms, soon, take, take_all};

#[test]
fn shutdown_refuses_adds_and_returns_queued_keys() {
    let queue = Workqueue::new();
    queue.add("a");
    queue.shut_down();
    assert!(queue.is_shut_down());
    queue.add("b");
    queue.add_after("c", ms(0));
    queue.add_rate_limited("d");
    assert_eq!(take_all(&queue), ["a"]);
    assert!(matches!(queue.get().now_or_never(), Some(None)));
}

#[tokio::test(start_paused = true)]
async fn shutdown_wakes_every_waiting_worker() {
    let queue = Workqueue::<u8>::new();
    let workers: Vec<_> = (0..3)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.get().await.is_none() })
        })
        .collect();
    tokio::task::yield_now().await;
    queue.shut_down();
    for worker in workers {
        assert!(soon(worker).await.expect("no panic"));
    }
}

#[tokio::test(start_paused = true)]
async fn drain_ends_when_the_last_worker_is_done() {
    let queue = Workqueue::new();
    queue.add("a");
    queue.add("b");
    let item = take(&queue).expect("an item");
    let mut drain = pin!(queue.shut_down_with_drain());
    assert!(poll!(&mut drain).is_pending());
    item.done();
    // client-go waits only for items that workers have, and would not drain "b".
    assert!(poll!(&mut drain).is_pending());
    let item = take(&queue).expect("an item");
    assert!(poll!(&mut drain).is_pending());
    item.done();
    assert!(soon(drain).await);
    assert!(soon(queue.get()).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn drain_of_empty_queue_ends_at_once() {
    assert!(Workqueue::<u8>::new().shut_down_with_drain().await);
}

#[tokio::test(start_paused = true)]
async fn shutdown_without_drain_lets_workers_finish() {
    let queue = Workqueue::new();
    queue.add("a");
    let item = take(&queue).expect("an item");
    queue.shut_down();
    assert!(soon(queue.get()).await.is_none());
    item.done();
}

#[tokio::test(start_paused = true)]
async fn shutdown_ends_the_wait_for_a_drain() {
    let queue = Workqueue::new();
    queue.add("a");
    let item = take(&queue).expect("an item");
    let mut drain = pin!(queue.shut_down_with_drain());
    assert!(poll!(&mut drain).is_pending());
    queue.shut_down();
    assert!(!soon(drain).await);
    drop(item);
}

#[tokio::test(start_paused = true)]
async fn shutdown_ends_a_drain_although_another_drain_begins() {
    let queue = Workqueue::new();
    queue.add("a");
    let item = take(&queue).expect("an item");
    let mut first = pin!(queue.shut_down_with_drain());
    assert!(poll!(&mut first).is_pending());
    queue.shut_down();
    let mut second = pin!(queue.shut_down_with_drain());
    assert!(poll!(&mut second).is_pending());
    assert!(!soon(first).await);
    item.done();
    assert!(soon(second).await);
}

#[tokio::test(start_paused = true)]
async fn shutdown_ends_a_drain_despite_returning_keys() {
    let queue = Workqueue::new();
    queue.add("a");
    let item = take(&queue).expect("an item");
    queue.add("a");
    let mut drain = pin!(queue.shut_down_with_drain());
    assert!(poll!(&mut drain).is_pending());
    queue.shut_down();
    assert!(!soon(drain).await);
    item.done();
    assert_eq!(take_all(&queue), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn draining_workers_wait_for_returning_keys() {
    let queue = Workqueue::new();
    queue.add("a");
    let item = take(&queue).expect("an item");
    queue.add("a");
    let mut drain = pin!(queue.shut_down_with_drain());
    assert!(poll!(&mut drain).is_pending());
    let mut worker = pin!(queue.get());
    assert!(poll!(&mut worker).is_pending(), "the worker waits for the requeued key");
    item.done();
    assert!(poll!(&mut drain).is_pending());
    soon(worker).await.expect("the key is requeued").done();
    assert!(soon(drain).await);
}

#[tokio::test(start_paused = true)]
async fn end_of_a_drain_wakes_all_waiters() {
    let queue = Workqueue::new();
    queue.add("a");
    let item = take(&queue).expect("an item");
    let drains = [(); 2].map(|()| {
        let queue = queue.clone();
        tokio::spawn(async move { queue.shut_down_with_drain().await })
    });
    tokio::task::yield_now().await;
    assert!(drains.iter().all(|drain| !drain.is_finished()));
    item.done();
    for drain in drains {
        assert!(soon(drain).await.expect("no panic"));
    }
}

#[tokio::test(start_paused = true)]
async fn cancelled_drain_is_still_a_shutdown() {
    let queue = Workqueue::new();
    queue.add("a");
    assert!(queue.shut_down_with_drain().now_or_never().is_none());
    queue.add("b");
    assert_eq!(take_all(&queue), ["a"]);
    assert!(soon(queue.get()).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn drain_drops_delayed_keys_and_retries() {
    let queue = Workqueue::new();
    queue.add_after("later", ms(1));
    queue.add("fails");
    let item = take(&queue).expect("an item");
    let mut drain = pin!(queue.shut_down_with_drain());
    assert!(poll!(&mut drain).is_pending());
    assert_eq!(queue.delayed(), 0);
    item.retry();
    assert!(soon(drain).await);
    tokio::time::advance(ms(10)).await;
    assert!(soon(queue.get()).await.is_none());
}
