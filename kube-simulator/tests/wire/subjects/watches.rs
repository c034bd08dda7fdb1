//! Watches: how they start, their events, and how they end.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::answer::{Answer, Refusal};
use crate::objects::{labelled, pod, secret, uid, version};
use crate::scenario::{Scenario, scenario};
use crate::server::{MERGE, Server, with_query};

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario(a_watch_is_json_one_event_per_line),
        scenario(watch_sends_each_write_in_order),
        scenario(watch_replays_changes_after_its_version),
        scenario(watch_without_a_version_begins_with_existing_objects),
        scenario(watch_from_version_0_begins_with_existing_objects),
        scenario(a_watch_without_initial_events_begins_now),
        scenario(deleted_event_has_last_state_and_deletion_version),
        scenario(watch_of_a_namespace_sends_no_objects_of_others),
        scenario(watch_of_all_namespaces_sends_objects_of_each),
        scenario(a_watch_of_one_object_by_name),
        scenario(object_that_begins_to_match_is_added),
        scenario(object_that_stops_matching_is_deleted_as_last_matched),
        scenario(object_that_still_matches_is_modified),
        scenario(object_outside_the_selection_is_not_sent),
        scenario(deletion_outside_the_selection_is_not_sent),
        scenario(field_selectors_apply_to_watch_events),
        scenario(write_without_a_change_causes_no_event),
        scenario(dry_run_causes_no_event),
        scenario(deletion_with_a_finalizer_is_first_a_modification),
        scenario(deleted_event_lacks_the_update_that_removes_the_object),
        scenario(recreated_object_is_deleted_and_added),
        scenario(watch_from_a_future_version_sends_no_earlier_events),
        scenario(compacted_version_is_an_error_within_the_stream).alone(),
        scenario(the_timeout_ends_a_watch_cleanly),
        scenario(a_watch_that_nears_its_end_gets_a_bookmark),
        scenario(a_bookmark_has_only_a_version),
        scenario(bookmark_of_pods_has_an_incomplete_pod),
        scenario(watch_without_a_request_for_bookmarks_gets_none),
        scenario(watch_can_start_from_a_bookmark),
        scenario(many_watches_receive_the_same_events),
        scenario(unread_watch_is_ended_and_counted).alone().over_a_socket().differs(
            "A real server ends the watch at once; the simulator ends it when the client reads again.",
        ),
        scenario(deprecated_watch_paths_are_watches).only_on_the_server(
            "paths under /api/v1/watch have been deprecated since 1.10; the simulator has none",
        ),
    ]
}

async fn now(server: &Server) -> String {
    version(&server.list(&[]).await.expect(200)).to_string()
}

async fn a_watch_is_json_one_event_per_line(server: Server) {
    let from = now(&server).await;
    let mut watch = server.watch(&[("resourceVersion", &from)]).await;
    assert_eq!(watch.headers["content-type"], "application/json");
    server.create_secrets(&["a", "b"]).await;
    for name in ["a", "b"] {
        let line = watch.line().await.expect("an event");
        let text = String::from_utf8(line).expect("UTF-8");
        assert!(
            text.starts_with("{\"type\":\"ADDED\",\"object\":{\"kind\":\"Secret\",\"apiVersion\":\"v1\","),
            "{text}"
        );
        assert!(text.contains(&format!("\"name\":\"{name}\"")) && text.ends_with("}}\n"), "{text}");
    }
}

async fn watch_sends_each_write_in_order(server: Server) {
    let from = now(&server).await;
    let mut watch = server.watch(&[("resourceVersion", &from)]).await;
    server.create_secrets(&["b", "a"]).await;
    server.label("b", "x", "1").await;
    server.delete(&server.secret_path("a")).await.expect(200);
    server.label("b", "x", "2").await;
    let expected = ["ADDED b", "ADDED a", "MODIFIED b", "DELETED a", "MODIFIED b"];
    let (mut last, mut briefs) = (from.parse().expect("a number"), Vec::new());
    for _ in expected {
        let event = watch.event().await.expect("an event");
        let version = version(&event["object"]);
        assert!(version > last, "{version} after {last}");
        last = version;
        briefs.push(format!("{} {}", event["type"], event["object"]["metadata"]["name"]).replace('"', ""));
    }
    assert_eq!(briefs, expected);
}

async fn watch_replays_changes_after_its_version(server: Server) {
    let first = version(&server.create_secrets(&["a"]).await).to_string();
    server.create_secrets(&["b"]).await;
    server.delete(&server.secret_path("a")).await.expect(200);
    let mut watch = server.watch(&[("resourceVersion", &first)]).await;
    assert_eq!(watch.briefs(2).await, ["ADDED b", "DELETED a"]);
}

