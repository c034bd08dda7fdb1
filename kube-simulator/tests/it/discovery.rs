//! Discovery, `OpenAPI`, and reviews.

use http::{Method, Request, StatusCode};
use kube_simulator::Simulator;
use serde_json::{Value, json};

use crate::definitions::{cron_tabs, define};
use crate::support::{body_of, call, get, names_of, send, simulator};

async fn accepting(simulator: &Simulator, path: &str, accept: &str) -> (StatusCode, String, Value) {
    let request = Request::get(path).header("accept", accept).body(Default::default()).expect("a request");
    let response = send(simulator, request).await;
    let content_type = response.headers()["content-type"].to_str().expect("text").to_owned();
    (response.status(), content_type, body_of(response).await)
}

fn named<'l>(list: &'l Value, field: &str, name: &str) -> &'l Value {
    let found = list.as_array().into_iter().flatten().find(|item| item[field] == name);
    found.unwrap_or_else(|| panic!("no {name} in {list}"))
}

#[tokio::test]
async fn separate_documents_list_groups_and_resources() {
    let simulator = simulator().await;
    assert_eq!(get(&simulator, "/api").await.1["versions"], json!(["v1"]));
    let (_, groups) = get(&simulator, "/apis").await;
    let apps = named(&groups["groups"], "name", "apps");
    assert_eq!(apps["preferredVersion"], json!({ "groupVersion": "apps/v1", "version": "v1" }));
    let (_, group) = get(&simulator, "/apis/apps").await;
    assert_eq!(group["kind"], "APIGroup");

    let (_, core) = get(&simulator, "/api/v1").await;
    let pods = named(&core["resources"], "name", "pods");
    assert_eq!(pods["shortNames"], json!(["po"]));
    assert_eq!(pods["categories"], json!(["all"]));
    assert_eq!((&pods["singularName"], &pods["namespaced"]), (&json!("pod"), &json!(true)));
    assert_eq!(pods["verbs"].as_array().map(Vec::len), Some(8));
    assert_eq!(named(&core["resources"], "name", "pods/eviction")["group"], "policy");
    assert_eq!(named(&core["resources"], "name", "nodes")["namespaced"], false);

    let (_, apps) = get(&simulator, "/apis/apps/v1").await;
    assert_eq!(named(&apps["resources"], "name", "deployments/scale")["kind"], "Scale");
    assert_eq!(get(&simulator, "/").await.1["paths"][0], "/api");
}

#[tokio::test]
async fn aggregated_discovery_is_served_on_request() {
    let simulator = simulator().await;
    let wanted = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
        application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
    let (_, content_type, all) = accepting(&simulator, "/apis", wanted).await;
    assert_eq!(content_type, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
    let apps =
        all["items"].as_array().unwrap().iter().find(|group| group["metadata"]["name"] == "apps").unwrap();
    let deployments = named(&apps["versions"][0]["resources"], "resource", "deployments");
    assert_eq!(
        deployments["responseKind"],
        json!({ "group": "apps", "version": "v1", "kind": "Deployment" })
    );
    assert_eq!(
        named(&deployments["subresources"], "subresource", "scale")["responseKind"]["group"],
        "autoscaling"
    );

    let (_, content_type, core) = accepting(&simulator, "/api", wanted).await;
    assert!(content_type.contains("as=APIGroupDiscoveryList"), "{content_type}");
    assert_eq!(core["items"][0]["versions"][0]["version"], "v1");
    let (_, content_type, plain) = accepting(&simulator, "/apis", "application/json").await;
    assert_eq!((content_type.as_str(), &plain["kind"]), ("application/json", &json!("APIGroupList")));
}

#[tokio::test]
async fn documents_are_in_json_only() {
    let simulator = simulator().await;
    assert_eq!(accepting(&simulator, "/apis", "text/html").await.0, StatusCode::NOT_ACCEPTABLE);
    let both = "application/vnd.kubernetes.protobuf,application/json";
    assert_eq!(accepting(&simulator, "/apis", both).await.0, StatusCode::OK);
}

#[tokio::test]
async fn discovery_follows_the_definitions() {
    let simulator = simulator().await;
    assert_eq!(
        names_of(&get(&simulator, "/apis").await.1["groups"], "name")
            .iter()
            .filter(|g| *g == "stable.example.com")
            .count(),
        0
    );
    define(&simulator, &cron_tabs()).await;
    let (_, group) = get(&simulator, "/apis/stable.example.com").await;
    assert_eq!(group["preferredVersion"]["version"], "v1");
    assert_eq!(names_of(&group["versions"], "version"), ["v1", "v1beta1"]);
    let (_, v1) = get(&simulator, "/apis/stable.example.com/v1").await;
    assert_eq!(names_of(&v1["resources"], "name"), ["crontabs", "crontabs/scale", "crontabs/status"]);
    assert_eq!(v1["resources"][0]["shortNames"], json!(["ct"]));
}

#[tokio::test]
async fn openapi_contains_what_kubectl_needs() {
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

    // The URL changes with the content, so that clients can cache documents.
    let mut changed = cron_tabs();
    changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = "Others.".into();
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/crontabs.stable.example.com";
    let (code, _) = call(&simulator, Method::PUT, path, &changed).await;
    assert_eq!(code, StatusCode::OK);
    let (_, index) = get(&simulator, "/openapi/v3").await;
    assert_ne!(index["paths"]["apis/stable.example.com/v1"]["serverRelativeURL"], url);
}

#[tokio::test]
async fn reviews_allow_every_action() {
    let simulator = simulator().await;
    let review = json!({ "spec": { "resourceAttributes": { "verb": "create", "resource": "pods" } } });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let (code, answer) = call(&simulator, Method::POST, path, &review).await;
    assert_eq!((code, &answer["status"]["allowed"]), (StatusCode::CREATED, &json!(true)));
    let (_, answer) =
        call(&simulator, Method::POST, "/apis/authentication.k8s.io/v1/selfsubjectreviews", &json!({})).await;
    assert_eq!(answer["status"]["userInfo"]["username"], "simulator");
}
