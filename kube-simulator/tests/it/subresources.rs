//! Scale, binding and eviction; and leases, which are plain objects with several writers.

use http::{Method, StatusCode};
use kube_simulator::{ResponseBody, Simulator};
use serde_json::{Value, json};

use crate::definitions::{cron_tab, cron_tabs, define};
use crate::support::{body_of, call, get, patch, pod, request, send, simulator};

#[tokio::test]
async fn scale_shows_and_sets_the_replicas_of_any_kind() {
    let simulator = simulator().await;
    define(&simulator, &cron_tabs()).await;
    let deployments = "/apis/apps/v1/namespaces/a/deployments";
    let deployment = json!({
        "metadata": { "name": "one" },
        "spec": { "selector": { "matchLabels": { "app": "web" } } },
    });
    call(&simulator, Method::POST, deployments, &deployment).await;
    let tabs = "/apis/stable.example.com/v1/namespaces/a/crontabs";
    call(&simulator, Method::POST, tabs, &cron_tab("one")).await;
    for (path, replicas, selector) in [(deployments, 1, json!("app=web")), (tabs, 2, Value::Null)] {
        let (_, scale) = get(&simulator, &format!("{path}/one/scale")).await;
        assert_eq!((&scale["kind"], &scale["apiVersion"]), (&json!("Scale"), &json!("autoscaling/v1")));
        assert_eq!((&scale["spec"]["replicas"], &scale["status"]["selector"]), (&json!(replicas), &selector));

        let mut wanted = scale.clone();
        wanted["spec"]["replicas"] = 5.into();
        let (code, set) = call(&simulator, Method::PUT, &format!("{path}/one/scale"), &wanted).await;
        assert_eq!((code, &set["spec"]["replicas"]), (StatusCode::OK, &json!(5)));
        let (_, object) = get(&simulator, &format!("{path}/one")).await;
        assert_eq!((&object["spec"]["replicas"], &object["metadata"]["generation"]), (&json!(5), &json!(2)));
        let (code, _) = call(&simulator, Method::PUT, &format!("{path}/one/scale"), &wanted).await;
        assert_eq!(code, StatusCode::CONFLICT, "it was made from an older version");

        let six = json!({ "spec": { "replicas": 6 } });
        let (_, set) = patch(&simulator, &format!("{path}/one/scale"), "merge-patch", &six).await;
        assert_eq!(set["spec"]["replicas"], 6);
    }
}

#[tokio::test]
async fn a_pod_is_bound_once() {
    let simulator = simulator().await;
    let pods = "/api/v1/namespaces/default/pods";
    call(
        &simulator,
        Method::POST,
        pods,
        &json!({ "metadata": { "name": "web" }, "spec": { "containers": [] } }),
    )
    .await;
    let binding = json!({ "metadata": { "name": "web" }, "target": { "kind": "Node", "name": "n1" } });
    let (code, answer) = call(&simulator, Method::POST, &format!("{pods}/web/binding"), &binding).await;
    assert_eq!((code, &answer["kind"]), (StatusCode::CREATED, &json!("Status")));
    let (_, bound) = get(&simulator, &format!("{pods}/web")).await;
    assert_eq!(bound["spec"]["nodeName"], "n1");
    assert_eq!(bound["status"]["conditions"][0]["type"], "PodScheduled");
    let (code, _) = call(&simulator, Method::POST, &format!("{pods}/web/binding"), &binding).await;
    assert_eq!(code, StatusCode::CONFLICT);
}

/// Stores a budget for `app=web` with `allowed` disruptions. Its controller has observed generation `observed`.
fn budget(simulator: &Simulator, allowed: i64, observed: i64) {
    let budget = json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": { "namespace": "default", "name": "web", "generation": 1 },
        "spec": { "selector": { "matchLabels": { "app": "web" } } },
        "status": { "disruptionsAllowed": allowed, "observedGeneration": observed },
    });
    simulator.apply(&budget).unwrap();
}

