//! A warm standby: what it needs to know it knows before it leads.

use std::time::Duration;

use informer_factory::{SharedInformerFactory, WaitOutcome};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{LONGEST_RETRY, elector, simulator, within};
use crate::network::Link;

#[tokio::test(start_paused = true)]
async fn the_informers_of_a_standby_are_synced_and_its_workers_idle_until_it_leads() {
    let simulator = simulator();
    let mut leader = elector(&Link::to(&simulator), "ann");
    let shutdown = CancellationToken::new();
    let (began, mut has_begun) = mpsc::unbounded_channel();
    let leading = tokio::spawn({
        let shutdown = shutdown.clone();
        async move {
            let work = |stop: CancellationToken| async move {
                began.send(()).expect("the test listens");
                stop.cancelled().await;
            };
            leader.run(shutdown, work).await
        }
    });
    within(has_begun.recv()).await.expect("ann leads");

    let link = Link::to(&simulator);
    let factory = SharedInformerFactory::new(link.client());
    let maps = factory.informer::<ConfigMap>();
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("nothing stops it");
    let (seen, mut sees) = mpsc::unbounded_channel();
    let mut standby = elector(&link, "bob");
    let contending = tokio::spawn({
        let maps = maps.clone();
        async move {
            let work = |_| async move { seen.send(maps.indexer().len()).expect("the test listens") };
            standby.run(CancellationToken::new(), work).await
        }
    });
    for name in ["a", "b"] {
        let metadata = json!({ "namespace": "shop", "name": name });
        let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata });
        let version = simulator.create(&map).expect("it is new").resource_version();
        let outcome = maps.wait_until(&version.into(), Duration::from_secs(10)).await;
        assert_eq!(outcome, WaitOutcome::Reached);
    }
    assert_eq!(maps.indexer().len(), 2, "it is warm");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(sees.try_recv().is_err(), "and idle");

    shutdown.cancel();
    let handover = tokio::time::timeout(LONGEST_RETRY, sees.recv()).await;
    assert_eq!(handover.expect("within a retry period"), Some(2), "it begins with what it has");
    within(leading).await.expect("no panic");
    within(contending).await.expect("no panic");
    factory.shutdown().await;
}
