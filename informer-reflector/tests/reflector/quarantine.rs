//! Quarantined objects. `Notes` in `script.rs` explains strings such as `[a !b]@7`.

use std::time::Duration;

use informer_core::{RejectedKind, WatchEvent};
use informer_reflector::{Health, ReflectorConfig};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::time::sleep;

use super::script::*;

#[tokio::test(start_paused = true)]
async fn i10_undecodable_object_returns_with_a_valid_version() {
    let (events, line) = watch();
    let mut run = Run::new(vec![page(vec![item("a", "1"), Err(malformed(Some("b"), "2"))], "7"), line]);
    run.expect_notes(&["[a !b]@7"]).await;
    assert_eq!(run.status.quarantined(), [malformed(Some("b"), "2")]);
    let object = malformed(Some("a"), "8");
    send(&events, vec![WatchEvent::RejectedObject { kind: RejectedKind::Changed, object }]);
    run.expect_notes(&["@8"]).await;
    send(&events, vec![WatchEvent::Modified(named("b", "9").into())]);
    // The watch continues, and the version of the next event is recorded.
    run.expect_notes(&["~b@9"]).await;
    assert_eq!(run.status.quarantined(), [malformed(Some("a"), "8")]);
    let object = malformed(Some("a"), "10");
    send(&events, vec![WatchEvent::RejectedObject { kind: RejectedKind::Deleted, object }]);
    run.expect_notes(&["?a@10"]).await;
    assert!(run.status.quarantined().is_empty());
    assert_eq!(run.status.quarantined_total(), 2);
}

#[tokio::test(start_paused = true)]
async fn i9_incomplete_list_is_repeated_when_its_watch_ends() {
    let (events, line) = watch();
    let (second, second_line) = watch();
    let lines = vec![
        page(vec![item("a", "1"), item("b", "1")], "7"),
        line,
        // `b` was deleted, but the nameless object could be `b`.
        page(vec![item("a", "1"), Err(malformed(None, ""))], "9"),
        brief_watch(vec![added("c", "10")]),
        second_line,
        page(vec![item("a", "1"), item("c", "10")], "11"),
        brief_watch(vec![bookmark("12")]),
        watch().1,
    ];
    let config = ReflectorConfig::new().watch_idle_timeout(Duration::from_secs(60 * 60));
    let mut run = Run::with(lines, config);
    send(&events, vec![error(410, "Expired")]);
    // A watch that ends early is resumed, so that brief watches do not cause many lists.
    run.expect_requests(&["list 0 500", "watch 7", "list 7 all", "watch 9", "watch 10"]).await;
    sleep(Duration::from_secs(5 * 60)).await;
    drop(second);
    run.expect_requests(&["list 10 all", "watch 11"]).await;
    run.expect_notes(&["[a b]@7", "@7", "[a and more]@9", "+c@10", "[a c]@11"]).await;
    // The watch after a complete list is resumed.
    run.expect_requests(&["watch 12"]).await;
    let causes: Vec<_> = run.status.recent_lists().iter().map(|list| list.cause).collect();
    assert_eq!(causes, ["initial", "expired", "incomplete-list"]);
}

#[tokio::test(start_paused = true)]
async fn i10_incomplete_list_keeps_missing_objects_quarantined() {
    let bad = |name| Err(malformed(Some(name), "2"));
    let (events, line) = watch();
    let lines = vec![
        page(vec![bad("healed"), bad("missing")], "7"),
        line,
        page(vec![item("healed", "8"), Err(malformed(None, ""))], "9"),
        watch().1,
    ];
    let mut run = Run::new(lines);
    send(&events, vec![error(410, "Expired")]);
    run.expect_requests(&["list 0 500", "watch 7", "list 7 all", "watch 9"]).await;
    assert_eq!(run.status.quarantined(), [malformed(Some("missing"), "2")]);
}

