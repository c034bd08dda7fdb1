//! Paged lists and their continue tokens.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::objects::{labelled, names, token, version};
use crate::scenario::{Scenario, scenario};
use crate::server::{MERGE, Server, with_query};

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario(pages_show_the_state_of_the_first_page),
        scenario(page_has_the_remaining_item_count),
        scenario(a_page_that_ends_the_list_has_no_token),
        scenario(page_with_a_selector_has_no_remaining_item_count),
        scenario(page_with_a_selector_is_full_if_enough_objects_match),
        scenario(continue_token_continues_after_the_last_key),
        scenario(a_token_over_all_namespaces_names_the_namespace),
        scenario(a_continued_list_needs_no_limit),
        scenario(token_with_a_version_is_refused),
        scenario(token_with_version_0_is_accepted),
        scenario(a_token_must_be_base64),
        scenario(a_token_must_be_json),
        scenario(token_of_an_unknown_format_is_refused),
        scenario(token_without_a_resource_version_is_refused),
        scenario(token_without_a_start_key_is_refused),
        scenario(token_with_a_key_outside_its_list_is_refused),
        scenario(token_of_a_future_version_times_out),
        scenario(token_without_a_version_continues_in_the_latest_state),
        scenario(expired_token_is_answered_with_a_token_for_the_rest).alone(),
    ]
}

fn read(token: &str) -> Value {
    let json = BASE64_URL_SAFE_NO_PAD.decode(token).expect("unpadded URL-safe base64");
    serde_json::from_slice(&json).expect("JSON")
}

fn write(token: &Value) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(token.to_string())
}

async fn page(server: &Server, limit: &str, token: &str) -> Value {
    server.list(&[("limit", limit), ("continue", token)]).await.expect(200)
}

async fn refused_token(server: &Server, token: &str, why: &str) {
    let message = format!("invalid continue token: continue key is not valid: {why}");
    let answer = server.list(&[("limit", "1"), ("continue", token)]).await;
    answer.refused_with(400, "BadRequest", &message);
}

async fn pages_show_the_state_of_the_first_page(server: Server) {
    server.create_secrets(&["a", "b", "c", "d"]).await;
    let first = page(&server, "2", "").await;
    assert_eq!(names(&first), ["a", "b"]);
    server.delete(&server.secret_path("c")).await.expect(200);
    server.create_secrets(&["bb"]).await;
    let second = page(&server, "2", token(&first)).await;
    assert_eq!(names(&second), ["c", "d"]);
    assert_eq!(version(&second), version(&first));
}

async fn page_has_the_remaining_item_count(server: Server) {
    server.create_secrets(&["a", "b", "c"]).await;
    let first = page(&server, "1", "").await;
    assert_eq!(first["metadata"]["remainingItemCount"], 2);
    let second = page(&server, "1", token(&first)).await;
    assert_eq!(second["metadata"]["remainingItemCount"], 1);
    let third = page(&server, "1", token(&second)).await;
    assert!(third["metadata"].get("remainingItemCount").is_none(), "{third}");
}

async fn a_page_that_ends_the_list_has_no_token(server: Server) {
    server.create_secrets(&["a", "b"]).await;
    for limit in ["2", "3"] {
        let list = page(&server, limit, "").await;
        assert!(list["metadata"].get("continue").is_none(), "{list}");
    }
}

async fn make_selected(server: &Server) {
    for (name, app) in [("a", "web"), ("b", "db"), ("c", "web"), ("d", "web"), ("e", "db")] {
        server.create(&server.secrets(), &labelled(name, "app", app)).await;
    }
}

async fn page_with_a_selector_has_no_remaining_item_count(server: Server) {
    make_selected(&server).await;
    for selector in [("labelSelector", "app=web"), ("fieldSelector", "metadata.name!=x")] {
        let list = server.list(&[("limit", "2"), selector]).await.expect(200);
        assert_ne!(token(&list), "");
        assert!(list["metadata"].get("remainingItemCount").is_none(), "{list}");
    }
}

async fn page_with_a_selector_is_full_if_enough_objects_match(server: Server) {
    make_selected(&server).await;
    let first = server.list(&[("limit", "2"), ("labelSelector", "app=web")]).await.expect(200);
    assert_eq!(names(&first), ["a", "c"]);
    let parameters = [("limit", "2"), ("labelSelector", "app=web"), ("continue", token(&first))];
    assert_eq!(names(&server.list(&parameters).await.expect(200)), ["d"]);
}

async fn continue_token_continues_after_the_last_key(server: Server) {
    server.create_secrets(&["a", "b", "c"]).await;
    let list = page(&server, "2", "").await;
    let expected = json!({ "v": "meta.k8s.io/v1", "rv": version(&list), "start": "/b\u{0}" });
    assert_eq!(read(token(&list)), expected);
}

