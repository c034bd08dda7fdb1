//! Waits for informers, and the factory's report of each informer's state.

use std::sync::Arc;
use std::time::Duration;

use informer_factory::SharedIndexInformer;
use informer_factory::status::{Health, InformerState};
use informer_testing::{CannedResponse, MemorySource, RequestFilter};
use k8s_openapi::api::core::v1::{Node, Pod};
use tokio::time::sleep;

use crate::{factory, with_pods, within};

fn refused() -> CannedResponse {
    CannedResponse::failure(http::StatusCode::FORBIDDEN, "Forbidden", "because")
}

#[tokio::test(start_paused = true)]
async fn report_describes_the_state_of_each_informer() {
    let simulator = with_pods();
    simulator.fail_next(usize::MAX, RequestFilter::any().path("/api/v1/pods"), refused());
    let factory = factory(&simulator);
    let (_pods, _nodes) = (factory.core().v1().pods(), factory.core().v1().nodes());
    factory.start();
    let _secrets = factory.core().v1().secrets();
    within(factory.wait_for_cache_sync_of::<Node>()).await.expect("synced");
    sleep(Duration::from_millis(1)).await;
    let reports = factory.informers();
    let lines: Vec<_> = reports.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "nodes (synced)",
            "pods (forbidden: the server returned 403 Forbidden: because)",
            "secrets (not started)",
        ]
    );
    let pods = reports.iter().find(|report| report.is_of::<Pod>()).expect("the pods are reported");
    assert!(matches!(pods.health, Health::Forbidden { .. }) && !pods.has_synced);
    assert!(pods.object.ends_with("::Pod"), "{}", pods.object);
    let states: Vec<_> = reports.iter().map(|report| report.state).collect();
    assert_eq!(states, [InformerState::Running, InformerState::Running, InformerState::Idle]);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn informers_of_one_name_are_reported_in_creation_order() {
    let simulator = with_pods();
    let factory = factory(&simulator);
    let create = |number: u32| {
        let scope = factory.in_namespace(&format!("shop-{number}"));
        scope.informer_with::<Pod>(|_, options| {
            SharedIndexInformer::new(Arc::new(MemorySource::<Pod>::new("pods")), options)
        })
    };
    let informers: Vec<_> = (0..20).map(create).collect();
    let reports = factory.informers();
    assert_eq!(reports.len(), informers.len());
    assert!(reports.iter().zip(&informers).all(|(report, informer)| report.is_for(informer)));
}

#[tokio::test(start_paused = true)]
async fn health_names_each_informer_with_its_problem() {
    let simulator = with_pods();
    let factory = factory(&simulator);
    let health = factory.health();
    assert_eq!(health.to_string(), "0 of 0 informers are synced and live");
    assert!(health.is_ready() && health.is_live());

    let (_pods, _nodes) = (factory.core().v1().pods(), factory.core().v1().nodes());
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");
    sleep(Duration::from_millis(1)).await;
    let health = factory.health();
    assert_eq!(health.to_string(), "2 of 2 informers are synced and live");
    assert!(health.is_ready() && health.is_live() && health.unhealthy.is_empty());

    // A synced informer that is not live does not affect the readiness.
    simulator.fail_next(usize::MAX, RequestFilter::any().path("/api/v1/pods"), refused());
    // A watch that ends within a second counts as failed.
    sleep(Duration::from_secs(2)).await;
    simulator.close_watches();
    sleep(Duration::from_millis(1)).await;
    let health = factory.health();
    let pods = "pods (synced, forbidden: the server returned 403 Forbidden: because)";
    assert_eq!(health.to_string(), format!("1 of 2 informers are synced and live; {pods}"));
    assert!(health.is_ready() && !health.is_live() && !health.has_panicked());

    let secrets = factory.core().v1().secrets();
    let health = factory.health();
    let secrets_wait = "secrets (not started)";
    assert_eq!(health.to_string(), format!("1 of 3 informers are synced and live; {pods}, {secrets_wait}"));
    assert!(!health.is_ready());
    factory.stop(&secrets).await;
    assert_eq!(factory.health().informers, 2, "a stopped informer does not count");
    factory.shutdown().await;
    let problems: Vec<_> = factory
        .health()
        .unhealthy
        .iter()
        .filter_map(informer_factory::status::InformerReport::problem)
        .collect();
    assert_eq!(problems, ["stopped on request"; 2]);
}

