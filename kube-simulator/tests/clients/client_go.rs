//! A shared informer of client-go. It requests protobuf, JSON or CBOR, uses streaming lists, and
//! recovers from lost history. A second program compares the objects that Go decodes from each
//! encoding; they must be equal.

use std::process::Stdio;
use std::time::Duration;

use http::Version;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube_simulator::{CannedResponse, ClusterSpec, RequestFilter, Simulator, StreamingLists, Verb};
use serde_json::Value;
use tempfile::NamedTempFile;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// The environment variable with the path of the program that runs an informer of client-go,
/// `xtask/controlplane/clientgo-follow`.
const FOLLOW: &str = "INFORMER_E2E_CLIENT_GO";

/// The environment variable with the path of the program that compares encodings,
/// `xtask/controlplane/clientgo-forms`.
const FORMS: &str = "INFORMER_E2E_CLIENT_GO_FORMS";

/// The encodings that the Go programs request. Each run accepts exactly one of them, without a
/// fallback. Components of Kubernetes request protobuf, most other programs request JSON, and
/// programs with client-go's feature gate for CBOR request CBOR.
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const JSON: &str = "application/json";
const CBOR: &str = "application/cbor";

const PODS: &str = "/api/v1/pods";

/// A running informer of client-go.
struct InformerProgram {
    process: Child,
    states: Lines<BufReader<ChildStdout>>,
    _kubeconfig: NamedTempFile,
}

impl InformerProgram {
    fn start(simulator: &Simulator, accept: &str) -> Self {
        let kubeconfig = NamedTempFile::new().expect("a temporary file");
        std::fs::write(&kubeconfig, simulator.kubeconfig()).expect("a file");
        let mut process = Command::new(program(FOLLOW))
            .arg(kubeconfig.path())
            .arg(accept)
            // client-go has its own feature gate for CBOR.
            .env("KUBE_FEATURE_ClientsAllowCBOR", "true")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the program starts");
        let states = BufReader::new(process.stdout.take().expect("piped")).lines();
        Self { process, states, _kubeconfig: kubeconfig }
    }

    /// Waits until the handler's copy of the objects equals the simulator's content. After each
    /// event, the program prints the keys and resource versions of this copy in key order.
    async fn wait_until_equal(&mut self, simulator: &Simulator) {
        let wanted = state(simulator);
        let reached = async {
            while let Some(line) = self.states.next_line().await.expect("readable output") {
                if line == wanted {
                    return;
                }
            }
            panic!("the informer program has ended");
        };
        tokio::time::timeout(Duration::from_secs(60), reached)
            .await
            .expect("the replica must equal the server in time");
    }

    async fn stop(mut self) {
        self.process.kill().await.expect("the program can be killed");
    }
}

fn program(variable: &str) -> String {
    std::env::var(variable)
        .unwrap_or_else(|_| panic!("{variable} must name a program: run `cargo xtask e2e`"))
}

fn state(simulator: &Simulator) -> String {
    let pods = simulator.list_all::<Pod>().expect("pods");
    let listed: Vec<String> = pods
        .iter()
        .map(|pod| {
            let namespace = pod.namespace().unwrap_or_default();
            format!("{namespace}/{}@{}", pod.name_any(), pod.resource_version().unwrap_or_default())
        })
        .collect();
    listed.join(" ")
}

fn pod(name: &str) -> serde_json::Value {
    serde_json::json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "namespace": "default", "name": name },
        "spec": { "containers": [{ "name": "main", "image": "example" }] },
    })
}

async fn check_recovery(simulator: Simulator, accept: &str, starts_with: Verb) {
    for name in ["one", "two", "three"] {
        simulator.create(&pod(name)).expect("a new pod");
    }
    let mut follower = InformerProgram::start(&simulator, accept);
    follower.wait_until_equal(&simulator).await;
    let request = &simulator.requests(&RequestFilter::any().path(PODS))[0];
    assert_eq!(request.headers["accept"], accept);
    assert!(simulator.request_count(&RequestFilter::verb(starts_with).path(PODS)) > 0);

    // Change objects, and end the watch.
    simulator.delete::<Pod>("default/one").expect("the object exists");
    simulator.apply(&pod("four")).expect("a pod");
    follower.wait_until_equal(&simulator).await;
    simulator.close_watches();
    simulator.apply(&pod("five")).expect("a pod");
    follower.wait_until_equal(&simulator).await;

    // The history is lost while no watch is open, so the informer must relist.
    let watching = RequestFilter::verb(Verb::Watch).path(PODS);
    let lists = simulator.request_count(&RequestFilter::any().path(PODS));
    simulator.fail_next(1, watching, CannedResponse::too_many_requests(1));
    simulator.close_watches();
    simulator.delete::<Pod>("default/two").expect("the object exists");
    simulator.apply(&pod("six")).expect("a pod");
    simulator.compact();
    follower.wait_until_equal(&simulator).await;
    assert!(simulator.request_count(&RequestFilter::any().path(PODS)) > lists + 1);
    follower.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs client-go: cargo xtask e2e"]
async fn client_go_streams_lists_despite_closed_watches() {
    for accept in [PROTOBUF, JSON, CBOR] {
        let builder = Simulator::builder().built_in_kinds().serve_cbor();
        check_recovery(builder.start().await.expect("a loopback port"), accept, Verb::Watch).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs client-go: cargo xtask e2e"]
async fn client_go_pages_lists_without_streaming_lists() {
    for accept in [PROTOBUF, JSON, CBOR] {
        let builder = Simulator::builder().built_in_kinds().streaming_lists(StreamingLists::Refused);
        let simulator = builder.serve_cbor().start().await.expect("a loopback port");
        check_recovery(simulator, accept, Verb::List).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs client-go: cargo xtask e2e"]
async fn client_go_over_http_2_reconnects_after_goaway() {
    let builder = Simulator::builder().built_in_kinds().tls().goaway_chance(0.5);
    let simulator = builder.start().await.expect("a loopback port");
    let mut follower = InformerProgram::start(&simulator, PROTOBUF);
    for n in 0..20 {
        simulator.create(&pod(&format!("pod-{n:02}"))).expect("a new pod");
        follower.wait_until_equal(&simulator).await;
        simulator.drain_connections();
        // Only every seventh pass ends the watch, because client-go increases its backoff after
        // each short watch.
        if n % 7 == 6 {
            simulator.close_watches();
        }
    }
    let requests = simulator.requests(&RequestFilter::any().path(PODS));
    assert!(requests.iter().all(|request| request.version == Version::HTTP_2));
    assert!(requests.len() > 2, "a new watch must follow each watch that ends");
    follower.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs client-go: cargo xtask e2e"]
async fn client_go_decodes_equal_objects_from_every_encoding() {
    let builder = Simulator::builder().built_in_kinds().serve_cbor();
    let simulator = builder.start().await.expect("a loopback port");
    simulator.populate(&ClusterSpec { nodes: 3, pods: 30, ..ClusterSpec::default() }).expect("a cluster");
    let objects: Vec<Value> =
        serde_json::from_str(include_str!("manifests/every-type-of-field.json")).expect("a list of objects");
    for object in &objects {
        simulator.create(object).expect("a new object");
    }
    let output = Command::new(program(FORMS)).arg(simulator.url()).output().await.expect("the program runs");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stdout}{stderr}");
    let number: usize = stdout.split(' ').next().and_then(|word| word.parse().ok()).expect("a number");
    assert!(number > objects.len(), "{stdout}");
}
