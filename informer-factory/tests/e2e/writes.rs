//! Reading one's own writes.

use informer_factory::WaitOutcome;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use serde_json::json;

use crate::cluster::{Cluster, create, patch};
use crate::objects::config_map;
use crate::{PATIENCE, within};

#[tokio::test]
#[ignore = "needs a kube-apiserver: cargo xtask e2e"]
async fn i9_what_was_written_can_be_read_once_the_store_has_come_so_far() {
    let cluster = Cluster::connect("writes").await;
    let (factory, server) = (cluster.factory(), cluster.api::<ConfigMap>());
    let config_maps = factory.core().v1().config_maps();
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("it syncs");
    create(&server, &config_map("notes")).await;
    let key = format!("{}/notes", cluster.namespace);
    for step in 0..100 {
        let step = step.to_string();
        let written = patch(&server, "notes", json!({ "data": { "step": step } })).await;
        let version = written.resource_version().as_deref().into();
        assert_eq!(config_maps.wait_until(&version, PATIENCE).await, WaitOutcome::Reached);
        let cached = config_maps.indexer().get_by_key(&key).expect("it is cached");
        assert_eq!(cached.data.as_ref().expect("it has data")["step"], step);
    }
    factory.shutdown().await;
}
