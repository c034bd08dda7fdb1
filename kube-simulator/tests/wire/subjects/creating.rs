//! Creating objects.

use http::Method;
use serde_json::{Value, json};

use crate::custom::Widgets;
use crate::objects::{deployment, name, names, pod, secret, uid, version};
use crate::scenario::{Scenario, scenario};
use crate::server::{APPLY, JSON, MERGE, Server, with_query};

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario(a_new_object_gets_identity_and_version),
        scenario(versions_grow_with_each_write),
        scenario(built_in_kinds_can_omit_kind_and_version),
        scenario(a_duplicate_name_is_a_conflict),
        scenario(name_of_an_object_being_deleted_is_in_use),
        scenario(a_deleted_name_is_free_again),
        scenario(a_name_is_needed),
        scenario(generated_name_begins_with_the_requested_text),
        scenario(a_long_generated_name_is_cut_before_its_suffix),
        scenario(an_invalid_name_is_refused),
        scenario(name_of_a_service_or_namespace_is_a_label),
        scenario(a_create_with_a_resource_version_is_refused),
        scenario(uid_and_times_from_clients_are_ignored),
        scenario(generation_is_kept_for_kinds_that_do_not_count_it),
        scenario(generation_begins_at_1_for_kinds_that_count_it),
        scenario(a_string_of_a_secret_is_stored_in_base64),
        scenario(status_in_a_create_is_ignored),
        scenario(node_can_be_created_with_a_status),
        scenario(job_selects_its_pods_by_its_uid),
        scenario(namespace_that_differs_from_the_path_is_refused),
        scenario(kind_that_differs_from_the_path_is_refused),
        scenario(api_version_that_differs_from_the_path_is_refused),
        scenario(invalid_json_is_refused),
        scenario(an_empty_body_is_refused),
        scenario(json_without_an_object_is_refused),
        scenario(a_body_of_unknown_type_is_refused),
        scenario(a_body_without_type_is_json),
        scenario(a_dry_run_stores_nothing),
        scenario(dry_run_value_must_be_all),
        scenario(dry_run_is_refused_like_a_real_create),
        scenario(dry_run_of_a_create_with_a_version_succeeds),
        scenario(a_namespaced_object_needs_a_namespace_in_the_path),
        scenario(a_create_in_a_missing_namespace_is_refused),
        scenario(field_of_a_wrong_type_is_refused)
            .differs("The simulator does not validate the types of fields."),
        scenario(labels_that_are_not_strings_are_refused),
        scenario(null_labels_and_annotations_become_empty_strings),
        scenario(secret_without_a_type_is_opaque),
        scenario(an_invalid_label_of_an_object_is_refused),
        scenario(an_invalid_annotation_is_refused),
        scenario(an_invalid_finalizer_is_refused),
        scenario(annotations_that_are_too_long_are_refused),
        scenario(object_that_is_too_large_for_etcd_is_refused),
        scenario(field_manager_that_is_too_long_is_refused),
        scenario(field_manager_that_can_not_be_printed_is_refused),
        scenario(each_error_in_a_field_manager_is_a_cause),
    ]
}

async fn a_new_object_gets_identity_and_version(server: Server) {
    let created = server.create(&server.secrets(), &secret("a")).await;
    assert_eq!((&created["kind"], &created["apiVersion"]), (&json!("Secret"), &json!("v1")));
    assert_eq!(created["metadata"]["namespace"], server.namespace);
    assert_eq!(uid(&created).len(), 36);
    let time = created["metadata"]["creationTimestamp"].as_str().expect("a time");
    assert!(time.len() == 20 && time.ends_with('Z'), "{time}");
    assert!(version(&created) > 0);
    assert_eq!(server.get(&server.secret_path("a")).await.expect(200), created);
}

async fn secret_without_a_type_is_opaque(server: Server) {
    for (name, secret_type) in [("a", json!("")), ("b", Value::Null)] {
        let object = json!({ "metadata": { "name": name }, "type": secret_type });
        assert_eq!(server.create(&server.secrets(), &object).await["type"], "Opaque", "{name}");
    }
}

