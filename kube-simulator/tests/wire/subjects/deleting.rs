//! Deleting objects, individually and as collections.

use http::Method;
use serde_json::{Value, json};

use crate::objects::{deployment, labelled, names, pod, secret, token, uid, version};
use crate::scenario::{Scenario, scenario};
use crate::server::{JSON, MERGE, Server, with_query};
use crate::watch::Watch;

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario(delete_returns_a_status),
        scenario(delete_of_a_pod_returns_the_pod),
        scenario(delete_of_a_missing_object_is_not_found),
        scenario(a_delete_of_another_uid_is_a_conflict),
        scenario(a_delete_of_another_version_is_a_conflict),
        scenario(a_delete_whose_preconditions_hold_succeeds),
        scenario(a_dry_run_of_a_delete_deletes_nothing),
        scenario(options_in_the_body_of_a_delete_replace_the_query),
        scenario(orphan_option_is_true_unless_0_or_false),
        scenario(dry_run_value_of_a_delete_must_be_all),
        scenario(dry_run_of_a_delete_returns_the_marked_object),
        scenario(deletion_at_the_highest_generation_wraps_around),
        scenario(null_options_of_a_delete_are_absent),
        scenario(delete_options_that_are_not_json_are_refused),
        scenario(delete_options_of_another_kind_are_refused),
        scenario(a_grace_period_must_be_a_number),
        scenario(unknown_propagation_policy_is_refused),
        scenario(delete_with_two_policies_is_refused),
        scenario(unfinished_delete_without_orphans_is_accepted),
        scenario(an_object_with_a_finalizer_is_only_marked),
        scenario(deletion_of_an_orphan_finalizer_sends_one_event),
        scenario(a_second_delete_of_a_marked_object_changes_nothing),
        scenario(a_marked_object_can_be_changed),
        scenario(a_marked_object_keeps_its_deletion_timestamp),
        scenario(a_marked_object_is_removed_with_its_last_finalizer),
        scenario(a_marked_object_gets_no_new_finalizers),
        scenario(pod_without_node_is_deleted_at_once),
        scenario(pod_deleted_at_once_has_a_deletion_timestamp),
        scenario(pod_deleted_without_grace_is_marked_then_deleted),
        scenario(pod_on_a_node_gets_30_seconds_of_grace),
        scenario(a_grace_period_can_only_be_shortened),
        scenario(negative_grace_period_becomes_one_second),
        scenario(pod_deleted_by_its_kubelet_waits_for_finalizers),
        scenario(default_policy_of_jobs_and_rcs_is_orphan),
        scenario(deletecollection_returns_the_deleted_objects),
        scenario(deletecollection_deletes_the_selected_objects),
        scenario(a_dry_run_of_a_delete_of_a_collection_deletes_nothing),
        scenario(deletecollection_can_be_paged),
        scenario(deletecollection_keeps_objects_with_finalizers),
        scenario(a_delete_over_all_namespaces_is_not_allowed),
        scenario(a_delete_of_a_collection_with_a_bad_selector_deletes_nothing),
    ]
}

async fn delete(server: &Server, options: &Value) -> crate::answer::Answer {
    server.delete_with(&server.secret_path("a"), options).await
}

async fn assert_deleted(server: &Server, name: &str) {
    server.get(&server.secret_path(name)).await.refused_with(404, "NotFound", "not found");
}

async fn delete_returns_a_status(server: Server) {
    let created = server.create_secrets(&["a"]).await;
    let answer = server.delete(&server.secret_path("a")).await.expect(200);
    let expected = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": { "name": "a", "kind": "secrets", "uid": uid(&created) },
    });
    assert_eq!(answer, expected);
    assert_deleted(&server, "a").await;
}

async fn delete_of_a_pod_returns_the_pod(server: Server) {
    let created = server.create(&server.core("pods"), &pod("a")).await;
    let answer = server.delete(&server.core("pods/a")).await.expect(200);
    assert_eq!((&answer["kind"], uid(&answer)), (&json!("Pod"), uid(&created)));
}

async fn delete_of_a_missing_object_is_not_found(server: Server) {
    let refusal = server.delete(&server.secret_path("a")).await;
    refusal.refused(404, "NotFound", "secrets \"a\" not found").is_about("", "secrets", "a");
}

