//! Objects are dropped while no lock is held, because their destructors are user code.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::{FutureExt, StreamExt};

use super::*;

/// A registration that objects use when they are dropped.
type Registration = Arc<Mutex<Option<Arc<HandlerRegistration>>>>;

/// An object whose destructor uses the processor.
struct ProcessorUser {
    processor: SharedProcessor<ProcessorUser>,
    registration: Registration,
    dropped: Arc<Mutex<Vec<u64>>>,
    value: u64,
}

impl Drop for ProcessorUser {
    fn drop(&mut self) {
        self.processor.publish(EventBatch { events: Vec::new(), completes_initial_list: false }, || {});
        let registration = self.registration.try_lock().and_then(|held| held.clone());
        _ = registration.map(|registration| registration.stats());
        drop(format!("{:?}", self.processor));
        self.dropped.lock().push(self.value);
    }
}

/// Creates `ProcessorUser` objects and publishes them.
struct Source {
    processor: SharedProcessor<ProcessorUser>,
    registration: Registration,
    dropped: Arc<Mutex<Vec<u64>>>,
}

impl Source {
    fn new() -> Self {
        let (registration, dropped) = (Arc::default(), Arc::default());
        Self { processor: SharedProcessor::new(None), registration, dropped }
    }

    fn object(&self, value: u64) -> Cached<ProcessorUser> {
        let user = ProcessorUser {
            processor: self.processor.clone(),
            registration: Arc::clone(&self.registration),
            dropped: Arc::clone(&self.dropped),
            value,
        };
        let name = if value < 100 { "a" } else { "b" };
        Cached::from_parts(ObjectKey::cluster_scoped(name), (value + 1).into(), Default::default(), user)
    }

    fn publish(&self, events: Vec<Event<ProcessorUser>>) {
        self.processor.publish(EventBatch { events, completes_initial_list: false }, || {});
    }

    fn add(&self, value: u64) {
        self.publish(vec![Event::Added { object: self.object(value), is_in_initial_list: false }]);
    }

    /// Publishes an update that owns the only handles to its two objects.
    fn update(&self, old: u64, new: u64) {
        self.publish(vec![Event::Updated { old: self.object(old), new: self.object(new) }]);
    }

    fn delete(&self, value: u64) {
        self.publish(vec![Event::Deleted(Deleted::exact(self.object(value)))]);
    }

    fn dropped(&self) -> Vec<u64> {
        let mut dropped = std::mem::take(&mut *self.dropped.lock());
        dropped.sort_unstable();
        dropped
    }
}

/// Runs `test` in a thread, so that a deadlock is a failure.
fn fails_if_it_deadlocks(test: impl FnOnce() + Send + 'static) {
    let (done, ended) = mpsc::channel();
    std::thread::spawn(move || {
        test();
        _ = done.send(());
    });
    let limit = std::time::Duration::from_secs(10);
    ended.recv_timeout(limit).expect("the test passes and does not deadlock");
}

#[test]
fn i8_coalesced_states_drop_without_lock() {
    fails_if_it_deadlocks(|| {
        let source = Source::new();
        let options = HandlerOptions::new().threshold(Some(1));
        let handler = source.processor.add_handler(Handlers::new(), &options, std::iter::empty);
        *source.registration.lock() = Some(Arc::new(handler));
        source.add(100);
        // From here on, the events of the key are merged.
        source.update(1, 2);
        source.update(3, 4);
        assert_eq!(source.dropped(), [2, 3], "the waiting update goes from 1 to 4");
        source.delete(5);
        assert_eq!(source.dropped(), [4]);
        source.add(6);
        source.update(7, 8);
        assert_eq!(source.dropped(), [6, 7]);
        source.delete(9);
        assert_eq!(source.dropped(), [8, 9]);
        source.update(10, 11);
        assert_eq!(source.dropped(), [1, 5], "no store sends this sequence; the newest event counts");
        let handler = source.registration.lock().take();
        drop(handler);
        assert_eq!(source.dropped(), [10, 11, 100], "waiting events are dropped with the handler");
    });
}

#[test]
fn i8_cancelled_out_object_drops_without_lock() {
    fails_if_it_deadlocks(|| {
        let source = Source::new();
        let options = HandlerOptions::new().threshold(Some(1));
        let stream = source.processor.events(&options, std::iter::empty);
        source.add(100);
        source.add(0);
        source.delete(1);
        assert_eq!(source.dropped(), [0, 1]);
        drop(stream);
        assert_eq!(source.dropped(), [100]);
    });
}

#[tokio::test]
async fn i8_events_read_by_a_stream_drop_without_lock() {
    let source = Source::new();
    let mut stream = source.processor.events(&HandlerOptions::default(), std::iter::empty);
    source.add(0);
    drop(stream.next().await);
    assert_eq!(source.dropped(), [0; 0], "the reader has not polled again");
    assert!(stream.next().now_or_never().is_none());
    assert_eq!(source.dropped(), [0]);
}

/// A waker that uses the processor and drops a stream when it is called: a waker can end a task that
/// owns a stream.
struct DroppingWaker(Mutex<Option<EventStream<Object>>>, SharedProcessor<Object>);

impl futures::task::ArcWake for DroppingWaker {
    fn wake_by_ref(dropping: &Arc<Self>) {
        dropping.1.publish(batch(vec![]), || {});
        let stream = dropping.0.lock().take();
        drop(stream);
    }
}

#[test]
fn i8_reader_is_woken_while_no_lock_is_held() {
    let processor = SharedProcessor::new(None);
    let stream =
        |processor: &SharedProcessor<Object>| processor.events(&HandlerOptions::default(), std::iter::empty);
    let (mut reader, other) = (stream(&processor), stream(&processor));
    let dropping = Arc::new(DroppingWaker(Mutex::new(Some(other)), processor.clone()));
    let waker = futures::task::waker(Arc::clone(&dropping));
    let mut context = std::task::Context::from_waker(&waker);
    assert!(reader.poll_next_unpin(&mut context).is_pending());
    processor.publish(batch(vec![added("a", 1)]), || {});
    assert!(dropping.0.lock().is_none(), "the waker was called");
    assert!(reader.poll_next_unpin(&mut context).is_ready());
}

#[test]
fn i8_publisher_decides_when_readers_wake() {
    let source = Source::new();
    let options = HandlerOptions::new().threshold(Some(1));
    let mut stream = source.processor.events(&options, std::iter::empty);
    let (waker, woken) = counting_waker();
    assert!(stream.poll_next_unpin(&mut std::task::Context::from_waker(&waker)).is_pending());
    let mut later = Vec::new();
    for event in [(0, 1), (2, 3), (4, 5)] {
        let event = Event::Updated { old: source.object(event.0), new: source.object(event.1) };
        let events = EventBatch { events: vec![event], completes_initial_list: false };
        later.push(source.processor.publish(events, || {}));
    }
    assert_eq!((source.dropped(), woken.load(Ordering::Relaxed)), (vec![], 0));
    drop(later);
    assert_eq!(
        (source.dropped(), woken.load(Ordering::Relaxed)),
        (vec![3, 4], 1),
        "the second and the third update are merged"
    );
}

/// A waker that counts how often it is called.
fn counting_waker() -> (std::task::Waker, Arc<AtomicUsize>) {
    struct Count(Arc<AtomicUsize>);
    impl futures::task::ArcWake for Count {
        fn wake_by_ref(count: &Arc<Self>) {
            count.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let woken = Arc::new(AtomicUsize::new(0));
    (futures::task::waker(Arc::new(Count(Arc::clone(&woken)))), woken)
}