async fn versions_grow_with_each_write(server: Server) {
    let mut last = 0;
    for name in ["b", "a", "c"] {
        let created = server.create_secrets(&[name]).await;
        assert!(version(&created) > last);
        last = version(&created);
    }
}

async fn built_in_kinds_can_omit_kind_and_version(server: Server) {
    let created = server.create(&server.secrets(), &json!({ "metadata": { "name": "a" } })).await;
    assert_eq!((&created["kind"], &created["apiVersion"]), (&json!("Secret"), &json!("v1")));
}

async fn a_duplicate_name_is_a_conflict(server: Server) {
    server.create_secrets(&["a"]).await;
    let answer = server.post(&server.secrets(), &secret("a")).await;
    answer.refused(409, "AlreadyExists", "secrets \"a\" already exists").is_about("", "secrets", "a");
    let path = server.group("apps/v1", "deployments");
    server.create(&path, &deployment("d")).await;
    let answer = server.post(&path, &deployment("d")).await;
    let refusal = answer.refused(409, "AlreadyExists", "deployments.apps \"d\" already exists");
    refusal.is_about("apps", "deployments", "d");
}

async fn name_of_an_object_being_deleted_is_in_use(server: Server) {
    let mut object = secret("a");
    object["metadata"]["finalizers"] = json!(["wire.test/hold"]);
    server.create(&server.secrets(), &object).await;
    server.delete(&server.secret_path("a")).await.expect(200);
    let answer = server.post(&server.secrets(), &secret("a")).await;
    let message = "object is being deleted: secrets \"a\" already exists";
    answer.refused(409, "AlreadyExists", message).is_about("", "secrets", "a");
}

async fn a_deleted_name_is_free_again(server: Server) {
    let old = server.create_secrets(&["a"]).await;
    server.delete(&server.secret_path("a")).await.expect(200);
    let new = server.create_secrets(&["a"]).await;
    assert_ne!(uid(&old), uid(&new));
    assert!(version(&new) > version(&old));
}

async fn a_name_is_needed(server: Server) {
    for body in [json!({}), json!({ "metadata": {} }), json!({ "metadata": { "name": "" } })] {
        let message =
            "Secret \"\" is invalid: metadata.name: Required value: name or generateName is required";
        let refusal = server.post(&server.secrets(), &body).await.refused(422, "Invalid", message);
        refusal.is_about("", "Secret", "");
        refusal.has_causes(&[("FieldValueRequired", "metadata.name")]);
    }
}

async fn generated_name_begins_with_the_requested_text(server: Server) {
    let body = json!({ "metadata": { "generateName": "gen-" } });
    let first = server.create(&server.secrets(), &body).await;
    let second = server.create(&server.secrets(), &body).await;
    for created in [&first, &second] {
        let suffix = name(created).strip_prefix("gen-").expect("the prefix");
        assert!(
            suffix.len() == 5 && suffix.chars().all(|c| "bcdfghjklmnpqrstvwxz2456789".contains(c)),
            "{suffix}"
        );
        assert_eq!(created["metadata"]["generateName"], "gen-");
    }
    assert_ne!(name(&first), name(&second));
}

async fn a_long_generated_name_is_cut_before_its_suffix(server: Server) {
    let body = json!({ "metadata": { "generateName": "x".repeat(80) } });
    let created = server.create(&server.secrets(), &body).await;
    assert_eq!(name(&created).len(), 63);
    assert!(name(&created).starts_with(&"x".repeat(58)));
}

async fn an_invalid_name_is_refused(server: Server) {
    for name in ["A_b", "-a", "a.", "a b", "a/b", &"x".repeat(254)] {
        let message = format!("Secret \"{name}\" is invalid: metadata.name: Invalid value: \"{name}\": ");
        let refusal =
            server.post(&server.secrets(), &secret(name)).await.refused_with(422, "Invalid", &message);
        refusal.is_about("", "Secret", name);
        refusal.has_causes(&[("FieldValueInvalid", "metadata.name")]);
    }
    let path = format!("{}?fieldManager=one", server.secret_path("A_b"));
    let message = "Secret \"A_b\" is invalid: metadata.name: Invalid value: \"A_b\": ";
    server.patch(&path, APPLY, &secret("A_b")).await.refused_with(422, "Invalid", message);
}

