//! Handlers of every form: async handlers and event streams receive the server's changes.

use futures::StreamExt;
use informer_factory::{
    AsyncEventHandler, Cached, Deleted, Event, EventHandler, HandlerOptions, InformerOptions,
    SharedIndexInformer, WaitOutcome, wait_for_cache_sync,
};
use informer_reflector::KubeListWatch;
use informer_testing::Replica;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::json;

use crate::cluster::{Cluster, create, delete, patch, run};
use crate::objects::{LABEL, config_map};
use crate::witnesses::Witnesses;
use crate::{TIMEOUT, eventually};

/// An async handler that yields to other tasks in each call, before it records the event.
struct Yielding(Replica<ConfigMap>);

#[async_trait::async_trait]
impl AsyncEventHandler<ConfigMap> for Yielding {
    async fn on_add(&self, object: &Cached<ConfigMap>, is_in_initial_list: bool) {
        tokio::task::yield_now().await;
        self.0.on_add(object, is_in_initial_list);
    }

    async fn on_update(&self, old: &Cached<ConfigMap>, new: &Cached<ConfigMap>) {
        tokio::task::yield_now().await;
        self.0.on_update(old, new);
    }

    async fn on_delete(&self, object: &Deleted<ConfigMap>) {
        tokio::task::yield_now().await;
        self.0.on_delete(object);
    }
}

/// Spawns a reader that applies the informer's events to the returned replica.
fn read(informer: &SharedIndexInformer<ConfigMap>) -> Replica<ConfigMap> {
    let replica = Replica::new();
    // A low threshold, so that many later events are coalesced.
    let mut events = informer.events(&HandlerOptions::new().threshold(Some(4)));
    let copy = replica.clone();
    tokio::spawn(async move {
        while let Some(event) = events.next().await {
            match event {
                Event::Added { object, is_in_initial_list } => copy.on_add(&object, is_in_initial_list),
                Event::Updated { old, new } => copy.on_update(&old, &new),
                Event::Resynced(object) => copy.on_update(&object, &object),
                Event::Deleted(deleted) => copy.on_delete(&deleted),
                Event::Released(object) => copy.on_release(&object),
            }
        }
    });
    replica
}

#[tokio::test]
#[ignore = "needs a kube-apiserver: cargo xtask e2e"]
async fn i4_async_handlers_and_streams_equal_the_server() {
    let cluster = Cluster::connect("forms").await;
    let server = cluster.api::<ConfigMap>();
    for n in 0..10 {
        create(&server, &config_map(&format!("old-{n}"))).await;
    }
    // Other objects of the namespace are excluded, because controllers create them at any time.
    let list_watch =
        KubeListWatch::namespaced(cluster.client.clone(), &cluster.namespace).label_selector(LABEL);
    let (informer, _running) = run(list_watch, InformerOptions::new());
    let witnesses = Witnesses::new(&informer, &server, ListParams::default().labels(LABEL));
    let yielding = Replica::new();
    let registration = informer.add_async_event_handler(Yielding(yielding.clone()));
    let reader = read(&informer);
    wait_for_cache_sync(&[&informer, &registration], TIMEOUT).await.expect("synced");
    let late = read(&informer);
    for n in 0..10 {
        delete(&server, &format!("old-{n}")).await;
        create(&server, &config_map(&format!("new-{n}"))).await;
        for step in 0..5 {
            patch(&server, &format!("new-{n}"), json!({ "data": { "step": step.to_string() } })).await;
        }
    }
    let last = patch(&server, "new-0", json!({ "data": { "step": "last" } })).await;
    assert_eq!(informer.wait_for_write(&last, TIMEOUT).await, WaitOutcome::Reached);
    witnesses.agree().await;
    let version =
        |object: &Cached<ConfigMap>| (object.key().to_string(), object.resource_version().to_string());
    let stored = informer.indexer().list().iter().map(version).collect();
    for replica in [yielding, reader, late] {
        eventually(async || (replica.versions() == stored).then_some(())).await;
        assert_eq!(replica.violations(), Vec::<String>::new(), "{}", last.name_any());
    }
}
