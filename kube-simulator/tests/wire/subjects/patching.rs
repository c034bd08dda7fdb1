//! Changing objects by patches.

use http::Method;
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::objects::{containers, deployment, secret, uid, version};
use crate::scenario::{Scenario, scenario};
use crate::server::{JSON_PATCH, MERGE, STRATEGIC, Server};

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario(merge_patch_sets_its_fields),
        scenario(merge_patch_removes_fields_set_to_null),
        scenario(a_merge_patch_replaces_lists),
        scenario(a_json_patch_does_its_operations_in_order),
        scenario(a_json_patch_whose_test_fails_is_refused),
        scenario(json_patch_of_a_missing_field_is_refused),
        scenario(json_patch_replaces_or_tests_a_missing_field),
        scenario(json_patch_counts_negative_indices_from_the_end),
        scenario(a_json_patch_with_an_unknown_operation_is_refused),
        scenario(json_patch_without_a_list_is_refused),
        scenario(a_strategic_merge_patch_sets_labels),
        scenario(strategic_merge_patch_stores_no_directives),
        scenario(a_strategic_merge_patch_merges_containers_by_name),
        scenario(patch_with_invalid_json_is_refused),
        scenario(merge_patch_without_an_object_is_refused),
        scenario(a_patch_from_an_old_version_is_a_conflict),
        scenario(patch_with_the_current_version_succeeds),
        scenario(patch_with_another_uid_is_refused),
        scenario(patch_with_another_name_is_refused),
        scenario(patch_of_a_missing_object_is_not_found),
        scenario(a_patch_of_unknown_type_is_refused),
        scenario(a_patch_of_a_collection_is_not_allowed),
        scenario(patch_without_a_change_keeps_the_version),
        scenario(patch_cannot_change_the_servers_fields),
        scenario(a_dry_run_of_a_patch_stores_nothing),
        scenario(json_patch_with_too_many_operations_is_refused),
        scenario(json_patch_that_copies_too_much_is_refused),
        scenario(patch_with_too_large_a_body_is_refused),
    ]
}

async fn patch(server: &Server, kind: &str, patch: &Value) -> Answer {
    server.patch(&server.secret_path("a"), kind, patch).await
}

async fn with_data(server: &Server) -> Value {
    let mut object = secret("a");
    object["data"] = json!({ "k": "dg==", "l": "dw==" });
    server.create(&server.secrets(), &object).await
}

async fn merge_patch_sets_its_fields(server: Server) {
    let old = with_data(&server).await;
    let new = patch(&server, MERGE, &json!({ "data": { "k": "eA==" } })).await.expect(200);
    assert_eq!(new["data"], json!({ "k": "eA==", "l": "dw==" }));
    assert!(version(&new) > version(&old));
}

async fn merge_patch_removes_fields_set_to_null(server: Server) {
    with_data(&server).await;
    let new = patch(&server, MERGE, &json!({ "data": { "k": null } })).await.expect(200);
    assert_eq!(new["data"], json!({ "l": "dw==" }));
}

async fn a_merge_patch_replaces_lists(server: Server) {
    let mut object = secret("a");
    object["metadata"]["finalizers"] = json!(["wire.test/a", "wire.test/b"]);
    server.create(&server.secrets(), &object).await;
    let new =
        patch(&server, MERGE, &json!({ "metadata": { "finalizers": ["wire.test/c"] } })).await.expect(200);
    assert_eq!(new["metadata"]["finalizers"], json!(["wire.test/c"]));
}

async fn a_json_patch_does_its_operations_in_order(server: Server) {
    with_data(&server).await;
    let operations = json!([
        { "op": "test", "path": "/data/k", "value": "dg==" },
        { "op": "add", "path": "/metadata/labels", "value": {} },
        { "op": "add", "path": "/metadata/labels/wire.test~1x", "value": "1" },
        { "op": "move", "from": "/data/k", "path": "/data/m" },
        { "op": "remove", "path": "/data/l" },
    ]);
    let new = patch(&server, JSON_PATCH, &operations).await.expect(200);
    assert_eq!(new["data"], json!({ "m": "dg==" }));
    assert_eq!(new["metadata"]["labels"], json!({ "wire.test/x": "1" }));
}

