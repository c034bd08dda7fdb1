//! Streaming lists, and the fallback to paged lists.

use std::time::Duration;

use informer_core::{ListWatchError, RejectedKind, WatchEvent};
use informer_reflector::{Health, ReflectorConfig, SharedServer};
use k8s_openapi::api::core::v1::ConfigMap;

use super::script::*;

/// More time than any test of this file takes.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[tokio::test(start_paused = true)]
async fn streaming_list_continues_as_the_watch() {
    let (events, line) = stream_of(vec![
        vec![added("b", "90"), added("a", "3")],
        vec![added("c", "5"), end("100"), added("d", "101")],
    ]);
    let mut run = Run::streaming(vec![line, watch().1]);
    run.expect_requests(&["stream newest"]).await;
    run.expect_notes(&["[b a c]@100", "+d@101"]).await;
    assert!(run.status.health().is_live());
    send(&events, vec![modified("a", "102")]);
    run.expect_notes(&["~a@102"]).await;
    drop(events);
    tokio::time::sleep(Duration::from_secs(2)).await;
    // The stream closed after an event, so the next request is a watch from its last version,
    // without a list.
    run.expect_requests(&["watch 102"]).await;
}

#[tokio::test(start_paused = true)]
async fn an_empty_streaming_list_ends_with_its_first_bookmark() {
    let (_events, line) = stream_of(vec![vec![end("7")]]);
    let mut run = Run::streaming(vec![line]);
    run.expect_notes(&["[]@7"]).await;
    assert_eq!(run.status.last_sync_resource_version(), "7".into());
}

#[tokio::test(start_paused = true)]
async fn changes_before_the_end_of_a_stream_are_applied() {
    let (_events, line) = stream_of(vec![
        vec![added("a", "3"), added("b", "4"), added("c", "5"), bookmark("6")],
        vec![modified("a", "7"), deleted("b", "8"), deleted("c", "9"), added("c", "10"), added("d", "11")],
        vec![end("12")],
    ]);
    let mut run = Run::streaming(vec![line]);
    run.expect_notes(&["[a c d]@12"]).await;
    run.health(Health::is_live).await;
    let objects: Vec<_> = run.status.recent_lists().iter().map(|list| list.objects).collect();
    assert_eq!(objects, [3]);
    assert_eq!(run.status.counts().listed_objects, 3);
}

#[tokio::test(start_paused = true)]
async fn later_streaming_list_requests_not_older() {
    let (first, first_line) = stream_of(vec![vec![added("a", "3"), end("7")]]);
    let mut run = Run::streaming(vec![first_line, stream_of(vec![vec![end("20")]]).1]);
    send(&first, vec![added("b", "8"), error(410, "Expired")]);
    run.expect_requests(&["stream newest", "stream 8"]).await;
    run.expect_notes(&["[a]@7", "+b@8", "[]@20"]).await;
}

#[tokio::test(start_paused = true)]
async fn unavailable_stream_version_is_replaced_by_the_newest() {
    for in_stream in [false, true] {
        for refusal in [|| failure(410, "Expired"), || failure(410, "Gone"), too_large] {
            let (first, first_line) = stream_of(vec![vec![end("7")]]);
            let refused = if in_stream { broken_stream(refusal()) } else { Line::StreamFails(refusal()) };
            let mut run = Run::streaming(vec![first_line, refused, stream_of(vec![vec![end("9")]]).1]);
            send(&first, vec![error(410, "Expired")]);
            run.expect_requests(&["stream newest", "stream 7"]).await;
            run.expect_after(0.0..0.1, "stream newest").await;
        }
    }
}

/// A streaming list that fails as soon as it is open.
fn broken_stream(error: ListWatchError) -> Line {
    let (events, line) = stream_of(vec![]);
    let error = match error {
        ListWatchError::Status { status, .. } => Ok(vec![WatchEvent::Error(status)]),
        other => Err(other),
    };
    events.unbounded_send(error).expect("the line holds the receiver");
    line
}

