//! Discovery, `OpenAPI`, and reviews.

use http::{Method, Request, StatusCode};
use serde_json::json;

use crate::definitions::{cron_tabs, define};
use crate::support::{body_of, call, get, names_of, send, simulator};

#[tokio::test]
async fn documents_are_in_json_only() {
    let simulator = simulator().await;
    for (accept, code) in [
        ("text/html", StatusCode::NOT_ACCEPTABLE),
        ("application/vnd.kubernetes.protobuf,application/json", StatusCode::OK),
    ] {
        let request = Request::get("/apis").header("accept", accept).body(Default::default()).unwrap();
        let response = send(&simulator, request).await;
        assert_eq!(response.status(), code, "{accept}");
        body_of(response).await;
    }
}

#[tokio::test]
async fn openapi_contains_the_documents_that_kubectl_requests() {
    let simulator = simulator().await;
    define(&simulator, &cron_tabs()).await;
    let (_, index) = get(&simulator, "/openapi/v3").await;
    let url = index["paths"]["apis/stable.example.com/v1"]["serverRelativeURL"].as_str().expect("a URL");
    let (_, document) = get(&simulator, url).await;
    let item = &document["paths"]["/apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}"];
    let parameters = names_of(&item["patch"]["parameters"], "name");
    assert!(parameters.contains(&"fieldValidation".to_owned()), "{parameters:?}");
    assert_eq!(item["patch"]["x-kubernetes-group-version-kind"]["kind"], "CronTab");
    let schema = &document["components"]["schemas"]["com.example.stable.v1.CronTab"];
    assert_eq!(schema["properties"]["spec"]["properties"]["cronSpec"]["type"], "string");

    // The URL changes with the content, so that clients can cache the document.
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/crontabs.stable.example.com";
    let (_, mut changed) = get(&simulator, path).await;
    changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = "Others.".into();
    let (code, _) = call(&simulator, Method::PUT, path, &changed).await;
    assert_eq!(code, StatusCode::OK);
    let (_, index) = get(&simulator, "/openapi/v3").await;
    assert_ne!(index["paths"]["apis/stable.example.com/v1"]["serverRelativeURL"], url);
}

#[tokio::test]
async fn self_subject_review_names_the_simulator_user() {
    let simulator = simulator().await;
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let (_, answer) = call(&simulator, Method::POST, path, &json!({})).await;
    assert_eq!(answer["status"]["userInfo"]["username"], "simulator");
}
