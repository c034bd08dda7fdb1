//! Custom resource definitions: the server serves and validates their resources, and deletes them
//! with the definition.

use http::{Method, StatusCode};
use kube_simulator::Simulator;
use serde_json::{Value, json};

use crate::support::{Lines, call, get, names, patch, request, send};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub(crate) const DEFINITION: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/crontabs.stable.example.com";
pub(crate) const CRON_TABS: &str = "/apis/stable.example.com/v1/namespaces/a/crontabs";

/// Returns a custom resource definition with two versions. Only the first version has subresources,
/// and a schema with fields.
pub(crate) fn cron_tabs() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "crontabs.stable.example.com" },
        "spec": {
            "group": "stable.example.com",
            "scope": "Namespaced",
            "names": { "plural": "crontabs", "kind": "CronTab", "shortNames": ["ct"] },
            "versions": [
                {
                    "name": "v1",
                    "served": true,
                    "storage": true,
                    "subresources": {
                        "status": {},
                        "scale": { "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas" },
                    },
                    "additionalPrinterColumns": [
                        { "name": "Spec", "type": "string", "jsonPath": ".spec.cronSpec" },
                        { "name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas" },
                    ],
                    "selectableFields": [{ "jsonPath": ".spec.image" }],
                    "schema": { "openAPIV3Schema": schema() },
                },
                {
                    "name": "v1beta1",
                    "served": true,
                    "storage": false,
                    "schema": { "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": true,
                    } },
                },
            ],
        },
    })
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["cronSpec"],
                "properties": {
                    "cronSpec": { "type": "string" },
                    "image": { "type": "string", "default": "busybox" },
                    "replicas": { "type": "integer", "minimum": 1 },
                    "policy": { "type": "string", "enum": ["Allow", "Forbid"] },
                    "env": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                        "items": {
                            "type": "object",
                            "required": ["name"],
                            "properties": {
                                "name": { "type": "string" },
                                "value": { "type": "string" },
                            },
                        },
                    },
                    "free": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                },
            },
            "status": { "type": "object", "properties": { "replicas": { "type": "integer" } } },
        },
    })
}

pub(crate) fn cron_tab(name: &str) -> Value {
    json!({
        "apiVersion": "stable.example.com/v1",
        "kind": "CronTab",
        "metadata": { "name": name },
        "spec": { "cronSpec": "* * *", "replicas": 2 },
    })
}

pub(crate) async fn define(simulator: &Simulator, definition: &Value) {
    let (code, answer) = call(simulator, Method::POST, DEFINITIONS, definition).await;
    assert_eq!(code, StatusCode::CREATED, "{answer}");
}

async fn simulator() -> Simulator {
    let simulator = crate::support::simulator().await;
    define(&simulator, &cron_tabs()).await;
    simulator
}

async fn post(simulator: &Simulator, object: &Value) -> (StatusCode, Value) {
    call(simulator, Method::POST, CRON_TABS, object).await
}

#[tokio::test]
async fn unknown_fields_are_pruned_and_defaults_filled_in() {
    let simulator = simulator().await;
    let mut tab = cron_tab("one");
    tab["spec"]["unknown"] = 1.into();
    tab["spec"]["free"] = json!({ "anything": { "goes": true } });
    tab["spec"]["env"] = json!([{ "name": "A", "unknown": 1 }]);
    let (_, created) = post(&simulator, &tab).await;
    let expected = json!({
        "cronSpec": "* * *",
        "replicas": 2,
        "image": "busybox",
        "free": { "anything": { "goes": true } },
        "env": [{ "name": "A" }],
    });
    assert_eq!(created["spec"], expected);
}

#[tokio::test]
async fn schema_that_is_not_an_object_is_refused() {
    let simulator = crate::support::simulator().await;
    for schema in [json!("x"), json!(true), json!([])] {
        let mut definition = cron_tabs();
        definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema;
        let (code, answer) = call(&simulator, Method::POST, DEFINITIONS, &definition).await;
        assert_eq!(code, StatusCode::UNPROCESSABLE_ENTITY, "{answer}");
    }
}

