//! Handlers that are added and removed at every stage of their informer's life. Comments name the
//! scenarios of client-go's `shared_informer_test.go`.

use std::panic::{AssertUnwindSafe, catch_unwind};

use futures::{FutureExt, StreamExt};
use tokio::sync::mpsc as channel;

use super::*;

/// Sends a message when it is dropped.
struct DropNotifier(channel::UnboundedSender<&'static str>);

impl EventHandler<Object> for DropNotifier {}

impl Drop for DropNotifier {
    fn drop(&mut self) {
        _ = self.0.send("dropped");
    }
}

fn drop_notifier() -> (DropNotifier, channel::UnboundedReceiver<&'static str>) {
    let (send, receive) = channel::unbounded_channel();
    (DropNotifier(send), receive)
}

fn add(processor: &SharedProcessor<Object>, handler: impl EventHandler<Object>) -> HandlerRegistration {
    processor.add_handler(handler, &HandlerOptions::default(), std::iter::empty)
}

#[tokio::test]
async fn i12_handler_of_an_unstarted_informer_ends_all_waits() {
    // Lifecycles "never started".
    let processor = SharedProcessor::new(None);
    let (handler, mut end) = drop_notifier();
    add(&processor, handler).remove_and_wait().await;
    assert_eq!(end.try_recv(), Ok("dropped"), "the handler is dropped before the wait ends");
    let (handler, mut end) = drop_notifier();
    let registration = add(&processor, handler);
    drop(processor);
    registration.remove_and_wait().await;
    assert_eq!(end.try_recv(), Ok("dropped"));
}

#[tokio::test]
async fn i12_handler_can_be_removed_before_its_task_runs() {
    // Lifecycles "early".
    let running = Running::start();
    let (handler, mut end) = drop_notifier();
    let registration = add(&running.processor, handler);
    registration.remove_and_wait().await;
    assert_eq!(end.try_recv(), Ok("dropped"));
    running.stop().await;
}

#[tokio::test]
async fn i12_late_handler_can_be_removed() {
    // Lifecycles "late".
    let running = Running::start();
    tokio::task::yield_now().await;
    running.processor.publish(complete(vec![added("a", 1)]), || {});
    let (handler, mut end) = drop_notifier();
    let registration = add(&running.processor, handler);
    registration.synced().wait().await.expect("the handler syncs");
    registration.remove_and_wait().await;
    assert_eq!(end.try_recv(), Ok("dropped"));
    running.stop().await;
}

#[tokio::test]
async fn i12_handlers_of_a_stopped_informer_can_be_removed() {
    // RemoveOnStopped, Shutdown.
    let running = Running::start();
    let (served, mut end_served) = drop_notifier();
    let served = add(&running.processor, served);
    tokio::task::yield_now().await;
    let (handler, mut end_unserved) = drop_notifier();
    running.shutdown.cancel();
    let unserved = add(&running.processor, handler);
    running.stop().await;
    assert_eq!((end_served.try_recv(), end_unserved.try_recv()), (Ok("dropped"), Ok("dropped")));
    served.remove_and_wait().await;
    unserved.remove_and_wait().await;
}

#[tokio::test]
async fn i12_stopped_processor_leaves_no_task() {
    // Shutdown: run and remove, late handler, stream, async handler.
    let before = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let running = Running::start();
    let registrations: Vec<_> = (0..10).map(|_| add(&running.processor, Handlers::new())).collect();
    tokio::task::yield_now().await;
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), before + 11);
    let _stream = running.processor.events(&HandlerOptions::default(), std::iter::empty);
    for registration in registrations.into_iter().take(5) {
        registration.remove_and_wait().await;
    }
    running.stop().await;
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), before);
}

#[tokio::test]
async fn handler_registered_twice_receives_events_twice() {
    // MultipleRegistration.
    let running = Running::start();
    let (handler, mut received) = recorder();
    let handler = Arc::new(handler);
    let first = add(&running.processor, Arc::clone(&handler));
    let second = add(&running.processor, handler);
    running.processor.publish(batch(vec![added("a", 1)]), || {});
    for _ in 0..2 {
        assert_eq!(received.recv().await.as_deref(), Some("+a=1"));
    }
    first.remove_and_wait().await;
    running.processor.publish(batch(vec![added("b", 1)]), || {});
    assert_eq!(received.recv().await.as_deref(), Some("+b=1"));
    second.remove_and_wait().await;
    assert_eq!(received.recv().await, None, "each registration receives the event once, and no other event");
    running.stop().await;
}

