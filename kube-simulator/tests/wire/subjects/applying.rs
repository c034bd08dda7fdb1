//! Server-side apply: ownership of fields.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::custom::Widgets;
use crate::objects::{containers, deployment, ingress, secret, version};
use crate::scenario::{Scenario, scenario};
use crate::server::{APPLY, MERGE, Server};

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario(applying_creates_a_missing_object),
        scenario(applying_a_new_object_ignores_its_creation_time),
        scenario(applying_a_new_object_ignores_its_generation),
        scenario(applying_a_new_secret_moves_its_string_data),
        scenario(applying_the_same_object_again_keeps_its_version),
        scenario(applying_a_field_of_another_manager_is_a_conflict),
        scenario(forced_apply_takes_over_fields),
        scenario(applying_the_same_value_shares_ownership_of_a_field),
        scenario(applying_merges_containers_by_name),
        scenario(containers_no_longer_applied_are_removed_unless_owned),
        scenario(applying_another_image_is_a_conflict_of_one_container),
        scenario(an_empty_entry_removes_all_managed_fields),
        scenario(writes_to_an_object_without_owners_are_not_recorded),
        scenario(new_object_with_an_empty_list_of_owners_gets_one),
        scenario(first_apply_to_an_object_without_owners_conflicts),
        scenario(fields_no_longer_applied_are_removed_unless_owned),
        scenario(applying_a_map_with_and_without_fields_keeps_the_map),
        scenario(applying_needs_a_manager),
        scenario(applying_needs_a_kind),
        scenario(applied_name_must_match_the_path),
        scenario(applying_a_new_object_needs_a_name),
        scenario(applying_rejects_managed_fields),
        scenario(applying_from_an_old_version_is_a_conflict),
        scenario(applying_records_ownership_in_managed_fields),
        scenario(applying_a_status_owns_only_fields_that_it_can_set),
        scenario(applying_the_status_of_a_custom_object_owns_no_labels),
        scenario(update_takes_ownership_of_changed_fields),
        scenario(a_dry_run_of_applying_stores_nothing),
        scenario(force_is_refused_for_other_patches),
        scenario(applying_a_duplicate_list_element_is_refused),
        scenario(applying_an_undeclared_field_is_refused),
        scenario(applying_labels_that_are_not_strings_is_refused),
        scenario(applying_a_uid_to_a_missing_object_is_a_conflict),
        scenario(applying_another_uid_is_refused),
        scenario(managed_fields_list_appliers_first),
    ]
}

async fn apply(server: &Server, query: &str, content: &Value) -> Answer {
    let mut object = secret("a");
    for (field, value) in content.as_object().expect("fields") {
        object[field] = value.clone();
    }
    server.patch(&format!("{}?{query}", server.secret_path("a")), APPLY, &object).await
}

async fn applying_creates_a_missing_object(server: Server) {
    let object = apply(&server, "fieldManager=one", &json!({ "data": { "a": "YQ==" } })).await.expect(201);
    assert_eq!(object["data"], json!({ "a": "YQ==" }));
    assert_eq!(server.get(&server.secret_path("a")).await.expect(200), object);
}

async fn applying_a_new_object_ignores_its_creation_time(server: Server) {
    const GIVEN: &str = "2020-01-01T00:00:00Z";
    for given in [json!(null), json!(GIVEN)] {
        let metadata = json!({ "name": "a", "creationTimestamp": given });
        let content = json!({ "metadata": metadata });
        let object = apply(&server, "fieldManager=one&dryRun=All", &content).await.expect(201);
        let created = object["metadata"]["creationTimestamp"].as_str().expect("a creation time");
        assert!(created > GIVEN, "{created}");
    }
}

async fn applying_a_new_object_ignores_its_generation(server: Server) {
    let mut object = ingress("a");
    object["metadata"]["generation"] = 7.into();
    let path = server.group("networking.k8s.io/v1", "ingresses/a?fieldManager=one");
    let created = server.patch(&path, APPLY, &object).await.expect(201);
    assert_eq!(created["metadata"]["generation"], 1);
}

