//! Replacing objects (PUT).

use serde_json::{Value, json};

use crate::objects::{deployment, ingress, secret, uid, version};
use crate::scenario::{Scenario, scenario};
use crate::server::{JSON_PATCH, MERGE, Server};

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario(an_update_makes_a_new_version),
        scenario(an_update_from_an_old_version_is_a_conflict),
        scenario(update_without_version_replaces_any_version),
        scenario(update_from_version_0_replaces_any_version),
        scenario(update_without_a_change_keeps_the_version),
        scenario(an_update_of_another_uid_is_a_conflict),
        scenario(update_of_a_missing_object_is_not_found),
        scenario(update_creates_where_the_kind_allows_it),
        scenario(update_with_another_name_is_refused),
        scenario(an_update_without_name_is_refused),
        scenario(an_update_in_another_namespace_is_refused),
        scenario(an_update_of_a_collection_is_not_allowed),
        scenario(update_with_invalid_version_is_an_internal_error),
        scenario(dry_run_of_an_update_stores_nothing),
        scenario(unknown_field_validation_is_refused),
        scenario(update_keeps_the_servers_fields),
        scenario(update_cannot_set_a_deletion_timestamp),
        scenario(update_removes_omitted_fields),
        scenario(a_generation_counts_changes_of_the_spec),
        scenario(a_generation_counts_annotations_of_deployments),
        scenario(a_generation_counts_labels_of_endpoint_slices),
        scenario(generation_of_a_priority_class_stays_1),
        scenario(generation_of_a_csi_driver_begins_with_a_change),
        scenario(type_of_a_secret_is_immutable).differs("The simulator does not enforce immutable fields."),
        scenario(only_one_of_two_updates_from_one_version_succeeds),
    ]
}

async fn put(server: &Server, object: &Value) -> crate::answer::Answer {
    server.put(&server.secret_path("a"), object).await
}

fn with_label(object: &Value, value: &str) -> Value {
    let mut object = object.clone();
    object["metadata"]["labels"] = json!({ "x": value });
    object
}

const MODIFIED: &str = "Operation cannot be fulfilled on secrets \"a\": the object has been modified; \
    please apply your changes to the latest version and try again";

async fn an_update_makes_a_new_version(server: Server) {
    let old = server.create_secrets(&["a"]).await;
    let new = put(&server, &with_label(&old, "1")).await.expect(200);
    assert!(version(&new) > version(&old));
    assert_eq!(new["metadata"]["labels"]["x"], "1");
    assert_eq!(server.get(&server.secret_path("a")).await.expect(200), new);
}

async fn an_update_from_an_old_version_is_a_conflict(server: Server) {
    let old = server.create_secrets(&["a"]).await;
    put(&server, &with_label(&old, "1")).await.expect(200);
    let refusal = put(&server, &with_label(&old, "2")).await.refused(409, "Conflict", MODIFIED);
    refusal.is_about("", "secrets", "a");
}

async fn update_without_version_replaces_any_version(server: Server) {
    server.create_secrets(&["a"]).await;
    server.label("a", "y", "1").await;
    let new = put(&server, &with_label(&secret("a"), "1")).await.expect(200);
    assert_eq!(new["metadata"]["labels"], json!({ "x": "1" }));
}

async fn update_from_version_0_replaces_any_version(server: Server) {
    server.create_secrets(&["a"]).await;
    let mut object = with_label(&secret("a"), "1");
    object["metadata"]["resourceVersion"] = "0".into();
    put(&server, &object).await.expect(200);
}

async fn update_without_a_change_keeps_the_version(server: Server) {
    let old = server.create_secrets(&["a"]).await;
    assert_eq!(put(&server, &old).await.expect(200), old);
    assert_eq!(version(&put(&server, &secret("a")).await.expect(200)), version(&old));
}

async fn an_update_of_another_uid_is_a_conflict(server: Server) {
    let old = server.create_secrets(&["a"]).await;
    let mut object = with_label(&secret("a"), "1");
    object["metadata"]["uid"] = "another".into();
    let message =
        format!("Precondition failed: UID in precondition: another, UID in object meta: {}", uid(&old));
    let refusal = put(&server, &object).await.refused_with(409, "Conflict", &message);
    assert!(
        refusal.message().starts_with("Operation cannot be fulfilled on secrets \"a\": "),
        "{}",
        refusal.message()
    );
    refusal.is_about("", "secrets", "a");
}

