//! Cascading deletes: owned objects, the content of namespaces, and pods whose kubelet must confirm
//! the deletion.

use http::{Method, StatusCode};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_simulator::Simulator;
use serde_json::{Value, json};

use crate::definitions::{CRON_TABS, DEFINITION, cron_tab, cron_tabs, define};
use crate::support::{Lines, MAPS, call, config_map, get, names, patch, request, send, simulator};

/// Creates a config map with the given owners, and returns its UID.
async fn owned(simulator: &Simulator, name: &str, owners: &[(&str, &str)], blocks: bool) -> String {
    let mut map = config_map("a", name);
    let references: Vec<Value> = owners
        .iter()
        .map(|(name, uid)| {
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "blockOwnerDeletion": blocks })
        })
        .collect();
    if !references.is_empty() {
        map["metadata"]["ownerReferences"] = references.into();
    }
    let (code, created) = call(simulator, Method::POST, MAPS, &map).await;
    assert_eq!(code, StatusCode::CREATED, "{created}");
    created["metadata"]["uid"].as_str().expect("a UID").to_owned()
}

async fn delete(simulator: &Simulator, name: &str, policy: &str) -> (StatusCode, Value) {
    let options = json!({ "propagationPolicy": policy });
    call(simulator, Method::DELETE, &format!("{MAPS}/{name}"), &options).await
}

async fn left(simulator: &Simulator) -> Vec<String> {
    names(&get(simulator, MAPS).await.1)
}

#[tokio::test]
async fn self_owned_object_in_foreground_deletion_stays() {
    let simulator = simulator().await;
    let uid = owned(&simulator, "self", &[], true).await;
    let reference = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": "self", "uid": uid, "blockOwnerDeletion": true,
    });
    let change = json!({ "metadata": { "ownerReferences": [reference] } });
    patch(&simulator, &format!("{MAPS}/self"), "merge-patch", &change).await;
    delete(&simulator, "self", "Foreground").await;
    assert_eq!(left(&simulator).await, ["self"], "the object must stay, as on a real server");
}

#[tokio::test]
async fn foreground_owner_is_deleted_after_all_dependents() {
    let simulator = simulator().await;
    let parent = owned(&simulator, "parent", &[], true).await;
    for number in 0..2_000 {
        owned(&simulator, &format!("child-{number}"), &[("parent", &parent)], true).await;
    }
    let from = simulator.resource_version();
    delete(&simulator, "parent", "Foreground").await;
    assert_eq!(left(&simulator).await, [] as [&str; 0]);
    let mut watch = Lines::open(&simulator, &format!("{MAPS}?watch=true&resourceVersion={from}")).await;
    assert_eq!(watch.brief().await.unwrap().0, "MODIFIED");
    for _ in 0..2_000 {
        assert!(watch.brief().await.unwrap().1.starts_with("child-"));
    }
    assert_eq!(watch.brief().await.unwrap().1, "parent");
}

#[tokio::test]
async fn long_chain_of_owners_is_deleted() {
    let simulator = simulator().await;
    for policy in ["Background", "Foreground"] {
        for number in 0..3_000 {
            let mut map = config_map("a", &format!("map-{number}"));
            map["metadata"]["uid"] = format!("uid-{number}").into();
            if number > 0 {
                let owner = number - 1;
                map["metadata"]["ownerReferences"] = json!([{
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "name": format!("map-{owner}"),
                    "uid": format!("uid-{owner}"),
                    "blockOwnerDeletion": true,
                }]);
            }
            simulator.create(&map).unwrap();
        }
        delete(&simulator, "map-0", policy).await;
        assert_eq!(left(&simulator).await, [] as [&str; 0], "{policy}");
    }
}

#[tokio::test]
async fn without_controllers_a_delete_does_not_cascade() {
    let simulator = Simulator::builder().built_in_kinds().without_controllers().start().await.unwrap();
    let parent = owned(&simulator, "parent", &[], true).await;
    owned(&simulator, "child", &[("parent", &parent)], true).await;
    delete(&simulator, "parent", "Foreground").await;
    assert_eq!(
        left(&simulator).await,
        ["child", "parent"],
        "without a garbage collector, both objects must stay"
    );
    delete(&simulator, "parent", "Background").await;
    assert_eq!(left(&simulator).await, ["child"]);
}

