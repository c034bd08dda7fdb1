//! The state of lists and gets, by `resourceVersion` and `resourceVersionMatch`.

use serde_json::Value;

use crate::answer::Answer;
use crate::objects::{names, token, version};
use crate::scenario::{Scenario, scenario};
use crate::server::{POLL_INTERVAL, Server};

/// A resource version that no server reaches during the tests.
const FUTURE: &str = "9000000000";

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario(list_at_version_0_shows_any_state),
        scenario(list_at_version_0_ignores_the_limit),
        scenario(version_without_match_is_a_minimum),
        scenario(a_version_without_match_but_with_a_limit_is_exact),
        scenario(not_older_than_shows_the_latest_state),
        scenario(not_older_than_can_have_a_limit),
        scenario(exact_match_shows_the_past_list),
        scenario(exact_match_shows_past_objects),
        scenario(exact_match_can_be_paged),
        scenario(exact_match_before_the_first_object_is_empty),
        scenario(exact_match_of_a_compacted_version_is_expired).alone(),
        scenario(compacted_version_is_watched_but_not_listed).alone(),
        scenario(list_of_a_future_version_times_out),
        scenario(list_of_an_exact_future_version_times_out),
        scenario(page_of_a_future_version_times_out),
        scenario(list_waits_for_a_near_future_version),
        scenario(get_accepts_a_minimum_version),
        scenario(get_of_a_future_version_times_out),
        scenario(get_with_an_invalid_version_is_an_internal_error),
        scenario(get_ignores_list_options),
    ]
}

fn list_of(answer: Answer) -> (Vec<String>, Value) {
    let list = answer.expect(200);
    (names(&list).into_iter().map(str::to_owned).collect(), list)
}

/// Creates the secrets `a` and `b`, then deletes `a` and creates `c`. Returns the version before
/// the deletion.
async fn with_a_past(server: &Server) -> String {
    let then = version(&server.create_secrets(&["a", "b"]).await).to_string();
    server.delete(&server.secret_path("a")).await.expect(200);
    server.create_secrets(&["c"]).await;
    then
}

async fn list_at_version_0_shows_any_state(server: Server) {
    let last = server.create_secrets(&["a"]).await;
    // This list brings the watch cache up to date. Otherwise, version 0 could return an older
    // state.
    server.list(&[]).await.expect(200);
    for parameters in [
        &[("resourceVersion", "0")][..],
        &[("resourceVersion", "0"), ("resourceVersionMatch", "NotOlderThan")],
    ] {
        let (listed, list) = list_of(server.list(parameters).await);
        assert_eq!(listed, ["a"]);
        assert!(version(&list) >= version(&last));
    }
}

async fn list_at_version_0_ignores_the_limit(server: Server) {
    server.create_secrets(&["a", "b", "c"]).await;
    server.list(&[]).await.expect(200);
    let (listed, list) = list_of(server.list(&[("resourceVersion", "0"), ("limit", "1")]).await);
    assert_eq!((listed.len(), token(&list)), (3, ""));
}

async fn version_without_match_is_a_minimum(server: Server) {
    let then = with_a_past(&server).await;
    let (listed, list) = list_of(server.list(&[("resourceVersion", &then)]).await);
    // The list may show any later state, and contains that state's version.
    assert!(version(&list) >= then.parse().expect("a number"));
    assert!(listed == ["b", "c"] || listed == ["b"] || listed == ["a", "b"], "{listed:?}");
}

async fn a_version_without_match_but_with_a_limit_is_exact(server: Server) {
    let then = with_a_past(&server).await;
    let (listed, list) = list_of(server.list(&[("resourceVersion", &then), ("limit", "5")]).await);
    assert_eq!((listed, version(&list).to_string()), (vec!["a".to_owned(), "b".to_owned()], then));
}

async fn not_older_than_shows_the_latest_state(server: Server) {
    with_a_past(&server).await;
    let (_, latest) = list_of(server.list(&[]).await);
    let now = version(&latest).to_string();
    let parameters = [("resourceVersion", now.as_str()), ("resourceVersionMatch", "NotOlderThan")];
    let (listed, list) = list_of(server.list(&parameters).await);
    assert_eq!(listed, ["b", "c"]);
    assert!(version(&list) >= version(&latest));
}

