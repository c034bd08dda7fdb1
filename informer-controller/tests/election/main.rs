//! Leader election against the API server simulator, on a paused clock.

mod failures;
mod leases;
mod network;
mod rivals;
mod standby;
mod terms;

use std::time::Duration;

use informer_controller::{LeaderElectionConfig, LeaderElector, LeadershipEnd};
use informer_testing::Simulator;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use network::Link;

/// The timeout of each wait, in the paused clock's time.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The maximum wait of other candidates between two reads of the lease: 2.2 retry periods.
const LONGEST_RETRY: Duration = Duration::from_millis(4_400);

fn simulator() -> Simulator {
    Simulator::builder().built_in_kinds().start_in_process()
}

fn config(identity: &str) -> LeaderElectionConfig {
    LeaderElectionConfig::new("shop", "till").identity(identity)
}

fn elector(link: &Link, identity: &str) -> LeaderElector {
    LeaderElector::new(link.client(), config(identity)).expect("a valid configuration")
}

fn lease(simulator: &Simulator) -> LeaseSpec {
    simulator.get::<Lease>("shop/till").expect("the lease exists").spec.expect("the lease has a spec")
}

fn holder(simulator: &Simulator) -> String {
    lease(simulator).holder_identity.unwrap_or_default()
}

/// The events of a leader's work, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
enum WorkEvent {
    Began,
    Cancelled,
    /// The work has ended or was dropped.
    Over,
}

/// A leader's work, which reports its events and runs until `ends` is cancelled.
struct LeaderWork(mpsc::UnboundedSender<WorkEvent>);

impl Drop for LeaderWork {
    fn drop(&mut self) {
        self.record(WorkEvent::Over);
    }
}

impl LeaderWork {
    fn new() -> (Self, mpsc::UnboundedReceiver<WorkEvent>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(sender), receiver)
    }

    fn record(&self, what: WorkEvent) {
        _ = self.0.send(what);
    }

    async fn run(self, stop: CancellationToken, ends: CancellationToken) -> &'static str {
        self.record(WorkEvent::Began);
        let cancelled_work = async {
            stop.cancelled().await;
            self.record(WorkEvent::Cancelled);
            std::future::pending::<()>().await;
        };
        _ = ends.run_until_cancelled(cancelled_work).await;
        "done"
    }
}

/// Spawns a candidate whose work runs until it is dropped.
fn work_until_dropped(
    mut elector: LeaderElector,
) -> (JoinHandle<LeadershipEnd<&'static str>>, mpsc::UnboundedReceiver<WorkEvent>) {
    let (work, events) = LeaderWork::new();
    let run = async move {
        elector.run(CancellationToken::new(), |stop| work.run(stop, CancellationToken::new())).await
    };
    (tokio::spawn(run), events)
}

async fn next(events: &mut mpsc::UnboundedReceiver<WorkEvent>) -> WorkEvent {
    within(events.recv()).await.expect("the work reports its end")
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    timeout(TIMEOUT, future).await.expect("no result before the timeout")
}