const REJECTED: &str = "the server rejected our request due to an error in our request";

async fn a_json_patch_whose_test_fails_is_refused(server: Server) {
    let old = with_data(&server).await;
    let operations = json!([{ "op": "test", "path": "/data/k", "value": "eA==" }]);
    patch(&server, JSON_PATCH, &operations).await.refused(422, "Invalid", REJECTED);
    assert_eq!(server.get(&server.secret_path("a")).await.expect(200), old);
}

async fn json_patch_of_a_missing_field_is_refused(server: Server) {
    with_data(&server).await;
    let operations = json!([{ "op": "remove", "path": "/metadata/labels/x" }]);
    patch(&server, JSON_PATCH, &operations).await.refused(422, "Invalid", REJECTED);
}

async fn json_patch_replaces_or_tests_a_missing_field(server: Server) {
    with_data(&server).await;
    let operations = json!([
        { "op": "test", "path": "/metadata/deletionTimestamp", "value": null },
        { "op": "test", "path": "/data/m", "value": null },
        { "op": "replace", "path": "/data/m", "value": "eA==" },
    ]);
    let new = patch(&server, JSON_PATCH, &operations).await.expect(200);
    assert_eq!(new["data"], json!({ "k": "dg==", "l": "dw==", "m": "eA==" }));
    for operation in [
        json!({ "op": "test", "path": "/data/n", "value": "eA==" }),
        json!({ "op": "test", "path": "/metadata/labels/x", "value": null }),
        json!({ "op": "replace", "path": "/metadata/labels/x", "value": "1" }),
    ] {
        patch(&server, JSON_PATCH, &json!([operation])).await.refused(422, "Invalid", REJECTED);
    }
}

async fn json_patch_counts_negative_indices_from_the_end(server: Server) {
    let mut object = deployment("a");
    object["spec"]["template"]["spec"]["containers"][0]["args"] = json!(["a", "b", "c"]);
    let path = server.group("apps/v1", "deployments");
    server.create(&path, &object).await;
    let path = format!("{path}/a");
    let at = |index: &str| format!("/spec/template/spec/containers/-1/args/{index}");
    let operations = json!([
        { "op": "replace", "path": at("-1"), "value": "d" },
        { "op": "add", "path": at("-1"), "value": "e" },
        { "op": "add", "path": at("-2"), "value": "f" },
        { "op": "remove", "path": at("-5") },
        { "op": "move", "from": at("0"), "path": at("-1") },
        { "op": "copy", "from": at("-4"), "path": at("-") },
        { "op": "test", "path": at("-3"), "value": "e" },
    ]);
    let patched = server.patch(&path, JSON_PATCH, &operations).await.expect(200);
    let args = &patched["spec"]["template"]["spec"]["containers"][0]["args"];
    assert_eq!(*args, json!(["d", "f", "e", "b", "d"]));
    for operation in [
        json!({ "op": "remove", "path": at("-6") }),
        json!({ "op": "add", "path": at("-7"), "value": "g" }),
        json!({ "op": "add", "path": "", "value": object }),
    ] {
        server.patch(&path, JSON_PATCH, &json!([operation])).await.refused(422, "Invalid", REJECTED);
    }
}

async fn a_json_patch_with_an_unknown_operation_is_refused(server: Server) {
    with_data(&server).await;
    let operations = json!([{ "op": "twist", "path": "/data/k" }]);
    patch(&server, JSON_PATCH, &operations).await.refused(422, "Invalid", REJECTED);
}

async fn json_patch_without_a_list_is_refused(server: Server) {
    with_data(&server).await;
    let answer = patch(&server, JSON_PATCH, &json!({ "op": "remove", "path": "/data/k" })).await;
    answer.refused_with(400, "BadRequest", "error decoding patch: ");
}

