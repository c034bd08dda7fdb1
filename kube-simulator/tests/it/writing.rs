//! Writes through the Rust API, and writes that no wire scenario covers.

use std::sync::Barrier;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use k8s_openapi::api::autoscaling::v1::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube_simulator::{Error, ResourceKind, Simulator};
use serde_json::{Value, json};

use crate::definitions::{cron_tab, cron_tabs, define};
use crate::support::{MAPS, body_of, call, config_map, get, pod, send, simulator};

#[tokio::test]
async fn replace_of_registered_kinds_needs_a_version() {
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
async fn update_at_the_highest_generation_wraps_around() {
    let simulator = simulator().await;
    let mut pod = pod("web", "n1", "web");
    pod["metadata"]["generation"] = i64::MAX.into();
    simulator.create(&pod).unwrap();
    pod["spec"]["priority"] = 1.into();
    let (code, changed) = call(&simulator, Method::PUT, "/api/v1/namespaces/default/pods/web", &pod).await;
    assert_eq!((code, &changed["metadata"]["generation"]), (StatusCode::OK, &json!(i64::MIN)));
}

#[tokio::test]
async fn direct_writes_treat_empty_metadata_as_missing() {
    let simulator = simulator().await;
    let mut map = config_map("", "one");
    map["metadata"]["uid"] = "".into();
    map["metadata"]["creationTimestamp"] = Value::Null;
    let created = simulator.apply(&map).unwrap().value()["metadata"].clone();
    assert_eq!(created["namespace"], "default");
    let applied = simulator.apply(&map).unwrap().value()["metadata"].clone();
    for field in ["uid", "creationTimestamp"] {
        assert!(created[field].as_str().is_some_and(|value| !value.is_empty()), "{created}");
        assert_eq!(applied[field], created[field]);
    }
    assert_eq!(simulator.objects_of::<ConfigMap>().unwrap().len(), 1);
}

#[tokio::test]
async fn concurrent_applies_of_a_new_object_succeed() {
    let simulator = simulator().await;
    let maps = simulator.objects_of::<ConfigMap>().unwrap();
    let barrier = Barrier::new(2);
    let apply_all = || {
        let apply = |number: u32| {
            barrier.wait();
            maps.apply(&config_map("a", &format!("map-{number}")))
        };
        (0..200).map(apply).collect::<Vec<_>>()
    };
    let outcomes = std::thread::scope(|scope| {
        let threads = [scope.spawn(apply_all), scope.spawn(apply_all)];
        threads.map(|thread| thread.join().unwrap())
    });
    for outcome in outcomes.into_iter().flatten() {
        outcome.unwrap();
    }
}

#[tokio::test]
async fn store_of_v1_autoscalers_converts_them_from_v2() {
    let simulator = simulator().await;
    let (name, kind) = ("default/web", "HorizontalPodAutoscaler");
    let target = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" });
    let spec = json!({ "maxReplicas": 3, "scaleTargetRef": target, "targetCPUUtilizationPercentage": 50 });
    let metadata = json!({ "name": "web" });
    let scaler = json!({ "apiVersion": "autoscaling/v1", "kind": kind, "metadata": metadata, "spec": spec });
    assert_eq!(simulator.create(&scaler).unwrap().value()["spec"], spec);
    let percentage = |scaler: &HorizontalPodAutoscaler| scaler.spec.target_cpu_utilization_percentage;
    assert_eq!(percentage(&simulator.get(name).unwrap()), Some(50));
    let v1 = simulator.objects("autoscaling/v1", kind).unwrap();
    v1.modify(name, |scaler| scaler["spec"]["targetCPUUtilizationPercentage"] = 60.into()).unwrap();
    let listed = simulator.list_all::<HorizontalPodAutoscaler>().unwrap();
    assert_eq!(listed.iter().map(percentage).collect::<Vec<_>>(), [Some(60)]);
    let stored = simulator.objects("autoscaling/v2", kind).unwrap().get(name).unwrap().value();
    assert_eq!(stored["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 60);
}

#[tokio::test]
async fn store_of_another_served_version_converts_objects() {
    let simulator = simulator().await;
    define(&simulator, &cron_tabs()).await;
    let (beta, mut tab) = ("stable.example.com/v1beta1", cron_tab("one"));
    tab["metadata"]["namespace"] = "a".into();
    let version = simulator.create(&tab).unwrap().resource_version();
    let tabs = simulator.objects(beta, "CronTab").unwrap();
    let read = tabs.get("a/one").unwrap();
    assert_eq!(read.value()["apiVersion"], beta);
    assert_eq!(read.resource_version(), version);
    tabs.modify("a/one", |tab| tab["spec"]["replicas"] = 5.into()).unwrap();
    let stored = simulator.objects("stable.example.com/v1", "CronTab").unwrap().get("a/one").unwrap();
    assert_eq!(stored.value()["apiVersion"], "stable.example.com/v1");
    assert_eq!(stored.value()["spec"]["replicas"], 5);
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
async fn eviction_checks_the_resource_version_of_the_pod() {
    let simulator = simulator().await;
    let version = simulator.create(&pod("one", "n1", "web")).unwrap().resource_version().to_string();
    let path = "/api/v1/namespaces/default/pods/one";
    for (version, code) in [("1", StatusCode::CONFLICT), (&version, StatusCode::CREATED)] {
        let options = json!({ "preconditions": { "resourceVersion": version } });
        let eviction = json!({ "metadata": { "name": "one" }, "deleteOptions": options });
        assert_eq!(call(&simulator, Method::POST, &format!("{path}/eviction"), &eviction).await.0, code);
    }
    assert_eq!(get(&simulator, path).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn modify_that_sets_another_uid_or_version_is_a_conflict() {
    let simulator = simulator().await;
    simulator.create(&config_map("a", "one")).unwrap();
    let maps = simulator.objects_of::<ConfigMap>().unwrap();
    for field in ["uid", "resourceVersion"] {
        let mut runs = 0;
        let outcome = maps.modify("a/one", |map| {
            runs += 1;
            assert_eq!(runs, 1, "another attempt cannot succeed");
            map["metadata"][field] = "1".into();
        });
        assert!(matches!(outcome, Err(Error::Refused(refusal)) if refusal.is_conflict()));
    }
}

#[tokio::test]
async fn generated_name_in_use_is_replaced_by_another() {
    let builder = || Simulator::builder().built_in_kinds().seed(7);
    let generated = json!({ "metadata": { "generateName": "map-" } });
    // Equal seeds give equal names, so the second simulator first generates the name that is in use.
    let first = builder().start_in_process();
    first.create(&config_map("a", "other")).unwrap();
    let (_, created) = call(&first, Method::POST, MAPS, &generated).await;
    let name = created["metadata"]["name"].as_str().unwrap();
    let second = builder().start_in_process();
    second.create(&config_map("a", name)).unwrap();
    let (code, created) = call(&second, Method::POST, MAPS, &generated).await;
    assert_eq!(code, StatusCode::CREATED, "{created}");
    assert_ne!(created["metadata"]["name"], name);
}

#[tokio::test]
async fn error_in_yaml_does_not_contain_the_source() {
    let simulator = simulator().await;
    let path = "/api/v1/namespaces/a/secrets";
    for (data, yaml) in [
        ("hunter2", "kind: Secret\nstringData:\n  key: hunter2\n  key: hunter2\n"),
        ("12345e678", "kind: Secret\nstringData:\n  key: 12345e678\n"),
    ] {
        for (method, path, media_type) in [
            (Method::POST, path.to_owned(), "application/yaml"),
            (Method::PATCH, format!("{path}/one?fieldManager=one"), "application/apply-patch+yaml"),
        ] {
            let request = Request::builder().method(method).uri(path).header("content-type", media_type);
            let response = send(&simulator, request.body(Full::new(Bytes::from(yaml))).unwrap()).await;
            assert_eq!(response.status(), StatusCode::BAD_REQUEST);
            let refusal = body_of(response).await.to_string();
            assert!(!refusal.contains(data) && refusal.contains("line "), "{refusal}");
        }
    }
}
