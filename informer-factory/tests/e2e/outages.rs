//! Changes during an outage are delivered afterwards. If the server still has the history, every
//! single change is delivered.

use informer_factory::status::Health;
use informer_factory::{Cached, InformerOptions, SharedIndexInformer};
use informer_reflector::KubeListWatch;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use serde_json::json;
use tokio_util::sync::DropGuard;

use crate::cluster::{Cluster, caught_up, create, delete, health_that, patch, run};
use crate::interruptions::{Expired, Interruptions};
use crate::journal::{Lines, journal};
use crate::objects::{LABEL, config_map};
use crate::witnesses::Witnesses;

/// An informer of three existing objects, whose connection can be broken.
struct Fixture {
    interruptions: Interruptions,
    server: Api<ConfigMap>,
    informer: SharedIndexInformer<ConfigMap>,
    witnesses: Witnesses<ConfigMap>,
    lines: Lines,
    _running: DropGuard,
}

async fn fixture() -> Fixture {
    let cluster = Cluster::connect("outage").await;
    let server = cluster.api::<ConfigMap>();
    for name in ["stays", "changes", "goes"] {
        create(&server, &config_map(name)).await;
    }
    let interruptions = Interruptions::default();
    // Controllers create other objects in a namespace at any time.
    let list_watch =
        KubeListWatch::namespaced(interruptions.client().await, &cluster.namespace).label_selector(LABEL);
    let (informer, running) = run(list_watch, InformerOptions::new());
    let witnesses = Witnesses::new(&informer, &server, ListParams::default().labels(LABEL));
    let (journal, mut lines) = journal();
    informer.add_event_handler(journal).detach();
    assert_eq!(lines.next(3).await, ["+changes", "+goes", "+stays"]);
    health_that(&informer, Health::is_live).await;
    Fixture { interruptions, server, informer, witnesses, lines, _running: running }
}

impl Fixture {
    fn cached(&self, name: &str) -> Cached<ConfigMap> {
        let objects = self.informer.indexer().list();
        objects.iter().find(|object| object.name() == name).expect("the object is cached").clone()
    }

    /// Changes objects while the connection is down, and returns the events that arrive afterwards.
    async fn miss_changes(&mut self, expired: Option<Expired>) -> Vec<String> {
        let unchanged = self.cached("stays");
        let before = self.cached("changes").resource_version().to_string();
        let outage = self.interruptions.outage();
        create(&self.server, &config_map("new")).await;
        delete(&self.server, "goes").await;
        // Only a resumed watch reports this object, because it is created and deleted during the
        // outage.
        create(&self.server, &config_map("passes")).await;
        delete(&self.server, "passes").await;
        // The server ignores an update without a change.
        let step = format!("after {before}");
        let last = patch(&self.server, "changes", json!({ "data": { "step": step } })).await;
        caught_up(&self.server, &last.resource_version().as_deref().into()).await;
        expired.into_iter().for_each(|how| self.interruptions.expire_next_watch(how));
        drop(outage);
        self.witnesses.agree().await;
        assert!(unchanged.ptr_eq(&self.cached("stays")));
        let delivered = self.lines.next(if expired.is_some() { 3 } else { 5 }).await;
        assert!(self.lines.is_at_end());
        delivered
    }
}

#[tokio::test]
#[ignore = "needs a kube-apiserver: cargo xtask e2e"]
async fn broken_watch_resumes_without_loss() {
    let mut fixture = fixture().await;
    let lists = fixture.interruptions.streams();
    for _ in 0..2 {
        let delivered = fixture.miss_changes(None).await;
        assert_eq!(delivered, ["+new", "+passes", "-goes", "-passes", "~changes"]);
        // The second outage breaks a watch that has already delivered events.
        delete(&fixture.server, "new").await;
        create(&fixture.server, &config_map("goes")).await;
        assert_eq!(fixture.lines.next(2).await, ["+goes", "-new"]);
    }
    assert_eq!((fixture.interruptions.streams(), fixture.interruptions.lists()), (lists, 0), "no relist");
}

#[tokio::test]
#[ignore = "needs a kube-apiserver: cargo xtask e2e"]
async fn relist_after_expiry_finds_missed_changes() {
    for how in [Expired::AtOnce, Expired::InStream] {
        let mut fixture = fixture().await;
        let lists = fixture.interruptions.streams();
        let delivered = fixture.miss_changes(Some(how)).await;
        assert_eq!(delivered, ["+new", "-goes (missed)", "~changes"], "{how:?}");
        assert_eq!(fixture.interruptions.streams(), lists + 1, "{how:?}");
        assert_eq!(fixture.interruptions.lists(), 0, "{how:?}");
    }
}
