//! The failure handler receives each failure and the next request.

use std::sync::Arc;
use std::time::Duration;

use informer_core::ListWatchError;
use informer_reflector::{ListWatchFailure, NextRequest, ReflectorConfig};
use parking_lot::Mutex;

use super::script::*;

type Failures = Arc<Mutex<Vec<(String, NextRequest, bool)>>>;

/// A configuration that records each failure, the next request, and whether the reflector waits
/// before it.
fn recording() -> (ReflectorConfig, Failures) {
    let failures = Failures::default();
    let record = Arc::clone(&failures);
    let config = ReflectorConfig::new().on_failure(move |failure: &ListWatchFailure<'_>| {
        assert_eq!(failure.description, "configmaps");
        let error = match failure.error {
            ListWatchError::Status { status, .. } => status.code.to_string(),
            ListWatchError::Unreachable(_) => "unreachable".into(),
            ListWatchError::Interrupted(_) => "interrupted".into(),
            other => other.to_string(),
        };
        record.lock().push((error, failure.next, failure.wait > Duration::ZERO));
    });
    (config, failures)
}

#[tokio::test(start_paused = true)]
async fn failure_callback_gets_each_failure_and_the_next_request() {
    use NextRequest::{List, Watch};
    let (open, open_line) = watch();
    let lines = vec![
        Line::StreamFails(failure(422, "Invalid")),
        Line::ListFails(failure(500, "InternalError")),
        page(vec![], "7"),
        Line::WatchFails(ListWatchError::Unreachable("connection refused".into())),
        brief_watch(vec![bookmark("8"), error(410, "Expired")]),
        page(vec![], "9"),
        open_line,
        Line::Silence,
    ];
    let (config, failures) = recording();
    let mut run = Run::streaming_with(lines, config);
    run.expect_requests(&["stream newest", "list 0 500", "list 0 500", "watch 7", "watch 7", "list 8 all"])
        .await;
    run.expect_requests(&["watch 9"]).await;
    send(&open, vec![added("a", "10")]);
    open.unbounded_send(Err(ListWatchError::Interrupted("reset".into())))
        .expect("the reflector reads the watch");
    run.expect_requests(&["watch 10"]).await;
    let expected = [
        ("422", List, false),
        ("500", List, true),
        ("unreachable", Watch, true),
        ("410", List, false),
        ("interrupted", Watch, false),
    ];
    assert_eq!(*failures.lock(), expected.map(|(error, next, waits)| (error.to_owned(), next, waits)));
}

#[tokio::test(start_paused = true)]
async fn end_of_a_watch_at_its_timeout_is_not_a_failure() {
    let (quiet, line) = watch();
    let (config, failures) = recording();
    let mut run = Run::with(vec![page(vec![], "7"), line, Line::Silence], config);
    run.expect_requests(&["list 0 500", "watch 7"]).await;
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_secs(60)).await;
        send(&quiet, vec![bookmark("7")]);
    }
    drop(quiet);
    run.expect_requests(&["watch 7"]).await;
    assert!(failures.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn i12_panic_of_the_failure_callback_is_ignored() {
    let config = ReflectorConfig::new().on_failure(|_| std::panic::panic_any(HostilePayload));
    let mut run = Run::with(vec![Line::ListFails(failure(500, "InternalError")), page(vec![], "7")], config);
    run.expect_requests(&["list 0 500", "list 0 500", "watch 7"]).await;
}

#[tokio::test(start_paused = true)]
async fn i8_failure_callback_can_read_the_status() {
    let status: Arc<Mutex<Option<informer_reflector::ReflectorStatus>>> = Arc::default();
    let shared = Arc::clone(&status);
    let config = ReflectorConfig::new().on_failure(move |_| {
        let status = shared.lock().clone().expect("the status is set before the run");
        _ = (status.health(), status.quarantined(), status.last_sync_resource_version());
    });
    let mut run = Run::with(vec![Line::ListFails(failure(500, "InternalError")), page(vec![], "7")], config);
    *status.lock() = Some(run.status.clone());
    run.expect_requests(&["list 0 500", "list 0 500", "watch 7"]).await;
}
