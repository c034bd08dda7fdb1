//! An informer's life: idle, running, stopped, and why.

use std::sync::Arc;

use informer_factory::{InformerOptions, InformerState, ReflectorConfig, SharedIndexInformer, StopCause};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio_util::sync::CancellationToken;

use crate::{Running, create, source};

#[tokio::test(start_paused = true)]
async fn an_informer_is_idle_then_running_then_stopped_and_its_store_can_still_be_read() {
    let source = source();
    create(&source, "a", "1");
    let (informer, task) = SharedIndexInformer::new(Arc::new(source.clone()), InformerOptions::new());
    assert_eq!(informer.state(), InformerState::Idle);
    let shutdown = CancellationToken::new();
    let run = tokio::spawn(task.run(shutdown.clone()));
    informer.synced().wait().await.expect("it syncs");
    assert_eq!(informer.state(), InformerState::Running);
    shutdown.cancel();
    run.await.expect("no panic");
    assert_eq!(informer.state(), InformerState::Stopped(StopCause::Shutdown));
    assert_eq!((informer.indexer().len(), source.open_watches()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn i12_an_informer_whose_task_is_dropped_says_so_and_nobody_waits_on() {
    let (informer, task) = SharedIndexInformer::new(Arc::new(source()), InformerOptions::new());
    let registration = informer.add_handlers(|handlers| handlers);
    drop(task);
    assert_eq!(informer.stopped().await, StopCause::Dropped);
    assert!(informer.synced().wait().await.is_err());
    assert!(registration.synced().wait().await.is_err());
    registration.remove_and_wait().await;

    let running = Running::start(&source(), InformerOptions::new()).synced().await;
    running.task.abort();
    assert_eq!(running.informer.stopped().await, StopCause::Dropped);
    let late = running.informer.add_handlers(|handlers| handlers);
    assert!(late.synced().wait().await.is_err(), "a stopped informer has nothing to say");
}

#[tokio::test(start_paused = true)]
async fn i12_an_informer_whose_task_panicked_says_so() {
    /// Panics when it is asked to list.
    struct Broken;

    #[async_trait::async_trait]
    impl informer_factory::ListerWatcher<ConfigMap> for Broken {
        fn description(&self) -> &str {
            "broken"
        }

        async fn list(
            &self,
            _: informer_core::ListOptions,
        ) -> Result<informer_core::ListStream<ConfigMap>, informer_factory::ListWatchError> {
            panic!("told to")
        }

        async fn watch(
            &self,
            _: informer_core::WatchOptions,
        ) -> Result<informer_core::WatchStream<ConfigMap>, informer_factory::ListWatchError> {
            panic!("told to")
        }
    }

    let options = InformerOptions::new().reflector(ReflectorConfig::new());
    let (informer, task) = SharedIndexInformer::new(Arc::new(Broken), options);
    let registration = informer.add_handlers(|handlers| handlers);
    let run = tokio::spawn(task.run(CancellationToken::new()));
    assert_eq!(informer.stopped().await, StopCause::Panicked);
    assert!(run.await.expect_err("it panicked").is_panic());
    assert!(registration.synced().wait().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn several_informers_of_one_type_run_side_by_side() {
    let (first, second) = (source(), source());
    create(&first, "a", "1");
    create(&second, "b", "2");
    let (one, two) = (
        Running::start(&first, InformerOptions::new()).synced().await,
        Running::start(&second, InformerOptions::new()).synced().await,
    );
    assert!(one.informer.indexer().get_by_key("shop/a").is_some());
    assert!(two.informer.indexer().get_by_key("shop/a").is_none());
    one.stop().await;
    assert_eq!(two.informer.state(), InformerState::Running);
    two.stop().await;
}
