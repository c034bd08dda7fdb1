//! `verify()` over HTTP finds and corrects events that the server or a proxy has lost.

use std::fmt::Debug;

use informer_factory::{SharedIndexInformer, SharedInformerFactory, WaitOutcome};
use informer_testing::{Replica, RequestFilter, Simulator, WatchInjection};
use k8s_openapi::api::core::v1::Pod;
use kube::Resource;
use kube::core::PartialObjectMeta;
use serde::de::DeserializeOwned;

use crate::{factory, pod, simulator, versions_of_pods, within};

/// Makes all watches lose their next `events` events.
fn lose(simulator: &Simulator, events: usize) {
    for _ in 0..events {
        simulator.inject(&RequestFilter::any(), &WatchInjection::bytes("").instead_of_next_event());
    }
}

async fn check_lost_events_are_corrected<K>(with: fn(&SharedInformerFactory) -> SharedIndexInformer<K>)
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug + Send + Sync + 'static,
{
    let simulator = simulator().await;
    for name in ["stays", "changes", "goes"] {
        simulator.create(&pod(name, "n1")).expect("a new pod");
    }
    let factory = factory(&simulator);
    let (pods, replica) = (with(&factory), Replica::new());
    let _registration = pods.add_event_handler(replica.clone());
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");
    within(simulator.wait_for_watches(&RequestFilter::any(), 1)).await;

    lose(&simulator, 3);
    let new = simulator.create(&pod("new", "n1")).expect("a new pod").resource_version();
    let changed = simulator.apply(&pod("changes", "n2")).expect("the pod is valid").resource_version();
    simulator.delete::<Pod>("shop/goes").expect("the object exists");
    let seen = simulator.create(&pod("seen", "n1")).expect("a new pod").resource_version();
    let reached = pods.wait_until(&seen.to_string().as_str().into(), crate::TIMEOUT).await;
    assert_eq!(reached, WaitOutcome::Reached);
    within(replica.wait_until(|objects| objects.len() == 4)).await;

    let verification = within(pods.verify()).await.expect("the informer is synced");
    let differences: Vec<String> = verification.differences.iter().map(ToString::to_string).collect();
    let expected = [
        format!("shop/changes has version {} in the store and {changed} on the server", new - 2),
        format!("shop/goes (version {}) is not on the server", new - 1),
        format!("shop/new (version {new}) is missing from the store"),
    ];
    assert_eq!(differences, expected);
    assert_eq!((verification.resource_version.to_string(), verification.objects), (seen.to_string(), 4));

    within(replica.wait_until(|_| replica.versions() == versions_of_pods(&simulator))).await;
    assert!(replica.violations().is_empty(), "{:?}", replica.violations());
    assert!(within(pods.verify()).await.expect("the informer is synced").is_equal());
    factory.shutdown().await;
}

#[tokio::test]
async fn i9_lost_object_events_are_found_and_corrected() {
    check_lost_events_are_corrected::<Pod>(|factory| factory.core().v1().pods()).await;
}

#[tokio::test]
async fn i9_lost_metadata_events_are_found_and_corrected() {
    check_lost_events_are_corrected::<PartialObjectMeta<Pod>>(SharedInformerFactory::informer).await;
}
