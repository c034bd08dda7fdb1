//! Patches and server-side apply: merge results, ownership, conflicts and errors.

use http::{Method, StatusCode};
use kube_simulator::Simulator;
use serde_json::{Value, json};

use crate::definitions::{cron_tab, cron_tabs, define};
use crate::support::{call, get, patch, simulator};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/a/deployments";

fn deployment(containers: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": "web" },
        "spec": { "template": { "spec": { "containers": containers } } },
    })
}

async fn apply(simulator: &Simulator, manager: &str, object: &Value) -> (StatusCode, Value) {
    patch(simulator, &format!("{DEPLOYMENTS}/web?fieldManager={manager}"), "apply-patch", object).await
}

fn containers(deployment: &Value) -> &Value {
    &deployment["spec"]["template"]["spec"]["containers"]
}

fn managers(object: &Value) -> Vec<(&str, &str)> {
    let entries = object["metadata"]["managedFields"].as_array().expect("managed fields");
    entries.iter().map(|e| (e["manager"].as_str().unwrap(), e["operation"].as_str().unwrap())).collect()
}

#[tokio::test]
async fn a_strategic_patch_merges_containers_by_name() {
    let simulator = simulator().await;
    let both =
        deployment(&json!([{ "name": "main", "image": "1", "tty": true }, { "name": "side", "image": "1" }]));
    call(&simulator, Method::POST, DEPLOYMENTS, &both).await;
    let newer = deployment(&json!([{ "name": "main", "image": "2" }]));
    let (code, patched) =
        patch(&simulator, &format!("{DEPLOYMENTS}/web"), "strategic-merge-patch", &newer).await;
    assert_eq!(code, StatusCode::OK);
    let expected = json!([{ "name": "main", "image": "2", "tty": true }, { "name": "side", "image": "1" }]);
    assert_eq!(containers(&patched), &expected);
}

#[tokio::test]
async fn custom_resources_take_no_strategic_patches() {
    let simulator = simulator().await;
    define(&simulator, &cron_tabs()).await;
    let path = "/apis/stable.example.com/v1/namespaces/a/crontabs";
    call(&simulator, Method::POST, path, &cron_tab("one")).await;
    let change = json!({ "spec": { "image": "x" } });
    let (code, _) = patch(&simulator, &format!("{path}/one"), "strategic-merge-patch", &change).await;
    assert_eq!(code, StatusCode::UNSUPPORTED_MEDIA_TYPE);
}

#[tokio::test]
async fn apply_creates_missing_objects_and_merges_existing_ones() {
    let simulator = simulator().await;
    let (code, created) =
        apply(&simulator, "one", &deployment(&json!([{ "name": "main", "image": "1" }]))).await;
    assert_eq!(code, StatusCode::CREATED);
    assert_eq!(managers(&created), [("one", "Apply")]);
    let (code, merged) =
        apply(&simulator, "two", &deployment(&json!([{ "name": "side", "image": "1" }]))).await;
    assert_eq!(code, StatusCode::OK);
    let names: Vec<&Value> = containers(&merged).as_array().unwrap().iter().map(|c| &c["name"]).collect();
    assert_eq!(names, ["main", "side"]);
    assert_eq!(managers(&merged), [("one", "Apply"), ("two", "Apply")]);
    let owned = &merged["metadata"]["managedFields"][1]["fieldsV1"]["f:spec"]["f:template"]["f:spec"];
    let expected = json!({ ".": {}, "f:name": {}, "f:image": {} });
    assert_eq!(owned["f:containers"]["k:{\"name\":\"side\"}"], expected);
}

#[tokio::test]
async fn repeated_apply_is_no_write() {
    let simulator = simulator().await;
    let object = deployment(&json!([{ "name": "main", "image": "1" }]));
    let (_, first) = apply(&simulator, "one", &object).await;
    assert_eq!(apply(&simulator, "one", &object).await.1, first);
}

#[tokio::test]
async fn fields_no_longer_applied_are_removed_unless_owned() {
    let simulator = simulator().await;
    let both = json!([{ "name": "main", "image": "1", "tty": true }, { "name": "side", "image": "1" }]);
    apply(&simulator, "one", &deployment(&both)).await;
    apply(&simulator, "two", &deployment(&json!([{ "name": "main", "image": "1" }]))).await;
    let (_, left) = apply(&simulator, "one", &deployment(&json!([]))).await;
    assert_eq!(containers(&left), &json!([{ "name": "main", "image": "1" }]));
}