#[tokio::test(start_paused = true)]
async fn refused_stream_leads_to_pages_and_is_remembered() {
    let refusals: [fn() -> Line; 6] = [
        || Line::StreamFails(failure(422, "Invalid")),
        || Line::StreamFails(failure(400, "BadRequest")),
        || Line::StreamFails(failure(405, "MethodNotAllowed")),
        || Line::StreamFails(failure(406, "NotAcceptable")),
        || broken_stream(failure(400, "BadRequest")),
        || broken_stream(ListWatchError::Protocol("that is a list".into())),
    ];
    for refused in refusals {
        let (events, watch_line) = watch();
        let lines = vec![refused(), page(vec![], "7"), watch_line, page(vec![], "9"), watch().1];
        let mut run = Run::streaming(lines);
        run.expect_requests(&["stream newest"]).await;
        run.expect_after(0.0..0.1, "list 0 500").await;
        run.expect_requests(&["watch 7"]).await;
        send(&events, vec![bookmark("8"), error(410, "Expired")]);
        run.expect_requests(&["list 8 all", "watch 9"]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn streaming_lists_are_retried_after_ten_to_thirty_minutes() {
    let (events, watch_line) = watch();
    let refused = Line::StreamFails(failure(422, "Invalid"));
    // This watch stays open for the rest of the test.
    let config = ReflectorConfig::new().watch_timeout(DAY).watch_idle_timeout(DAY);
    let mut run = Run::streaming_with(vec![refused, page(vec![], "7"), watch_line], config);
    run.expect_requests(&["stream newest", "list 0 500", "watch 7"]).await;
    tokio::time::sleep(Duration::from_secs(30 * 60)).await;
    send(&events, vec![added("a", "8"), error(410, "Expired")]);
    run.expect_requests(&["stream 8"]).await;
}

#[tokio::test(start_paused = true)]
async fn stream_support_is_remembered_per_server() {
    let (one, another) = (SharedServer::new(), SharedServer::new());
    let config = |server: &SharedServer| ReflectorConfig::new().server(server.clone());
    let refused = Line::StreamFails(failure(422, "Invalid"));
    let mut first = Run::streaming_with(vec![refused, page(vec![], "7")], config(&one));
    first.expect_requests(&["stream newest", "list 0 500", "watch 7"]).await;
    let (_events, stream) = stream_of(vec![vec![end("7")]]);
    let mut elsewhere = Run::streaming_with(vec![stream], config(&another));
    elsewhere.expect_requests(&["stream newest"]).await;
    elsewhere.expect_notes(&["[]@7"]).await;
    let mut again = Run::streaming_with(vec![page(vec![], "7")], config(&one));
    again.expect_requests(&["list 0 500", "watch 7"]).await;
}

#[tokio::test(start_paused = true)]
async fn streaming_lists_can_be_disabled() {
    let config = ReflectorConfig::new().streaming_lists(false);
    Run::streaming_with(vec![page(vec![], "7")], config).expect_requests(&["list 0 500", "watch 7"]).await;
}

#[tokio::test(start_paused = true)]
async fn stream_without_events_is_cancelled_after_10_to_15_s() {
    let (_events, silent) = stream_of(vec![]);
    let mut run = Run::streaming(vec![silent, page(vec![], "7")]);
    run.expect_requests(&["stream newest"]).await;
    run.expect_after(9.9..15.1, "list 0 500").await;
    run.expect_requests(&["watch 7"]).await;
}

#[tokio::test(start_paused = true)]
async fn stream_that_is_never_answered_is_replaced_by_pages() {
    for (timeout, expected) in [(1, 19.9..30.1), (100, 99.9..150.1)] {
        let config = ReflectorConfig::new().list_stall_timeout(Duration::from_secs(timeout));
        let mut run = Run::streaming_with(vec![Line::Silence, page(vec![], "7"), watch().1], config);
        run.expect_requests(&["stream newest"]).await;
        run.expect_after(expected, "list 0 500").await;
    }
}

#[tokio::test(start_paused = true)]
async fn stream_refused_after_16_seconds_is_followed_by_another() {
    let (refuse, line) = held(Line::StreamFails(too_many_requests(50)));
    let mut run = Run::streaming(vec![line, stream_of(vec![vec![end("7")]]).1]);
    run.expect_requests(&["stream newest"]).await;
    // The server queues requests for 15 seconds before it refuses them.
    tokio::time::sleep(Duration::from_secs(16)).await;
    refuse.send(()).expect("the reflector waits");
    run.expect_after(49.9..50.1, "stream newest").await;
}

#[tokio::test(start_paused = true)]
async fn slow_streaming_list_does_not_reset_the_backoff() {
    let config = ReflectorConfig::new().list_stall_timeout(Duration::from_secs(60));
    let busy = || Line::StreamFails(failure(429, "TooManyRequests"));
    let (events, line) = stream_of(vec![]);
    let mut run = Run::streaming_with(vec![busy(), busy(), line, watch().1], config);
    run.expect_requests(&["stream newest"; 3]).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    send(&events, vec![end("7")]);
    run.health(Health::is_live).await;
    send(&events, vec![error(500, "InternalError")]);
    run.expect_after(3.2..6.4, "watch 7").await;
}

/// A streaming list that sends a batch every `millis` milliseconds, without an end.
fn trickle(millis: u64, batch: impl Fn(usize) -> Vec<WatchEvent<ConfigMap>> + Send + 'static) -> Line {
    let (events, line) = stream_of(vec![vec![added("a", "1")]]);
    tokio::spawn(async move {
        let mut n = 0;
        loop {
            tokio::time::sleep(Duration::from_millis(millis)).await;
            n += 1;
            if events.unbounded_send(Ok(batch(n))).is_err() {
                return;
            }
        }
    });
    line
}

#[tokio::test(start_paused = true)]
async fn plain_watch_instead_of_a_stream_is_replaced_within_seconds() {
    let changes = trickle(100, |n| vec![modified("a", &(n + 1).to_string())]);
    let mut run = Run::streaming(vec![changes, page(vec![item("a", "200")], "200")]);
    run.expect_requests(&["stream newest"]).await;
    run.expect_after(10.0..15.4, "list newest 500").await;
}

#[tokio::test(start_paused = true)]
async fn each_object_extends_the_allowance_by_five_milliseconds() {
    for (millis, expected) in [(1_000, 10.0..15.4), (10, 19.0..32.0)] {
        let additions = trickle(millis, |n| vec![added(&n.to_string(), &n.to_string())]);
        let mut run = Run::streaming(vec![additions, page(vec![], "200")]);
        run.expect_requests(&["stream newest"]).await;
        run.expect_after(expected, "list newest 500").await;
    }
}

#[tokio::test(start_paused = true)]
async fn initial_burst_does_not_extend_the_wait_for_the_end() {
    let (events, line) = stream_of(vec![]);
    let mut run = Run::streaming(vec![line, page(vec![], "200")]);
    run.expect_requests(&["stream newest"]).await;
    send(&events, (0..50_000).map(|n| added(&format!("burst-{n}"), "3")).collect());
    let dripping = tokio::spawn(async move {
        for n in 0..1_000 {
            tokio::time::sleep(Duration::from_secs(9)).await;
            let _ = events.unbounded_send(Ok(vec![added(&n.to_string(), "4")]));
        }
    });
    run.expect_after(29.0..48.0, "list newest 500").await;
    dripping.abort();
}

/// Returns events that extend the allowance by 25 seconds. They contain rejected objects, which
/// also extend the allowance, but use no memory in the store.
fn many() -> Vec<WatchEvent<ConfigMap>> {
    let event =
        || WatchEvent::RejectedObject { kind: RejectedKind::Changed, object: malformed(Some("b"), "2") };
    (0..5_000).map(|_| event()).collect()
}

#[tokio::test(start_paused = true)]
async fn endless_additions_end_the_stream_at_its_timeout() {
    let additions = trickle(9_000, |_| many());
    let mut run = Run::streaming(vec![additions, page(vec![], "200")]);
    run.expect_requests(&["stream newest"]).await;
    // The stream's timeout is five to ten minutes; the reflector allows 30 seconds more.
    run.expect_after(329.0..631.0, "list newest 500").await;
}

#[tokio::test(start_paused = true)]
async fn long_stream_is_accepted_while_objects_arrive() {
    let (events, line) = stream_of(vec![]);
    let mut run = Run::streaming(vec![line]);
    run.expect_requests(&["stream newest"]).await;
    for batch in 0..10 {
        tokio::time::sleep(Duration::from_secs(9)).await;
        let object = |n: usize| added(&format!("{batch}-{n}"), "3");
        send(&events, (0..5_000).map(object).collect());
    }
    run.health(|health| matches!(health, Health::Syncing { received: 50_000, .. })).await;
    send(&events, vec![end("7")]);
    assert!(run.notes.recv().await.is_some_and(|note| note.ends_with("]@7")));
    assert!(run.requests.try_recv().is_err(), "the streaming list needed no second request");
}

#[tokio::test(start_paused = true)]
async fn unrelated_failure_is_followed_by_another_stream() {
    let failures: [fn() -> ListWatchError; 6] = [
        || ListWatchError::Unreachable("connection refused".into()),
        || failure(429, "TooManyRequests"),
        || failure(503, "ServiceUnavailable"),
        || failure(401, "Unauthorized"),
        || failure(404, "NotFound"),
        || ListWatchError::Interrupted("reset".into()),
    ];
    for failure in failures {
        for in_stream in [false, true] {
            let line = if in_stream { broken_stream(failure()) } else { Line::StreamFails(failure()) };
            let mut run = Run::streaming(vec![line, stream_of(vec![vec![end("7")]]).1]);
            run.expect_requests(&["stream newest"]).await;
            run.expect_after(0.8..1.6, "stream newest").await;
            run.expect_notes(&["[]@7"]).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn two_interrupted_streams_lead_to_pages_once() {
    let broken = || broken_stream(ListWatchError::Interrupted("reset".into()));
    let (events, watch_line) = watch();
    let mut run = Run::streaming(vec![broken(), broken(), page(vec![], "7"), watch_line]);
    run.expect_requests(&["stream newest", "stream newest"]).await;
    run.expect_after(1.6..3.2, "list 0 500").await;
    run.expect_requests(&["watch 7"]).await;
    send(&events, vec![bookmark("8"), error(410, "Expired")]);
    run.expect_requests(&["stream 8"]).await;
}

/// A streaming list that the server closes cleanly before its end bookmark.
fn closed_stream() -> Line {
    stream_of(vec![vec![added("a", "3")]]).1
}

#[tokio::test(start_paused = true)]
async fn second_stream_closed_early_leads_to_pages() {
    let (events, watch_line) = watch();
    let lines =
        vec![closed_stream(), closed_stream(), page(vec![], "7"), watch_line, page(vec![], "9"), watch().1];
    let mut run = Run::streaming(lines);
    run.expect_requests(&["stream newest"]).await;
    run.expect_after(0.8..1.6, "stream newest").await;
    // Objects of the closed streams are in the store. The paged list requests the newest state,
    // because any other state could be older than these objects.
    run.expect_after(0.0..0.1, "list newest 500").await;
    run.expect_requests(&["watch 7"]).await;
    send(&events, vec![bookmark("8"), error(410, "Expired")]);
    run.expect_requests(&["list 8 all", "watch 9"]).await;
}

#[tokio::test(start_paused = true)]
async fn one_stream_closed_early_is_not_remembered() {
    // A complete list between two early closes resets their count.
    let (events, line) = stream_of(vec![vec![end("7")]]);
    let mut run =
        Run::streaming(vec![closed_stream(), line, closed_stream(), stream_of(vec![vec![end("9")]]).1]);
    run.expect_requests(&["stream newest"]).await;
    run.expect_after(0.8..1.6, "stream newest").await;
    send(&events, vec![bookmark("8"), error(410, "Expired")]);
    run.expect_requests(&["stream 8"]).await;
    run.expect_after(1.6..3.2, "stream 8").await;
    run.expect_notes(&["[]@7", "@8", "[]@9"]).await;
    // An interrupted stream and a stream that is closed early together lead to one paged list. The
    // next list is a stream again.
    let broken = || broken_stream(ListWatchError::Interrupted("reset".into()));
    for lines in [[broken(), closed_stream()], [closed_stream(), broken()]] {
        let (events, watch_line) = watch();
        let mut run = Run::streaming(lines.into_iter().chain([page(vec![], "7"), watch_line]).collect());
        run.expect_requests(&["stream newest", "stream newest", "list newest 500", "watch 7"]).await;
        send(&events, vec![bookmark("8"), error(410, "Expired")]);
        run.expect_requests(&["stream 8"]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn stream_ended_by_its_timeout_leads_to_pages() {
    let (events, line) = stream_of(vec![]);
    let mut run = Run::streaming(vec![line, page(vec![], "200")]);
    run.expect_requests(&["stream newest"]).await;
    let end = tokio::time::Instant::now() + run.lifetimes.lock()[0];
    while tokio::time::Instant::now() < end {
        send(&events, many());
        tokio::time::sleep_until(end.min(tokio::time::Instant::now() + Duration::from_secs(9))).await;
    }
    drop(events);
    run.expect_after(0.0..0.1, "list 0 500").await;
}

#[tokio::test(start_paused = true)]
async fn user_without_watch_permission_gets_a_list_and_an_error() {
    let forbidden = || Line::StreamFails(failure(403, "Forbidden"));
    let lines =
        vec![forbidden(), page(vec![item("a", "3")], "7"), Line::WatchFails(failure(403, "Forbidden"))];
    let mut run = Run::streaming(lines);
    run.expect_requests(&["stream newest", "list 0 500", "watch 7"]).await;
    run.expect_notes(&["[a]@7"]).await;
    run.health(|health| matches!(health, Health::Forbidden { .. })).await;
}

#[tokio::test(start_paused = true)]
async fn i10_undecodable_object_of_a_stream_is_not_deleted() {
    let malformed_event =
        |kind, name, version| WatchEvent::RejectedObject { kind, object: malformed(name, version) };
    let (events, line) = stream_of(vec![vec![
        added("a", "3"),
        malformed_event(RejectedKind::Changed, Some("b"), "4"),
        malformed_event(RejectedKind::Changed, Some("c"), "5"),
        malformed_event(RejectedKind::Changed, Some("d"), "6"),
    ]]);
    let mut run = Run::streaming(vec![line]);
    run.health(|health| matches!(health, Health::Syncing { received: 4, .. })).await;
    assert_eq!(run.status.quarantined().len(), 3);
    let healed = modified("c", "7");
    let gone = malformed_event(RejectedKind::Deleted, Some("d"), "8");
    let nameless = malformed_event(RejectedKind::Changed, None, "");
    send(&events, vec![healed, gone, nameless, end("9")]);
    run.expect_notes(&["[a c !b and more]@9"]).await;
    assert_eq!(run.status.quarantined(), [malformed(Some("b"), "4")]);
}

#[tokio::test(start_paused = true)]
async fn i10_object_undecodable_before_the_end_stays_quarantined() {
    let spoilt = malformed(Some("a"), "5");
    let change = WatchEvent::RejectedObject { kind: RejectedKind::Changed, object: spoilt.clone() };
    // All events are in one batch.
    let (_events, line) = stream_of(vec![vec![added("a", "3"), modified("a", "4"), change, end("9")]]);
    let mut run = Run::streaming(vec![line]);
    run.expect_notes(&["[a !a]@9"]).await;
    assert_eq!(run.status.quarantined(), [spoilt]);
}

#[tokio::test(start_paused = true)]
async fn i10_unknown_initial_event_leads_to_pages() {
    for kind in [RejectedKind::Unknown, RejectedKind::Deleted] {
        let unknown = WatchEvent::RejectedObject { kind, object: malformed(None, "") };
        let mut run = Run::streaming(vec![stream_of(vec![vec![unknown]]).1, page(vec![], "7")]);
        run.expect_requests(&["stream newest", "list 0 500", "watch 7"]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn i10_failed_transform_of_a_stream_quarantines_one_object() {
    let calls = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = std::sync::Arc::clone(&calls);
    let transform = move |object: &mut ConfigMap| {
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if object.metadata.name.as_deref() == Some("bad") { Err("not allowed".to_owned()) } else { Ok(()) }
    };
    let (_events, line) = stream_of(vec![vec![added("a", "3"), added("bad", "4"), end("7")]]);
    let (script, requests) = Script::new(vec![line]);
    let mut run = Run::transforming((script.streaming(), requests), transform);
    run.expect_notes(&["[a !bad]@7"]).await;
    assert_eq!(calls.load(std::sync::atomic::Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn i12_stop_ends_a_streaming_list() {
    let (_events, line) = stream_of(vec![vec![added("a", "3")]]);
    let mut run = Run::streaming(vec![line]);
    run.expect_requests(&["stream newest"]).await;
    let stopped = tokio::time::Instant::now();
    run.shutdown.cancel();
    run.task.await.expect("no panic");
    assert_eq!(stopped.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn stream_closed_after_its_end_is_followed_by_a_watch() {
    let (events, line) = stream_of(vec![vec![end("7")]]);
    drop(events);
    let mut run = Run::streaming(vec![line, watch().1]);
    run.expect_requests(&["stream newest"]).await;
    run.expect_after(0.8..1.6, "watch 7").await;
}

#[tokio::test(start_paused = true)]
async fn i9_stream_without_end_version_is_followed_by_a_list() {
    let (events, line) = stream_of(vec![vec![added("a", "3"), end("")]]);
    let mut run = Run::streaming(vec![line, stream_of(vec![vec![end("7")]]).1]);
    run.expect_notes(&["[a]@"]).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    drop(events);
    run.expect_requests(&["stream newest", "stream newest"]).await;
}

#[tokio::test(start_paused = true)]
async fn i9_repeated_end_of_a_stream_does_not_move_back() {
    let (events, line) = stream_of(vec![vec![end("7"), modified("a", "8"), end("7")]]);
    let mut run = Run::streaming(vec![line, watch().1]);
    run.expect_notes(&["[]@7", "~a@8"]).await;
    drop(events);
    run.expect_requests(&["stream newest", "watch 8"]).await;
}
