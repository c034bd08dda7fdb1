//! Scales, bindings of pods, and both versions of autoscalers.

use serde_json::{Value, json};

use crate::objects::{deployment, pod, uid, version};
use crate::scenario::{Scenario, scenario};
use crate::server::{APPLY, MERGE, Server};

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario(a_scale_shows_replicas_and_selector),
        scenario(selector_of_a_scale_is_sorted),
        scenario(scale_without_replicas_shows_the_default),
        scenario(a_patch_of_the_scale_sets_replicas),
        scenario(an_update_of_the_scale_sets_replicas),
        scenario(a_scale_from_an_old_version_is_a_conflict),
        scenario(a_scale_of_another_uid_is_a_conflict),
        scenario(a_scale_of_another_name_or_namespace_is_refused),
        scenario(a_scale_below_zero_is_refused),
        scenario(null_replicas_of_a_scale_are_zero),
        scenario(applied_scale_of_anothers_replicas_is_a_conflict),
        scenario(first_applied_scale_of_unowned_replicas_conflicts),
        scenario(update_of_unowned_replicas_is_not_recorded),
        scenario(applied_scale_sets_and_owns_replicas),
        scenario(applied_scale_without_a_manager_is_refused),
        scenario(applied_scale_of_a_missing_object_is_not_found),
        scenario(dry_run_of_a_scale_changes_nothing),
        scenario(scale_of_a_missing_object_is_not_found),
        scenario(scale_of_a_kind_without_scale_is_not_found),
        scenario(scale_cannot_be_created_or_deleted),
        scenario(binding_assigns_a_pod_to_a_node),
        scenario(pod_can_be_bound_only_once),
        scenario(binding_sets_labels_but_records_no_owner),
        scenario(gated_or_deleted_pod_cannot_be_bound),
        scenario(a_binding_for_another_uid_or_version_is_a_conflict),
        scenario(invalid_binding_is_refused),
        scenario(binding_of_a_missing_pod_is_not_found),
        scenario(a_binding_is_write_only),
        scenario(autoscaler_of_v2_shows_in_v1_with_annotations),
        scenario(autoscaler_of_v1_shows_in_v2_with_metrics),
        scenario(patch_of_an_autoscaler_in_v1_keeps_the_rest_of_v2),
        scenario(autoscalers_have_the_version_of_the_path),
    ]
}

const AUTOSCALERS: &str = "horizontalpodautoscalers";

async fn scale_without_replicas_shows_the_default(server: Server) {
    let path = server.group("apps/v1", "deployments");
    server.create(&path, &deployment("a")).await;
    let removed = json!({ "spec": { "replicas": null } });
    let patched = server.patch(&format!("{path}/a"), MERGE, &removed).await.expect(200);
    assert_eq!(patched["spec"]["replicas"], 1);
    let scale = server.get(&format!("{path}/a/scale")).await.expect(200);
    assert_eq!(scale["spec"]["replicas"], 1);
}

/// Creates an autoscaler with a metric that v1 has, one that v1 lacks, and a behavior. Returns its
/// path in v1.
async fn autoscaler(server: &Server) -> String {
    let path = server.group("autoscaling/v2", AUTOSCALERS);
    let metric = |name: &str, target: Value| json!({ "type": "Resource", "resource": { "name": name, "target": target } });
    let cpu = metric("cpu", json!({ "type": "Utilization", "averageUtilization": 70 }));
    let memory = metric("memory", json!({ "type": "AverageValue", "averageValue": "1Gi" }));
    let behavior = json!({ "scaleDown": {
        "stabilizationWindowSeconds": 60, "selectPolicy": "Max",
        "policies": [{ "type": "Pods", "value": 1, "periodSeconds": 15 }],
    } });
    let target = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "a" });
    let spec = json!({
        "scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 5, "metrics": [cpu, memory], "behavior": behavior,
    });
    server.create(&path, &json!({ "metadata": { "name": "a" }, "spec": spec })).await;
    format!("{}/a", server.group("autoscaling/v1", AUTOSCALERS))
}

fn annotation(object: &Value, name: &str) -> Value {
    let text = object["metadata"]["annotations"][format!("autoscaling.alpha.kubernetes.io/{name}")].as_str();
    text.map_or(Value::Null, |text| serde_json::from_str(text).expect("JSON"))
}

