//! Connections that go dead without being closed, and a slow connection. These tests take minutes:
//! `cargo xtask e2e --long`.
//!
//! In one test, `iptables` (which needs root) drops packets. Dropped packets are not acknowledged, so
//! TCP keepalive detects the loss. In other tests, a proxy acknowledges and discards the data, so only
//! the reflector can detect the loss.

use std::process::Command;
use std::time::Duration;

use futures::future::join_all;
use informer_factory::{InformerOptions, SharedIndexInformer};
use informer_reflector::KubeListWatch;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Client;
use kube::api::Api;
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::DropGuard;
use tracing::Level;
use tracing::subscriber::DefaultGuard;

use crate::cluster::{Cluster, create, run};
use crate::log::Log;
use crate::objects::{LABEL, config_map, object};
use crate::proxy::Proxy;
use crate::{eventually, stays, within};

/// The age at which the first connection goes dead. At this age the watch is idle, and has not yet
/// received a bookmark.
const FIRST_FAULT: Duration = Duration::from_secs(13);

/// The time until the next connection goes dead.
const SECOND_FAULT: Duration = Duration::from_secs(60);

/// The maximum time until the informer receives an object after packets are dropped, for a client
/// of `informer_factory::connect`.
const DROPPED: Duration = Duration::from_secs(60);

/// The maximum time until the informer receives an object if the watch is silent.
const SILENCE: Duration = Duration::from_secs(65);

/// The maximum time until the informer receives an object if three watches in a row are silent.
const THIRD_SILENCE: Duration = Duration::from_secs(125);

/// The number of concurrent requests, whose connections stay idle afterwards. They go dead with the
/// watch's connection, so the next request must not use them.
const IDLE: usize = 3;

/// An informer that connects through a proxy.
struct Remote {
    server: Api<ConfigMap>,
    proxy: Proxy,
    client: Client,
    informer: SharedIndexInformer<ConfigMap>,
    log: Log,
    _running: DropGuard,
    _logging: DefaultGuard,
}

impl Remote {
    async fn start(purpose: &str, proxy: Proxy, populate: impl AsyncFnOnce(&Api<ConfigMap>)) -> Self {
        let cluster = Cluster::connect(purpose).await;
        let server = cluster.api::<ConfigMap>();
        populate(&server).await;
        let (log, logging) = Log::keep(Level::DEBUG);
        let client = proxy.client().await;
        let list_watch = KubeListWatch::namespaced(client.clone(), &cluster.namespace).label_selector(LABEL);
        let (informer, running) = run(list_watch, InformerOptions::new());
        within(informer.synced().wait()).await.expect("synced");
        Self { server, proxy, client, informer, log, _running: running, _logging: logging }
    }

    /// Starts an informer without objects, whose client has idle connections of other requests.
    async fn empty(purpose: &str) -> Self {
        let remote = Self::start(purpose, Proxy::start().await, async |_| ()).await;
        let namespaces = Api::<Namespace>::all(remote.client.clone());
        for answer in join_all((0..IDLE).map(|_| namespaces.get("default"))).await {
            _ = answer.expect("the object exists");
        }
        assert!(remote.proxy.client_ports().len() > 1, "no connection is idle");
        remote
    }

    /// Waits until the informer is live, and checks that it stays live for this time.
    async fn stay_live_for(&self, long: Duration) {
        eventually(async || self.informer.health().is_live().then_some(())).await;
        stays(long, || self.informer.health().is_live()).await;
    }

    /// Creates an object, and checks that the informer has it within this time.
    async fn receives_within(&self, limit: Duration, name: &str) {
        let (created, before) = (Instant::now(), self.informer.indexer().len());
        create(&self.server, &config_map(name)).await;
        let received = eventually_within(limit, || self.informer.indexer().len() > before).await;
        println!("{name}: received after {:.1?} of at most {limit:?}", created.elapsed());
        assert!(received, "{name} is not received within {limit:?}: {:#?}", self.log.with(""));
    }

    /// Returns the log lines about silent watches, without their fields.
    fn silences(&self) -> Vec<String> {
        let lines = self.log.with("watch is silent");
        lines.iter().map(|line| line.split(';').next().unwrap_or_default().to_owned()).collect()
    }
}

/// Waits until `holds` returns `true`, up to the limit. Returns whether it did.
async fn eventually_within(limit: Duration, holds: impl Fn() -> bool) -> bool {
    let mut ticks = tokio::time::interval(Duration::from_millis(50));
    let held = async {
        while !holds() {
            ticks.tick().await;
        }
    };
    tokio::time::timeout(limit, held).await.is_ok()
}

