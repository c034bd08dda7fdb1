//! Invalid combinations of watch options, and their errors.

use crate::objects::version;
use crate::scenario::{Scenario, scenario};
use crate::server::Server;

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario(initial_events_need_a_version_match),
        scenario(version_match_of_a_watch_needs_initial_events),
        scenario(initial_events_with_an_exact_match_are_refused),
        scenario(version_of_a_watch_must_be_a_number),
        scenario(a_bad_label_selector_is_refused_before_the_stream),
        scenario(a_bad_field_selector_is_refused_before_the_stream),
        scenario(unversioned_watch_with_a_continue_token_is_refused),
        scenario(a_watch_from_a_version_ignores_limit_and_token),
        scenario(every_value_except_false_requests_a_watch),
        scenario(negative_timeout_expires_at_once),
        scenario(overflowing_timeout_expires_at_once),
    ]
}

/// Asserts that a watch with these parameters fails with this message.
pub(super) async fn is_invalid(server: &Server, parameters: &[(&str, &str)], message: &str) {
    let parameters = [&[("watch", "true"), ("timeoutSeconds", "1")], parameters].concat();
    let message = format!("ListOptions.meta.k8s.io \"\" is invalid: {message}");
    let refusal = server.list(&parameters).await.refused(422, "Invalid", &message);
    refusal.is_about("meta.k8s.io", "ListOptions", "");
}

pub(super) const NEEDS_MATCH: &str = "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";

pub(super) const NEEDS_INITIAL_EVENTS: &str = "resourceVersionMatch: Forbidden: \
    resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";

async fn initial_events_need_a_version_match(server: Server) {
    is_invalid(&server, &[("sendInitialEvents", "true")], NEEDS_MATCH).await;
    is_invalid(&server, &[("sendInitialEvents", "false")], NEEDS_MATCH).await;
}

async fn version_match_of_a_watch_needs_initial_events(server: Server) {
    is_invalid(&server, &[("resourceVersionMatch", "NotOlderThan")], NEEDS_INITIAL_EVENTS).await;
    let parameters = [("resourceVersion", "0"), ("resourceVersionMatch", "NotOlderThan")];
    is_invalid(&server, &parameters, NEEDS_INITIAL_EVENTS).await;
}

async fn initial_events_with_an_exact_match_are_refused(server: Server) {
    for given in ["Exact", "Sometimes"] {
        let message = format!(
            "[{NEEDS_MATCH}, resourceVersionMatch: Unsupported value: \"{given}\": supported values: \"NotOlderThan\"]"
        );
        let parameters = [("sendInitialEvents", "true"), ("resourceVersionMatch", given)];
        is_invalid(&server, &parameters, &message).await;
    }
}

async fn version_of_a_watch_must_be_a_number(server: Server) {
    for version in ["abc", "-1"] {
        let message = format!(
            "resourceVersion: Invalid value: \"{version}\": strconv.ParseUint: parsing \"{version}\": invalid syntax"
        );
        server.list(&[("watch", "1"), ("resourceVersion", version)]).await.refused(500, "", &message);
    }
}

async fn a_bad_label_selector_is_refused_before_the_stream(server: Server) {
    let answer = server.list(&[("watch", "1"), ("labelSelector", "a b")]).await;
    answer.refused_with(400, "BadRequest", "unable to parse requirement: found 'b', expected: ");
}

async fn a_bad_field_selector_is_refused_before_the_stream(server: Server) {
    let answer = server.list(&[("watch", "1"), ("fieldSelector", "spec.x=1")]).await;
    answer.refused(400, "BadRequest", "field label not supported: spec.x");
}

/// The server adds the defaults of a streaming list, which conflict with the token.
async fn unversioned_watch_with_a_continue_token_is_refused(server: Server) {
    let message =
        "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided";
    is_invalid(&server, &[("continue", "x")], message).await;
}

async fn a_watch_from_a_version_ignores_limit_and_token(server: Server) {
    let version = version(&server.create_secrets(&["a"]).await).to_string();
    server.create_secrets(&["b", "c"]).await;
    let parameters =
        [("resourceVersion", version.as_str()), ("limit", "1"), ("continue", "x"), ("timeoutSeconds", "5")];
    assert_eq!(server.watch(&parameters).await.rest().await, ["ADDED b", "ADDED c"]);
}

async fn every_value_except_false_requests_a_watch(server: Server) {
    for yes in ["1", "true", "maybe", ""] {
        let answer = server.list(&[("watch", yes), ("timeoutSeconds", "5")]).await;
        assert_eq!(answer.expect(200), serde_json::Value::Null, "{yes}");
    }
    for no in ["0", "false", "False"] {
        let list = server.list(&[("watch", no)]).await.expect(200);
        assert_eq!(list["kind"], "SecretList", "{no}");
    }
}

async fn expires_at_once(server: &Server, timeout: &str) {
    let from = version(&server.create_secrets(&["a"]).await).to_string();
    server.create_secrets(&["b"]).await;
    let rest = server.watch(&[("resourceVersion", &from), ("timeoutSeconds", timeout)]).await.rest().await;
    // A real server sends the event or the end, whichever Go's `select` picks first.
    assert!(rest.is_empty() || (server.is_real() && rest == ["ADDED b"]), "{rest:?}");
}

async fn negative_timeout_expires_at_once(server: Server) {
    expires_at_once(&server, "-1").await;
}

/// The timeout overflows 64-bit nanoseconds.
async fn overflowing_timeout_expires_at_once(server: Server) {
    expires_at_once(&server, "9223372036854775807").await;
}
