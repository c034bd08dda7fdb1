//! The generated accessors: each returns the informer of its kind, with lister and indexes.

use informer_factory::{IndexError, parse_selector};
use informer_testing::{RequestFilter, Verb};
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use crate::{factory, node_of, pod, simulator, within};

#[tokio::test]
async fn accessor_requests_the_kind_of_its_name() {
    let simulator = simulator().await;
    let factory = factory(&simulator);
    let leases = factory.coordination().v1().leases();
    let roles = factory.rbac().v1().cluster_roles();
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");
    // A streaming list counts as a watch.
    let requests = simulator.requests(&RequestFilter::verb(Verb::Watch)).into_iter();
    let mut paths: Vec<_> = requests.map(|request| request.path).collect();
    paths.sort();
    assert_eq!(
        paths,
        ["/apis/coordination.k8s.io/v1/leases", "/apis/rbac.authorization.k8s.io/v1/clusterroles",]
    );
    drop((leases, roles));
    factory.shutdown().await;
}

#[tokio::test]
async fn versions_of_one_kind_have_separate_informers() {
    let simulator = simulator().await;
    let factory = factory(&simulator);
    let core = factory.core().v1().events();
    let events = factory.events().v1().events();
    assert_ne!(core.status().description(), events.status().description());
    let pods = factory.core().v1().pods();
    assert_eq!(pods.status().description(), factory.informer::<Pod>().status().description());
    factory.shutdown().await;
}

#[tokio::test]
async fn accessor_returns_lister_and_index_handles() {
    let simulator = simulator().await;
    let mut labelled = pod("front", "n1");
    labelled["metadata"]["labels"] = json!({ "tier": "front" });
    simulator.create(&labelled).expect("a new pod");
    simulator.create(&pod("back", "n2")).expect("a new pod");
    let factory = factory(&simulator);
    factory.core().v1().pods().add_index("node", |pod: &Pod| node_of(pod)).expect("a new index name");
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");

    let front = parse_selector("tier=front").expect("the selector is valid");
    let lister = factory.core().v1().pods().lister();
    assert_eq!(lister.namespace("shop").list(&front).len(), 1);
    let by_node = factory.core().v1().pods().index::<String>("node").expect("the index was added");
    assert_eq!(
        by_node.get("n2").into_iter().map(|pod| pod.key().name().to_owned()).collect::<Vec<_>>(),
        ["back"]
    );
    let unknown = factory.core().v1().pods().index::<String>("host");
    assert!(matches!(unknown, Err(IndexError::Unknown { .. })), "{unknown:?}");
    let other = factory.core().v1().pods().index::<u8>("node");
    assert!(matches!(other, Err(IndexError::WrongType { .. })), "{other:?}");
    factory.shutdown().await;
}
