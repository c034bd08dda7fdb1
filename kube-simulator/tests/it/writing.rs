//! Create, update, patch and delete, with kube's client over the socket.

use std::collections::BTreeMap;

use http::{Method, StatusCode};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube_simulator::ResourceKind;
use serde_json::{Value, json};

use crate::support::{call, config_map, get, pod, simulator};

fn typed<K: serde::de::DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).expect("a typed object")
}

fn status(error: kube::Error) -> Box<kube::core::Status> {
    match error {
        kube::Error::Api(status) => status,
        other => panic!("not a status: {other}"),
    }
}

#[tokio::test]
async fn a_created_object_gets_the_servers_metadata() {
    let simulator = simulator().await;
    let maps: Api<ConfigMap> = Api::namespaced(simulator.client().unwrap(), "a");
    let created = maps.create(&PostParams::default(), &typed(config_map("a", "one"))).await.unwrap();
    assert_eq!(created.metadata.uid.as_ref().map(String::len), Some(36));
    assert_eq!(created.metadata.resource_version, Some(simulator.resource_version().to_string()));
    assert!(created.metadata.creation_timestamp.is_some());
    assert_eq!(created.metadata.generation, None, "config maps count no generations");
    assert_eq!(maps.get("one").await.unwrap(), created);
}

#[tokio::test]
async fn generated_names_are_unique() {
    let simulator = simulator().await;
    let maps: Api<ConfigMap> = Api::namespaced(simulator.client().unwrap(), "a");
    let nameless: ConfigMap = typed(json!({ "metadata": { "generateName": "run-" } }));
    let first = maps.create(&PostParams::default(), &nameless).await.unwrap().metadata.name.unwrap();
    let second = maps.create(&PostParams::default(), &nameless).await.unwrap().metadata.name.unwrap();
    assert!(first.starts_with("run-") && first.len() == 9, "{first}");
    assert_ne!(first, second);
}

#[tokio::test]
async fn errors_are_those_of_an_api_server() {
    let simulator = simulator().await;
    let maps: Api<ConfigMap> = Api::namespaced(simulator.client().unwrap(), "a");
    maps.create(&PostParams::default(), &typed(config_map("a", "one"))).await.unwrap();

    let exists =
        status(maps.create(&PostParams::default(), &typed(config_map("a", "one"))).await.unwrap_err());
    assert_eq!((exists.code, exists.reason.as_str()), (409, "AlreadyExists"));
    assert_eq!(exists.message, "configmaps \"one\" already exists");

    let missing = status(maps.get("two").await.unwrap_err());
    assert_eq!((missing.code, missing.reason.as_str()), (404, "NotFound"));
    let details = missing.details.unwrap();
    assert_eq!((details.name.as_str(), details.kind.as_str()), ("two", "configmaps"));

    let elsewhere =
        status(maps.create(&PostParams::default(), &typed(config_map("b", "x"))).await.unwrap_err());
    assert_eq!((elsewhere.code, elsewhere.reason.as_str()), (400, "BadRequest"));

    let nameless = status(maps.create(&PostParams::default(), &ConfigMap::default()).await.unwrap_err());
    assert_eq!((nameless.code, nameless.reason.as_str()), (422, "Invalid"));
    assert_eq!(nameless.details.unwrap().causes[0].field, "metadata.name");
}

#[tokio::test]
async fn a_write_from_an_old_version_is_a_conflict() {
    let simulator = simulator().await;
    let maps: Api<ConfigMap> = Api::namespaced(simulator.client().unwrap(), "a");
    let first = maps.create(&PostParams::default(), &typed(config_map("a", "one"))).await.unwrap();
    let mut newer = first.clone();
    newer.data = Some(BTreeMap::from([("answer".to_owned(), "43".to_owned())]));
    let second = maps.replace("one", &PostParams::default(), &newer).await.unwrap();
    assert_ne!(first.metadata.resource_version, second.metadata.resource_version);
    assert_eq!(first.metadata.uid, second.metadata.uid);
    let conflict = status(maps.replace("one", &PostParams::default(), &newer).await.unwrap_err());
    assert!(conflict.is_conflict(), "{conflict}");
    assert!(conflict.message.contains("the object has been modified"), "{conflict}");
}

