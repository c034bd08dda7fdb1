//! Error responses.

use std::io;
use std::time::Duration;

use informer_core::ListWatchError;
use informer_reflector::KubeListWatch;
use k8s_openapi::api::core::v1::Secret;

use super::server::{Server, answer, list_error, watch, watch_options, with_header};

#[tokio::test]
async fn status_error_keeps_the_server_status() {
    let expired = r#"{"kind":"Status","status":"Failure","message":"too old","reason":"Expired","code":410}"#;
    let error = list_error(answer(410, expired)).await;
    assert!(error.is_expired() && error.to_string().contains("too old"), "{error}");
    assert_eq!(error.retry_after(), None);

    let too_large = r#"{"kind":"Status","status":"Failure","reason":"Timeout","message":"m","details":
        {"retryAfterSeconds":1,"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}]}}"#;
    let error = list_error(answer(504, too_large)).await;
    assert!(error.is_too_large_resource_version(), "{error}");
    assert_eq!(error.status().map(|status| status.code), Some(504));
    assert_eq!(error.retry_after(), Some(Duration::from_secs(1)));
}

#[tokio::test]
async fn error_without_a_status_is_converted_to_one() {
    let overload = "Too many requests,\r\n please try again later.\u{1b}[2J\n";
    let error = list_error(with_header(answer(429, overload), "retry-after", "7")).await;
    assert!(error.is_too_many_requests());
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
    let text = error.to_string();
    assert!(text.contains("content type") && !text.contains("please try again"), "{text}");

    // A proxy's page may contain anything, including secrets.
    let page = format!("<html>{}</html>", "é ".repeat(10_000)).leak();
    let error = list_error(with_header(answer(502, page), "content-type", "text/html")).await;
    let text = error.to_string();
    assert!(text.contains("502") && text.contains("text/html") && !text.contains("<html>"), "{text}");
    assert!(text.len() < 500, "{} bytes", text.len());

    let not_a_status = list_error(answer(403, r#"{"error":"who are you?"}"#)).await;
    assert!(not_a_status.is_forbidden(), "{not_a_status}");
    let redirect = list_error(answer(302, "")).await;
    assert_eq!(redirect.status().map(|status| status.code), Some(302));
}

#[tokio::test]
async fn failure_status_in_a_200_response_is_an_error() {
    let status = r#"{"kind":"Status","status":"Failure","message":"no","reason":"Forbidden","code":403}"#;
    assert!(list_error(answer(200, status)).await.is_forbidden());

    let overload = r#"{"kind":"Status","status":"Failure","reason":"TooManyRequests","code":429,"details":
        {"retryAfterSeconds":7}}"#;
    let error = list_error(answer(200, overload)).await;
    assert!(error.is_too_many_requests());
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
}

#[tokio::test]
async fn foreign_response_is_described_and_not_quoted() {
    let page = || with_header(answer(200, "<html>hunter2</html>"), "content-type", "text/html");
    let error = list_error(page()).await;
    assert!(matches!(error, ListWatchError::Protocol(_)));
    let text = error.to_string();
    assert!(text.contains("not a Kubernetes list") && text.contains("text/html"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
    let secrets = KubeListWatch::<Secret>::all(Server::answering([page()]).client());
    let error = watch(&secrets, watch_options("1")).await.expect_err("an error");
    assert!(matches!(error, ListWatchError::Protocol(_)));
}

#[tokio::test]
async fn unreachable_server_error_has_its_cause() {
    let refused = io::Error::new(io::ErrorKind::ConnectionRefused, "connection refused");
    let error = list_error(Err(refused.into())).await;
    assert!(matches!(error, ListWatchError::Unreachable(_)), "{error}");
    assert!(error.to_string().contains("connection refused"), "{error}");
}