async fn applying_a_new_secret_moves_its_string_data(server: Server) {
    let content = json!({ "stringData": { "a": "x" } });
    let object = apply(&server, "fieldManager=one", &content).await.expect(201);
    assert_eq!((&object["data"], object.get("stringData")), (&json!({ "a": "eA==" }), None));
}

async fn applying_the_same_object_again_keeps_its_version(server: Server) {
    let content = json!({ "data": { "a": "YQ==" } });
    let first = apply(&server, "fieldManager=one", &content).await.expect(201);
    let second = apply(&server, "fieldManager=one", &content).await.expect(200);
    assert_eq!(version(&first), version(&second));
}

async fn applying_a_field_of_another_manager_is_a_conflict(server: Server) {
    apply(&server, "fieldManager=one", &json!({ "data": { "a": "YQ==" } })).await.expect(201);
    let answer = apply(&server, "fieldManager=two", &json!({ "data": { "a": "Yg==" } })).await;
    let message = "Apply failed with 1 conflict: conflict with \"one\": .data.a";
    let refusal = answer.refused(409, "Conflict", message);
    refusal.has_causes(&[("FieldManagerConflict", ".data.a")]);
    assert_eq!(refusal.details()["causes"][0]["message"], "conflict with \"one\"");
}

async fn forced_apply_takes_over_fields(server: Server) {
    apply(&server, "fieldManager=one", &json!({ "data": { "a": "YQ==" } })).await.expect(201);
    let object =
        apply(&server, "fieldManager=two&force=true", &json!({ "data": { "a": "Yg==" } })).await.expect(200);
    assert_eq!(object["data"]["a"], "Yg==");
    // The first manager no longer owns the field, so it can omit the field without effect.
    let object = apply(&server, "fieldManager=one", &json!({})).await.expect(200);
    assert_eq!(object["data"]["a"], "Yg==");
    // All values except `0` and `false` are true.
    let content = json!({ "data": { "a": "Yw==" } });
    let object = apply(&server, "fieldManager=three&force=1", &content).await.expect(200);
    assert_eq!(object["data"]["a"], "Yw==");
}

async fn applying_the_same_value_shares_ownership_of_a_field(server: Server) {
    let content = json!({ "data": { "a": "YQ==" } });
    apply(&server, "fieldManager=one", &content).await.expect(201);
    apply(&server, "fieldManager=two", &content).await.expect(200);
    let object = apply(&server, "fieldManager=one", &json!({})).await.expect(200);
    assert_eq!(object["data"], content["data"]);
}

async fn fields_no_longer_applied_are_removed_unless_owned(server: Server) {
    apply(&server, "fieldManager=one", &json!({ "data": { "a": "YQ==", "b": "Yg==" } })).await.expect(201);
    let object = apply(&server, "fieldManager=one", &json!({ "data": { "a": "YQ==" } })).await.expect(200);
    assert_eq!(object["data"], json!({ "a": "YQ==" }));
}

async fn applying_a_map_with_and_without_fields_keeps_the_map(server: Server) {
    let path = server.group("apps/v1", "deployments/a?fieldManager=one");
    for content in [json!({}), json!({ "sizeLimit": "1Gi" }), json!({})] {
        let mut object = deployment("a");
        object["spec"]["template"]["spec"]["volumes"] = json!([{ "name": "x", "emptyDir": content }]);
        let answer = server.patch(&path, APPLY, &object).await;
        let code = if answer.code == 201 { 201 } else { 200 };
        let applied = answer.expect(code);
        assert_eq!(applied["spec"]["template"]["spec"]["volumes"][0]["emptyDir"], content);
    }
}

async fn applying_needs_a_manager(server: Server) {
    let answer = apply(&server, "dryRun=All", &json!({})).await;
    let message =
        "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch";
    answer.refused(422, "Invalid", message).has_causes(&[("FieldValueRequired", "fieldManager")]);
}

