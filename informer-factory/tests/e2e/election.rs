//! Leader election on a real server's leases.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use informer_controller::{ElectionProblem, LeaderElectionConfig, LeaderElector, LeadershipEnd};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::cluster::{Cluster, KUBECONFIG, config};
use super::{eventually, within};

/// A candidate that can be killed or shut down, and that reports when it starts to lead.
struct Candidate {
    running: JoinHandle<LeadershipEnd<()>>,
    shutdown: CancellationToken,
    begins: mpsc::UnboundedReceiver<()>,
}

fn candidate(cluster: &Cluster, name: &str) -> Candidate {
    let timing = LeaderElectionConfig::new(&cluster.namespace, "till").identity(name);
    let timing = timing.lease_duration(Duration::from_secs(8)).renew_deadline(Duration::from_secs(6));
    let timing = timing.retry_period(Duration::from_secs(1));
    let mut elector = LeaderElector::new(cluster.client.clone(), timing).expect("the configuration is valid");
    let (shutdown, (sender, begins)) = (CancellationToken::new(), mpsc::unbounded_channel());
    let token = shutdown.clone();
    let running = tokio::spawn(async move {
        let work = |stop: CancellationToken| async move {
            sender.send(()).expect("the receiver is open");
            stop.cancelled().await;
        };
        elector.run(token, work).await
    });
    Candidate { running, shutdown, begins }
}

async fn lease(cluster: &Cluster) -> (String, i32) {
    let lease = cluster
        .api::<Lease>()
        .get("till")
        .await
        .expect("the lease exists")
        .spec
        .expect("the lease has a spec");
    (lease.holder_identity.unwrap_or_default(), lease.lease_transitions.unwrap_or_default())
}

#[tokio::test]
#[ignore = "needs a real API server: `cargo xtask e2e`"]
async fn killed_leader_is_replaced_after_its_lease() {
    let cluster = Cluster::connect("election").await;
    let mut first = candidate(&cluster, "first");
    within(first.begins.recv()).await.expect("the candidate leads");
    assert_eq!(lease(&cluster).await, ("first".to_owned(), 0));
    let mut second = candidate(&cluster, "second");

    first.running.abort();
    assert!(first.running.await.expect_err("the task was aborted").is_cancelled());
    within(second.begins.recv()).await.expect("the candidate takes over");
    assert_eq!(lease(&cluster).await, ("second".to_owned(), 1));

    second.shutdown.cancel();
    assert_eq!(within(second.running).await.expect("no panic"), LeadershipEnd::Finished(()));
    assert_eq!(lease(&cluster).await, (String::new(), 1));
    let mut third = candidate(&cluster, "third");
    within(third.begins.recv()).await.expect("the candidate leads");
    assert_eq!(lease(&cluster).await, ("third".to_owned(), 2));
    third.shutdown.cancel();
    within(third.running).await.expect("no panic");
}

/// Waits for sixteen renewals of the lease, one per second. A lease lasts eight seconds, so a
/// candidate that did not see the renewals would take over during this wait.
async fn outlast(cluster: &Cluster) {
    let (leases, mut seen) = (cluster.api::<Lease>(), Vec::new());
    eventually(async || {
        let renewed = leases
            .get("till")
            .await
            .expect("the lease exists")
            .spec
            .expect("the lease has a spec")
            .renew_time;
        if seen.last() != Some(&renewed) {
            seen.push(renewed);
        }
        (seen.len() > 16).then_some(())
    })
    .await;
}

/// A process that is a candidate with client-go. It is killed when this value is dropped.
struct ClientGo {
    child: Child,
    begins: mpsc::UnboundedReceiver<()>,
}

impl ClientGo {
    fn start(cluster: &Cluster, name: &str) -> Self {
        let variable = |name| {
            std::env::var(name).unwrap_or_else(|_| panic!("{name} must be set: run `cargo xtask e2e`"))
        };
        let mut command = Command::new(variable("INFORMER_E2E_CLIENT_GO_ELECT"));
        command.args([&variable(KUBECONFIG), &cluster.namespace, "till", name]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the program was built");
        let output = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let (sender, begins) = mpsc::unbounded_channel();
        // The thread ends with the child process.
        std::thread::spawn(move || {
            let lines = output.lines().map_while(Result::ok);
            lines.filter(|line| line == "leading").for_each(|_| _ = sender.send(()));
        });
        Self { child, begins }
    }
}

impl Drop for ClientGo {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

#[tokio::test]
#[ignore = "needs a real API server: `cargo xtask e2e`"]
async fn client_go_candidate_and_ours_contend_for_one_lease() {
    let cluster = Cluster::connect("election").await;
    let mut theirs = ClientGo::start(&cluster, "go");
    within(theirs.begins.recv()).await.expect("the candidate leads");
    let mut ours = candidate(&cluster, "rust");
    outlast(&cluster).await;
    assert!(ours.begins.try_recv().is_err(), "the leader renews its lease");
    drop(theirs);
    within(ours.begins.recv()).await.expect("the candidate takes over");
    assert_eq!(lease(&cluster).await, ("rust".to_owned(), 1));

    let mut theirs = ClientGo::start(&cluster, "go again");
    outlast(&cluster).await;
    assert!(theirs.begins.try_recv().is_err(), "the leader renews its lease");
    ours.shutdown.cancel();
    assert_eq!(within(ours.running).await.expect("no panic"), LeadershipEnd::Finished(()));
    within(theirs.begins.recv()).await.expect("the candidate leads");
    assert_eq!(lease(&cluster).await, ("go again".to_owned(), 2));
}

#[tokio::test]
#[ignore = "needs a real API server: `cargo xtask e2e`"]
async fn candidate_without_permissions_names_the_verbs_to_grant() {
    let cluster = Cluster::connect("election").await;
    let client = Client::try_from(config("nobody").await).expect("the configuration is valid");
    let election = LeaderElectionConfig::new(&cluster.namespace, "till");
    let mut elector = LeaderElector::new(client, election).expect("the configuration is valid");
    let mut status = elector.status();
    tokio::select! {
        end = elector.run(CancellationToken::new(), |_| async {}) => panic!("{end:?}"),
        changed = within(status.changed()) => assert!(changed),
    }
    let problem = status.problem();
    assert!(matches!(problem, Some(ElectionProblem::Forbidden(_))), "{problem:?}");
}
