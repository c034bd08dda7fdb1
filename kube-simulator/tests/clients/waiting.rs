//! `kubectl wait` and `kubectl rollout status`. No controller runs: the test writes the status.

use kube_simulator::Simulator;
use serde_json::json;

use crate::kubectl::{Kubectl, simulator};

fn set_status(simulator: &Simulator, key: &str, status: &serde_json::Value) {
    let deployments = simulator.objects("apps/v1", "Deployment").expect("a built-in kind");
    deployments.modify(key, |deployment| deployment["status"] = status.clone()).expect("the object exists");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs kubectl: cargo xtask e2e"]
async fn kubectl_waits_for_a_condition_a_value_and_a_deletion() {
    let simulator = simulator().await;
    let kubectl = Kubectl::of(&simulator, "waiting").await;
    kubectl.line("apply -f deployment.yaml").await.expect_success();
    let watches = simulator.open_watches(&kube_simulator::RequestFilter::any());
    let condition = kubectl.line("wait --for=condition=Available deployment/web --timeout=60s");
    let value = kubectl.line("wait --for=jsonpath={.status.replicas}=4 deployment/web --timeout=60s");
    let change = async {
        simulator.wait_for_watches(&kube_simulator::RequestFilter::any(), watches + 2).await;
        let status = json!({ "replicas": 4, "conditions": [{ "type": "Available", "status": "True" }] });
        set_status(&simulator, "waiting/web", &status);
    };
    let (condition, value, ()) = tokio::join!(condition, value, change);
    assert_eq!(condition.expect_success(), "deployment.apps/web condition met");
    assert_eq!(value.expect_success(), "deployment.apps/web condition met");

    // Wait until the earlier watches have ended, so that the next wait does not count them.
    simulator.wait_for_watches(&kube_simulator::RequestFilter::any(), watches).await;
    let end = kubectl.line("wait --for=delete deployment/web --timeout=60s");
    let delete = async {
        simulator.wait_for_watches(&kube_simulator::RequestFilter::any(), watches + 1).await;
        kubectl.line("delete deployment web --wait=false").await.expect_success();
    };
    assert_eq!(tokio::join!(end, delete).0.expect_success(), "deployment.apps/web condition met");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs kubectl: cargo xtask e2e"]
async fn kubectl_follows_a_rollout() {
    let simulator = simulator().await;
    let kubectl = Kubectl::of(&simulator, "rollout").await;
    kubectl.line("apply -f deployment.yaml").await.expect_success();
    kubectl.line("rollout resume deployment/web").await.expect_success();
    kubectl.line("scale deployment/web --replicas=2").await.expect_success();
    let follow = kubectl.line("rollout status deployment/web --timeout=60s");
    let roll = async {
        simulator.wait_for_watches(&kube_simulator::RequestFilter::any(), 1).await;
        let status =
            json!({ "observedGeneration": 3, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2 });
        set_status(&simulator, "rollout/web", &status);
    };
    let followed = tokio::join!(follow, roll).0.expect_success();
    assert!(followed.ends_with("deployment \"web\" successfully rolled out"), "{followed}");
}
