//! Shared parts of the informer benchmarks: pods, a source of prepared batches, handlers that count
//! events, and the format of printed results.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::{StreamExt, stream};
use informer_core::{
    EventHandler, HandlerOptions, HandlerRegistration, ListEnd, ListOptions, ListPart, ListStream,
    ListWatchError, ListerWatcher, WatchEvent, WatchOptions, WatchStream,
};
use informer_factory::{Cached, InformerOptions, SharedIndexInformer};
use k8s_openapi::api::core::v1::{Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use tokio::runtime::Runtime;
use tokio::sync::{Mutex, Notify, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The number of pods.
pub(crate) const KEYS: u64 = 10_000;
const NODES: u64 = 200;
/// The distance between the keys of consecutive updates. It is coprime to the number of keys, so
/// that the updates visit every key.
const STRIDE: u64 = 7_919;

/// An object with a node name and few other fields.
pub(crate) trait Sample: Resource + Send + Sync + 'static {
    fn sample(n: u64, version: u64) -> Self;
    fn node(&self) -> Option<String>;
}

impl Sample for Pod {
    fn sample(n: u64, version: u64) -> Self {
        let spec = PodSpec { node_name: Some(node_name(n)), ..PodSpec::default() };
        Self { metadata: metadata(n, version), spec: Some(spec), ..Self::default() }
    }

    fn node(&self) -> Option<String> {
        self.spec.as_ref().and_then(|spec| spec.node_name.clone())
    }
}

/// A slim view of a pod, with the fields that a scheduler could cache.
pub(crate) struct Placement {
    metadata: ObjectMeta,
    node_name: Option<String>,
}

impl Sample for Placement {
    fn sample(n: u64, version: u64) -> Self {
        Self { metadata: metadata(n, version), node_name: Some(node_name(n)) }
    }

    fn node(&self) -> Option<String> {
        self.node_name.clone()
    }
}

impl Resource for Placement {
    type DynamicType = ();
    type Scope = <Pod as Resource>::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        Pod::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        Pod::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        Pod::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        Pod::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

fn metadata(n: u64, version: u64) -> ObjectMeta {
    ObjectMeta {
        namespace: Some(format!("namespace-{}", n % 50)),
        name: Some(format!("deployment-7d9f8b6c5d-{n:06}")),
        uid: Some(format!("0f7e3c1a-9b2d-4c5e-8f60-{n:012x}")),
        resource_version: Some(version.to_string()),
        ..ObjectMeta::default()
    }
}

fn node_name(n: u64) -> String {
    format!("node-{}", n % NODES)
}

/// Watch events that are prepared before a measurement, one `Vec` for each batch.
pub(crate) type Round<K> = VecDeque<Vec<WatchEvent<K>>>;

/// Creates updates that visit all keys in turn.
#[derive(Debug)]
pub(crate) struct Updates {
    n: u64,
    pub(crate) version: u64,
}

impl Updates {
    pub(crate) fn new() -> Self {
        Self { n: 0, version: KEYS }
    }

    pub(crate) fn round<K: Sample>(&mut self, count: usize, batch: usize) -> Round<K> {
        let mut update = || {
            self.n = (self.n + STRIDE) % KEYS;
            self.version += 1;
            WatchEvent::Modified(K::sample(self.n, self.version).into())
        };
        (0..count.div_ceil(batch)).map(|_| (0..batch).map(|_| update()).collect()).collect()
    }
}

/// A source that lists [`KEYS`] objects at the resource version [`KEYS`]. Each poll of its watch
/// returns the next prepared batch.
struct Prepared<K> {
    rounds: Arc<Mutex<mpsc::UnboundedReceiver<Round<K>>>>,
}

#[async_trait]
impl<K: Sample> ListerWatcher<K> for Prepared<K> {
    fn description(&self) -> &str {
        "pods"
    }

    async fn list(&self, _: ListOptions) -> Result<ListStream<K>, ListWatchError> {
        let items = (0..KEYS).map(|n| Ok(K::sample(n, n + 1).into())).collect();
        let end = ListEnd { resource_version: KEYS.into(), ..ListEnd::default() };
        Ok(stream::iter([Ok(ListPart::Items(items)), Ok(ListPart::End(end))]).boxed())
    }

    async fn watch(&self, _: WatchOptions) -> Result<WatchStream<K>, ListWatchError> {
        let start = (Arc::clone(&self.rounds), Round::new());
        let batches = stream::unfold(start, |(rounds, mut round)| async move {
            while round.is_empty() {
                round = rounds.lock().await.recv().await?;
            }
            // Yields to other tasks, like a source that reads from a socket.
            tokio::task::consume_budget().await;
            round.pop_front().map(|batch| (Ok(batch), (rounds, round)))
        });
        Ok(batches.boxed())
    }
}

/// Signals when each handler has received the expected updates.
#[derive(Debug, Default)]
struct Countdown {
    handlers: AtomicUsize,
    /// Only updates to versions newer than this version count. With zero, all updates count.
    after: AtomicU64,
    done: Notify,
}

struct Counter {
    remaining: Arc<AtomicUsize>,
    countdown: Arc<Countdown>,
}

impl<K: 'static> EventHandler<K> for Counter {
    fn on_update(&self, _old: &Cached<K>, new: &Cached<K>) {
        let after = self.countdown.after.load(Ordering::Relaxed);
        if after != 0 && !black_box(new).resource_version().is_newer_than(&after.into()) {
            return;
        }
        if self.remaining.fetch_sub(1, Ordering::Relaxed) == 1
            && self.countdown.handlers.fetch_sub(1, Ordering::AcqRel) == 1
        {
            self.countdown.done.notify_one();
        }
    }
}

/// A running informer with handlers that count updates.
pub(crate) struct Bench<K> {
    runtime: Runtime,
    sender: mpsc::UnboundedSender<Round<K>>,
    countdown: Arc<Countdown>,
    remaining: Vec<Arc<AtomicUsize>>,
    _registrations: Vec<HandlerRegistration>,
    shutdown: CancellationToken,
    run: JoinHandle<()>,
}

impl<K: Sample> Bench<K> {
    /// Starts an informer with `handlers` handlers that count updates, and waits until these are
    /// synced. `and_add` can add other handlers.
    pub(crate) fn start(
        handlers: usize,
        options: &HandlerOptions,
        and_add: impl FnOnce(&SharedIndexInformer<K>),
    ) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build();
        let runtime = runtime.expect("the runtime starts");
        let (sender, rounds) = mpsc::unbounded_channel();
        let source = Arc::new(Prepared { rounds: Arc::new(Mutex::new(rounds)) });
        let (informer, task) = SharedIndexInformer::new(source, InformerOptions::new());
        informer.add_index("node", K::node).expect("the index name is unused");
        let countdown = Arc::<Countdown>::default();
        let remaining: Vec<_> = (0..handlers).map(|_| Arc::<AtomicUsize>::default()).collect();
        let registrations: Vec<_> = remaining
            .iter()
            .map(|remaining| Counter { remaining: Arc::clone(remaining), countdown: Arc::clone(&countdown) })
            .map(|counter| informer.add_event_handler_with(counter, options))
            .collect();
        and_add(&informer);
        let shutdown = CancellationToken::new();
        let run = runtime.spawn(task.run(shutdown.clone()));
        for registration in &registrations {
            runtime.block_on(registration.synced().wait()).expect("the handler syncs");
        }
        Self { runtime, sender, countdown, remaining, _registrations: registrations, shutdown, run }
    }

    /// Sends a round to the informer. Returns the time until each handler has received `updates`
    /// updates to versions newer than `after`. If `after` is zero, all updates count.
    pub(crate) fn deliver(&self, round: Round<K>, after: u64, updates: usize) -> Duration {
        self.countdown.after.store(after, Ordering::Relaxed);
        for remaining in &self.remaining {
            remaining.store(updates, Ordering::Relaxed);
        }
        self.countdown.handlers.store(self.remaining.len(), Ordering::Release);
        let started = Instant::now();
        self.sender.send(round).expect("the informer runs");
        self.runtime.block_on(self.countdown.done.notified());
        started.elapsed()
    }

    pub(crate) fn stop(self) {
        self.shutdown.cancel();
        self.runtime.block_on(self.run).expect("the informer does not panic");
    }
}

/// Prints a result in the format that `cargo xtask bench` reads.
pub(crate) fn report(case: &str, value: f64, unit: &str) {
    println!("bench: {case} = {value:.1} {unit}");
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
