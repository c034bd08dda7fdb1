//! `kubectl get --watch`.

use tokio::io::{AsyncBufReadExt, BufReader};

use crate::kubectl::{Kubectl, normalize, simulator};

/// Returns the output of `kubectl get -w` while an object is created, changed and deleted.
async fn watched(kubectl: &Kubectl) -> Vec<String> {
    let mut watch = kubectl.start(&["get", "lease", "--watch", "--output-watch-events"]);
    let mut lines = BufReader::new(watch.stdout.take().expect("piped")).lines();
    kubectl.line("create -f objects.yaml").await.expect_success();
    let mut printed = Vec::new();
    for command in [
        None,
        Some("patch lease leader --type=merge -p {\"spec\":{\"holderIdentity\":\"two\"}}"),
        Some("delete lease leader"),
    ] {
        if let Some(command) = command {
            kubectl.line(command).await.expect_success();
        }
        // The first line is the header, printed with the first event.
        for _ in 0..if command.is_none() { 2 } else { 1 } {
            let line = tokio::time::timeout(std::time::Duration::from_secs(60), lines.next_line()).await;
            let line = line.expect("a line in time").expect("readable").expect("kubectl continues");
            printed.push(normalize(&line));
        }
    }
    watch.kill().await.expect("kubectl can be stopped");
    printed
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs kubectl and a kube-apiserver: cargo xtask e2e"]
async fn kubectl_watch_output_equals_on_simulator_and_real_server() {
    let simulator = simulator().await;
    let (simulated, real) =
        (Kubectl::of(&simulator, "kubectl-watch").await, Kubectl::real("kubectl-watch").await);
    let (ours, theirs) = tokio::join!(watched(&simulated), watched(&real));
    assert_eq!(ours, theirs);
    let expected = [
        "EVENT NAME HOLDER AGE",
        "ADDED leader one AGE",
        "MODIFIED leader two AGE",
        "DELETED leader two AGE",
    ];
    assert_eq!(ours, expected);
}
