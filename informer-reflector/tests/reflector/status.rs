//! The status, the log, and stopping.

use std::time::Duration;

use informer_core::{ListWatchError, RejectedKind, RejectedObject, WatchEvent};
use informer_reflector::{Health, ReflectorConfig};

use super::log::Log;
use super::script::*;

#[tokio::test(start_paused = true)]
async fn refusal_is_in_the_health_until_a_request_succeeds() {
    let (_open, open_line) = watch();
    let lines = vec![
        Line::ListFails(failure(403, "Forbidden")),
        Line::ListFails(failure(404, "NotFound")),
        Line::ListFails(failure(401, "Unauthorized")),
        page(vec![], "7"),
        open_line,
    ];
    let mut run = Run::new(lines);
    run.health(|health| matches!(health, Health::Forbidden { .. })).await;
    run.health(|health| matches!(health, Health::NotServed { .. })).await;
    let health = run.health(|health| matches!(health, Health::BackingOff { .. })).await;
    assert!(health.error().is_some_and(ListWatchError::is_unauthorized));
    run.health(Health::is_live).await;
}

#[tokio::test(start_paused = true)]
async fn i12_stop_ends_any_wait() {
    // The waits: a backoff of an hour, a list without a response, and a silent watch.
    let (_open, open_line) = watch();
    for lines in [vec![Line::ListFails(too_many_requests(3600))], vec![], vec![page(vec![], "7"), open_line]]
    {
        let steps = lines.len().max(1);
        let mut run = Run::new(lines);
        for _ in 0..steps {
            run.requests.recv().await;
        }
        let stopped = tokio::time::Instant::now();
        run.shutdown.cancel();
        run.task.await.expect("no panic");
        assert_eq!(stopped.elapsed(), Duration::ZERO);
        assert!(matches!(run.status.health(), Health::Stopped));
    }
}

enum End {
    Stop,
    Drop,
    Panic,
}

#[tokio::test(start_paused = true)]
async fn i12_last_health_is_stopped() {
    // For `End::Panic`, the script panics because the second request is a watch.
    let panics = || vec![page(vec![], "7"), page(vec![], "8")];
    for (lines, end) in [(vec![], End::Stop), (vec![], End::Drop), (panics(), End::Panic)] {
        let mut run = Run::new(lines);
        run.expect_requests(&["list 0 500"]).await;
        match end {
            End::Stop => run.shutdown.cancel(),
            End::Drop => run.task.abort(),
            End::Panic => {}
        }
        let mut last = run.status.health();
        while let Some(health) = run.status.health_changed().await {
            last = health;
        }
        assert!(matches!(last, Health::Stopped), "{last}");
    }
}

