//! Events as a stream.

use futures::{FutureExt, StreamExt};

use super::*;

fn shown(event: &Event<Object>) -> String {
    match event {
        Event::Added { object, is_in_initial_list } => {
            format!("+{}={}{}", object.key(), **object, if *is_in_initial_list { "!" } else { "" })
        }
        Event::Updated { old, new } => format!("{}={}>{}", new.key(), **old, **new),
        Event::Resynced(object) => format!("={}", object.key()),
        Event::Deleted(deleted) => format!("-{}", deleted.key()),
        Event::Released(object) => format!("^{}", object.key()),
    }
}

/// Returns the events that can be read without waiting, one string per event.
fn ready(stream: &mut EventStream<Object>) -> Vec<String> {
    std::iter::from_fn(|| stream.next().now_or_never().flatten()).map(|event| shown(&event)).collect()
}

fn _is_unpin_and_send(stream: EventStream<Object>) -> impl Unpin + Send {
    stream
}

#[tokio::test]
async fn stream_yields_the_events_of_a_handler_without_a_task() {
    let processor = SharedProcessor::new(None);
    let mut stream = processor.events(&HandlerOptions::default(), std::iter::empty);
    assert_eq!(ready(&mut stream), [""; 0]);
    processor.publish(batch(vec![added("a", 1), updated("a", 1, 2)]), || {});
    processor.publish(batch(vec![Event::Deleted(Deleted::exact(object("a", 2)))]), || {});
    assert_eq!(stream.registration().stats().pending, 3);
    assert_eq!(ready(&mut stream), ["+a=1", "a=1>2", "-a"]);
    let stats = stream.registration().stats();
    assert_eq!((stats.pending, stats.delivered, stats.slowest), (0, 3, Duration::ZERO));
}

#[tokio::test]
async fn waiting_reader_is_woken_by_a_batch() {
    let processor = SharedProcessor::new(None);
    let mut stream = processor.events(&HandlerOptions::default(), std::iter::empty);
    let reader = tokio::spawn(async move { stream.next().await.map(|event| shown(&event)) });
    tokio::task::yield_now().await;
    processor.publish(batch(vec![added("a", 1)]), || {});
    assert_eq!(reader.await.expect("the task does not panic").as_deref(), Some("+a=1"));
}

#[tokio::test]
async fn i3_no_event_can_be_read_before_the_store_has_it() {
    let processor = SharedProcessor::new(None);
    let mut stream = processor.events(&HandlerOptions::default(), std::iter::empty);
    // The closure is the commit, which changes the store. The stream must not have the event before
    // the commit.
    processor.publish(batch(vec![added("a", 1)]), || assert_eq!(ready(&mut stream), [""; 0]));
    assert_eq!(ready(&mut stream), ["+a=1"]);
}

#[tokio::test]
async fn i5_late_stream_begins_with_existing_objects() {
    let processor = SharedProcessor::new(None);
    processor.publish(complete(vec![added("a", 1)]), || {});
    let mut stream = processor.events(&HandlerOptions::default(), || vec![object("a", 1)].into_iter());
    processor.publish(batch(vec![updated("a", 1, 2)]), || {});
    assert_eq!(ready(&mut stream), ["+a=1!", "a=1>2"]);
    assert!(stream.registration().has_synced());
}

#[tokio::test]
async fn i6_stream_syncs_at_the_poll_after_its_initial_events() {
    let processor = SharedProcessor::new(None);
    let mut first = processor.events(&HandlerOptions::default(), std::iter::empty);
    processor.publish(complete(vec![added("a", 1)]), || {});
    processor.publish(batch(vec![added("b", 1)]), || {});
    let mut late = processor.events(&HandlerOptions::default(), || vec![object("a", 1)].into_iter());
    for stream in [&mut first, &mut late] {
        assert!(stream.next().now_or_never().flatten().is_some());
        assert!(!stream.registration().has_synced(), "the reader has possibly not processed the event");
        _ = stream.next().now_or_never();
        assert!(stream.registration().has_synced());
    }
    first.registration().synced().wait().await.expect("the stream is synced");
}

#[tokio::test]
async fn i11_late_reader_gets_one_event_per_key_after_its_inbox() {
    let processor = SharedProcessor::new(None);
    let options = HandlerOptions::new().threshold(Some(1));
    let mut stream = processor.events(&options, std::iter::empty);
    processor.publish(batch(vec![added("a", 0), added("b", 0)]), || {});
    for value in 0..100 {
        processor.publish(batch(vec![updated("a", value, value + 1)]), || {});
    }
    assert_eq!(ready(&mut stream), ["+a=0", "+b=0", "a=0>100"]);
}