#[tokio::test]
async fn an_update_that_changes_nothing_is_no_write() {
    let simulator = simulator().await;
    let maps: Api<ConfigMap> = Api::namespaced(simulator.client().unwrap(), "a");
    let first = maps.create(&PostParams::default(), &typed(config_map("a", "one"))).await.unwrap();
    let again = maps.replace("one", &PostParams::default(), &first).await.unwrap();
    assert_eq!(first, again);
}

#[tokio::test]
async fn status_and_spec_are_written_separately() {
    let simulator = simulator().await;
    let pods: Api<Pod> = Api::default_namespaced(simulator.client().unwrap());
    let created = pods.create(&PostParams::default(), &typed(pod("web", "n1", "web"))).await.unwrap();
    assert_eq!(
        created.status.unwrap().phase.as_deref(),
        Some("Pending"),
        "a client can't choose the first status"
    );
    assert_eq!(created.metadata.generation, Some(1));

    let running = Patch::Merge(json!({ "status": { "phase": "Running" }, "spec": { "nodeName": "n2" } }));
    let patched = pods.patch_status("web", &PatchParams::default(), &running).await.unwrap();
    assert_eq!(patched.status.unwrap().phase.as_deref(), Some("Running"));
    assert_eq!(patched.spec.unwrap().node_name.as_deref(), Some("n1"));
    assert_eq!(patched.metadata.generation, Some(1));

    let moved = Patch::Strategic(json!({ "status": { "phase": "Failed" }, "spec": { "nodeName": "n2" } }));
    let patched = pods.patch("web", &PatchParams::default(), &moved).await.unwrap();
    assert_eq!(patched.status.unwrap().phase.as_deref(), Some("Running"));
    assert_eq!(patched.spec.unwrap().node_name.as_deref(), Some("n2"));
    assert_eq!(patched.metadata.generation, Some(2));
}

#[tokio::test]
async fn object_with_finalizers_is_only_marked() {
    let simulator = simulator().await;
    let maps: Api<ConfigMap> = Api::namespaced(simulator.client().unwrap(), "a");
    let mut held = config_map("a", "held");
    held["metadata"]["finalizers"] = json!(["example.com/wait"]);
    maps.create(&PostParams::default(), &typed(held)).await.unwrap();

    let marked = maps.delete("held", &DeleteParams::default()).await.unwrap().left().expect("the object");
    assert!(marked.metadata.deletion_timestamp.is_some());
    let release = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    maps.patch("held", &PatchParams::default(), &release).await.unwrap();
    assert_eq!(status(maps.get("held").await.unwrap_err()).code, 404);
}

#[tokio::test]
async fn delete_answers_with_object_or_status_by_kind() {
    let simulator = simulator().await;
    simulator.create(&pod("web", "n1", "web")).unwrap();
    simulator.create(&config_map("default", "one")).unwrap();
    let client = simulator.client().unwrap();
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    assert!(pods.delete("web", &DeleteParams::default()).await.unwrap().is_left());
    let status = maps.delete("one", &DeleteParams::default()).await.unwrap().right().expect("a status");
    assert!(status.is_success());
    assert_eq!(status.details.unwrap().kind, "configmaps");
}

#[tokio::test]
async fn deletecollection_deletes_matching_objects() {
    let simulator = simulator().await;
    for (name, app) in [("a", "web"), ("b", "db"), ("c", "web")] {
        simulator.create(&pod(name, "n1", app)).unwrap();
    }
    let pods: Api<Pod> = Api::default_namespaced(simulator.client().unwrap());
    let only_web = ListParams::default().labels("app=web");
    pods.delete_collection(&DeleteParams::default(), &only_web).await.unwrap();
    let left = simulator.list_all::<Pod>().unwrap();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].metadata.name.as_deref(), Some("b"));
}

