//! User code that panics: the queue loses no key.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use informer_workqueue::{ItemExponential, Metrics, Workqueue};
use tokio::time::advance;

use crate::{ms, take, take_all};

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

#[test]
fn key_whose_clone_panics_stays_in_the_queue() {
    #[derive(PartialEq, Eq, Hash)]
    struct Key(bool);
    thread_local!(static PANICS: std::cell::Cell<bool> = const { std::cell::Cell::new(true) });
    impl Clone for Key {
        fn clone(&self) -> Self {
            assert!(!PANICS.get(), "test panic");
            Self(self.0)
        }
    }
    let queue = Workqueue::new();
    queue.add(Key(true));
    assert!(catch_unwind(AssertUnwindSafe(|| take(&queue))).is_err());
    PANICS.set(false);
    assert_eq!(queue.len(), 1);
    take(&queue).expect("an item").done();
    assert!(queue.is_empty());
}
