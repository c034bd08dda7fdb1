//! Objects of custom resources, and their differences from built-in ones.

use http::Method;
use serde_json::{Value, json};

use crate::answer::Refusal;
use crate::custom::{DEFINITIONS, Widgets};
use crate::objects::{names, version};
use crate::scenario::{Scenario, scenario};
use crate::server::{JSON_PATCH, MERGE, STRATEGIC, STREAMING, Server, with_query};

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario(items_of_a_custom_list_have_a_kind),
        scenario(a_custom_object_counts_generations),
        scenario(status_without_a_subresource_increments_the_generation),
        scenario(update_of_a_custom_object_needs_a_version),
        scenario(a_custom_object_of_another_kind_is_refused),
        scenario(a_missing_custom_object_is_not_found),
        scenario(an_unknown_subresource_of_a_custom_object_is_not_found),
        scenario(an_unsupported_verb_of_a_custom_object_is_not_allowed),
        scenario(custom_object_is_not_written_outside_of_a_namespace),
        scenario(an_unknown_field_is_pruned),
        scenario(unknown_field_in_the_result_of_a_patch_is_reported),
        scenario(a_custom_object_is_created_at_the_path_of_another_one),
        scenario(custom_objects_are_not_updated_at_their_list),
        scenario(a_default_of_the_schema_is_filled_in),
        scenario(a_null_default_of_the_schema_is_ignored),
        scenario(null_that_the_schema_does_not_allow_is_dropped),
        scenario(null_element_of_a_list_or_map_gets_its_default),
        scenario(missing_required_field_is_refused),
        scenario(field_of_another_type_than_the_schema_is_refused),
        scenario(limits_and_enums_of_the_schema_are_checked),
        scenario(repeated_element_of_a_keyed_list_or_set_is_refused),
        scenario(status_in_a_create_of_a_custom_object_is_dropped),
        scenario(status_of_a_custom_object_has_its_own_path),
        scenario(the_scale_of_a_custom_object),
        scenario(scale_of_a_custom_object_needs_replicas),
        scenario(a_custom_object_is_selected_by_its_fields),
        scenario(custom_object_accepts_merge_and_json_patches),
        scenario(custom_object_refuses_strategic_merge_patches),
        scenario(delete_of_a_custom_object_returns_a_status),
        scenario(a_watch_of_custom_objects),
        scenario(too_old_version_is_an_error_event),
        scenario(an_unversioned_watch_needs_no_history),
        scenario(a_streaming_list_of_custom_objects),
        scenario(custom_objects_are_paged),
    ]
}

fn path_of(widgets: &Widgets<'_>, name: &str) -> String {
    format!("{}/{name}", widgets.path())
}

async fn items_of_a_custom_list_have_a_kind(server: Server) {
    let widgets = Widgets::define(&server).await;
    widgets.create("a", "red").await;
    let list = server.get(&widgets.path()).await.expect(200);
    assert_eq!(list["items"][0]["kind"], "Widget");
    assert_eq!(list["items"][0]["apiVersion"], format!("{}/v1", widgets.group));
}

async fn status_without_a_subresource_increments_the_generation(server: Server) {
    let widgets = Widgets::of(&server);
    let mut definition = widgets.definition();
    for version in definition["spec"]["versions"].as_array_mut().expect("versions") {
        version.as_object_mut().expect("a version").remove("subresources");
    }
    server.create(DEFINITIONS, &definition).await;
    widgets.served().await;
    widgets.create("a", "red").await;
    let path = format!("{}/a", widgets.path());
    for (change, expected) in [
        (json!({ "metadata": { "labels": { "x": "1" } } }), 1),
        (json!({ "status": { "ready": true } }), 2),
        (json!({ "spec": { "color": "blue" } }), 3),
    ] {
        let changed = server.patch(&path, MERGE, &change).await.expect(200);
        assert_eq!(changed["metadata"]["generation"], expected, "{change}");
    }
}

async fn a_custom_object_counts_generations(server: Server) {
    let widgets = Widgets::define(&server).await;
    let mut object = widgets.create("a", "red").await;
    assert_eq!(object["metadata"]["generation"], 1);
    object["metadata"]["labels"] = json!({ "x": "1" });
    object = server.put(&path_of(&widgets, "a"), &object).await.expect(200);
    assert_eq!(object["metadata"]["generation"], 1);
    object["spec"]["color"] = "blue".into();
    object = server.put(&path_of(&widgets, "a"), &object).await.expect(200);
    assert_eq!(object["metadata"]["generation"], 2);
}

