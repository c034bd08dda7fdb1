//! User code that panics: no key is lost.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use informer_workqueue::{ItemExponential, Metrics, Workqueue};
use tokio::time::advance;

use crate::{ms, take, take_all};

/// Panics once it is armed.
#[derive(Default)]
struct Trap(AtomicBool);

impl Trap {
    fn spring(&self) {
        assert!(!self.0.swap(false, SeqCst), "as asked for");
    }
}

impl Metrics for Trap {
    fn added(&self, _: &str) {
        self.spring();
    }

    fn taken(&self, _: &str, _: Duration) {
        self.spring();
    }
}

#[tokio::test(start_paused = true)]
async fn metrics_that_panic_while_an_item_is_taken_do_not_lose_it() {
    let trap = Arc::new(Trap::default());
    let limiter = ItemExponential::new(ms(1), ms(1));
    let queue = Workqueue::builder().rate_limiter(limiter).metrics(Arc::clone(&trap)).build();
    queue.add("a");
    trap.0.store(true, SeqCst);
    assert!(catch_unwind(AssertUnwindSafe(|| take(&queue))).is_err());
    assert_eq!((queue.abandoned(), queue.delayed()), (1, 1));
    advance(ms(1)).await;
    trap.0.store(true, SeqCst);
    assert!(catch_unwind(AssertUnwindSafe(|| take(&queue))).is_err(), "the report of a due key panics");
    advance(ms(1)).await;
    assert_eq!(take_all(&queue), ["a"]);
}

#[test]
fn a_key_whose_copy_panics_stays_in_the_queue() {
    #[derive(PartialEq, Eq, Hash)]
    struct Key(bool);
    thread_local!(static PANICS: std::cell::Cell<bool> = const { std::cell::Cell::new(true) });
    impl Clone for Key {
        fn clone(&self) -> Self {
            assert!(!PANICS.get(), "as asked for");
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