async fn a_delete_of_another_uid_is_a_conflict(server: Server) {
    let created = server.create_secrets(&["a"]).await;
    let answer = delete(&server, &json!({ "preconditions": { "uid": "another" } })).await;
    let message = format!(
        "Operation cannot be fulfilled on Secret \"a\": the UID in the precondition (another) does not match the UID \
         in record ({}). The object might have been deleted and then recreated",
        uid(&created)
    );
    answer.refused(409, "Conflict", &message).is_about("", "Secret", "a");
    server.get(&server.secret_path("a")).await.expect(200);
}

async fn a_delete_of_another_version_is_a_conflict(server: Server) {
    let created = server.create_secrets(&["a"]).await;
    let answer = delete(&server, &json!({ "preconditions": { "resourceVersion": "1" } })).await;
    let message = format!(
        "Operation cannot be fulfilled on Secret \"a\": the ResourceVersion in the precondition (1) does not match \
         the ResourceVersion in record ({}). The object might have been modified",
        version(&created)
    );
    answer.refused(409, "Conflict", &message).is_about("", "Secret", "a");
}

async fn a_delete_whose_preconditions_hold_succeeds(server: Server) {
    let created = server.create_secrets(&["a"]).await;
    let preconditions = json!({ "uid": uid(&created), "resourceVersion": version(&created).to_string() });
    delete(&server, &json!({ "preconditions": preconditions })).await.expect(200);
    assert_deleted(&server, "a").await;
}

async fn a_dry_run_of_a_delete_deletes_nothing(server: Server) {
    let created = server.create_secrets(&["a"]).await;
    let by_query = server.delete(&format!("{}?dryRun=All", server.secret_path("a"))).await.expect(200);
    assert_eq!(
        (&by_query["status"], &by_query["details"]["uid"]),
        (&json!("Success"), &json!(uid(&created)))
    );
    assert_eq!(delete(&server, &json!({ "dryRun": ["All"] })).await.expect(200)["status"], "Success");
    assert_eq!(server.get(&server.secret_path("a")).await.expect(200), created);
}

async fn options_in_the_body_of_a_delete_replace_the_query(server: Server) {
    server.create_secrets(&["a"]).await;
    let path = format!("{}?dryRun=All", server.secret_path("a"));
    server.delete_with(&path, &json!({ "propagationPolicy": "Background" })).await.expect(200);
    assert_deleted(&server, "a").await;
}

async fn orphan_option_is_true_unless_0_or_false(server: Server) {
    server.create_secrets(&["a"]).await;
    for (value, orphans) in [("1", true), ("True", true), ("0", false), ("False", false)] {
        let path = format!("{}?dryRun=All&orphanDependents={value}", server.secret_path("a"));
        let shown = server.delete(&path).await.expect(200);
        assert_eq!(shown["metadata"]["finalizers"] == json!(["orphan"]), orphans, "{value}: {shown}");
    }
}

async fn dry_run_value_of_a_delete_must_be_all(server: Server) {
    server.create_secrets(&["a"]).await;
    let message = |given: &str| {
        format!(
            "DeleteOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: {given}: supported values: \"All\""
        )
    };
    delete(&server, &json!({ "dryRun": ["Some"] })).await.refused(422, "Invalid", &message("[\"Some\"]"));
    let message = message("[\"All\",\"Some\"]");
    delete(&server, &json!({ "dryRun": ["All", "Some"] })).await.refused(422, "Invalid", &message);
    let path = format!("{}?dryRun=All&dryRun=Some", server.secret_path("a"));
    server.delete(&path).await.refused(422, "Invalid", &message);
    server.get(&server.secret_path("a")).await.expect(200);
}

async fn dry_run_of_a_delete_returns_the_marked_object(server: Server) {
    let mut object = secret("a");
    object["metadata"]["finalizers"] = json!(["wire.test/hold"]);
    let created = server.create(&server.secrets(), &object).await;
    let shown = delete(&server, &json!({ "dryRun": ["All"] })).await.expect(200);
    assert_eq!(shown["metadata"]["deletionGracePeriodSeconds"], 0);
    assert!(shown["metadata"]["deletionTimestamp"].is_string(), "{shown}");
    assert_eq!(version(&shown), version(&created));
    let stored = server.get(&server.secret_path("a")).await.expect(200);
    assert_eq!(stored, created);
    // Without a dry run, the server would first set the deletion timestamp of a pod, and then
    // remove the pod.
    server.create(&server.core("pods"), &pod("a")).await;
    let shown = server.delete(&format!("{}?dryRun=All", server.core("pods/a"))).await.expect(200);
    assert_eq!(shown["metadata"]["deletionGracePeriodSeconds"], 0, "{shown}");
    server.get(&server.core("pods/a")).await.expect(200);
}