#[tokio::test(start_paused = true)]
async fn i10_nameless_or_unknown_event_leads_to_a_relist() {
    for (kind, name) in [(RejectedKind::Changed, None), (RejectedKind::Unknown, Some("a"))] {
        let (events, line) = watch();
        let mut run = Run::new(vec![page(vec![], "7"), line, page(vec![], "9"), watch().1]);
        run.expect_requests(&["list 0 500", "watch 7"]).await;
        let object = malformed(name, "");
        let added = WatchEvent::Added(named("a", "8").into());
        send(&events, vec![added, WatchEvent::RejectedObject { kind, object }]);
        run.expect_requests(&["list 8 all", "watch 9"]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn i10_failed_or_panicking_transform_quarantines_the_object() {
    let (events, line) = watch();
    let transform = |object: &mut ConfigMap| match object.metadata.name.as_deref() {
        Some("bad") => Err("not allowed".to_owned()),
        Some("ugly") => panic!("test panic"),
        Some("uglier") => std::panic::panic_any(HostilePayload),
        _ => Ok(()),
    };
    let items = vec![item("good", "1"), item("bad", "2"), item("ugly", "3"), item("uglier", "4")];
    let mut run = Run::transforming(Script::new(vec![page(items, "7"), line]), transform);
    run.expect_notes(&["[good !bad !uglier !ugly]@7"]).await;
    send(&events, vec![WatchEvent::Deleted(named("bad", "8").into())]);
    run.expect_notes(&["?bad@8"]).await;
    let mut errors: Vec<_> = run.status.quarantined().into_iter().map(|object| object.error).collect();
    errors.sort();
    assert_eq!(
        errors,
        ["the transform panicked: test panic", "the transform panicked: the panic payload is not a string"]
    );
}

#[tokio::test(start_paused = true)]
async fn i10_transform_that_changes_identity_quarantines_the_object() {
    let transform = |object: &mut ConfigMap| {
        let metadata = &mut object.metadata;
        match metadata.name.as_deref() {
            Some("name") => metadata.name = Some("other".into()),
            Some("no-name") => metadata.name = None,
            Some("namespace") => metadata.namespace = Some("other".into()),
            Some("uid") => metadata.uid = Some("other".into()),
            Some("version") => metadata.resource_version = None,
            _ => metadata.namespace = Some(String::new()),
        }
        Ok(())
    };
    let items = ["name", "no-name", "namespace", "uid", "version", "same"].map(|name| item(name, "1"));
    let mut run = Run::transforming(Script::new(vec![page(items.into(), "7"), watch().1]), transform);
    run.expect_notes(&["[same !name !namespace !no-name !uid !version]@7"]).await;
    run.expect_requests(&["list 0 500", "watch 7"]).await;
    for malformed in run.status.quarantined() {
        let name = malformed.key.expect("the key before the transform").to_string();
        let field = match name.as_str() {
            "uid" => "metadata.uid",
            "version" => "metadata.resourceVersion",
            _ => "metadata.name",
        };
        assert!(malformed.error.contains(field), "{name}: {}", malformed.error);
    }
}

#[tokio::test(start_paused = true)]
async fn i10_list_keeps_only_its_own_quarantined_objects() {
    let bad = |name| Err(malformed(Some(name), "2"));
    let (events, line) = watch();
    let lines = vec![
        page(vec![bad("healed"), bad("gone"), bad("still")], "7"),
        line,
        page(vec![item("healed", "8"), bad("still")], "9"),
        watch().1,
    ];
    let mut run = Run::new(lines);
    run.expect_requests(&["list 0 500", "watch 7"]).await;
    assert_eq!(run.status.quarantined().len(), 3);
    send(&events, vec![error(410, "Expired")]);
    run.expect_requests(&["list 7 all", "watch 9"]).await;
    assert_eq!(run.status.quarantined(), [malformed(Some("still"), "2")]);
}

#[tokio::test(start_paused = true)]
async fn i10_items_of_a_failed_list_are_not_counted_twice() {
    let bad = || Err(malformed(Some("a"), "1"));
    let lines = vec![
        Line::Page(vec![bad()], "7", Some("t1")),
        Line::ListFails(failure(410, "Expired")),
        page(vec![bad()], "9"),
        watch().1,
    ];
    let mut run = Run::new(lines);
    run.expect_requests(&["list 0 500", "list newest 500 from t1", "list 0 all", "watch 9"]).await;
    assert_eq!(run.status.quarantined_total(), 1);
}

#[tokio::test(start_paused = true)]
async fn i10_quarantined_object_is_in_the_status_before_the_list_ends() {
    let mut run = Run::new(vec![Line::HalfPage(vec![item("a", "1"), Err(malformed(Some("b"), "2"))])]);
    run.expect_requests(&["list 0 500"]).await;
    run.health(|health| matches!(health, Health::Syncing { received: 2, .. })).await;
    assert_eq!(run.status.quarantined(), [malformed(Some("b"), "2")]);
}