async fn update_of_a_custom_object_needs_a_version(server: Server) {
    let widgets = Widgets::define(&server).await;
    widgets.create("a", "red").await;
    let message = format!(
        "widgets.{} \"a\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update",
        widgets.group
    );
    let answer = server.put(&path_of(&widgets, "a"), &widgets.widget("a", "blue")).await;
    let refusal = answer.refused(422, "Invalid", &message);
    refusal.is_about(&widgets.group, "widgets", "a");
    refusal.has_causes(&[("FieldValueInvalid", "metadata.resourceVersion")]);
}

async fn a_custom_object_of_another_kind_is_refused(server: Server) {
    let widgets = Widgets::define(&server).await;
    let mut object = widgets.widget("a", "red");
    object["kind"] = "Gadget".into();
    let message =
        format!("Gadget.{} \"a\" is invalid: kind: Invalid value: \"Gadget\": must be Widget", widgets.group);
    server.post(&widgets.path(), &object).await.refused(422, "Invalid", &message);
}

async fn a_missing_custom_object_is_not_found(server: Server) {
    let widgets = Widgets::define(&server).await;
    let message = format!("widgets.{} \"a\" not found", widgets.group);
    let refusal = server.get(&path_of(&widgets, "a")).await.refused(404, "NotFound", &message);
    refusal.is_about(&widgets.group, "widgets", "a");
}

/// The error names the object, even if it exists.
async fn an_unknown_subresource_of_a_custom_object_is_not_found(server: Server) {
    let widgets = Widgets::define(&server).await;
    widgets.create("a", "red").await;
    let message = format!("widgets.{} \"a\" not found", widgets.group);
    let path = format!("{}/nonsense", path_of(&widgets, "a"));
    server.get(&path).await.refused(404, "NotFound", &message).is_about(&widgets.group, "widgets", "a");
    server.patch(&path, MERGE, &json!({})).await.refused(404, "NotFound", &message);
}

async fn an_unsupported_verb_of_a_custom_object_is_not_allowed(server: Server) {
    let widgets = Widgets::define(&server).await;
    let object = widgets.create("a", "red").await;
    let path = path_of(&widgets, "a");
    let message =
        |verb: &str| format!("{verb} is not supported on resources of kind \"widgets.{}\"", widgets.group);
    for path in [format!("{path}/status"), format!("{path}/scale")] {
        let refusal = server.post(&path, &object).await.refused(405, "MethodNotAllowed", &message("create"));
        refusal.is_about(&widgets.group, "widgets", "");
        server.delete(&path).await.refused(405, "MethodNotAllowed", &message("delete"));
    }
    // The server has no verb for this method.
    server.call(Method::OPTIONS, &path, &[], "").await.refused(405, "MethodNotAllowed", &message(""));
}

async fn custom_object_is_not_written_outside_of_a_namespace(server: Server) {
    let widgets = Widgets::define(&server).await;
    let everywhere = format!("/apis/{}/v1/widgets", widgets.group);
    assert_eq!(server.get(&everywhere).await.expect(200)["items"], json!([]));
    for answer in [
        server.post(&everywhere, &widgets.widget("a", "red")).await,
        server.put(&everywhere, &widgets.widget("a", "red")).await,
        server.patch(&everywhere, MERGE, &json!({})).await,
        server.delete(&everywhere).await,
    ] {
        assert_eq!((answer.code, answer.text().as_str()), (404, "404 page not found\n"));
    }
}

async fn a_custom_object_is_created_at_the_path_of_another_one(server: Server) {
    let widgets = Widgets::define(&server).await;
    let path = path_of(&widgets, "a");
    let created = server.post(&path, &widgets.widget("b", "red")).await.expect(201);
    assert_eq!(created["metadata"]["name"], "b");
    server.get(&path).await.refused_with(404, "NotFound", "\"a\" not found");
    server.post(&path, &widgets.widget("b", "red")).await.refused_with(409, "AlreadyExists", "\"b\"");
}