async fn applying_needs_a_kind(server: Server) {
    let path = format!("{}?fieldManager=one", server.secret_path("a"));
    let answer = server.patch(&path, APPLY, &json!({ "metadata": { "name": "a" } })).await;
    answer.refused(400, "BadRequest", "invalid object type: /, Kind=");
}

async fn applied_name_must_match_the_path(server: Server) {
    let answer = apply(&server, "fieldManager=one", &json!({ "metadata": { "name": "b" } })).await;
    answer.refused(400, "BadRequest", "the name of the object (b) does not match the name on the URL (a)");
}

async fn applying_a_new_object_needs_a_name(server: Server) {
    let path = format!("{}?fieldManager=one", server.secret_path("a"));
    let nameless = json!({ "apiVersion": "v1", "kind": "Secret", "data": { "a": "YQ==" } });
    let answer = server.patch(&path, APPLY, &nameless).await;
    let message = "the name of the object (a based on URL) was undeterminable: name must be provided";
    answer.refused(400, "BadRequest", message);
    apply(&server, "fieldManager=one", &json!({})).await.expect(201);
    let object = server.patch(&path, APPLY, &nameless).await.expect(200);
    assert_eq!(object["data"], json!({ "a": "YQ==" }));
}

async fn applying_rejects_managed_fields(server: Server) {
    let metadata = json!({ "name": "a", "managedFields": [{ "manager": "me" }] });
    let answer = apply(&server, "fieldManager=one", &json!({ "metadata": metadata })).await;
    answer.refused(400, "BadRequest", "metadata.managedFields must be nil");
}

async fn applying_from_an_old_version_is_a_conflict(server: Server) {
    server.create_secrets(&["a"]).await;
    let metadata = json!({ "name": "a", "resourceVersion": "1" });
    let answer = apply(&server, "fieldManager=one", &json!({ "metadata": metadata })).await;
    let message = "Operation cannot be fulfilled on secrets \"a\": the object has been modified";
    answer.refused_with(409, "Conflict", message);
}

async fn applying_records_ownership_in_managed_fields(server: Server) {
    let object = apply(&server, "fieldManager=one", &json!({ "data": { "a": "YQ==" } })).await.expect(201);
    let managed = object["metadata"]["managedFields"].as_array().expect("managed fields");
    assert_eq!(managed.len(), 1, "{object}");
    let one = &managed[0];
    assert_eq!((&one["manager"], &one["operation"]), (&json!("one"), &json!("Apply")));
    assert_eq!((&one["apiVersion"], &one["fieldsType"]), (&json!("v1"), &json!("FieldsV1")));
    assert_eq!(one["fieldsV1"], json!({ "f:data": { "f:a": {} } }));
    assert!(one["time"].is_string());
}

async fn applying_a_status_owns_only_fields_that_it_can_set(server: Server) {
    let path = server.group("apps/v1", "deployments");
    server.create(&path, &deployment("a")).await;
    let applied = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": "a", "labels": { "x": "1" }, "annotations": { "x": "1" } },
        "status": { "collisionCount": 7 },
    });
    let path = format!("{path}/a/status?fieldManager=one");
    let object = server.patch(&path, APPLY, &applied).await.expect(200);
    assert_eq!(
        (&object["status"]["collisionCount"], &object["metadata"]["labels"]),
        (&json!(7), &Value::Null)
    );
    let entries = object["metadata"]["managedFields"].as_array().expect("entries");
    let entry = entries.iter().find(|entry| entry["manager"] == "one").expect("an entry");
    assert_eq!(entry["subresource"], "status");
    let owned = json!({
        "f:metadata": { "f:annotations": { "f:x": {} } },
        "f:status": { "f:collisionCount": {} },
    });
    assert_eq!(entry["fieldsV1"], owned);
}

