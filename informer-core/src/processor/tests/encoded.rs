//! Handlers and streams of encoded objects.

use futures::{FutureExt, StreamExt};

use super::*;
use crate::{AnyObject, Codec, DecodeBytes, Encoded, OwnedObject, Storage};

/// Decodes a number of one byte.
struct OneByte;

impl DecodeBytes for OneByte {
    fn object(&self, bytes: &[u8]) -> OwnedObject<AnyObject> {
        OwnedObject::new(Object::from(bytes[0])).cast()
    }
}

/// Returns an encoded object as a store has it.
fn encoded(value: u8) -> Cached<AnyObject> {
    let encoded = Encoded::new(&[value], "", Arc::new(Codec::new(OneByte, Storage::Encoded)));
    let key = ObjectKey::cluster_scoped("a");
    OwnedObject::<AnyObject>::encoded(key, u64::from(value).into(), Default::default(), encoded)
        .into_cached_if_encoded()
        .expect("the object is encoded")
}

/// Returns the events of one object: an add, an update, and a delete with a newer last state.
fn life(first: Cached<AnyObject>) -> EventBatch<AnyObject> {
    let events = vec![
        Event::Added { object: first.clone(), is_in_initial_list: false },
        Event::Updated { old: first, new: encoded(2) },
        Event::Deleted(Deleted::exact(encoded(3)).after(encoded(2))),
    ];
    EventBatch { events, completes_initial_list: false }
}

type Received = tokio::sync::mpsc::UnboundedReceiver<[Option<Object>; 2]>;

/// Returns the two states that the handler reads in its next call. Returns `None` if no call reads
/// two states within a second, for example because the handler panics.
async fn next(received: &mut Received) -> Option<[Option<Object>; 2]> {
    tokio::time::timeout(Duration::from_secs(1), received.recv()).await.ok().flatten()
}

fn states(deleted: &Deleted<Object>) -> [Option<Object>; 2] {
    [deleted.previous(), deleted.last_known()].map(|object| object.map(|object| **object))
}

