//! Async handlers.

use async_trait::async_trait;
use tokio::sync::{Semaphore, mpsc as channel};

use super::*;
use crate::{AsyncEventHandler, Filtered};

/// Sends the event of each call, waits for a permit, and sends "done".
struct Waiting {
    calls: channel::UnboundedSender<String>,
    permits: Arc<Semaphore>,
}

impl Waiting {
    fn new() -> (Self, channel::UnboundedReceiver<String>, Arc<Semaphore>) {
        let (calls, received) = channel::unbounded_channel();
        let permits = Arc::new(Semaphore::new(0));
        (Self { calls, permits: Arc::clone(&permits) }, received, permits)
    }

    async fn call(&self, what: String) {
        _ = self.calls.send(what.clone());
        self.permits.acquire().await.expect("the semaphore is open").forget();
        assert!(!what.contains("panic"), "the intended panic");
        _ = self.calls.send("done".to_owned());
    }
}

#[async_trait]
impl AsyncEventHandler<Object> for Waiting {
    async fn on_add(&self, object: &Cached<Object>, initial: bool) {
        self.call(format!("+{}{}", object.key(), if initial { "!" } else { "" })).await;
    }

    async fn on_update(&self, old: &Cached<Object>, new: &Cached<Object>) {
        self.call(format!("{}={}>{}", new.key(), **old, **new)).await;
    }

    async fn on_delete(&self, object: &Deleted<Object>) {
        self.call(format!("-{}", object.key())).await;
    }
}

fn add(running: &Running, handler: impl AsyncEventHandler<Object>) -> HandlerRegistration {
    running.processor.add_async_handler(handler, &HandlerOptions::default(), std::iter::empty)
}

#[tokio::test]
async fn i4_async_handler_has_one_call_at_a_time() {
    let running = Running::with_resync(Some(Duration::from_secs(1)));
    let (handler, mut received, permits) = Waiting::new();
    let registration = add(&running, Arc::new(handler));
    let gone = Event::Deleted(Deleted::exact(object("a", 2)));
    let events = vec![added("a", 1), updated("a", 1, 2), Event::Resynced(object("a", 2)), gone];
    running.processor.publish(batch(events), || {});
    for expected in ["+a", "a=1>2", "a=2>2", "-a"] {
        assert_eq!(received.recv().await.as_deref(), Some(expected));
        tokio::task::yield_now().await;
        assert!(received.try_recv().is_err(), "no second call before the first has ended");
        permits.add_permits(1);
        assert_eq!(received.recv().await.as_deref(), Some("done"));
    }
    running.stop().await;
    assert_eq!(registration.stats().delivered, 4);
}

#[tokio::test]
async fn i6_async_handler_syncs_after_its_initial_adds() {
    let running = Running::start();
    running.processor.publish(complete(vec![]), || {});
    let (handler, mut received, permits) = Waiting::new();
    let options = HandlerOptions::default();
    let registration =
        running.processor.add_async_handler(handler, &options, || [object("a", 1)].into_iter());
    assert_eq!(received.recv().await.as_deref(), Some("+a!"));
    tokio::task::yield_now().await;
    assert!(!registration.has_synced());
    permits.add_permits(1);
    registration.synced().wait().await.expect("the handler syncs");
    running.stop().await;
}

#[tokio::test]
async fn i12_panic_in_an_async_call_ends_only_that_call() {
    let running = Running::start();
    let (handler, mut received, permits) = Waiting::new();
    let registration = add(&running, handler);
    permits.add_permits(2);
    running.processor.publish(complete(vec![added("panic", 1), added("b", 1)]), || {});
    for expected in ["+panic", "+b", "done"] {
        assert_eq!(received.recv().await.as_deref(), Some(expected));
    }
    registration.synced().wait().await.expect("a panicked call counts as returned");
    let stats = registration.stats();
    assert_eq!((stats.delivered, stats.panicked, stats.pending), (1, 1, 0));
    running.stop().await;
}

#[tokio::test]
async fn i12_removal_drops_a_waiting_async_call() {
    let running = Running::start();
    let (handler, mut received, _never) = Waiting::new();
    let registration = add(&running, handler);
    running.processor.publish(batch(vec![added("a", 1), added("b", 1)]), || {});
    assert_eq!(received.recv().await.as_deref(), Some("+a"));
    registration.remove_and_wait().await;
    assert_eq!(
        received.recv().await,
        None,
        "the call does not continue, no call follows, and the handler is dropped"
    );
    running.stop().await;
}

#[tokio::test]
async fn i12_stop_drops_a_waiting_async_call() {
    let running = Running::start();
    let (handler, mut received, _never) = Waiting::new();
    let registration = add(&running, handler);
    running.processor.publish(batch(vec![added("a", 1)]), || {});
    assert_eq!(received.recv().await.as_deref(), Some("+a"));
    running.stop().await;
    assert_eq!(received.recv().await, None);
    assert_eq!(registration.stats().delivered, 0);
}

#[tokio::test]
async fn i11_events_during_a_long_async_call_are_coalesced() {
    let running = Running::start();
    let (handler, mut received, permits) = Waiting::new();
    let options = HandlerOptions::new().threshold(Some(1));
    let registration = running.processor.add_async_handler(handler, &options, std::iter::empty);
    running.processor.publish(batch(vec![added("a", 0)]), || {});
    assert_eq!(received.recv().await.as_deref(), Some("+a"));
    for value in 0..100 {
        running.processor.publish(batch(vec![updated("a", value, value + 1)]), || {});
    }
    assert_eq!(registration.stats().pending, 2, "the event of the current call, and one coalesced event");
    permits.add_permits(2);
    for expected in ["done", "a=0>100", "done"] {
        assert_eq!(received.recv().await.as_deref(), Some(expected));
    }
    running.stop().await;
}

#[tokio::test]
async fn filter_works_with_an_async_handler() {
    let running = Running::start();
    let (handler, mut received, permits) = Waiting::new();
    permits.add_permits(9);
    let _registration = add(&running, Filtered::new(|value: &Object| value.is_multiple_of(2), handler));
    let gone = |value| Event::Deleted(Deleted::exact(object("a", value)));
    let events = [
        added("a", 1),
        updated("a", 1, 2),
        updated("a", 2, 4),
        updated("a", 4, 5),
        gone(5),
        added("b", 2),
        gone(6),
    ];
    running.processor.publish(batch(events.into()), || {});
    for expected in ["+a", "a=2>4", "-a", "+b", "-a"] {
        assert_eq!(received.recv().await.as_deref(), Some(expected));
        assert_eq!(received.recv().await.as_deref(), Some("done"));
    }
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn duration_of_an_async_call_includes_its_waits() {
    struct Sleeper;
    #[async_trait]
    impl AsyncEventHandler<Object> for Sleeper {
        async fn on_add(&self, object: &Cached<Object>, _: bool) {
            tokio::time::timeout(Duration::from_secs(**object), std::future::pending::<()>())
                .await
                .expect_err("a pending future never completes");
        }
    }
    let running = Running::start();
    let registration = add(&running, Sleeper);
    running.processor.publish(complete(vec![added("a", 1), added("b", 3), added("c", 2)]), || {});
    registration.synced().wait().await.expect("the handler syncs");
    assert_eq!(registration.stats().slowest.as_secs(), 3);
    running.stop().await;
}
