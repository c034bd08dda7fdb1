//! How items end: explicitly, or by drop, panic or cancellation.

use std::time::Duration;

use futures::FutureExt;
use informer_workqueue::{ItemExponential, ItemFastSlow, Priority, Workqueue};
use tokio::time::{Instant, advance};

use crate::{ms, soon, take, take_all};

fn queue() -> Workqueue<&'static str> {
    Workqueue::builder().rate_limiter(ItemExponential::new(ms(1), ms(1_000))).build()
}

#[tokio::test(start_paused = true)]
async fn failed_key_is_retried_with_backoff_until_done() {
    let queue = queue();
    queue.add("a");
    for failures in 0..5 {
        let item = soon(queue.get()).await.expect("not shut down");
        assert_eq!(item.num_requeues(), failures);
        assert_eq!(item.retry(), ms(1 << failures));
    }
    assert_eq!(queue.num_requeues(&"a"), 5);
    soon(queue.get()).await.expect("not shut down").done();
    assert_eq!(queue.num_requeues(&"a"), 0);
    queue.add("a");
    assert_eq!(take(&queue).expect("an item").retry(), ms(1));
}

#[tokio::test(start_paused = true)]
async fn longest_wait_of_a_retry_is_in_the_range_of_the_clock() {
    let limiter = ItemFastSlow::new(Duration::MAX, Duration::MAX, 0);
    let queue = Workqueue::builder().rate_limiter(limiter).build();
    let delayed = queue.add_rate_limited("a");
    queue.add("b");
    let retried = take(&queue).expect("an item").retry();
    for wait in [delayed, retried] {
        assert!(Instant::now().checked_add(wait).is_some(), "{wait:?}");
    }
    assert_eq!((queue.len(), queue.delayed()), (0, 2));
}

#[tokio::test(start_paused = true)]
async fn failures_can_be_counted_and_reset_without_an_item() {
    let queue = queue();
    assert_eq!(queue.add_rate_limited("a"), ms(1));
    assert_eq!(queue.add_rate_limited("a"), ms(2));
    assert_eq!(queue.num_requeues(&"a"), 2);
    queue.forget(&"a");
    assert_eq!(queue.num_requeues(&"a"), 0);
    advance(ms(1)).await;
    assert_eq!(take_all(&queue), ["a"]);
    advance(ms(10)).await;
    assert!(take(&queue).is_none());
}

#[tokio::test(start_paused = true)]
async fn done_after_requeues_and_resets_failures() {
    let queue = queue();
    queue.add("a");
    take(&queue).expect("an item").retry();
    soon(queue.get()).await.expect("not shut down").done_after(ms(500));
    assert_eq!((queue.num_requeues(&"a"), queue.delayed()), (0, 1));
    advance(ms(499)).await;
    assert!(take(&queue).is_none());
    advance(ms(1)).await;
    take(&queue).expect("an item").done_after(ms(0));
    assert_eq!(take_all(&queue), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn failed_key_added_during_processing_is_returned_twice() {
    let queue = queue();
    queue.add("a");
    let item = take(&queue).expect("an item");
    queue.add("a");
    item.retry();
    assert_eq!((queue.len(), queue.delayed()), (1, 1));
    assert_eq!(take_all(&queue), ["a"]);
    advance(ms(1)).await;
    assert_eq!(take_all(&queue), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn retried_key_keeps_its_priority() {
    let queue = queue();
    queue.add_with_priority("a", Priority::High);
    let item = take(&queue).expect("an item");
    assert_eq!(item.priority(), Priority::High);
    item.retry();
    queue.add("b");
    advance(ms(1)).await;
    assert_eq!(take_all(&queue), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn item_of_panicked_worker_is_counted_and_retried() {
    let queue = queue();
    queue.add("a");
    let worker = tokio::spawn({
        let queue = queue.clone();
        async move {
            let item = queue.get().await.expect("not shut down");
            panic!("test panic: {}", item.key());
        }
    });
    assert!(soon(worker).await.is_err_and(|error| error.is_panic()));
    assert_eq!((queue.abandoned(), queue.num_requeues(&"a"), queue.delayed()), (1, 1, 1));
    let item = soon(queue.get()).await.expect("not shut down");
    item.done();
    assert_eq!(queue.abandoned(), 1);
}

#[tokio::test(start_paused = true)]
async fn item_of_cancelled_worker_is_retried() {
    let queue = queue();
    queue.add("a");
    let worker = async {
        let _item = queue.get().await;
        futures::future::pending::<()>().await;
    };
    assert!(worker.now_or_never().is_none());
    assert_eq!((queue.abandoned(), queue.delayed()), (1, 1));
    let item = soon(queue.get()).await.expect("not shut down");
    let early = || -> Result<(), std::num::ParseIntError> {
        let item = item;
        item.key().parse::<u8>()?;
        item.done();
        Ok(())
    };
    assert!(early().is_err());
    assert_eq!((queue.abandoned(), queue.num_requeues(&"a")), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn released_item_keeps_its_failures() {
    let queue = queue();
    queue.add("a");
    take(&queue).expect("an item").retry();
    let item = soon(queue.get()).await.expect("not shut down");
    item.release();
    assert_eq!((queue.len(), queue.delayed(), queue.abandoned()), (0, 0, 0));
    assert_eq!(queue.num_requeues(&"a"), 1);
    queue.add("a");
    assert_eq!(take(&queue).expect("an item").retry(), ms(2), "the second failure");
}

#[tokio::test(start_paused = true)]
async fn key_added_during_processing_is_queued_on_release() {
    let queue = queue();
    queue.add_with_priority("a", Priority::Low);
    let item = take(&queue).expect("an item");
    queue.add_with_priority("a", Priority::High);
    assert!(queue.is_empty());
    item.release();
    assert_eq!(take(&queue).expect("an item").priority(), Priority::High);
}