#[tokio::test(start_paused = true)]
async fn handlers_read_encoded_objects() {
    let running = Running::start();
    let (send, mut received) = tokio::sync::mpsc::unbounded_channel();
    let (on_update, on_delete) = (send.clone(), send.clone());
    let handler = Handlers::new()
        .on_add(move |object: &Cached<Object>, _| _ = send.send([None, Some(**object)]))
        .on_update(move |old, new| _ = on_update.send([Some(**old), Some(**new)]))
        .on_delete(move |deleted: &Deleted<Object>| _ = on_delete.send(states(deleted)));
    let _registration = running.add(handler);
    running.processor.cast().publish(life(encoded(1)), || {});
    for expected in [[None, Some(1)], [Some(1), Some(2)], [Some(2), Some(3)]] {
        assert_eq!(next(&mut received).await, Some(expected));
    }
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn handler_reads_objects_that_only_the_snapshot_had() {
    let update = Event::Updated { old: encoded(1), new: object("a", 2).cast() };
    for (first, expected) in [(Event::Released(encoded(1)), None), (update, Some(2))] {
        let running = Running::start();
        let (send, mut received) = tokio::sync::mpsc::unbounded_channel();
        let on_release = send.clone();
        let handler = Handlers::new()
            .on_update(move |old: &Cached<Object>, new| _ = send.send([Some(**old), Some(**new)]))
            .on_release(move |object: &Cached<Object>| _ = on_release.send([Some(**object), None]));
        let _registration = running.add(handler);
        let batch = EventBatch { events: vec![first], completes_initial_list: false };
        running.processor.cast().publish(batch, || {});
        assert_eq!(next(&mut received).await, Some([Some(1), expected]));
        running.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn handler_reads_the_encoded_last_state_of_a_deletion() {
    let running = Running::start();
    let (send, mut received) = tokio::sync::mpsc::unbounded_channel();
    let _registration = running
        .add(Handlers::new().on_delete(move |deleted: &Deleted<Object>| _ = send.send(states(deleted))));
    // The previous state is decoded: a store keeps an object decoded if it could not be encoded.
    let events = vec![Event::Deleted(Deleted::exact(encoded(3)).after(object("a", 2).cast()))];
    let batch = EventBatch { events, completes_initial_list: false };
    running.processor.cast().publish(batch, || {});
    assert_eq!(next(&mut received).await, Some([Some(2), Some(3)]));
    running.stop().await;
}

#[tokio::test]
async fn stream_yields_encoded_objects_that_can_be_read() {
    let processor = SharedProcessor::<Object>::new(None);
    let stored = [encoded(1)];
    let snapshot = || stored.clone().into_iter().map(Cached::cast);
    let mut stream = processor.events(&HandlerOptions::default(), snapshot);
    processor.cast().publish(life(encoded(1)), || {});
    let read = |event: Event<Object>| match event {
        Event::Added { object, .. } => [None, Some(*object)],
        Event::Updated { old, new } => [Some(*old), Some(*new)],
        Event::Deleted(deleted) => states(&deleted),
        Event::Resynced(_) | Event::Released(_) => [None, None],
    };
    let events: Vec<_> = std::iter::from_fn(|| stream.next().now_or_never().flatten()).map(read).collect();
    assert_eq!(events, [[None, Some(1)], [None, Some(1)], [Some(1), Some(2)], [Some(2), Some(3)]]);
}

/// A decoded object. The `Arc` counts the decoded objects in memory.
struct Counted(Arc<()>);

/// Decodes all bytes to [`Counted`].
struct Counting(Arc<()>);

impl DecodeBytes for Counting {
    fn object(&self, _: &[u8]) -> OwnedObject<AnyObject> {
        OwnedObject::new(Counted(Arc::clone(&self.0))).cast()
    }
}

/// Publishes a batch of 200 encoded objects, while an unread stream keeps the batch. Calls
/// `handle` with each object, and then `later` with the results. Returns the number of decoded
/// objects that are left.
async fn decoded_objects_left<T: Send + 'static>(
    handle: impl Fn(&Cached<Counted>) -> T + Send + Sync + 'static,
    later: impl Fn(T),
) -> usize {
    let counter = Arc::new(());
    let codec = Arc::new(Codec::new(Counting(Arc::clone(&counter)), Storage::Encoded));
    let event = |number: u32| {
        let encoded = Encoded::new(&[0], "", Arc::clone(&codec));
        let key = ObjectKey::cluster_scoped(&number.to_string());
        let object = OwnedObject::<AnyObject>::encoded(key, 1.into(), Default::default(), encoded);
        let object = object.into_cached_if_encoded().expect("the object is encoded");
        Event::Added { object, is_in_initial_list: false }
    };
    let processor = SharedProcessor::<Counted>::new(None);
    let waiting = processor.events(&HandlerOptions::default(), std::iter::empty);
    let (send, mut received) = tokio::sync::mpsc::unbounded_channel();
    let handler = Handlers::new().on_add(move |object, _| _ = send.send(handle(object)));
    let _registration = processor.add_handler(handler, &HandlerOptions::default(), std::iter::empty);
    let shutdown = CancellationToken::new();
    let run = tokio::spawn({
        let (processor, shutdown) = (processor.clone(), shutdown.clone());
        async move { processor.run(shutdown).await }
    });
    let events = (0..200).map(event).collect();
    processor.cast().publish(EventBatch { events, completes_initial_list: false }, || {});
    for _ in 0..200 {
        later(received.recv().await.expect("a call for each object"));
    }
    let left = Arc::strong_count(&counter) - 2;
    drop(waiting);
    shutdown.cancel();
    run.await.expect("no panic");
    left
}

#[tokio::test(start_paused = true)]
async fn i11_batch_that_waits_keeps_few_decoded_objects() {
    let read = |object: &Cached<Counted>| _ = Arc::strong_count(&object.0);
    // The codec keeps the 32 objects that it decoded last.
    let left = decoded_objects_left(read, |()| {}).await;
    assert!((1..=34).contains(&left), "{left}");
    let left = decoded_objects_left(Cached::clone, |object| read(&object)).await;
    assert!((1..=34).contains(&left), "{left}");
}
