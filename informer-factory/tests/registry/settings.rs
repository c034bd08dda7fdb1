//! Builder settings: for all informers, for informers of one type, and together with a derive.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt;
use informer_factory::{
    Cached, Event, HandlerOptions, Informer, InformerOptions, PrunePaths, SharedIndexInformer,
    SharedInformerFactory, WaitOutcome,
};
use informer_reflector::{KubeListWatch, ReflectorConfig, Storage};
use informer_testing::{CannedResponse, RequestFilter, Simulator, StreamingLists, Verb};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::PartialObjectMeta;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::{builder, factory, keys, synced, with_pods, within};

/// A view of pods whose derive prunes annotations and sets a resync period of ten minutes.
#[derive(Informer, Deserialize)]
#[informer(
    group = "",
    version = "v1",
    kind = "Pod",
    namespaced,
    prune("metadata.annotations"),
    default_resync = "10m"
)]
struct Placed {
    metadata: ObjectMeta,
}

fn metadata_of<K>(informer: &SharedIndexInformer<K>, meta: impl Fn(&K) -> &ObjectMeta) -> ObjectMeta
where
    K: Send + Sync + 'static,
{
    let pod = informer.indexer().get_by_key("shop/web").expect("the object exists");
    meta(&pod).clone()
}

/// Returns the seconds until the next resync.
async fn first_resync<K: Send + Sync + 'static>(informer: &SharedIndexInformer<K>) -> u64 {
    let started = Instant::now();
    let mut events = informer.events(&HandlerOptions::default());
    while let Some(event) = within(events.next()).await {
        if matches!(event, Event::Resynced(_)) {
            return started.elapsed().as_secs();
        }
    }
    unreachable!("the stream does not end")
}

