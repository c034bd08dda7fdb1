//! The factory: sharing, starting and stopping informers.

use std::sync::Arc;
use std::time::Duration;

use informer_factory::status::{InformerState, StopCause};
use informer_factory::{SharedIndexInformer, SharedInformerFactory};
use informer_testing::{RequestFilter, Verb};
use k8s_openapi::api::core::v1::Pod;

use crate::{factory, pod, simulator, within};

fn watches() -> RequestFilter {
    RequestFilter::verb(Verb::Watch)
}

#[tokio::test]
async fn same_resource_shares_one_watch_and_store() {
    let simulator = simulator().await;
    let factory = factory(&simulator);
    let (first, second) = (factory.core().v1().pods(), factory.informer::<Pod>());
    factory.start();
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");
    simulator.create(&pod("p", "n1")).expect("a new pod");
    within(async {
        while first.indexer().is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(second.indexer().len(), 1);
    assert_eq!(simulator.request_count(&watches()), 1);
    assert_eq!(
        simulator.request_count(&RequestFilter::any()),
        1,
        "one streaming list, which continues as the watch"
    );
    factory.shutdown().await;
}

#[tokio::test]
async fn first_request_decides_how_an_informer_is_created() {
    let simulator = simulator().await;
    for (name, node) in [("p", "n1"), ("q", "n2")] {
        simulator.create(&pod(name, node)).expect("a new pod");
    }
    let factory = factory(&simulator);
    let on_n1 = factory.informer_with::<Pod>(|list_watch, options| {
        let list_watch = list_watch.field_selector("spec.nodeName=n1");
        SharedIndexInformer::new(Arc::new(list_watch), options)
    });
    let unused = factory.informer_with::<Pod>(|_, _| unreachable!("the informer exists already"));
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");
    let names = |informer: &SharedIndexInformer<Pod>| -> Vec<String> {
        informer.indexer().keys().iter().map(|key| key.name().to_owned()).collect()
    };
    assert_eq!(names(&on_n1), ["p"]);
    assert_eq!(names(&unused), ["p"]);
    assert_eq!(names(&factory.core().v1().pods()), ["p"]);
    factory.shutdown().await;
}

#[tokio::test]
async fn i8_make_function_can_use_the_factory() {
    let simulator = simulator().await;
    let factory = factory(&simulator);
    let mut inner = None;
    let pods = factory.informer_with::<Pod>(|list_watch, options| {
        assert!(factory.core().v1().nodes().indexer().is_empty());
        inner = Some(factory.core().v1().pods());
        SharedIndexInformer::new(Arc::new(list_watch), options)
    });
    // The inner call created the informer of the type first, so the outer call returns that one.
    let by_node = pods.add_index("node", crate::node_of).expect("a free index name");
    let names = inner.expect("the function was called").indexer().index_names();
    assert!(names.contains(&by_node.name().to_owned()), "{names:?}");
}

#[tokio::test]
async fn informer_requested_after_the_start_needs_another_start() {
    let simulator = simulator().await;
    let factory = factory(&simulator);
    let pods = factory.core().v1().pods();
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");
    let deployments = factory.apps().v1().deployments();
    assert!(!deployments.has_synced());
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");
    assert!(pods.has_synced() && deployments.has_synced());
    factory.shutdown().await;
}

#[tokio::test]
async fn factory_namespace_does_not_affect_cluster_resources() {
    let simulator = simulator().await;
    let factory = SharedInformerFactory::new(simulator.client().expect("a client")).in_namespace("shop");
    let (pods, nodes) = (factory.core().v1().pods(), factory.core().v1().nodes());
    simulator.create(&pod("p", "n1")).expect("a new pod");
    let mut elsewhere = pod("q", "n1");
    elsewhere["metadata"]["namespace"] = "else".into();
    simulator.create(&elsewhere).expect("a new pod");
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");
    assert_eq!((pods.indexer().len(), nodes.indexer().len()), (1, 0));
    let paths: Vec<_> = simulator.requests(&watches()).into_iter().map(|request| request.path).collect();
    assert!(paths.contains(&"/api/v1/namespaces/shop/pods".to_owned()), "{paths:?}");
    assert!(paths.contains(&"/api/v1/nodes".to_owned()), "{paths:?}");
    factory.shutdown().await;
}

#[tokio::test]
async fn i12_shutdown_leaves_no_watch_and_no_task() {
    let simulator = simulator().await;
    simulator.create(&pod("p", "n1")).expect("a new pod");
    let client = simulator.client().expect("a client");
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let factory = SharedInformerFactory::new(client.clone());
    let pods = factory.core().v1().pods();
    for _ in 0..10 {
        pods.add_handlers(|handlers| handlers).detach();
    }
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");
    within(simulator.wait_for_watches(&RequestFilter::any(), 1)).await;
    let running = tasks();
    factory.shutdown().await;
    within(simulator.wait_for_watches(&RequestFilter::any(), 0)).await;
    assert!(tasks() <= running - 11, "{} of {running} tasks are left", tasks());
    assert_eq!(pods.indexer().len(), 1);
    factory.start();
    assert!(within(factory.wait_for_cache_sync()).await.is_ok(), "synced informers stay synced");
}

#[tokio::test]
async fn i12_shutdown_ends_waits_for_unstarted_informers() {
    let simulator = simulator().await;
    let factory = factory(&simulator);
    let pods = factory.core().v1().pods();
    let registration = pods.add_handlers(|handlers| handlers);
    within(factory.shutdown()).await;
    assert!(within(pods.synced().wait()).await.is_err());
    assert!(within(registration.synced().wait()).await.is_err());
    let requested_later = factory.core().v1().nodes();
    assert!(within(requested_later.synced().wait()).await.is_err());
    for state in [pods.state(), requested_later.state()] {
        assert_eq!(state, InformerState::Stopped(StopCause::Dropped));
    }
}

#[tokio::test]
async fn i12_last_factory_handle_stops_its_informers() {
    let simulator = simulator().await;
    let factory = factory(&simulator);
    let pods = factory.core().v1().pods();
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");
    within(simulator.wait_for_watches(&RequestFilter::any(), 1)).await;
    drop(factory);
    within(simulator.wait_for_watches(&RequestFilter::any(), 0)).await;
    assert!(pods.has_synced());
}

#[tokio::test]
async fn wait_timeout_names_unsynced_informers_and_reasons() {
    let simulator = simulator().await;
    let refused = informer_testing::CannedResponse::failure(
        http::StatusCode::FORBIDDEN,
        "Forbidden",
        "pods is forbidden: User \"bob\" cannot list resource \"pods\"",
    );
    simulator.fail_next(usize::MAX, RequestFilter::any().path("/api/v1/pods"), refused);
    let factory = factory(&simulator);
    let (pods, nodes) = (factory.core().v1().pods(), factory.core().v1().nodes());
    factory.start();
    within(nodes.synced().wait()).await.expect("synced");
    within(async {
        while pods.health().error().is_none() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let error =
        factory.wait_for_cache_sync_within(Duration::from_millis(1)).await.expect_err("pods are forbidden");
    assert_eq!(
        error.to_string(),
        "these caches are not synced: pods (forbidden: the server returned 403 Forbidden: pods is forbidden: User \"bob\" cannot list \
         resource \"pods\")"
    );
    factory.shutdown().await;
    assert!(factory.wait_for_cache_sync().await.is_err(), "a stopped informer will not sync");
}

#[tokio::test]
async fn i12_dropped_informer_task_ends_every_wait() {
    let simulator = simulator().await;
    let too_many_requests = informer_testing::CannedResponse::too_many_requests(3_600);
    simulator.fail_next(usize::MAX, RequestFilter::any(), too_many_requests);
    let lister_watcher = informer_reflector::KubeListWatch::<Pod>::all(simulator.client().expect("a client"));
    let (pods, task) = informer_factory::SharedIndexInformer::new(
        std::sync::Arc::new(lister_watcher),
        informer_factory::InformerOptions::new().resync_period(Duration::ZERO),
    );
    let registration = pods.add_handlers(|handlers| handlers);
    let run = tokio::spawn(task.run(Default::default()));
    within(simulator.wait_for_requests(&RequestFilter::any(), 1)).await;
    run.abort();
    assert!(within(pods.synced().wait()).await.is_err());
    assert!(within(registration.synced().wait()).await.is_err());
    within(registration.remove_and_wait()).await;
}