#[tokio::test]
async fn schema_violations_are_all_reported() {
    let simulator = simulator().await;
    let mut tab = cron_tab("one");
    tab["spec"] = json!({ "replicas": 0, "policy": "Never", "env": [{}], "image": 7 });
    let (code, refusal) = post(&simulator, &tab).await;
    assert_eq!(code, StatusCode::UNPROCESSABLE_ENTITY);
    let causes = refusal["details"]["causes"].as_array().unwrap();
    let mut found: Vec<(&str, &str)> = causes
        .iter()
        .map(|cause| (cause["field"].as_str().unwrap(), cause["reason"].as_str().unwrap()))
        .collect();
    found.sort_unstable();
    let expected = [
        ("spec.cronSpec", "FieldValueRequired"),
        ("spec.env[0].name", "FieldValueRequired"),
        ("spec.image", "FieldValueTypeInvalid"),
        ("spec.policy", "FieldValueNotSupported"),
        ("spec.replicas", "FieldValueInvalid"),
    ];
    assert_eq!(found, expected);
}

#[tokio::test]
async fn applied_lists_are_merged_by_the_keys_of_the_schema() {
    let simulator = simulator().await;
    for (manager, name) in [("one", "A"), ("two", "B")] {
        let mut tab = cron_tab("one");
        tab["spec"]["env"] = json!([{ "name": name, "value": "1" }]);
        let path = format!("{CRON_TABS}/one?fieldManager={manager}");
        let (code, answer) = patch(&simulator, &path, "apply-patch", &tab).await;
        assert!(code.is_success(), "{answer}");
    }
    let (_, tab) = get(&simulator, &format!("{CRON_TABS}/one")).await;
    assert_eq!(tab["spec"]["env"], json!([{ "name": "A", "value": "1" }, { "name": "B", "value": "1" }]));
}