async fn applying_the_status_of_a_custom_object_owns_no_labels(server: Server) {
    let widgets = Widgets::define(&server).await;
    widgets.create("a", "red").await;
    let applied = json!({
        "apiVersion": format!("{}/v1", widgets.group),
        "kind": "Widget",
        "metadata": { "name": "a", "labels": { "x": "1" } },
        "status": { "replicas": 2 },
    });
    let path = format!("{}/a/status?fieldManager=one", widgets.path());
    let object = server.patch(&path, APPLY, &applied).await.expect(200);
    assert_eq!((&object["status"]["replicas"], &object["metadata"]["labels"]), (&json!(2), &Value::Null));
    let entries = object["metadata"]["managedFields"].as_array().expect("entries");
    let entry = entries.iter().find(|entry| entry["manager"] == "one").expect("an entry");
    assert_eq!(entry["fieldsV1"], json!({ "f:status": { "f:replicas": {} } }));
}

async fn update_takes_ownership_of_changed_fields(server: Server) {
    apply(&server, "fieldManager=one", &json!({ "data": { "a": "YQ==", "b": "YQ==" } })).await.expect(201);
    let path = format!("{}?fieldManager=two", server.secret_path("a"));
    let object = server.patch(&path, MERGE, &json!({ "data": { "a": "Yg==" } })).await.expect(200);
    assert_eq!(owned_by(&object, "one"), ("Apply".to_owned(), json!({ "f:data": { "f:b": {} } })));
    assert_eq!(owned_by(&object, "two"), ("Update".to_owned(), json!({ "f:data": { "f:a": {} } })));
    let answer = apply(&server, "fieldManager=one", &json!({ "data": { "a": "YQ==" } })).await;
    let message = "Apply failed with 1 conflict: conflict with \"two\" using v1";
    answer.refused_with(409, "Conflict", message).has_causes(&[("FieldManagerConflict", ".data.a")]);
}

async fn a_dry_run_of_applying_stores_nothing(server: Server) {
    let shown =
        apply(&server, "fieldManager=one&dryRun=All", &json!({ "data": { "a": "YQ==" } })).await.expect(201);
    assert_eq!(shown["data"]["a"], "YQ==");
    server.get(&server.secret_path("a")).await.refused_with(404, "NotFound", "not found");
}

async fn force_is_refused_for_other_patches(server: Server) {
    server.create_secrets(&["a"]).await;
    let answer = server.patch(&format!("{}?force=true", server.secret_path("a")), MERGE, &json!({})).await;
    let message = "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for non-apply patch";
    answer.refused(422, "Invalid", message).has_causes(&[("FieldValueForbidden", "force")]);
}

async fn applying_a_duplicate_list_element_is_refused(server: Server) {
    let mut object = deployment("a");
    let containers = &mut object["spec"]["template"]["spec"]["containers"];
    let first = containers[0].clone();
    containers.as_array_mut().expect("a list").push(first);
    let path = server.group("apps/v1", "deployments/a?fieldManager=one");
    let message = "failed to create typed patch object (/a; apps/v1, Kind=Deployment): \
        .spec.template.spec.containers: duplicate entries for key [name=\"main\"]";
    server.patch(&path, APPLY, &object).await.refused(500, "", message);
    let metadata = json!({ "name": "a", "finalizers": ["wire.test/a", "wire.test/a"] });
    let answer = apply(&server, "fieldManager=one", &json!({ "metadata": metadata })).await;
    let message = ".metadata.finalizers: duplicate entries for key [=\"wire.test/a\"]";
    answer.refused_with(500, "", message);
}

async fn applying_an_undeclared_field_is_refused(server: Server) {
    let widgets = Widgets::define(&server).await;
    let mut object = widgets.widget("a", "red");
    object["spec"]["unknown"] = 1.into();
    let message = format!(
        "failed to create typed patch object (/a; {}/v1, Kind=Widget): .spec.unknown: field not declared in \
         schema",
        widgets.group
    );
    for validation in ["Ignore", "Strict", "Warn"] {
        let path = format!("{}/a?fieldManager=one&fieldValidation={validation}", widgets.path());
        server.patch(&path, APPLY, &object).await.refused(500, "", &message);
    }
}

