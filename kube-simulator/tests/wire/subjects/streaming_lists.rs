//! Streaming lists (`sendInitialEvents`): watches that start with all objects and a bookmark.

use serde_json::json;

use crate::answer::Refusal;
use crate::objects::{labelled, pod, version};
use crate::scenario::{Scenario, scenario};
use crate::server::{STREAMING, Server};

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario(a_streaming_list_is_all_objects_in_order_and_a_bookmark),
        scenario(the_end_of_the_list_is_annotated),
        scenario(empty_streaming_list_is_a_bookmark),
        scenario(streaming_list_continues_as_a_watch),
        scenario(a_streaming_list_sees_every_write_before_it),
        scenario(a_streaming_list_with_a_label_selector),
        scenario(a_streaming_list_with_a_field_selector),
        scenario(streaming_list_at_version_0_shows_any_state),
        scenario(a_streaming_list_not_older_than_a_version),
        scenario(streaming_list_from_the_future_is_an_error_event),
        scenario(streaming_list_without_bookmarks_has_no_end),
        scenario(unversioned_watch_with_bookmarks_is_a_streaming_list),
        scenario(a_watch_from_version_0_with_bookmarks_is_a_streaming_list),
        scenario(watch_from_a_version_sends_no_existing_objects),
        scenario(end_bookmark_of_pods_has_an_incomplete_pod),
        scenario(a_streaming_list_is_resumed_from_the_end_of_its_list),
        scenario(a_streaming_list_ends_at_its_timeout),
    ]
}

fn streaming<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    [&STREAMING, more].concat()
}

async fn a_streaming_list_is_all_objects_in_order_and_a_bookmark(server: Server) {
    server.create_secrets(&["c", "a", "b"]).await;
    let mut watch = server.watch(&STREAMING).await;
    assert_eq!(watch.briefs(4).await, ["ADDED a", "ADDED b", "ADDED c", "BOOKMARK"]);
}

async fn the_end_of_the_list_is_annotated(server: Server) {
    let last = server.create_secrets(&["a"]).await;
    let mut watch = server.watch(&STREAMING).await;
    watch.expect("ADDED").await;
    let end = watch.expect("BOOKMARK").await;
    assert!(version(&end) >= version(&last));
    let metadata = json!({
        "resourceVersion": end["metadata"]["resourceVersion"],
        "annotations": { "k8s.io/initial-events-end": "true" },
    });
    assert_eq!(end, json!({ "kind": "Secret", "apiVersion": "v1", "metadata": metadata }));
}

async fn empty_streaming_list_is_a_bookmark(server: Server) {
    let mut watch = server.watch(&STREAMING).await;
    assert_eq!(watch.briefs(1).await, ["BOOKMARK"]);
}

async fn streaming_list_continues_as_a_watch(server: Server) {
    server.create_secrets(&["a"]).await;
    let mut watch = server.watch(&STREAMING).await;
    assert_eq!(watch.briefs(2).await, ["ADDED a", "BOOKMARK"]);
    server.label("a", "x", "1").await;
    server.delete(&server.secret_path("a")).await.expect(200);
    assert_eq!(watch.briefs(2).await, ["MODIFIED a", "DELETED a"]);
}

async fn a_streaming_list_sees_every_write_before_it(server: Server) {
    for round in 0..5 {
        let created = server.create_secrets(&[&format!("s{round}")]).await;
        let mut watch = server.watch(&STREAMING).await;
        let briefs = watch.briefs(round + 1).await;
        assert_eq!(briefs[round], format!("ADDED s{round}"));
        assert!(version(&watch.expect("BOOKMARK").await) >= version(&created));
    }
}

async fn a_streaming_list_with_a_label_selector(server: Server) {
    server.create(&server.secrets(), &labelled("a", "in", "view")).await;
    server.create_secrets(&["b"]).await;
    let mut watch = server.watch(&streaming(&[("labelSelector", "in=view")])).await;
    assert_eq!(watch.briefs(2).await, ["ADDED a", "BOOKMARK"]);
    server.label("b", "in", "view").await;
    assert_eq!(watch.briefs(1).await, ["ADDED b"]);
}

async fn a_streaming_list_with_a_field_selector(server: Server) {
    server.create_secrets(&["a", "b"]).await;
    let mut watch = server.watch(&streaming(&[("fieldSelector", "metadata.name=b")])).await;
    assert_eq!(watch.briefs(2).await, ["ADDED b", "BOOKMARK"]);
}

