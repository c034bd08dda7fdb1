//! Namespaces as objects.

use serde_json::{Value, json};

use crate::objects::secret;
use crate::scenario::{Scenario, scenario};
use crate::server::{MERGE, Server};

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario(default_namespace_has_the_service_of_the_api_server)
            .differs("The real server of these tests does not maintain its own endpoints, because it listens on loopback."),
        scenario(a_new_namespace_is_active),
        scenario(a_new_namespace_is_labelled_with_its_name),
        scenario(label_with_the_name_of_a_namespace_is_fixed),
        scenario(a_new_namespace_has_a_finalizer_in_its_spec),
        scenario(a_deleted_namespace_is_terminating_first),
        scenario(some_default_namespaces_cannot_be_deleted),
        scenario(second_delete_of_a_namespace_changes_nothing),
        scenario(namespace_finalizer_is_removed_by_finalize),
        scenario(finalize_does_not_replace_managed_fields),
        scenario(namespace_is_removed_with_its_last_spec_finalizer),
    ]
}

async fn a_new_namespace_is_active(server: Server) {
    let namespace = server.get(&format!("/api/v1/namespaces/{}", server.namespace)).await.expect(200);
    assert_eq!(
        (&namespace["kind"], &namespace["status"]),
        (&json!("Namespace"), &json!({ "phase": "Active" }))
    );
}

async fn a_new_namespace_is_labelled_with_its_name(server: Server) {
    let namespace = server.get(&format!("/api/v1/namespaces/{}", server.namespace)).await.expect(200);
    assert_eq!(namespace["metadata"]["labels"]["kubernetes.io/metadata.name"], server.namespace);
}

async fn label_with_the_name_of_a_namespace_is_fixed(server: Server) {
    for value in [Value::Null, json!("other")] {
        let change = json!({ "metadata": { "labels": { "kubernetes.io/metadata.name": value, "x": "1" } } });
        let changed = server.patch(&path(&server), MERGE, &change).await.expect(200);
        let labels = json!({ "kubernetes.io/metadata.name": server.namespace, "x": "1" });
        assert_eq!(changed["metadata"]["labels"], labels);
    }
}

async fn a_new_namespace_has_a_finalizer_in_its_spec(server: Server) {
    let namespace = server.get(&format!("/api/v1/namespaces/{}", server.namespace)).await.expect(200);
    assert_eq!(namespace["spec"], json!({ "finalizers": ["kubernetes"] }));
}

fn path(server: &Server) -> String {
    format!("/api/v1/namespaces/{}", server.namespace)
}

/// Deletes the namespace of the scenario. A namespaced object with a finalizer keeps a controller
/// from removing the namespace before the next request.
async fn terminating(server: &Server) -> Value {
    let mut object = secret("a");
    object["metadata"]["finalizers"] = json!(["wire.test/hold"]);
    server.create(&server.secrets(), &object).await;
    server.delete(&path(server)).await.expect(200)
}

/// Removes the finalizer that `terminating` has added.
async fn remove_finalizer(server: &Server) {
    let released = json!({ "metadata": { "finalizers": null } });
    server.patch(&server.secret_path("a"), MERGE, &released).await.expect(200);
}

async fn second_delete_of_a_namespace_changes_nothing(server: Server) {
    let marked = terminating(&server).await;
    let again = server.delete(&path(&server)).await.expect(200);
    assert_eq!(again["spec"], marked["spec"]);
    assert_eq!(again["metadata"]["deletionTimestamp"], marked["metadata"]["deletionTimestamp"]);
    remove_finalizer(&server).await;
}

async fn namespace_finalizer_is_removed_by_finalize(server: Server) {
    let namespace = json!({ "metadata": { "name": server.namespace }, "spec": { "finalizers": [] } });
    let updated = server.put(&path(&server), &namespace).await.expect(200);
    assert_eq!(updated["spec"]["finalizers"], json!(["kubernetes"]));
    let finalized = server.put(&format!("{}/finalize", path(&server)), &namespace).await.expect(200);
    assert_eq!((&finalized["spec"], &finalized["status"]["phase"]), (&json!({}), &json!("Active")));
}