async fn custom_objects_are_not_updated_at_their_list(server: Server) {
    let widgets = Widgets::define(&server).await;
    let path = widgets.path();
    for answer in
        [server.put(&path, &widgets.widget("a", "red")).await, server.patch(&path, MERGE, &json!({})).await]
    {
        answer.refused(400, "BadRequest", "name must be provided");
    }
    let message = format!(" is not supported on resources of kind \"widgets.{}\"", widgets.group);
    server.call(Method::OPTIONS, &path, &[], "").await.refused(405, "MethodNotAllowed", &message);
}

async fn an_unknown_field_is_pruned(server: Server) {
    let widgets = Widgets::define(&server).await;
    let mut object = widgets.widget("a", "red");
    object["spec"]["unknown"] = 1.into();
    let answer = server.post(&widgets.path(), &object).await;
    assert_eq!(answer.header("warning"), "299 - \"unknown field \\\"spec.unknown\\\"\"");
    assert!(answer.expect(201)["spec"].get("unknown").is_none());
    object["metadata"]["name"] = "b".into();
    let strict = format!("{}?fieldValidation=Strict", widgets.path());
    server.post(&strict, &object).await.refused_with(400, "BadRequest", "unknown field \"spec.unknown\"");
}

async fn unknown_field_in_the_result_of_a_patch_is_reported(server: Server) {
    let widgets = Widgets::define(&server).await;
    widgets.create("a", "red").await;
    let path = path_of(&widgets, "a");
    let strict = format!("{path}?fieldValidation=Strict");
    let merge = |value: Value| json!({ "spec": { "unknown": value } });
    let add = json!([{ "op": "add", "path": "/spec/unknown", "value": 1 }]);
    for (kind, patch) in [(MERGE, merge(json!(1))), (JSON_PATCH, add)] {
        let answer = server.patch(&path, kind, &patch).await;
        assert_eq!(answer.header("warning"), "299 - \"unknown field \\\"spec.unknown\\\"\"", "{kind}");
        assert!(answer.expect(200)["spec"].get("unknown").is_none(), "{kind}");
        let message = ": strict decoding error: unknown field \"spec.unknown\"";
        let refusal = server.patch(&strict, kind, &patch).await.refused_with(422, "Invalid", message);
        refusal.has_causes(&[("FieldValueInvalid", "patch")]);
    }
    server.patch(&strict, MERGE, &merge(Value::Null)).await.expect(200);
}

async fn a_default_of_the_schema_is_filled_in(server: Server) {
    let widgets = Widgets::define(&server).await;
    assert_eq!(widgets.create("a", "red").await["spec"]["replicas"], 1);
}

async fn a_null_default_of_the_schema_is_ignored(server: Server) {
    let note = json!({ "type": "string", "default": null });
    let hint = json!({ "type": "string", "default": null, "nullable": true });
    let widgets = define_with(&server, &json!({ "note": note, "hint": hint })).await;
    assert_eq!(widgets.create("a", "red").await["spec"], json!({ "color": "red", "replicas": 1 }));
}

async fn null_that_the_schema_does_not_allow_is_dropped(server: Server) {
    let widgets = Widgets::of(&server);
    let mut definition = widgets.definition();
    for version in definition["spec"]["versions"].as_array_mut().expect("versions") {
        let spec = &mut version["schema"]["openAPIV3Schema"]["properties"]["spec"];
        spec["properties"]["note"] = json!({ "type": "string" });
        spec["properties"]["hint"] = json!({ "type": "string", "nullable": true });
    }
    server.create(DEFINITIONS, &definition).await;
    widgets.served().await;
    let mut object = widgets.widget("a", "red");
    object["spec"] = json!({ "color": "red", "replicas": null, "note": null, "hint": null });
    let created = server.create(&widgets.path(), &object).await;
    assert_eq!(created["spec"], json!({ "color": "red", "replicas": 1, "hint": null }));
}

async fn missing_required_field_is_refused(server: Server) {
    let widgets = Widgets::define(&server).await;
    let mut object = widgets.widget("a", "red");
    object["spec"] = json!({});
    let message = format!("Widget.{} \"a\" is invalid: spec.color: Required value", widgets.group);
    let refusal = server.post(&widgets.path(), &object).await.refused(422, "Invalid", &message);
    refusal.is_about(&widgets.group, "Widget", "a");
    refusal.has_causes(&[("FieldValueRequired", "spec.color")]);
}

