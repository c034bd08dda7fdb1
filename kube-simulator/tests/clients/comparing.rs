//! The same session of `kubectl` on the simulator and on a real server. Output and exit status must be
//! equal.
//!
//! The commands are chosen so that the controllers of a real cluster do not affect their results.

use crate::kubectl::{Kubectl, simulator};

/// The arguments of each `kubectl` command of the session, in order.
const SESSION: &str = "
    apply -f deployment.yaml
    get deployment web -o jsonpath={.spec.template.spec.containers[*].image}
    apply -f deployment.yaml
    apply -f deployment-newer.yaml
    get deployment web -o jsonpath={.spec.template.spec.containers[*].image}|{.metadata.generation}
    get deployment web -o jsonpath={.spec.template.spec.containers[0].env}
    set image deployment/web side=example/side:9
    get deployment web -o jsonpath={.spec.template.spec.containers[*].image}|{.metadata.generation}
    apply --server-side -f deployment-newer.yaml
    apply --server-side --force-conflicts -f deployment-newer.yaml
    apply --server-side --field-manager=somebody -f deployment.yaml
    get deployment web -o jsonpath={.spec.template.spec.containers[*].image}
    scale deployment/web --replicas=0
    scale deployment/web --current-replicas=7 --replicas=1
    label deployment web tier=front
    label deployment web tier=back
    label deployment web tier=back --overwrite
    annotate deployment web note=short
    patch deployment web -p {\"spec\":{\"minReadySeconds\":5}}
    patch deployment web --type=merge -p {\"metadata\":{\"labels\":{\"tier\":null}}}
    patch deployment web --type=json -p [{\"op\":\"add\",\"path\":\"/metadata/labels/z\",\"value\":\"1\"}]
    patch deployment web --type=json -p [{\"op\":\"test\",\"path\":\"/metadata/labels/z\",\"value\":\"2\"}]
    get deployment web -o jsonpath={.metadata.labels}|{.spec.minReadySeconds}
    get deployment missing
    get nothing
    create -f objects.yaml
    create -f objects.yaml
    apply -f objects.yaml
    create -f list.yaml
    apply -f list.yaml
    get configmap,secret listed -o name
    get secret password
    get secret password -o jsonpath={.data}
    get configmap settings -o jsonpath={.data}
    get configmap settings missing
    get service front
    get lease leader
    get configmap -l nothing=here
    get configmap --field-selector metadata.name=settings -o name
    delete configmap settings --dry-run=server
    get configmap settings -o name
    delete configmap settings
    delete configmap settings
    delete configmap settings --ignore-not-found
    create configmap typed --from-literal=a=b
    get configmap typed -o jsonpath={.data}
    create secret generic typed --from-literal=a=b
    get secret typed -o jsonpath={.data}|{.type}
    create deployment typed --image=example/main:1 --replicas=0
    get deployment typed -o jsonpath={.spec.template.spec.containers[0].image}|{.spec.replicas}
    create role typed --verb=get,list --resource=pods
    get role typed -o jsonpath={.rules}
    create job typed --image=example/main:1 --dry-run=server -o name
    create serviceaccount typed
    run web --image=example --dry-run=server -o name
    create -f definition.yaml
    wait --for=condition=Established crd/crontabs.clients.example.com --timeout=20s
    get crd crontabs.clients.example.com
    api-resources --api-group=clients.example.com
    apply -f crontab.yaml
    apply -f crontab-wrong.yaml
    apply -f crontab-unknown.yaml
    apply -f crontab-unknown.yaml --validate=warn
    get ct
    get ct one -o jsonpath={.spec}
    get crontabs.v1beta1.clients.example.com one -o jsonpath={.apiVersion}{.spec}
    scale ct/one --replicas=3
    get ct one -o jsonpath={.spec.replicas}|{.metadata.generation}
    patch ct one -p {\"spec\":{\"image\":\"x\"}}
    patch ct one --type=merge -p {\"spec\":{\"image\":\"x\"}}
    patch ct one --subresource=status --type=merge -p {\"status\":{\"replicas\":3}}
    get ct one -o jsonpath={.status}|{.metadata.generation}
    wait --for=jsonpath={.status.replicas}=3 ct/one --timeout=20s
    delete ct one
    delete -f definition.yaml
    get ct
    api-resources --api-group=clients.example.com
    auth can-i create deployments
    get --raw /apis/nothing.example.com
";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs kubectl and a kube-apiserver: cargo xtask e2e"]
async fn kubectl_output_equals_on_simulator_and_real_server() {
    let simulator = simulator().await;
    let simulated = Kubectl::of(&simulator, "kubectl-session").await;
    let real = Kubectl::real("kubectl-session").await;
    let mut differences = Vec::new();
    for line in SESSION.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (ours, theirs) = tokio::join!(simulated.line(line), real.line(line));
        if ours != theirs {
            differences
                .push(format!("$ kubectl {line}\n--- simulator\n{}\n--- real\n{}", ours.text, theirs.text));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs kubectl: cargo xtask e2e"]
async fn kubectl_prints_yaml_json_and_wide_tables() {
    let simulator = simulator().await;
    let kubectl = Kubectl::of(&simulator, "printing").await;
    kubectl.line("apply -f deployment.yaml").await.expect_success();
    let wide = kubectl.line("get deployment -o wide").await.expect_success();
    assert!(wide.contains("main,side example/main:1,example/side:1 app=web"), "{wide}");
    assert!(kubectl.line("get deployment web -o yaml").await.expect_success().contains("kind: Deployment"));
    let json = kubectl.line("get deployment,configmap -o json").await.expect_success();
    let list: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(list["items"][0]["kind"], "Deployment");
    let resources = kubectl.line("api-resources").await.expect_success();
    assert!(resources.contains("deployments deploy apps/v1 true Deployment"), "{resources}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs kubectl: cargo xtask e2e"]
async fn kubectl_explains_and_diffs_custom_resources() {
    let simulator = simulator().await;
    let kubectl = Kubectl::of(&simulator, "explaining").await;
    kubectl.line("create -f definition.yaml").await.expect_success();
    let explained = kubectl.line("explain crontab.spec.schedule").await.expect_success();
    assert!(explained.contains("FIELD: schedule <string>"), "{explained}");
    let explained =
        kubectl.line("explain deployment.spec.template.spec.containers.image").await.expect_success();
    assert!(explained.contains("FIELD: image <string>"), "{explained}");
    kubectl.line("apply -f deployment.yaml").await.expect_success();
    let difference = kubectl.line("diff -f deployment-newer.yaml").await;
    assert!(!difference.success, "kubectl must report a difference with its exit code");
    assert!(difference.text.contains("+ image: example/main:2"), "{}", difference.text);
    assert!(!difference.text.contains("- image: example/side:1\n+"), "{}", difference.text);
}