async fn watch_without_a_version_begins_with_existing_objects(server: Server) {
    server.create_secrets(&["b", "a"]).await;
    let mut watch = server.watch(&[]).await;
    assert_eq!(watch.briefs(2).await, ["ADDED a", "ADDED b"]);
    server.label("a", "x", "1").await;
    assert_eq!(watch.briefs(1).await, ["MODIFIED a"]);
}

async fn watch_from_version_0_begins_with_existing_objects(server: Server) {
    server.create_secrets(&["b", "a"]).await;
    now(&server).await;
    let mut watch = server.watch(&[("resourceVersion", "0")]).await;
    assert_eq!(watch.briefs(2).await, ["ADDED a", "ADDED b"]);
}

async fn a_watch_without_initial_events_begins_now(server: Server) {
    server.create_secrets(&["a"]).await;
    now(&server).await;
    for version in ["", "0"] {
        let parameters = [
            ("resourceVersion", version),
            ("resourceVersionMatch", "NotOlderThan"),
            ("sendInitialEvents", "false"),
        ];
        let mut watch = server.watch(&parameters).await;
        server.label("a", "x", if version.is_empty() { "1" } else { "2" }).await;
        assert_eq!(watch.briefs(1).await, ["MODIFIED a"]);
    }
}

async fn deleted_event_has_last_state_and_deletion_version(server: Server) {
    let created = server.create(&server.secrets(), &labelled("a", "is", "last")).await;
    let mut watch = server.watch(&[("resourceVersion", &version(&created).to_string())]).await;
    server.delete(&server.secret_path("a")).await.expect(200);
    let deleted = watch.expect("DELETED").await;
    assert_eq!(deleted["metadata"]["labels"]["is"], "last");
    assert_eq!(uid(&deleted), uid(&created));
    assert!(version(&deleted) > version(&created));
}

async fn watch_of_a_namespace_sends_no_objects_of_others(server: Server) {
    let other = server.new_namespace().await;
    let from = now(&server).await;
    let mut watch = server.watch(&[("resourceVersion", &from)]).await;
    server.create(&format!("/api/v1/namespaces/{other}/secrets"), &secret("elsewhere")).await;
    server.create_secrets(&["here"]).await;
    assert_eq!(watch.briefs(1).await, ["ADDED here"]);
}

async fn watch_of_all_namespaces_sends_objects_of_each(server: Server) {
    let (other, selector) = (server.new_namespace().await, format!("all={}", server.namespace));
    let from = now(&server).await;
    let parameters = [("resourceVersion", from.as_str()), ("labelSelector", &selector)];
    let mut watch = server.watch_path("/api/v1/secrets", &parameters).await;
    server
        .create(&format!("/api/v1/namespaces/{other}/secrets"), &labelled("there", "all", &server.namespace))
        .await;
    server.create(&server.secrets(), &labelled("here", "all", &server.namespace)).await;
    assert_eq!(watch.briefs(2).await, ["ADDED there", "ADDED here"]);
}

async fn a_watch_of_one_object_by_name(server: Server) {
    server.create_secrets(&["a", "b"]).await;
    let mut watch = server.watch(&[("fieldSelector", "metadata.name=b")]).await;
    server.label("a", "x", "1").await;
    server.label("b", "x", "1").await;
    assert_eq!(watch.briefs(2).await, ["ADDED b", "MODIFIED b"]);
}

async fn object_that_begins_to_match_is_added(server: Server) {
    let created = server.create_secrets(&["a"]).await;
    let parameters =
        [("resourceVersion", version(&created).to_string()), ("labelSelector", "in=view".to_owned())];
    let mut watch = server.watch(&parameters.each_ref().map(|(n, v)| (*n, v.as_str()))).await;
    let now_in_view = server.label("a", "in", "view").await;
    let added = watch.expect("ADDED").await;
    assert_eq!(version(&added), version(&now_in_view));
    assert_eq!(added["metadata"]["labels"]["in"], "view");
}

async fn object_that_stops_matching_is_deleted_as_last_matched(server: Server) {
    let created = server.create(&server.secrets(), &labelled("a", "in", "view")).await;
    let mut watch = server.watch(&[("labelSelector", "in=view")]).await;
    assert_eq!(version(&watch.expect("ADDED").await), version(&created));
    let out_of_view = server.label("a", "in", "nothing").await;
    let deleted = watch.expect("DELETED").await;
    // The last matching state, with the version at which the object stopped matching.
    assert_eq!(deleted["metadata"]["labels"]["in"], "view");
    assert_eq!(version(&deleted), version(&out_of_view));
}