async fn applying_labels_that_are_not_strings_is_refused(server: Server) {
    for field in ["labels", "annotations"] {
        let metadata = json!({ "name": "a", field: { "x": 5 } });
        let answer = apply(&server, "fieldManager=one", &json!({ "metadata": metadata })).await;
        let message = format!(
            "failed to create typed patch object (/a; /v1, Kind=Secret): .metadata.{field}.x: expected string, got \
             &value.valueUnstructured{{Value:5}}"
        );
        answer.refused(500, "", &message);
    }
}

async fn applying_a_uid_to_a_missing_object_is_a_conflict(server: Server) {
    let metadata = json!({ "name": "a", "uid": "some" });
    let answer = apply(&server, "fieldManager=one", &json!({ "metadata": metadata })).await;
    let message = "Operation cannot be fulfilled on secrets \"a\": uid mismatch: the provided object specified uid \
        some, and no existing object was found";
    answer.refused(409, "Conflict", message).is_about("", "secrets", "a");
}

async fn applying_another_uid_is_refused(server: Server) {
    server.create_secrets(&["a"]).await;
    let metadata = json!({ "name": "a", "uid": "some" });
    let answer = apply(&server, "fieldManager=one", &json!({ "metadata": metadata })).await;
    answer.refused_with(422, "Invalid", "metadata.uid: Invalid value: \"some\": field is immutable");
}

async fn managed_fields_list_appliers_first(server: Server) {
    server.create(&format!("{}?fieldManager=b", server.secrets()), &secret("a")).await;
    let path = |manager: &str| format!("{}?fieldManager={manager}", server.secret_path("a"));
    server.patch(&path("b"), MERGE, &json!({ "data": { "b": "YQ==" } })).await.expect(200);
    server.patch(&path("a"), MERGE, &json!({ "data": { "a": "YQ==" } })).await.expect(200);
    let object = apply(&server, "fieldManager=z", &json!({ "data": { "z": "YQ==" } })).await.expect(200);
    let entries = object["metadata"]["managedFields"].as_array().expect("entries");
    let operations: Vec<&Value> = entries.iter().map(|entry| &entry["operation"]).collect();
    assert_eq!(operations, ["Apply", "Update", "Update"], "{object}");
    assert_eq!(entries[0]["manager"], "z");
}

/// Applies a Deployment with these containers.
async fn apply_containers(server: &Server, query: &str, containers: Value) -> Answer {
    let mut object = deployment("a");
    object["spec"]["template"]["spec"]["containers"] = containers;
    server.patch(&format!("{}?{query}", server.group("apps/v1", "deployments/a")), APPLY, &object).await
}

/// Returns the operation and the owned fields of a manager.
fn owned_by(object: &Value, manager: &str) -> (String, Value) {
    let entries = object["metadata"]["managedFields"].as_array().expect("entries");
    let entry = entries.iter().find(|entry| entry["manager"] == manager).expect("an entry");
    (entry["operation"].as_str().expect("text").to_owned(), entry["fieldsV1"].clone())
}

async fn applying_merges_containers_by_name(server: Server) {
    let main = json!({ "name": "main", "image": "example.test/1", "tty": true });
    let side = json!({ "name": "side", "image": "example.test/1" });
    apply_containers(&server, "fieldManager=one", json!([main])).await.expect(201);
    let merged = apply_containers(&server, "fieldManager=two", json!([side])).await.expect(200);
    let mut names: Vec<String> =
        containers(&merged).iter().map(|container| container[0].to_string()).collect();
    names.sort_unstable();
    assert_eq!(names, ["\"main\"", "\"side\""]);
    assert_eq!(owned_by(&merged, "one").0, "Apply");
    let (operation, owned) = owned_by(&merged, "two");
    assert_eq!(operation, "Apply");
    let owned = &owned["f:spec"]["f:template"]["f:spec"]["f:containers"];
    assert_eq!(owned, &json!({ "k:{\"name\":\"side\"}": { ".": {}, "f:name": {}, "f:image": {} } }));
}

