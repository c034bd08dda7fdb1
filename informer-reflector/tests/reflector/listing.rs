//! Paged lists: requests and pages.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use informer_core::{Delta, ListWatchError, ReflectorStore, Replacement, ResourceVersion};
use informer_reflector::{Health, Reflector, ReflectorConfig, ReflectorStatus};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::Status;

use super::script::*;

#[tokio::test(start_paused = true)]
async fn unavailable_version_is_replaced_by_the_newest() {
    let refusals =
        [failure(410, "Expired"), failure(410, "Gone")].into_iter().chain(too_large_in_all_forms());
    for error in refusals {
        let lines = vec![
            page(vec![], "7"),
            Line::WatchFails(failure(410, "Expired")),
            Line::ListFails(error),
            page(vec![], "9"),
            watch().1,
        ];
        let started = tokio::time::Instant::now();
        let mut run = Run::new(lines);
        run.expect_requests(&["list 0 500", "watch 7", "list 7 all", "list newest 500", "watch 9"]).await;
        assert_eq!(started.elapsed(), Duration::ZERO, "no request waits");
    }
    assert!(!failure(504, "Timeout").is_too_large_resource_version());
}

#[tokio::test(start_paused = true)]
async fn invalid_version_is_replaced_by_the_newest() {
    let lines = vec![
        page(vec![], "revision-7"),
        Line::WatchFails(failure(410, "Expired")),
        Line::ListFails(failure(400, "BadRequest")),
        Line::ListFails(failure(400, "BadRequest")),
    ];
    let mut run = Run::new(lines);
    run.expect_requests(&["list 0 500", "watch revision-7", "list revision-7 all"]).await;
    run.expect_after(0.0..0.1, "list newest 500").await;
    run.expect_after(0.8..1.6, "list newest 500").await;
}

