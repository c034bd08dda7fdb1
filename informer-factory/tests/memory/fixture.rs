//! An informer over in-memory objects, and a handler that records its events. The tests of
//! informer-controller include this file.

use std::sync::Arc;
use std::time::Duration;

use informer_core::ListerWatcher;
use informer_factory::status::StopCause;
use informer_factory::{
    Cached, EventHandler, HandlerOptions, HandlerRegistration, Handlers, InformerOptions, InformerTask,
    ObjectKey, SharedIndexInformer, WaitOutcome,
};
use informer_testing::MemorySource;
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) fn source() -> MemorySource<ConfigMap> {
    MemorySource::new("configmaps")
}

pub(crate) fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("shop", name)
}

pub(crate) fn config_map(name: &str, value: &str) -> ConfigMap {
    let mut object = ConfigMap::default();
    object.metadata.namespace = Some("shop".into());
    object.metadata.name = Some(name.into());
    object.data = Some([("value".to_owned(), value.to_owned())].into());
    object
}

pub(crate) fn value_of(object: &ConfigMap) -> &str {
    object.data.as_ref().and_then(|data| data.get("value")).map_or("", String::as_str)
}

pub(crate) fn create(source: &MemorySource<ConfigMap>, name: &str, value: &str) -> Cached<ConfigMap> {
    source.create(config_map(name, value)).expect("a new object")
}

pub(crate) fn update(source: &MemorySource<ConfigMap>, name: &str, value: &str) -> Cached<ConfigMap> {
    source.update(config_map(name, value)).expect("the object exists")
}

/// Creates an informer that is not running yet.
pub(crate) fn idle(source: &MemorySource<ConfigMap>) -> (SharedIndexInformer<ConfigMap>, InformerTask) {
    SharedIndexInformer::new(Arc::new(source.clone()), InformerOptions::new())
}

/// A running informer.
pub(crate) struct Running {
    pub(crate) informer: SharedIndexInformer<ConfigMap>,
    pub(crate) shutdown: CancellationToken,
    pub(crate) task: JoinHandle<()>,
}

impl Running {
    pub(crate) fn start(source: &MemorySource<ConfigMap>, options: InformerOptions<ConfigMap>) -> Self {
        Self::over(Arc::new(source.clone()), options)
    }

    pub(crate) fn over(
        source: Arc<dyn ListerWatcher<ConfigMap>>,
        options: InformerOptions<ConfigMap>,
    ) -> Self {
        Self::run(SharedIndexInformer::new(source, options))
    }

    pub(crate) fn run((informer, task): (SharedIndexInformer<ConfigMap>, InformerTask)) -> Self {
        let shutdown = CancellationToken::new();
        let task = tokio::spawn(task.run(shutdown.clone()));
        Self { informer, shutdown, task }
    }

    pub(crate) async fn synced(self) -> Self {
        self.informer.synced().wait().await.expect("synced");
        self
    }

    /// Waits until a write has reached the store.
    pub(crate) async fn reach(&self, written: &Cached<ConfigMap>) {
        let outcome = self.informer.wait_until(written.resource_version(), Duration::from_secs(600)).await;
        assert_eq!(outcome, WaitOutcome::Reached);
    }

    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        self.task.await.expect("no panic");
        assert_eq!(self.informer.stopped().await, StopCause::Shutdown);
    }
}

/// The events that a handler has recorded.
pub(crate) struct RecordedEvents(UnboundedReceiver<String>);

impl RecordedEvents {
    /// Waits for the next event.
    pub(crate) async fn next(&mut self) -> String {
        self.0.recv().await.expect("the handler is registered")
    }

    /// Waits for `count` events, and returns their texts in sorted order.
    pub(crate) async fn sorted(&mut self, count: usize) -> Vec<String> {
        let mut events = Vec::new();
        for _ in 0..count {
            events.push(self.next().await);
        }
        events.sort();
        events
    }

    /// Returns the recorded events that have not been read.
    pub(crate) fn rest(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.0.try_recv().ok()).collect()
    }
}

/// Returns a handler that records its events: `+a=1!` for an initial add, `+a=1` for an add,
/// `a=1>2` for an update, `-a=2` for a deletion, and `^a=2` for a release.
pub(crate) fn recorder() -> (impl EventHandler<ConfigMap>, RecordedEvents) {
    let (sender, recorded) = unbounded_channel();
    let [add, update, delete, release] = [(); 4].map(|()| sender.clone());
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
    (handlers, RecordedEvents(recorded))
}

pub(crate) fn listen(
    informer: &SharedIndexInformer<ConfigMap>,
    options: &HandlerOptions,
) -> (HandlerRegistration, RecordedEvents) {
    let (handler, recorded) = recorder();
    (informer.add_event_handler_with(handler, options), recorded)
}

/// Formats an object as `namespace/name=value`.
pub(crate) fn shown(object: &Cached<ConfigMap>) -> String {
    format!("{}={}", object.key(), value_of(object))
}