async fn containers_no_longer_applied_are_removed_unless_owned(server: Server) {
    let main = json!({ "name": "main", "image": "example.test/1" });
    let mut with_terminal = main.clone();
    with_terminal["tty"] = true.into();
    let both = json!([with_terminal, { "name": "side", "image": "example.test/1" }]);
    apply_containers(&server, "fieldManager=one", both).await.expect(201);
    apply_containers(&server, "fieldManager=two", json!([main])).await.expect(200);
    let left = apply_containers(&server, "fieldManager=one", json!([])).await.expect(200);
    assert_eq!(containers(&left), [json!(["main", "example.test/1", null])]);
}

async fn applying_another_image_is_a_conflict_of_one_container(server: Server) {
    let path = format!("{}?fieldManager=creator", server.group("apps/v1", "deployments"));
    server.create(&path, &deployment("a")).await;
    let other = json!([{ "name": "main", "image": "example.test/2" }]);
    let answer = apply_containers(&server, "fieldManager=one", other.clone()).await;
    let message = "Apply failed with 1 conflict: conflict with \"creator\" using apps/v1";
    let field = ".spec.template.spec.containers[name=\"main\"].image";
    answer.refused_with(409, "Conflict", message).has_causes(&[("FieldManagerConflict", field)]);
    let taken = apply_containers(&server, "fieldManager=one&force=true", other.clone()).await.expect(200);
    assert_eq!(containers(&taken), [json!(["main", "example.test/2", null])]);
    let (operation, owned) = owned_by(&taken, "creator");
    assert!(operation == "Update" && !owned.to_string().contains("\"f:image\""), "{owned}");
}

async fn an_empty_entry_removes_all_managed_fields(server: Server) {
    apply(&server, "fieldManager=one", &json!({ "data": { "a": "YQ==" } })).await.expect(201);
    let forget = json!({ "metadata": { "managedFields": [{}] } });
    let forgotten = server.patch(&server.secret_path("a"), MERGE, &forget).await.expect(200);
    assert!(forgotten["metadata"].get("managedFields").is_none(), "{forgotten}");
    assert_eq!(server.get(&server.secret_path("a")).await.expect(200), forgotten);
}

async fn writes_to_an_object_without_owners_are_not_recorded(server: Server) {
    for (name, none) in [("a", json!([{}])), ("b", json!([]))] {
        server.create_secrets(&[name]).await;
        let forget = json!({ "metadata": { "managedFields": none } });
        server.patch(&server.secret_path(name), MERGE, &forget).await.expect(200);
        let changed = server.label(name, "x", "1").await;
        assert!(changed["metadata"].get("managedFields").is_none(), "{changed}");
    }
}

async fn new_object_with_an_empty_list_of_owners_gets_one(server: Server) {
    for (name, none) in [("a", json!([{}])), ("b", json!([]))] {
        let mut object = secret(name);
        object["metadata"]["managedFields"] = none;
        let path = format!("{}?fieldManager=one", server.secrets());
        let created = server.create(&path, &object).await;
        assert_eq!(owned_by(&created, "one").0, "Update");
    }
}

async fn first_apply_to_an_object_without_owners_conflicts(server: Server) {
    let mut object = secret("a");
    object["data"] = json!({ "a": "YQ==" });
    server.create(&server.secrets(), &object).await;
    let forget = json!({ "metadata": { "managedFields": [{}] } });
    server.patch(&server.secret_path("a"), MERGE, &forget).await.expect(200);
    let content = json!({ "data": { "a": "Yg==" } });
    let answer = apply(&server, "fieldManager=one", &content).await;
    let message = "Apply failed with 1 conflict: conflict with \"before-first-apply\" using v1: .data.a";
    answer.refused(409, "Conflict", message).has_causes(&[("FieldManagerConflict", ".data.a")]);
    let forced = apply(&server, "fieldManager=one&force=true", &content).await.expect(200);
    assert_eq!(owned_by(&forced, "one"), ("Apply".to_owned(), json!({ "f:data": { "f:a": {} } })));
    let (operation, owned) = owned_by(&forced, "before-first-apply");
    assert_eq!((operation.as_str(), &owned["f:type"]), ("Update", &json!({})));
    assert_eq!(owned["f:data"]["f:a"], Value::Null);
}
