//! Status: the part of an object that has its own path.

use serde_json::{Value, json};

use crate::objects::{deployment, ingress, pod, uid, version};
use crate::scenario::{Scenario, scenario};
use crate::server::{MERGE, Server};

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario(write_of_an_object_keeps_its_status),
        scenario(status_write_keeps_the_spec),
        scenario(status_write_sets_labels_of_built_in_kinds),
        scenario(status_write_sets_finalizers_and_owners),
        scenario(status_write_keeps_the_owners_of_pods),
        scenario(status_write_that_removes_the_last_finalizer_deletes),
        scenario(status_write_keeps_the_labels_of_deployments),
        scenario(status_write_keeps_metadata_of_volume_attachments),
        scenario(an_update_of_the_status_replaces_it),
        scenario(an_update_of_the_status_from_an_old_version_is_a_conflict),
        scenario(status_write_keeps_the_generation),
        scenario(status_write_does_not_replace_managed_fields),
        scenario(a_status_can_be_read_by_its_own_path),
        scenario(status_cannot_be_created_or_deleted),
        scenario(status_of_a_kind_without_status_is_not_found),
        scenario(an_unknown_subresource_is_not_found),
        scenario(status_of_a_missing_object_is_not_found),
    ]
}

async fn new_pod(server: &Server) -> Value {
    server.create(&server.core("pods"), &pod("a")).await
}

async fn patch(server: &Server, path: &str, patch: &Value) -> Value {
    server.patch(&server.core(path), MERGE, patch).await.expect(200)
}

async fn write_of_an_object_keeps_its_status(server: Server) {
    new_pod(&server).await;
    let change = json!({ "status": { "phase": "Running" }, "metadata": { "labels": { "x": "1" } } });
    let pod = patch(&server, "pods/a", &change).await;
    assert_eq!((&pod["status"]["phase"], &pod["metadata"]["labels"]["x"]), (&json!("Pending"), &json!("1")));
}

async fn status_write_keeps_the_spec(server: Server) {
    let old = new_pod(&server).await;
    let change = json!({ "status": { "phase": "Running" }, "spec": { "activeDeadlineSeconds": 5 } });
    let pod = patch(&server, "pods/a/status", &change).await;
    assert_eq!(pod["status"]["phase"], "Running");
    assert_eq!(pod["spec"], old["spec"]);
    assert!(version(&pod) > version(&old));
}

async fn status_write_sets_labels_of_built_in_kinds(server: Server) {
    new_pod(&server).await;
    let pod = patch(&server, "pods/a/status", &json!({ "metadata": { "labels": { "x": "1" } } })).await;
    assert_eq!(pod["metadata"]["labels"]["x"], "1");
}

/// Writes a finalizer and an owner reference through the status path, and returns the result and
/// the owner reference.
async fn own_through_status(server: &Server, path: &str) -> (Value, Value) {
    let owner = server.create_secrets(&["owner"]).await;
    let reference = json!({ "apiVersion": "v1", "kind": "Secret", "name": "owner", "uid": uid(&owner) });
    let metadata = json!({ "finalizers": ["wire.test/wait"], "ownerReferences": [reference] });
    let change = json!({ "metadata": metadata });
    let changed = server.patch(&format!("{path}/status"), MERGE, &change).await.expect(200);
    assert_eq!(changed["metadata"]["finalizers"], json!(["wire.test/wait"]));
    let released = json!({ "metadata": { "finalizers": null } });
    server.patch(path, MERGE, &released).await.expect(200);
    (changed, reference)
}

async fn status_write_sets_finalizers_and_owners(server: Server) {
    let path = server.group("networking.k8s.io/v1", "ingresses");
    server.create(&path, &ingress("a")).await;
    let (changed, reference) = own_through_status(&server, &format!("{path}/a")).await;
    assert_eq!(changed["metadata"]["ownerReferences"], json!([reference]));
}

async fn status_write_keeps_the_owners_of_pods(server: Server) {
    new_pod(&server).await;
    let (changed, _) = own_through_status(&server, &server.core("pods/a")).await;
    assert!(changed["metadata"].get("ownerReferences").is_none(), "{changed}");
}

async fn status_write_that_removes_the_last_finalizer_deletes(server: Server) {
    let path = server.group("networking.k8s.io/v1", "ingresses");
    let mut held = ingress("a");
    held["metadata"]["finalizers"] = json!(["wire.test/wait"]);
    server.create(&path, &held).await;
    let path = format!("{path}/a");
    server.delete(&path).await.expect(200);
    let status = format!("{path}/status");
    let added = json!({ "metadata": { "finalizers": ["wire.test/wait", "wire.test/other"] } });
    let message = "no new finalizers can be added if the object is being deleted";
    server.patch(&status, MERGE, &added).await.refused_with(422, "Invalid", message);
    let released = json!({ "metadata": { "finalizers": null } });
    server.patch(&status, MERGE, &released).await.expect(200);
    server.get(&path).await.expect(404);
}

/// Writes a label, an annotation and `status` through the status path, and returns the result.
async fn patch_status(server: &Server, path: &str, status: &Value) -> Value {
    let metadata = json!({ "labels": { "x": "1" }, "annotations": { "x": "1" } });
    let change = json!({ "metadata": metadata, "status": status });
    server.patch(&format!("{path}/status"), MERGE, &change).await.expect(200)
}

