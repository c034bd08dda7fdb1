//! A slow or blocked handler does not delay other handlers.

use super::*;

/// Advances the paused clock during a call of a sync handler.
fn advance_by(seconds: f64) {
    use futures::FutureExt;
    // The first poll of the future advances the clock.
    _ = tokio::time::advance(Duration::from_secs_f64(seconds)).now_or_never();
}

#[tokio::test(start_paused = true)]
async fn stats_have_the_duration_of_the_slowest_call() {
    let running = Running::start();
    let registration = running.add(Handlers::new().on_add(|object: &Cached<Object>, _| {
        advance_by(if **object == 700 { 0.2 } else { 0.0 });
        assert!(**object != 900, "the intended panic");
    }));
    running.processor.publish(complete((0..1_000).map(|value| added("a", value)).collect()), || {});
    registration.synced().wait().await.expect("the handler syncs");
    assert_eq!(registration.stats().slowest, Duration::from_millis(200));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn slow_handler_is_logged_once_until_it_catches_up() {
    log::keep();
    let running = Running::start();
    let (send, mut received) = tokio::sync::mpsc::unbounded_channel();
    let handler = Handlers::new().on_add(move |object: &Cached<Object>, _| {
        advance_by(0.15);
        _ = send.send(object.key().to_string());
    });
    let options = HandlerOptions::new().name("slow-one").threshold(Some(3));
    let _registration = running.processor.add_handler(handler, &options, std::iter::empty);
    let flood = || {
        for name in ["a", "b", "c", "d", "e", "f"] {
            running.processor.publish(batch(vec![added(name, 1)]), || {});
        }
    };
    running.processor.publish(batch(vec![added("a", 1)]), || {});
    received.recv().await.expect("the handler is called");
    assert!(log::about("slow-one").is_empty(), "the handler is slow but not behind");
    for floods in 1..3 {
        flood();
        for _ in 0..6 {
            received.recv().await.expect("the handler is called");
        }
        tokio::task::yield_now().await;
        assert_eq!(log::about("slow-one").len(), floods, "{:?}", log::about("slow-one"));
    }
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i11_stuck_handler_delays_no_other_handler() {
    let running = Running::start();
    let (enter, mut inside, release) = gate();
    let stuck = running.add(Handlers::new().on_add(move |_: &Cached<Object>, _| enter()));
    let (other, mut received) = recorder();
    let _other = running.add(other);
    running.processor.publish(batch(vec![added("a", 0)]), || {});
    inside.recv().await.expect("the handler is called");
    for value in 0..10_000 {
        running.processor.publish(batch(vec![updated("a", value, value + 1)]), || {});
        if value % 1_000 == 0 {
            while received.recv().await.as_deref() != Some(&format!("a={value}>{}", value + 1)) {}
        }
    }
    let stats = stuck.stats();
    // 1,024 events, including the event of the blocked call, and one coalesced event for the key.
    assert_eq!((stats.pending, stats.coalesced), (1_024 + 1, 10_000 - 1_024));
    release.send(()).expect("the handler waits");
    running.stop().await;
}

#[tokio::test]
async fn i6_handler_that_is_always_behind_gets_synced() {
    let running = Running::start();
    let (send, mut calls) = tokio::sync::mpsc::unbounded_channel();
    let handler = Handlers::new()
        .on_add({
            let send = send.clone();
            move |_: &Cached<Object>, _| _ = send.send(())
        })
        .on_update(move |_, _| _ = send.send(()));
    let options = HandlerOptions::new().threshold(Some(1));
    let registration = running.processor.add_handler(handler, &options, std::iter::empty);
    running.processor.publish(batch(vec![added("a", 0), added("b", 0)]), || {});
    running.processor.publish(complete(vec![added("c", 0)]), || {});
    let mut value = 0;
    while !registration.has_synced() {
        running.processor.publish(batch(vec![updated("a", value, value + 1), added("d", value)]), || {});
        value += 1;
        calls.recv().await.expect("the handler is called");
        assert!(value < 100, "the handler must sync although it never catches up");
    }
    running.stop().await;
}

#[tokio::test]
async fn handler_far_behind_yields_to_other_tasks() {
    let running = Running::start();
    let turns = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let neighbour = tokio::spawn({
        let turns = Arc::clone(&turns);
        async move {
            loop {
                turns.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        }
    });
    let seen = Arc::new(Mutex::new(std::collections::BTreeSet::new()));
    let handler = Handlers::new().on_add({
        let seen = Arc::clone(&seen);
        move |_: &Cached<Object>, _| _ = seen.lock().insert(turns.load(std::sync::atomic::Ordering::Relaxed))
    });
    let options = HandlerOptions::new().threshold(Some(1));
    let registration = running.processor.add_handler(handler, &options, std::iter::empty);
    for name in 0..2_560 {
        running.processor.publish(batch(vec![added(&name.to_string(), 0)]), || {});
    }
    running.processor.publish(complete(Vec::new()), || {});
    registration.synced().wait().await.expect("the handler syncs");
    assert_eq!(registration.stats().delivered, 2_560);
    assert!(seen.lock().len() >= 5, "{} turns", seen.lock().len());
    neighbour.abort();
    running.stop().await;
}
