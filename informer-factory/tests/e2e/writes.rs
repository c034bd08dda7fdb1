//! Reads of the test's own writes.

use informer_factory::{InformerOptions, WaitOutcome, wait_for_cache_sync};
use informer_reflector::KubeListWatch;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use serde_json::json;

use crate::cluster::{Cluster, create, delete, patch, relabel, run};
use crate::objects::{LABEL, config_map, labelled_config_map};
use crate::{TIMEOUT, within};

#[tokio::test]
#[ignore = "needs a kube-apiserver: cargo xtask e2e"]
async fn i9_write_is_readable_once_the_store_reaches_it() {
    let cluster = Cluster::connect("writes").await;
    let (factory, server) = (cluster.factory(), cluster.api::<ConfigMap>());
    let config_maps = factory.core().v1().config_maps();
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");
    create(&server, &config_map("notes")).await;
    let key = format!("{}/notes", cluster.namespace);
    for step in 0..100 {
        let step = step.to_string();
        let written = patch(&server, "notes", json!({ "data": { "step": step } })).await;
        let version = written.resource_version().as_deref().into();
        assert_eq!(config_maps.wait_until(&version, TIMEOUT).await, WaitOutcome::Reached);
        let cached = config_maps.indexer().get_by_key(&key).expect("the object is cached");
        assert_eq!(cached.data.as_ref().expect("the object has data")["step"], step);
    }
    factory.shutdown().await;
}

#[tokio::test]
#[ignore = "needs a kube-apiserver: cargo xtask e2e"]
async fn i9_wait_for_write_considers_the_scope() {
    let cluster = Cluster::connect("writes").await;
    let server = cluster.api::<ConfigMap>();
    let of_namespace = |name: &str| KubeListWatch::<ConfigMap>::namespaced(cluster.client.clone(), name);
    let here = of_namespace(&cluster.namespace);
    let selected = here.clone().label_selector(format!("{LABEL} in (in, between)"));
    let (here, _running_here) = run(here, InformerOptions::new());
    let (selected, _running_selected) = run(selected, InformerOptions::new());
    let (elsewhere, _running_elsewhere) = run(of_namespace("kube-system"), InformerOptions::new());
    wait_for_cache_sync(&[&here, &selected, &elsewhere], TIMEOUT).await.expect("synced");

    let outside = create(&server, &labelled_config_map("a", "out")).await;
    assert_eq!(here.wait_for_write(&outside, TIMEOUT).await, WaitOutcome::Reached);
    for informer in [&selected, &elsewhere] {
        assert_eq!(informer.wait_for_write(&outside, TIMEOUT).await, WaitOutcome::NotCovered);
    }
    let inside = relabel(&server, "a", LABEL, "in").await;
    assert_eq!(selected.wait_for_write(&inside, TIMEOUT).await, WaitOutcome::Reached);
    assert_eq!(selected.indexer().len(), 1);
    // The write moves the object out of the selector, and the informer receives a deletion at that
    // version. If the deletion arrives before the call of `wait_for_write`, the write is not covered.
    let outside = relabel(&server, "a", LABEL, "out").await;
    let outcome = selected.wait_for_write(&outside, TIMEOUT).await;
    assert!(matches!(outcome, WaitOutcome::Reached | WaitOutcome::NotCovered), "{outcome:?}");
    assert!(selected.indexer().is_empty());
    delete(&server, "a").await;
}
