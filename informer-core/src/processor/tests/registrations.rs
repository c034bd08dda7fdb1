//! The name of a registration, and the reasons why it is not synced.

use futures::{FutureExt, StreamExt};

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unsynced_registration_returns_the_reason() {
    let processor = SharedProcessor::new(None);
    let (enter, mut inside, release) = gate();
    let handler = Handlers::new().on_add(move |_: &Cached<Object>, _| enter());
    let options = HandlerOptions::new().name("the-handler");
    let registration = processor.add_handler(handler, &options, std::iter::empty);
    let assert_reason = |what: &str| assert_eq!(registration.waiting_for().as_deref(), Some(what));
    assert_reason("the informer's initial list is not complete");
    let described = processor.clone();
    processor.describe_source(move || format!("pods are forbidden to {described:?}"));
    assert_reason(
        "the informer's initial list is not complete: pods are forbidden to SharedProcessor { handlers: 1, stopped: false, .. }",
    );
    processor.publish(complete(vec![added("a", 1), added("b", 1)]), || {});
    assert_reason("the informer is not running");
    let running = Running::of(processor);
    inside.recv().await.expect("the handler is called");
    assert_reason("2 events are waiting");
    release.send(()).expect("the handler waits");
    inside.recv().await.expect("the handler is called");
    assert_reason("1 event is waiting");
    release.send(()).expect("the handler waits");
    registration.synced().wait().await.expect("the handler syncs");
    assert_eq!((registration.waiting_for(), registration.name()), (None, "the-handler"));
    running.stop().await;
}

#[tokio::test]
async fn registration_that_never_syncs_returns_the_reason() {
    let running = Running::start();
    let processor = running.processor.clone();
    let mut stream = processor.events(&HandlerOptions::default(), || [object("a", 1)].into_iter());
    running.processor.publish(complete(vec![]), || {});
    assert!(stream.next().now_or_never().is_some());
    let assert_reason = |stream: &EventStream<Object>, what: &str| {
        assert_eq!(stream.registration().waiting_for().as_deref(), Some(what));
    };
    assert_reason(&stream, "initial objects are being delivered, or the stream must be polled again");
    running.stop().await;
    assert_reason(&stream, "the informer has stopped");
    let late = processor.events(&HandlerOptions::default(), std::iter::empty);
    assert_reason(&late, "the informer has stopped");
    drop(processor);
    assert_reason(&late, "the informer has stopped");
}

#[tokio::test]
async fn removed_handlers_count_until_the_last_of_their_name() {
    let processor = SharedProcessor::<Object>::new(None);
    let options = HandlerOptions::new().name("reader");
    let [mut first, mut second, third] = [(); 3].map(|()| processor.events(&options, std::iter::empty));
    processor.publish(batch(vec![added("a", 1)]), || {});
    for stream in [&mut first, &mut second] {
        assert!(stream.next().now_or_never().flatten().is_some());
    }
    for (stream, delivered) in [(first, 1), (second, 2)] {
        drop(stream);
        let sum = HandlerStats { delivered, ..HandlerStats::default() };
        assert_eq!(processor.handlers_and_removed().1, BTreeMap::from([("reader".to_owned(), sum)]));
    }
    assert_eq!(processor.handlers(), [("reader".to_owned(), third.registration().stats())]);
    drop(third);
    assert!(processor.handlers_and_removed().1.is_empty());
}

#[tokio::test]
async fn handler_without_a_name_has_the_name_of_its_type() {
    let processor = SharedProcessor::<Object>::new(None);
    let registration = processor.add_handler(Handlers::new(), &HandlerOptions::default(), std::iter::empty);
    assert!(registration.name().contains("Handlers<u64>"), "{}", registration.name());
    let stream = processor.events(&HandlerOptions::default(), std::iter::empty);
    assert!(stream.registration().name().contains("EventStream<u64>"), "{stream:?}");
    let named = processor.events(&HandlerOptions::new().name("reader"), std::iter::empty);
    assert_eq!(named.registration().name(), "reader");
}