async fn deletion_at_the_highest_generation_wraps_around(server: Server) {
    let mut object = secret("a");
    object["metadata"]["generation"] = i64::MAX.into();
    server.create(&server.secrets(), &object).await;
    // A dry run, because a real server refuses all updates of an object with a negative generation.
    let options = json!({ "dryRun": ["All"], "propagationPolicy": "Foreground" });
    let marked = delete(&server, &options).await.expect(200);
    assert_eq!(marked["metadata"]["generation"], i64::MIN);
}

async fn null_options_of_a_delete_are_absent(server: Server) {
    server.create_secrets(&["a"]).await;
    delete(&server, &json!({ "preconditions": null, "dryRun": null })).await.expect(200);
    assert_deleted(&server, "a").await;
}

async fn delete_options_that_are_not_json_are_refused(server: Server) {
    server.create_secrets(&["a"]).await;
    let headers = [("content-type", JSON)];
    let answer = server.call(Method::DELETE, &server.secret_path("a"), &headers, "{bad").await;
    answer.refused_with(400, "BadRequest", "couldn't get version/kind; json parse error: ");
    server.get(&server.secret_path("a")).await.expect(200);
}

async fn delete_options_of_another_kind_are_refused(server: Server) {
    server.create_secrets(&["a"]).await;
    let answer = delete(&server, &json!({ "kind": "Secrets", "apiVersion": "v1" })).await;
    answer.refused_with(400, "BadRequest", "no kind \"Secrets\" is registered for version \"v1\" in scheme ");
    delete(&server, &json!({ "kind": "DeleteOptions", "apiVersion": "v1" })).await.expect(200);
}

async fn a_grace_period_must_be_a_number(server: Server) {
    server.create_secrets(&["a"]).await;
    let answer = server.delete(&format!("{}?gracePeriodSeconds=soon", server.secret_path("a"))).await;
    answer.refused(400, "BadRequest", "strconv.ParseInt: parsing \"soon\": invalid syntax");
}

async fn unknown_propagation_policy_is_refused(server: Server) {
    server.create_secrets(&["a"]).await;
    let message = "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \"Sometimes\": \
        supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"";
    let refusal =
        delete(&server, &json!({ "propagationPolicy": "Sometimes" })).await.refused(422, "Invalid", message);
    refusal.has_causes(&[("FieldValueNotSupported", "propagationPolicy")]);
    for policy in ["Foreground", "Background", "Orphan"] {
        let path = format!("{}?dryRun=All&propagationPolicy={policy}", server.secret_path("a"));
        server.delete(&path).await.expect(200);
    }
}

async fn held_back(server: &Server) -> Value {
    let mut object = secret("a");
    object["metadata"]["finalizers"] = json!(["wire.test/hold"]);
    server.create(&server.secrets(), &object).await;
    server.delete(&server.secret_path("a")).await.expect(200)
}

async fn an_object_with_a_finalizer_is_only_marked(server: Server) {
    let marked = held_back(&server).await;
    assert_eq!(marked["kind"], "Secret");
    assert!(marked["metadata"]["deletionTimestamp"].is_string(), "{marked}");
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 0);
    assert_eq!(server.get(&server.secret_path("a")).await.expect(200), marked);
}

async fn deletion_of_an_orphan_finalizer_sends_one_event(server: Server) {
    let mut object = secret("a");
    object["metadata"]["finalizers"] = json!(["orphan"]);
    let created = server.create(&server.secrets(), &object).await;
    let mut watch = server.watch(&[("resourceVersion", &version(&created).to_string())]).await;
    delete(&server, &json!({ "propagationPolicy": "Background" })).await.expect(200);
    let deleted = watch.expect("DELETED").await;
    assert!(deleted["metadata"].get("deletionTimestamp").is_none(), "{deleted}");
    assert_eq!(deleted["metadata"]["finalizers"], json!(["orphan"]));
}

async fn a_second_delete_of_a_marked_object_changes_nothing(server: Server) {
    let marked = held_back(&server).await;
    assert_eq!(server.delete(&server.secret_path("a")).await.expect(200), marked);
}

async fn a_marked_object_can_be_changed(server: Server) {
    let marked = held_back(&server).await;
    let changed = server.label("a", "x", "1").await;
    assert_eq!(changed["metadata"]["deletionTimestamp"], marked["metadata"]["deletionTimestamp"]);
}

