//! Invalid combinations of list options, and their errors.

use crate::objects::names;
use crate::scenario::{Scenario, scenario};
use crate::server::Server;

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario(version_match_needs_a_resource_version),
        scenario(unknown_version_match_is_refused),
        scenario(exact_match_of_version_0_is_refused),
        scenario(version_match_with_a_continue_token_is_refused),
        scenario(initial_events_are_refused_for_lists),
        scenario(all_errors_are_reported_at_once),
        scenario(a_limit_must_be_a_number),
        scenario(a_limit_must_fit_into_64_bits),
        scenario(negative_limit_means_no_limit),
        scenario(a_timeout_must_be_a_number),
        scenario(version_of_a_list_must_be_a_number),
        scenario(leading_zeros_of_a_version_do_not_matter),
        scenario(empty_parameters_are_ignored),
        scenario(empty_number_is_refused),
        scenario(unknown_parameters_are_ignored),
        scenario(first_value_of_a_repeated_parameter_counts),
    ]
}

/// Asserts that a list with these parameters fails with these causes, given as reason and field.
async fn is_invalid(server: &Server, parameters: &[(&str, &str)], message: &str, causes: &[(&str, &str)]) {
    let message = format!("ListOptions.meta.k8s.io \"\" is invalid: {message}");
    let refusal = server.list(parameters).await.refused(422, "Invalid", &message);
    refusal.is_about("meta.k8s.io", "ListOptions", "");
    refusal.has_causes(causes);
}

async fn version_match_needs_a_resource_version(server: Server) {
    let message = "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided";
    let causes = [("FieldValueForbidden", "resourceVersionMatch")];
    is_invalid(&server, &[("resourceVersionMatch", "Exact")], message, &causes).await;
}

async fn unknown_version_match_is_refused(server: Server) {
    let message = "resourceVersionMatch: Unsupported value: \"Sometimes\": \
        supported values: \"Exact\", \"NotOlderThan\", \"\"";
    let causes = [("FieldValueNotSupported", "resourceVersionMatch")];
    let parameters = [("resourceVersion", "5"), ("resourceVersionMatch", "Sometimes")];
    is_invalid(&server, &parameters, message, &causes).await;
}

async fn exact_match_of_version_0_is_refused(server: Server) {
    let message = "resourceVersionMatch: Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
    let causes = [("FieldValueForbidden", "resourceVersionMatch")];
    let parameters = [("resourceVersion", "0"), ("resourceVersionMatch", "Exact")];
    is_invalid(&server, &parameters, message, &causes).await;
}

async fn version_match_with_a_continue_token_is_refused(server: Server) {
    let message =
        "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided";
    let causes = [("FieldValueForbidden", "resourceVersionMatch")];
    let parameters = [("resourceVersion", "0"), ("resourceVersionMatch", "NotOlderThan"), ("continue", "x")];
    is_invalid(&server, &parameters, message, &causes).await;
}

async fn initial_events_are_refused_for_lists(server: Server) {
    for value in ["true", "false", "maybe"] {
        let message = "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list";
        let causes = [("FieldValueForbidden", "sendInitialEvents")];
        is_invalid(&server, &[("sendInitialEvents", value)], message, &causes).await;
    }
}

async fn all_errors_are_reported_at_once(server: Server) {
    let parameters =
        [("resourceVersionMatch", "Sometimes"), ("sendInitialEvents", "true"), ("continue", "x")];
    let refusal =
        server.list(&parameters).await.refused_with(422, "Invalid", "is invalid: [resourceVersionMatch: ");
    refusal.has_causes(&[
        ("FieldValueForbidden", "resourceVersionMatch"),
        ("FieldValueForbidden", "resourceVersionMatch"),
        ("FieldValueNotSupported", "resourceVersionMatch"),
        ("FieldValueForbidden", "sendInitialEvents"),
    ]);
}

async fn a_limit_must_be_a_number(server: Server) {
    let answer = server.list(&[("limit", "abc")]).await;
    answer.refused(400, "BadRequest", "strconv.ParseInt: parsing \"abc\": invalid syntax");
}

async fn a_limit_must_fit_into_64_bits(server: Server) {
    let answer = server.list(&[("limit", "99999999999999999999")]).await;
    let message = "strconv.ParseInt: parsing \"99999999999999999999\": value out of range";
    answer.refused(400, "BadRequest", message);
}

async fn negative_limit_means_no_limit(server: Server) {
    server.create_secrets(&["a", "b"]).await;
    assert_eq!(names(&server.list(&[("limit", "-1")]).await.expect(200)), ["a", "b"]);
}

async fn a_timeout_must_be_a_number(server: Server) {
    let answer = server.list(&[("timeoutSeconds", "soon")]).await;
    answer.refused(400, "BadRequest", "strconv.ParseInt: parsing \"soon\": invalid syntax");
}

async fn version_of_a_list_must_be_a_number(server: Server) {
    for version in ["abc", "-1", "+1", "1.5"] {
        let message = format!(
            "invalid resource version: resourceVersion: Invalid value: \"{version}\": \
             strconv.ParseUint: parsing \"{version}\": invalid syntax"
        );
        server.list(&[("resourceVersion", version)]).await.refused(400, "BadRequest", &message);
    }
}

async fn leading_zeros_of_a_version_do_not_matter(server: Server) {
    server.create_secrets(&["a"]).await;
    // This list brings the watch cache up to date.
    server.list(&[]).await.expect(200);
    assert_eq!(names(&server.list(&[("resourceVersion", "01")]).await.expect(200)), ["a"]);
}

async fn empty_parameters_are_ignored(server: Server) {
    server.create_secrets(&["a"]).await;
    let parameters =
        ["resourceVersion", "resourceVersionMatch", "continue", "labelSelector", "fieldSelector"];
    let parameters = parameters.map(|name| (name, ""));
    assert_eq!(names(&server.list(&parameters).await.expect(200)), ["a"]);
}

async fn empty_number_is_refused(server: Server) {
    for name in ["limit", "timeoutSeconds"] {
        let answer = server.list(&[(name, "")]).await;
        answer.refused(400, "BadRequest", "strconv.ParseInt: parsing \"\": invalid syntax");
    }
}

async fn unknown_parameters_are_ignored(server: Server) {
    server.create_secrets(&["a"]).await;
    // The last parameter belongs to a disabled feature.
    let parameters = [("colour", "green"), ("Limit", "x"), ("shardSelector", "nonsense")];
    assert_eq!(names(&server.list(&parameters).await.expect(200)), ["a"]);
}

async fn first_value_of_a_repeated_parameter_counts(server: Server) {
    server.create_secrets(&["a", "b", "c"]).await;
    let parameters = [("limit", "1"), ("limit", "2")];
    assert_eq!(names(&server.list(&parameters).await.expect(200)), ["a"]);
}
