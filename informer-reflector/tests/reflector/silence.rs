//! Half-open connections: what tells them from quiet ones, and what follows.

use std::time::Duration;

use informer_core::DeltaFifo;
use informer_reflector::{Health, ReflectorConfig};

use super::script::*;

#[tokio::test(start_paused = true)]
async fn a_watch_on_which_even_bookmarks_cease_is_resumed_after_a_minute_and_a_half() {
    let (events, line) = watch();
    let mut run = Run::new(vec![page(vec![], "7"), line, watch().1]);
    run.expect_requests(&["list 0 500", "watch 7"]).await;
    for version in ["8", "9", "10"] {
        tokio::time::sleep(Duration::from_secs(60)).await;
        send(&events, vec![bookmark(version)]);
    }
    run.health(|health| matches!(health, Health::Live { .. })).await;
    run.expect_after(89.9..90.1, "watch 10").await;
}

#[tokio::test(start_paused = true)]
async fn the_minute_and_a_half_counts_from_the_last_bookmark_whenever_that_came() {
    for last in [5, 40, 89, 91, 170] {
        let (events, line) = watch();
        let mut run = Run::new(vec![page(vec![], "7"), line, watch().1]);
        run.expect_requests(&["list 0 500", "watch 7"]).await;
        tokio::time::sleep(Duration::from_secs(last)).await;
        send(&events, vec![bookmark("8")]);
        run.expect_after(89.9..90.1, "watch 8").await;
    }
}

#[tokio::test(start_paused = true)]
async fn where_bookmarks_do_not_come_again_silence_means_nothing_again() {
    let (events, line) = watch();
    let (_quiet, quiet_line) = watch();
    let mut run = Run::new(vec![page(vec![], "7"), line, quiet_line, watch().1]);
    run.expect_requests(&["list 0 500", "watch 7"]).await;
    send(&events, vec![bookmark("8")]);
    run.expect_requests(&["watch 8"]).await;
    // Until the time agreed for the watch is up.
    run.expect_after(330.0..631.0, "watch 8").await;
}

#[tokio::test(start_paused = true)]
async fn bookmarks_that_came_on_an_earlier_watch_are_expected_on_the_next() {
    let (first, first_line) = watch();
    let (_second, second_line) = watch();
    let mut run = Run::new(vec![page(vec![], "7"), first_line, second_line, watch().1]);
    run.expect_requests(&["list 0 500", "watch 7"]).await;
    send(&first, vec![bookmark("8")]);
    drop(first);
    run.expect_requests(&["watch 8"]).await;
    run.expect_after(89.9..90.1, "watch 8").await;
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_streaming_list_promises_no_bookmarks() {
    let (_events, line) = stream_of(vec![vec![end("7")]]);
    let mut run = Run::streaming(vec![line, watch().1]);
    run.expect_requests(&["stream newest"]).await;
    run.expect_after(330.0..631.0, "watch 7").await;
}

#[tokio::test(start_paused = true)]
async fn how_long_a_watch_may_be_silent_can_be_set() {
    for (asked, seconds) in [(Duration::ZERO, 75.0), (Duration::from_secs(200), 200.0)] {
        let (events, line) = watch();
        let config = ReflectorConfig::new().watch_silence(asked);
        let mut run = Run::with(vec![page(vec![], "7"), line, watch().1], config);
        run.expect_requests(&["list 0 500", "watch 7"]).await;
        send(&events, vec![bookmark("8")]);
        run.expect_after(seconds - 0.1..seconds + 0.1, "watch 8").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_reflector_that_cannot_read_because_its_store_has_no_room_takes_nobody_for_dead() {
    let (events, line) = watch();
    send(&events, vec![bookmark("8")]);
    for batch in 0..3_u64 {
        let changed = |n: u64| modified("a", &(9 + batch * 6_000 + n).to_string());
        send(&events, (0..6_000).map(changed).collect());
    }
    let queue = DeltaFifo::new();
    let (script, mut requests) = Script::new(vec![page(vec![], "7"), line]);
    let store = std::sync::Arc::new(queue.clone());
    let reflector =
        informer_reflector::Reflector::new(std::sync::Arc::new(script), store, ReflectorConfig::new());
    tokio::spawn(reflector.run(Default::default()));
    for expected in ["list 0 500", "watch 7"] {
        assert_eq!(requests.recv().await.as_deref(), Some(expected));
    }
    // The watch's own end is more than five minutes away.
    tokio::time::sleep(Duration::from_secs(290)).await;
    let taken = queue.pop_batch().await.expect("not closed").items()[0].deltas.len();
    assert_eq!(taken, 12_000, "it has read no further than there was room");
    drop(queue.pop_batch().await);
    assert!(requests.try_recv().is_err(), "the same watch goes on");
}
