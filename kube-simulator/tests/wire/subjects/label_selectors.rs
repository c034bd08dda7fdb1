//! Label selectors: the operators, and errors.

use serde_json::json;

use crate::objects::{names, secret};
use crate::scenario::{Scenario, scenario};
use crate::server::Server;

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario(equality_selects_objects_with_the_value),
        scenario(inequality_also_selects_objects_without_the_label),
        scenario(in_selects_objects_with_one_of_the_values),
        scenario(notin_also_selects_objects_without_the_label),
        scenario(existence_and_absence_of_a_label),
        scenario(numbers_are_compared_as_numbers),
        scenario(all_requirements_must_match),
        scenario(empty_value_can_be_selected),
        scenario(set_with_the_empty_value_is_accepted),
        scenario(space_around_operators_does_not_matter),
        scenario(operator_words_are_accepted_as_names_and_values),
        scenario(label_with_a_prefix_is_accepted),
        scenario(unknown_operator_is_refused),
        scenario(a_set_without_parentheses_is_refused),
        scenario(malformed_set_is_refused),
        scenario(operator_sign_as_a_value_is_refused),
        scenario(empty_requirement_is_refused),
        scenario(text_after_a_requirement_is_refused),
        scenario(an_invalid_label_in_a_selector_is_refused),
        scenario(an_invalid_value_in_a_selector_is_refused),
        scenario(all_invalid_values_of_a_set_are_reported),
        scenario(bound_without_a_number_is_refused),
        scenario(bound_that_is_not_a_label_value_is_refused),
    ]
}

/// Creates the secrets that the selectors select.
async fn make(server: &Server) {
    for (name, labels) in [
        ("a", json!({ "app": "web", "tier": "front", "level": "3" })),
        ("b", json!({ "app": "db", "tier": "back", "level": "10" })),
        ("c", json!({ "app": "" })),
        ("d", json!({ "wire.test/in": "notin", "in": "in" })),
        ("e", json!(null)),
    ] {
        let mut object = secret(name);
        object["metadata"]["labels"] = labels;
        server.create(&server.secrets(), &object).await;
    }
}

async fn select(server: &Server, selector: &str) -> String {
    let list = server.list(&[("labelSelector", selector)]).await.expect(200);
    names(&list).concat()
}

/// Asserts the selected secrets. Each case is a selector, and the names of the selected secrets in
/// one string.
async fn all_select(server: Server, cases: &[(&str, &str)]) {
    make(&server).await;
    for (selector, expected) in cases {
        assert_eq!(select(&server, selector).await, *expected, "{selector}");
    }
}

/// Asserts that selectors fail with messages that start with the given strings.
async fn all_refused(server: Server, cases: &[(&str, &str)]) {
    for (selector, message) in cases {
        let refusal =
            server.list(&[("labelSelector", selector)]).await.refused_with(400, "BadRequest", message);
        assert!(refusal.message().starts_with(message), "{selector}: {}", refusal.message());
    }
}

async fn equality_selects_objects_with_the_value(server: Server) {
    all_select(server, &[("app=web", "a"), ("app==web", "a"), ("app=other", ""), ("gone=x", "")]).await;
}

async fn inequality_also_selects_objects_without_the_label(server: Server) {
    all_select(server, &[("app!=web", "bcde"), ("gone!=x", "abcde")]).await;
}

async fn in_selects_objects_with_one_of_the_values(server: Server) {
    all_select(server, &[("app in (web,db)", "ab"), ("app in (web)", "a"), ("app in(x,db)", "b")]).await;
}

async fn notin_also_selects_objects_without_the_label(server: Server) {
    all_select(server, &[("app notin (web,db)", "cde"), ("gone notin (x)", "abcde")]).await;
}

async fn existence_and_absence_of_a_label(server: Server) {
    all_select(server, &[("app", "abc"), ("!app", "de"), ("! app", "de"), ("gone", ""), ("!gone", "abcde")])
        .await;
}

async fn numbers_are_compared_as_numbers(server: Server) {
    // As strings, "10" would be less than "3". The labels of the other objects are not numbers.
    all_select(
        server,
        &[("level>3", "b"), ("level>2", "ab"), ("level<10", "a"), ("app<5", ""), ("gone>0", "")],
    )
    .await;
}

async fn all_requirements_must_match(server: Server) {
    all_select(
        server,
        &[("app,tier=front", "a"), ("app in (web,db),tier notin (back)", "a"), ("app=web,app=db", "")],
    )
    .await;
}

async fn empty_value_can_be_selected(server: Server) {
    all_select(server, &[("app=", "c"), ("app!=", "abde"), ("app=,tier", "")]).await;
}

async fn set_with_the_empty_value_is_accepted(server: Server) {
    all_select(server, &[("app in ()", "c"), ("app in (web,)", "ac"), ("app in (web,,db)", "abc")]).await;
}

async fn space_around_operators_does_not_matter(server: Server) {
    all_select(server, &[(" app = web ", "a"), ("app  in  ( web , db ) , tier", "ab"), ("app\n=web", "a")])
        .await;
}

async fn operator_words_are_accepted_as_names_and_values(server: Server) {
    all_select(server, &[("in", "d"), ("in=in", "d"), ("in in (in)", "d"), ("notin=x", "")]).await;
}

