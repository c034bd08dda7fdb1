//! Namespaces as objects.

use serde_json::json;

use crate::objects::secret;
use crate::scenario::{Scenario, scenario};
use crate::server::Server;

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario(a_new_namespace_is_active),
        scenario(a_new_namespace_is_labelled_with_its_name),
        scenario(a_new_namespace_has_a_finalizer_in_its_spec),
        scenario(a_deleted_namespace_is_terminating_first),
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

async fn a_new_namespace_has_a_finalizer_in_its_spec(server: Server) {
    let namespace = server.get(&format!("/api/v1/namespaces/{}", server.namespace)).await.expect(200);
    assert_eq!(namespace["spec"], json!({ "finalizers": ["kubernetes"] }));
}

async fn a_deleted_namespace_is_terminating_first(server: Server) {
    // What holds it back where a controller would otherwise be quicker than the question.
    let mut object = secret("a");
    object["metadata"]["finalizers"] = json!(["wire.test/hold"]);
    server.create(&server.secrets(), &object).await;
    let path = format!("/api/v1/namespaces/{}", server.namespace);
    let deleted = server.delete(&path).await.expect(200);
    assert_eq!(deleted["status"]["phase"], "Terminating");
    assert!(deleted["metadata"]["deletionTimestamp"].is_string());
    let message = format!(
        "secrets \"b\" is forbidden: unable to create new content in namespace {} because it is being terminated",
        server.namespace
    );
    let refusal = server.post(&server.secrets(), &secret("b")).await.refused(403, "Forbidden", &message);
    refusal.has_causes(&[("NamespaceTerminating", "metadata.namespace")]);
}
