//! Events: the server has no watch cache for them, so etcd serves their lists and watches.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::answer::Refusal;
use crate::objects::{names, token, version};
use crate::scenario::{Scenario, scenario};
use crate::server::{STREAMING, Server, with_query};

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario(list_of_events_at_version_0_observes_the_limit),
        scenario(pages_of_events_show_the_state_of_the_first_page),
        scenario(continue_token_of_events_has_no_leading_slash),
        scenario(future_version_of_events_is_refused_at_once),
        scenario(watch_of_events_begins_with_existing_objects),
        scenario(a_streaming_list_of_events_ends_with_a_bookmark),
        scenario(a_streaming_list_of_events_has_no_other_bookmark),
        scenario(future_streaming_list_of_events_is_an_error_event),
        scenario(a_watch_of_events_gets_no_bookmarks),
        scenario(watch_of_events_replays_and_continues),
        scenario(watch_of_events_can_begin_with_the_compacted_version).alone(),
        scenario(an_event_is_the_same_in_both_of_its_groups)
            .differs("The simulator stores the events of the two groups separately."),
    ]
}

async fn make(server: &Server, names: &[&str]) -> Value {
    let mut last = Value::Null;
    for name in names {
        let about = json!({ "kind": "Secret", "namespace": server.namespace, "name": "none" });
        last = server
            .create(&server.core("events"), &json!({ "metadata": { "name": name }, "involvedObject": about }))
            .await;
    }
    last
}

async fn list(server: &Server, parameters: &[(&str, &str)]) -> Value {
    server.get(&with_query(&server.core("events"), parameters)).await.expect(200)
}

async fn list_of_events_at_version_0_observes_the_limit(server: Server) {
    make(&server, &["a", "b"]).await;
    let list = list(&server, &[("resourceVersion", "0"), ("limit", "1")]).await;
    assert_eq!(names(&list), ["a"]);
    assert_eq!(list["metadata"]["remainingItemCount"], 1);
}

async fn pages_of_events_show_the_state_of_the_first_page(server: Server) {
    make(&server, &["a", "b", "c"]).await;
    let first = list(&server, &[("limit", "1")]).await;
    server.delete(&server.core("events/b")).await.expect(200);
    let rest = list(&server, &[("continue", token(&first))]).await;
    assert_eq!((names(&rest), version(&rest)), (vec!["b", "c"], version(&first)));
}

async fn continue_token_of_events_has_no_leading_slash(server: Server) {
    make(&server, &["a", "b"]).await;
    let first = list(&server, &[("limit", "1")]).await;
    let json = BASE64_URL_SAFE_NO_PAD.decode(token(&first)).expect("base64");
    let token: Value = serde_json::from_slice(&json).expect("JSON");
    assert_eq!(token["start"], "a\u{0}");
}

async fn future_version_of_events_is_refused_at_once(server: Server) {
    let path = with_query(&server.core("events"), &[("resourceVersion", "9000000000")]);
    let answer = server.get(&path).await;
    // A retry would not help, so there is no `Retry-After`.
    assert_eq!(answer.header("retry-after"), "");
    let message = "Timeout: Too large resource version: 9000000000, current: ";
    let refusal = answer.refused_with(504, "Timeout", message);
    assert_eq!(refusal.details()["causes"][0]["reason"], "ResourceVersionTooLarge");
    assert!(refusal.details().get("retryAfterSeconds").is_none(), "{}", refusal.details());
}

async fn watch_of_events_begins_with_existing_objects(server: Server) {
    make(&server, &["b", "a"]).await;
    for version in ["", "0"] {
        let mut watch = server.watch_path(&server.core("events"), &[("resourceVersion", version)]).await;
        assert_eq!(watch.briefs(2).await, ["ADDED a", "ADDED b"]);
    }
}

async fn a_streaming_list_of_events_ends_with_a_bookmark(server: Server) {
    let last = make(&server, &["a"]).await;
    let mut watch = server.watch_path(&server.core("events"), &STREAMING).await;
    watch.expect("ADDED").await;
    let end = watch.expect("BOOKMARK").await;
    assert_eq!(end["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    assert!(version(&end) >= version(&last));
}

/// Events have no watch cache, which would send a bookmark two seconds before the end of the watch.
async fn a_streaming_list_of_events_has_no_other_bookmark(server: Server) {
    make(&server, &["a", "b"]).await;
    let parameters = [&STREAMING[..], &[("timeoutSeconds", "5")]].concat();
    let mut watch = server.watch_path(&server.core("events"), &parameters).await;
    let mut types = Vec::new();
    while let Some(event) = watch.event().await {
        types.push(event["type"].as_str().expect("a type").to_owned());
    }
    assert_eq!(types, ["ADDED", "ADDED", "BOOKMARK"]);
}

async fn future_streaming_list_of_events_is_an_error_event(server: Server) {
    let parameters = [&STREAMING[..], &[("resourceVersion", "9000000000")]].concat();
    let mut watch = server.watch_path(&server.core("events"), &parameters).await;
    Refusal(watch.expect("ERROR").await).is_status(504, "Timeout");
    watch.ends().await;
}

async fn a_watch_of_events_gets_no_bookmarks(server: Server) {
    let last = version(&make(&server, &["a"]).await).to_string();
    let parameters =
        [("resourceVersion", last.as_str()), ("allowWatchBookmarks", "true"), ("timeoutSeconds", "5")];
    server.watch_path(&server.core("events"), &parameters).await.ends().await;
}

async fn watch_of_events_replays_and_continues(server: Server) {
    let first = version(&make(&server, &["a"]).await).to_string();
    make(&server, &["b"]).await;
    let mut watch = server.watch_path(&server.core("events"), &[("resourceVersion", &first)]).await;
    server.delete(&server.core("events/a")).await.expect(200);
    assert_eq!(watch.briefs(2).await, ["ADDED b", "DELETED a"]);
}

async fn watch_of_events_can_begin_with_the_compacted_version(server: Server) {
    make(&server, &["a"]).await;
    let last = version(&make(&server, &["b"]).await);
    server.compact(last).await;
    let before = |versions: u64| (last - versions).to_string();
    let mut watch = server.watch_path(&server.core("events"), &[("resourceVersion", &before(1))]).await;
    assert_eq!(watch.briefs(1).await, ["ADDED b"]);
    let mut expired = server.watch_path(&server.core("events"), &[("resourceVersion", &before(2))]).await;
    Refusal(expired.expect("ERROR").await).is_status(410, "Expired");
}

async fn an_event_is_the_same_in_both_of_its_groups(server: Server) {
    let created = make(&server, &["a"]).await;
    let answer = server.get(&server.group("events.k8s.io/v1", "events/a")).await;
    if server.is_real() {
        let other = answer.expect(200);
        assert_eq!(other["metadata"]["uid"], created["metadata"]["uid"]);
        assert_eq!(other["regarding"], created["involvedObject"]);
    } else {
        answer.refused_with(404, "NotFound", "not found");
    }
}