async fn streaming_list_at_version_0_shows_any_state(server: Server) {
    server.create_secrets(&["a"]).await;
    // This list brings the watch cache up to date. Otherwise, version 0 could return an older
    // state.
    server.list(&[]).await.expect(200);
    let mut watch = server.watch(&streaming(&[("resourceVersion", "0")])).await;
    assert_eq!(watch.briefs(2).await, ["ADDED a", "BOOKMARK"]);
}

async fn a_streaming_list_not_older_than_a_version(server: Server) {
    let last = version(&server.create_secrets(&["a", "b"]).await);
    let mut watch = server.watch(&streaming(&[("resourceVersion", &last.to_string())])).await;
    assert_eq!(watch.briefs(2).await, ["ADDED a", "ADDED b"]);
    assert!(version(&watch.expect("BOOKMARK").await) >= last);
}

async fn streaming_list_from_the_future_is_an_error_event(server: Server) {
    let mut watch = server.watch(&streaming(&[("resourceVersion", "9000000000")])).await;
    let refusal = Refusal(watch.expect("ERROR").await);
    refusal.is_status(504, "Timeout");
    assert!(refusal.message().starts_with("Timeout: Too large resource version: 9000000000, current: "));
    assert_eq!(refusal.details()["causes"][0]["reason"], "ResourceVersionTooLarge");
    assert_eq!(refusal.details()["retryAfterSeconds"], 1);
    watch.ends().await;
}

async fn streaming_list_without_bookmarks_has_no_end(server: Server) {
    server.create_secrets(&["a"]).await;
    let parameters = [STREAMING[0], STREAMING[1], ("timeoutSeconds", "10")];
    assert_eq!(server.watch(&parameters).await.rest().await, ["ADDED a"]);
}

async fn unversioned_watch_with_bookmarks_is_a_streaming_list(server: Server) {
    server.create_secrets(&["a"]).await;
    let mut watch = server.watch(&[("allowWatchBookmarks", "true")]).await;
    watch.expect("ADDED").await;
    assert_eq!(
        watch.expect("BOOKMARK").await["metadata"]["annotations"]["k8s.io/initial-events-end"],
        "true"
    );
}

async fn a_watch_from_version_0_with_bookmarks_is_a_streaming_list(server: Server) {
    server.create_secrets(&["a"]).await;
    server.list(&[]).await.expect(200);
    let mut watch = server.watch(&[("allowWatchBookmarks", "true"), ("resourceVersion", "0")]).await;
    watch.expect("ADDED").await;
    assert_eq!(
        watch.expect("BOOKMARK").await["metadata"]["annotations"]["k8s.io/initial-events-end"],
        "true"
    );
}

async fn watch_from_a_version_sends_no_existing_objects(server: Server) {
    let last = version(&server.create_secrets(&["a"]).await).to_string();
    let parameters = [("allowWatchBookmarks", "true"), ("resourceVersion", last.as_str())];
    let mut watch = server.watch(&parameters).await;
    server.label("a", "x", "1").await;
    assert_eq!(watch.briefs(1).await, ["MODIFIED a"]);
}

async fn end_bookmark_of_pods_has_an_incomplete_pod(server: Server) {
    let pods = server.core("pods");
    server.create(&pods, &pod("a")).await;
    let mut watch = server.watch_path(&pods, &STREAMING).await;
    watch.expect("ADDED").await;
    let end = watch.expect("BOOKMARK").await;
    assert_eq!((&end["spec"], &end["status"]), (&json!({ "containers": null }), &json!({})));
}

async fn a_streaming_list_is_resumed_from_the_end_of_its_list(server: Server) {
    server.create_secrets(&["a", "b"]).await;
    let mut watch = server.watch(&STREAMING).await;
    watch.briefs(2).await;
    let end = version(&watch.expect("BOOKMARK").await).to_string();
    drop(watch);
    server.label("a", "x", "1").await;
    let mut watch = server.watch(&[("resourceVersion", &end)]).await;
    assert_eq!(watch.briefs(1).await, ["MODIFIED a"]);
}

async fn a_streaming_list_ends_at_its_timeout(server: Server) {
    server.create_secrets(&["a"]).await;
    let mut watch = server.watch(&streaming(&[("timeoutSeconds", "10")])).await;
    assert_eq!(watch.rest().await, ["ADDED a", "BOOKMARK"]);
}