async fn status_write_keeps_the_labels_of_deployments(server: Server) {
    let path = server.group("apps/v1", "deployments");
    server.create(&path, &deployment("a")).await;
    let changed = patch_status(&server, &format!("{path}/a"), &json!({ "collisionCount": 7 })).await;
    assert_eq!(changed["status"]["collisionCount"], 7);
    assert_eq!(changed["metadata"]["labels"], Value::Null);
    assert_eq!(changed["metadata"]["annotations"]["x"], "1");
    // Through the main path, an annotation would increment the generation.
    assert_eq!(changed["metadata"]["generation"], 1);
}

async fn status_write_keeps_metadata_of_volume_attachments(server: Server) {
    let source = json!({ "persistentVolumeName": "none" });
    let spec = json!({ "attacher": "wire.test", "nodeName": "wire-no-such-node", "source": source });
    let path = "/apis/storage.k8s.io/v1/volumeattachments";
    server.create(path, &json!({ "metadata": { "name": server.namespace }, "spec": spec })).await;
    let path = format!("{path}/{}", server.namespace);
    let changed = patch_status(&server, &path, &json!({ "attached": true })).await;
    assert_eq!(changed["status"]["attached"], true);
    assert_eq!(changed["metadata"]["labels"], Value::Null);
    assert_eq!(changed["metadata"]["annotations"], Value::Null);
    server.delete(&path).await.expect(200);
}

/// Returns the status of an Ingress with these load balancer addresses.
fn balanced(addresses: &[&str]) -> Value {
    let ingress: Vec<Value> = addresses.iter().map(|address| json!({ "ip": address })).collect();
    json!({ "loadBalancer": { "ingress": ingress } })
}

async fn an_update_of_the_status_replaces_it(server: Server) {
    let path = server.group("networking.k8s.io/v1", "ingresses");
    let mut object = server.create(&path, &ingress("a")).await;
    for addresses in [&["10.0.0.1", "10.0.0.2"][..], &["10.0.0.3"]] {
        object["status"] = balanced(addresses);
        object = server.put(&format!("{path}/a/status"), &object).await.expect(200);
        assert_eq!(object["status"], balanced(addresses));
    }
}

async fn an_update_of_the_status_from_an_old_version_is_a_conflict(server: Server) {
    let mut old = new_pod(&server).await;
    patch(&server, "pods/a", &json!({ "metadata": { "labels": { "x": "1" } } })).await;
    old["status"]["phase"] = "Running".into();
    let answer = server.put(&server.core("pods/a/status"), &old).await;
    answer.refused_with(
        409,
        "Conflict",
        "Operation cannot be fulfilled on pods \"a\": the object has been modified",
    );
}

async fn status_write_keeps_the_generation(server: Server) {
    let path = server.group("networking.k8s.io/v1", "ingresses");
    server.create(&path, &ingress("a")).await;
    let change = json!({ "status": balanced(&["10.0.0.1"]), "spec": { "ingressClassName": "none" } });
    let object = server.patch(&format!("{path}/a/status"), MERGE, &change).await.expect(200);
    assert_eq!((&object["metadata"]["generation"], &object["status"]), (&json!(1), &balanced(&["10.0.0.1"])));
    assert!(object["spec"].get("ingressClassName").is_none(), "{object}");
}

async fn status_write_does_not_replace_managed_fields(server: Server) {
    let path = server.group("networking.k8s.io/v1", "ingresses");
    let mut stale = server.create(&path, &ingress("a")).await;
    let path = format!("{path}/a");
    let change = json!({ "spec": { "ingressClassName": "none" } });
    server.patch(&format!("{path}?fieldManager=two"), MERGE, &change).await.expect(200);
    stale["metadata"].as_object_mut().expect("metadata").remove("resourceVersion");
    stale["status"] = balanced(&["10.0.0.1"]);
    let status = format!("{path}/status?fieldManager=three");
    let written = server.put(&status, &stale).await.expect(200);
    let entries = written["metadata"]["managedFields"].as_array().expect("entries");
    let two = entries.iter().find(|entry| entry["manager"] == "two").expect("an entry");
    assert_eq!(two["fieldsV1"], json!({ "f:spec": { "f:ingressClassName": {} } }));
    let forget = json!({ "metadata": { "managedFields": [{}] } });
    let kept = server.patch(&status, MERGE, &forget).await.expect(200);
    assert_eq!(kept["metadata"]["managedFields"], written["metadata"]["managedFields"]);
}

async fn a_status_can_be_read_by_its_own_path(server: Server) {
    let created = new_pod(&server).await;
    assert_eq!(server.get(&server.core("pods/a/status")).await.expect(200), created);
}

async fn status_cannot_be_created_or_deleted(server: Server) {
    let created = new_pod(&server).await;
    let message = "the server does not allow this method on the requested resource";
    let path = server.core("pods/a/status");
    server.post(&path, &created).await.refused(405, "MethodNotAllowed", message);
    server.delete(&path).await.refused(405, "MethodNotAllowed", message);
}

async fn status_of_a_kind_without_status_is_not_found(server: Server) {
    server.create_secrets(&["a"]).await;
    let answer = server.get(&format!("{}/status", server.secret_path("a"))).await;
    answer.refused(404, "NotFound", "the server could not find the requested resource");
}

async fn an_unknown_subresource_is_not_found(server: Server) {
    new_pod(&server).await;
    let answer = server.get(&server.core("pods/a/nonsense")).await;
    answer.refused(404, "NotFound", "the server could not find the requested resource");
}

async fn status_of_a_missing_object_is_not_found(server: Server) {
    let change = json!({ "status": { "phase": "Running" } });
    let answer = server.patch(&server.core("pods/a/status"), MERGE, &change).await;
    answer.refused(404, "NotFound", "pods \"a\" not found").is_about("", "pods", "a");
}
