//! Indented JSON.

use http::Method;
use serde_json::Value;

use crate::answer::Answer;
use crate::scenario::{Scenario, scenario};
use crate::server::{Server, with_query};

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario(objects_are_indented_on_request),
        scenario(lists_are_indented_on_request),
        scenario(errors_are_indented_on_request),
        scenario(discovery_is_indented_on_request),
        scenario(accept_header_can_request_indentation),
        scenario(curl_and_browsers_get_indented_json),
        scenario(pretty_parameter_overrides_the_default_for_curl),
        scenario(other_values_of_pretty_mean_false),
        scenario(version_and_paths_are_always_indented),
        scenario(a_watch_is_never_indented),
        scenario(pretty_parameter_does_not_change_yaml),
    ]
}

const PRETTY: (&str, &str) = ("pretty", "true");

/// Asserts that JSON is indented by two spaces, without trailing spaces.
#[track_caller]
fn is_indented(answer: &Answer) {
    let text = std::str::from_utf8(&answer.bytes).expect("text");
    assert!(text.starts_with("{\n  \"") && text.ends_with("\n}"), "{text}");
    assert!(answer.body.is_object());
    // No line has more than one member, so nested objects are indented, too.
    let is_short = |line: &str| line.matches("\": ").count() <= 1;
    assert!(text.lines().all(is_short), "{text}");
}

/// Asserts that JSON is on one line.
#[track_caller]
fn is_on_one_line(answer: &Answer) {
    assert!(!answer.bytes.trim_ascii_end().contains(&b'\n'), "{}", answer.text());
    assert!(answer.body.is_object());
}

async fn objects_are_indented_on_request(server: Server) {
    server.create_secrets(&["a"]).await;
    let path = server.secret_path("a");
    let (plain, pretty) = (server.get(&path).await, server.get(&with_query(&path, &[PRETTY])).await);
    is_on_one_line(&plain);
    is_indented(&pretty);
    assert_eq!(plain.body, pretty.body);
    assert_eq!(pretty.header("content-type"), "application/json");
    let text = pretty.text();
    let begin = "{\n  \"kind\": \"Secret\",\n  \"apiVersion\": \"v1\",\n  \"metadata\": {\n    \"";
    assert!(text.starts_with(begin), "{text}");
}

async fn lists_are_indented_on_request(server: Server) {
    let empty = server.list(&[PRETTY]).await;
    assert!(empty.text().ends_with("  \"items\": []\n}"), "{}", empty.text());
    server.create_secrets(&["a", "b"]).await;
    let list = server.list(&[PRETTY]).await;
    is_indented(&list);
    assert_eq!(list.body["items"].as_array().map(Vec::len), Some(2));
}

async fn errors_are_indented_on_request(server: Server) {
    let refusal = server.get(&with_query(&server.secret_path("none"), &[PRETTY])).await;
    assert_eq!(refusal.code, 404);
    is_indented(&refusal);
}

async fn discovery_is_indented_on_request(server: Server) {
    for path in ["/api", "/apis", "/apis/apps", "/api/v1"] {
        is_on_one_line(&server.get(path).await);
        is_indented(&server.get(&with_query(path, &[PRETTY])).await);
    }
}

async fn accept_header_can_request_indentation(server: Server) {
    is_indented(&server.get_as(&server.secrets(), "application/json;pretty=1").await);
    is_on_one_line(&server.get_as(&server.secrets(), "application/json;pretty=0").await);
    is_indented(&server.get_as("/api/v1", "application/json;pretty=1").await);
}

/// Sends a request with this `User-Agent`.
async fn get_with(server: &Server, program: &str, parameters: &[(&str, &str)]) -> Answer {
    let path = with_query(&server.secrets(), parameters);
    server.call(Method::GET, &path, &[("user-agent", program)], "").await
}

async fn curl_and_browsers_get_indented_json(server: Server) {
    for program in ["curl/8.5.0", "Wget/1.21", "Mozilla/5.0 (X11; Linux x86_64)"] {
        is_indented(&get_with(&server, program, &[]).await);
    }
    is_on_one_line(&get_with(&server, "kubectl/v1.36.0", &[]).await);
}

async fn pretty_parameter_overrides_the_default_for_curl(server: Server) {
    is_on_one_line(&get_with(&server, "curl/8.5.0", &[("pretty", "false")]).await);
    is_indented(&get_with(&server, "curl/8.5.0", &[("pretty", "")]).await);
}

async fn other_values_of_pretty_mean_false(server: Server) {
    for yes in ["1", "t", "T", "TRUE", "True"] {
        is_indented(&server.list(&[("pretty", yes)]).await);
    }
    for no in ["0", "yes", "tRUE"] {
        is_on_one_line(&get_with(&server, "curl/8.5.0", &[("pretty", no)]).await);
    }
}

async fn version_and_paths_are_always_indented(server: Server) {
    is_indented(&server.get("/version").await);
    is_indented(&server.get("/").await);
}

async fn a_watch_is_never_indented(server: Server) {
    server.create_secrets(&["a"]).await;
    let mut watch = server.watch(&[PRETTY, ("timeoutSeconds", "10")]).await;
    assert_eq!(watch.rest().await, ["ADDED a"]);
    let path = with_query(&server.secrets(), &[PRETTY, ("watch", "true"), ("timeoutSeconds", "10")]);
    let lines = server.get(&path).await;
    assert_eq!(lines.bytes.iter().filter(|byte| **byte == b'\n').count(), 1, "{}", lines.text());
}

async fn pretty_parameter_does_not_change_yaml(server: Server) {
    let plain = server.get_as(&server.secrets(), "application/yaml").await;
    let path = with_query(&server.secrets(), &[PRETTY]);
    let pretty = server.get_as(&path, "application/yaml").await;
    assert_eq!((plain.code, pretty.code, &pretty.body), (200, 200, &Value::Null));
    assert_eq!(plain.text().lines().count(), pretty.text().lines().count());
}
