//! Measures the peak memory during a list, relative to the memory of the idle informer.
//!
//! Each case has an initial list of 100,000 pods of 9 KB, and three relists: without changed pods,
//! with a tenth of the pods changed, and with all pods changed.
//! `cargo bench -p informer-factory --bench lists`; `-- --quick` for 5,000 pods.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use futures::future::{Ready, ready};
use futures::{StreamExt, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use http_body_util::combinators::UnsyncBoxBody;
use informer_factory::{HandlerRegistration, Handlers, InformerOptions, SharedIndexInformer};
use informer_reflector::{KubeListWatch, ReflectorConfig, Storage};
use informer_testing::{ClusterSpec, Simulator};
use k8s_openapi::api::core::v1::Pod;
use kube::Resource;
use kube::client::Body;
use kube::core::PartialObjectMeta;
use peak_alloc::PeakAlloc;
use serde::de::DeserializeOwned;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// The number of pods in one chunk of a response body.
const PIECE: usize = 10;

fn main() {
    let quick = std::env::args().any(|arg| arg == "--quick");
    let pods = if quick { 5_000 } else { 100_000 };
    let runtime = tokio::runtime::Runtime::new().expect("the runtime starts");
    runtime.block_on(async {
        let server = Server {
            templates: Arc::new(templates().await),
            pods,
            expire: Arc::default(),
            changed: Arc::default(),
        };
        measure::<Pod>("streaming list", &server, InformerOptions::new()).await;
        measure::<Pod>("list in pages", &server, in_pages()).await;
        let encoded = InformerOptions::new().storage(Storage::Encoded);
        measure::<Pod>("streaming list, encoded", &server, encoded).await;
        // Metadata objects are smaller than pods, so the additional memory that a list needs is a
        // larger part of the peak.
        measure::<PartialObjectMeta<Pod>>("streaming list of metadata", &server, InformerOptions::new())
            .await;
        measure::<PartialObjectMeta<Pod>>("list of metadata in pages", &server, in_pages()).await;
    });
}

fn in_pages<K: kube::Resource + 'static>() -> InformerOptions<K> {
    InformerOptions::new().reflector(ReflectorConfig::new().streaming_lists(false).page_size(500))
}

async fn measure<K>(case: &str, server: &Server, options: InformerOptions<K>)
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
{
    // The change counters start at zero in each case. Otherwise, the versions of the pods would
    // exceed the constant version of the lists in a later case.
    let server = &Server { changed: Arc::default(), ..server.clone() };
    let before = ALLOCATED.current_usage();
    ALLOCATED.reset_peak_usage();
    let client = kube::Client::new(server.clone(), "default");
    let (informer, task) = SharedIndexInformer::new(Arc::new(KubeListWatch::<K>::all(client)), options);
    let handler = informer.add_event_handler(Handlers::<K>::new().on_add(|_, _| {}));
    let (shutdown, started) = (CancellationToken::new(), Instant::now());
    let task = tokio::spawn(task.run(shutdown.clone()));
    informer.synced().wait().await.expect("the informer syncs");
    report(&format!("{case}, first: time"), started.elapsed().as_secs_f64(), "s");
    at_rest(&informer, &handler).await;
    assert_eq!(informer.indexer().len(), server.pods);
    let steady = ALLOCATED.current_usage() - before;
    report(&format!("{case}: idle memory"), steady as f64 / 1e6, "MB");
    let over_steady = || (ALLOCATED.peak_usage() - before) as f64 / steady as f64;
    report_peak(&format!("{case}, first"), over_steady(), true);

    // Both states of a changed object are in memory until the handlers have received them. So the
    // peak grows with the number of changes.
    for (what, one_in) in [("unchanged", 0), ("a tenth changed", 10), ("all changed", 1)] {
        ALLOCATED.reset_peak_usage();
        let relist = Instant::now();
        server.change(one_in);
        server.expire.notify_one();
        let mut status = informer.status().clone();
        while status.health().is_live() {
            status.health_changed().await;
        }
        at_rest(&informer, &handler).await;
        report(&format!("{case}, {what}: time"), relist.elapsed().as_secs_f64(), "s");
        report_peak(&format!("{case}, {what}"), over_steady(), one_in != 1);
    }
    shutdown.cancel();
    task.await.expect("the informer does not panic");
}

/// Reports the peak memory relative to the memory of the idle informer. If `is_goal` is `true`,
/// panics if the peak is 1.3 times the idle memory or more. This limit is the same on every
/// machine, because the benchmark counts allocated bytes.
fn report_peak(case: &str, over_steady: f64, is_goal: bool) {
    report(&format!("{case}: peak relative to idle memory"), over_steady, "times");
    assert!(
        !is_goal || over_steady < 1.3,
        "{case}: the peak is {over_steady:.3} times the memory of the idle informer; the limit is 1.3"
    );
}

/// Waits until the informer watches and the handler has received all pending events.
async fn at_rest<K>(informer: &SharedIndexInformer<K>, handler: &HandlerRegistration)
where
    K: Resource + Send + Sync + 'static,
{
    let mut status = informer.status().clone();
    while !status.health().is_live() {
        status.health_changed().await;
    }
    while handler.stats().pending > 0 {
        tokio::task::yield_now().await;
    }
}