async fn finalize_does_not_replace_managed_fields(server: Server) {
    let before = server.get(&path(&server)).await.expect(200);
    let mut object = before.clone();
    object["metadata"]["managedFields"] = json!([{}]);
    let finalized = server.put(&format!("{}/finalize", path(&server)), &object).await.expect(200);
    assert_eq!(finalized, before);
}

async fn namespace_is_removed_with_its_last_spec_finalizer(server: Server) {
    terminating(&server).await;
    let namespace = json!({ "metadata": { "name": server.namespace }, "spec": { "finalizers": [] } });
    let last = server.put(&format!("{}/finalize", path(&server)), &namespace).await.expect(200);
    assert_eq!(last["status"]["phase"], "Terminating");
    server.get(&path(&server)).await.refused_with(404, "NotFound", "not found");
}

async fn a_deleted_namespace_is_terminating_first(server: Server) {
    let deleted = terminating(&server).await;
    assert_eq!(deleted["status"]["phase"], "Terminating");
    assert!(deleted["metadata"]["deletionTimestamp"].is_string());
    assert!(deleted["metadata"].get("deletionGracePeriodSeconds").is_none(), "{deleted}");
    assert_eq!(deleted["spec"], json!({ "finalizers": ["kubernetes"] }));
    let message = format!(
        "secrets \"b\" is forbidden: unable to create new content in namespace {} because it is being terminated",
        server.namespace
    );
    let refusal = server.post(&server.secrets(), &secret("b")).await.refused(403, "Forbidden", &message);
    refusal.has_causes(&[("NamespaceTerminating", "metadata.namespace")]);
}

async fn some_default_namespaces_cannot_be_deleted(server: Server) {
    for name in ["default", "kube-public", "kube-system"] {
        let answer = server.delete(&format!("/api/v1/namespaces/{name}?dryRun=All")).await;
        let message = format!("namespaces \"{name}\" is forbidden: this namespace may not be deleted");
        answer.refused(403, "Forbidden", &message).is_about("", "namespaces", name);
    }
    server.delete("/api/v1/namespaces/kube-node-lease?dryRun=All").await.expect(200);
}

async fn default_namespace_has_the_service_of_the_api_server(server: Server) {
    for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
        let namespace = server.get(&format!("/api/v1/namespaces/{name}")).await.expect(200);
        assert_eq!(namespace["metadata"]["labels"]["kubernetes.io/metadata.name"], name);
    }
    let service = server.get("/api/v1/namespaces/default/services/kubernetes").await.expect(200);
    let labels = json!({ "component": "apiserver", "provider": "kubernetes" });
    assert_eq!(service["metadata"]["labels"], labels);
    let port = &service["spec"]["ports"][0];
    assert_eq!(
        (&port["name"], &port["port"], &port["protocol"]),
        (&json!("https"), &json!(443), &json!("TCP"))
    );
    let fields =
        |object: &Value| -> Vec<String> { object.as_object().expect("fields").keys().cloned().collect() };
    let expected = [
        "clusterIP",
        "clusterIPs",
        "internalTrafficPolicy",
        "ipFamilies",
        "ipFamilyPolicy",
        "ports",
        "sessionAffinity",
        "type",
    ];
    assert_eq!(fields(&service["spec"]), expected);
    assert_eq!(service["status"], json!({ "loadBalancer": {} }));

    if server.is_real() {
        return;
    }
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes";
    let slice = server.get(slices).await.expect(200);
    assert_eq!(slice["metadata"]["labels"], json!({ "kubernetes.io/service-name": "kubernetes" }));
    assert_eq!(slice["addressType"], "IPv4");
    assert_eq!(fields(&slice["endpoints"][0]), ["addresses", "conditions"]);
    assert_eq!(slice["endpoints"][0]["conditions"], json!({ "ready": true }));
    let endpoints = server.get("/api/v1/namespaces/default/endpoints/kubernetes").await.expect(200);
    assert_eq!(endpoints["subsets"][0]["ports"][0]["name"], "https");
    // The service's target port, and the ports of its slice and endpoints, are the server's port.
    let target = &port["targetPort"];
    assert_eq!((target, target), (&slice["ports"][0]["port"], &endpoints["subsets"][0]["ports"][0]["port"]));
}
