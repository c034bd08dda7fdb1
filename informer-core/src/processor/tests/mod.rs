//! The processor's guarantees to handlers.

mod asynchronous;
mod encoded;
mod fairness;
mod garbage;
mod lifecycle;
mod log;
mod reentrant;
mod registrations;
mod resyncs;
mod streams;

use std::collections::BTreeMap;
use std::sync::mpsc;

use parking_lot::Mutex;

use super::*;
use crate::{Deleted, Event, Handlers, ObjectKey};

type Object = u64;

fn object(name: &str, value: Object) -> Cached<Object> {
    Cached::from_parts(ObjectKey::cluster_scoped(name), (value + 1).into(), Default::default(), value)
}

fn added(name: &str, value: Object) -> Event<Object> {
    Event::Added { object: object(name, value), is_in_initial_list: false }
}

fn updated(name: &str, old: Object, new: Object) -> Event<Object> {
    Event::Updated { old: object(name, old), new: object(name, new) }
}

fn batch(events: Vec<Event<Object>>) -> EventBatch<Object> {
    EventBatch { events, completes_initial_list: false }
}

fn complete(events: Vec<Event<Object>>) -> EventBatch<Object> {
    EventBatch { events, completes_initial_list: true }
}

/// Returns a handler that records its events, and the receiver of the records.
fn recorder() -> (Handlers<Object>, tokio::sync::mpsc::UnboundedReceiver<String>) {
    let (send, received) = tokio::sync::mpsc::unbounded_channel();
    let (on_update, on_delete) = (send.clone(), send.clone());
    let handlers = Handlers::new()
        .on_add(move |object: &Cached<Object>, initial| {
            _ = send.send(format!("+{}={}{}", object.key(), **object, if initial { "!" } else { "" }));
        })
        .on_update(move |old, new| _ = on_update.send(format!("{}={}>{}", new.key(), **old, **new)))
        .on_delete(move |deleted: &Deleted<Object>| _ = on_delete.send(format!("-{}", deleted.key())));
    (handlers, received)
}

/// Returns a function that blocks its caller, a receiver of a message for each call that begins,
/// and the sender that lets a call return.
fn gate() -> (impl Fn() + Send + Sync, tokio::sync::mpsc::UnboundedReceiver<()>, mpsc::Sender<()>) {
    let (entered, inside) = tokio::sync::mpsc::unbounded_channel();
    let (release, released) = mpsc::channel();
    let released = Mutex::new(released);
    let enter = move || {
        _ = entered.send(());
        tokio::task::block_in_place(|| _ = released.lock().recv());
    };
    (enter, inside, release)
}