#[tokio::test]
async fn registration_removes_only_its_own_handler() {
    // RemoveForeignHandler, RemovingRemoved: the types exclude both.
    let (running, other) = (Running::start(), Running::start());
    let (handler, mut received) = recorder();
    let handler = Arc::new(handler);
    let _kept = add(&running.processor, Arc::clone(&handler));
    add(&other.processor, handler).remove_and_wait().await;
    running.processor.publish(batch(vec![added("a", 1)]), || {});
    assert_eq!(received.recv().await.as_deref(), Some("+a=1"));
    running.stop().await;
    other.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn removed_handler_receives_no_event() {
    // RemoveWhileActive.
    let running = Running::start();
    let publisher = tokio::spawn({
        let (processor, shutdown) = (running.processor.clone(), running.shutdown.clone());
        async move {
            let mut value = 0;
            while !shutdown.is_cancelled() {
                processor.publish(batch(vec![updated("a", value, value + 1)]), || {});
                value += 1;
                tokio::task::yield_now().await;
            }
        }
    });
    for _ in 0..100 {
        let (handler, mut received) = recorder();
        let registration = add(&running.processor, handler);
        received.recv().await.expect("events are delivered");
        registration.remove_and_wait().await;
        while received.try_recv().is_ok() {}
        assert_eq!(received.recv().await, None);
    }
    running.stop().await;
    publisher.await.expect("the task does not panic");
}

#[tokio::test]
async fn i6_early_handler_syncs_with_the_initial_list() {
    // AddWhileActive.
    let processor = SharedProcessor::new(None);
    let early = add(&processor, Handlers::new());
    assert!(!early.has_synced(), "the processor is not running");
    let running = Running::of(processor.clone());
    tokio::task::yield_now().await;
    processor.publish(batch(vec![added("a", 1)]), || {});
    let middle =
        processor.add_handler(Handlers::new(), &HandlerOptions::default(), || [object("a", 1)].into_iter());
    tokio::task::yield_now().await;
    assert!(!early.has_synced() && !middle.has_synced(), "the list is not complete");
    processor.publish(complete(vec![added("b", 1)]), || {});
    for registration in [&early, &middle] {
        registration.synced().wait().await.expect("the handler syncs");
        assert!(registration.has_synced(), "`synced` and `has_synced` agree");
    }
    running.stop().await;
    assert!(early.has_synced(), "it stays synced");
}

#[tokio::test]
async fn i12_handler_that_always_panics_syncs_and_is_counted() {
    // EventPanics: five pods, and two handlers, one of which panics in each call.
    let running = Running::start();
    let panicking = || Handlers::new().on_add(|_: &Cached<Object>, _| panic!("the intended panic"));
    let (calm, mut received) = recorder();
    let registrations = [add(&running.processor, panicking()), add(&running.processor, calm)];
    let events = ["a", "b", "c", "d", "e"].map(|name| added(name, 1));
    running.processor.publish(complete(events.into()), || {});
    for registration in &registrations {
        registration.synced().wait().await.expect("the handler syncs");
    }
    let [panicking, calm] = registrations.each_ref().map(HandlerRegistration::stats);
    assert_eq!((panicking.panicked, panicking.delivered), (5, 0));
    assert_eq!((calm.panicked, calm.delivered), (0, 5));
    assert_eq!(std::iter::from_fn(|| received.try_recv().ok()).count(), 5);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i12_panic_during_removal_ends_all_waits() {
    // RemoveEventHandler_AsynchronousPanic, and _SynchronousShutdown.
    let running = Running::start();
    let (enter, mut inside, release) = gate();
    let registration = running.add(Handlers::new().on_add(move |_: &Cached<Object>, _| {
        enter();
        panic!("the intended panic");
    }));
    running.processor.publish(batch(vec![added("a", 1)]), || {});
    inside.recv().await.expect("the handler is called");
    let mut removal = std::pin::pin!(registration.remove_and_wait());
    assert!(removal.as_mut().now_or_never().is_none(), "the call has not returned");
    release.send(()).expect("the handler waits");
    removal.await;
    assert_eq!(inside.recv().await, None, "the handler is dropped");
    running.stop().await;
}

#[tokio::test]
async fn i12_handler_whose_drop_panics_ends_all_waits() {
    struct PanicsOnDrop;
    impl EventHandler<Object> for PanicsOnDrop {}
    impl Drop for PanicsOnDrop {
        fn drop(&mut self) {
            panic!("the intended panic");
        }
    }
    let running = Running::start();
    let registration = add(&running.processor, PanicsOnDrop);
    tokio::task::yield_now().await;
    registration.remove_and_wait().await;
    let (handler, mut received) = recorder();
    let _registration = add(&running.processor, handler);
    running.processor.publish(batch(vec![added("a", 1)]), || {});
    assert_eq!(received.recv().await.as_deref(), Some("+a=1"));
    running.stop().await;
}

/// An object whose destructor panics if the field is `true`.
struct PanicsOnDrop(bool);

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        assert!(!self.0, "the intended panic");
    }
}