async fn not_older_than_can_have_a_limit(server: Server) {
    with_a_past(&server).await;
    let now = version(&server.list(&[]).await.expect(200)).to_string();
    let parameters =
        [("resourceVersion", now.as_str()), ("resourceVersionMatch", "NotOlderThan"), ("limit", "1")];
    let (listed, list) = list_of(server.list(&parameters).await);
    assert_eq!(listed, ["b"]);
    assert_eq!(list["metadata"]["remainingItemCount"], 1);
    let (listed, _) = list_of(server.list(&[("limit", "1"), ("continue", token(&list))]).await);
    assert_eq!(listed, ["c"]);
}

async fn exact_match_shows_the_past_list(server: Server) {
    let then = with_a_past(&server).await;
    let parameters = [("resourceVersion", then.as_str()), ("resourceVersionMatch", "Exact")];
    let (listed, list) = list_of(server.list(&parameters).await);
    assert_eq!(listed, ["a", "b"]);
    assert_eq!(version(&list).to_string(), then);
}

async fn exact_match_shows_past_objects(server: Server) {
    let then = version(&server.create_secrets(&["a"]).await).to_string();
    server.label("a", "is", "new").await;
    let parameters = [("resourceVersion", then.as_str()), ("resourceVersionMatch", "Exact")];
    let list = server.list(&parameters).await.expect(200);
    assert!(list["items"][0]["metadata"].get("labels").is_none(), "{list}");
    assert_eq!(version(&list["items"][0]).to_string(), then);
}

async fn exact_match_can_be_paged(server: Server) {
    let then = with_a_past(&server).await;
    let parameters = [("resourceVersion", then.as_str()), ("resourceVersionMatch", "Exact"), ("limit", "1")];
    let (listed, list) = list_of(server.list(&parameters).await);
    assert_eq!((listed, version(&list).to_string()), (vec!["a".to_owned()], then.clone()));
    let (listed, list) = list_of(server.list(&[("limit", "1"), ("continue", token(&list))]).await);
    assert_eq!((listed, version(&list).to_string()), (vec!["b".to_owned()], then));
    assert_eq!(token(&list), "");
}

async fn exact_match_before_the_first_object_is_empty(server: Server) {
    let before = version(&server.list(&[]).await.expect(200)).to_string();
    server.create_secrets(&["a"]).await;
    let parameters = [("resourceVersion", before.as_str()), ("resourceVersionMatch", "Exact")];
    let (listed, list) = list_of(server.list(&parameters).await);
    assert_eq!((listed.len(), version(&list).to_string()), (0, before));
}

/// Uses events, which the server reads from etcd, so that compactions apply at once.
async fn exact_match_of_a_compacted_version_is_expired(server: Server) {
    let then = version(&server.create_secrets(&["a"]).await);
    let now = version(&server.create_secrets(&["b"]).await);
    server.compact(now).await;
    let path = format!("{}?resourceVersionMatch=Exact&resourceVersion={then}", server.core("events"));
    let message = "The resourceVersion for the provided list is too old.";
    server.get(&path).await.refused(410, "Expired", message);
}

/// Until an API server processes a compaction, its watch cache can serve states that etcd has
/// compacted. The watch cache keeps events longer than etcd.
async fn compacted_version_is_watched_but_not_listed(server: Server) {
    let then = version(&server.create_secrets(&["a"]).await).to_string();
    server.create_secrets(&["b"]).await;
    let page = server.list(&[("limit", "1")]).await.expect(200);
    let now = version(&server.label("a", "color", "red").await);
    let exactly_then = [("resourceVersion", then.as_str()), ("resourceVersionMatch", "Exact")];
    server.list(&exactly_then).await.expect(200);
    server.compact_for_all(now).await;

    let mut ticks = tokio::time::interval(POLL_INTERVAL);
    let forgotten = loop {
        ticks.tick().await;
        let answer = server.list(&exactly_then).await;
        if answer.code != 200 {
            break answer;
        }
    };
    forgotten.refused(410, "Expired", "The resourceVersion for the provided list is too old.");
    let answer = server.list(&[("limit", "1"), ("continue", token(&page))]).await;
    let message = "The provided continue parameter is too old to display a consistent list result. ";
    let rest = token(&answer.refused_with(410, "Expired", message).0).to_owned();
    assert_eq!(names(&server.list(&[("continue", &rest)]).await.expect(200)), ["b"]);
    let mut watch = server.watch(&[("resourceVersion", &then)]).await;
    assert_eq!(watch.briefs(2).await, ["ADDED b", "MODIFIED a"]);
}