async fn name_of_a_service_or_namespace_is_a_label(server: Server) {
    let (services, namespaces) = (server.core("services"), "/api/v1/namespaces");
    let long = "x".repeat(64);
    let invalid = [
        (services.as_str(), long.as_str()),
        (&services, "a.b"),
        (&services, "A"),
        (namespaces, long.as_str()),
        (namespaces, "a.b"),
        (namespaces, "A"),
    ];
    for (path, name) in invalid {
        // A namespace ignores the ports.
        let object = json!({ "metadata": { "name": name }, "spec": { "ports": [{ "port": 80 }] } });
        let message = format!("metadata.name: Invalid value: \"{name}\": ");
        let refusal = server.post(path, &object).await.refused_with(422, "Invalid", &message);
        let mut causes = vec![("FieldValueInvalid", "metadata.name")];
        if (path, name) == (namespaces, long.as_str()) {
            // Each namespace has a label with its name.
            causes.push(("FieldValueInvalid", "metadata.labels"));
        }
        refusal.has_causes(&causes);
    }
}

async fn a_create_with_a_resource_version_is_refused(server: Server) {
    let mut body = secret("a");
    body["metadata"]["resourceVersion"] = "5".into();
    let message = "resourceVersion should not be set on objects to be created";
    server.post(&server.secrets(), &body).await.refused(500, "", message);
    body["metadata"]["resourceVersion"] = "0".into();
    server.post(&server.secrets(), &body).await.expect(201);
}

async fn uid_and_times_from_clients_are_ignored(server: Server) {
    let mut body = secret("a");
    let long_ago = "2000-01-01T00:00:00Z";
    for (field, value) in [
        ("uid", "chosen"),
        ("creationTimestamp", long_ago),
        ("deletionTimestamp", long_ago),
        ("selfLink", "/x"),
    ] {
        body["metadata"][field] = value.into();
    }
    let created = server.create(&server.secrets(), &body).await;
    assert_ne!(uid(&created), "chosen");
    assert_ne!(created["metadata"]["creationTimestamp"], long_ago);
    assert!(created["metadata"].get("deletionTimestamp").is_none(), "{created}");
    assert!(created["metadata"].get("selfLink").is_none(), "{created}");
}

async fn generation_is_kept_for_kinds_that_do_not_count_it(server: Server) {
    let mut body = secret("a");
    body["metadata"]["generation"] = 7.into();
    let created = server.create(&server.secrets(), &body).await;
    assert_eq!(created["metadata"]["generation"], 7);
}

async fn generation_begins_at_1_for_kinds_that_count_it(server: Server) {
    let mut deployment = deployment("a");
    deployment["metadata"]["generation"] = 7.into();
    let created = server.create(&server.group("apps/v1", "deployments"), &deployment).await;
    assert_eq!(created["metadata"]["generation"], 1);
    assert_eq!(server.create(&server.core("pods"), &pod("a")).await["metadata"]["generation"], 1);
    assert_eq!(server.create_secrets(&["a"]).await["metadata"]["generation"], Value::Null);
}

async fn status_in_a_create_is_ignored(server: Server) {
    let mut pod = pod("a");
    pod["status"] = json!({ "phase": "Running", "podIP": "10.0.0.1" });
    let created = server.create(&server.core("pods"), &pod).await;
    assert_eq!(created["status"], json!({ "phase": "Pending", "qosClass": "BestEffort" }));
}

async fn node_can_be_created_with_a_status(server: Server) {
    let node = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": { "name": server.namespace },
        "status": { "allocatable": { "cpu": "8", "pods": "110" } },
    });
    let created = server.create("/api/v1/nodes", &node).await;
    assert_eq!(created["status"]["allocatable"], json!({ "cpu": "8", "pods": "110" }));
    server.delete(&format!("/api/v1/nodes/{}", server.namespace)).await.expect(200);
}

async fn namespace_that_differs_from_the_path_is_refused(server: Server) {
    let mut body = secret("a");
    body["metadata"]["namespace"] = "elsewhere".into();
    let message = "the namespace of the provided object does not match the namespace sent on the request";
    server.post(&server.secrets(), &body).await.refused(400, "BadRequest", message);
}

