//! Metadata-only and dynamic objects: their informers have indexes, listers and handlers like those
//! of typed objects.

use std::sync::Arc;

use informer_factory::{Cached, InformerOptions, SharedIndexInformer, SharedInformerFactory};
use informer_reflector::KubeListWatch;
use informer_testing::{RecordedRequest, Replica, RequestFilter, Simulator, Verb};
use k8s_openapi::api::core::v1::Pod;
use kube::core::{ApiResource, DynamicObject, PartialObjectMeta};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{TIMEOUT, factory, pod, simulator, versions_of_pods, within};

fn labelled(name: &str, app: &str) -> serde_json::Value {
    let mut pod = pod(name, "n1");
    pod["metadata"]["labels"] = json!({ "app": app });
    pod
}

#[tokio::test]
async fn metadata_only_informer_works_like_a_typed_informer() {
    let simulator = simulator().await;
    for name in ["stays", "changes", "goes"] {
        simulator.create(&labelled(name, "web")).expect("a new pod");
    }
    let factory = factory(&simulator);
    let pods = factory.informer::<PartialObjectMeta<Pod>>();
    let by_app = pods
        .add_index("app", |pod| pod.metadata.labels.as_ref().and_then(|labels| labels.get("app")).cloned())
        .expect("a new index");
    let replica = Replica::<PartialObjectMeta<Pod>>::new();
    let registration = pods.add_event_handler(replica.clone());
    factory.start();
    within(registration.synced().wait()).await.expect("synced");
    assert_eq!(by_app.get(&"web".to_owned()).len(), 3);

    simulator.update(&labelled("changes", "api")).expect("the object exists");
    simulator.delete::<Pod>("shop/goes").expect("the object exists");
    let last = simulator.create(&labelled("new", "web")).expect("a new pod");
    within(replica.wait_until(|_| replica.versions() == versions_of_pods(&simulator))).await;
    assert!(replica.violations().is_empty(), "{:?}", replica.violations());
    let reached = pods.wait_until(&last.resource_version().into(), TIMEOUT).await;
    assert_eq!(reached, informer_factory::WaitOutcome::Reached);
    assert!(within(pods.verify()).await.expect("the informer is synced").is_equal());
    let names = |app: &str| {
        let mut names: Vec<_> = by_app.get(&app.to_owned()).iter().map(|pod| pod.name().to_owned()).collect();
        names.sort();
        names
    };
    assert_eq!((names("web"), names("api")), (vec!["new".into(), "stays".into()], vec!["changes".into()]));
    let stays = pods.lister().namespace("shop").get("stays").expect("the object is cached");
    assert_eq!(stays.metadata.managed_fields, None);
    for verb in [Verb::List, Verb::Watch] {
        let requests = simulator.requests(&RequestFilter::verb(verb).path("/api/v1/pods"));
        let accept = |request: &RecordedRequest| request.headers["accept"].to_str().unwrap_or("").to_owned();
        assert!(
            requests.iter().any(|request| accept(request).contains("as=PartialObjectMetadata")),
            "{verb:?}"
        );
    }
    factory.shutdown().await;
}

/// Runs an informer of pods as dynamic objects.
fn run_dynamic(simulator: &Simulator) -> (SharedIndexInformer<DynamicObject>, CancellationToken) {
    let resource = ApiResource::erase::<Pod>(&());
    let list_watch =
        KubeListWatch::<DynamicObject>::all_with(simulator.client().expect("a client"), &resource);
    let (informer, task) = SharedIndexInformer::new(Arc::new(list_watch), InformerOptions::new());
    let shutdown = CancellationToken::new();
    tokio::spawn(task.run(shutdown.clone()));
    (informer, shutdown)
}

#[tokio::test]
async fn dynamic_informer_works_like_a_typed_informer() {
    let simulator = simulator().await;
    simulator.create(&pod("a", "n1")).expect("a new pod");
    let (pods, shutdown) = run_dynamic(&simulator);
    let by_node = pods
        .add_index("node", |pod| pod.data["spec"]["nodeName"].as_str().map(str::to_owned))
        .expect("a new index");
    let replica = Replica::<DynamicObject>::new();
    let registration = pods.add_event_handler(replica.clone());
    within(registration.synced().wait()).await.expect("synced");
    simulator.update(&pod("a", "n2")).expect("the object exists");
    simulator.create(&pod("b", "n2")).expect("a new pod");
    within(replica.wait_until(|_| replica.versions() == versions_of_pods(&simulator))).await;
    assert!(replica.violations().is_empty(), "{:?}", replica.violations());
    assert!(within(pods.verify()).await.expect("the informer is synced").is_equal());
    let on_node = by_node.get(&"n2".to_owned());
    assert_eq!((on_node.len(), by_node.get(&"n1".to_owned()).len()), (2, 0));
    for pod in &on_node {
        assert_eq!(pod.types.as_ref().map(|types| types.kind.as_str()), Some("Pod"));
        assert_eq!(pod.metadata.managed_fields, None);
    }
    shutdown.cancel();
    pods.stopped().await;
}

#[tokio::test]
async fn factory_list_options_apply_to_its_requests() {
    let simulator = simulator().await;
    simulator.create(&labelled("web", "web")).expect("a new pod");
    simulator.create(&labelled("db", "db")).expect("a new pod");
    let factory = SharedInformerFactory::builder(simulator.client().expect("a client"))
        .tweak_list_options(|options| {
            if options.resource() == "pods" {
                options.label_selector = "app=web".to_owned();
            }
        })
        .build();
    let (pods, namespaces) = (factory.core().v1().pods(), factory.core().v1().namespaces());
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");
    assert_eq!(pods.indexer().list().iter().map(Cached::name).collect::<Vec<_>>(), ["web"]);
    assert!(namespaces.status().description() == "namespaces", "{}", namespaces.status().description());
    factory.shutdown().await;
}

#[tokio::test]
async fn i9_verify_lists_metadata_page_by_page() {
    let simulator = simulator().await;
    for n in 0..1_100 {
        simulator.create(&pod(&format!("p{n}"), "n1")).expect("a new pod");
    }
    let factory = factory(&simulator);
    let pods = factory.core().v1().pods();
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");
    simulator.delete::<Pod>("shop/p7").expect("the object exists");
    let last = simulator.update(&pod("p8", "n2")).expect("the object exists");
    let reached = pods.wait_until(&last.resource_version().into(), TIMEOUT).await;
    assert_eq!(reached, informer_factory::WaitOutcome::Reached);
    simulator.clear_requests();
    // `verify` compares the state at the store's watermark, so this new pod causes no difference.
    simulator.create(&pod("q", "n1")).expect("a new pod");
    let verification = within(pods.verify()).await.expect("the informer is synced");
    assert!(verification.is_equal(), "{:?}", verification.differences);
    assert!((1_099..=1_100).contains(&verification.objects), "{}", verification.objects);
    let lists = simulator.requests(&RequestFilter::verb(Verb::List));
    let parameter = |name: &str| lists[0].parameter(name);
    assert_eq!(parameter("resourceVersionMatch").as_deref(), Some("Exact"));
    assert_eq!((parameter("limit").as_deref(), lists.len()), (Some("500"), 3));
    assert!(lists[0].headers["accept"].to_str().is_ok_and(|accept| accept.contains("PartialObjectMetadata")));
    factory.shutdown().await;
}
