//! A warm standby: its informers sync before it leads.

use std::convert::Infallible;
use std::time::Duration;

use informer_controller::{
    ControllerRunner, LeadershipEnd, ReconcileRequest, Reconciled, RunnerMonitor, Workqueue, own_key,
};
use informer_factory::{ObjectKey, SharedIndexInformer, SharedInformerFactory, WaitOutcome};
use informer_testing::{RequestFilter, Simulator};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{LONGEST_RETRY, elector, simulator, within};
use crate::network::Link;

/// A controller that works while it leads, and reports each reconciled key with the number of
/// stored objects.
struct Replica {
    factory: SharedInformerFactory,
    maps: SharedIndexInformer<ConfigMap>,
    monitor: RunnerMonitor,
    calls: mpsc::UnboundedReceiver<(ObjectKey, usize)>,
    shutdown: CancellationToken,
    running: JoinHandle<()>,
}

impl Replica {
    async fn start(simulator: &Simulator, name: &str) -> Self {
        let (link, shutdown) = (Link::to(simulator), CancellationToken::new());
        let factory = SharedInformerFactory::new(link.client());
        let maps = factory.informer::<ConfigMap>();
        let runner = ControllerRunner::new(Workqueue::builder().name("maps").build());
        let runner = runner.workers(2).watches(&maps, own_key);
        let monitor = runner.monitor();
        factory.start();
        within(factory.wait_for_cache_sync()).await.expect("the informers sync");
        let (sender, calls) = mpsc::unbounded_channel();
        let reconcile = {
            let maps = maps.clone();
            move |request: ReconcileRequest| {
                _ = sender.send((request.key().clone(), maps.indexer().len()));
                async { Ok::<_, Infallible>(Reconciled::Done) }
            }
        };
        let (mut elector, token) = (elector(&link, name), shutdown.clone());
        let running = tokio::spawn(async move {
            let end = elector.run(token, |stop| runner.run(reconcile, stop)).await;
            assert_eq!(end, LeadershipEnd::Finished(Ok(())));
        });
        Self { factory, maps, monitor, calls, shutdown, running }
    }

    async fn next_call(&mut self) -> (String, usize) {
        let (key, known) = within(self.calls.recv()).await.expect("the controller runs");
        (key.to_string(), known)
    }

    async fn stop(self) {
        self.shutdown.cancel();
        within(self.running).await.expect("no panic");
        within(self.factory.shutdown()).await;
    }
}

fn create(simulator: &Simulator, name: &str) -> u64 {
    let map =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "namespace": "shop", "name": name } });
    simulator.create(&map).expect("a new object").resource_version()
}

#[tokio::test(start_paused = true)]
async fn standby_has_synced_informers_and_idle_workers() {
    let simulator = simulator();
    create(&simulator, "a");
    let mut leader = Replica::start(&simulator, "ann").await;
    assert_eq!(leader.next_call().await, ("shop/a".to_owned(), 1));
    let mut standby = Replica::start(&simulator, "bob").await;

    let version = create(&simulator, "b").into();
    assert_eq!(leader.next_call().await, ("shop/b".to_owned(), 2));
    assert_eq!(standby.maps.wait_until(&version, Duration::from_secs(10)).await, WaitOutcome::Reached);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(standby.calls.try_recv().is_err(), "the standby's workers must be idle");
    let stats = standby.monitor.stats();
    assert_eq!(stats.succeeded + stats.failed, 0, "{stats:?}");

    simulator.clear_requests();
    leader.stop().await;
    let first = tokio::time::timeout(LONGEST_RETRY, standby.next_call()).await.expect("the standby leads");
    assert_eq!(first.1, 2, "the store must have both objects");
    // The new leader also reconciles objects from before its term.
    let second = standby.next_call().await;
    let mut keys = [first.0, second.0];
    keys.sort_unstable();
    assert_eq!(keys, ["shop/a", "shop/b"]);
    let lists = RequestFilter::any().path("/api/v1/configmaps");
    assert_eq!(simulator.request_count(&lists), 0, "the new leader must not list again");
    standby.stop().await;
}