#[tokio::test]
async fn apply_of_another_managers_field_needs_force() {
    let simulator = simulator().await;
    let path = format!("{DEPLOYMENTS}?fieldManager=creator");
    call(&simulator, Method::POST, &path, &deployment(&json!([{ "name": "main", "image": "1" }]))).await;
    let other = deployment(&json!([{ "name": "main", "image": "2" }]));
    let (code, refusal) = apply(&simulator, "one", &other).await;
    assert_eq!((code, &refusal["reason"]), (StatusCode::CONFLICT, &json!("Conflict")));
    let cause = &refusal["details"]["causes"][0];
    assert_eq!(cause["field"], ".spec.template.spec.containers[name=\"main\"].image");
    assert_eq!(cause["message"], "conflict with \"creator\" using apps/v1");

    let (code, taken) = apply(&simulator, "one&force=true", &other).await;
    assert_eq!((code, &containers(&taken)[0]["image"]), (StatusCode::OK, &json!("2")));
    let entries = taken["metadata"]["managedFields"].as_array().unwrap();
    let creator = entries.iter().find(|entry| entry["manager"] == "creator").unwrap();
    let owned = creator["fieldsV1"].to_string();
    assert!(!owned.contains("f:image"), "{owned}");
    // An equal value is not a conflict. Both managers then own the field.
    let (code, shared) = apply(&simulator, "two", &other).await;
    assert_eq!((code, managers(&shared).len()), (StatusCode::OK, 3));
}

#[tokio::test]
async fn updates_take_ownership_of_changed_fields() {
    let simulator = simulator().await;
    apply(&simulator, "one", &deployment(&json!([{ "name": "main", "image": "1", "tty": true }]))).await;
    let change =
        json!({ "spec": { "template": { "spec": { "containers": [{ "name": "main", "image": "2" }] } } } });
    let path = format!("{DEPLOYMENTS}/web?fieldManager=editor");
    let (_, changed) = patch(&simulator, &path, "strategic-merge-patch", &change).await;
    assert_eq!(managers(&changed), [("one", "Apply"), ("editor", "Update")]);
    let fields = |at: usize| changed["metadata"]["managedFields"][at]["fieldsV1"].to_string();
    assert!(!fields(0).contains("f:image") && fields(0).contains("f:tty"), "{}", fields(0));
    assert!(fields(1).contains("f:image") && !fields(1).contains("f:tty"), "{}", fields(1));
}

#[tokio::test]
async fn applying_needs_a_manager_and_no_managed_fields() {
    let simulator = simulator().await;
    let object = deployment(&json!([]));
    let (code, refusal) = patch(&simulator, &format!("{DEPLOYMENTS}/web"), "apply-patch", &object).await;
    assert_eq!(code, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(refusal["details"]["causes"][0]["field"], "fieldManager");
    let mut copied = object;
    copied["metadata"]["managedFields"] = json!([{ "manager": "x" }]);
    assert_eq!(apply(&simulator, "one", &copied).await.0, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn empty_managed_fields_entry_removes_all_managers() {
    let simulator = simulator().await;
    apply(&simulator, "one", &deployment(&json!([]))).await;
    let path = format!("{DEPLOYMENTS}/web");
    let forget = json!({ "metadata": { "managedFields": [{}] } });
    let (_, forgotten) = patch(&simulator, &path, "merge-patch", &forget).await;
    assert!(forgotten["metadata"].get("managedFields").is_none());
    assert!(get(&simulator, &path).await.1["metadata"].get("managedFields").is_none());
}

#[tokio::test]
async fn a_schema_says_which_lists_have_keys() {
    let simulator = simulator().await;
    define(&simulator, &cron_tabs()).await;
    let path = "/apis/stable.example.com/v1/namespaces/a/crontabs/one?fieldManager=";
    for (manager, name) in [("one", "A"), ("two", "B")] {
        let mut tab = cron_tab("one");
        tab["spec"]["env"] = json!([{ "name": name, "value": "1" }]);
        let (code, answer) = patch(&simulator, &format!("{path}{manager}"), "apply-patch", &tab).await;
        assert!(code.is_success(), "{answer}");
    }
    let (_, tab) = get(&simulator, "/apis/stable.example.com/v1/namespaces/a/crontabs/one").await;
    assert_eq!(tab["spec"]["env"], json!([{ "name": "A", "value": "1" }, { "name": "B", "value": "1" }]));
}

#[tokio::test]
async fn status_is_applied_separately() {
    let simulator = simulator().await;
    apply(&simulator, "one", &deployment(&json!([]))).await;
    let status = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "status": { "replicas": 3 } });
    let path = format!("{DEPLOYMENTS}/web/status?fieldManager=controller");
    let (code, applied) = patch(&simulator, &path, "apply-patch", &status).await;
    assert_eq!((code, &applied["status"]["replicas"]), (StatusCode::OK, &json!(3)));
    let entries = applied["metadata"]["managedFields"].as_array().unwrap();
    let controller = entries.iter().find(|entry| entry["manager"] == "controller").unwrap();
    assert_eq!(controller["subresource"], "status");
}