async fn autoscaler_of_v2_shows_in_v1_with_annotations(server: Server) {
    let path = autoscaler(&server).await;
    let object = server.get(&path).await.expect(200);
    assert_eq!(
        (&object["apiVersion"], &object["kind"]),
        (&json!("autoscaling/v1"), &json!("HorizontalPodAutoscaler"))
    );
    let spec = object["spec"].as_object().expect("a spec");
    assert_eq!(spec["targetCPUUtilizationPercentage"], 70);
    assert!(!spec.contains_key("metrics") && !spec.contains_key("behavior"), "{object}");
    let memory = json!({ "name": "memory", "targetAverageValue": "1Gi" });
    assert_eq!(annotation(&object, "metrics"), json!([{ "type": "Resource", "resource": memory }]));
    assert_eq!(annotation(&object, "behavior")["ScaleDown"]["StabilizationWindowSeconds"], 60);
    let version = server.get("/apis/autoscaling").await.expect(200);
    assert_eq!(version["preferredVersion"]["version"], "v2");
}

async fn autoscaler_of_v1_shows_in_v2_with_metrics(server: Server) {
    let target = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "a" });
    let spec = json!({ "scaleTargetRef": target, "maxReplicas": 5, "minReplicas": 2, "targetCPUUtilizationPercentage": 50 });
    let path = server.group("autoscaling/v1", AUTOSCALERS);
    let created = server.create(&path, &json!({ "metadata": { "name": "a" }, "spec": spec })).await;
    assert_eq!(created["spec"]["targetCPUUtilizationPercentage"], 50);
    let object = server.get(&format!("{}/a", server.group("autoscaling/v2", AUTOSCALERS))).await.expect(200);
    let target = json!({ "type": "Utilization", "averageUtilization": 50 });
    let cpu = json!({ "type": "Resource", "resource": { "name": "cpu", "target": target } });
    assert_eq!(object["spec"]["metrics"], json!([cpu]));
    assert!(object["spec"].get("targetCPUUtilizationPercentage").is_none(), "{object}");
}

async fn patch_of_an_autoscaler_in_v1_keeps_the_rest_of_v2(server: Server) {
    let path = autoscaler(&server).await;
    let change = json!({ "spec": { "targetCPUUtilizationPercentage": 60 } });
    let patched = server.patch(&path, MERGE, &change).await.expect(200);
    assert_eq!(patched["spec"]["targetCPUUtilizationPercentage"], 60);
    let object = server.get(&format!("{}/a", server.group("autoscaling/v2", AUTOSCALERS))).await.expect(200);
    let metrics = object["spec"]["metrics"].as_array().expect("metrics");
    let of = |name: &str| {
        let found = metrics.iter().find(|metric| metric["resource"]["name"] == name);
        found.map(|metric| metric["resource"]["target"].clone())
    };
    assert_eq!(of("cpu"), Some(json!({ "type": "Utilization", "averageUtilization": 60 })));
    assert_eq!(of("memory"), Some(json!({ "type": "AverageValue", "averageValue": "1Gi" })));
    assert_eq!(
        (metrics.len(), &object["spec"]["behavior"]["scaleDown"]["stabilizationWindowSeconds"]),
        (2, &json!(60))
    );
    assert!(object["metadata"].get("annotations").is_none(), "{object}");
}

async fn autoscalers_have_the_version_of_the_path(server: Server) {
    autoscaler(&server).await;
    let path = server.group("autoscaling/v1", AUTOSCALERS);
    let list = server.get(&path).await.expect(200);
    assert_eq!(list["items"][0]["spec"]["targetCPUUtilizationPercentage"], 70);
    let added = server.watch_path(&path, &[("resourceVersion", "0")]).await.expect("ADDED").await;
    assert_eq!(
        (&added["apiVersion"], &added["spec"]["targetCPUUtilizationPercentage"]),
        (&json!("autoscaling/v1"), &json!(70))
    );
}

async fn scaled(server: &Server) -> (String, Value) {
    let path = server.group("apps/v1", "deployments");
    let created = server.create(&path, &deployment("a")).await;
    (format!("{path}/a"), created)
}