async fn update_of_a_missing_object_is_not_found(server: Server) {
    let refusal = put(&server, &secret("a")).await.refused(404, "NotFound", "secrets \"a\" not found");
    refusal.is_about("", "secrets", "a");
    let path = format!("{}/a", server.group("policy/v1", "poddisruptionbudgets"));
    let answer = server.put(&path, &json!({ "metadata": { "name": "a" } })).await;
    answer.refused(404, "NotFound", "poddisruptionbudgets.policy \"a\" not found");
}

async fn update_creates_where_the_kind_allows_it(server: Server) {
    let path = format!("{}/a", server.group("coordination.k8s.io/v1", "leases"));
    let created = server.put(&path, &json!({ "metadata": { "name": "a" } })).await.expect(201);
    assert_eq!(server.get(&path).await.expect(200), created);
}

async fn update_with_another_name_is_refused(server: Server) {
    server.create_secrets(&["a"]).await;
    let message = "the name of the object (b) does not match the name on the URL (a)";
    put(&server, &secret("b")).await.refused(400, "BadRequest", message);
}

async fn an_update_without_name_is_refused(server: Server) {
    server.create_secrets(&["a"]).await;
    let message = "the name of the object (a based on URL) was undeterminable: name must be provided";
    put(&server, &json!({ "metadata": {} })).await.refused(400, "BadRequest", message);
}

async fn an_update_in_another_namespace_is_refused(server: Server) {
    let mut object = server.create_secrets(&["a"]).await;
    object["metadata"]["namespace"] = "elsewhere".into();
    let message = "the namespace of the provided object does not match the namespace sent on the request";
    put(&server, &object).await.refused(400, "BadRequest", message);
}

async fn an_update_of_a_collection_is_not_allowed(server: Server) {
    let answer = server.put(&server.secrets(), &secret("a")).await;
    let message = "the server does not allow this method on the requested resource";
    answer.refused(405, "MethodNotAllowed", message);
}

async fn update_with_invalid_version_is_an_internal_error(server: Server) {
    let mut object = server.create_secrets(&["a"]).await;
    object["metadata"]["resourceVersion"] = "abc".into();
    put(&server, &object).await.refused(500, "", "strconv.ParseUint: parsing \"abc\": invalid syntax");
}

async fn dry_run_of_an_update_stores_nothing(server: Server) {
    let old = server.create_secrets(&["a"]).await;
    let path = format!("{}?dryRun=All", server.secret_path("a"));
    let shown = server.put(&path, &with_label(&old, "1")).await.expect(200);
    assert_eq!(shown["metadata"]["labels"]["x"], "1");
    assert_eq!(version(&shown), version(&old));
    assert_eq!(server.get(&server.secret_path("a")).await.expect(200), old);
}

async fn unknown_field_validation_is_refused(server: Server) {
    let created = server.create_secrets(&["a"]).await;
    let path = format!("{}?fieldValidation=strict", server.secret_path("a"));
    let why = "fieldValidation: Unsupported value: \"strict\": \
               supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"";
    let message = |options: &str| format!("{options}.meta.k8s.io \"\" is invalid: {why}");
    let causes = [("FieldValueNotSupported", "fieldValidation")];
    let answer = server.put(&path, &created).await;
    answer.refused(422, "Invalid", &message("UpdateOptions")).has_causes(&causes);
    for (kind, patch) in [(MERGE, json!({})), (JSON_PATCH, json!([]))] {
        let answer = server.patch(&path, kind, &patch).await;
        answer.refused(422, "Invalid", &message("PatchOptions")).has_causes(&causes);
    }
}

async fn update_keeps_the_servers_fields(server: Server) {
    let old = server.create_secrets(&["a"]).await;
    let mut object = with_label(&old, "1");
    object["metadata"]["creationTimestamp"] = "2000-01-01T00:00:00Z".into();
    object["metadata"]["uid"] = "".into();
    let new = put(&server, &object).await.expect(200);
    assert_eq!(new["metadata"]["creationTimestamp"], old["metadata"]["creationTimestamp"]);
    assert_eq!(uid(&new), uid(&old));
}

async fn update_cannot_set_a_deletion_timestamp(server: Server) {
    let mut object = server.create_secrets(&["a"]).await;
    object["metadata"]["deletionTimestamp"] = "2000-01-01T00:00:00Z".into();
    let message = "Secret \"a\" is invalid: \
        metadata.deletionTimestamp: Invalid value: \"2000-01-01T00:00:00Z\": field is immutable";
    let refusal = put(&server, &object).await.refused(422, "Invalid", message);
    refusal.has_causes(&[("FieldValueInvalid", "metadata.deletionTimestamp")]);
}

