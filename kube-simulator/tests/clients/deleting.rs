//! `kubectl delete` with each `--cascade` mode. These tests run on the simulator only, because the
//! real server for this test program has no controllers.

use serde_json::json;

use crate::kubectl::{Kubectl, simulator};

/// Creates two config maps. The first owns the second.
async fn family(kubectl: &Kubectl) {
    kubectl.line("create -f family.yaml").await.expect_success();
    let uid = kubectl.line("get configmap parent -o jsonpath={.metadata.uid}").await.expect_success();
    let owner = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": "parent", "uid": uid, "blockOwnerDeletion": true,
    });
    let child = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": "child", "ownerReferences": [owner] },
    });
    let file = tempfile::NamedTempFile::with_suffix(".json").expect("a file");
    std::fs::write(file.path(), child.to_string()).expect("a writable file");
    kubectl.run(&["create", "-f", &file.path().to_string_lossy()]).await.expect_success();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs kubectl: cargo xtask e2e"]
async fn kubectl_deletes_with_each_cascade() {
    let simulator = simulator().await;
    for (cascade, left) in [("background", ""), ("foreground", ""), ("orphan", "configmap/child")] {
        let kubectl = Kubectl::of(&simulator, cascade).await;
        family(&kubectl).await;
        // `kubectl` waits until the object is gone.
        let deleted =
            kubectl.line(&format!("delete configmap parent --cascade={cascade}")).await.expect_success();
        assert_eq!(deleted, format!("configmap \"parent\" deleted from {cascade} namespace"));
        assert_eq!(kubectl.line("get configmap -o name").await.expect_success(), left, "{cascade}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs kubectl: cargo xtask e2e"]
async fn kubectl_deletes_a_namespace_and_waits_for_its_end() {
    let simulator = simulator().await;
    let kubectl = Kubectl::of(&simulator, "ending").await;
    kubectl.line("create -f objects.yaml").await.expect_success();
    let deleted = kubectl.line("delete namespace ending").await.expect_success();
    assert!(deleted.starts_with("namespace \"ending\" deleted"), "{deleted}");
    assert!(!kubectl.line("get namespace ending").await.success);
    let left = kubectl.line("get secret,service,lease -o name").await.expect_success();
    assert_eq!(left, "");
}