async fn a_scale_shows_replicas_and_selector(server: Server) {
    let (path, object) = scaled(&server).await;
    server.patch(&path, MERGE, &json!({ "spec": { "replicas": 2 } })).await.expect(200);
    let scale = server.get(&format!("{path}/scale")).await.expect(200);
    assert_eq!((&scale["kind"], &scale["apiVersion"]), (&json!("Scale"), &json!("autoscaling/v1")));
    assert_eq!(scale["spec"], json!({ "replicas": 2 }));
    assert_eq!(scale["status"], json!({ "replicas": 0, "selector": "app=a" }));
    assert_eq!(uid(&scale), uid(&object));

    let mut other = deployment("b");
    other["spec"].as_object_mut().expect("a spec").remove("replicas");
    server.create(&server.group("apps/v1", "deployments"), &other).await;
    let scale = server.get(&server.group("apps/v1", "deployments/b/scale")).await.expect(200);
    assert_eq!(scale["spec"], json!({ "replicas": 1 }));
}

async fn selector_of_a_scale_is_sorted(server: Server) {
    let mut object = deployment("a");
    let expression = json!({ "key": "a", "operator": "In", "values": ["y", "x"] });
    object["spec"]["selector"] = json!({ "matchLabels": { "z": "1" }, "matchExpressions": [expression] });
    object["spec"]["template"]["metadata"]["labels"] = json!({ "a": "x", "z": "1" });
    server.create(&server.group("apps/v1", "deployments"), &object).await;
    let scale = server.get(&server.group("apps/v1", "deployments/a/scale")).await.expect(200);
    assert_eq!(scale["status"]["selector"], "a in (x,y),z=1");
}

async fn a_patch_of_the_scale_sets_replicas(server: Server) {
    let (path, object) = scaled(&server).await;
    let change = json!({ "spec": { "replicas": 3 } });
    let scale = server.patch(&format!("{path}/scale"), MERGE, &change).await.expect(200);
    assert_eq!(scale["spec"]["replicas"], 3);
    assert!(version(&scale) > version(&object));
    let object = server.get(&path).await.expect(200);
    assert_eq!((&object["spec"]["replicas"], &object["metadata"]["generation"]), (&json!(3), &json!(2)));
}

async fn an_update_of_the_scale_sets_replicas(server: Server) {
    let (path, _) = scaled(&server).await;
    let mut scale = server.get(&format!("{path}/scale")).await.expect(200);
    scale["spec"]["replicas"] = 4.into();
    // A controller may have written the object in the meantime.
    scale["metadata"]["resourceVersion"] = "".into();
    let scale = server.put(&format!("{path}/scale"), &scale).await.expect(200);
    assert_eq!(scale["spec"]["replicas"], 4);
    assert_eq!(server.get(&path).await.expect(200)["spec"]["replicas"], 4);
}

async fn a_scale_from_an_old_version_is_a_conflict(server: Server) {
    let (path, _) = scaled(&server).await;
    let mut scale = server.get(&format!("{path}/scale")).await.expect(200);
    server.patch(&path, MERGE, &json!({ "metadata": { "labels": { "x": "1" } } })).await.expect(200);
    scale["spec"]["replicas"] = 4.into();
    let message = "Operation cannot be fulfilled on deployments.apps \"a\": the object has been modified";
    server.put(&format!("{path}/scale"), &scale).await.refused_with(409, "Conflict", message);
}

async fn a_scale_below_zero_is_refused(server: Server) {
    let (path, _) = scaled(&server).await;
    let answer = server.patch(&format!("{path}/scale"), MERGE, &json!({ "spec": { "replicas": -1 } })).await;
    let message = "spec.replicas: Invalid value: -1: must be greater than or equal to 0";
    answer.refused_with(422, "Invalid", message).has_causes(&[("FieldValueInvalid", "spec.replicas")]);
}