struct Running {
    processor: SharedProcessor<Object>,
    shutdown: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Running {
    fn start() -> Self {
        Self::with_resync(None)
    }

    fn with_resync(period: Option<Duration>) -> Self {
        Self::of(SharedProcessor::new(period))
    }

    fn of(processor: SharedProcessor<Object>) -> Self {
        let shutdown = CancellationToken::new();
        let task = tokio::spawn({
            let (processor, shutdown) = (processor.clone(), shutdown.clone());
            async move { processor.run(shutdown).await }
        });
        Self { processor, shutdown, task }
    }

    fn add(&self, handler: Handlers<Object>) -> HandlerRegistration {
        self.processor.add_handler(handler, &HandlerOptions::default(), std::iter::empty)
    }

    async fn stop(self) {
        self.shutdown.cancel();
        self.task.await.expect("the task does not panic");
    }
}

#[tokio::test]
async fn every_handler_receives_every_event_in_order() {
    let running = Running::start();
    let (first, mut received_first) = recorder();
    let (second, mut received_second) = recorder();
    let _registrations = [running.add(first), running.add(second)];
    running.processor.publish(batch(vec![added("a", 1), updated("a", 1, 2)]), || {});
    running.processor.publish(batch(vec![Event::Deleted(Deleted::exact(object("a", 2)))]), || {});
    for received in [&mut received_first, &mut received_second] {
        for expected in ["+a=1", "a=1>2", "-a"] {
            assert_eq!(received.recv().await.as_deref(), Some(expected));
        }
    }
    running.stop().await;
}

#[tokio::test]
async fn i3_store_changes_before_handlers_receive_the_event() {
    let running = Running::start();
    let store = Arc::new(Mutex::new(BTreeMap::new()));
    let (send, mut received) = tokio::sync::mpsc::unbounded_channel();
    let handler = Handlers::new().on_add({
        let store = Arc::clone(&store);
        move |object: &Cached<Object>, _| _ = send.send(store.lock().get(object.key()).copied())
    });
    let _registration = running.add(handler);
    running.processor.publish(batch(vec![added("a", 7)]), || {
        store.lock().insert(ObjectKey::cluster_scoped("a"), 7);
    });
    assert_eq!(received.recv().await, Some(Some(7)));
    running.stop().await;
}

#[tokio::test]
async fn i5_late_handler_gets_the_snapshot_and_later_events() {
    let running = Running::start();
    running.processor.publish(complete(vec![added("a", 1)]), || {});
    let (handler, mut received) = recorder();
    let registration = running.processor.add_handler(handler, &HandlerOptions::default(), || {
        vec![object("a", 1), object("b", 1)].into_iter()
    });
    running.processor.publish(batch(vec![updated("b", 1, 2)]), || {});
    for expected in ["+a=1!", "+b=1!", "b=1>2"] {
        assert_eq!(received.recv().await.as_deref(), Some(expected));
    }
    registration.synced().wait().await.expect("the handler syncs");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i6_registration_syncs_after_initial_adds_return() {
    let running = Running::start();
    let (enter, mut entered, release) = gate();
    let registration = running.add(Handlers::new().on_add(move |_: &Cached<Object>, _| enter()));
    assert!(!registration.has_synced());
    running.processor.publish(complete(vec![added("a", 1)]), || {});
    entered.recv().await.expect("the handler is called");
    assert!(!registration.has_synced(), "the first add has not returned");
    release.send(()).expect("the handler waits");
    registration.synced().wait().await.expect("the handler syncs");
    running.stop().await;
}

#[tokio::test]
async fn i6_empty_initial_list_syncs_a_registration() {
    let running = Running::start();
    let (handler, _heard) = recorder();
    let registration = running.add(handler);
    running.processor.publish(complete(vec![]), || {});
    registration.synced().wait().await.expect("the handler syncs");
    running.stop().await;
}

#[tokio::test]
async fn i12_panic_is_counted_and_later_events_are_delivered() {
    let running = Running::start();
    let (send, mut received) = tokio::sync::mpsc::unbounded_channel();
    let panicking = Handlers::new().on_add(move |object: &Cached<Object>, _| {
        assert!(**object != 1, "the intended panic");
        _ = send.send(**object);
    });
    let (calm, mut received_calm) = recorder();
    let (registration, _calm) = (running.add(panicking), running.add(calm));
    running.processor.publish(complete(vec![added("a", 1), added("b", 2)]), || {});
    assert_eq!(received.recv().await, Some(2));
    assert_eq!(received_calm.recv().await.as_deref(), Some("+a=1"));
    registration.synced().wait().await.expect("the handler syncs");
    assert_eq!((registration.stats().panicked, registration.stats().delivered), (1, 1));
    running.stop().await;
}

#[tokio::test]
async fn i12_payload_that_panics_on_drop_ends_only_the_call() {
    /// The payload of a panic. It panics when it is dropped.
    struct Payload;
    impl Drop for Payload {
        fn drop(&mut self) {
            std::panic::panic_any(Self);
        }
    }
    let running = Running::start();
    let (send, mut received) = tokio::sync::mpsc::unbounded_channel();
    let handler = Handlers::new().on_add(move |object: &Cached<Object>, _| {
        if **object == 1 {
            std::panic::panic_any(Payload);
        }
        _ = send.send(**object);
    });
    let registration = running.add(handler);
    running.processor.publish(complete(vec![added("a", 1), added("b", 2)]), || {});
    assert_eq!(received.recv().await, Some(2));
    registration.synced().wait().await.expect("the handler syncs");
    assert_eq!((registration.stats().panicked, registration.stats().delivered), (1, 1));
    running.stop().await;
}

#[tokio::test]
async fn i11_backlog_has_one_entry_per_key_with_the_last_step() {
    let processor = SharedProcessor::new(None);
    let (handler, mut received) = recorder();
    let options = HandlerOptions::new().threshold(Some(2));
    let registration = processor.add_handler(handler, &options, std::iter::empty);
    processor.publish(batch(vec![added("a", 0), added("b", 0)]), || {});
    for value in 0..1_000 {
        processor.publish(batch(vec![updated("a", value, value + 1)]), || {});
    }
    // Two events, and one coalesced event for all later ones.
    assert_eq!((registration.stats().pending, registration.stats().coalesced), (2 + 1, 999));

    let running = Running::of(processor);
    for expected in ["+a=0", "+b=0", "a=0>1000"] {
        assert_eq!(received.recv().await.as_deref(), Some(expected));
    }
    running.stop().await;
}

#[tokio::test]
async fn removed_handler_is_not_called_and_its_task_ends() {
    let running = Running::start();
    let (handler, mut received) = recorder();
    let registration = running.add(handler);
    running.processor.publish(batch(vec![added("a", 1)]), || {});
    assert_eq!(received.recv().await.as_deref(), Some("+a=1"));
    registration.remove_and_wait().await;
    running.processor.publish(batch(vec![added("b", 1)]), || {});
    assert_eq!(received.recv().await, None, "the handler is dropped");
    running.stop().await;
}

#[tokio::test]
async fn detached_registration_keeps_its_handler() {
    let running = Running::start();
    let (handler, mut received) = recorder();
    running.add(handler).detach();
    running.processor.publish(batch(vec![added("a", 1)]), || {});
    assert_eq!(received.recv().await.as_deref(), Some("+a=1"));
    running.stop().await;
}

#[tokio::test]
async fn i12_handler_of_a_stopped_processor_is_never_called() {
    let running = Running::start();
    let processor = running.processor.clone();
    running.stop().await;
    let (handler, mut received) = recorder();
    let registration =
        processor.add_handler(handler, &HandlerOptions::default(), || [object("a", 1)].into_iter());
    registration.remove_and_wait().await;
    assert_eq!(received.recv().await, None);
}

#[tokio::test]
async fn i8_removed_handler_can_use_its_processor_on_drop() {
    let running = Running::start();
    let (send, mut dropped) = tokio::sync::mpsc::unbounded_channel();
    let guard = shared::OnDrop({
        let processor = running.processor.clone();
        move || {
            processor.publish(batch(vec![]), || {});
            _ = send.send(());
        }
    });
    let registration = running.add(Handlers::new().on_add(move |_: &Cached<Object>, _| _ = &guard));
    running.processor.publish(complete(vec![]), || {});
    registration.synced().wait().await.expect("the handler syncs");
    registration.remove_and_wait().await;
    // The handler is dropped although no further event is published.
    dropped.recv().await.expect("the handler is dropped");
    running.stop().await;
}

#[tokio::test]
async fn i12_waits_end_when_the_processor_never_runs() {
    let processor = SharedProcessor::<Object>::new(None);
    let never_ran = processor.add_handler(Handlers::new(), &HandlerOptions::default(), std::iter::empty);
    let synced = never_ran.synced();
    never_ran.remove_and_wait().await;
    assert!(synced.wait().await.is_err(), "the handler can't sync any more");

    let running = Running::start();
    let registration = running.add(Handlers::new());
    tokio::task::yield_now().await;
    running.task.abort();
    assert!(registration.synced().wait().await.is_err());
    registration.remove_and_wait().await;
    let late = running.processor.add_handler(Handlers::new(), &HandlerOptions::default(), std::iter::empty);
    assert!(late.synced().wait().await.is_err());
}

#[tokio::test]
async fn i4_slow_filtered_handler_receives_every_delete() {
    let running = Running::start();
    let processor = &running.processor;
    let (recorder, mut received) = recorder();
    let even = crate::Filtered::new(|value: &Object| value.is_multiple_of(2), recorder);
    // A filter needs old states, so `coalesce_drops_old` is ignored.
    let options = HandlerOptions::new().threshold(Some(1)).coalesce_drops_old();
    let _registration = processor.add_handler(even, &options, std::iter::empty);
    processor.publish(batch(vec![added("a", 2)]), || {});
    assert_eq!(received.recv().await.as_deref(), Some("+a=2"));
    // No other task runs between these two calls.
    processor.publish(batch(vec![updated("a", 2, 3)]), || {});
    let end = Deleted::exact(object("a", 3)).after(object("a", 3));
    processor.publish(batch(vec![Event::Deleted(end)]), || {});
    assert_eq!(received.recv().await.as_deref(), Some("-a"));
    running.stop().await;
}