async fn field_of_another_type_than_the_schema_is_refused(server: Server) {
    let widgets = Widgets::define(&server).await;
    let mut object = widgets.widget("a", "red");
    object["spec"]["color"] = 5.into();
    let message = format!(
        "Widget.{} \"a\" is invalid: spec.color: Invalid value: \"integer\": spec.color in body must be of type string: \
         \"integer\"",
        widgets.group
    );
    let refusal = server.post(&widgets.path(), &object).await.refused(422, "Invalid", &message);
    refusal.has_causes(&[("FieldValueTypeInvalid", "spec.color")]);
}

async fn limits_and_enums_of_the_schema_are_checked(server: Server) {
    let list = |name: &str, size: u64| json!({ "type": "array", "items": { "type": "string" }, name: size });
    let properties = json!({
        "few": list("maxItems", 1),
        "many": list("minItems", 2),
        "short": { "type": "string", "maxLength": 3 },
        "long": { "type": "string", "minLength": 2 },
        "number": { "type": "integer", "enum": [1, 2] },
        "choice": { "type": "string", "nullable": true, "enum": ["x", "y"] },
    });
    let widgets = define_with(&server, &properties).await;
    for (field, value, reason, message) in [
        ("few", json!(["x", "y"]), "TooMany", "Too many: 2: must have at most 1 item"),
        ("many", json!(["x"]), "Invalid", "Invalid value: 1: spec.many in body should have at least 2 items"),
        ("short", json!("abcd"), "TooLong", "Too long: may not be more than 3 bytes"),
        (
            "long",
            json!("a"),
            "Invalid",
            "Invalid value: \"a\": spec.long in body should be at least 2 chars long",
        ),
        ("number", json!(5), "NotSupported", "Unsupported value: 5: supported values: \"1\", \"2\""),
        ("choice", json!("z"), "NotSupported", "Unsupported value: \"z\": supported values: \"x\", \"y\""),
        ("choice", Value::Null, "NotSupported", "Unsupported value: null: supported values: \"x\", \"y\""),
    ] {
        let mut object = widgets.widget("a", "red");
        object["spec"][field] = value;
        let message = format!("Widget.{} \"a\" is invalid: spec.{field}: {message}", widgets.group);
        let refusal = server.post(&widgets.path(), &object).await.refused(422, "Invalid", &message);
        refusal.has_causes(&[(format!("FieldValue{reason}").as_str(), format!("spec.{field}").as_str())]);
    }
}

async fn null_element_of_a_list_or_map_gets_its_default(server: Server) {
    let text = json!({ "type": "string", "default": "none" });
    let list = json!({ "type": "array", "items": text });
    let map = json!({ "type": "object", "additionalProperties": text });
    let widgets = define_with(&server, &json!({ "list": list, "map": map })).await;
    let mut object = widgets.widget("a", "red");
    object["spec"]["list"] = json!(["x", null]);
    object["spec"]["map"] = json!({ "x": null });
    let created = server.create(&widgets.path(), &object).await;
    assert_eq!(created["spec"]["list"], json!(["x", "none"]));
    assert_eq!(created["spec"]["map"], json!({ "x": "none" }));
}

/// Defines widgets with these additional properties of their spec.
async fn define_with<'a>(server: &'a Server, properties: &Value) -> Widgets<'a> {
    let widgets = Widgets::of(server);
    let mut definition = widgets.definition();
    for version in definition["spec"]["versions"].as_array_mut().expect("versions") {
        let spec = &mut version["schema"]["openAPIV3Schema"]["properties"]["spec"];
        for (name, schema) in properties.as_object().expect("properties") {
            spec["properties"][name] = schema.clone();
        }
    }
    server.create(DEFINITIONS, &definition).await;
    widgets.served().await;
    widgets
}

