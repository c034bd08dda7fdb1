//! Models of the delivery to a handler: a reader that is about to sleep misses no event, and all
//! waits end when the reader is removed or the processor stops. The reader is a stream; a handler
//! with a task uses the same code.

use std::sync::Arc;

use futures::{FutureExt, StreamExt};
use informer_core::{
    Cached, Event, EventBatch, EventStream, HandlerOptions, ObjectKey, SharedProcessor, Uid,
};
use loom::future::block_on;
use loom::thread;
use tokio_util::sync::CancellationToken;

use crate::model;

fn object(value: u64) -> Cached<u64> {
    Cached::from_parts(ObjectKey::cluster_scoped("a"), (value + 1).into(), Uid::default(), value)
}

fn publish(processor: &SharedProcessor<u64>, value: u64) {
    let event = match value {
        0 => Event::Added { object: object(0), is_in_initial_list: false },
        _ => Event::Updated { old: object(value - 1), new: object(value) },
    };
    processor.publish(EventBatch { events: vec![event], completes_initial_list: true }, || {});
}

fn events(processor: &SharedProcessor<u64>, threshold: usize) -> EventStream<u64> {
    processor.events(&HandlerOptions::new().threshold(Some(threshold)), std::iter::empty)
}

/// Reads events until the object has the value `last`. Returns all received values.
fn read_until(stream: &mut EventStream<u64>, last: u64) -> Vec<u64> {
    let mut values = Vec::new();
    while values.last() != Some(&last) {
        match block_on(stream.next()).expect("not stopped") {
            Event::Added { object, .. } => values.push(*object),
            Event::Updated { old, new } => {
                assert_eq!(values.last(), Some(&*old), "the old object is the last one received");
                values.push(*new);
            }
            other => panic!("{other:?} was not published"),
        }
    }
    values
}

fn stop(processor: &SharedProcessor<u64>) {
    let stopped = CancellationToken::new();
    stopped.cancel();
    block_on(processor.run(stopped));
}

#[test]
fn i4_sleeping_reader_misses_no_event() {
    model(|| {
        let processor = SharedProcessor::new(None);
        let mut stream = events(&processor, 9);
        let publisher = thread::spawn({
            let processor = processor.clone();
            move || (0..2).for_each(|value| publish(&processor, value))
        });
        assert_eq!(read_until(&mut stream, 1), [0, 1]);
        publisher.join().expect("no panic");
        assert!(stream.next().now_or_never().is_none(), "no event is delivered twice");
        assert!(stream.registration().has_synced());
    });
}

#[test]
fn i11_late_reader_ends_with_the_current_state() {
    model(|| {
        let processor = SharedProcessor::new(None);
        let mut stream = events(&processor, 1);
        let publisher = thread::spawn({
            let processor = processor.clone();
            move || (0..3).for_each(|value| publish(&processor, value))
        });
        let values = read_until(&mut stream, 2);
        assert!(values.is_sorted(), "{values:?}");
        publisher.join().expect("no panic");
    });
}

#[test]
fn i12_stop_wakes_a_waiting_reader() {
    model(|| {
        let processor = SharedProcessor::<u64>::new(None);
        let mut stream = events(&processor, 9);
        let reader = thread::spawn(move || {
            let mut count = 0;
            while block_on(stream.next()).is_some() {
                count += 1;
            }
            assert!(block_on(stream.next()).is_none(), "the stream has ended");
            count
        });
        let publisher = thread::spawn({
            let processor = processor.clone();
            move || publish(&processor, 0)
        });
        stop(&processor);
        assert!(reader.join().expect("no panic") <= 1);
        publisher.join().expect("no panic");
    });
}

#[test]
fn i12_stream_can_be_dropped_during_a_publication() {
    model(|| {
        let processor = SharedProcessor::new(None);
        let stream = events(&processor, 9);
        let held = Arc::new(());
        let publisher = thread::spawn({
            let (processor, held) = (processor.clone(), Arc::clone(&held));
            move || {
                publish(&processor, 0);
                drop(held);
            }
        });
        let synced = stream.registration().synced();
        drop(stream);
        assert!(block_on(synced.wait()).is_err(), "the wait ends");
        publisher.join().expect("no panic");
        assert_eq!(format!("{processor:?}"), "SharedProcessor { handlers: 0, stopped: false, .. }");
        assert_eq!(Arc::strong_count(&held), 1);
    });
}

#[test]
fn i5_stream_added_during_a_publication_sees_it_once() {
    model(|| {
        let processor = SharedProcessor::new(None);
        let store = Arc::new(loom::sync::Mutex::new(None));
        let publisher = thread::spawn({
            let (processor, store) = (processor.clone(), Arc::clone(&store));
            move || {
                let event = Event::Added { object: object(0), is_in_initial_list: true };
                let batch = EventBatch { events: vec![event], completes_initial_list: true };
                processor.publish(batch, || *store.lock().expect("no panic") = Some(object(0)));
            }
        });
        let stored = || store.lock().expect("no panic").clone().into_iter();
        let mut stream = processor.events(&HandlerOptions::default(), stored);
        assert_eq!(read_until(&mut stream, 0), [0]);
        publisher.join().expect("no panic");
        assert!(stream.next().now_or_never().is_none(), "not both from the snapshot and from the batch");
        assert!(stream.registration().has_synced());
    });
}