/// Adds a handler with one waiting event, whose object panics when it is dropped.
fn add_with_panicking_event(processor: &SharedProcessor<PanicsOnDrop>) -> HandlerRegistration {
    processor.add_handler(Handlers::new(), &HandlerOptions::default(), || {
        let key = ObjectKey::cluster_scoped("a");
        std::iter::once(Cached::from_parts(key, 1.into(), Default::default(), PanicsOnDrop(true)))
    })
}

#[tokio::test]
async fn i12_handler_whose_events_panic_on_drop_is_removed() {
    let processor = SharedProcessor::new(None);
    let registration = add_with_panicking_event(&processor);
    let run = processor.run(CancellationToken::new());
    let synced = registration.synced();
    // The handler's task has ended, so all waits for the handler end.
    tokio::select! {
        () = run => unreachable!("the processor is not stopped"),
        outcome = synced.wait() => assert!(outcome.is_err()),
    }
    registration.remove_and_wait().await;
}

#[test]
fn i12_removal_ends_waits_if_waiting_events_panic_on_drop() {
    let processor = SharedProcessor::new(None);
    let registration = add_with_panicking_event(&processor);
    let synced = registration.synced();
    let removal = catch_unwind(AssertUnwindSafe(|| registration.remove()));
    assert!(removal.is_err(), "the event was dropped");
    assert_eq!(synced.wait().now_or_never(), Some(Err(crate::NeverSynced)));
    assert_eq!(processor.handler_count(), 0);
}

#[test]
fn i12_stop_ends_streams_if_waiting_events_panic_on_drop() {
    let ends: [fn(SharedProcessor<PanicsOnDrop>); 2] = [|processor| processor.stop(), drop];
    for end in ends {
        let processor = SharedProcessor::new(None);
        let _registration = add_with_panicking_event(&processor);
        let mut stream = processor.events(&HandlerOptions::default(), std::iter::empty);
        let ended = catch_unwind(AssertUnwindSafe(|| end(processor)));
        assert!(ended.is_err(), "the event was dropped");
        assert!(matches!(stream.next().now_or_never(), Some(None)), "the stream has ended");
    }
}

#[test]
fn panic_of_the_root_future_blames_no_handler() {
    log::keep();
    let outcome = catch_unwind(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(async {
            let running = Running::start();
            let options = HandlerOptions::new().name("healthy-one");
            running.processor.add_handler(Handlers::new(), &options, std::iter::empty).detach();
            tokio::task::yield_now().await;
            panic!("the intended panic");
        });
    });
    assert!(outcome.is_err());
    let lines = log::about("healthy-one");
    assert!(
        lines.len() == 1 && lines[0].contains("removed by a panic outside of handler calls"),
        "{lines:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adding_and_removing_handlers_does_not_affect_others() {
    // HandlerAbuse: many workers add and remove handlers, and the informer stops while they work.
    let running = Running::start();
    let workers: Vec<_> = (0..100)
        .map(|worker| {
            let (processor, shutdown) = (running.processor.clone(), running.shutdown.clone());
            tokio::spawn(async move {
                while !shutdown.is_cancelled() {
                    let registration = add(&processor, Handlers::new());
                    let mut stream = processor.events(&HandlerOptions::default(), std::iter::empty);
                    if worker % 2 == 0 {
                        registration.remove_and_wait().await;
                    }
                    stream.next().await;
                }
            })
        })
        .collect();
    let (handler, mut received) = recorder();
    let options = HandlerOptions::new().threshold(None);
    let _steady = running.processor.add_handler(handler, &options, std::iter::empty);
    for value in 0..10_000 {
        running.processor.publish(batch(vec![updated("a", value, value + 1)]), || {});
        if value % 100 == 0 {
            tokio::task::yield_now().await;
        }
    }
    for value in 0..10_000 {
        assert_eq!(received.recv().await, Some(format!("a={value}>{}", value + 1)));
    }
    let processor = running.processor.clone();
    running.stop().await;
    for worker in workers {
        worker.await.expect("the task does not panic");
    }
    assert!(processor.handler_count() == 0);
}