async fn a_marked_object_keeps_its_deletion_timestamp(server: Server) {
    let mut object = held_back(&server).await;
    let marked_at = object["metadata"]["deletionTimestamp"].clone();
    for given in [json!("2000-01-01T00:00:00Z"), Value::Null] {
        object["metadata"]["deletionTimestamp"] = given;
        object = server.put(&server.secret_path("a"), &object).await.expect(200);
        assert_eq!(object["metadata"]["deletionTimestamp"], marked_at);
    }
}

async fn set_finalizers(server: &Server, finalizers: Value) -> crate::answer::Answer {
    server.patch(&server.secret_path("a"), MERGE, &json!({ "metadata": { "finalizers": finalizers } })).await
}

async fn a_marked_object_is_removed_with_its_last_finalizer(server: Server) {
    let marked = held_back(&server).await;
    let last = set_finalizers(&server, json!([])).await.expect(200);
    assert_eq!(uid(&last), uid(&marked));
    assert_deleted(&server, "a").await;
}

async fn a_marked_object_gets_no_new_finalizers(server: Server) {
    held_back(&server).await;
    let finalizers = json!(["wire.test/hold", "wire.test/more", "wire.test/less"]);
    let answer = set_finalizers(&server, finalizers).await;
    let message = "Secret \"a\" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the \
        object is being deleted, found new finalizers []string{\"wire.test/less\", \"wire.test/more\"}";
    answer.refused(422, "Invalid", message).has_causes(&[("FieldValueForbidden", "metadata.finalizers")]);
}

async fn pod_without_node_is_deleted_at_once(server: Server) {
    server.create(&server.core("pods"), &pod("a")).await;
    server.delete(&server.core("pods/a")).await.expect(200);
    server.get(&server.core("pods/a")).await.refused_with(404, "NotFound", "pods \"a\" not found");
}

/// Asserts that the next events are a pod with this grace period and then its deletion.
async fn expect_marked_then_deleted(watch: &mut Watch, seconds: i64) {
    let marked = watch.expect("MODIFIED").await;
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], seconds, "{marked}");
    let deleted = watch.expect("DELETED").await;
    assert_eq!(deleted["metadata"]["deletionGracePeriodSeconds"], seconds);
    assert_eq!(deleted["metadata"]["deletionTimestamp"], marked["metadata"]["deletionTimestamp"]);
    assert!(version(&deleted) > version(&marked));
    // Only the update that sets the deletion timestamp increments the generation.
    assert_eq!(
        (&marked["metadata"]["generation"], &deleted["metadata"]["generation"]),
        (&json!(2), &json!(2))
    );
}

/// Watches pods from the version of the given pod.
async fn watch_from(server: &Server, pod: &Value) -> Watch {
    server.watch_path(&server.core("pods"), &[("resourceVersion", &version(pod).to_string())]).await
}

async fn pod_deleted_at_once_has_a_deletion_timestamp(server: Server) {
    let created = server.create(&server.core("pods"), &pod("a")).await;
    let mut watch = watch_from(&server, &created).await;
    let answered = server.delete(&server.core("pods/a")).await.expect(200);
    assert!(answered["metadata"]["deletionTimestamp"].is_string(), "{answered}");
    expect_marked_then_deleted(&mut watch, 0).await;
}

async fn pod_deleted_without_grace_is_marked_then_deleted(server: Server) {
    let mut pod = pod("a");
    pod["spec"]["nodeName"] = server.no_such_node().into();
    server.create(&server.core("pods"), &pod).await;
    let marked = server.delete(&server.core("pods/a")).await.expect(200);
    let mut watch = watch_from(&server, &marked).await;
    server.delete_with(&server.core("pods/a"), &json!({ "gracePeriodSeconds": 0 })).await.expect(200);
    expect_marked_then_deleted(&mut watch, 0).await;
}

async fn pod_on_a_node_gets_30_seconds_of_grace(server: Server) {
    let mut pod = pod("a");
    pod["spec"]["nodeName"] = server.no_such_node().into();
    server.create(&server.core("pods"), &pod).await;
    let marked = server.delete(&server.core("pods/a")).await.expect(200);
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(marked["metadata"]["generation"], 2);
    let stopping = json!({ "status": { "reason": "Stopping" } });
    server.patch(&server.core("pods/a/status"), MERGE, &stopping).await.expect(200);
    server.get(&server.core("pods/a")).await.expect(200);
    // The kubelet sends this delete when all containers have ended.
    server.delete_with(&server.core("pods/a"), &json!({ "gracePeriodSeconds": 0 })).await.expect(200);
    server.get(&server.core("pods/a")).await.refused_with(404, "NotFound", "pods \"a\" not found");
}

