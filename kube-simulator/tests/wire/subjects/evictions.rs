//! Evictions: deletes of pods within the limits of disruption budgets.
//!
//! The scenarios need the status that the disruption controller writes into a budget. If no controller
//! runs, the scenarios write the same status.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::objects::{pod, version};
use crate::scenario::{Scenario, scenario};
use crate::server::{MERGE, POLL_INTERVAL, Server};

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario(eviction_deletes_a_pod_and_records_the_reason),
        scenario(eviction_checks_its_preconditions),
        scenario(eviction_of_a_missing_pod_is_not_found),
        scenario(eviction_with_the_name_of_another_pod_is_refused),
        scenario(eviction_reduces_the_budget),
        scenario(spent_budget_refuses_evictions),
        scenario(budget_that_allows_no_disruption_refuses_evictions),
        scenario(dry_run_of_an_eviction_keeps_the_budget),
        scenario(pending_or_finished_pod_needs_no_budget),
        scenario(eviction_of_an_unready_pod_spends_no_budget),
        scenario(a_pod_with_two_budgets_is_not_evicted),
        scenario(a_budget_without_selector_covers_nothing),
        scenario(a_budget_with_an_empty_selector_covers_everything),
    ]
}

/// Creates running pods. Each entry of `pods` is a name, and whether the pod is ready.
async fn run(server: &Server, pods: &[(&str, bool)]) {
    for (name, ready) in pods {
        let mut pod = pod(name);
        pod["metadata"]["labels"] = json!({ "app": "web" });
        server.create(&server.core("pods"), &pod).await;
        let condition = json!({ "type": "Ready", "status": if *ready { "True" } else { "False" } });
        let status = json!({ "status": { "phase": "Running", "conditions": [condition] } });
        server.patch(&server.core(&format!("pods/{name}/status")), MERGE, &status).await.expect(200);
    }
}

fn budget(name: &str, selector: &Value, healthy: u64) -> Value {
    let spec = json!({ "minAvailable": healthy, "selector": selector });
    json!({ "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": name }, "spec": spec })
}

async fn create(server: &Server, name: &str, selector: &Value, healthy: u64) {
    server.create(&server.group("policy/v1", "poddisruptionbudgets"), &budget(name, selector, healthy)).await;
}

fn web() -> Value {
    json!({ "matchLabels": { "app": "web" } })
}

fn has_controllers(server: &Server) -> bool {
    server.is_real() && server.target.has_controllers()
}

/// Creates a budget that covers two pods and requires one healthy pod; `healthy` is the number of
/// healthy pods. If no controller runs, also writes the status that the disruption controller would
/// write.
async fn one_of_two(server: &Server, healthy: u64) -> Value {
    create(server, "b", &web(), 1).await;
    if has_controllers(server) {
        return wait_for_controller(server, healthy).await;
    }
    let allowed = healthy - 1;
    let condition = json!({
        "type": "DisruptionAllowed",
        "status": if allowed > 0 { "True" } else { "False" },
        "reason": if allowed > 0 { "SufficientPods" } else { "InsufficientPods" },
        "message": "",
        "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let status = json!({
        "observedGeneration": 1,
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": 1,
        "expectedPods": 2,
        "conditions": [condition],
    });
    let path = server.group("policy/v1", "poddisruptionbudgets/b/status");
    server.patch(&path, MERGE, &json!({ "status": status })).await.expect(200)
}

/// Waits until the controller has observed two pods, `healthy` of them healthy. A status that is
/// written earlier would be overwritten by the controller.
async fn wait_for_controller(server: &Server, healthy: u64) -> Value {
    let path = server.group("policy/v1", "poddisruptionbudgets/b");
    let mut ticks = tokio::time::interval(POLL_INTERVAL);
    loop {
        ticks.tick().await;
        let budget = server.get(&path).await.expect(200);
        let status = &budget["status"];
        if status["currentHealthy"] == healthy && status["expectedPods"] == 2 {
            return budget;
        }
    }
}

async fn evict_with(server: &Server, name: &str, options: &Value) -> Answer {
    let eviction = json!({
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": { "name": name },
        "deleteOptions": options,
    });
    server.post(&server.core(&format!("pods/{name}/eviction")), &eviction).await
}

async fn evict(server: &Server, name: &str) -> Answer {
    evict_with(server, name, &Value::Null).await
}

async fn exists(server: &Server, name: &str) -> bool {
    server.get(&server.core(&format!("pods/{name}"))).await.code == 200
}

/// Asserts that a budget forbids the eviction, with a reason that starts with `why`.
#[track_caller]
fn refused(answer: Answer, why: &str) {
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    let refusal = answer.refused(429, "TooManyRequests", message);
    let cause = &refusal.details()["causes"][0];
    assert_eq!(cause["reason"], "DisruptionBudget");
    let given = cause["message"].as_str().unwrap_or_default();
    assert!(given.starts_with(why), "{given}");
}

async fn eviction_deletes_a_pod_and_records_the_reason(server: Server) {
    run(&server, &[("a", true)]).await;
    let from = version(&server.get(&server.core("pods/a")).await.expect(200)).to_string();
    let answer = evict(&server, "a").await.expect(201);
    assert_eq!([&answer["kind"], &answer["status"]], ["Status", "Success"]);
    assert_eq!(answer["code"], 201);
    assert!(!exists(&server, "a").await);
    let mut watch = server.watch_path(&server.core("pods"), &[("resourceVersion", &from)]).await;
    let marked = watch.expect("MODIFIED").await;
    let conditions = marked["status"]["conditions"].as_array().expect("conditions");
    let target = conditions
        .iter()
        .find(|condition| condition["type"] == "DisruptionTarget")
        .expect("a DisruptionTarget condition");
    let condition = ["status", "reason", "message"].map(|field| target[field].as_str().unwrap_or_default());
    assert_eq!(condition, ["True", "EvictionByEvictionAPI", "Eviction API: evicting"]);
}

