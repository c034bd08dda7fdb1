//! Stopping one informer of a factory while the others continue.

use std::sync::Arc;
use std::time::Duration;

use informer_core::ListerWatcher;
use informer_core::{ListOptions, ListStream, WatchOptions, WatchStream};
use informer_factory::status::{InformerState, StopCause};
use informer_factory::{ListWatchError, SharedIndexInformer};
use informer_testing::RequestFilter;
use k8s_openapi::api::core::v1::Pod;
use tokio::time::sleep;

use crate::{builder, factory, keys, simulator, synced, with_pods, within};

#[tokio::test(start_paused = true)]
async fn i12_one_informer_stops_and_the_others_continue() {
    let simulator = with_pods();
    let factory = factory(&simulator);
    let (pods, nodes) = (factory.core().v1().pods(), factory.core().v1().nodes());
    let lister = pods.lister();
    let handler = pods.add_handlers(|handlers| handlers);
    synced(&factory).await;
    within(simulator.wait_for_watches(&RequestFilter::any(), 2)).await;
    assert!(within(factory.stop(&pods)).await);
    within(simulator.wait_for_watches(&RequestFilter::any(), 1)).await;
    assert_eq!(pods.state(), InformerState::Stopped(StopCause::Shutdown));
    assert_eq!(nodes.state(), InformerState::Running);
    assert_eq!((keys(&pods).len(), lister.namespace("shop").get("db").is_some()), (3, true));
    within(handler.remove_and_wait()).await;
    assert!(!within(factory.stop(&pods)).await, "the informer has left the factory");
    assert_eq!(factory.informers().len(), 1);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn request_after_a_stop_returns_a_new_informer() {
    let simulator = with_pods();
    let factory = factory(&simulator);
    let old = factory.core().v1().pods();
    synced(&factory).await;
    factory.stop(&old).await;
    simulator.delete::<Pod>("shop/db").expect("the object exists");
    let new = factory.core().v1().pods();
    assert_eq!(new.state(), InformerState::Idle);
    synced(&factory).await;
    assert_eq!((keys(&old).len(), keys(&new).len()), (3, 2));
    assert!(!factory.stop(&old).await, "the factory now has another informer");
    assert_eq!(new.state(), InformerState::Running);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn stop_of_one_scope_keeps_the_other_running() {
    let simulator = with_pods();
    let factory = factory(&simulator);
    let (shop, other) = (factory.in_namespace("shop"), factory.in_namespace("else"));
    let (shop, other) = (shop.core().v1().pods(), other.core().v1().pods());
    synced(&factory).await;
    assert!(factory.stop(&shop).await, "a handle of any scope can stop the informer");
    simulator.create(&crate::pod("else", "new", "new")).expect("a new pod");
    within(async {
        while other.indexer().len() < 2 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn i12_unstarted_informer_can_be_stopped() {
    let simulator = with_pods();
    let factory = factory(&simulator);
    let pods = factory.core().v1().pods();
    let registration = pods.add_handlers(|handlers| handlers);
    assert!(within(factory.stop(&pods)).await);
    assert_eq!(pods.state(), InformerState::Stopped(StopCause::Dropped));
    assert!(within(pods.synced().wait()).await.is_err());
    assert!(within(registration.synced().wait()).await.is_err());
    synced(&factory).await;
    assert_eq!(simulator.request_count(&RequestFilter::any()), 0);
}

/// Runs a function when the handler that owns it is dropped.
struct OnDrop<F: Fn() + Send + Sync>(F);

impl<F: Fn() + Send + Sync> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[test]
fn i8_handler_dropped_by_a_start_can_use_the_factory() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let handle = runtime.handle().clone();
    let _context = handle.enter();
    let factory = factory(&simulator());
    let (send, dropped) = std::sync::mpsc::channel();
    let on_drop = OnDrop({
        let factory = factory.clone();
        move || {
            factory.start();
            _ = send.send(());
        }
    });
    let pods = factory.core().v1().pods();
    pods.add_handlers(|handlers| handlers.on_add(move |_, _| _ = &on_drop)).detach();
    // A runtime that has ended drops each task at once.
    drop(runtime);
    factory.start();
    dropped.try_recv().expect("the handler is dropped");
}

#[tokio::test(start_paused = true)]
async fn informer_of_another_factory_is_not_stopped() {
    let simulator = with_pods();
    let (one, other) = (factory(&simulator), factory(&simulator));
    let pods = one.core().v1().pods();
    drop(other.core().v1().pods());
    synced(&one).await;
    assert!(!within(other.stop(&pods)).await);
    assert_eq!(pods.state(), InformerState::Running);
    one.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn stop_completes_without_a_waiter() {
    let simulator = with_pods();
    let factory = factory(&simulator);
    let pods = factory.core().v1().pods();
    synced(&factory).await;
    {
        let mut stop = Box::pin(factory.stop(&pods));
        assert!(futures::poll!(stop.as_mut()).is_pending());
    }
    assert_eq!(within(pods.stopped()).await, StopCause::Shutdown);
    factory.shutdown().await;
}

/// A source that panics.
struct Broken;

#[async_trait::async_trait]
impl ListerWatcher<Pod> for Broken {
    fn description(&self) -> &str {
        "broken pods"
    }

    async fn list(&self, _: ListOptions) -> Result<ListStream<Pod>, ListWatchError> {
        panic!("test panic")
    }

    async fn watch(&self, _: WatchOptions) -> Result<WatchStream<Pod>, ListWatchError> {
        panic!("test panic")
    }
}

#[tokio::test(start_paused = true)]
async fn request_after_a_panic_returns_a_new_informer() {
    let simulator = with_pods();
    let factory = factory(&simulator);
    let broken =
        factory.informer_with::<Pod>(|_, options| SharedIndexInformer::new(Arc::new(Broken), options));
    factory.start();
    assert_eq!(within(broken.stopped()).await, StopCause::Panicked);
    let error =
        within(factory.wait_for_cache_sync()).await.expect_err("a panicked informer never syncs").to_string();
    assert!(error.contains("broken pods"), "{error}");
    assert_eq!(factory.informers()[0].state, InformerState::Stopped(StopCause::Panicked));
    assert!(factory.health().has_panicked(), "{}", factory.health());
    let new = factory.core().v1().pods();
    assert_eq!((new.state(), factory.informers().len()), (InformerState::Idle, 1));
    synced(&factory).await;
    assert_eq!(keys(&new).len(), 3);
    factory.shutdown().await;
    let after = factory.core().v1().pods();
    assert_eq!(after.state(), InformerState::Stopped(StopCause::Shutdown), "the same informer was stopped");
}

#[tokio::test(start_paused = true)]
async fn panicked_informer_is_reported_after_the_idle_period() {
    const IDLE: Duration = Duration::from_secs(60);
    let simulator = with_pods();
    let factory = builder(&simulator).stop_idle_after(IDLE).build();
    let broken =
        factory.informer_with::<Pod>(|_, options| SharedIndexInformer::new(Arc::new(Broken), options));
    // The handler ends with the informer, which then looks unused.
    broken.add_handlers(|handlers| handlers).detach();
    factory.start();
    assert_eq!(within(broken.stopped()).await, StopCause::Panicked);
    drop(broken);
    sleep(3 * IDLE).await;
    assert!(factory.health().has_panicked(), "{}", factory.health());
    let new = factory.core().v1().pods();
    within(new.synced().wait()).await.expect("the new informer starts at once");
    assert!(!factory.health().has_panicked(), "{}", factory.health());
    factory.shutdown().await;
}