fn report(case: &str, value: f64, unit: &str) {
    println!("bench: {case} = {value:.3} {unit}");
}

/// Returns pods as JSON text. Each text is split in three places, where the server inserts the
/// pod's number (in name and UID) and its resource version.
async fn templates() -> Vec<[String; 4]> {
    let simulator = Simulator::builder().built_in_kinds().start().await.expect("the simulator starts");
    let spec = ClusterSpec { pods: 64, ..ClusterSpec::default() };
    simulator.populate(&spec).expect("the simulator accepts the pods");
    let pods = simulator.list_all::<Pod>().expect("pods are served");
    simulator.shutdown().await;
    let template = |mut pod: Pod| {
        pod.metadata.name = Some("pod-¤".into());
        pod.metadata.uid = Some("00000000-0000-4000-8000-¤".into());
        pod.metadata.resource_version = Some("¤".into());
        let text = serde_json::to_string(&pod).expect("a pod can be serialized");
        let parts: Vec<String> = text.split('¤').map(str::to_owned).collect();
        parts.try_into().expect("only the three placeholders contain this character")
    };
    pods.into_iter().map(template).collect()
}

/// A server that serves lists of pods, and watches without events.
#[derive(Clone)]
struct Server {
    templates: Arc<Vec<[String; 4]>>,
    pods: usize,
    /// When notified, ends the open watch with the error 410 (expired).
    expire: Arc<Notify>,
    changed: Arc<Changed>,
}

/// Counts how often all pods, and every tenth pod, have changed. Open watches do not report these
/// changes.
#[derive(Default)]
struct Changed {
    all: AtomicUsize,
    a_tenth: AtomicUsize,
}

impl Server {
    /// Changes every `one_in`-th pod: all pods (1), every tenth (10), or none (0).
    fn change(&self, one_in: usize) {
        match one_in {
            0 => {}
            1 => _ = self.changed.all.fetch_add(1, Ordering::Relaxed),
            _ => _ = self.changed.a_tenth.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Returns the pod with this number as JSON text. The pod's version is lower than the version
    /// of every list.
    fn pod(&self, number: usize) -> String {
        let [start, named, versioned, end] = &self.templates[number % self.templates.len()];
        let a_tenth =
            if number.is_multiple_of(10) { self.changed.a_tenth.load(Ordering::Relaxed) } else { 0 };
        let changes = a_tenth + self.changed.all.load(Ordering::Relaxed);
        let (number, version) = (number + 1, number + 1 + changes * self.pods);
        format!("{start}{number}{named}{version}{versioned}{number}{end}")
    }

    /// Returns the pods with these numbers as JSON text, in chunks of [`PIECE`].
    fn pieces(
        &self,
        pods: std::ops::Range<usize>,
        write: impl Fn(usize, String) -> String + Send + 'static,
    ) -> impl futures::Stream<Item = String> + Send + 'static {
        let server = self.clone();
        stream::iter(pods.clone().step_by(PIECE)).map(move |first| {
            let piece = first..(first + PIECE).min(pods.end);
            piece.map(|number| write(number, server.pod(number))).collect()
        })
    }

    fn list(&self, first: usize, limit: usize) -> impl futures::Stream<Item = String> + Send + 'static {
        let end = (first + limit).min(self.pods);
        let token = if end < self.pods { end.to_string() } else { String::new() };
        let head = format!(
            r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"1000000","continue":"{token}"}},"items":["#
        );
        let items =
            self.pieces(first..end, move |number, pod| if number == first { pod } else { format!(",{pod}") });
        stream::iter([head]).chain(items).chain(stream::iter(["]}".to_owned()]))
    }

    fn watch(&self, is_list: bool) -> impl futures::Stream<Item = String> + Send + 'static {
        let event = |kind: &str, object: &str| format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n");
        let initial = self.pieces(0..if is_list { self.pods } else { 0 }, move |_, pod| event("ADDED", &pod));
        let end = r#"{"metadata":{"resourceVersion":"1000000","annotations":{"k8s.io/initial-events-end":"true"}}}"#;
        let end = is_list.then(|| event("BOOKMARK", end));
        let expired =
            event("ERROR", r#"{"kind":"Status","code":410,"reason":"Expired","message":"too old"}"#);
        let expire = Arc::clone(&self.expire);
        let expired = stream::once(async move {
            expire.notified().await;
            expired
        });
        initial.chain(stream::iter(end)).chain(expired)
    }
}

impl tower::Service<Request<Body>> for Server {
    type Response = Answer;
    type Error = Infallible;
    type Future = Ready<Result<Answer, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let query = request.uri().query().unwrap_or_default();
        let value = |name: &str| {
            query
                .split('&')
                .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')?.parse::<usize>().ok())
        };
        let body = if query.contains("watch=1") {
            self.watch(query.contains("sendInitialEvents=true")).boxed()
        } else {
            self.list(value("continue").unwrap_or(0), value("limit").unwrap_or(self.pods)).boxed()
        };
        let frames = body.map(|text| Ok(Frame::data(Bytes::from(text))));
        ready(Ok(Response::new(UnsyncBoxBody::new(StreamBody::new(frames)))))
    }
}