async fn label_with_a_prefix_is_accepted(server: Server) {
    all_select(
        server,
        &[("wire.test/in", "d"), ("wire.test/in=notin", "d"), ("wire.test/in!=notin", "abce")],
    )
    .await;
}

async fn unknown_operator_is_refused(server: Server) {
    let expected = "expected: in, notin, =, ==, !=, gt, lt";
    let cases = [("a b", 'b'), ("a b c", 'b')]
        .map(|(s, found)| (s, format!("unable to parse requirement: found '{found}', {expected}")));
    all_refused(server, &cases.each_ref().map(|(s, message)| (*s, message.as_str()))).await;
}

async fn a_set_without_parentheses_is_refused(server: Server) {
    let cases = [
        ("a in x", "unable to parse requirement: found 'x' expected: '('"),
        ("a in (x", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in", "unable to parse requirement: found '' expected: '('"),
        ("()", "found '(', expected: !, identifier, or 'end of string'"),
    ];
    all_refused(server, &cases).await;
}

async fn malformed_set_is_refused(server: Server) {
    let cases = [
        ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
        ("a in (=)", "unable to parse requirement: found '=', expected: ',', ')' or identifier"),
        ("a in (x y)", "unable to parse requirement: found 'y', expected: ',' or ')'"),
        ("a in (x,", "unable to parse requirement: found '', expected: ',', or identifier"),
        ("a in (x,=", "unable to parse requirement: found '=', expected: ',', or identifier"),
    ];
    all_refused(server, &cases).await;
}

async fn operator_sign_as_a_value_is_refused(server: Server) {
    let cases = [
        ("a===b", "unable to parse requirement: found '=', expected: identifier"),
        ("a=(b)", "unable to parse requirement: found '(', expected: identifier"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
    ];
    all_refused(server, &cases).await;
}

async fn empty_requirement_is_refused(server: Server) {
    let cases = [
        ("a,", "found '', expected: identifier after ','"),
        ("a,,b", "found ',', expected: identifier after ','"),
        (",a", "found ',', expected: !, identifier, or 'end of string'"),
    ];
    all_refused(server, &cases).await;
}

async fn text_after_a_requirement_is_refused(server: Server) {
    let cases = [
        ("a in (x) b", "found 'b', expected: ',' or 'end of string'"),
        ("a in (x)b", "found 'b', expected: ',' or 'end of string'"),
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("=x", "found '=', expected: !, identifier, or 'end of string'"),
    ];
    all_refused(server, &cases).await;
}

async fn an_invalid_label_in_a_selector_is_refused(server: Server) {
    let cases = [
        ("-a=b", "unable to parse requirement: <nil>: Invalid value: \"-a\": name part must consist of "),
        ("/a=b", "unable to parse requirement: <nil>: Invalid value: \"/a\": prefix part must be non-empty"),
        ("x/=b", "unable to parse requirement: <nil>: Invalid value: \"x/\": name part must be non-empty; "),
        (
            "X.y/a",
            "unable to parse requirement: <nil>: Invalid value: \"X.y/a\": prefix part a lowercase RFC 1123 ",
        ),
    ];
    all_refused(server, &cases).await;
}

async fn an_invalid_value_in_a_selector_is_refused(server: Server) {
    let long = "x".repeat(64);
    let too_long = format!(
        "unable to parse requirement: values[0][a]: Invalid value: \"{long}\": must be no more than 63 bytes"
    );
    let selector = format!("a={long}");
    let cases = [
        (
            "a=-b",
            "unable to parse requirement: values[0][a]: Invalid value: \"-b\": a valid label must be an empty ",
        ),
        (selector.as_str(), too_long.as_str()),
    ];
    all_refused(server, &cases).await;
}

async fn all_invalid_values_of_a_set_are_reported(server: Server) {
    let second = "values[1][a]: Invalid value: \"-c\": a valid label must be an empty ";
    // The values are sorted, and each value is reported once.
    let answer = server.list(&[("labelSelector", "a in (x,-c,-b,-c)")]).await;
    let refusal = answer.refused_with(400, "BadRequest", second);
    let first = "unable to parse requirement: [values[0][a]: Invalid value: \"-b\": a valid label ";
    assert!(refusal.message().starts_with(first), "{}", refusal.message());
    assert_eq!(refusal.message().matches("Invalid value").count(), 2, "{}", refusal.message());
}

async fn bound_without_a_number_is_refused(server: Server) {
    let message = "unable to parse requirement: values[0]: Invalid value: \"x\": \
        for 'Gt', 'Lt' operators, the value must be an integer";
    all_refused(server, &[("a>x", message), ("a<x", message)]).await;
}

async fn bound_that_is_not_a_label_value_is_refused(server: Server) {
    let cases = [
        (
            "a>-1",
            "unable to parse requirement: values[0][a]: Invalid value: \"-1\": a valid label must be an empty ",
        ),
        (
            "a<-",
            "unable to parse requirement: [values[0]: Invalid value: \"-\": for 'Gt', 'Lt' operators, the \
             value must be an integer, values[0][a]: Invalid value: \"-\": a valid label must be an empty ",
        ),
    ];
    all_refused(server, &cases).await;
}