async fn repeated_element_of_a_keyed_list_or_set_is_refused(server: Server) {
    let properties = json!({ "name": { "type": "string" } });
    let parts = json!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": { "type": "object", "required": ["name"], "properties": properties },
    });
    let tags = json!({ "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string" } });
    let widgets = define_with(&server, &json!({ "parts": parts, "tags": tags })).await;
    let (x, y) = (json!({ "name": "x" }), json!({ "name": "y" }));
    for (field, value, repeated) in
        [("parts", json!([x, y, x, x]), "{\"name\":\"x\"}"), ("tags", json!(["x", "y", "x", "x"]), "\"x\"")]
    {
        let mut object = widgets.widget("a", "red");
        object["spec"][field] = value;
        let (group, path) = (&widgets.group, format!("spec.{field}[2]"));
        let message = format!("Widget.{group} \"a\" is invalid: {path}: Duplicate value: {repeated}");
        let refusal = server.post(&widgets.path(), &object).await.refused(422, "Invalid", &message);
        refusal.has_causes(&[("FieldValueDuplicate", path.as_str())]);
    }
}

async fn status_in_a_create_of_a_custom_object_is_dropped(server: Server) {
    let widgets = Widgets::define(&server).await;
    let mut object = widgets.widget("a", "red");
    object["status"] = json!({ "replicas": 5 });
    assert!(server.create(&widgets.path(), &object).await.get("status").is_none());
}

async fn status_of_a_custom_object_has_its_own_path(server: Server) {
    let widgets = Widgets::define(&server).await;
    widgets.create("a", "red").await;
    let labels = json!({ "x": "1" });
    let change =
        json!({ "status": { "replicas": 2 }, "spec": { "color": "blue" }, "metadata": { "labels": labels } });
    let status = format!("{}/status", path_of(&widgets, "a"));
    let object = server.patch(&status, MERGE, &change).await.expect(200);
    assert_eq!((&object["status"]["replicas"], &object["spec"]["color"]), (&json!(2), &json!("red")));
    assert_eq!((&object["metadata"]["labels"], &object["metadata"]["generation"]), (&Value::Null, &json!(1)));
    let object = server
        .patch(&path_of(&widgets, "a"), MERGE, &json!({ "status": { "replicas": 9 } }))
        .await
        .expect(200);
    assert_eq!(object["status"]["replicas"], 2);
}

async fn the_scale_of_a_custom_object(server: Server) {
    let widgets = Widgets::define(&server).await;
    widgets.create("a", "red").await;
    let path = format!("{}/scale", path_of(&widgets, "a"));
    let scale = server.get(&path).await.expect(200);
    assert_eq!((&scale["kind"], &scale["apiVersion"]), (&json!("Scale"), &json!("autoscaling/v1")));
    assert_eq!((&scale["spec"]["replicas"], scale["status"].get("selector")), (&json!(1), None));
    let mut scale = server.patch(&path, MERGE, &json!({ "spec": { "replicas": 5 } })).await.expect(200);
    assert_eq!(scale["spec"]["replicas"], 5);
    scale["spec"]["replicas"] = 6.into();
    server.put(&path, &scale).await.expect(200);
    server.put(&path, &scale).await.refused_with(409, "Conflict", "the object has been modified");
    let object = server.get(&path_of(&widgets, "a")).await.expect(200);
    assert_eq!((&object["spec"]["replicas"], &object["metadata"]["generation"]), (&json!(6), &json!(3)));
}

async fn scale_of_a_custom_object_needs_replicas(server: Server) {
    let widgets = define_with(&server, &json!({ "replicas": { "type": "integer" } })).await;
    widgets.create("a", "red").await;
    let path = format!("{}/scale", path_of(&widgets, "a"));
    let message = "Internal error occurred: the spec replicas field \".spec.replicas\" does not exist";
    server.get(&path).await.refused(500, "InternalError", message);
    server.patch(&path, MERGE, &json!({ "spec": { "replicas": 2 } })).await.expect(200);
    assert_eq!(server.get(&path).await.expect(200)["spec"]["replicas"], 2);
}

async fn a_custom_object_is_selected_by_its_fields(server: Server) {
    let widgets = Widgets::define(&server).await;
    widgets.create("a", "red").await;
    widgets.create("b", "blue").await;
    let list =
        server.get(&with_query(&widgets.path(), &[("fieldSelector", "spec.color=red")])).await.expect(200);
    assert_eq!(names(&list), ["a"]);
    let answer = server.get(&with_query(&widgets.path(), &[("fieldSelector", "spec.replicas=1")])).await;
    answer.refused(400, "BadRequest", "field label not supported: spec.replicas");
}

