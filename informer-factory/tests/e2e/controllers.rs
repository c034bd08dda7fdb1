//! A controller with several workers that reads its own writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use informer_controller::{
    ControllerRunner, ReconcileRequest, Reconciled, Workqueue, WriteTracker, controller_key, own_key,
};
use informer_factory::{Cached, Index, InformerOptions, SharedIndexInformer};
use informer_reflector::KubeListWatch;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::{Resource, ResourceExt};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::cluster::{Cluster, create, patch, run};
use crate::objects::{LABEL, labelled_config_map};
use crate::{TIMEOUT, eventually, within};

const PARENTS: usize = 10;

/// A controller that creates one child per parent, with a server-generated name, and writes the
/// number of children into the parent.
struct OneChildEach {
    parents: SharedIndexInformer<ConfigMap>,
    children: SharedIndexInformer<ConfigMap>,
    by_owner: Index<ConfigMap, String>,
    server: Api<ConfigMap>,
    duplicates: AtomicU32,
}

impl OneChildEach {
    async fn reconcile(self: Arc<Self>, request: ReconcileRequest) -> Result<Reconciled, kube::Error> {
        let Some(parent) = self.parents.get(request.key()) else { return Ok(Reconciled::Done) };
        let uid = parent.uid().to_string();
        let known = self.by_owner.count(&uid);
        if known == 0 {
            let mut child = labelled_config_map("", "child");
            child.metadata.name = None;
            child.metadata.generate_name = Some(format!("{}-", parent.name()));
            child.metadata.owner_references = Some(parent.controller_owner_ref(&()).into_iter().collect());
            let params = PostParams::default();
            request.writes().track(&self.children, &child, self.server.create(&params, &child)).await?;
            if self.children_on_server(&uid).await > 1 {
                self.duplicates.fetch_add(1, Ordering::Relaxed);
            }
        }
        let known = known.to_string();
        if parent.data.as_ref().is_none_or(|data| data["step"] != known) {
            let mut updated = ConfigMap::clone(&parent);
            updated.data = Some([("step".to_owned(), known)].into());
            // The write has the resource version of the cached object, so the server rejects it if
            // that version is outdated.
            let params = PostParams::default();
            let update = self.server.replace(parent.name(), &params, &updated);
            request.writes().track(&self.parents, &updated, update).await?;
        }
        Ok(Reconciled::Done)
    }

    async fn children_on_server(&self, uid: &str) -> usize {
        let of = |child: &ConfigMap| child.owner_references().iter().any(|owner| owner.uid == uid);
        let list = self.server.list(&ListParams::default().labels(&format!("{LABEL}=child"))).await;
        list.expect("the server returns a list").items.iter().filter(|child| of(child)).count()
    }
}

#[tokio::test]
#[ignore = "needs a kube-apiserver: cargo xtask e2e"]
async fn i9_controller_under_churn_makes_no_duplicates() {
    let cluster = Cluster::connect("controller").await;
    let server = cluster.api::<ConfigMap>();
    let of_label = |value: &str| {
        let all = KubeListWatch::<ConfigMap>::namespaced(cluster.client.clone(), &cluster.namespace);
        run(all.label_selector(format!("{LABEL}={value}")), InformerOptions::new())
    };
    let ((parents, _parents_run), (children, _children_run)) = (of_label("parent"), of_label("child"));
    let owners = |child: &ConfigMap| {
        child.owner_references().iter().map(|owner| owner.uid.clone()).collect::<Vec<_>>()
    };
    let by_owner = children.add_index("owner", owners).expect("a free index name");
    let runner = ControllerRunner::new(Workqueue::builder().name("parents").build())
        .workers(4)
        // The deadline is so long that no write times out while the caches lag.
        .write_tracker(WriteTracker::with_deadline(TIMEOUT))
        .watches(&parents, own_key)
        .watches(&children, controller_key::<ConfigMap, ConfigMap>);
    let (monitor, shutdown) = (runner.monitor(), CancellationToken::new());
    let controller = Arc::new(OneChildEach {
        parents,
        children: children.clone(),
        by_owner,
        server: server.clone(),
        duplicates: AtomicU32::new(0),
    });
    let calls = Arc::clone(&controller);
    let work =
        tokio::spawn(runner.run(move |request| Arc::clone(&calls).reconcile(request), shutdown.clone()));
    for n in 0..PARENTS {
        create(&server, &labelled_config_map(&format!("parent-{n}"), "parent")).await;
    }
    churn(&server, &children).await;
    let selector = ListParams::default().labels(&format!("{LABEL}=parent"));
    eventually(async || {
        let parents = server.list(&selector).await.expect("the server returns a list").items;
        for parent in &parents {
            let uid = parent.uid().expect("the server sets the UID");
            let is_updated = parent.data.as_ref().is_some_and(|data| data["step"] == "1");
            if !is_updated || controller.children_on_server(&uid).await != 1 {
                return None;
            }
        }
        (parents.len() == PARENTS).then_some(())
    })
    .await;
    shutdown.cancel();
    within(work).await.expect("no panic").expect("synced");
    let stats = monitor.stats();
    assert_eq!(controller.duplicates.load(Ordering::Relaxed), 0, "{stats:?}");
    // No other client writes to parents, so only an outdated cache could cause a conflict.
    assert_eq!((stats.failed, stats.panicked, stats.parked_timed_out), (0, 0, 0), "{stats:?}");
}

/// Changes and deletes children, as other clients could.
async fn churn(server: &Api<ConfigMap>, children: &SharedIndexInformer<ConfigMap>) {
    let mut random = fastrand::Rng::with_seed(7);
    for step in 0..100_u32 {
        let all: Vec<Cached<ConfigMap>> = children.indexer().list().iter().cloned().collect();
        let Some(child) = random.choice(&all) else { continue };
        if step % 3 == 0 {
            // The child is possibly deleted already, because the cache lags.
            _ = server.delete(child.name(), &DeleteParams::default()).await;
        } else if server.get_opt(child.name()).await.expect("the server responds").is_some() {
            let step = json!({ "data": { "step": step.to_string() } });
            patch(server, child.name(), step).await;
        }
    }
}
