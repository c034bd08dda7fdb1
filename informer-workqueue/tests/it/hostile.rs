//! User code that panics: the queue loses no key.

use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Poll};
use std::time::Duration;

use informer_workqueue::{ItemExponential, Metrics, Priority, Workqueue};
use tokio::time::advance;

use crate::{counting_waker, ms, take, take_all};

/// Metrics that panic once, at the first add or take after the flag has been set.
#[derive(Default)]
struct PanickingMetrics(AtomicBool);

impl PanickingMetrics {
    fn panic_if_armed(&self) {
        assert!(!self.0.swap(false, SeqCst), "test panic");
    }
}

impl Metrics for PanickingMetrics {
    fn added(&self, _: &str) {
        self.panic_if_armed();
    }

    fn taken(&self, _: &str, _: Duration) {
        self.panic_if_armed();
    }
}

#[tokio::test(start_paused = true)]
async fn item_is_kept_when_metrics_panic_during_a_take() {
    let metrics = Arc::new(PanickingMetrics::default());
    let limiter = ItemExponential::new(ms(1), ms(1));
    let queue = Workqueue::builder().rate_limiter(limiter).metrics(Arc::clone(&metrics)).build();
    queue.add("a");
    metrics.0.store(true, SeqCst);
    assert!(catch_unwind(AssertUnwindSafe(|| take(&queue))).is_err());
    assert_eq!((queue.abandoned(), queue.delayed()), (1, 1));
    advance(ms(1)).await;
    metrics.0.store(true, SeqCst);
    assert!(catch_unwind(AssertUnwindSafe(|| take(&queue))).is_err(), "the metrics panic for a due key");
    advance(ms(1)).await;
    assert_eq!(take_all(&queue), ["a"]);
}

thread_local!(static PANICS: Cell<bool> = const { Cell::new(false) });

/// A key whose `Eq` and `Clone` panic while `PANICS` is `true`. All keys are equal.
struct Key;

impl PartialEq for Key {
    fn eq(&self, _: &Self) -> bool {
        assert!(!PANICS.get(), "test panic");
        true
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl Clone for Key {
    fn clone(&self) -> Self {
        assert!(!PANICS.get(), "test panic");
        Self
    }
}

/// Calls `action` while `Eq` and `Clone` of keys panic. Returns whether the call panicked.
fn panics<R>(action: impl FnOnce() -> R) -> bool {
    PANICS.set(true);
    let result = catch_unwind(AssertUnwindSafe(action));
    PANICS.set(false);
    result.is_err()
}

#[test]
fn key_whose_clone_panics_is_taken_by_another_worker() {
    let queue = Workqueue::new();
    let (waker, wakes) = counting_waker();
    let mut cx = Context::from_waker(&waker);
    let [mut first, mut second] = [(); 2].map(|()| Box::pin(queue.get()));
    assert!(first.as_mut().poll(&mut cx).is_pending() && second.as_mut().poll(&mut cx).is_pending());
    queue.add(Key);
    assert_eq!((wakes.get(), queue.len()), (1, 1));
    assert!(panics(|| first.as_mut().poll(&mut cx)));
    assert_eq!((wakes.get(), queue.len()), (2, 1), "the panic wakes the second worker");
    let Poll::Ready(Some(item)) = second.as_mut().poll(&mut cx) else { panic!("no item") };
    item.done();
    assert!(queue.is_empty());
}

#[test]
fn key_before_a_key_whose_eq_panics_wakes_a_worker() {
    let queue = Workqueue::new();
    let (waker, wakes) = counting_waker();
    let mut get = Box::pin(queue.get());
    assert!(get.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    assert!(panics(|| queue.add_all([Key, Key], Priority::Normal)));
    assert_eq!((wakes.get(), queue.len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn key_is_retried_when_the_rate_limiter_panics() {
    let queue = Workqueue::new();
    queue.add(Key);
    take(&queue).expect("the key is queued").retry();
    advance(ms(5)).await;
    let item = take(&queue).expect("the key is due");
    assert!(panics(|| item.done()), "the limiter compares the key with the failed keys");
    assert_eq!((queue.abandoned(), queue.delayed()), (1, 1));
    advance(Duration::from_secs(1)).await;
    let item = take(&queue).expect("the key is due");
    assert!(panics(|| item.retry()));
    assert_eq!((queue.abandoned(), queue.delayed()), (2, 1));
}
