//! Failures: the wait after each failure, and relists.

use std::time::Duration;

use informer_core::{ListWatchError, WatchEvent};
use informer_reflector::ReflectorConfig;

use super::script::*;

#[tokio::test(start_paused = true)]
async fn expired_watch_is_followed_by_a_list_not_older() {
    // The third status lacks its code.
    for expired in [error(410, "Expired"), error(410, "Gone"), error(0, "Expired")] {
        let (events, line) = watch();
        let mut run = Run::new(vec![page(vec![], "7"), line, page(vec![item("a", "9")], "12"), watch().1]);
        run.expect_requests(&["list 0 500", "watch 7"]).await;
        send(&events, vec![WatchEvent::Added(named("a", "8").into()), expired]);
        run.expect_requests(&["list 8 all", "watch 12"]).await;
        run.expect_notes(&["[]@7", "+a@8", "[a]@12"]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn too_many_requests_lead_to_a_wait_without_a_list() {
    let lines = vec![page(vec![], "7"), Line::WatchFails(too_many_requests(100)), watch().1];
    let started = tokio::time::Instant::now();
    Run::new(lines).expect_requests(&["list 0 500", "watch 7", "watch 7"]).await;
    assert_eq!(started.elapsed().as_secs(), 100, "the Retry-After of the server");
}

#[tokio::test(start_paused = true)]
async fn too_many_requests_within_a_watch_delays_the_next() {
    let delayed_watch = |seconds: u64| {
        let ListWatchError::Status { mut status, .. } = too_many_requests(seconds) else {
            panic!("not a status")
        };
        let details = serde_json::json!({ "retryAfterSeconds": seconds });
        status.details = Some(serde_json::from_value(details).expect("details"));
        brief_watch(vec![WatchEvent::Error(status)])
    };
    let mut run = Run::new(vec![page(vec![], "7"), delayed_watch(100), delayed_watch(0), watch().1]);
    run.expect_requests(&["list 0 500", "watch 7"]).await;
    run.expect_after(100.0..100.1, "watch 7").await;
    run.expect_after(1.6..3.2, "watch 7").await;
}

#[tokio::test(start_paused = true)]
async fn renewed_credentials_resume_the_watch() {
    let refused = || Line::WatchFails(failure(401, "Unauthorized"));
    let (_events, line) = watch();
    let mut run = Run::new(vec![page(vec![], "7"), refused(), refused(), refused(), refused(), line]);
    run.expect_requests(&["list 0 500"]).await;
    run.expect_requests(&["watch 7"; 5]).await;
    run.health(informer_reflector::Health::is_live).await;
}

#[tokio::test(start_paused = true)]
async fn backoff_can_be_set_within_limits() {
    let seconds = Duration::from_secs_f64;
    let table = [
        ((seconds(2.0), seconds(5.0)), [2.0, 4.0, 5.0]),
        ((seconds(0.1), Duration::MAX), [0.1, 0.2, 0.4]),
        ((seconds(20.0), seconds(10.0)), [20.0; 3]),
        ((Duration::ZERO, Duration::ZERO), [0.01; 3]),
        ((Duration::MAX, Duration::ZERO), [3600.0; 3]),
    ];
    for ((first, longest), waits) in table {
        let fails = || Line::WatchFails(failure(500, "InternalError"));
        let config = ReflectorConfig::new().backoff(first, longest);
        let mut run = Run::with(vec![page(vec![], "7"), fails(), fails(), brief_watch(vec![])], config);
        run.expect_requests(&["list 0 500", "watch 7"]).await;
        run.expect_after(waits[0]..2.0 * waits[0], "watch 7").await;
        run.expect_after(waits[1]..2.0 * waits[1], "watch 7").await;
        run.expect_after(waits[2]..2.0 * waits[2], "list 7 all").await;
    }
}

#[tokio::test(start_paused = true)]
async fn forbidden_resource_is_retried_every_30_to_60_seconds() {
    for refusal in [|| failure(403, "Forbidden"), || failure(404, "NotFound")] {
        let mut run = Run::new((0..9).map(|_| Line::ListFails(refusal())).collect());
        run.expect_requests(&["list 0 500"; 7]).await;
        run.expect_after(30.0..60.0, "list 0 500").await;
        run.expect_after(30.0..60.0, "list 0 500").await;
    }
}

#[tokio::test(start_paused = true)]
async fn always_refused_watch_leads_to_lists_with_backoff() {
    let refusals: [(fn() -> Line, _); 3] = [
        (|| brief_watch(vec![error(410, "Expired")]), "list 7 all"),
        (|| Line::WatchFails(failure(410, "Gone")), "list 7 all"),
        (|| Line::WatchFails(too_large()), "list newest 500"),
    ];
    for (refusal, list) in refusals {
        let mut run = Run::new((0..4).flat_map(|_| [page(vec![], "7"), refusal()]).collect());
        run.expect_requests(&["list 0 500", "watch 7"]).await;
        run.expect_after(0.0..0.1, list).await;
        run.expect_requests(&["watch 7"]).await;
        run.expect_after(0.8..1.6, list).await;
        run.expect_requests(&["watch 7"]).await;
        run.expect_after(1.6..3.2, list).await;
    }
}

#[tokio::test(start_paused = true)]
async fn settled_watch_that_expires_relists_at_once() {
    for (seconds, wait) in [(0, 0.8..1.6), (9, 0.8..1.6), (11, 0.0..0.1)] {
        let (second, second_line) = watch();
        let mut run = Run::new(vec![
            page(vec![], "7"),
            brief_watch(vec![added("a", "8"), error(410, "Expired")]),
            page(vec![], "9"),
            second_line,
        ]);
        let started = tokio::time::Instant::now();
        run.expect_requests(&["list 0 500", "watch 7", "list 8 all", "watch 9"]).await;
        assert_eq!(started.elapsed(), Duration::ZERO);
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        send(&second, vec![bookmark("10"), error(410, "Expired")]);
        run.expect_after(wait, "list 10 all").await;
    }
}

#[tokio::test(start_paused = true)]
async fn request_that_cannot_be_built_leads_to_a_list_of_the_newest() {
    let too_long = || ListWatchError::InvalidRequest("its URI is too long".into());
    let (_open, open_line) = watch();
    let mut run = Run::new(vec![
        page(vec![], "7"),
        Line::WatchFails(too_long()),
        page(vec![], "8"),
        brief_watch(vec![bookmark("9"), error(410, "Expired")]),
        Line::ListFails(too_long()),
        page(vec![], "10"),
        open_line,
    ]);
    run.expect_requests(&["list 0 500", "watch 7"]).await;
    run.expect_after(0.0..0.1, "list newest 500").await;
    run.expect_requests(&["watch 8"]).await;
    run.expect_after(0.8..1.6, "list 9 all").await;
    run.expect_after(0.0..0.1, "list newest 500").await;
    run.expect_requests(&["watch 10"]).await;
    run.health(informer_reflector::Health::is_live).await;
}

#[tokio::test(start_paused = true)]
async fn bad_request_of_a_watch_leads_to_a_list_of_the_newest() {
    for refusal in [failure(400, "BadRequest"), failure(422, "Invalid")] {
        let mut run = Run::new(vec![page(vec![], "7"), Line::WatchFails(refusal), page(vec![], "9")]);
        run.expect_requests(&["list 0 500", "watch 7"]).await;
        run.expect_after(0.8..1.6, "list newest 500").await;
        run.expect_requests(&["watch 9"]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn three_failures_without_events_lead_to_a_list() {
    let failures: [fn() -> Line; 5] = [
        || brief_watch(vec![error(500, "StorageReadError")]),
        || Line::WatchFails(failure(500, "InternalError")),
        || broken_watch(ListWatchError::Protocol("no JSON".into())),
        || broken_watch(ListWatchError::Interrupted("reset".into())),
        || brief_watch(vec![]),
    ];
    for fails in failures {
        let round = || [page(vec![], "7"), fails(), fails(), fails()];
        let mut run = Run::new([round(), round()].into_iter().flatten().collect());
        run.expect_requests(&["list 0 500", "watch 7"]).await;
        run.expect_after(0.8..1.6, "watch 7").await;
        run.expect_after(1.6..3.2, "watch 7").await;
        run.expect_after(3.2..6.4, "list 7 all").await;
        run.expect_requests(&["watch 7"]).await;
        run.expect_after(6.4..12.8, "watch 7").await;
        run.expect_after(12.8..25.6, "watch 7").await;
        run.expect_after(25.6..51.2, "list 7 all").await;
    }
}

#[tokio::test(start_paused = true)]
async fn event_between_failures_does_not_shorten_the_backoff() {
    let fails = || brief_watch(vec![error(500, "InternalError")]);
    let mut run = Run::new(vec![
        page(vec![], "7"),
        fails(),
        brief_watch(vec![added("a", "8"), error(500, "InternalError")]),
        fails(),
    ]);
    run.expect_requests(&["list 0 500", "watch 7"]).await;
    run.expect_after(0.8..1.6, "watch 7").await;
    run.expect_after(1.6..3.2, "watch 8").await;
    run.expect_after(3.2..6.4, "list 8 all").await;
}

#[tokio::test(start_paused = true)]
async fn refused_watch_is_retried_without_a_list() {
    let refusals: [fn() -> ListWatchError; 7] = [
        || failure(502, "Unknown"),
        || failure(503, "ServiceUnavailable"),
        || failure(504, "Timeout"),
        || failure(429, "TooManyRequests"),
        || failure(401, "Unauthorized"),
        || failure(403, "Forbidden"),
        || ListWatchError::Unreachable("connection refused".into()),
    ];
    for refusal in refusals {
        let refused = (0..6).map(|_| Line::WatchFails(refusal()));
        let mut run = Run::new([page(vec![], "7")].into_iter().chain(refused).collect());
        run.expect_requests(&["list 0 500"]).await;
        run.expect_requests(&["watch 7"; 7]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn list_success_keeps_the_backoff_of_the_watch() {
    let round = || [page(vec![], "7"), Line::WatchFails(failure(404, "NotFound"))];
    let mut run = Run::new((0..4).flat_map(|_| round()).collect());
    run.expect_requests(&["list 0 500", "watch 7"]).await;
    for first in [0.8, 1.6, 3.2] {
        run.expect_after(first..2.0 * first, "list 7 all").await;
        run.expect_requests(&["watch 7"]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn quiet_watch_resets_the_backoff_after_some_time() {
    for (seconds, next_wait) in [(5, 3.2..6.4), (11, 0.8..1.6)] {
        let (quiet, line) = watch();
        let unreachable = || Line::ListFails(ListWatchError::Unreachable("connection refused".into()));
        let mut run = Run::new(vec![unreachable(), unreachable(), page(vec![], "7"), line, watch().1]);
        run.expect_requests(&["list 0 500", "list 0 500", "list 0 500", "watch 7"]).await;
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        send(&quiet, vec![error(500, "InternalError")]);
        run.expect_after(next_wait, "watch 7").await;
    }
}