/// Creates a pod on a node, with a finalizer.
async fn held_on_a_node(server: &Server) {
    let mut pod = pod("a");
    pod["spec"]["nodeName"] = server.no_such_node().into();
    pod["metadata"]["finalizers"] = json!(["wire.test/hold"]);
    server.create(&server.core("pods"), &pod).await;
}

/// Deletes the pod with this grace period, if any. Returns the pod's grace period, deletion
/// timestamp and generation.
async fn delete_within(server: &Server, seconds: Option<i64>) -> (i64, jiff::Timestamp, i64) {
    let options = json!({ "gracePeriodSeconds": seconds });
    let marked = server.delete_with(&server.core("pods/a"), &options).await.expect(200);
    let metadata = &marked["metadata"];
    let number = |field: &str| metadata[field].as_i64().expect("a number");
    let end = metadata["deletionTimestamp"].as_str().expect("a time").parse().expect("a time");
    (number("deletionGracePeriodSeconds"), end, number("generation"))
}

async fn a_grace_period_can_only_be_shortened(server: Server) {
    held_on_a_node(&server).await;
    let (seconds, first, generation) = delete_within(&server, None).await;
    assert_eq!((seconds, generation), (30, 2));
    for (requested, expected) in [(Some(60), 30), (Some(20), 20), (None, 20), (Some(25), 20), (Some(10), 10)]
    {
        let (seconds, end, generation) = delete_within(&server, requested).await;
        assert_eq!((seconds, generation), (expected, 2), "{requested:?}");
        assert_eq!(first.duration_since(end).as_secs(), 30 - expected, "{requested:?}");
    }
}

async fn negative_grace_period_becomes_one_second(server: Server) {
    held_on_a_node(&server).await;
    assert_eq!(delete_within(&server, Some(-5)).await.0, 1);
}

async fn pod_deleted_by_its_kubelet_waits_for_finalizers(server: Server) {
    held_on_a_node(&server).await;
    let (_, later, _) = delete_within(&server, None).await;
    let (seconds, end, _) = delete_within(&server, Some(0)).await;
    assert_eq!(seconds, 0);
    assert!(end < later, "{end} must be before {later}");
    server.get(&server.core("pods/a")).await.expect(200);
    let released = json!({ "metadata": { "finalizers": null } });
    server.patch(&server.core("pods/a"), MERGE, &released).await.expect(200);
    server.get(&server.core("pods/a")).await.refused_with(404, "NotFound", "pods \"a\" not found");
}

async fn default_policy_of_jobs_and_rcs_is_orphan(server: Server) {
    let mut template = json!({ "metadata": { "labels": { "app": "a" } }, "spec": pod("a")["spec"] });
    let spec = json!({ "replicas": 0, "selector": { "app": "a" }, "template": template });
    let controller = json!({ "metadata": { "name": "a" }, "spec": spec });
    template["spec"]["restartPolicy"] = "Never".into();
    let job = json!({ "metadata": { "name": "a" }, "spec": { "suspend": true, "template": template } });
    for (path, object, is_left) in [
        (server.core("replicationcontrollers"), &controller, true),
        (server.group("batch/v1", "jobs"), &job, true),
        (server.group("apps/v1", "deployments"), &deployment("a"), false),
    ] {
        server.create(&path, object).await;
        let answer = server.delete(&format!("{path}/a")).await.expect(200);
        let finalizers = if is_left { json!(["orphan"]) } else { Value::Null };
        assert_eq!(answer["metadata"]["finalizers"], finalizers, "{answer}");
    }
}

async fn deletecollection_returns_the_deleted_objects(server: Server) {
    let last = server.create_secrets(&["a", "b"]).await;
    let deleted = server.delete(&server.secrets()).await.expect(200);
    assert_eq!((&deleted["kind"], names(&deleted)), (&json!("SecretList"), vec!["a", "b"]));
    assert!(names(&server.list(&[]).await.expect(200)).is_empty());
    // The answer is the list before the deletes.
    assert_eq!(version(&deleted["items"][1]), version(&last));
    let before = version(&deleted).to_string();
    let mut watch = server.watch(&[("resourceVersion", &before)]).await;
    assert_eq!(watch.briefs(2).await, ["DELETED a", "DELETED b"]);
}

