//! An informer's states: idle, running, stopped, and the cause of the stop.

use std::convert::Infallible;
use std::sync::{Arc, mpsc};
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use informer_core::ListerWatcher;
use informer_core::{ListOptions, ListStream, WatchOptions, WatchStream};
use informer_factory::status::{InformerState, StopCause};
use informer_factory::{InformerOptions, ListWatchError, SharedIndexInformer};
use informer_reflector::ReflectorConfig;
use informer_testing::MemorySource;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{Running, create, source};

#[tokio::test(start_paused = true)]
async fn state_is_idle_then_running_then_stopped() {
    let source = source();
    create(&source, "a", "1");
    let (informer, task) = SharedIndexInformer::new(Arc::new(source.clone()), InformerOptions::new());
    assert_eq!(informer.state(), InformerState::Idle);
    let shutdown = CancellationToken::new();
    let run = tokio::spawn(task.run(shutdown.clone()));
    informer.synced().wait().await.expect("synced");
    assert_eq!(informer.state(), InformerState::Running);
    shutdown.cancel();
    run.await.expect("no panic");
    assert_eq!(informer.state(), InformerState::Stopped(StopCause::Shutdown));
    assert_eq!((informer.indexer().len(), source.open_watches()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn i12_dropped_task_ends_all_waits() {
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
    assert!(late.synced().wait().await.is_err(), "a handler of a stopped informer never syncs");
}

#[tokio::test(start_paused = true)]
async fn i12_informer_whose_task_panicked_reports_it() {
    /// A source that panics on each request.
    struct Broken;

    #[async_trait::async_trait]
    impl informer_core::ListerWatcher<ConfigMap> for Broken {
        fn description(&self) -> &str {
            "broken"
        }

        async fn list(
            &self,
            _: informer_core::ListOptions,
        ) -> Result<informer_core::ListStream<ConfigMap>, informer_factory::ListWatchError> {
            panic!("test panic")
        }

        async fn watch(
            &self,
            _: informer_core::WatchOptions,
        ) -> Result<informer_core::WatchStream<ConfigMap>, informer_factory::ListWatchError> {
            panic!("test panic")
        }
    }

    let options = InformerOptions::new().reflector(ReflectorConfig::new());
    let (informer, task) = SharedIndexInformer::new(Arc::new(Broken), options);
    let registration = informer.add_handlers(|handlers| handlers);
    let run = tokio::spawn(task.run(CancellationToken::new()));
    assert_eq!(informer.stopped().await, StopCause::Panicked);
    assert!(run.await.expect_err("a panic").is_panic());
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

type Log = Arc<Mutex<Vec<&'static str>>>;

/// Adds its text to a log when it is dropped.
struct LogsDrop(Log, &'static str);

impl Drop for LogsDrop {
    fn drop(&mut self) {
        self.0.lock().push(self.1);
    }
}

/// Adds a text to a log when it is dropped. Dropping `_gone` also disconnects the channel, so the
/// receiver stops waiting.
struct WatchDrop {
    _log: LogsDrop,
    _gone: mpsc::Sender<Infallible>,
}

/// A source that cancels its informer after the second watch event.
struct StopsAfterTwoEvents {
    source: MemorySource<ConfigMap>,
    shutdown: CancellationToken,
    logs_drop: Mutex<Option<WatchDrop>>,
}

#[async_trait]
impl ListerWatcher<ConfigMap> for StopsAfterTwoEvents {
    fn description(&self) -> &str {
        "configmaps"
    }

    async fn list(&self, options: ListOptions) -> Result<ListStream<ConfigMap>, ListWatchError> {
        self.source.list(options).await
    }

    async fn watch(&self, options: WatchOptions) -> Result<WatchStream<ConfigMap>, ListWatchError> {
        let (shutdown, logs_drop) = (self.shutdown.clone(), self.logs_drop.lock().take());
        let two = self.source.watch(options).await?.take(2);
        let stop = futures::stream::poll_fn(move |_| {
            let _captured = &logs_drop;
            shutdown.cancel();
            Poll::Pending
        });
        Ok(two.chain(stop).boxed())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i12_stop_order_is_watch_queue_store_handlers() {
    let (source, shutdown, log) = (source(), CancellationToken::new(), Log::default());
    let (gone, watch_gone) = mpsc::channel();
    let logs_drop = WatchDrop { _log: LogsDrop(Arc::clone(&log), "watch"), _gone: gone };
    let stops = StopsAfterTwoEvents {
        source: source.clone(),
        shutdown: shutdown.clone(),
        logs_drop: Mutex::new(Some(logs_drop)),
    };
    let (informer, task) = SharedIndexInformer::new(Arc::new(stops), InformerOptions::new());
    let (stored, storing, watch_gone) = (Arc::clone(&log), Arc::new(Notify::new()), Mutex::new(watch_gone));
    let is_storing = Arc::clone(&storing);
    let index = informer.add_index("log", move |object: &ConfigMap| {
        match object.name_any().as_str() {
            // Blocks until the watch has ended, so that later events can only be queued.
            "early" => {
                is_storing.notify_one();
                _ = tokio::task::block_in_place(|| watch_gone.lock().recv_timeout(Duration::from_secs(60)));
            }
            "late" => stored.lock().push("store"),
            _ => {}
        }
        None::<String>
    });
    index.expect("a free index name");
    let logs_drop = LogsDrop(Arc::clone(&log), "handler");
    let registration = informer.add_handlers(move |handlers| {
        handlers.on_add(move |_, _| {
            let _captured = &logs_drop;
        })
    });
    let run = tokio::spawn(task.run(shutdown));
    informer.synced().wait().await.expect("synced");
    source.wait_for_watches(1).await;
    create(&source, "early", "1");
    storing.notified().await;
    let late = create(&source, "late", "2");
    assert_eq!(informer.stopped().await, StopCause::Shutdown);
    run.await.expect("no panic");
    assert_eq!(*log.lock(), ["watch", "store", "handler"]);
    assert!(informer.get(late.key()).is_some());
    drop(registration);
}
