//! A factory with an idle period stops unused informers.

use std::time::Duration;

use informer_factory::status::InformerState;
use informer_factory::{FactoryBuilder, HandlerOptions, SharedInformerFactory};
use informer_testing::{RequestFilter, Simulator};
use k8s_openapi::api::core::v1::Pod;
use tokio::time::{Instant, sleep};

use crate::{builder, keys, synced, with_pods, within};

const IDLE: Duration = Duration::from_secs(600);

/// Returns a factory that stops idle informers. It has a synced informer of pods that is not in
/// use.
async fn with_idle_pods(simulator: &Simulator) -> SharedInformerFactory {
    let factory = builder(simulator).stop_idle_after(IDLE).build();
    drop(factory.core().v1().pods());
    synced(&factory).await;
    factory
}

/// Waits until the factory has no informers.
async fn all_stopped(factory: &SharedInformerFactory) {
    within(async {
        while !factory.informers().is_empty() {
            sleep(Duration::from_secs(1)).await;
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn unused_informer_is_stopped_after_the_idle_period() {
    let simulator = with_pods();
    let before = Instant::now();
    let factory = with_idle_pods(&simulator).await;
    all_stopped(&factory).await;
    let took = before.elapsed();
    assert!(took >= IDLE && took <= IDLE * 3 / 2, "{took:?}");
    within(simulator.wait_for_watches(&RequestFilter::any(), 0)).await;
    within(factory.shutdown()).await;
}

#[tokio::test(start_paused = true)]
async fn every_handle_keeps_an_informer_alive() {
    let simulator = with_pods();
    let factory = with_idle_pods(&simulator).await;
    let pods = || factory.core().v1().pods();
    let handles: [Box<dyn Send>; 6] = [
        Box::new(pods()),
        Box::new(pods().lister()),
        Box::new(pods().indexer().clone()),
        Box::new(
            pods()
                .add_index("app", |pod: &Pod| pod.metadata.labels.as_ref()?.get("app").cloned())
                .expect("a new index name"),
        ),
        Box::new(pods().add_handlers(|handlers| handlers)),
        Box::new(pods().events(&HandlerOptions::default())),
    ];
    for handle in handles {
        sleep(IDLE * 3).await;
        assert_eq!(factory.informers().len(), 1);
        drop(handle);
    }
    all_stopped(&factory).await;
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_detached_handler_keeps_an_informer_alive() {
    let simulator = with_pods();
    let factory = with_idle_pods(&simulator).await;
    factory.core().v1().pods().add_handlers(|handlers| handlers).detach();
    sleep(IDLE * 5).await;
    assert_eq!(factory.informers()[0].state, InformerState::Running);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn request_for_an_informer_restarts_its_idle_time() {
    let simulator = with_pods();
    let factory = with_idle_pods(&simulator).await;
    for _ in 0..10 {
        sleep(IDLE * 9 / 10).await;
        assert_eq!(keys(&factory.core().v1().pods()).len(), 3);
    }
    all_stopped(&factory).await;
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn request_after_idle_stop_starts_a_new_informer() {
    let simulator = with_pods();
    let factory = with_idle_pods(&simulator).await;
    all_stopped(&factory).await;
    let pods = factory.core().v1().pods();
    within(pods.synced().wait()).await.expect("synced");
    assert_eq!(keys(&pods).len(), 3);
    factory.shutdown().await;
    assert!(
        within(factory.core().v1().nodes().synced().wait()).await.is_err(),
        "no informer starts after the shutdown"
    );
}

#[tokio::test(start_paused = true)]
async fn factory_without_an_idle_period_stops_nothing() {
    let simulator = with_pods();
    let factory = builder(&simulator).build();
    drop(factory.core().v1().pods());
    synced(&factory).await;
    sleep(Duration::from_secs(86_400)).await;
    assert_eq!(factory.informers()[0].state, InformerState::Running);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn i12_idle_check_does_not_keep_the_factory_alive() {
    let simulator = with_pods();
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let client = simulator.client().expect("a client");
    let before = tasks();
    let build = |builder: FactoryBuilder| builder.stop_idle_after(IDLE).build();
    let factory = build(SharedInformerFactory::builder(client.clone()));
    let pods = factory.core().v1().pods();
    synced(&factory).await;
    assert!(tasks() > before);
    drop(factory);
    within(pods.stopped()).await;
    within(async {
        while tasks() > before {
            sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    drop(client);
}