async fn deletecollection_deletes_the_selected_objects(server: Server) {
    for (name, app) in [("a", "web"), ("b", "db"), ("c", "web")] {
        server.create(&server.secrets(), &labelled(name, "app", app)).await;
    }
    let parameters = [("labelSelector", "app=web"), ("fieldSelector", "metadata.name!=c")];
    let deleted = server.delete(&with_query(&server.secrets(), &parameters)).await.expect(200);
    assert_eq!(names(&deleted), ["a"]);
    assert_eq!(names(&server.list(&[]).await.expect(200)), ["b", "c"]);
}

async fn a_dry_run_of_a_delete_of_a_collection_deletes_nothing(server: Server) {
    server.create_secrets(&["a", "b"]).await;
    let shown = server.delete(&format!("{}?dryRun=All", server.secrets())).await.expect(200);
    assert_eq!(names(&shown), ["a", "b"]);
    assert_eq!(names(&server.list(&[]).await.expect(200)), ["a", "b"]);
}

async fn deletecollection_can_be_paged(server: Server) {
    server.create_secrets(&["a", "b", "c"]).await;
    let deleted = server.delete(&format!("{}?limit=2", server.secrets())).await.expect(200);
    assert_eq!(names(&deleted), ["a", "b"]);
    assert_ne!(token(&deleted), "");
    assert_eq!(names(&server.list(&[]).await.expect(200)), ["c"]);
}

async fn deletecollection_keeps_objects_with_finalizers(server: Server) {
    let mut object = secret("a");
    object["metadata"]["finalizers"] = json!(["wire.test/hold"]);
    server.create(&server.secrets(), &object).await;
    server.create_secrets(&["b"]).await;
    assert_eq!(names(&server.delete(&server.secrets()).await.expect(200)), ["a", "b"]);
    let left = server.list(&[]).await.expect(200);
    assert_eq!(names(&left), ["a"]);
    assert!(left["items"][0]["metadata"]["deletionTimestamp"].is_string());
}

async fn a_delete_over_all_namespaces_is_not_allowed(server: Server) {
    let message = "the server does not allow this method on the requested resource";
    for path in ["/api/v1/secrets", "/api/v1/namespaces"] {
        server.delete(path).await.refused(405, "MethodNotAllowed", message);
    }
}

async fn a_delete_of_a_collection_with_a_bad_selector_deletes_nothing(server: Server) {
    server.create_secrets(&["a"]).await;
    let path = with_query(&server.secrets(), &[("labelSelector", "a b")]);
    server.delete(&path).await.refused_with(400, "BadRequest", "unable to parse requirement: ");
    assert_eq!(names(&server.list(&[]).await.expect(200)), ["a"]);
}

async fn delete_with_two_policies_is_refused(server: Server) {
    server.create_secrets(&["a"]).await;
    let message = "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Invalid value: \"Background\": \
        orphanDependents and deletionPropagation cannot be both set";
    let options = json!({ "propagationPolicy": "Background", "orphanDependents": false });
    let query = "propagationPolicy=Background&orphanDependents=false";
    for answer in [
        delete(&server, &options).await,
        server.delete(&format!("{}?{query}", server.secret_path("a"))).await,
    ] {
        answer.refused(422, "Invalid", message).has_causes(&[("FieldValueInvalid", "propagationPolicy")]);
    }
    server.get(&server.secret_path("a")).await.expect(200);
}

/// Only the deprecated option `orphanDependents` causes this status code.
async fn unfinished_delete_without_orphans_is_accepted(server: Server) {
    let options = json!({ "orphanDependents": false });
    server.create_secrets(&["a"]).await;
    assert_eq!(delete(&server, &options).await.expect(200)["status"], "Success");
    let mut object = secret("a");
    object["metadata"]["finalizers"] = json!(["wire.test/hold"]);
    server.create(&server.secrets(), &object).await;
    let marked = delete(&server, &options).await.expect(202);
    assert!(marked["metadata"]["deletionTimestamp"].is_string(), "{marked}");
    server.delete(&format!("{}?orphanDependents=false", server.secret_path("a"))).await.expect(202);
    delete(&server, &json!({ "propagationPolicy": "Background" })).await.expect(200);
}
