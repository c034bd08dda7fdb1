//! What controllers and shared informers promise their users, over objects in memory: no HTTP, and time stands still
//! unless a test moves it. One test per behaviour, most of them after client-go's `controller_test.go` and
//! `shared_informer_test.go`.

mod controller;
mod disruptions;
mod handlers;
mod indices;
mod log;
mod namespaces;
mod oddities;
mod outages;
mod relist;
mod resyncs;
mod runner;
mod stopping;
mod streams;
mod verifying;
mod waiting;
mod write_tracker;

use std::sync::Arc;
use std::time::Duration;

use informer_factory::{
    Cached, EventHandler, HandlerOptions, HandlerRegistration, Handlers, InformerOptions, InformerTask,
    ListerWatcher, ObjectKey, SharedIndexInformer, StopCause, WaitOutcome,
};
use informer_testing::MemorySource;
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

fn source() -> MemorySource<ConfigMap> {
    MemorySource::new("configmaps")
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("shop", name)
}

fn config_map(name: &str, value: &str) -> ConfigMap {
    let mut object = ConfigMap::default();
    object.metadata.namespace = Some("shop".into());
    object.metadata.name = Some(name.into());
    object.data = Some([("value".to_owned(), value.to_owned())].into());
    object
}

fn value_of(object: &ConfigMap) -> &str {
    object.data.as_ref().and_then(|data| data.get("value")).map_or("", String::as_str)
}

fn create(source: &MemorySource<ConfigMap>, name: &str, value: &str) -> Cached<ConfigMap> {
    source.create(config_map(name, value)).expect("a new object")
}

fn update(source: &MemorySource<ConfigMap>, name: &str, value: &str) -> Cached<ConfigMap> {
    source.update(config_map(name, value)).expect("it exists")
}

/// An informer that doesn't run yet.
fn idle(source: &MemorySource<ConfigMap>) -> (SharedIndexInformer<ConfigMap>, InformerTask<ConfigMap>) {
    SharedIndexInformer::new(Arc::new(source.clone()), InformerOptions::new())
}

/// An informer that runs.
struct Running {
    informer: SharedIndexInformer<ConfigMap>,
    shutdown: CancellationToken,
    task: JoinHandle<()>,
}

impl Running {
    fn start(source: &MemorySource<ConfigMap>, options: InformerOptions<ConfigMap>) -> Self {
        Self::over(Arc::new(source.clone()), options)
    }

    fn over(source: Arc<dyn ListerWatcher<ConfigMap>>, options: InformerOptions<ConfigMap>) -> Self {
        Self::run(SharedIndexInformer::new(source, options))
    }

    fn run((informer, task): (SharedIndexInformer<ConfigMap>, InformerTask<ConfigMap>)) -> Self {
        let shutdown = CancellationToken::new();
        let task = tokio::spawn(task.run(shutdown.clone()));
        Self { informer, shutdown, task }
    }

    async fn synced(self) -> Self {
        self.informer.synced().wait().await.expect("it syncs");
        self
    }

    /// Waits until a write is in the store.
    async fn reach(&self, written: &Cached<ConfigMap>) {
        let outcome = self.informer.wait_until(written.resource_version(), Duration::from_secs(600)).await;
        assert_eq!(outcome, WaitOutcome::Reached);
    }

    async fn stop(self) {
        self.shutdown.cancel();
        self.task.await.expect("no panic");
        assert_eq!(self.informer.stopped().await, StopCause::Shutdown);
    }
}

/// What a handler was told.
struct Heard(UnboundedReceiver<String>);

impl Heard {
    /// The next event, waiting for it.
    async fn next(&mut self) -> String {
        self.0.recv().await.expect("the handler is in place")
    }

    /// The next so many events, in the order of their names.
    async fn sorted(&mut self, count: usize) -> Vec<String> {
        let mut events = Vec::new();
        for _ in 0..count {
            events.push(self.next().await);
        }
        events.sort();
        events
    }

    /// What has been told and not been asked for.
    fn rest(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.0.try_recv().ok()).collect()
    }
}

/// A handler that passes on what it is told: `+a=1!` an initial add, `+a=1` an add, `a=1>2` an update, `-a=2` a deletion, `^a=2` a release.
fn recorder() -> (impl EventHandler<ConfigMap>, Heard) {
    let (tell, heard) = unbounded_channel();
    let [add, update, delete, release] = [(); 4].map(|()| tell.clone());
    let handlers = Handlers::<ConfigMap>::new()
        .on_add(move |object, is_in_initial_list| {
            let mark = if is_in_initial_list { "!" } else { "" };
            _ = add.send(format!("+{}={}{mark}", object.key().name(), value_of(object)));
        })
        .on_update(move |old, new| {
            _ = update.send(format!("{}={}>{}", new.key().name(), value_of(old), value_of(new)));
        })
        .on_delete(move |deleted| {
            let last = deleted.last_known().map_or("?", |last| value_of(last));
            _ = delete.send(format!("-{}={last}", deleted.name()));
        })
        .on_release(move |object| _ = release.send(format!("^{}={}", object.name(), value_of(object))));
    (handlers, Heard(heard))
}

fn listen(
    informer: &SharedIndexInformer<ConfigMap>,
    options: &HandlerOptions,
) -> (HandlerRegistration, Heard) {
    let (handler, heard) = recorder();
    (informer.add_event_handler_with(handler, options), heard)
}