#[tokio::test(start_paused = true)]
async fn wait_for_a_type_covers_all_its_scopes() {
    let simulator = with_pods();
    let in_shop = RequestFilter::any().path("/api/v1/namespaces/shop/pods");
    simulator.fail_next(2, in_shop, refused());
    simulator.fail_next(usize::MAX, RequestFilter::any().path("/api/v1/nodes"), refused());
    let factory = factory(&simulator);
    let (all, shop) = (factory.core().v1().pods(), factory.in_namespace("shop").core().v1().pods());
    drop(factory.core().v1().nodes());
    factory.start();
    within(factory.wait_for_cache_sync_of::<Pod>()).await.expect("synced");
    assert!(all.has_synced() && shop.has_synced());
    factory.shutdown().await;
    assert!(within(factory.wait_for_cache_sync_of::<Node>()).await.is_err(), "the informer has been stopped");
}

#[tokio::test(start_paused = true)]
async fn wait_for_a_missing_or_unstarted_type_ends_at_once() {
    let simulator = with_pods();
    let factory = factory(&simulator);
    let error = factory.wait_for_cache_sync_of::<Pod>().await.expect_err("no informer of this type");
    assert!(error.to_string().ends_with("Pod (no informer of this type was requested)"), "{error}");
    let _pods = factory.core().v1().pods();
    let error = factory.wait_for_cache_sync_of::<Pod>().await.expect_err("the informer is not started");
    assert_eq!(error.to_string(), "these caches are not synced: pods (not started)");
}

#[tokio::test(start_paused = true)]
async fn i12_wait_for_all_continues_without_a_stopped_informer() {
    let simulator = with_pods();
    simulator.fail_next(usize::MAX, RequestFilter::any().path("/api/v1/nodes"), refused());
    simulator.fail_next(3, RequestFilter::any().path("/api/v1/pods"), refused());
    let factory = factory(&simulator);
    let (pods, nodes) = (factory.core().v1().pods(), factory.core().v1().nodes());
    factory.start();
    let waiting = {
        let factory = factory.clone();
        tokio::spawn(async move { factory.wait_for_cache_sync().await })
    };
    sleep(Duration::from_millis(10)).await;
    assert!(!pods.has_synced());
    assert!(within(factory.stop(&nodes)).await);
    within(waiting).await.expect("no panic").expect("the other informer syncs");
    assert!(pods.has_synced());
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn wait_includes_an_informer_started_during_the_wait() {
    let simulator = with_pods();
    simulator.fail_next(3, RequestFilter::any().path("/api/v1/pods"), refused());
    simulator.fail_next(6, RequestFilter::any().path("/api/v1/nodes"), refused());
    let factory = factory(&simulator);
    let _pods = factory.core().v1().pods();
    factory.start();
    let waiting = {
        let factory = factory.clone();
        tokio::spawn(async move { factory.wait_for_cache_sync().await })
    };
    sleep(Duration::from_millis(10)).await;
    let nodes = factory.core().v1().nodes();
    factory.start();
    within(waiting).await.expect("no panic").expect("both informers sync");
    assert!(nodes.has_synced());
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn wait_after_the_start_names_informers_not_started() {
    let simulator = with_pods();
    let factory = factory(&simulator);
    let pods = factory.core().v1().pods();
    factory.start();
    let (_late, _later) = (factory.core().v1().secrets(), factory.core().v1().nodes());
    for wait_within in [None, Some(Duration::from_secs(5))] {
        let waited = match wait_within {
            None => within(factory.wait_for_cache_sync()).await,
            Some(timeout) => factory.wait_for_cache_sync_within(timeout).await,
        };
        let message = waited.expect_err("two informers are not started").to_string();
        assert_eq!(
            message,
            "these caches are not synced: nodes (not started: call `start` again); secrets (not started: call `start` again)"
        );
        assert!(pods.has_synced(), "the wait covers the started informers first");
    }
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("all informers are started");
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn wait_before_the_start_names_informers_not_started() {
    let simulator = with_pods();
    let factory = factory(&simulator);
    within(factory.wait_for_cache_sync()).await.expect("a factory without informers is synced");
    let _pods = factory.core().v1().pods();
    assert!(within(factory.wait_for_cache_sync()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn wait_after_shutdown_names_informers_requested_later() {
    for is_started in [true, false] {
        let simulator = with_pods();
        let factory = factory(&simulator);
        if is_started {
            drop(factory.core().v1().nodes());
            factory.start();
            within(factory.wait_for_cache_sync()).await.expect("the nodes sync");
        }
        factory.shutdown().await;
        let pods = factory.core().v1().pods();
        factory.start();
        let error = factory
            .wait_for_cache_sync_within(Duration::from_secs(5))
            .await
            .expect_err("the informer never runs");
        assert_eq!(error.to_string(), "these caches are not synced: pods (stopped)");
        assert!(!pods.has_synced());
    }
}