#[tokio::test]
#[ignore = "takes minutes and needs a kube-apiserver and iptables: cargo xtask e2e --long"]
async fn object_arrives_within_60_s_of_dropped_packets() {
    let remote = Remote::empty("dropped").await;
    remote.stay_live_for(FIRST_FAULT).await;
    let fault = Instant::now();
    let _first = DroppedPackets::of(&remote.proxy);
    remote.receives_within(DROPPED, "after-first-fault").await;
    remote.stay_live_for(SECOND_FAULT.saturating_sub(fault.elapsed())).await;
    let _second = DroppedPackets::of(&remote.proxy);
    remote.receives_within(DROPPED, "after-second-fault").await;
    assert!(remote.silences().is_empty(), "keepalive detects the loss before the reflector does");
}

#[tokio::test]
#[ignore = "takes minutes and needs a kube-apiserver: cargo xtask e2e --long"]
async fn object_arrives_within_65_s_of_swallowed_traffic() {
    let remote = Remote::empty("swallowed").await;
    remote.stay_live_for(FIRST_FAULT).await;
    let fault = Instant::now();
    remote.proxy.swallow();
    remote.receives_within(SILENCE, "after-first-fault").await;
    remote.stay_live_for(SECOND_FAULT.saturating_sub(fault.elapsed())).await;
    remote.proxy.swallow();
    remote.receives_within(SILENCE, "after-second-fault").await;
    assert_eq!(remote.silences(), ["INFO message=watch is silent"; 2]);
}

#[tokio::test]
#[ignore = "takes minutes and needs a kube-apiserver: cargo xtask e2e --long"]
async fn object_arrives_within_125_s_of_the_third_silent_watch() {
    const YOUNG: Duration = Duration::from_secs(5);
    let remote = Remote::empty("silent").await;
    for _ in 0..2 {
        remote.stay_live_for(YOUNG).await;
        let connections = remote.proxy.client_ports().len();
        remote.proxy.swallow();
        let replaced = || remote.proxy.client_ports().len() > connections;
        assert!(eventually_within(SILENCE, replaced).await, "{:#?}", remote.log.with(""));
    }
    remote.stay_live_for(YOUNG).await;
    remote.proxy.swallow();
    remote.receives_within(THIRD_SILENCE, "after-third-fault").await;
    let silent = "DEBUG message=watch is silent again";
    assert_eq!(remote.silences(), ["INFO message=watch is silent", silent, silent]);
}

#[tokio::test]
#[ignore = "takes minutes and needs a kube-apiserver: cargo xtask e2e --long"]
async fn large_object_arrives_over_a_link_of_2500_bytes_a_second() {
    // Compression reduces the object to three quarters of this size. At 2,500 bytes per second, the
    // object then takes 81 seconds.
    const LENGTH: usize = 270_000;
    let random: String = std::iter::repeat_with(fastrand::alphanumeric).take(LENGTH).collect();
    let large = object(json!({
        "metadata": { "name": "large", "labels": { LABEL: "own" } },
        "data": { "random": random },
    }));
    let began = Instant::now();
    let remote = Remote::start("slow", Proxy::slow(2_500).await, async |server| {
        _ = create::<ConfigMap>(server, &large).await;
    })
    .await;
    println!("large: received after {:.1?}", began.elapsed());
    assert_eq!(remote.informer.indexer().len(), 1);
    assert!(remote.log.with("list or watch failed").is_empty(), "{:#?}", remote.log.with(""));
}

/// Drops the packets of the connections that a proxy has accepted, until this value is dropped.
struct DroppedPackets {
    rules: Vec<[String; 4]>,
}

impl DroppedPackets {
    fn of(proxy: &Proxy) -> Self {
        let flag = |flag: &str, port: u16| [format!("--{flag}port"), port.to_string()];
        let between =
            |from, to| [flag("s", from), flag("d", to)].concat().try_into().expect("a rule has four words");
        let clients = proxy.client_ports().into_iter();
        let rules = clients.flat_map(|client| [between(client, proxy.port()), between(proxy.port(), client)]);
        let rules: Vec<[String; 4]> = rules.collect();
        assert!(rules.iter().all(|rule| iptables("-I", rule)), "iptables has failed; its message is above");
        Self { rules }
    }
}

impl Drop for DroppedPackets {
    fn drop(&mut self) {
        self.rules.iter().for_each(|rule| _ = iptables("-D", rule));
    }
}

/// Inserts (`-I`) or deletes (`-D`) a rule for packets on loopback. Returns whether it succeeded.
fn iptables(action: &str, ports: &[String; 4]) -> bool {
    let mut command = Command::new("iptables");
    command.args(["-w", action, "INPUT", "-i", "lo", "-p", "tcp"]).args(ports).args(["-j", "DROP"]);
    command.status().is_ok_and(|status| status.success())
}