async fn kind_that_differs_from_the_path_is_refused(server: Server) {
    let body = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" } });
    let message = "ConfigMap in version \"v1\" cannot be handled as a Secret: ";
    server.post(&server.secrets(), &body).await.refused_with(400, "BadRequest", message);
}

async fn api_version_that_differs_from_the_path_is_refused(server: Server) {
    for (api_version, version) in [("v2", "v2"), ("apps/v1", "v1")] {
        let body = json!({ "apiVersion": api_version, "kind": "Secret", "metadata": { "name": "a" } });
        let message = format!(
            "Secret in version \"{version}\" cannot be handled as a Secret: \
             no kind \"Secret\" is registered for version \"{api_version}\" in scheme "
        );
        server.post(&server.secrets(), &body).await.refused_with(400, "BadRequest", &message);
    }
}

const UNRECOGNIZED: &str =
    "the object provided is unrecognized (must be of type Secret): couldn't get version/kind; ";

async fn post_text(server: &Server, content_type: &str, body: &str) -> crate::answer::Answer {
    let headers: &[(&str, &str)] =
        if content_type.is_empty() { &[] } else { &[("content-type", content_type)] };
    server.call(Method::POST, &server.secrets(), headers, body).await
}

async fn invalid_json_is_refused(server: Server) {
    post_text(&server, JSON, "{bad").await.refused_with(400, "BadRequest", UNRECOGNIZED);
}

async fn an_empty_body_is_refused(server: Server) {
    post_text(&server, JSON, "").await.refused_with(400, "BadRequest", UNRECOGNIZED);
}

async fn json_without_an_object_is_refused(server: Server) {
    for body in ["[]", "5", "\"a\""] {
        post_text(&server, JSON, body).await.refused_with(400, "BadRequest", UNRECOGNIZED);
    }
}

async fn a_body_of_unknown_type_is_refused(server: Server) {
    let answer = post_text(&server, "text/plain", &secret("a").to_string()).await;
    let message =
        "the body of the request was in an unknown format - accepted media types include: application/json";
    answer.refused_with(415, "UnsupportedMediaType", message);
}

async fn a_body_without_type_is_json(server: Server) {
    post_text(&server, "", &secret("a").to_string()).await.expect(201);
    post_text(&server, "application/json; charset=utf-8", &secret("b").to_string()).await.expect(201);
}

async fn a_dry_run_stores_nothing(server: Server) {
    let answer = server.post(&format!("{}?dryRun=All", server.secrets()), &secret("a")).await;
    let shown = answer.expect(201);
    assert_eq!(uid(&shown).len(), 36);
    assert!(shown["metadata"].get("resourceVersion").is_none(), "{shown}");
    assert!(names(&server.list(&[]).await.expect(200)).is_empty());
}

async fn dry_run_value_must_be_all(server: Server) {
    for (query, given) in [("dryRun=Some", "[\"Some\"]"), ("dryRun=All&dryRun=Some", "[\"All\",\"Some\"]")] {
        let answer = server.post(&format!("{}?{query}", server.secrets()), &secret("a")).await;
        let message = format!(
            "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: {given}: supported values: \"All\""
        );
        let refusal = answer.refused(422, "Invalid", &message);
        refusal.is_about("meta.k8s.io", "CreateOptions", "");
        refusal.has_causes(&[("FieldValueNotSupported", "dryRun")]);
    }
}

async fn dry_run_is_refused_like_a_real_create(server: Server) {
    server.create_secrets(&["a"]).await;
    let path = format!("{}?dryRun=All", server.secrets());
    server.post(&path, &secret("a")).await.refused_with(409, "AlreadyExists", "already exists");
    server.post(&path, &json!({})).await.refused_with(422, "Invalid", "metadata.name: Required value");
}

async fn a_namespaced_object_needs_a_namespace_in_the_path(server: Server) {
    let answer = server.post("/api/v1/secrets", &secret("a")).await;
    let message = "the server does not allow this method on the requested resource";
    answer.refused(405, "MethodNotAllowed", message);
}