async fn object_that_still_matches_is_modified(server: Server) {
    server.create(&server.secrets(), &labelled("a", "in", "view")).await;
    let mut watch = server.watch(&[("labelSelector", "in=view")]).await;
    watch.expect("ADDED").await;
    server.label("a", "other", "label").await;
    assert_eq!(watch.expect("MODIFIED").await["metadata"]["labels"]["other"], "label");
}

async fn object_outside_the_selection_is_not_sent(server: Server) {
    let mut watch = server.watch(&[("labelSelector", "in=view")]).await;
    server.create_secrets(&["unseen"]).await;
    server.label("unseen", "in", "nothing").await;
    server.create(&server.secrets(), &labelled("seen", "in", "view")).await;
    assert_eq!(watch.briefs(1).await, ["ADDED seen"]);
}

async fn deletion_outside_the_selection_is_not_sent(server: Server) {
    server.create(&server.secrets(), &labelled("a", "in", "view")).await;
    let mut watch = server.watch(&[("labelSelector", "in=view")]).await;
    server.label("a", "in", "nothing").await;
    server.delete(&server.secret_path("a")).await.expect(200);
    server.create(&server.secrets(), &labelled("b", "in", "view")).await;
    assert_eq!(watch.briefs(3).await, ["ADDED a", "DELETED a", "ADDED b"]);
}

async fn field_selectors_apply_to_watch_events(server: Server) {
    let pods = server.core("pods");
    let mut watch = server.watch_path(&pods, &[("fieldSelector", "status.phase=Running")]).await;
    server.create(&pods, &pod("a")).await;
    for phase in ["Running", "Failed"] {
        let status = json!({ "status": { "phase": phase } });
        server.patch(&format!("{pods}/a/status"), MERGE, &status).await.expect(200);
    }
    assert_eq!(watch.expect("ADDED").await["status"]["phase"], "Running");
    assert_eq!(watch.expect("DELETED").await["status"]["phase"], "Running");
}

async fn write_without_a_change_causes_no_event(server: Server) {
    let mut watch = server.watch(&[]).await;
    let created = server.create_secrets(&["a"]).await;
    let same = server.put(&server.secret_path("a"), &created).await.expect(200);
    assert_eq!(version(&same), version(&created));
    server.label("a", "x", "1").await;
    assert_eq!(watch.briefs(2).await, ["ADDED a", "MODIFIED a"]);
    watch_is_at(&server, &mut watch, "x").await;
}

/// Writes a label, and asserts that the next event reports this write.
async fn watch_is_at(server: &Server, watch: &mut crate::watch::Watch, label: &str) {
    server.label("a", label, "now").await;
    assert_eq!(watch.expect("MODIFIED").await["metadata"]["labels"][label], "now");
}

async fn dry_run_causes_no_event(server: Server) {
    server.create_secrets(&["a"]).await;
    let mut watch = server.watch(&[]).await;
    watch.expect("ADDED").await;
    let path = format!("{}?dryRun=All", server.secret_path("a"));
    server.patch(&path, MERGE, &json!({ "metadata": { "labels": { "x": "1" } } })).await.expect(200);
    server.delete(&path).await.expect(200);
    server.post(&format!("{}?dryRun=All", server.secrets()), &secret("b")).await.expect(201);
    watch_is_at(&server, &mut watch, "y").await;
}

async fn deletion_with_a_finalizer_is_first_a_modification(server: Server) {
    let mut object = secret("a");
    object["metadata"]["finalizers"] = json!(["wire.test/hold"]);
    server.create(&server.secrets(), &object).await;
    let mut watch = server.watch(&[]).await;
    watch.expect("ADDED").await;
    server.delete(&server.secret_path("a")).await.expect(200);
    assert!(watch.expect("MODIFIED").await["metadata"]["deletionTimestamp"].is_string());
    let release = json!({ "metadata": { "finalizers": null } });
    server.patch(&server.secret_path("a"), MERGE, &release).await.expect(200);
    let deleted = watch.expect("DELETED").await;
    assert!(deleted["metadata"]["deletionTimestamp"].is_string());
}

