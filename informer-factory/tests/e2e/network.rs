//! A server that many informers cannot reach for a while: few log lines, and no missed objects.

use std::time::Duration;

use informer_factory::{SharedIndexInformer, SharedInformerFactory};
use k8s_openapi::api::core::v1::ConfigMap;
use tracing::Level;

use crate::cluster::{Cluster, create};
use crate::log::Log;
use crate::objects::{LABEL, config_map};
use crate::proxy::Proxy;
use crate::{eventually, stays, within};

const INFORMERS: usize = 40;

/// The duration of each outage.
const OUTAGE: Duration = Duration::from_secs(10);

/// The time after an outage until the log is read.
const AFTERMATH: Duration = Duration::from_secs(12);

/// The maximum number of log lines per outage, for any number of informers.
const MAX_LINES: usize = 4;

#[tokio::test]
#[ignore = "needs a kube-apiserver: cargo xtask e2e"]
async fn outage_of_forty_informers_is_logged_in_four_lines() {
    let cluster = Cluster::connect("forty").await;
    let server = cluster.api::<ConfigMap>();
    let mut proxy = Proxy::start().await;
    let (log, _logging) = Log::keep(Level::INFO);
    let factory = SharedInformerFactory::new(proxy.client().await).in_namespace(&cluster.namespace);
    let informers: Vec<_> = (0..INFORMERS)
        .map(|number| factory.with_labels(&format!("{LABEL},{LABEL}!={number}")).core().v1().config_maps())
        .collect();
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");
    let are_live = || informers.iter().all(|informer| informer.health().is_live());
    for outage in 1..=2 {
        let before = log.with("").len();
        proxy.go_down().await;
        create(&server, &config_map(&format!("made-in-outage-{outage}"))).await;
        stays(OUTAGE, || informers.iter().all(|informer| has(informer, outage - 1))).await;
        proxy.come_up();
        let back = tokio::time::Instant::now();
        let have = || informers.iter().all(|informer| has(informer, outage));
        eventually(async || (have() && are_live()).then_some(())).await;
        println!("outage {outage}: all {INFORMERS} informers are live after {:.1?}", back.elapsed());
        stays(AFTERMATH, are_live).await;
        let lines = log.with("").split_off(before);
        println!("{}", lines.join("\n"));
        assert!(lines.len() <= MAX_LINES, "{lines:#?}");
        assert!(lines[0].starts_with("WARN message=API server unavailable"), "{lines:#?}");
        let last = lines.last().expect("the outage is logged");
        assert!(last.starts_with("INFO message=API server is back"), "{lines:#?}");
        assert!(last.contains("relisted=0 waiting=0"), "{lines:#?}");
    }
    factory.shutdown().await;
}

fn has(informer: &SharedIndexInformer<ConfigMap>, objects: usize) -> bool {
    informer.indexer().len() == objects
}