#[tokio::test(start_paused = true)]
async fn i8_log_subscriber_can_read_the_status() {
    let (events, line) = watch();
    let items =
        vec![Err(malformed(Some("a"), "1")), Err(malformed(Some("b"), "2")), Err(malformed(None, ""))];
    let (mut run, log) = (Run::new(vec![page(items, "7"), line]), Log::default());
    let _logging = log.start_for(&run);
    send(&events, vec![added("a", "8")]);
    run.expect_notes(&["[!a !b and more]@7", "+a@8"]).await;
    let lines = log.lines.lock();
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(
        lines[3].starts_with("object is no longer quarantined") && lines[3].contains("key=a"),
        "{lines:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn quarantined_version_is_counted_and_logged_once() {
    let (events, line) = watch();
    let again = RejectedObject {
        error: "data: expected a map (line 1, column 99)".into(),
        ..malformed(Some("a"), "8")
    };
    let listed = RejectedObject { error: "data: expected a map (line 1, column 7)".into(), ..again.clone() };
    let lines = vec![page(vec![], "7"), line, page(vec![Err(listed)], "8"), watch().1];
    let (mut run, log) = (Run::new(lines), Log::default());
    let _logging = log.start_for(&run);
    let malformed = WatchEvent::RejectedObject { kind: RejectedKind::Changed, object: again };
    send(&events, vec![malformed, error(410, "Expired")]);
    run.expect_requests(&["list 0 500", "watch 7", "list 8 all", "watch 8"]).await;
    assert_eq!(run.status.quarantined_total(), 1);
    let lines = log.lines.lock();
    let about_objects = lines.iter().filter(|line| line.starts_with("object is quarantined"));
    assert_eq!(about_objects.count(), 1, "{lines:#?}");
}

#[tokio::test(start_paused = true)]
async fn many_quarantined_objects_are_logged_in_few_lines() {
    let (events, line) = watch();
    let nameless = (0..5_000).map(|_| Err(malformed(None, "")));
    let named = (0..5_000).map(|n: u32| Err(malformed(Some(&n.to_string()), "1")));
    let (mut run, log) = (Run::new(vec![page(nameless.chain(named).collect(), "7"), line]), Log::default());
    let _logging = log.start_for(&run);
    run.expect_requests(&["list 0 500", "watch 7"]).await;
    run.expect_notes_count(1).await;
    assert!(log.lines.lock().len() <= 12, "{:#?}", log.lines);
    tokio::time::sleep(Duration::from_secs(61)).await;
    send(&events, vec![added("1", "8")]);
    run.expect_notes_count(1).await;
    let lines = log.lines.lock();
    assert!(lines.iter().any(|line| line.contains("suppressed=9990")), "{lines:#?}");
}

#[tokio::test(start_paused = true)]
async fn events_of_a_live_watch_do_not_wake_health_waiters() {
    let (events, line) = watch();
    let mut run = Run::new(vec![page(vec![], "7"), line]);
    run.health(Health::is_live).await;
    for version in 8..108_u32 {
        send(&events, vec![added("a", &version.to_string())]);
        run.expect_notes_count(1).await;
    }
    let waiting = tokio::time::timeout(Duration::from_secs(1), run.status.health_changed());
    assert!(waiting.await.is_err(), "no change of health");
}

#[tokio::test(start_paused = true)]
async fn failure_and_recovery_are_logged_once_each() {
    let (_quiet, line) = watch();
    let refused = || Line::WatchFails(failure(404, "NotFound"));
    let lines = vec![page(vec![], "7"), refused(), page(vec![], "8"), refused(), page(vec![], "9"), line];
    let (mut run, log) = (Run::new(lines), Log::default());
    let _logging = log.start_for(&run);
    run.expect_requests(&["list 0 500", "watch 7", "list 7 all", "watch 8", "list 8 all", "watch 9"]).await;
    assert_eq!(log.lines.lock().len(), 1, "{:?}", log.lines);
    tokio::time::sleep(Duration::from_secs(11)).await;
    let lines = log.lines.lock();
    assert!(lines[0].contains("not serve") && lines[1].contains("recovered"), "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn each_new_kind_of_refusal_is_logged_once() {
    let (_quiet, line) = watch();
    let refused = |code, reason| Line::ListFails(failure(code, reason));
    let (forbidden, not_served) = (|| refused(403, "Forbidden"), || refused(404, "NotFound"));
    let lines =
        vec![forbidden(), forbidden(), not_served(), not_served(), not_served(), page(vec![], "7"), line];
    let (mut run, log) = (Run::new(lines), Log::default());
    let _logging = log.start_for(&run);
    run.expect_requests(&["list 0 500"; 6]).await;
    run.expect_requests(&["watch 7"]).await;
    tokio::time::sleep(Duration::from_secs(11)).await;
    let lines = log.lines.lock();
    let expected = ["needs the verbs list and watch", "does not serve", "list and watch recovered"];
    assert_eq!(lines.len(), expected.len(), "{lines:?}");
    assert!(lines.iter().zip(expected).all(|(line, expected)| line.contains(expected)), "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn list_of_more_than_ten_seconds_is_logged() {
    let (first, first_page) = held(Line::Page(vec![item("a", "1")], "7", Some("t1")));
    let (second, second_page) = held(page(vec![item("b", "2"), Err(malformed(None, ""))], "7"));
    let (third, later_list) = held(page(vec![], "9"));
    let (events, watch_line) = watch();
    let (_quiet, quiet_line) = watch();
    let lines = vec![first_page, second_page, watch_line, later_list, quiet_line];
    let (mut run, log) = (Run::new(lines), Log::default());
    let _logging = log.start_for(&run);
    send(&events, vec![bookmark("8"), error(410, "Expired")]);
    let requests: [&[_]; 3] = [&["list 0 500"], &["list newest 500 from t1"], &["watch 7", "list 8 500"]];
    for (requests, answer) in requests.into_iter().zip([first, second, third]) {
        run.expect_requests(requests).await;
        tokio::time::sleep(Duration::from_secs(6)).await;
        answer.send(()).expect("the server waits");
    }
    run.expect_requests(&["watch 9"]).await;
    let lines: Vec<_> = log.lines.lock().iter().filter(|line| line.contains("took")).cloned().collect();
    assert_eq!(lines, ["list was slow resource=configmaps objects=3 took=12s"]);
}

#[tokio::test(start_paused = true)]
async fn slow_list_log_includes_the_time_of_a_failed_stream() {
    let (answer, line) = held(page(vec![item("a", "1")], "7"));
    let (_events, silent) = stream_of(vec![]);
    let (mut run, log) = (Run::streaming(vec![silent, line]), Log::default());
    let _logging = log.start_for(&run);
    run.expect_requests(&["stream newest", "list 0 500"]).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    answer.send(()).expect("the server waits");
    run.expect_notes(&["[a]@7"]).await;
    let lines = log.lines.lock();
    assert!(
        lines[0].starts_with("list was slow resource=configmaps objects=1 took=1") && lines.len() == 1,
        "{lines:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn slow_streaming_list_is_logged_at_its_end() {
    let (events, line) = stream_of(vec![vec![added("a", "1"), added("b", "2")]]);
    let config = ReflectorConfig::new().list_stall_timeout(Duration::from_secs(60));
    let (mut run, log) = (Run::streaming_with(vec![line], config), Log::default());
    let _logging = log.start_for(&run);
    run.health(|health| matches!(health, Health::Syncing { received: 2, .. })).await;
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert!(log.lines.lock().is_empty(), "{:?}", log.lines);
    send(&events, vec![end("7")]);
    run.expect_notes(&["[a b]@7"]).await;
    run.health(Health::is_live).await;
    assert_eq!(*log.lines.lock(), ["list was slow resource=configmaps objects=2 took=11s"]);
}