async fn a_token_over_all_namespaces_names_the_namespace(server: Server) {
    for name in ["a", "b"] {
        server.create(&server.secrets(), &labelled(name, "page", &server.namespace)).await;
    }
    let selector = format!("page={}", server.namespace);
    let parameters = [("limit", "1"), ("labelSelector", &selector)];
    let list = server.get(&with_query("/api/v1/secrets", &parameters)).await.expect(200);
    assert_eq!(read(token(&list))["start"], format!("/{}/a\u{0}", server.namespace));
    let parameters = [&parameters[..], &[("continue", token(&list))]].concat();
    let rest = server.get(&with_query("/api/v1/secrets", &parameters)).await.expect(200);
    assert_eq!(names(&rest), ["b"]);
}

async fn a_continued_list_needs_no_limit(server: Server) {
    server.create_secrets(&["a", "b", "c"]).await;
    let first = page(&server, "1", "").await;
    assert_eq!(names(&server.list(&[("continue", token(&first))]).await.expect(200)), ["b", "c"]);
}

async fn token_with_a_version_is_refused(server: Server) {
    server.create_secrets(&["a", "b"]).await;
    let first = page(&server, "1", "").await;
    let answer = server.list(&[("continue", token(&first)), ("resourceVersion", "5")]).await;
    answer.refused(400, "BadRequest", "specifying resource version is not allowed when using continue");
}

async fn token_with_version_0_is_accepted(server: Server) {
    server.create_secrets(&["a", "b"]).await;
    let first = page(&server, "1", "").await;
    let rest = server.list(&[("continue", token(&first)), ("resourceVersion", "0")]).await.expect(200);
    assert_eq!(names(&rest), ["b"]);
}

async fn a_token_must_be_base64(server: Server) {
    refused_token(&server, "!!!", "illegal base64 data at input byte 0").await;
    let padded = format!("{}=", write(&json!({ "v": "meta.k8s.io/v1", "rv": 5, "start": "/" })));
    refused_token(&server, &padded, "illegal base64 data at input byte ").await;
}

async fn a_token_must_be_json(server: Server) {
    refused_token(&server, "YWJj", "").await;
}

async fn token_of_an_unknown_format_is_refused(server: Server) {
    let unknown = write(&json!({ "v": "v0", "rv": 5, "start": "/a" }));
    refused_token(&server, &unknown, "server does not recognize this encoded version v0").await;
    refused_token(&server, &write(&json!({})), "server does not recognize this encoded version ").await;
}

async fn token_without_a_resource_version_is_refused(server: Server) {
    let zero = write(&json!({ "v": "meta.k8s.io/v1", "rv": 0, "start": "/a" }));
    let why = "incorrect encoded start resourceVersion (version meta.k8s.io/v1)";
    refused_token(&server, &zero, why).await;
}

async fn token_without_a_start_key_is_refused(server: Server) {
    let empty = write(&json!({ "v": "meta.k8s.io/v1", "rv": 5, "start": "" }));
    refused_token(&server, &empty, "encoded start key empty (version meta.k8s.io/v1)").await;
}

async fn token_with_a_key_outside_its_list_is_refused(server: Server) {
    for start in ["../x", "/../x"] {
        let outside = write(&json!({ "v": "meta.k8s.io/v1", "rv": 5, "start": start }));
        refused_token(&server, &outside, start).await;
    }
}

async fn token_of_a_future_version_times_out(server: Server) {
    let future = write(&json!({ "v": "meta.k8s.io/v1", "rv": 9_000_000_000_u64, "start": "/a\u{0}" }));
    let answer = server.list(&[("limit", "1"), ("continue", &future)]).await;
    answer.refused_with(504, "Timeout", "Too large resource version: 9000000000, current: ");
}

async fn token_without_a_version_continues_in_the_latest_state(server: Server) {
    let last = server.create_secrets(&["a", "b", "c"]).await;
    let latest = write(&json!({ "v": "meta.k8s.io/v1", "rv": -1, "start": "/b\u{0}" }));
    let list = page(&server, "5", &latest).await;
    assert_eq!(names(&list), ["c"]);
    assert!(version(&list) >= version(&last));
}

/// Uses events, which the server reads from etcd, so that compactions apply at once.
async fn expired_token_is_answered_with_a_token_for_the_rest(server: Server) {
    let path = server.core("events");
    for name in ["a", "b", "c"] {
        let about = json!({ "kind": "Secret", "namespace": server.namespace, "name": "none" });
        server.create(&path, &json!({ "metadata": { "name": name }, "involvedObject": about })).await;
    }
    let first = server.get(&with_query(&path, &[("limit", "1")])).await.expect(200);
    server.delete(&format!("{path}/b")).await.expect(200);
    let patch = json!({ "reason": "Changed" });
    let last = server.patch(&format!("{path}/c"), MERGE, &patch).await.expect(200);
    server.compact(version(&last)).await;

    let answer = server.get(&with_query(&path, &[("limit", "1"), ("continue", token(&first))])).await;
    let message = "The provided continue parameter is too old to display a consistent list result. ";
    let refusal = answer.refused_with(410, "Expired", message);
    let rest = token(&refusal.0);
    assert_eq!(read(rest), json!({ "v": "meta.k8s.io/v1", "rv": -1, "start": "a\u{0}" }));
    let list = server.get(&with_query(&path, &[("continue", rest)])).await.expect(200);
    assert_eq!(names(&list), ["c"]);
    assert!(version(&list) >= version(&last));
}