fn scale(replicas: u64) -> Value {
    let metadata = json!({ "name": "a" });
    let spec = json!({ "replicas": replicas });
    json!({ "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata, "spec": spec })
}

async fn null_replicas_of_a_scale_are_zero(server: Server) {
    let (path, _) = scaled(&server).await;
    server.patch(&path, MERGE, &json!({ "spec": { "replicas": 2 } })).await.expect(200);
    let mut none = scale(2);
    none["spec"]["replicas"] = Value::Null;
    server.put(&format!("{path}/scale"), &none).await.expect(200);
    assert_eq!(server.get(&path).await.expect(200)["spec"]["replicas"], 0);
}

async fn a_scale_of_another_uid_is_a_conflict(server: Server) {
    let (path, object) = scaled(&server).await;
    let mut other = scale(3);
    other["metadata"]["uid"] = "another".into();
    let message =
        format!("Precondition failed: UID in precondition: another, UID in object meta: {}", uid(&object));
    let answer = server.put(&format!("{path}/scale"), &other).await;
    answer.refused_with(409, "Conflict", &message).is_about("apps", "deployments", "a");
    let patch = json!({ "metadata": { "uid": "another" }, "spec": { "replicas": 3 } });
    let answer = server.patch(&format!("{path}/scale"), MERGE, &patch).await;
    answer.refused_with(409, "Conflict", &message).is_about("apps", "deployments/scale", "a");
}

async fn a_scale_of_another_name_or_namespace_is_refused(server: Server) {
    let (path, _) = scaled(&server).await;
    for (field, message) in [
        ("name", "the name of the object (other) does not match the name on the URL (a)"),
        (
            "namespace",
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
    ] {
        let mut other = scale(3);
        other["metadata"][field] = "other".into();
        server.put(&format!("{path}/scale"), &other).await.refused(400, "BadRequest", message);
    }
}

async fn applied_scale_of_anothers_replicas_is_a_conflict(server: Server) {
    let path = server.group("apps/v1", "deployments");
    server.create(&format!("{path}?fieldManager=creator"), &deployment("a")).await;
    let path = format!("{path}/a/scale?fieldManager=one");
    let answer = server.patch(&path, APPLY, &scale(3)).await;
    let message = "Apply failed with 1 conflict: conflict with \"creator\" using autoscaling/v1";
    answer.refused_with(409, "Conflict", message).has_causes(&[("FieldManagerConflict", ".spec.replicas")]);
}

/// Creates a Deployment with server-side apply, whose replicas have no owner.
async fn with_unowned_replicas(server: &Server) -> String {
    let path = format!("{}/a", server.group("apps/v1", "deployments"));
    let mut applied = deployment("a");
    applied["spec"].as_object_mut().expect("an object").remove("replicas");
    server.patch(&format!("{path}?fieldManager=creator"), APPLY, &applied).await.expect(201);
    path
}

async fn first_applied_scale_of_unowned_replicas_conflicts(server: Server) {
    let path = with_unowned_replicas(&server).await;
    let scale_path = format!("{path}/scale?fieldManager=one");
    let answer = server.patch(&scale_path, APPLY, &scale(3)).await;
    let message = "conflict with \"before-first-apply\" with subresource \"scale\" using autoscaling/v1";
    let message = format!("Apply failed with 1 conflict: {message}");
    answer.refused_with(409, "Conflict", &message).has_causes(&[("FieldManagerConflict", ".spec.replicas")]);
    server.patch(&scale_path, APPLY, &scale(1)).await.expect(200);
    let object = server.get(&path).await.expect(200);
    for manager in ["before-first-apply", "one"] {
        let entries = object["metadata"]["managedFields"].as_array().expect("entries");
        let entry = entries.iter().find(|entry| entry["manager"] == manager).expect("an entry");
        assert_eq!((&entry["apiVersion"], &entry["subresource"]), (&json!("apps/v1"), &json!("scale")));
        assert_eq!(entry["fieldsV1"], json!({ "f:spec": { "f:replicas": {} } }));
    }
}

async fn update_of_unowned_replicas_is_not_recorded(server: Server) {
    let path = with_unowned_replicas(&server).await;
    let replicas = json!({ "spec": { "replicas": 3 } });
    server.patch(&format!("{path}/scale?fieldManager=two"), MERGE, &replicas).await.expect(200);
    let object = server.get(&path).await.expect(200);
    let entries = object["metadata"]["managedFields"].as_array().expect("entries");
    assert!(entries.iter().all(|entry| entry["manager"] != "two"), "{entries:?}");
}

async fn applied_scale_sets_and_owns_replicas(server: Server) {
    let (path, _) = scaled(&server).await;
    let scale_path = format!("{path}/scale?fieldManager=one");
    let shown = server.patch(&format!("{scale_path}&force=true"), APPLY, &scale(3)).await.expect(200);
    assert_eq!((&shown["kind"], &shown["spec"]), (&json!("Scale"), &json!({ "replicas": 3 })));
    let object = server.get(&path).await.expect(200);
    assert_eq!(object["spec"]["replicas"], 3);
    let entries = object["metadata"]["managedFields"].as_array().expect("entries");
    let entry = entries.iter().find(|entry| entry["manager"] == "one").expect("an entry");
    assert_eq!((&entry["operation"], &entry["subresource"]), (&json!("Apply"), &json!("scale")));
    assert_eq!(entry["apiVersion"], "apps/v1");
    assert_eq!(entry["fieldsV1"], json!({ "f:spec": { "f:replicas": {} } }));
    // A field that the manager already owns is not a conflict.
    let shown = server.patch(&scale_path, APPLY, &scale(2)).await.expect(200);
    assert_eq!(shown["spec"]["replicas"], 2);
}

async fn applied_scale_without_a_manager_is_refused(server: Server) {
    let (path, _) = scaled(&server).await;
    let message = "fieldManager: Required value: is required for apply patch";
    server.patch(&format!("{path}/scale"), APPLY, &scale(3)).await.refused_with(422, "Invalid", message);
}

async fn applied_scale_of_a_missing_object_is_not_found(server: Server) {
    let path = server.group("apps/v1", "deployments/a/scale?fieldManager=one");
    let answer = server.patch(&path, APPLY, &scale(3)).await;
    answer.refused(404, "NotFound", "deployments.apps \"a\" not found");
}

async fn dry_run_of_a_scale_changes_nothing(server: Server) {
    let (path, _) = scaled(&server).await;
    for (kind, query) in [(MERGE, "dryRun=All"), (APPLY, "dryRun=All&fieldManager=one&force=true")] {
        let shown = server.patch(&format!("{path}/scale?{query}"), kind, &scale(3)).await.expect(200);
        assert_eq!(shown["spec"]["replicas"], 3);
    }
    assert_eq!(server.get(&path).await.expect(200)["spec"]["replicas"], 0);
}

async fn scale_of_a_missing_object_is_not_found(server: Server) {
    let path = server.group("apps/v1", "deployments/a/scale");
    server.get(&path).await.refused(404, "NotFound", "deployments.apps \"a\" not found");
}

async fn scale_of_a_kind_without_scale_is_not_found(server: Server) {
    server.create_secrets(&["a"]).await;
    let answer = server.get(&format!("{}/scale", server.secret_path("a"))).await;
    answer.refused(404, "NotFound", "the server could not find the requested resource");
}

async fn scale_cannot_be_created_or_deleted(server: Server) {
    let (path, _) = scaled(&server).await;
    let message = "the server does not allow this method on the requested resource";
    let path = format!("{path}/scale");
    server.post(&path, &json!({})).await.refused(405, "MethodNotAllowed", message);
    server.delete(&path).await.refused(405, "MethodNotAllowed", message);
}

fn binding(node: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": { "name": "a" },
        "target": { "kind": "Node", "name": node },
    })
}

async fn binding_assigns_a_pod_to_a_node(server: Server) {
    server.create(&server.core("pods"), &pod("a")).await;
    let node = server.no_such_node();
    let done = server.post(&server.core("pods/a/binding"), &binding(&node)).await.expect(201);
    assert_eq!(
        (&done["kind"], &done["status"], &done["code"]),
        (&json!("Status"), &json!("Success"), &json!(201))
    );
    let pod = server.get(&server.core("pods/a")).await.expect(200);
    assert_eq!(pod["spec"]["nodeName"], node);
    assert_eq!(pod["metadata"]["generation"], 1);
    let conditions = pod["status"]["conditions"].as_array().expect("conditions");
    let scheduled =
        conditions.iter().find(|condition| condition["type"] == "PodScheduled").expect("a condition");
    assert_eq!(scheduled["status"], "True");
}

async fn pod_can_be_bound_only_once(server: Server) {
    server.create(&server.core("pods"), &pod("a")).await;
    let path = server.core("pods/a/binding");
    let node = server.no_such_node();
    server.post(&path, &binding(&node)).await.expect(201);
    let message = format!(
        "Operation cannot be fulfilled on pods/binding \"a\": pod a is already assigned to node \"{node}\""
    );
    server.post(&path, &binding("wire-two")).await.refused(409, "Conflict", &message).is_about(
        "",
        "pods/binding",
        "a",
    );
}

async fn binding_sets_labels_but_records_no_owner(server: Server) {
    let created = server.create(&server.core("pods"), &pod("a")).await;
    let mut binding = binding(&server.no_such_node());
    let given = [("labels", json!({ "x": "1" })), ("annotations", json!({ "y": "2" }))];
    for (field, value) in &given {
        binding["metadata"][*field] = value.clone();
    }
    server.post(&server.core("pods/a/binding"), &binding).await.expect(201);
    let bound = server.get(&server.core("pods/a")).await.expect(200);
    for (field, value) in &given {
        assert_eq!(bound["metadata"][*field], *value, "{field}");
    }
    assert_eq!(bound["metadata"]["managedFields"], created["metadata"]["managedFields"]);
}

async fn gated_or_deleted_pod_cannot_be_bound(server: Server) {
    let mut pod = pod("a");
    pod["spec"]["schedulingGates"] = json!([{ "name": "wire.test/wait" }]);
    pod["metadata"]["finalizers"] = json!(["wire.test/hold"]);
    server.create(&server.core("pods"), &pod).await;
    let refused = async |why: &str| {
        let answer = server.post(&server.core("pods/a/binding"), &binding("wire-one")).await;
        let message = format!("Operation cannot be fulfilled on pods/binding \"a\": pod a {why}");
        answer.refused(409, "Conflict", &message).is_about("", "pods/binding", "a");
    };
    refused("has non-empty .spec.schedulingGates").await;
    server.delete(&server.core("pods/a")).await.expect(200);
    refused("is being deleted, cannot be assigned to a host").await;
}

async fn a_binding_for_another_uid_or_version_is_a_conflict(server: Server) {
    let pod = server.create(&server.core("pods"), &pod("a")).await;
    let mut binding = binding("wire-one");
    binding["metadata"]["uid"] = "another".into();
    let message =
        format!("Precondition failed: UID in precondition: another, UID in object meta: {}", uid(&pod));
    let path = server.core("pods/a/binding");
    server.post(&path, &binding).await.refused_with(409, "Conflict", &message).is_about("", "pods", "a");
    binding["metadata"]["uid"] = uid(&pod).into();
    binding["metadata"]["resourceVersion"] = "1".into();
    let message = "Precondition failed: ResourceVersion in precondition: 1, ResourceVersion in object meta: ";
    server.post(&path, &binding).await.refused_with(409, "Conflict", message).is_about("", "pods", "a");
    binding["metadata"]["resourceVersion"] = pod["metadata"]["resourceVersion"].clone();
    server.post(&path, &binding).await.expect(201);
}

async fn invalid_binding_is_refused(server: Server) {
    server.create(&server.core("pods"), &pod("a")).await;
    let path = server.core("pods/a/binding");
    let dry_run = server.post(&format!("{path}?dryRun=yes"), &binding("wire-one")).await;
    dry_run.refused_with(422, "Invalid", "dryRun: Unsupported value: ");
    let mut other = binding("wire-one");
    other["metadata"]["name"] = "b".into();
    let message = "name in URL does not match name in Binding object";
    server.post(&path, &other).await.refused(400, "BadRequest", message);
    server.post(&path, &binding("")).await.refused(500, "", "target.name: Required value");
    let mut other = binding("wire-one");
    other["target"]["kind"] = "Host".into();
    let message = "target.kind: Unsupported value: \"Host\": supported values: \"Node\", \"<empty>\"";
    server.post(&path, &other).await.refused(500, "", message);
}

async fn binding_of_a_missing_pod_is_not_found(server: Server) {
    let answer = server.post(&server.core("pods/a/binding"), &binding("wire-one")).await;
    answer.refused(404, "NotFound", "pods \"a\" not found");
}

async fn a_binding_is_write_only(server: Server) {
    server.create(&server.core("pods"), &pod("a")).await;
    let message = "the server does not allow this method on the requested resource";
    server.get(&server.core("pods/a/binding")).await.refused(405, "MethodNotAllowed", message);
}