async fn a_create_in_a_missing_namespace_is_refused(server: Server) {
    let answer = server.post("/api/v1/namespaces/wire-nowhere/secrets", &secret("a")).await;
    let refusal = answer.refused(404, "NotFound", "namespaces \"wire-nowhere\" not found");
    refusal.is_about("", "namespaces", "wire-nowhere");
}

async fn field_of_a_wrong_type_is_refused(server: Server) {
    let mut body = secret("a");
    body["data"] = json!([1]);
    let answer = server.post(&server.secrets(), &body).await;
    if server.is_real() {
        let message = "Secret in version \"v1\" cannot be handled as a Secret: json: cannot unmarshal array";
        answer.refused_with(400, "BadRequest", message);
    } else {
        answer.expect(201);
    }
}

async fn labels_that_are_not_strings_are_refused(server: Server) {
    server.create_secrets(&["b"]).await;
    for field in ["labels", "annotations"] {
        for (value, given) in [(json!({ "x": 1 }), "number"), (json!("x"), "string")] {
            let change = json!({ "metadata": { field: value } });
            let answer = server.patch(&server.secret_path("b"), MERGE, &change).await;
            let message = " \"\" is invalid: patch: Invalid value: ";
            answer.refused_with(422, "Invalid", message).has_causes(&[("FieldValueInvalid", "patch")]);
            let mut body = secret("a");
            body["metadata"][field] = value;
            let message = format!(
                "Secret in version \"v1\" cannot be handled as a Secret: json: cannot unmarshal {given} "
            );
            server.post(&server.secrets(), &body).await.refused_with(400, "BadRequest", &message);
        }
    }
}

async fn null_labels_and_annotations_become_empty_strings(server: Server) {
    let widgets = Widgets::define(&server).await;
    for (path, mut object) in [(server.secrets(), secret("a")), (widgets.path(), widgets.widget("a", "red"))]
    {
        object["metadata"]["labels"] = json!({ "x": null });
        object["metadata"]["annotations"] = json!({ "y": null });
        let created = server.create(&path, &object).await;
        assert_eq!(created["metadata"]["labels"], json!({ "x": "" }), "{path}");
        assert_eq!(created["metadata"]["annotations"], json!({ "y": "" }), "{path}");
        let selected = server.get(&with_query(&path, &[("labelSelector", "x=")])).await.expect(200);
        assert_eq!(names(&selected), ["a"], "{path}");
    }
}

/// Asserts that an object with this metadata is refused because of one field.
async fn refused_metadata(server: &Server, field: &str, value: Value, cause: &str, why: &str) {
    let mut body = secret("a");
    body["metadata"][field] = value;
    let message = format!("Secret \"a\" is invalid: {cause}: Invalid value: {why}");
    let refusal = server.post(&server.secrets(), &body).await.refused_with(422, "Invalid", &message);
    refusal.is_about("", "Secret", "a");
    refusal.has_causes(&[("FieldValueInvalid", cause)]);
}

async fn an_invalid_label_of_an_object_is_refused(server: Server) {
    let name = json!({ "a b": "c" });
    refused_metadata(&server, "labels", name, "metadata.labels", "\"a b\": name part must consist of ").await;
    let value = json!({ "a": "-b" });
    refused_metadata(&server, "labels", value, "metadata.labels", "\"-b\": a valid label must be ").await;
}

async fn an_invalid_annotation_is_refused(server: Server) {
    let name = json!({ "a b": "any text" });
    let why = "\"a b\": name part must consist of ";
    refused_metadata(&server, "annotations", name, "metadata.annotations", why).await;
    let mut body = secret("a");
    body["metadata"]["annotations"] = json!({ "Wire.Test/A": "any text: {}" });
    server.post(&server.secrets(), &body).await.expect(201);
}

async fn an_invalid_finalizer_is_refused(server: Server) {
    let why = "\"hold\": name is neither a standard finalizer name nor is it fully qualified";
    refused_metadata(&server, "finalizers", json!(["hold"]), "metadata.finalizers[0]", why).await;
}

async fn dry_run_of_a_create_with_a_version_succeeds(server: Server) {
    let mut object = secret("a");
    object["metadata"]["resourceVersion"] = "5".into();
    server.post(&format!("{}?dryRun=All", server.secrets()), &object).await.expect(201);
    let message = "resourceVersion should not be set on objects to be created";
    server.post(&server.secrets(), &object).await.refused(500, "", message);
}