async fn evict(simulator: &Simulator, name: &str) -> http::Response<ResponseBody> {
    let path = format!("/api/v1/namespaces/default/pods/{name}/eviction");
    let eviction = json!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": name } });
    send(simulator, request(Method::POST, &path, &eviction)).await
}

#[tokio::test]
async fn an_eviction_is_a_delete_that_a_budget_allows_once() {
    let simulator = simulator().await;
    for name in ["one", "two"] {
        simulator.create(&pod(name, "n1", "web")).unwrap();
    }
    budget(&simulator, 0, 1);
    let refused = evict(&simulator, "one").await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(body_of(refused).await["details"]["causes"][0]["reason"], "DisruptionBudget");
    budget(&simulator, 1, 1);
    let answer = evict(&simulator, "one").await;
    assert_eq!(answer.status(), StatusCode::CREATED);
    assert_eq!(body_of(answer).await["status"], "Success");
    assert_eq!(get(&simulator, "/api/v1/namespaces/default/pods/one").await.0, StatusCode::NOT_FOUND);
    let (_, spent) = get(&simulator, "/apis/policy/v1/namespaces/default/poddisruptionbudgets/web").await;
    assert_eq!(spent["status"]["disruptionsAllowed"], 0);
    assert!(spent["status"]["disruptedPods"]["one"].is_string(), "{spent}");
    assert_eq!(evict(&simulator, "two").await.status(), StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn unobserved_budget_makes_clients_wait() {
    let simulator = simulator().await;
    simulator.create(&pod("one", "n1", "web")).unwrap();
    budget(&simulator, 1, 0);
    let refused = evict(&simulator, "one").await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.headers()["retry-after"], "10");
    let why = body_of(refused).await["details"]["causes"][0]["message"].clone();
    assert_eq!(why, "The disruption budget web is still being processed by the server.");
}

#[tokio::test]
async fn eviction_preconditions_are_checked() {
    let simulator = simulator().await;
    simulator.create(&pod("one", "n1", "web")).unwrap();
    let path = "/api/v1/namespaces/default/pods/one";
    let (_, stored) = get(&simulator, path).await;
    for (version, code) in [
        (json!("1"), StatusCode::CONFLICT),
        (stored["metadata"]["resourceVersion"].clone(), StatusCode::CREATED),
    ] {
        let options = json!({ "preconditions": { "resourceVersion": version } });
        let eviction = json!({ "metadata": { "name": "one" }, "deleteOptions": options });
        assert_eq!(call(&simulator, Method::POST, &format!("{path}/eviction"), &eviction).await.0, code);
    }
    assert_eq!(get(&simulator, path).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn one_of_two_candidates_gets_a_lease() {
    let simulator = simulator().await;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/a/leases";
    let lease = json!({ "metadata": { "name": "leader" }, "spec": { "holderIdentity": "" } });
    let (_, free) = call(&simulator, Method::POST, leases, &lease).await;
    let mut codes = Vec::new();
    for candidate in ["one", "two"] {
        let mut taken = free.clone();
        taken["spec"]["holderIdentity"] = candidate.into();
        codes.push(call(&simulator, Method::PUT, &format!("{leases}/leader"), &taken).await.0);
    }
    assert_eq!(codes, [StatusCode::OK, StatusCode::CONFLICT]);
    assert_eq!(get(&simulator, &format!("{leases}/leader")).await.1["spec"]["holderIdentity"], "one");
}

#[tokio::test]
async fn string_data_of_a_secret_becomes_its_data() {
    let simulator = simulator().await;
    let secret = json!({ "metadata": { "name": "s" }, "stringData": { "a": "b" } });
    let (_, created) = call(&simulator, Method::POST, "/api/v1/namespaces/a/secrets", &secret).await;
    assert_eq!((&created["data"]["a"], &created["type"]), (&json!("Yg=="), &json!("Opaque")));
    assert!(created.get("stringData").is_none());
}