#[tokio::test]
async fn deleted_definition_waits_for_objects_with_finalizers() {
    let simulator = simulator().await;
    let mut held = cron_tab("held");
    held["metadata"]["finalizers"] = json!(["example.com/wait"]);
    post(&simulator, &held).await;
    call(&simulator, Method::DELETE, DEFINITION, &Value::Null).await;
    assert_eq!(get(&simulator, DEFINITION).await.0, StatusCode::OK);
    let released = json!({ "metadata": { "finalizers": null } });
    let code = patch(&simulator, &format!("{CRON_TABS}/held"), "merge-patch", &released).await.0;
    assert_eq!(code, StatusCode::OK);
    assert_eq!(get(&simulator, DEFINITION).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn unserved_version_is_not_found_and_its_watches_end() {
    let simulator = simulator().await;
    let beta = "/apis/stable.example.com/v1beta1/namespaces/a/crontabs";
    let mut watch = Lines::open(&simulator, &format!("{beta}?watch=true&resourceVersion=0")).await;
    let mut versions = cron_tabs()["spec"]["versions"].clone();
    versions[1]["served"] = false.into();
    let changed = json!({ "spec": { "versions": versions } });
    assert_eq!(patch(&simulator, DEFINITION, "merge-patch", &changed).await.0, StatusCode::OK);
    assert!(watch.next().await.is_none());
    assert_eq!(get(&simulator, CRON_TABS).await.0, StatusCode::OK);
    let gone = http::Request::get(beta).body(Default::default()).unwrap();
    assert_eq!(send(&simulator, gone).await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn label_on_a_definition_does_not_end_watches() {
    let simulator = crate::support::simulator().await;
    simulator.create(&cron_tabs()).expect("a new definition");
    let mut watch = Lines::open(&simulator, &format!("{CRON_TABS}?watch=true&resourceVersion=0")).await;
    // The definition was stored without the defaults, which this request adds.
    let label = json!({ "metadata": { "labels": { "app": "cron" } } });
    let (code, definition) = patch(&simulator, DEFINITION, "merge-patch", &label).await;
    assert_eq!((code, &definition["spec"]["names"]["listKind"]), (StatusCode::OK, &json!("CronTabList")));
    // A watch that ends sends its unsent events first.
    for name in ["one", "two"] {
        post(&simulator, &cron_tab(name)).await;
        assert_eq!(watch.next().await.expect("the watch continues")["object"]["metadata"]["name"], name);
    }
}

#[tokio::test]
async fn slow_watch_of_a_deleted_definition_gets_all_its_events() {
    let simulator = simulator().await;
    let version = get(&simulator, CRON_TABS).await.1["metadata"]["resourceVersion"].clone();
    let from = version.as_str().expect("a version");
    let mut watch = Lines::open(&simulator, &format!("{CRON_TABS}?watch=true&resourceVersion={from}")).await;
    for name in ["one", "two"] {
        let mut tab = cron_tab(name);
        // An event fills the watch's buffer.
        tab["spec"]["image"] = "x".repeat(70_000).into();
        post(&simulator, &tab).await;
    }
    let mut events = vec![watch.brief().await];
    let (code, _) = call(&simulator, Method::DELETE, DEFINITION, &Value::Null).await;
    assert_eq!(code, StatusCode::OK);
    while let Some(event) = watch.brief().await {
        events.push(Some(event));
    }
    let types: Vec<String> = events.into_iter().flatten().map(|(event_type, ..)| event_type).collect();
    assert_eq!(types, ["ADDED", "ADDED", "DELETED", "DELETED"]);
}

#[tokio::test]
async fn strict_patch_ignores_stored_unknown_fields() {
    let simulator = simulator().await;
    let mut tab = cron_tab("one");
    tab["spec"]["stored"] = json!(1);
    tab["metadata"]["namespace"] = json!("a");
    simulator.create(&tab).expect("a new object");
    let path = format!("{CRON_TABS}/one?fieldValidation=Strict");
    let image = json!({ "spec": { "image": "b" } });
    assert_eq!(patch(&simulator, &path, "merge-patch", &image).await.0, StatusCode::OK);
    let unknown = json!({ "spec": { "unknown": 1 } });
    assert_eq!(patch(&simulator, &path, "merge-patch", &unknown).await.0, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn updated_definition_replaces_the_selectable_fields() {
    let simulator = simulator().await;
    post(&simulator, &cron_tab("one")).await;
    let mut versions = cron_tabs()["spec"]["versions"].clone();
    versions[0]["selectableFields"] = json!([{ "jsonPath": ".spec.replicas" }]);
    let changed = json!({ "spec": { "versions": versions } });
    assert_eq!(patch(&simulator, DEFINITION, "merge-patch", &changed).await.0, StatusCode::OK);
    post(&simulator, &cron_tab("two")).await;
    for (replicas, expected) in [(2, vec!["one", "two"]), (3, Vec::new())] {
        let path = format!("{CRON_TABS}?fieldSelector=spec.replicas%3D{replicas}");
        assert_eq!(names(&get(&simulator, &path).await.1), expected);
    }
    let (code, _) = get(&simulator, &format!("{CRON_TABS}?fieldSelector=spec.image%3Dbusybox")).await;
    assert_eq!(code, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn backup_contains_objects_without_a_served_version() {
    let simulator = simulator().await;
    post(&simulator, &cron_tab("one")).await;
    let mut unserved = cron_tabs()["spec"]["versions"].clone();
    for version in unserved.as_array_mut().unwrap() {
        version["served"] = false.into();
    }
    let unserved = json!({ "spec": { "versions": unserved } });
    assert_eq!(patch(&simulator, DEFINITION, "merge-patch", &unserved).await.0, StatusCode::OK);
    let backup = simulator.backup();
    simulator.restore(&backup);
    let served = json!({ "spec": { "versions": cron_tabs()["spec"]["versions"] } });
    assert_eq!(patch(&simulator, DEFINITION, "merge-patch", &served).await.0, StatusCode::OK);
    assert_eq!(names(&get(&simulator, CRON_TABS).await.1), ["one"]);
}

#[tokio::test]
async fn backup_restores_objects_after_a_storage_version_change() {
    let simulator = simulator().await;
    post(&simulator, &cron_tab("one")).await;
    let mut versions = cron_tabs()["spec"]["versions"].clone();
    versions[0]["storage"] = false.into();
    versions[1]["storage"] = true.into();
    let changed = json!({ "spec": { "versions": versions } });
    assert_eq!(patch(&simulator, DEFINITION, "merge-patch", &changed).await.0, StatusCode::OK);
    let backup = simulator.backup();
    call(&simulator, Method::DELETE, DEFINITION, &Value::Null).await;
    assert_eq!(get(&simulator, DEFINITION).await.0, StatusCode::NOT_FOUND);
    simulator.restore(&backup);
    assert_eq!(names(&get(&simulator, CRON_TABS).await.1), ["one"]);
    let beta = "/apis/stable.example.com/v1beta1/namespaces/a/crontabs/one";
    assert_eq!(get(&simulator, beta).await.1["apiVersion"], "stable.example.com/v1beta1");
}

#[tokio::test]
async fn restored_backup_restores_its_definitions() {
    let simulator = crate::support::simulator().await;
    let without = simulator.backup();
    define(&simulator, &cron_tabs()).await;
    post(&simulator, &cron_tab("one")).await;
    let with = simulator.backup();
    simulator.restore_ahead(&without, 10);
    let gone = http::Request::get(CRON_TABS).body(Default::default()).unwrap();
    assert_eq!(send(&simulator, gone).await.status(), StatusCode::NOT_FOUND);
    simulator.restore_ahead(&with, 10);
    assert_eq!(names(&get(&simulator, CRON_TABS).await.1), ["one"]);
}

/// Sends a write and returns the warnings of the response.
async fn warnings(simulator: &Simulator, path: &str, object: &Value) -> Vec<String> {
    let response = send(simulator, request(Method::POST, path, object)).await;
    assert_eq!(response.status(), StatusCode::CREATED);
    let warnings = response.headers().get_all("warning").iter();
    warnings.map(|warning| warning.to_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn unchecked_schema_rules_give_warnings() {
    let simulator = crate::support::simulator().await;
    let mut definition = cron_tabs();
    let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let spec = &mut schema["properties"]["spec"];
    spec["properties"]["cronSpec"]["pattern"] = "^[0-9* ]+$".into();
    spec["properties"]["image"]["format"] = "uri".into();
    spec["properties"]["replicas"]["format"] = "int32".into();
    spec["properties"]["replicas"]["multipleOf"] = 2.into();
    spec["properties"]["env"]["uniqueItems"] = false.into();
    spec["x-kubernetes-validations"] = json!([{ "rule": "self.replicas < 10" }]);
    spec["properties"]["port"] = json!({
        "x-kubernetes-int-or-string": true,
        "anyOf": [{ "type": "integer" }, { "type": "string" }],
    });
    define(&simulator, &definition).await;
    let mut tab = cron_tab("one");
    tab["spec"]["port"] = "http".into();
    let warning = |keyword: &str, field: &str| {
        format!("299 - \"the simulator does not check the schema's \\\"{keyword}\\\" for {field}\"")
    };
    let expected = [
        warning("format", "spec.image"),
        warning("multipleOf", "spec.replicas"),
        warning("pattern", "spec.cronSpec"),
        warning("x-kubernetes-validations", "spec"),
    ];
    assert_eq!(warnings(&simulator, CRON_TABS, &tab).await, expected);
}

#[tokio::test]
async fn checked_schema_gives_no_warnings() {
    let simulator = simulator().await;
    assert!(warnings(&simulator, CRON_TABS, &cron_tab("one")).await.is_empty());
}

#[tokio::test]
async fn invalid_workload_gives_a_warning() {
    let simulator = crate::support::simulator().await;
    let labels = json!({ "app": "web" });
    let template =
        json!({ "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "main" }] } });
    let mut deployment = json!({ "metadata": { "name": "a" }, "spec": { "template": template } });
    let path = "/apis/apps/v1/namespaces/a/deployments";
    let received = warnings(&simulator, path, &deployment).await;
    assert!(received[0].contains("whose selector is missing"), "{received:?}");
    deployment["metadata"]["name"] = "b".into();
    deployment["spec"]["selector"] = json!({ "matchLabels": labels });
    assert_eq!(warnings(&simulator, path, &deployment).await, Vec::<String>::new());
    let job = json!({ "metadata": { "name": "a" }, "spec": { "template": template } });
    assert!(warnings(&simulator, "/apis/batch/v1/namespaces/a/jobs", &job).await.is_empty());
    let pod = json!({ "metadata": { "name": "a" }, "spec": {} });
    let received = warnings(&simulator, "/api/v1/namespaces/a/pods", &pod).await;
    assert!(received[0].contains("refuses a Pod without containers"), "{received:?}");
}

#[tokio::test]
async fn warning_depends_on_the_whole_selector_of_a_workload() {
    let simulator = crate::support::simulator().await;
    let template = json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "main" }] },
    });
    let one_of = |values: &[&str]| json!([{ "key": "app", "operator": "In", "values": values }]);
    let cases = [
        ("a", json!({ "matchLabels": { "app": "web" } }), 0),
        ("b", json!({ "matchExpressions": one_of(&["api", "web"]) }), 0),
        ("c", json!({ "matchExpressions": one_of(&["api"]) }), 1),
        ("d", json!({ "matchLabels": { "app": "web" }, "matchExpressions": one_of(&["api"]) }), 1),
        ("e", json!({ "matchLabels": {} }), 1),
        ("f", json!({ "app": "web" }), 1),
    ];
    for (name, selector, expected) in cases {
        let deployment = json!({
            "metadata": { "name": name },
            "spec": { "selector": selector, "template": template },
        });
        let received = warnings(&simulator, "/apis/apps/v1/namespaces/a/deployments", &deployment).await;
        assert_eq!(received.len(), expected, "{selector}: {received:?}");
    }
}