async fn custom_object_accepts_merge_and_json_patches(server: Server) {
    let widgets = Widgets::define(&server).await;
    widgets.create("a", "red").await;
    let path = path_of(&widgets, "a");
    let object = server.patch(&path, MERGE, &json!({ "spec": { "color": "blue" } })).await.expect(200);
    assert_eq!(object["spec"]["color"], "blue");
    let operations = json!([{ "op": "replace", "path": "/spec/color", "value": "green" }]);
    let object = server.patch(&path, JSON_PATCH, &operations).await.expect(200);
    assert_eq!(object["spec"]["color"], "green");
}

async fn custom_object_refuses_strategic_merge_patches(server: Server) {
    let widgets = Widgets::define(&server).await;
    widgets.create("a", "red").await;
    let answer = server.patch(&path_of(&widgets, "a"), STRATEGIC, &json!({})).await;
    let message = "the body of the request was in an unknown format - accepted media types include: \
        application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
    answer.refused(415, "UnsupportedMediaType", message);
}

async fn delete_of_a_custom_object_returns_a_status(server: Server) {
    let widgets = Widgets::define(&server).await;
    let created = widgets.create("a", "red").await;
    let answer = server.delete(&path_of(&widgets, "a")).await.expect(200);
    assert_eq!((&answer["kind"], &answer["status"]), (&json!("Status"), &json!("Success")));
    let details = json!({
        "name": "a",
        "group": widgets.group,
        "kind": "widgets",
        "uid": created["metadata"]["uid"],
    });
    assert_eq!(answer["details"], details);
}

async fn a_watch_of_custom_objects(server: Server) {
    let widgets = Widgets::define(&server).await;
    let created = widgets.create("a", "red").await;
    let from = version(&created).to_string();
    let mut watch = server.watch_path(&widgets.path(), &[("resourceVersion", &from)]).await;
    server.patch(&path_of(&widgets, "a"), MERGE, &json!({ "spec": { "color": "blue" } })).await.expect(200);
    server.delete(&path_of(&widgets, "a")).await.expect(200);
    assert_eq!(watch.briefs(2).await, ["MODIFIED a", "DELETED a"]);
}

async fn too_old_version_is_an_error_event(server: Server) {
    let widgets = Widgets::define(&server).await;
    let then = version(&widgets.create("a", "red").await).to_string();
    widgets.create("b", "red").await;
    widgets.forget_history().await;
    let mut watch = server.watch_path(&widgets.path(), &[("resourceVersion", &then)]).await;
    let refusal = Refusal(watch.expect("ERROR").await);
    refusal.is_status(410, "Expired");
    let message = format!("too old resource version: {then} (");
    assert!(refusal.message().starts_with(&message), "{}", refusal.message());
    watch.ends().await;
}

async fn an_unversioned_watch_needs_no_history(server: Server) {
    let widgets = Widgets::define(&server).await;
    widgets.create("a", "red").await;
    widgets.forget_history().await;
    assert_eq!(server.watch_path(&widgets.path(), &[]).await.briefs(1).await, ["ADDED a"]);
}

async fn a_streaming_list_of_custom_objects(server: Server) {
    let widgets = Widgets::define(&server).await;
    widgets.create("b", "red").await;
    widgets.create("a", "red").await;
    let mut watch = server.watch_path(&widgets.path(), &STREAMING).await;
    assert_eq!(watch.briefs(2).await, ["ADDED a", "ADDED b"]);
    let end = watch.expect("BOOKMARK").await;
    let expected = json!({
        "apiVersion": format!("{}/v1", widgets.group),
        "kind": "Widget",
        "metadata": {
            "resourceVersion": version(&end).to_string(),
            "annotations": { "k8s.io/initial-events-end": "true" },
        },
    });
    assert_eq!(end, expected);
}

async fn custom_objects_are_paged(server: Server) {
    let widgets = Widgets::define(&server).await;
    for name in ["a", "b", "c"] {
        widgets.create(name, "red").await;
    }
    let first = server.get(&with_query(&widgets.path(), &[("limit", "2")])).await.expect(200);
    assert_eq!((names(&first), &first["metadata"]["remainingItemCount"]), (vec!["a", "b"], &json!(1)));
    let token = crate::objects::token(&first);
    let rest = server.get(&with_query(&widgets.path(), &[("continue", token)])).await.expect(200);
    assert_eq!((names(&rest), version(&rest)), (vec!["c"], version(&first)));
}