#[tokio::test(start_paused = true)]
async fn relist_after_a_newest_list_requests_not_older() {
    let expired = || Line::WatchFails(failure(410, "Expired"));
    let lines = vec![
        page(vec![], "7"),
        expired(),
        Line::ListFails(too_large()),
        page(vec![], "9"),
        brief_watch(vec![bookmark("10"), error(410, "Expired")]),
    ];
    let mut run = Run::new(lines);
    run.expect_requests(&[
        "list 0 500",
        "watch 7",
        "list 7 all",
        "list newest 500",
        "watch 9",
        "list 10 all",
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn paged_list_from_memory_makes_later_lists_paged() {
    let lines = vec![
        Line::Page(vec![item("a", "1")], "7", Some("t1")),
        page(vec![item("b", "2")], "7"),
        brief_watch(vec![bookmark("8"), error(410, "Expired")]),
    ];
    let mut run = Run::new(lines);
    run.expect_requests(&["list 0 500", "list newest 500 from t1", "watch 7", "list 8 500"]).await;
}

#[tokio::test(start_paused = true)]
async fn only_the_first_page_names_a_version() {
    let lines = vec![
        Line::Page(vec![item("a", "1")], "7", Some("t1")),
        Line::Page(vec![item("b", "2")], "7", Some("t2")),
        Line::Page(vec![item("c", "3")], "7", None),
        watch().1,
    ];
    let mut run = Run::with(lines, ReflectorConfig::new().page_size(1));
    run.expect_requests(&["list 0 1", "list newest 1 from t1", "list newest 1 from t2", "watch 7"]).await;
    run.expect_notes(&["[a b c]@7"]).await;
}

#[tokio::test(start_paused = true)]
async fn expired_continue_token_leads_to_one_full_list() {
    let lines = vec![
        Line::Page(vec![item("a", "1")], "7", Some("t1")),
        Line::ListFails(failure(410, "Expired")),
        page(vec![item("a", "1"), item("b", "8")], "9"),
        watch().1,
    ];
    let mut run = Run::new(lines);
    // The objects of the first page are in the store. The retry requests the newest state, because
    // any other state could be older than these objects.
    run.expect_requests(&["list 0 500", "list newest 500 from t1", "list newest all", "watch 9"]).await;
    run.expect_notes(&["[a b]@9"]).await;
}

#[tokio::test(start_paused = true)]
async fn expired_token_of_a_relist_leads_to_one_full_list() {
    let rest = "here is a token for the rest";
    let mut expired = Status::failure(rest, "Expired").with_code(410);
    expired.metadata =
        Some(serde_json::from_value(serde_json::json!({ "continue": "t2" })).expect("metadata"));
    let lines = vec![
        page(vec![item("a", "1")], "7"),
        Line::WatchFails(failure(410, "Expired")),
        Line::Page(vec![item("a", "8")], "9", Some("t1")),
        Line::ListFails(expired.boxed().into()),
        page(vec![item("a", "8"), item("b", "11")], "12"),
        watch().1,
    ];
    let mut run = Run::with(lines, ReflectorConfig::new().page_size(1));
    run.expect_requests(&["list 0 1", "watch 7", "list 7 1", "list newest 1 from t1", "list 7 all"]).await;
    run.expect_requests(&["watch 12"]).await;
    run.expect_notes(&["[a]@7", "[a b]@12"]).await;
}

#[tokio::test(start_paused = true)]
async fn always_expiring_tokens_lead_to_backoff() {
    // The server returns pages even if the request has no limit.
    let round = || {
        let expires = |token| {
            [Line::Page(vec![item("a", "1")], "7", Some(token)), Line::ListFails(failure(410, "Expired"))]
        };
        expires("t1").into_iter().chain(expires("t2"))
    };
    let mut run = Run::new((0..3).flat_map(|_| round()).collect());
    run.expect_requests(&["list 0 500", "list newest 500 from t1"]).await;
    run.expect_requests(&["list newest all", "list newest all from t2"]).await;
    for first in [0.8, 1.6] {
        run.expect_after(first..2.0 * first, "list newest 500").await;
        run.expect_requests(&["list newest 500 from t1"]).await;
        run.expect_requests(&["list newest all", "list newest all from t2"]).await;
    }
    let health = run.health(|health| matches!(health, Health::BackingOff { .. })).await;
    assert!(health.to_string().contains("expired again"), "{health}");
}

#[tokio::test(start_paused = true)]
async fn repeated_token_ends_the_list() {
    let again = || Line::Page(vec![item("b", "2")], "7", Some("t1"));
    let lines = vec![
        Line::Page(vec![item("a", "1")], "7", Some("t1")),
        again(),
        Line::Page(vec![item("a", "1")], "7", Some("t1")),
        again(),
        page(vec![item("a", "1"), item("b", "2")], "7"),
    ];
    let mut run = Run::new(lines);
    run.expect_requests(&["list 0 500", "list newest 500 from t1"]).await;
    run.expect_after(0.8..1.6, "list newest 500").await;
    let health = run.health(|health| matches!(health, Health::BackingOff { .. })).await;
    assert!(health.to_string().contains("the same continue token"), "{health}");
    run.expect_requests(&["list newest 500 from t1"]).await;
    run.expect_after(1.6..3.2, "list newest 500").await;
    run.expect_requests(&["watch 7"]).await;
    run.expect_notes(&["[a b]@7"]).await;
}

#[tokio::test(start_paused = true)]
async fn cyclic_pages_are_an_error() {
    let to = |token| Line::Page(vec![item("a", "1")], "7", Some(token));
    let round = || ["t1", "t2", "t3", "t2"].map(to);
    let lines = round().into_iter().chain(round()).chain([page(vec![item("a", "1")], "7")]).collect();
    let mut run = Run::new(lines);
    run.expect_requests(&["list 0 500", "list newest 500 from t1", "list newest 500 from t2"]).await;
    run.expect_requests(&["list newest 500 from t3"]).await;
    run.expect_after(0.8..1.6, "list newest 500").await;
    // In the retry, the tokens of the failed list do not count as repeated tokens.
    run.expect_requests(&["list newest 500 from t1", "list newest 500 from t2"]).await;
    run.expect_requests(&["list newest 500 from t3"]).await;
    run.expect_after(1.6..3.2, "list newest 500").await;
    run.expect_requests(&["watch 7"]).await;
}

#[tokio::test(start_paused = true)]
async fn silent_list_is_cancelled_and_retried() {
    let mut run = Run::new(vec![Line::HalfPage(vec![item("a", "1")]), page(vec![item("a", "1")], "7")]);
    run.expect_requests(&["list 0 500"]).await;
    let health = run.health(|health| matches!(health, Health::BackingOff { .. })).await;
    assert!(matches!(health.error(), Some(ListWatchError::Interrupted(_))), "{health}");
    run.expect_requests(&["list newest 500", "watch 7"]).await;
    run.expect_notes(&["[a]@7"]).await;
}

#[tokio::test(start_paused = true)]
async fn interrupted_full_list_makes_later_lists_paged() {
    let expired = || brief_watch(vec![error(410, "Expired")]);
    let broken = Line::ListFails(ListWatchError::Interrupted("reset".into()));
    let lines = vec![
        page(vec![], "7"),
        expired(),
        broken,
        page(vec![], "9"),
        expired(),
        page(vec![], "12"),
        watch().1,
    ];
    let mut run = Run::new(lines);
    run.expect_requests(&["list 0 500", "watch 7", "list 7 all"]).await;
    run.expect_requests(&["list 7 500", "watch 9", "list 9 500", "watch 12"]).await;
}

#[tokio::test(start_paused = true)]
async fn unanswered_request_is_retried_after_its_timeout() {
    let mut run = Run::new(vec![Line::Silence, page(vec![], "7"), Line::Silence, watch().1]);
    run.expect_requests(&["list 0 500"]).await;
    run.expect_after(75.8..76.6, "list 0 500").await;
    run.expect_requests(&["watch 7"]).await;
    run.expect_after(21.6..23.2, "watch 7").await;
}

/// A store that records the resource version in the reflector's status at each call.
#[derive(Default)]
struct Watermarks {
    status: OnceLock<ReflectorStatus>,
    recorded: parking_lot::Mutex<Vec<ResourceVersion>>,
}

impl Watermarks {
    fn record(&self) {
        let status = self.status.get().expect("the status is set before the run");
        self.recorded.lock().push(status.last_sync_resource_version());
    }
}

impl ReflectorStore<ConfigMap> for Watermarks {
    fn apply(&self, _: Vec<Delta<ConfigMap>>, _: &ResourceVersion) {
        self.record();
    }

    fn replace(&self, _: Replacement<ConfigMap>) {
        self.record();
    }
}

#[tokio::test(start_paused = true)]
async fn i9_status_version_follows_the_store() {
    let (script, mut requests) =
        Script::new(vec![page(vec![], "7"), brief_watch(vec![added("a", "8")]), watch().1]);
    let store = Arc::new(Watermarks::default());
    let reflector = Reflector::new(Arc::new(script), store.clone(), ReflectorConfig::new());
    let status = reflector.status();
    assert!(store.status.set(status.clone()).is_ok());
    tokio::spawn(reflector.run(Default::default()));
    for _ in ["list", "watch", "watch again"] {
        requests.recv().await;
    }
    assert_eq!(*store.recorded.lock(), ["".into(), "7".into()]);
    assert_eq!(status.last_sync_resource_version(), "8".into());
}