#[tokio::test]
async fn without_controllers_a_namespace_keeps_its_finalizer() {
    let simulator = Simulator::builder().built_in_kinds().without_controllers().start().await.unwrap();
    let namespace = json!({ "metadata": { "name": "a" } });
    call(&simulator, Method::POST, "/api/v1/namespaces", &namespace).await;
    simulator.create(&config_map("a", "content")).unwrap();
    let path = "/api/v1/namespaces/a";
    for _ in 0..2 {
        let (code, marked) = call(&simulator, Method::DELETE, path, &Value::Null).await;
        assert_eq!((code, &marked["status"]["phase"]), (StatusCode::OK, &json!("Terminating")));
    }
    // The test acts as the controller: it deletes the content, and then removes the finalizer.
    simulator.delete::<ConfigMap>("a/content").unwrap();
    let (_, mut marked) = get(&simulator, path).await;
    assert_eq!(marked["spec"]["finalizers"], json!(["kubernetes"]));
    marked["spec"]["finalizers"] = json!([]);
    let (code, _) = call(&simulator, Method::PUT, &format!("{path}/finalize"), &marked).await;
    assert_eq!(code, StatusCode::OK);
    assert_eq!(get(&simulator, path).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn namespace_waits_for_other_spec_finalizers() {
    let simulator = simulator().await;
    let namespace = json!({ "metadata": { "name": "a" }, "spec": { "finalizers": ["example.com/bills"] } });
    let (_, created) = call(&simulator, Method::POST, "/api/v1/namespaces", &namespace).await;
    assert_eq!(created["spec"]["finalizers"], json!(["example.com/bills", "kubernetes"]));
    let path = "/api/v1/namespaces/a";
    call(&simulator, Method::DELETE, path, &Value::Null).await;
    let (_, mut emptied) = get(&simulator, path).await;
    assert_eq!(
        emptied["spec"]["finalizers"],
        json!(["example.com/bills"]),
        "the namespace controller must remove only its own finalizer"
    );
    emptied["spec"] = json!({});
    call(&simulator, Method::PUT, &format!("{path}/finalize"), &emptied).await;
    assert_eq!(get(&simulator, path).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn namespace_is_deleted_after_its_content() {
    let simulator = simulator().await;
    simulator
        .create(&json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "a" } }))
        .unwrap();
    simulator.create(&config_map("b", "stays")).unwrap();
    let mut held = config_map("a", "held");
    held["metadata"]["finalizers"] = json!(["example.com/wait"]);
    simulator.create(&held).unwrap();
    simulator.create(&config_map("a", "goes")).unwrap();
    let (code, marked) = call(&simulator, Method::DELETE, "/api/v1/namespaces/a", &Value::Null).await;
    assert_eq!((code, &marked["status"]["phase"]), (StatusCode::OK, &json!("Terminating")));
    assert_eq!(left(&simulator).await, ["held"]);
    // A change of the namespace does not delete the namespace early.
    let labels = json!({ "metadata": { "labels": { "x": "y" } } });
    patch(&simulator, "/api/v1/namespaces/a", "merge-patch", &labels).await;
    assert_eq!(get(&simulator, "/api/v1/namespaces/a").await.0, StatusCode::OK);
    let released = json!({ "metadata": { "finalizers": null } });
    patch(&simulator, &format!("{MAPS}/held"), "merge-patch", &released).await;
    assert_eq!(get(&simulator, "/api/v1/namespaces/a").await.0, StatusCode::NOT_FOUND);
    assert_eq!(get(&simulator, "/api/v1/configmaps").await.1["items"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn definition_that_is_invalid_from_the_start_is_deleted() {
    let simulator = simulator().await;
    let mut invalid = cron_tabs();
    invalid["spec"]["versions"][0]["storage"] = false.into();
    simulator.create(&invalid).unwrap();
    call(&simulator, Method::DELETE, DEFINITION, &Value::Null).await;
    assert_eq!(get(&simulator, DEFINITION).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn definition_named_like_a_built_in_resource_removes_nothing() {
    let simulator = simulator().await;
    let mut invalid = cron_tabs();
    invalid["metadata"]["name"] = "deployments.apps".into();
    invalid["spec"]["versions"][0]["storage"] = false.into();
    simulator.create(&invalid).unwrap();
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/deployments.apps";
    call(&simulator, Method::DELETE, path, &Value::Null).await;
    assert_eq!(get(&simulator, path).await.0, StatusCode::NOT_FOUND);
    assert_eq!(get(&simulator, "/apis/apps/v1/deployments").await.0, StatusCode::OK);
}

#[tokio::test]
async fn definition_that_became_invalid_is_deleted_with_objects() {
    let simulator = simulator().await;
    define(&simulator, &cron_tabs()).await;
    let mut held = cron_tab("held");
    held["metadata"]["finalizers"] = json!(["example.com/wait"]);
    for tab in [&held, &cron_tab("free")] {
        call(&simulator, Method::POST, CRON_TABS, tab).await;
    }
    let definitions = simulator.objects("apiextensions.k8s.io/v1", "CustomResourceDefinition").unwrap();
    let invalidate = |definition: &mut Value| definition["spec"]["versions"][0]["storage"] = false.into();
    definitions.modify("crontabs.stable.example.com", invalidate).unwrap();
    call(&simulator, Method::DELETE, DEFINITION, &Value::Null).await;
    assert_eq!(names(&get(&simulator, CRON_TABS).await.1), ["held"]);
    let released = json!({ "metadata": { "finalizers": null } });
    patch(&simulator, &format!("{CRON_TABS}/held"), "merge-patch", &released).await;
    assert_eq!(get(&simulator, DEFINITION).await.0, StatusCode::NOT_FOUND);
    let unserved = send(&simulator, request(Method::GET, CRON_TABS, &Value::Null)).await;
    assert_eq!(unserved.status(), StatusCode::NOT_FOUND);
}