async fn a_strategic_merge_patch_sets_labels(server: Server) {
    with_data(&server).await;
    let new = patch(&server, STRATEGIC, &json!({ "metadata": { "labels": { "x": "1" } } })).await.expect(200);
    assert_eq!(new["metadata"]["labels"]["x"], "1");
}

async fn patch_with_invalid_json_is_refused(server: Server) {
    with_data(&server).await;
    for kind in [MERGE, JSON_PATCH, STRATEGIC] {
        let headers = [("content-type", kind)];
        let answer = server.call(Method::PATCH, &server.secret_path("a"), &headers, "{bad").await;
        answer.refused_with(400, "BadRequest", "");
    }
}

async fn merge_patch_without_an_object_is_refused(server: Server) {
    with_data(&server).await;
    for body in [json!([]), json!("x"), json!(5)] {
        patch(&server, MERGE, &body).await.refused_with(400, "BadRequest", "error decoding patch: ");
    }
}

async fn a_patch_from_an_old_version_is_a_conflict(server: Server) {
    let old = with_data(&server).await;
    server.label("a", "x", "1").await;
    let body = json!({ "metadata": { "resourceVersion": old["metadata"]["resourceVersion"] } });
    let message = "Operation cannot be fulfilled on secrets \"a\": the object has been modified; \
        please apply your changes to the latest version and try again";
    patch(&server, MERGE, &body).await.refused(409, "Conflict", message).is_about("", "secrets", "a");
}

async fn patch_with_the_current_version_succeeds(server: Server) {
    let old = with_data(&server).await;
    let metadata = json!({ "resourceVersion": old["metadata"]["resourceVersion"], "labels": { "x": "1" } });
    patch(&server, MERGE, &json!({ "metadata": metadata })).await.expect(200);
}

async fn patch_with_another_uid_is_refused(server: Server) {
    with_data(&server).await;
    let message = "Secret \"a\" is invalid: metadata.uid: Invalid value: \"another\": field is immutable";
    let refusal = patch(&server, MERGE, &json!({ "metadata": { "uid": "another" } })).await;
    refusal.refused(422, "Invalid", message).has_causes(&[("FieldValueInvalid", "metadata.uid")]);
}

async fn patch_with_another_name_is_refused(server: Server) {
    with_data(&server).await;
    let message = "the name of the object (b) does not match the name on the URL (a)";
    patch(&server, MERGE, &json!({ "metadata": { "name": "b" } })).await.refused(400, "BadRequest", message);
}

async fn patch_of_a_missing_object_is_not_found(server: Server) {
    let refusal = patch(&server, MERGE, &json!({})).await.refused(404, "NotFound", "secrets \"a\" not found");
    refusal.is_about("", "secrets", "a");
}

async fn a_patch_of_unknown_type_is_refused(server: Server) {
    with_data(&server).await;
    for kind in ["text/plain", "application/json"] {
        patch(&server, kind, &json!({})).await.refused_with(415, "UnsupportedMediaType", "");
    }
}

async fn a_patch_of_a_collection_is_not_allowed(server: Server) {
    let answer = server.patch(&server.secrets(), MERGE, &json!({})).await;
    let message = "the server does not allow this method on the requested resource";
    answer.refused(405, "MethodNotAllowed", message);
}

async fn patch_without_a_change_keeps_the_version(server: Server) {
    let old = with_data(&server).await;
    for body in
        [json!({}), json!({ "data": { "k": "dg==" } }), json!({ "metadata": { "labels": { "x": null } } })]
    {
        assert_eq!(version(&patch(&server, MERGE, &body).await.expect(200)), version(&old), "{body}");
    }
}

async fn patch_cannot_change_the_servers_fields(server: Server) {
    let old = with_data(&server).await;
    let metadata = json!({ "creationTimestamp": "2000-01-01T00:00:00Z", "selfLink": "/x" });
    let new = patch(&server, MERGE, &json!({ "metadata": metadata })).await.expect(200);
    assert_eq!((uid(&new), version(&new)), (uid(&old), version(&old)));
    assert_eq!(new["metadata"]["creationTimestamp"], old["metadata"]["creationTimestamp"]);
}

