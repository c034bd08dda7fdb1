//! Handlers that use their processor while they are called.

use async_trait::async_trait;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, mpsc as channel};

use super::*;
use crate::AsyncEventHandler;

/// Holds the registration of a handler, which does not exist yet when the handler is created.
type Slot = Arc<Mutex<Option<HandlerRegistration>>>;

/// Blocks the handler until the future is ready.
fn block_on<F: Future>(future: F) -> F::Output {
    tokio::task::block_in_place(|| Handle::current().block_on(future))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i12_handler_can_remove_itself_and_wait() {
    let running = Running::start();
    let (send, mut received) = channel::unbounded_channel();
    let own = Slot::default();
    let handler = Handlers::new().on_add({
        let own = Arc::clone(&own);
        move |object: &Cached<Object>, _| {
            let registration = own.lock().take().expect("the handler is called once");
            block_on(registration.remove_and_wait());
            _ = send.send(**object);
        }
    });
    *own.lock() = Some(running.add(handler));
    running.processor.publish(batch(vec![added("a", 1), added("b", 2)]), || {});
    assert_eq!(received.recv().await, Some(1));
    assert_eq!(received.recv().await, None, "the handler is not called again, and is dropped");
    running.stop().await;
}

/// Removes itself during a call, and then never completes the call.
struct Leaving {
    own: Slot,
    left: channel::UnboundedSender<&'static str>,
}

#[async_trait]
impl AsyncEventHandler<Object> for Leaving {
    async fn on_add(&self, _: &Cached<Object>, _: bool) {
        let registration = self.own.lock().take().expect("the handler is called once");
        registration.remove_and_wait().await;
        _ = self.left.send("removed");
        std::future::pending::<()>().await;
    }
}

#[tokio::test]
async fn i12_async_handler_can_remove_itself() {
    let running = Running::start();
    let (left, mut received) = channel::unbounded_channel();
    let own = Slot::default();
    let handler = Leaving { own: Arc::clone(&own), left };
    let registration =
        running.processor.add_async_handler(handler, &HandlerOptions::default(), std::iter::empty);
    *own.lock() = Some(registration);
    running.processor.publish(batch(vec![added("a", 1), added("b", 2)]), || {});
    assert_eq!(received.recv().await, Some("removed"));
    assert_eq!(received.recv().await, None);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i12_handler_can_remove_itself_during_a_stop() {
    let running = Running::start();
    let (entered, mut inside) = channel::unbounded_channel();
    let proceed = Arc::new(Semaphore::new(0));
    let own = Slot::default();
    let handler = Handlers::new().on_add({
        let (own, proceed) = (Arc::clone(&own), Arc::clone(&proceed));
        move |_: &Cached<Object>, _| {
            _ = entered.send(());
            block_on(async { proceed.acquire().await.expect("the semaphore is open").forget() });
            let registration = own.lock().take().expect("the handler is called once");
            block_on(registration.remove_and_wait());
        }
    });
    *own.lock() = Some(running.add(handler));
    running.processor.publish(batch(vec![added("a", 1)]), || {});
    inside.recv().await.expect("the handler is called");
    running.shutdown.cancel();
    while !running.processor.shared.is_stopped() {
        tokio::task::yield_now().await;
    }
    proceed.add_permits(1);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i12_handler_can_remove_another_and_wait_for_it() {
    let running = Running::start();
    let (other, mut received_other) = recorder();
    let other = Arc::new(Mutex::new(Some(running.add(other))));
    let (send, mut received) = channel::unbounded_channel();
    let _remover = running.add(Handlers::new().on_add(move |_: &Cached<Object>, _| {
        let registration = other.lock().take();
        if let Some(registration) = registration {
            block_on(registration.remove_and_wait());
            _ = send.send(());
        }
    }));
    running.processor.publish(batch(vec![added("a", 1)]), || {});
    received.recv().await.expect("the removal has returned");
    running.processor.publish(batch(vec![added("b", 1)]), || {});
    let rest: Vec<_> = std::iter::from_fn(|| received_other.try_recv().ok()).collect();
    assert!(!rest.contains(&"+b=1".to_owned()), "{rest:?}");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i5_handler_added_by_a_handler_gets_existing_objects() {
    let running = Running::start();
    let (inner, mut received) = recorder();
    let (inner, added_inner) = (Mutex::new(Some(inner)), Slot::default());
    let processor = running.processor.clone();
    let _outer = running.add(Handlers::new().on_add({
        let added_inner = Arc::clone(&added_inner);
        move |_: &Cached<Object>, _| {
            let Some(inner) = inner.lock().take() else { return };
            let options = HandlerOptions::default();
            let registration = processor.add_handler(inner, &options, || [object("a", 1)].into_iter());
            *added_inner.lock() = Some(registration);
        }
    }));
    running.processor.publish(batch(vec![added("a", 1)]), || {});
    assert_eq!(received.recv().await.as_deref(), Some("+a=1!"));
    running.stop().await;
    let added_inner = added_inner.lock().take().expect("the handler was added");
    added_inner.remove_and_wait().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i12_handler_can_add_another_while_the_processor_stops() {
    let running = Running::start();
    let (entered, mut inside) = channel::unbounded_channel();
    let proceed = Arc::new(Semaphore::new(0));
    let late = Slot::default();
    let _registration = running.add(Handlers::new().on_add({
        let (processor, proceed, late) = (running.processor.clone(), Arc::clone(&proceed), Arc::clone(&late));
        move |_: &Cached<Object>, _| {
            _ = entered.send(());
            block_on(async { proceed.acquire().await.expect("the semaphore is open").forget() });
            let options = HandlerOptions::default();
            let registration = processor.add_handler(Handlers::new(), &options, std::iter::empty);
            *late.lock() = Some(registration);
        }
    }));
    running.processor.publish(batch(vec![added("a", 1)]), || {});
    inside.recv().await.expect("the handler is called");
    running.shutdown.cancel();
    while !running.processor.shared.is_stopped() {
        tokio::task::yield_now().await;
    }
    proceed.add_permits(1);
    running.stop().await;
    let late = late.lock().take().expect("the handler was added");
    assert!(late.synced().wait().await.is_err());
    late.remove_and_wait().await;
}
