//! Informers with selectors.

use informer_factory::InformerOptions;
use informer_reflector::KubeListWatch;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ListParams;

use crate::cluster::{Cluster, create, delete, relabel, run};
use crate::journal::journal;
use crate::objects::{LABEL, labelled_config_map};
use crate::witnesses::Witnesses;

#[tokio::test]
#[ignore = "needs a kube-apiserver: cargo xtask e2e"]
async fn selector_changes_are_adds_and_deletes() {
    let cluster = Cluster::connect("selectors").await;
    let server = cluster.api::<ConfigMap>();
    for (name, label) in [("inside", "in"), ("outside", "out")] {
        create(&server, &labelled_config_map(name, label)).await;
    }
    let selector = format!("{LABEL}=in");
    let list_watch = KubeListWatch::namespaced(cluster.client.clone(), &cluster.namespace)
        .label_selector(selector.clone());
    let (informer, _running) = run(list_watch, InformerOptions::new());
    let witnesses = Witnesses::new(&informer, &server, ListParams::default().labels(&selector));
    let (journal, mut lines) = journal();
    informer.add_event_handler(journal).detach();
    assert_eq!(lines.next(1).await, ["+inside"]);

    relabel(&server, "outside", LABEL, "in").await;
    assert_eq!(lines.next(1).await, ["+outside"]);
    relabel(&server, "inside", LABEL, "out").await;
    assert_eq!(lines.next(1).await, ["-inside"]);
    relabel(&server, "inside", "other", "label").await;
    relabel(&server, "inside", LABEL, "in").await;
    assert_eq!(lines.next(1).await, ["+inside"], "changes outside the selector are not delivered");
    relabel(&server, "outside", "other", "label").await;
    assert_eq!(lines.next(1).await, ["~outside"]);
    delete(&server, "inside").await;
    assert_eq!(lines.next(1).await, ["-inside"]);
    witnesses.agree().await;
    assert!(lines.is_at_end());
}
