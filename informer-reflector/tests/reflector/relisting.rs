//! Requested relists, in every state of the reflector.

use informer_reflector::Health;

use super::script::*;

#[tokio::test(start_paused = true)]
async fn relist_request_during_a_watch_lists_not_older() {
    let (events, watch_line) = watch();
    let mut run = Run::new(vec![page(vec![], "7"), watch_line, page(vec![item("b", "9")], "9"), watch().1]);
    run.expect_requests(&["list 0 500", "watch 7"]).await;
    send(&events, vec![added("a", "8")]);
    run.expect_notes(&["[]@7", "+a@8"]).await;
    run.relist.request();
    run.relist.request();
    run.expect_after(0.0..0.1, "list 8 all").await;
    run.expect_notes(&["[b]@9"]).await;
    run.expect_requests(&["watch 9"]).await;
}

#[tokio::test(start_paused = true)]
async fn relist_request_during_a_wait_replaces_the_watch() {
    let lines = vec![
        page(vec![], "7"),
        Line::WatchFails(failure(500, "InternalError")),
        page(vec![], "9"),
        watch().1,
    ];
    let mut run = Run::new(lines);
    run.expect_requests(&["list 0 500", "watch 7"]).await;
    run.health(|health| matches!(health, Health::BackingOff { .. })).await;
    run.relist.request();
    run.expect_after(0.8..1.6, "list 7 all").await;
    run.expect_requests(&["watch 9"]).await;
}

#[tokio::test(start_paused = true)]
async fn relist_request_during_a_failed_stream_is_met_by_paged_list() {
    let (events, line) = stream_of(vec![vec![added("a", "3")]]);
    let (_watch, watch_line) = watch();
    let mut run = Run::streaming(vec![line, page(vec![item("a", "3")], "7"), watch_line]);
    run.health(|health| matches!(health, Health::Syncing { received: 1, .. })).await;
    run.relist.request();
    send(&events, vec![error(400, "BadRequest")]);
    run.expect_requests(&["stream newest", "list newest 500", "watch 7"]).await;
    run.expect_notes(&["[a]@7"]).await;
    run.health(Health::is_live).await;
    assert!(run.requests.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn recent_lists_name_the_cause_of_each_list() {
    let lines = vec![
        page(vec![], "7"),
        Line::WatchFails(failure(410, "Expired")),
        Line::ListFails(failure(500, "InternalError")),
        page(vec![item("a", "8")], "9"),
        watch().1,
        page(vec![item("a", "8")], "9"),
        watch().1,
    ];
    let mut run = Run::new(lines);
    run.expect_requests(&["list 0 500", "watch 7", "list 7 all", "list 7 all", "watch 9"]).await;
    run.relist.request();
    run.expect_requests(&["list 9 all", "watch 9"]).await;
    let lists = run.status.recent_lists();
    let causes: Vec<_> = lists.iter().map(|list| (list.objects, list.cause, list.error.is_some())).collect();
    // A failed attempt does not change the cause of the list.
    assert_eq!(causes, [(0, "initial", false), (1, "expired", true), (1, "requested", false)]);
    assert!(lists.is_sorted_by_key(|list| list.completed));
}
