//! An informer of a changing set of namespaces, with a real server's resource versions and
//! permissions.

use std::sync::Arc;

use informer_core::ListerWatcher;
use informer_factory::status::Health;
use informer_factory::{InformerOptions, SharedIndexInformer, WaitOutcome, wait_for_cache_sync};
use informer_reflector::KubeListWatch;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{Client, Resource};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::cluster::{Cluster, Object, config, create, delete, health_that, relabel};
use crate::credentials::grant;
use crate::journal::journal;
use crate::objects::{LABEL, config_map};
use crate::{TIMEOUT, within};

/// Runs an informer of the objects with the tests' label in these namespaces, until the guard is
/// dropped.
fn run_in<K: Object + Resource<Scope = NamespaceResourceScope>>(
    client: Client,
    namespaces: &[&Cluster],
) -> (SharedIndexInformer<K>, DropGuard) {
    let make = move |namespace: &str| {
        let list_watch = KubeListWatch::<K>::namespaced(client.clone(), namespace);
        Arc::new(list_watch.label_selector(LABEL)) as Arc<dyn ListerWatcher<K>>
    };
    let names = namespaces.iter().map(|cluster| cluster.namespace.clone());
    let made = SharedIndexInformer::new_in_namespaces(make, names, InformerOptions::new());
    let (informer, task) = made.expect("the server has valid names");
    let shutdown = CancellationToken::new();
    tokio::spawn(task.run(shutdown.clone()));
    (informer, shutdown.drop_guard())
}

#[tokio::test]
#[ignore = "needs a kube-apiserver: cargo xtask e2e"]
async fn objects_of_changing_namespaces_are_added_and_released() {
    let (one, two) = (Cluster::connect("first").await, Cluster::connect("second").await);
    create(&one.api(), &config_map("in-one")).await;
    create(&two.api(), &config_map("in-two")).await;
    let (informer, _running) = run_in::<ConfigMap>(one.client.clone(), &[&one]);
    let (journal, mut lines) = journal();
    informer.add_event_handler(journal).detach();
    assert_eq!(lines.next(1).await, ["+in-one"]);
    let added = informer.add_namespace(&two.namespace).expect("a valid name");
    within(added.wait()).await.expect("the namespace is listed");
    assert_eq!(lines.next(1).await, ["+in-two"]);

    // `wait_for_write` waits only for the namespace of the object.
    let written = relabel(&one.api::<ConfigMap>(), "in-one", "other", "label").await;
    assert_eq!(informer.wait_for_write(&written, TIMEOUT).await, WaitOutcome::Reached);
    assert_eq!(lines.next(1).await, ["~in-one"]);
    let removed = informer.remove_namespace(&one.namespace).expect("a valid name");
    within(removed.wait()).await.expect("the informer runs");
    assert_eq!(lines.next(1).await, ["^in-one"]);
    let unseen = relabel(&one.api::<ConfigMap>(), "in-one", "other", "unseen").await;
    assert_eq!(informer.wait_for_write(&unseen, TIMEOUT).await, WaitOutcome::NotCovered);
    delete(&two.api::<ConfigMap>(), "in-two").await;
    assert_eq!(lines.next(1).await, ["-in-two"]);

    let again = informer.add_namespace(&one.namespace).expect("a valid name");
    within(again.wait()).await.expect("the namespace is listed");
    assert_eq!(lines.next(1).await, ["+in-one"]);
    assert!(within(informer.verify()).await.expect("the informer is synced").is_equal());
    assert!(lines.is_at_end());
}

#[tokio::test]
#[ignore = "needs a kube-apiserver: cargo xtask e2e"]
async fn forbidden_namespace_does_not_delay_the_others() {
    let (open, closed) = (Cluster::connect("open").await, Cluster::connect("closed").await);
    grant(&open).await;
    let client = Client::try_from(config("nobody").await).expect("the configuration is valid");
    let (pods, _running) = run_in::<Pod>(client, &[&open, &closed]);
    health_that(&pods, |health| matches!(health, Health::Forbidden { .. })).await;
    // The new permission takes effect with the next retry.
    let mut status = pods.status().clone();
    let is_open = || pods.status().namespaces().get(&open.namespace).is_some_and(|of| of.health().is_live());
    within(async {
        while !is_open() {
            _ = status.health_changed().await;
        }
    })
    .await;
    let error =
        wait_for_cache_sync(&[&pods], std::time::Duration::ZERO).await.expect_err("a namespace is refused");
    assert!(error.to_string().contains(&closed.namespace), "{error}");
    assert!(!error.to_string().contains(&open.namespace), "{error}");
    let removed = pods.remove_namespace(&closed.namespace).expect("a valid name");
    within(removed.wait()).await.expect("the removal completes");
    wait_for_cache_sync(&[&pods], TIMEOUT).await.expect("all watched namespaces are synced");
}