async fn eviction_checks_its_preconditions(server: Server) {
    server.create(&server.core("pods"), &pod("a")).await;
    let answer = evict_with(&server, "a", &json!({ "preconditions": { "uid": "another" } })).await;
    let message =
        "Operation cannot be fulfilled on Pod \"a\": the UID in the precondition (another) does not match";
    answer.refused_with(409, "Conflict", message);
}

async fn eviction_of_a_missing_pod_is_not_found(server: Server) {
    evict(&server, "a").await.refused(404, "NotFound", "pods \"a\" not found");
}

async fn eviction_with_the_name_of_another_pod_is_refused(server: Server) {
    run(&server, &[("a", true), ("b", true)]).await;
    for metadata in [json!({ "name": "b" }), json!({})] {
        let eviction = json!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata });
        let answer = server.post(&server.core("pods/a/eviction"), &eviction).await;
        answer.refused(400, "BadRequest", "name in URL does not match name in Eviction object");
    }
    assert!(exists(&server, "a").await && exists(&server, "b").await);
}

async fn eviction_reduces_the_budget(server: Server) {
    run(&server, &[("a", true), ("b", true)]).await;
    let from = version(&one_of_two(&server, 2).await).to_string();
    evict(&server, "a").await.expect(201);
    let path = server.group("policy/v1", "poddisruptionbudgets");
    let mut watch = server.watch_path(&path, &[("resourceVersion", &from)]).await;
    let status = loop {
        let budget = watch.expect("MODIFIED").await;
        if budget["status"]["disruptedPods"]["a"].is_string() {
            break budget["status"].clone();
        }
        // The controller has changed the status in the meantime.
        assert!(server.is_real(), "{budget}");
    };
    assert_eq!(status["disruptionsAllowed"], 0, "{status}");
    let condition = &status["conditions"][0];
    assert_eq!((&condition["status"], &condition["reason"]), (&json!("False"), &json!("InsufficientPods")));
}

async fn spent_budget_refuses_evictions(server: Server) {
    run(&server, &[("a", true), ("b", true)]).await;
    one_of_two(&server, 2).await;
    evict(&server, "a").await.expect(201);
    refused(evict(&server, "b").await, "The disruption budget b ");
    assert!(exists(&server, "b").await);
}

async fn budget_that_allows_no_disruption_refuses_evictions(server: Server) {
    run(&server, &[("a", true)]).await;
    create(&server, "b", &web(), 5).await;
    let answer = evict(&server, "a").await;
    if has_controllers(&server) {
        refused(answer, "The disruption budget b ");
    } else {
        assert_eq!(answer.header("retry-after"), "10");
        refused(answer, "The disruption budget b is still being processed by the server.");
    }
    assert!(exists(&server, "a").await);
}

async fn dry_run_of_an_eviction_keeps_the_budget(server: Server) {
    run(&server, &[("a", true), ("b", true)]).await;
    one_of_two(&server, 2).await;
    evict_with(&server, "a", &json!({ "dryRun": ["All"] })).await.expect(201);
    assert!(exists(&server, "a").await);
    evict(&server, "b").await.expect(201);
    assert!(!exists(&server, "b").await);
}

async fn pending_or_finished_pod_needs_no_budget(server: Server) {
    run(&server, &[("a", false), ("b", false), ("c", false)]).await;
    create(&server, "b", &web(), 5).await;
    for (name, phase) in [("a", "Pending"), ("b", "Succeeded"), ("c", "Failed")] {
        let status = json!({ "status": { "phase": phase } });
        server.patch(&server.core(&format!("pods/{name}/status")), MERGE, &status).await.expect(200);
        evict(&server, name).await.expect(201);
        assert!(!exists(&server, name).await, "{phase}");
    }
}

async fn eviction_of_an_unready_pod_spends_no_budget(server: Server) {
    run(&server, &[("a", true), ("b", false)]).await;
    one_of_two(&server, 1).await;
    refused(evict(&server, "a").await, "The disruption budget b needs 1 healthy pods and has 1 currently");
    evict(&server, "b").await.expect(201);
    assert!(exists(&server, "a").await && !exists(&server, "b").await);
}

async fn a_pod_with_two_budgets_is_not_evicted(server: Server) {
    run(&server, &[("a", true)]).await;
    for name in ["b", "c"] {
        create(&server, name, &web(), 0).await;
    }
    let answer = evict(&server, "a").await;
    let message =
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
    assert_eq!(
        (&answer.body["code"], &answer.body["message"]),
        (&json!(500), &json!(message)),
        "{}",
        answer.text()
    );
    assert_eq!(answer.code, 500);
    assert!(exists(&server, "a").await);
}

async fn a_budget_without_selector_covers_nothing(server: Server) {
    run(&server, &[("a", true)]).await;
    create(&server, "b", &Value::Null, 5).await;
    evict(&server, "a").await.expect(201);
}

async fn a_budget_with_an_empty_selector_covers_everything(server: Server) {
    run(&server, &[("a", true)]).await;
    create(&server, "b", &json!({}), 5).await;
    refused(evict(&server, "a").await, "The disruption budget b ");
}