async fn a_dry_run_of_a_patch_stores_nothing(server: Server) {
    let old = with_data(&server).await;
    let path = format!("{}?dryRun=All", server.secret_path("a"));
    let shown = server.patch(&path, MERGE, &json!({ "data": { "k": "eA==" } })).await.expect(200);
    assert_eq!(shown["data"]["k"], "eA==");
    assert_eq!(server.get(&server.secret_path("a")).await.expect(200), old);
}

async fn json_patch_with_too_many_operations_is_refused(server: Server) {
    with_data(&server).await;
    let test = json!({ "op": "test", "path": "/data/k", "value": "dg==" });
    patch(&server, JSON_PATCH, &vec![test.clone(); 10_000].into()).await.expect(200);
    let answer = patch(&server, JSON_PATCH, &vec![test; 10_001].into()).await;
    let message =
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001";
    answer.refused(413, "RequestEntityTooLarge", message);
}

async fn json_patch_that_copies_too_much_is_refused(server: Server) {
    let mut object = secret("a");
    object["data"] = json!({ "k": "AAAA".repeat(25_000) });
    server.create(&server.secrets(), &object).await;
    let copies = |count| -> Value {
        let copy = |at| json!({ "op": "copy", "from": "/data/k", "path": format!("/data/c{}", at % 2) });
        (0..count).map(copy).collect()
    };
    patch(&server, JSON_PATCH, &copies(31)).await.expect(200);
    patch(&server, JSON_PATCH, &copies(32)).await.refused(422, "Invalid", REJECTED);
}

async fn patch_with_too_large_a_body_is_refused(server: Server) {
    with_data(&server).await;
    let change = |length: usize| {
        let change = json!({ "data": { "k": "eA==" } }).to_string();
        let padding = " ".repeat(length - change.len());
        change + &padding
    };
    let send = |body: String| {
        let path = server.secret_path("a");
        let server = &server;
        async move { server.call(Method::PATCH, &path, &[("content-type", MERGE)], body).await }
    };
    send(change(3 * 1024 * 1024)).await.expect(200);
    let message = "Request entity too large: limit is 3145728";
    send(change(3 * 1024 * 1024 + 1)).await.refused(413, "RequestEntityTooLarge", message);
}

async fn strategic_merge_patch_stores_no_directives(server: Server) {
    let path = server.group("apps/v1", "deployments");
    server.create(&path, &deployment("a")).await;
    let volumes = json!([{ "name": "x", "emptyDir": {} }, { "$patch": "replace" }]);
    let pod = json!({ "volumes": volumes, "nodeSelector": { "$patch": "delete" } });
    let change = json!({ "spec": { "template": { "spec": pod } } });
    let patched = server.patch(&format!("{path}/a"), STRATEGIC, &change).await.expect(200);
    let spec = &patched["spec"]["template"]["spec"];
    assert_eq!(spec["volumes"], json!([{ "name": "x", "emptyDir": {} }]));
    assert_eq!(spec["nodeSelector"], Value::Null);
}

async fn a_strategic_merge_patch_merges_containers_by_name(server: Server) {
    let mut object = deployment("a");
    object["spec"]["template"]["spec"]["containers"] = json!([
        { "name": "main", "image": "example.test/1", "tty": true },
        { "name": "side", "image": "example.test/1" },
    ]);
    let path = server.group("apps/v1", "deployments");
    server.create(&path, &object).await;
    let newer = json!([{ "name": "main", "image": "example.test/2" }]);
    let change = json!({ "spec": { "template": { "spec": { "containers": newer } } } });
    let patched = server.patch(&format!("{path}/a"), STRATEGIC, &change).await.expect(200);
    let expected = [json!(["main", "example.test/2", true]), json!(["side", "example.test/1", null])];
    assert_eq!(containers(&patched), expected);
}
