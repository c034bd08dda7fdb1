//! Leader election on a real server's leases.

use std::time::Duration;

use informer_factory::{ElectionProblem, LeaderElectionConfig, LeaderElector, LeadershipEnd};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::cluster::{Cluster, config};
use super::within;

/// A candidate that can be killed, or stopped in good order, and says when it leads.
struct Candidate {
    running: JoinHandle<LeadershipEnd<()>>,
    shutdown: CancellationToken,
    begins: mpsc::UnboundedReceiver<()>,
}

fn candidate(cluster: &Cluster, name: &str) -> Candidate {
    let timing = LeaderElectionConfig::new(&cluster.namespace, "till").identity(name);
    let timing = timing.lease_duration(Duration::from_secs(4)).renew_deadline(Duration::from_secs(3));
    let timing = timing.retry_period(Duration::from_secs(1));
    let mut elector = LeaderElector::new(cluster.client.clone(), timing).expect("a good config");
    let (shutdown, (tell, begins)) = (CancellationToken::new(), mpsc::unbounded_channel());
    let token = shutdown.clone();
    let running = tokio::spawn(async move {
        let work = |stop: CancellationToken| async move {
            tell.send(()).expect("the test listens");
            stop.cancelled().await;
        };
        elector.run(token, work).await
    });
    Candidate { running, shutdown, begins }
}

async fn lease(cluster: &Cluster) -> (String, i32) {
    let lease = cluster.api::<Lease>().get("till").await.expect("there is one").spec.expect("a spec");
    (lease.holder_identity.unwrap_or_default(), lease.lease_transitions.unwrap_or_default())
}

#[tokio::test]
#[ignore = "needs a real API server: `cargo xtask e2e`"]
async fn a_killed_leader_is_followed_after_its_lease_and_one_that_stops_at_once() {
    let cluster = Cluster::connect("election").await;
    let mut first = candidate(&cluster, "first");
    within(first.begins.recv()).await.expect("it leads");
    assert_eq!(lease(&cluster).await, ("first".to_owned(), 0));
    let mut second = candidate(&cluster, "second");

    first.running.abort();
    assert!(first.running.await.expect_err("it was killed").is_cancelled());
    within(second.begins.recv()).await.expect("it takes over");
    assert_eq!(lease(&cluster).await, ("second".to_owned(), 1));

    second.shutdown.cancel();
    assert_eq!(within(second.running).await.expect("no panic"), LeadershipEnd::Finished(()));
    assert_eq!(lease(&cluster).await, (String::new(), 1));
    let mut third = candidate(&cluster, "third");
    within(third.begins.recv()).await.expect("it leads");
    assert_eq!(lease(&cluster).await, ("third".to_owned(), 2));
    third.shutdown.cancel();
    within(third.running).await.expect("no panic");
}

#[tokio::test]
#[ignore = "needs a real API server: `cargo xtask e2e`"]
async fn a_candidate_without_rights_says_what_to_grant() {
    let cluster = Cluster::connect("election").await;
    let client = Client::try_from(config("nobody").await).expect("a well-formed config");
    let election = LeaderElectionConfig::new(&cluster.namespace, "till");
    let mut elector = LeaderElector::new(client, election).expect("a good config");
    let mut status = elector.status();
    tokio::select! {
        end = elector.run(CancellationToken::new(), |_| async {}) => panic!("{end:?}"),
        told = within(status.changed()) => assert!(told),
    }
    let problem = status.problem();
    assert!(matches!(problem, Some(ElectionProblem::Forbidden(_))), "{problem:?}");
}