async fn annotations_that_are_too_long_are_refused(server: Server) {
    let with_annotations = |name: &str, length: usize| {
        let mut object = secret(name);
        object["metadata"]["annotations"] = json!({ "a": "x".repeat(length - 2), "b": "" });
        object
    };
    server.create(&server.secrets(), &with_annotations("a", 256 * 1024)).await;
    let answer = server.post(&server.secrets(), &with_annotations("b", 256 * 1024 + 1)).await;
    let message =
        "Secret \"b\" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes";
    let refusal = answer.refused(422, "Invalid", message);
    refusal.has_causes(&[("FieldValueTooLong", "metadata.annotations")]);
}

async fn object_that_is_too_large_for_etcd_is_refused(server: Server) {
    let mut object = deployment("a");
    object["spec"]["template"]["spec"]["containers"][0]["args"] = json!(["x".repeat(1_700_000)]);
    let path = server.group("apps/v1", "deployments");
    server.post(&path, &object).await.refused(500, "", "etcdserver: request is too large");
    server.post(&format!("{path}?dryRun=All"), &object).await.expect(201);
}

async fn field_manager_that_is_too_long_is_refused(server: Server) {
    let path = |length| format!("{}?fieldManager={}", server.secrets(), "m".repeat(length));
    server.create(&path(128), &secret("a")).await;
    let answer = server.post(&path(129), &secret("b")).await;
    let message = "CreateOptions.meta.k8s.io \"\" is invalid: \
        fieldManager: Too long: may not be more than 128 bytes";
    answer.refused(422, "Invalid", message).has_causes(&[("FieldValueTooLong", "fieldManager")]);
}

async fn field_manager_that_can_not_be_printed_is_refused(server: Server) {
    server.create_secrets(&["a"]).await;
    let path = format!("{}?fieldManager=a%09b", server.secret_path("a"));
    let message =
        "is invalid: fieldManager: Invalid value: \"a\\tb\": invalid character U+0009 (at position 1)";
    for answer in
        [server.put(&path, &secret("a")).await, server.patch(&path, crate::server::MERGE, &json!({})).await]
    {
        answer.refused_with(422, "Invalid", message).has_causes(&[("FieldValueInvalid", "fieldManager")]);
    }
}

async fn each_error_in_a_field_manager_is_a_cause(server: Server) {
    let path = format!("{}?fieldManager={}%09", server.secrets(), "m".repeat(128));
    let answer = server.post(&path, &secret("a")).await;
    let causes = [("FieldValueTooLong", "fieldManager"), ("FieldValueInvalid", "fieldManager")];
    answer.refused_with(422, "Invalid", "is invalid: [fieldManager: Too long: ").has_causes(&causes);
}

async fn job_selects_its_pods_by_its_uid(server: Server) {
    let mut template = json!({ "metadata": { "labels": { "x": "1" } }, "spec": pod("a")["spec"] });
    template["spec"]["restartPolicy"] = "Never".into();
    let spec = json!({ "suspend": true, "template": template });
    let job = json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "a" }, "spec": spec });
    let created = server.create(&server.group("batch/v1", "jobs"), &job).await;
    let selector = json!({ "matchLabels": { "batch.kubernetes.io/controller-uid": uid(&created) } });
    assert_eq!(created["spec"]["selector"], selector);
    let labels = json!({
        "batch.kubernetes.io/controller-uid": uid(&created),
        "batch.kubernetes.io/job-name": "a",
        "controller-uid": uid(&created),
        "job-name": "a",
        "x": "1",
    });
    assert_eq!(created["spec"]["template"]["metadata"]["labels"], labels);
}

async fn a_string_of_a_secret_is_stored_in_base64(server: Server) {
    let mut object = secret("a");
    object["stringData"] = json!({ "a": "b" });
    let created = server.create(&server.secrets(), &object).await;
    assert_eq!((&created["data"], &created["type"]), (&json!({ "a": "Yg==" }), &json!("Opaque")));
    assert!(created.get("stringData").is_none(), "{created}");
}
