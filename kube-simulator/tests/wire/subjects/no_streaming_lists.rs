//! A server without the feature gate `WatchList`: its errors for streaming lists, and watches that
//! servers with the gate treat as streaming lists.

use serde_json::json;

use super::watch_options::{NEEDS_INITIAL_EVENTS, NEEDS_MATCH, is_invalid};
use crate::custom::Widgets;
use crate::objects::{labelled, version};
use crate::scenario::{Scenario, scenario};
use crate::server::Server;
use crate::watch::Watch;

pub(crate) fn scenarios() -> Vec<Scenario> {
    let rows = vec![
        scenario(without_the_gate_initial_events_are_refused),
        scenario(without_the_gate_version_match_is_refused),
        scenario(without_the_gate_all_errors_are_reported_at_once),
        scenario(without_the_gate_no_resource_is_streamed),
        scenario(without_the_gate_unversioned_watch_begins_with_objects),
        scenario(without_the_gate_watch_from_0_begins_with_objects),
        scenario(without_the_gate_initial_events_have_no_end),
        scenario(without_the_gate_watch_of_events_begins_with_existing),
        scenario(without_the_gate_watches_ignore_limit_and_token),
        scenario(without_the_gate_watch_from_a_version_is_unchanged),
    ];
    rows.into_iter().map(Scenario::with_other_gates).collect()
}

const NO_GATE: &str = "sendInitialEvents: Forbidden: \
    sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";

const NOT_OLDER: (&str, &str) = ("resourceVersionMatch", "NotOlderThan");

async fn without_the_gate_initial_events_are_refused(server: Server) {
    for yes_or_no in ["true", "false"] {
        let initial_events = ("sendInitialEvents", yes_or_no);
        is_invalid(&server, &[initial_events, NOT_OLDER], NO_GATE).await;
        is_invalid(&server, &[initial_events, NOT_OLDER, ("allowWatchBookmarks", "true")], NO_GATE).await;
        is_invalid(&server, &[initial_events, NOT_OLDER, ("resourceVersion", "0")], NO_GATE).await;
        is_invalid(&server, &[initial_events, NOT_OLDER, ("resourceVersion", "1")], NO_GATE).await;
    }
}

async fn without_the_gate_version_match_is_refused(server: Server) {
    is_invalid(&server, &[NOT_OLDER], NEEDS_INITIAL_EVENTS).await;
    is_invalid(&server, &[NOT_OLDER, ("resourceVersion", "1")], NEEDS_INITIAL_EVENTS).await;
}

async fn without_the_gate_all_errors_are_reported_at_once(server: Server) {
    let initial_events = ("sendInitialEvents", "true");
    is_invalid(&server, &[initial_events], &format!("[{NEEDS_MATCH}, {NO_GATE}]")).await;
    let message = format!(
        "[{NEEDS_MATCH}, {NO_GATE}, \
         resourceVersionMatch: Unsupported value: \"Exact\": supported values: \"NotOlderThan\"]"
    );
    is_invalid(&server, &[initial_events, ("resourceVersionMatch", "Exact")], &message).await;
}

async fn without_the_gate_no_resource_is_streamed(server: Server) {
    let widgets = Widgets::define(&server).await;
    for path in [server.core("events"), widgets.path()] {
        let initial_events =
            "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
        server.get(&format!("{path}?{initial_events}")).await.refused_with(422, "Invalid", NO_GATE);
    }
}

/// Asserts that a watch starts with the existing objects, in order, and continues.
async fn begins_with_existing_objects(server: &Server, parameters: &[(&str, &str)]) -> Watch {
    server.create_secrets(&["b", "a"]).await;
    // This list brings the watch cache up to date.
    server.list(&[]).await.expect(200);
    let mut watch = server.watch(parameters).await;
    assert_eq!(watch.briefs(2).await, ["ADDED a", "ADDED b"]);
    server.label("a", "x", "1").await;
    assert_eq!(watch.briefs(1).await, ["MODIFIED a"]);
    watch
}

async fn without_the_gate_unversioned_watch_begins_with_objects(server: Server) {
    begins_with_existing_objects(&server, &[]).await;
}

async fn without_the_gate_watch_from_0_begins_with_objects(server: Server) {
    begins_with_existing_objects(&server, &[("resourceVersion", "0")]).await;
}

async fn without_the_gate_initial_events_have_no_end(server: Server) {
    server.create(&server.secrets(), &labelled("a", "in", "view")).await;
    server.list(&[]).await.expect(200);
    for version in ["", "0"] {
        let parameters = [
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", version),
            ("labelSelector", "in=view"),
            ("timeoutSeconds", "5"),
        ];
        let attempt = async |unseen: String| {
            let mut watch = server.watch(&parameters).await;
            assert_eq!(watch.event().await.expect("an event")["type"], "ADDED");
            // Shortly before its end, the watch gets a bookmark like any other watch, if there is a
            // new version.
            server.create_secrets(&[&format!("{unseen}{version}")]).await;
            let mut last = None;
            while let Some(bookmark) = watch.bookmark().await {
                assert!(bookmark["metadata"]["annotations"].is_null(), "{bookmark}");
                last = Some(bookmark);
            }
            last
        };
        server.bookmarked(attempt).await;
    }
}

/// The server has no watch cache for events, so etcd serves these watches.
async fn without_the_gate_watch_of_events_begins_with_existing(server: Server) {
    let events = server.core("events");
    let about = json!({ "kind": "Secret", "namespace": server.namespace, "name": "none" });
    let event = json!({ "metadata": { "name": "a" }, "involvedObject": about });
    server.create(&events, &event).await;
    for version in ["", "0"] {
        let parameters =
            [("allowWatchBookmarks", "true"), ("resourceVersion", version), ("timeoutSeconds", "5")];
        let mut watch = server.watch_path(&events, &parameters).await;
        assert_eq!(watch.event().await.expect("an event")["type"], "ADDED");
        watch.ends().await;
    }
}

/// A server with streaming lists would reject the token.
async fn without_the_gate_watches_ignore_limit_and_token(server: Server) {
    begins_with_existing_objects(&server, &[("limit", "1"), ("continue", "x")]).await;
}

async fn without_the_gate_watch_from_a_version_is_unchanged(server: Server) {
    let from = version(&server.create_secrets(&["a"]).await).to_string();
    server.create_secrets(&["b"]).await;
    let mut watch = server.watch(&[("resourceVersion", &from), ("allowWatchBookmarks", "true")]).await;
    assert_eq!(watch.briefs(1).await, ["ADDED b"]);
}
