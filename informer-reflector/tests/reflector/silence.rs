//! Half-open connections, and idle connections that must not be mistaken for them.

use std::time::Duration;

use informer_core::DeltaFifo;
use informer_reflector::{Health, ReflectorConfig};

use super::script::*;

#[tokio::test(start_paused = true)]
async fn silent_watch_resumes_after_65_seconds() {
    // The limit of 65 seconds counts from the start of the watch or from its last event, with or
    // without earlier bookmarks.
    for last in [None, Some(5), Some(40), Some(64), Some(66), Some(170)] {
        let (events, line) = watch();
        let lines = [page(vec![], "7"), line].into_iter().chain((0..3).map(|_| watch().1));
        let mut run = Run::new(lines.collect());
        run.expect_requests(&["list 0 500", "watch 7"]).await;
        let version = if let Some(last) = last {
            for _ in 0..last / 60 {
                tokio::time::sleep(Duration::from_secs(60)).await;
                send(&events, vec![bookmark("7")]);
            }
            tokio::time::sleep(Duration::from_secs(last % 60)).await;
            send(&events, vec![bookmark("8")]);
            "watch 8"
        } else {
            "watch 7"
        };
        run.expect_after(64.9..65.1, version).await;
    }
}

#[tokio::test(start_paused = true)]
async fn third_silent_watch_waits_for_its_first_bookmark() {
    let quiet: Vec<_> = (0..4).map(|_| watch()).collect();
    let (_open, lines): (Vec<_>, Vec<_>) = quiet.into_iter().unzip();
    let mut run = Run::new([page(vec![], "7")].into_iter().chain(lines).collect());
    run.expect_requests(&["list 0 500", "watch 7"]).await;
    // Two watches are replaced after 65 seconds; the third may stay silent until its first
    // bookmark.
    for seconds in [65.0, 65.0, 125.0] {
        run.expect_after(seconds - 0.1..seconds + 0.1, "watch 7").await;
    }
    assert!(run.status.health().is_live(), "{}", run.status.health());
}

#[tokio::test(start_paused = true)]
async fn new_watch_does_not_change_the_time_of_the_last_event() {
    let (quiet, lines): (Vec<_>, Vec<_>) = (0..4).map(|_| watch()).unzip();
    let mut run = Run::new([page(vec![], "7")].into_iter().chain(lines).collect());
    run.expect_requests(&["list 0 500", "watch 7"]).await;
    run.health(Health::is_live).await;
    let age = |run: &Run| match run.status.health() {
        Health::Live { last_event } => last_event.elapsed().as_secs(),
        health => panic!("{health}"),
    };
    assert_eq!(age(&run), 0, "the list has just arrived");
    for expected in [65, 130, 255] {
        run.expect_requests(&["watch 7"]).await;
        assert_eq!(age(&run), expected, "a silent watch was replaced");
    }
    send(&quiet[3], vec![bookmark("8")]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(age(&run), 1, "a bookmark has arrived");
}

#[tokio::test(start_paused = true)]
async fn events_that_arrive_with_the_end_of_a_watch_are_data() {
    for last in [vec![modified("a", "8")], vec![modified("a", "8"), error(500, "InternalError")]] {
        let (quiet, line) = watch();
        let (_open, next) = watch();
        let mut run = Run::new(vec![page(vec![], "7"), line, next]);
        run.expect_requests(&["list 0 500", "watch 7"]).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        send(&quiet, last);
        drop(quiet);
        run.expect_requests(&["watch 8"]).await;
        let Health::Live { last_event } = run.status.health() else { panic!("{}", run.status.health()) };
        assert!(last_event.elapsed() < Duration::from_secs(60));
    }
}

#[tokio::test(start_paused = true)]
async fn first_bookmark_shortens_the_silence_allowed_after_it() {
    for seconds in [5, 120] {
        let (third, third_line) = watch();
        let (quiet, lines): (Vec<_>, Vec<_>) = [watch(), watch()].into_iter().unzip();
        let lines = [page(vec![], "7")].into_iter().chain(lines).chain([third_line, watch().1]);
        let mut run = Run::new(lines.collect());
        run.expect_requests(&["list 0 500", "watch 7", "watch 7", "watch 7"]).await;
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        send(&third, vec![bookmark("8")]);
        run.expect_after(64.9..65.1, "watch 8").await;
        drop(quiet);
    }
}

#[tokio::test(start_paused = true)]
async fn silent_streaming_list_resumes_after_65_seconds() {
    let (_events, line) = stream_of(vec![vec![end("7")]]);
    let mut run = Run::streaming(vec![line, watch().1]);
    run.expect_requests(&["stream newest"]).await;
    run.expect_after(64.9..65.1, "watch 7").await;
}

#[tokio::test(start_paused = true)]
async fn unanswered_watch_is_retried_after_20_seconds() {
    let (_quiet, line) = watch();
    let mut run = Run::new(vec![page(vec![], "7"), line, Line::Silence, watch().1]);
    run.expect_requests(&["list 0 500", "watch 7"]).await;
    run.expect_after(64.9..65.1, "watch 7").await;
    run.expect_after(20.8..21.6, "watch 7").await;
}

#[tokio::test(start_paused = true)]
async fn refusal_of_a_watch_after_16_seconds_is_respected() {
    let (refuse, line) = held(Line::WatchFails(too_many_requests(50)));
    let mut run = Run::new(vec![page(vec![], "7"), line, watch().1]);
    run.expect_requests(&["list 0 500", "watch 7"]).await;
    // The server queues requests for 15 seconds before it refuses them.
    tokio::time::sleep(Duration::from_secs(16)).await;
    refuse.send(()).expect("the reflector waits");
    run.expect_after(49.9..50.1, "watch 7").await;
}

#[tokio::test(start_paused = true)]
async fn idle_timeout_of_watches_can_be_set() {
    for (configured, seconds) in [(Duration::ZERO, 65.0), (Duration::from_secs(200), 200.0)] {
        let (events, line) = watch();
        let config = ReflectorConfig::new().watch_idle_timeout(configured);
        let mut run = Run::with(vec![page(vec![], "7"), line, watch().1], config);
        run.expect_requests(&["list 0 500", "watch 7"]).await;
        send(&events, vec![bookmark("8")]);
        run.expect_after(seconds - 0.1..seconds + 0.1, "watch 8").await;
    }
}

#[tokio::test(start_paused = true)]
async fn full_store_does_not_count_as_silence() {
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
    // The watch itself times out after more than five minutes.
    tokio::time::sleep(Duration::from_secs(290)).await;
    let taken = queue.pop_batch().await.expect("not closed").items()[0].deltas.len();
    assert_eq!(taken, 12_000, "the reflector stops reading when the queue is full");
    drop(queue.pop_batch().await);
    assert!(requests.try_recv().is_err(), "the same watch continues");
}