#[tokio::test(start_paused = true)]
async fn type_settings_transform_and_prune_only_their_type() {
    let simulator = with_pods();
    let no_annotations = PrunePaths::default().with_path("metadata.annotations").expect("the path is valid");
    let factory = builder(&simulator)
        .configure::<Pod>(|pods| pods.prune(no_annotations))
        .configure::<Pod>(|pods| {
            pods.transform(|pod| {
                pod.spec = None;
                Ok::<_, String>(())
            })
        })
        .build();
    let (pods, metadata) = (factory.core().v1().pods(), factory.metadata().of::<Pod>());
    synced(&factory).await;
    let whole = metadata_of(&pods, |pod| &pod.metadata);
    assert!(whole.annotations.is_none() && whole.labels.is_some(), "{whole:?}");
    assert!(pods.indexer().list().iter().all(|pod| pod.spec.is_none()));
    assert!(metadata_of(&metadata, |pod| &pod.metadata).annotations.is_some());
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn metadata_transform_runs_before_the_transform_of_a_type() {
    let simulator = with_pods();
    let factory = builder(&simulator)
        .transform_metadata(|metadata| metadata.annotations = None)
        .configure::<Pod>(|pods| {
            pods.transform(|pod| match &pod.metadata.annotations {
                None if pod.metadata.namespace.as_deref() == Some("else") => Err("refused namespace"),
                None => Ok(()),
                Some(_) => Err("annotated"),
            })
        })
        .build();
    let (pods, metadata) = (factory.core().v1().pods(), factory.informer::<PartialObjectMeta<Pod>>());
    synced(&factory).await;
    assert!(metadata_of(&metadata, |pod| &pod.metadata).annotations.is_none());
    assert_eq!(crate::keys(&pods), ["shop/db", "shop/web"]);
    let quarantined = pods.status().quarantined();
    assert!(quarantined.len() == 1 && quarantined[0].error.contains("refused namespace"), "{quarantined:?}");
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn resync_period_of_type_precedes_factory_and_derive() {
    let simulator = with_pods();
    let nothing = builder(&simulator).build();
    let for_all = builder(&simulator).default_resync(Duration::from_secs(1_800)).build();
    let for_type = builder(&simulator)
        .default_resync(Duration::from_secs(3_600))
        .configure::<Placed>(|pods| pods.resync_period(Duration::from_secs(60)))
        .build();
    for (factory, expected) in [(nothing, 600), (for_all, 1_800), (for_type, 60)] {
        let pods = factory.core().v1().placeds();
        synced(&factory).await;
        assert_eq!(first_resync(&pods).await, expected);
        factory.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn zero_resync_period_overrides_the_factory_period() {
    let simulator = with_pods();
    let factory = builder(&simulator)
        .default_resync(Duration::from_secs(60))
        .configure::<Pod>(|pods| pods.resync_period(Duration::ZERO))
        .build();
    let (pods, slim) = (factory.core().v1().pods(), factory.core().v1().placeds());
    synced(&factory).await;
    let mut events = pods.events(&HandlerOptions::default());
    assert_eq!(first_resync(&slim).await, 60);
    while let Some(Some(event)) = futures::FutureExt::now_or_never(events.next()) {
        assert!(matches!(event, Event::Added { .. }), "{event:?}");
    }
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn prune_paths_of_the_builder_replace_those_of_the_derive() {
    let simulator = with_pods();
    let no_generation = PrunePaths::default().with_path("metadata.generation").expect("the path is valid");
    let derived = builder(&simulator).build();
    let built = builder(&simulator).configure::<Placed>(|pods| pods.prune(no_generation)).build();
    for (factory, annotations_are_pruned) in [(derived, true), (built, false)] {
        let pods = factory.core().v1().placeds();
        synced(&factory).await;
        let metadata = metadata_of(&pods, |pod| &pod.metadata);
        assert_eq!(metadata.annotations.is_none(), annotations_are_pruned);
        assert_eq!(metadata.generation.is_some(), annotations_are_pruned);
        factory.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn page_size_applies_to_all_types_or_to_one() {
    let simulator = with_pods();
    let factory = builder(&simulator)
        .reflector(ReflectorConfig::new().streaming_lists(false).page_size(2))
        .configure::<Node>(|nodes| nodes.reflector(|all| all.page_size(7)))
        .build();
    drop((factory.core().v1().pods(), factory.core().v1().nodes()));
    synced(&factory).await;
    for (path, expected) in [("/api/v1/pods", "2"), ("/api/v1/nodes", "7")] {
        let lists = simulator.requests(&RequestFilter::verb(Verb::List).path(path));
        assert_eq!(lists[0].parameter("limit").as_deref(), Some(expected), "{path}");
    }
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn backoff_of_the_factory_applies() {
    let simulator = with_pods();
    let down = CannedResponse::failure(http::StatusCode::INTERNAL_SERVER_ERROR, "InternalError", "because");
    simulator.fail_next(10, RequestFilter::any().path("/api/v1/pods"), down);
    let wait = Duration::from_millis(20);
    let factory = builder(&simulator)
        .reflector(ReflectorConfig::new().backoff(wait, wait).streaming_lists(false))
        .build();
    let pods = factory.core().v1().pods();
    let started = Instant::now();
    synced(&factory).await;
    assert_eq!(keys(&pods).len(), 3);
    assert!(started.elapsed() < wait * 30, "{:?} for ten waits", started.elapsed());
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn watch_timeout_applies_to_all_types_or_to_one() {
    let simulator = with_pods();
    let factory = builder(&simulator)
        .reflector(ReflectorConfig::new().watch_timeout(Duration::from_secs(1_200)))
        .configure::<Node>(|nodes| nodes.reflector(|all| all.watch_timeout(Duration::from_secs(3_600))))
        .build();
    drop((factory.core().v1().pods(), factory.core().v1().nodes()));
    synced(&factory).await;
    for (path, least) in [("/api/v1/pods", 1_200), ("/api/v1/nodes", 3_600)] {
        let watches = simulator.requests(&crate::watches().path(path));
        let seconds: u64 =
            watches[0].parameter("timeoutSeconds").expect("a timeout").parse().expect("a number");
        assert!((least..=2 * least).contains(&seconds), "{path} for {seconds} s");
    }
    factory.shutdown().await;
}

/// Waits for `count` requests, and returns the seconds from `started` until then.
async fn after(simulator: &Simulator, started: Instant, filter: RequestFilter, count: usize) -> u64 {
    within(simulator.wait_for_requests(&filter, count)).await;
    started.elapsed().as_secs()
}

#[tokio::test(start_paused = true)]
async fn watch_idle_timeout_applies_for_all_or_a_type() {
    let simulator = with_pods();
    let factory = builder(&simulator)
        .reflector(
            ReflectorConfig::new()
                .streaming_lists(false)
                .watch_timeout(Duration::from_secs(3_600))
                .watch_idle_timeout(Duration::from_secs(200)),
        )
        .configure::<Node>(|nodes| nodes.reflector(|all| all.watch_idle_timeout(Duration::from_secs(300))))
        .build();
    let (pods, nodes) = (factory.core().v1().pods(), factory.core().v1().nodes());
    synced(&factory).await;
    let silent = Instant::now() + Duration::from_secs(60);
    tokio::time::sleep_until(silent + Duration::from_secs(2)).await;
    // Each watch has received a bookmark, so the informer expects more bookmarks.
    simulator.lose_bookmarks(true);
    for (path, expected) in [("/api/v1/pods", 200), ("/api/v1/nodes", 300)] {
        let waited = after(&simulator, silent, crate::watches().path(path), 2).await;
        assert!((expected..=expected + 3).contains(&waited), "{path} after {waited} s");
    }
    drop((pods, nodes));
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn list_stall_timeout_applies_for_all_or_a_type() {
    let simulator =
        Simulator::builder().built_in_kinds().streaming_lists(StreamingLists::Ignored).start_in_process();
    let factory = builder(&simulator)
        .reflector(ReflectorConfig::new().list_stall_timeout(Duration::from_secs(2)))
        .configure::<Node>(|nodes| nodes.reflector(|all| all.list_stall_timeout(Duration::from_secs(30))))
        .build();
    let (pods, nodes) = (factory.core().v1().pods(), factory.core().v1().nodes());
    let started = Instant::now();
    factory.start();
    // Each wait has a random extension of up to half its length.
    for (path, expected) in [("/api/v1/pods", 2..=3), ("/api/v1/nodes", 30..=45)] {
        let lists = RequestFilter::verb(Verb::List).path(path);
        let waited = after(&simulator, started, lists, 1).await;
        assert!(expected.contains(&waited), "{path} after {waited} s");
    }
    drop((pods, nodes));
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn on_failure_has_the_names_of_factory_and_type() {
    let simulator = with_pods();
    let failures = Arc::new(Mutex::new(Vec::new()));
    let record = Arc::clone(&failures);
    let refused = CannedResponse::failure(http::StatusCode::FORBIDDEN, "Forbidden", "because");
    simulator.fail_next(1, RequestFilter::any().path("/api/v1/pods"), refused.clone());
    simulator.fail_next(1, RequestFilter::any().path("/api/v1/nodes"), refused);
    let factory = builder(&simulator)
        .name("scheduler")
        .configure::<Node>(|nodes| nodes.name("spare"))
        .reflector(
            ReflectorConfig::new()
                .on_failure(move |failure| record.lock().push(failure.description.to_owned())),
        )
        .build();
    let (pods, nodes) = (factory.core().v1().pods(), factory.core().v1().nodes());
    synced(&factory).await;
    let mut failures = std::mem::take(&mut *failures.lock());
    failures.sort_unstable();
    assert_eq!(failures, ["scheduler/pods", "scheduler/spare/nodes"]);
    assert!(format!("{pods:?}").contains("scheduler/pods") && format!("{factory:?}").contains("scheduler"));
    let descriptions: Vec<_> = factory.informers().into_iter().map(|it| it.description).collect();
    assert_eq!(descriptions, ["scheduler/pods", "scheduler/spare/nodes"]);
    assert_eq!(nodes.status().description(), "scheduler/spare/nodes");
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn verify_period_of_the_factory_applies() {
    let simulator = with_pods();
    let factory = builder(&simulator).verify_every(Duration::from_secs(3_600)).build();
    let pods = factory.core().v1().pods();
    synced(&factory).await;
    let exact = RequestFilter::verb(Verb::List).parameter("resourceVersionMatch", "Exact");
    tokio::time::timeout(Duration::from_secs(3 * 3_600), simulator.wait_for_requests(&exact, 1))
        .await
        .expect("the store is verified");
    drop(pods);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn options_of_informer_with_override_the_factory() {
    let simulator = with_pods();
    let made = Arc::new(AtomicUsize::new(0));
    let factory: SharedInformerFactory = builder(&simulator).default_resync(Duration::from_secs(60)).build();
    let make = |list_watch: KubeListWatch<Pod>, options: InformerOptions<Pod>| {
        made.fetch_add(1, Ordering::Relaxed);
        SharedIndexInformer::new(Arc::new(list_watch), options.resync_period(Duration::from_secs(90)))
    };
    let pods = factory.informer_with(make);
    let other_scope = factory.in_namespace("shop").informer_with(make);
    synced(&factory).await;
    assert_eq!(first_resync(&pods).await, 90);
    assert_eq!(made.load(Ordering::Relaxed), 2, "one call per scope");
    assert_eq!(crate::keys(&other_scope).len(), 2);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn storage_form_of_a_type_is_invisible_to_readers() {
    let simulator = with_pods();
    let plain = factory(&simulator);
    let decoded = plain.core().v1().pods();
    synced(&plain).await;
    for storage in [Storage::Encoded, Storage::Compressed] {
        let encoding = builder(&simulator).configure::<Pod>(move |it| it.storage(storage)).build();
        let encoded = encoding.core().v1().pods();
        synced(&encoding).await;
        assert_eq!(keys(&encoded), keys(&decoded));
        for pod in &decoded.indexer().list() {
            let other = encoded.get(pod.key()).expect("the encoded store has the pod");
            assert_eq!(*other, **pod, "{}", pod.key());
            assert_eq!((other.uid(), other.resource_version()), (pod.uid(), pod.resource_version()));
        }
        let node = |pod: &Pod| pod.spec.as_ref()?.node_name.clone();
        let by_node = encoded.add_index("node", node).expect("a valid name");
        assert_eq!(by_node.get("node-of-web").len(), 2);
        assert!(encoded.indexer().list().iter().all(Cached::is_encoded));
        encoding.shutdown().await;
    }
    plain.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn transformed_object_is_encoded_after_the_transform() {
    let simulator = with_pods();
    let mark = |pod: &mut Pod| -> Result<(), String> {
        pod.metadata.annotations = Some([("transformed".to_owned(), "yes".to_owned())].into());
        Ok(())
    };
    let factory =
        builder(&simulator).configure::<Pod>(|it| it.storage(Storage::Encoded).transform(mark)).build();
    let pods = factory.core().v1().pods();
    synced(&factory).await;
    let pod = pods.indexer().get_by_key("shop/web").expect("the object exists");
    assert!(pod.is_encoded());
    assert_eq!(pod.metadata().annotations.as_ref().map(|notes| notes["transformed"].as_str()), Some("yes"));
    assert_eq!(pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()), Some("node-of-web"));
    factory.shutdown().await;
}

/// Counts how often the content of a pod is decoded from JSON.
static READ: AtomicUsize = AtomicUsize::new(0);

fn read<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<serde_json::Value, D::Error> {
    READ.fetch_add(1, Ordering::Relaxed);
    serde_json::Value::deserialize(deserializer)
}

#[derive(Informer, Deserialize, Serialize)]
#[informer(group = "", version = "v1", kind = "Pod", namespaced)]
struct CountedPod {
    metadata: ObjectMeta,
    #[serde(deserialize_with = "read")]
    spec: serde_json::Value,
}

#[tokio::test(start_paused = true)]
async fn encoded_object_is_decoded_when_it_is_read() {
    let simulator = with_pods();
    let factory = builder(&simulator).configure::<CountedPod>(|it| it.storage(Storage::Encoded)).build();
    let pods = factory.core().v1().counted_pods();
    let received = Arc::new(Mutex::new(Vec::new()));
    let record = Arc::clone(&received);
    let handler =
        pods.add_handlers(|handlers| handlers.on_add(move |pod, _| record.lock().push(pod.key().clone())));
    synced(&factory).await;
    within(handler.synced().wait()).await.expect("synced");
    assert_eq!((received.lock().len(), pods.indexer().in_namespace("shop").len()), (3, 2));
    // Each pod was decoded once, as a check.
    assert_eq!(READ.load(Ordering::Relaxed), 3);
    let web = pods.indexer().get_by_key("shop/web").expect("the object exists");
    assert_eq!((web.spec["nodeName"].as_str(), READ.load(Ordering::Relaxed)), (Some("node-of-web"), 4));
    let again = pods.indexer().get_by_key("shop/web").expect("the object exists");
    assert_eq!((again.metadata.name.as_deref(), READ.load(Ordering::Relaxed)), (Some("web"), 4));
    let node = |pod: &CountedPod| pod.spec["nodeName"].as_str().map(str::to_owned);
    let by_node = pods.add_index("node", node).expect("a valid name");
    pods.add_index("node again", node).expect("a valid name");
    let before = READ.load(Ordering::Relaxed);
    let created = simulator.create(&crate::pod("shop", "new", "web")).expect("a new pod");
    within(async {
        while pods.wait_until(&created.resource_version().into(), Duration::from_secs(1)).await
            != WaitOutcome::Reached
        {}
    })
    .await;
    assert_eq!(by_node.get("node-of-new").len(), 1);
    // The new pod is decoded once as a check, and once for both index functions.
    assert_eq!(READ.load(Ordering::Relaxed), before + 2);
    factory.shutdown().await;
}