/// The response has the updated object, with the version from before the removal.
async fn deleted_event_lacks_the_update_that_removes_the_object(server: Server) {
    let mut object = secret("a");
    object["metadata"]["finalizers"] = json!(["wire.test/hold"]);
    server.create(&server.secrets(), &object).await;
    let marked = server.delete(&server.secret_path("a")).await.expect(200);
    let mut watch = server.watch(&[("resourceVersion", &version(&marked).to_string())]).await;
    let release = json!({ "metadata": { "finalizers": null, "labels": { "x": "1" } } });
    let last = server.patch(&server.secret_path("a"), MERGE, &release).await.expect(200);
    assert_eq!((version(&last), &last["metadata"]["labels"]), (version(&marked), &json!({ "x": "1" })));
    assert_eq!(last["metadata"]["finalizers"], Value::Null);
    let mut deleted = watch.expect("DELETED").await;
    assert!(version(&deleted) > version(&marked), "{deleted}");
    deleted["metadata"]["resourceVersion"] = marked["metadata"]["resourceVersion"].clone();
    assert_eq!(deleted, marked);
}

async fn recreated_object_is_deleted_and_added(server: Server) {
    let old = server.create_secrets(&["a"]).await;
    let mut watch = server.watch(&[("resourceVersion", &version(&old).to_string())]).await;
    server.delete(&server.secret_path("a")).await.expect(200);
    let new = server.create_secrets(&["a"]).await;
    assert_eq!(uid(&watch.expect("DELETED").await), uid(&old));
    assert_eq!(uid(&watch.expect("ADDED").await), uid(&new));
    assert_ne!(uid(&old), uid(&new));
}

async fn watch_from_a_future_version_sends_no_earlier_events(server: Server) {
    let parameters = [("resourceVersion", "9000000000"), ("timeoutSeconds", "1")];
    let mut watch = server.watch(&parameters).await;
    server.create_secrets(&["a"]).await;
    watch.ends().await;
}

/// Uses events, which the server reads from etcd, so that compactions apply at once.
async fn compacted_version_is_an_error_within_the_stream(server: Server) {
    let then = version(&server.create_secrets(&["a"]).await).to_string();
    let now = version(&server.create_secrets(&["b", "c"]).await);
    server.compact(now).await;
    let mut watch = server.watch_path(&server.core("events"), &[("resourceVersion", &then)]).await;
    let refusal = Refusal(watch.expect("ERROR").await);
    refusal.is_status(410, "Expired");
    assert_eq!(refusal.message(), "The resourceVersion for the provided watch is too old.");
    watch.ends().await;
}

async fn the_timeout_ends_a_watch_cleanly(server: Server) {
    server.create_secrets(&["a"]).await;
    let begun = Instant::now();
    let mut watch = server.watch(&[("timeoutSeconds", "10")]).await;
    assert_eq!(watch.rest().await, ["ADDED a"]);
    assert!(begun.elapsed() >= seconds(10), "{:?}", begun.elapsed());
}

/// Returns this number of seconds, minus a tolerance for different clocks.
fn seconds(number: u64) -> Duration {
    Duration::from_secs(number) - Duration::from_millis(50)
}

/// Returns the last bookmark of a watch. Creates an object that the watch does not select, because
/// a real server sends a bookmark only if its version is new for the watch.
async fn bookmark(server: &Server, path: &str, unseen: fn(&str) -> Value) -> Value {
    let attempt = async |name: String| {
        let from = version(&server.get(path).await.expect(200)).to_string();
        let parameters =
            [&[("resourceVersion", &*from), ("labelSelector", "in=view")], &NEARLY_OVER[..]].concat();
        let mut watch = server.watch_path(path, &parameters).await;
        let created = server.create(path, &unseen(&name)).await;
        let bookmark = watch.bookmark().await?;
        // An older bookmark follows a write of another scenario.
        (version(&bookmark) >= version(&created)).then_some(bookmark)
    };
    server.bookmarked(attempt).await
}

const NEARLY_OVER: [(&str, &str); 2] = [("allowWatchBookmarks", "true"), ("timeoutSeconds", "5")];

async fn a_watch_that_nears_its_end_gets_a_bookmark(server: Server) {
    let attempt = async |unseen: String| {
        let from = now(&server).await;
        let begun = Instant::now();
        let parameters =
            [&[("resourceVersion", &*from), ("labelSelector", "in=view")], &NEARLY_OVER[..]].concat();
        let mut watch = server.watch(&parameters).await;
        server.create_secrets(&[&unseen]).await;
        watch.bookmark().await?;
        // The bookmark is due two seconds before the end. A real server rounds this time down to
        // whole seconds.
        assert!(begun.elapsed() >= seconds(2), "{:?}", begun.elapsed());
        assert_eq!(watch.rest().await, [""; 0]);
        assert!(begun.elapsed() >= seconds(5), "{:?}", begun.elapsed());
        Some(())
    };
    server.bookmarked(attempt).await;
}