#[tokio::test]
async fn deleted_and_added_object_does_not_count_as_coalesced() {
    let processor = SharedProcessor::new(None);
    let options = HandlerOptions::new().threshold(Some(1));
    let mut streams = [(); 2].map(|()| processor.events(&options, std::iter::empty));
    processor.publish(batch(vec![added("a", 1)]), || {});
    let deleted = Event::Deleted(Deleted::exact(object("a", 1)));
    processor.publish(batch(vec![deleted, added("a", 2)]), || {});
    // The first stream shares its events with the second one, and so takes them from a sealed
    // section.
    for stream in &mut streams {
        let stats = stream.registration().stats();
        assert_eq!((stats.pending, stats.coalesced), (3, 0));
        assert_eq!(ready(stream), ["+a=1", "-a", "+a=2"]);
        let stats = stream.registration().stats();
        assert_eq!((stats.pending, stats.coalesced), (0, 0));
    }
}

#[tokio::test]
async fn i12_stream_ends_when_its_informer_stops() {
    let running = Running::start();
    let mut stream = running.processor.events(&HandlerOptions::default(), std::iter::empty);
    let synced = stream.registration().synced();
    let reader = tokio::spawn(async move { (stream.next().await.is_none(), stream.next().await.is_none()) });
    tokio::task::yield_now().await;
    let processor = running.processor.clone();
    running.stop().await;
    assert_eq!(reader.await.expect("the task does not panic"), (true, true), "the stream stays ended");
    assert!(synced.wait().await.is_err());
    let mut late = processor.events(&HandlerOptions::default(), || [object("a", 1)].into_iter());
    assert!(late.next().await.is_none(), "a stopped processor has no events");
}

#[tokio::test]
async fn ended_stream_has_no_pending_events() {
    let processor = SharedProcessor::new(None);
    let mut stream = processor.events(&HandlerOptions::default(), std::iter::empty);
    processor.publish(batch(vec![added("a", 1), added("b", 1)]), || {});
    assert!(stream.next().await.is_some());
    assert_eq!(stream.registration().stats().pending, 1);
    processor.stop();
    assert!(stream.next().await.is_none());
    assert_eq!(stream.registration().stats().pending, 0);
}

#[tokio::test]
async fn i12_stream_ends_with_the_last_processor_handle() {
    let processor = SharedProcessor::<Object>::new(None);
    let mut stream = processor.events(&HandlerOptions::default(), std::iter::empty);
    drop(processor);
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn dropped_stream_is_removed_from_the_processor() {
    let processor = SharedProcessor::<Object>::new(None);
    let stream = processor.events(&HandlerOptions::default(), std::iter::empty);
    let synced = stream.registration().synced();
    drop(stream);
    assert!(processor.handler_count() == 0);
    assert!(synced.wait().await.is_err());
}

#[tokio::test]
async fn busy_reader_yields_to_other_tasks() {
    let processor = SharedProcessor::new(None);
    let mut stream = processor.events(&HandlerOptions::default(), std::iter::empty);
    processor.publish(batch((0..1_000).map(|value| added("a", value)).collect()), || {});
    let reader = tokio::spawn(async move {
        for _ in 0..1_000 {
            stream.next().await;
        }
    });
    tokio::task::yield_now().await;
    assert!(!reader.is_finished(), "the reader has yielded");
    reader.await.expect("the task does not panic");
}

#[tokio::test]
async fn events_after_a_replay_are_counted_as_pending() {
    let processor = SharedProcessor::new(None);
    processor.publish(complete(Vec::new()), || {});
    let existing = || ["a", "b", "c"].map(|name| object(name, 1)).into_iter();
    let mut events = processor.events(&HandlerOptions::default(), existing);
    processor.publish(batch(vec![updated("a", 1, 2), updated("b", 1, 2)]), || {});
    let mut pending = Vec::new();
    for _ in 0..5 {
        events.next().await.expect("the stream has an event");
        pending.push(events.registration().stats().pending);
    }
    assert_eq!(pending, [2, 2, 2, 1, 0]);
}

#[tokio::test]
async fn i11_resyncs_for_other_handlers_are_not_retained() {
    let processor = SharedProcessor::<Arc<()>>::new(None);
    let events = processor.events(&HandlerOptions::default(), std::iter::empty);
    let all = Arc::new(());
    let key = |name: &str| ObjectKey::cluster_scoped(name);
    for round in 0..100_u64 {
        let object = |name: &str| {
            Cached::from_parts(key(name), (round + 1).into(), Default::default(), Arc::clone(&all))
        };
        let mut batch = vec![Event::Updated { old: object("a"), new: object("a") }];
        batch.extend((0..100).map(|n| Event::Resynced(object(&format!("b{n}")))));
        processor.publish(EventBatch { events: batch, completes_initial_list: false }, || {});
    }
    assert_eq!(events.registration().stats().pending, 100);
    assert!(Arc::strong_count(&all) <= 201, "{} objects are kept", Arc::strong_count(&all) - 1);
}