fn is_too_large(answer: Answer) {
    assert_eq!(answer.header("retry-after"), "1");
    let part = format!("Timeout: Too large resource version: {FUTURE}, current: ");
    let refusal = answer.refused_with(504, "Timeout", &part);
    assert_eq!(refusal.details()["causes"][0]["reason"], "ResourceVersionTooLarge");
    assert_eq!(refusal.details()["retryAfterSeconds"], 1);
    assert_eq!(refusal.details()["causes"][0]["message"], "Too large resource version");
}

async fn list_of_a_future_version_times_out(server: Server) {
    is_too_large(server.list(&[("resourceVersion", FUTURE)]).await);
    is_too_large(server.list(&[("resourceVersion", FUTURE), ("resourceVersionMatch", "NotOlderThan")]).await);
}

async fn list_of_an_exact_future_version_times_out(server: Server) {
    is_too_large(server.list(&[("resourceVersion", FUTURE), ("resourceVersionMatch", "Exact")]).await);
}

async fn page_of_a_future_version_times_out(server: Server) {
    is_too_large(server.list(&[("resourceVersion", FUTURE), ("limit", "1")]).await);
}

/// Creates a secret, then requests a list at the next version while another secret is created.
/// Returns the next version and the response.
async fn list_at_the_next_version(server: &Server, first: &str, second: &str) -> (u64, Answer) {
    let next = version(&server.create_secrets(&[first]).await) + 1;
    let parameters =
        [("resourceVersion", next.to_string()), ("resourceVersionMatch", "NotOlderThan".to_owned())];
    let parameters = parameters.each_ref().map(|(name, value)| (*name, value.as_str()));
    let names = [second];
    let (answer, _) = tokio::join!(server.list(&parameters), server.create_secrets(&names));
    (next, answer)
}

async fn list_waits_for_a_near_future_version(server: Server) {
    let (mut next, mut answer) = list_at_the_next_version(&server, "a", "b").await;
    if server.is_real() && answer.code == 504 {
        // The timeout is three seconds. A busy machine may need that long to create a secret, but
        // hardly twice in a row.
        (next, answer) = list_at_the_next_version(&server, "c", "d").await;
    }
    assert!(version(&answer.expect(200)) >= next);
}

async fn get_accepts_a_minimum_version(server: Server) {
    let then = version(&server.create_secrets(&["a"]).await).to_string();
    for wanted in ["0", "1", &then] {
        let path = format!("{}?resourceVersion={wanted}", server.secret_path("a"));
        // Version 0 allows any state, even one from before the secret.
        server.list(&[]).await.expect(200);
        assert_eq!(version(&server.get(&path).await.expect(200)).to_string(), then);
    }
}

async fn get_of_a_future_version_times_out(server: Server) {
    server.create_secrets(&["a"]).await;
    is_too_large(server.get(&format!("{}?resourceVersion={FUTURE}", server.secret_path("a"))).await);
}

async fn get_with_an_invalid_version_is_an_internal_error(server: Server) {
    server.create_secrets(&["a"]).await;
    let answer = server.get(&format!("{}?resourceVersion=abc", server.secret_path("a"))).await;
    let message =
        "resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax";
    answer.refused(500, "", message);
}

async fn get_ignores_list_options(server: Server) {
    server.create_secrets(&["a"]).await;
    for query in [
        "limit=abc",
        "resourceVersionMatch=Exact",
        "sendInitialEvents=true",
        "watch=true",
        "labelSelector=a+b",
    ] {
        let object = server.get(&format!("{}?{query}", server.secret_path("a"))).await.expect(200);
        assert_eq!(object["kind"], "Secret", "{query}");
    }
}