async fn a_bookmark_has_only_a_version(server: Server) {
    let bookmark = bookmark(&server, &server.secrets(), secret).await;
    let version = &bookmark["metadata"]["resourceVersion"];
    let expected =
        json!({ "kind": "Secret", "apiVersion": "v1", "metadata": { "resourceVersion": version } });
    assert_eq!(bookmark, expected);
}

async fn bookmark_of_pods_has_an_incomplete_pod(server: Server) {
    let bookmark = bookmark(&server, &server.core("pods"), pod).await;
    assert_eq!((&bookmark["spec"], &bookmark["status"]), (&json!({ "containers": null }), &json!({})));
}

async fn watch_without_a_request_for_bookmarks_gets_none(server: Server) {
    let from = now(&server).await;
    server.watch(&[("resourceVersion", &from), ("timeoutSeconds", "4")]).await.ends().await;
}

async fn watch_can_start_from_a_bookmark(server: Server) {
    server.create_secrets(&["a"]).await;
    let bookmark = bookmark(&server, &server.secrets(), secret).await;
    let mut watch = server.watch(&[("resourceVersion", &version(&bookmark).to_string())]).await;
    server.label("a", "x", "1").await;
    assert_eq!(watch.briefs(1).await, ["MODIFIED a"]);
}

async fn many_watches_receive_the_same_events(server: Server) {
    let from = now(&server).await;
    let mut watches = Vec::new();
    for _ in 0..5 {
        watches.push(server.watch(&[("resourceVersion", &from)]).await);
    }
    server.create_secrets(&["a", "b"]).await;
    server.delete(&server.secret_path("a")).await.expect(200);
    for watch in &mut watches {
        assert_eq!(watch.briefs(3).await, ["ADDED a", "ADDED b", "DELETED a"]);
    }
}

/// The maximum number of writes. It is larger than the number of events that a server and a
/// connection buffer for an unread watch.
const MAX_WRITES: usize = 120;

/// Returns the number of watches of secrets that the server has ended because clients read too slowly.
/// The metric is absent until the first watch is ended.
fn ended_unread(metrics: &Answer) -> u64 {
    let counter = "apiserver_terminated_watchers_total{group=\"\",resource=\"secrets\"} ";
    let metrics = metrics.whole_text();
    let count = metrics.lines().find_map(|line| line.strip_prefix(counter));
    count.map_or(0, |count| count.parse().expect("a number"))
}

/// Writes a secret until a real server has ended one more unread watch, or 80 times on the
/// simulator. Returns the number of writes. Before a watch ends, its events fill the buffers: the
/// server's channels hold about thirty events, and the sockets another ten.
async fn write_too_much(server: &Server, ended_before: u64) -> usize {
    let mut large = secret("large");
    server.create(&server.secrets(), &large).await;
    for number in 2..=MAX_WRITES {
        let digits = number.to_string();
        large["stringData"]["text"] = digits.repeat(900_000 / digits.len()).into();
        server.put(&server.secret_path("large"), &large).await.expect(200);
        let is_time_to_look = number >= 30 && number.is_multiple_of(10);
        let is_enough = match server.is_real() {
            true => is_time_to_look && ended_unread(&server.get("/metrics").await) > ended_before,
            // The simulator ends and counts a slow watch only when its reader continues, so the
            // metric cannot show when to stop.
            false => number == 80,
        };
        if is_enough {
            return number;
        }
    }
    panic!("no watch was ended after {MAX_WRITES} writes");
}

async fn unread_watch_is_ended_and_counted(server: Server) {
    let before = ended_unread(&server.get("/metrics").await);
    let from = now(&server).await;
    let mut watch = server.watch(&[("resourceVersion", &from)]).await;
    let written = write_too_much(&server, before).await;
    let received = watch.rest().await;
    assert!((1..written).contains(&received.len()), "{} events of {written}", received.len());
    let metrics = server.get("/metrics").await;
    assert_eq!(
        metrics.header("content-type"),
        "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
    );
    assert!(ended_unread(&metrics) > before, "the ended watch must be counted");
    assert!(metrics.whole_text().contains("# TYPE apiserver_terminated_watchers_total counter\n"));
}

async fn deprecated_watch_paths_are_watches(server: Server) {
    server.create_secrets(&["a", "b"]).await;
    let path = format!("/api/v1/watch/namespaces/{}/secrets", server.namespace);
    for (path, expected) in [(path.clone(), 2), (format!("{path}/a"), 1)] {
        let answer = server.get(&with_query(&path, &[("timeoutSeconds", "5")])).await;
        assert_eq!(answer.code, 200);
        assert_eq!(answer.text().lines().count(), expected);
    }
}