#[tokio::test]
async fn preconditions_guard_a_delete() {
    let simulator = simulator().await;
    simulator.create(&config_map("a", "one")).unwrap();
    let options = json!({ "preconditions": { "uid": "another" } });
    let path = "/api/v1/namespaces/a/configmaps/one";
    let (code, refusal) = call(&simulator, Method::DELETE, path, &options).await;
    assert_eq!((code, &refusal["reason"]), (StatusCode::CONFLICT, &json!("Conflict")));
    assert_eq!(get(&simulator, path).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_dry_run_stores_nothing() {
    let simulator = simulator().await;
    let before = simulator.resource_version();
    let path = "/api/v1/namespaces/a/configmaps?dryRun=All";
    let (code, _) = call(&simulator, Method::POST, path, &config_map("a", "one")).await;
    assert_eq!(code, StatusCode::CREATED);
    assert_eq!(simulator.resource_version(), before);
}

#[tokio::test]
async fn custom_resources_need_a_resource_version_to_be_replaced() {
    let simulator = simulator().await;
    simulator.register(ResourceKind::namespaced("example.com", "v1", "CronTab", "crontabs"));
    let tab =
        json!({ "apiVersion": "example.com/v1", "kind": "CronTab", "metadata": { "name": "t" }, "spec": {} });
    let path = "/apis/example.com/v1/namespaces/a/crontabs";
    assert_eq!(call(&simulator, Method::POST, path, &tab).await.0, StatusCode::CREATED);
    let (code, refusal) = call(&simulator, Method::PUT, &format!("{path}/t"), &tab).await;
    assert_eq!(code, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(refusal["details"]["causes"][0]["field"], "metadata.resourceVersion");
}

#[tokio::test]
async fn direct_writes_are_stored_unchanged() {
    let simulator = simulator().await;
    let stored = simulator.create(&pod("web", "n1", "web")).unwrap();
    assert_eq!(stored.value()["status"]["phase"], "Running");
    let pods = simulator.objects_of::<Pod>().unwrap();
    let changed = pods.modify("default/web", |pod| pod["status"]["phase"] = "Failed".into()).unwrap();
    assert_eq!(changed.uid(), stored.uid());
    assert!(changed.resource_version() > stored.resource_version());
    assert_eq!(simulator.get::<Pod>("default/web").unwrap().status.unwrap().phase.as_deref(), Some("Failed"));
}

#[tokio::test]
async fn unknown_paths_and_methods_are_refused() {
    let simulator = simulator().await;
    let (code, _) =
        call(&simulator, Method::PUT, "/api/v1/namespaces/a/configmaps", &config_map("a", "b")).await;
    assert_eq!(code, StatusCode::METHOD_NOT_ALLOWED);
    let client = simulator.client().unwrap();
    let path = http::Request::get("/apis/unknown.io/v1/things").body(Vec::new()).unwrap();
    let error = client.request::<Value>(path).await.unwrap_err();
    assert_eq!(status(error).code, 404);
}

#[tokio::test]
async fn direct_removal_of_the_last_finalizer_deletes() {
    let simulator = simulator().await;
    let mut held = config_map("a", "held");
    held["metadata"]["finalizers"] = json!(["example.com/wait"]);
    simulator.create(&held).unwrap();
    simulator.delete::<ConfigMap>("a/held").unwrap();
    let maps = simulator.objects_of::<ConfigMap>().unwrap();
    assert!(maps.get("a/held").unwrap().value()["metadata"]["deletionTimestamp"].is_string());
    maps.modify("a/held", |map| map["metadata"]["finalizers"] = json!([])).unwrap();
    assert!(maps.is_empty());
}

#[tokio::test]
async fn a_json_patch_is_applied_and_a_failed_test_in_it_refused() {
    let simulator = simulator().await;
    simulator.create(&config_map("a", "one")).unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(simulator.client().unwrap(), "a");
    let client = maps.into_client();
    let patch = |operations: Value| {
        http::Request::patch("/api/v1/namespaces/a/configmaps/one")
            .header("content-type", "application/json-patch+json")
            .body(operations.to_string().into_bytes())
            .unwrap()
    };
    let replaced = json!([{ "op": "replace", "path": "/data/answer", "value": "43" }]);
    let patched: ConfigMap = client.request(patch(replaced)).await.unwrap();
    assert_eq!(patched.data.unwrap()["answer"], "43");
    let failing = json!([{ "op": "test", "path": "/data/answer", "value": "42" }]);
    assert_eq!(status(client.request::<ConfigMap>(patch(failing)).await.unwrap_err()).code, 422);
}