async fn update_removes_omitted_fields(server: Server) {
    let mut object = with_label(&secret("a"), "1");
    object["data"] = json!({ "k": "dg==" });
    server.create(&server.secrets(), &object).await;
    let new = put(&server, &secret("a")).await.expect(200);
    assert!(new.get("data").is_none() && new["metadata"].get("labels").is_none(), "{new}");
}

async fn a_generation_counts_changes_of_the_spec(server: Server) {
    let path = server.group("networking.k8s.io/v1", "ingresses");
    let mut object = server.create(&path, &ingress("a")).await;
    for (change, generation) in [("metadata", 1), ("spec", 2), ("nothing", 2), ("status", 2)] {
        match change {
            "metadata" => object["metadata"]["labels"] = json!({ "x": "1" }),
            "spec" => object["spec"]["ingressClassName"] = "none".into(),
            "status" => object["status"] = json!({ "loadBalancer": { "ingress": [{ "ip": "10.0.0.1" }] } }),
            _ => {}
        }
        object = server.put(&format!("{path}/a"), &object).await.expect(200);
        assert_eq!(object["metadata"]["generation"], generation, "{change}");
    }
    assert_eq!(object["status"], json!({ "loadBalancer": {} }));
}

/// Sets a label and then an annotation, and returns the generation after each.
async fn generations(server: &Server, path: &str) -> [i64; 2] {
    let mut counted = [0; 2];
    for (generation, field) in counted.iter_mut().zip(["labels", "annotations"]) {
        let change = json!({ "metadata": { field: { "x": "1" } } });
        let changed = server.patch(path, MERGE, &change).await.expect(200);
        *generation = changed["metadata"]["generation"].as_i64().expect("a generation");
    }
    counted
}

async fn a_generation_counts_annotations_of_deployments(server: Server) {
    let path = server.group("apps/v1", "deployments");
    server.create(&path, &deployment("a")).await;
    assert_eq!(generations(&server, &format!("{path}/a")).await, [1, 2]);
    let path = server.group("networking.k8s.io/v1", "ingresses");
    server.create(&path, &ingress("a")).await;
    assert_eq!(generations(&server, &format!("{path}/a")).await, [1, 1]);
}

async fn a_generation_counts_labels_of_endpoint_slices(server: Server) {
    let path = server.group("discovery.k8s.io/v1", "endpointslices");
    let slice = json!({ "metadata": { "name": "a" }, "addressType": "IPv4", "endpoints": [] });
    server.create(&path, &slice).await;
    assert_eq!(generations(&server, &format!("{path}/a")).await, [2, 2]);
}

/// Creates a cluster-scoped object, patches the object, and deletes it. Returns the generation before
/// and after the patch.
async fn generations_around(server: &Server, path: &str, mut object: Value, change: &Value) -> [Value; 2] {
    object["metadata"] = json!({ "name": server.namespace });
    let created = server.create(path, &object).await;
    let path = format!("{path}/{}", server.namespace);
    let changed = server.patch(&path, MERGE, change).await.expect(200);
    server.delete(&path).await.expect(200);
    [created, changed].map(|object| object["metadata"]["generation"].clone())
}

async fn generation_of_a_priority_class_stays_1(server: Server) {
    let path = "/apis/scheduling.k8s.io/v1/priorityclasses";
    let (class, change) = (json!({ "value": 1 }), json!({ "description": "changed" }));
    assert_eq!(generations_around(&server, path, class, &change).await, [1, 1]);
}

async fn generation_of_a_csi_driver_begins_with_a_change(server: Server) {
    let path = "/apis/storage.k8s.io/v1/csidrivers";
    let (driver, change) = (json!({ "spec": {} }), json!({ "spec": { "requiresRepublish": true } }));
    assert_eq!(generations_around(&server, path, driver, &change).await, [Value::Null, json!(1)]);
}

async fn type_of_a_secret_is_immutable(server: Server) {
    server.create_secrets(&["a"]).await;
    let mut object = secret("a");
    object["type"] = "wire.test/other".into();
    let answer = put(&server, &object).await;
    if server.is_real() {
        let message = "Secret \"a\" is invalid: type: Invalid value: \"wire.test/other\": field is immutable";
        answer.refused(422, "Invalid", message).has_causes(&[("FieldValueInvalid", "type")]);
    } else {
        assert_eq!(answer.expect(200)["type"], "wire.test/other");
    }
}

async fn only_one_of_two_updates_from_one_version_succeeds(server: Server) {
    let old = server.create_secrets(&["a"]).await;
    let (one, two) = (with_label(&old, "1"), with_label(&old, "2"));
    let (one, two) = tokio::join!(put(&server, &one), put(&server, &two));
    let mut codes = [one.code, two.code];
    codes.sort_unstable();
    assert_eq!(codes, [200, 409]);
}
