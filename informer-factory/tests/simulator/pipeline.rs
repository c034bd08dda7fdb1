//! One informer: the objects in its store and in its handlers, compared with the server's objects.

use std::collections::BTreeSet;
use std::time::Duration;

use informer_factory::status::Health;
use informer_factory::{HandlerOptions, Informer, ObjectKey, WaitOutcome};
use informer_testing::{ClusterSpec, Replica, RequestFilter, Verb, WatchInjection};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::Value;

use crate::{TIMEOUT, factory, node_of, pod, simulator, versions_of_pods, within};

fn watches() -> RequestFilter {
    RequestFilter::verb(Verb::Watch)
}

#[tokio::test]
async fn store_index_and_replicas_follow_the_server() {
    let simulator = simulator().await;
    for n in 0..10 {
        simulator.create(&pod(&format!("p{n}"), &format!("n{}", n % 2))).expect("a new pod");
    }
    let factory = factory(&simulator);
    let pods = factory.core().v1().pods();
    let by_node = pods.add_index("node", node_of).expect("a free index name");
    let replica = Replica::<Pod>::new();
    let registration = pods.add_event_handler(replica.clone());
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");
    within(registration.synced().wait()).await.expect("synced");
    assert_eq!(replica.versions(), versions_of_pods(&simulator));
    assert_eq!(by_node.count("n1"), 5);
    let cached = pods.indexer().get_by_key("shop/p1").expect("the object is cached");
    assert!(cached.metadata.managed_fields.is_none(), "the parser skips managed fields");

    simulator.create(&pod("late", "n1")).expect("a new pod");
    simulator.delete::<Pod>("shop/p1").expect("the object exists");
    let moved = simulator.update(&pod("p2", "n7")).expect("the object exists");
    let moved_to = moved.resource_version().into();
    assert_eq!(pods.wait_until(&moved_to, TIMEOUT).await, WaitOutcome::Reached);
    let keys: BTreeSet<_> = by_node.get("n1").iter().map(|pod| pod.name().to_owned()).collect();
    assert_eq!(keys, ["late", "p3", "p5", "p7", "p9"].map(String::from).into());
    assert_eq!(by_node.count("n7"), 1);
    within(replica.wait_until(|objects| objects.contains_key(&ObjectKey::namespaced("shop", "late")))).await;
    within(replica.wait_until(|objects| objects.values().any(|pod| *pod.resource_version() == moved_to)))
        .await;
    assert_eq!(replica.versions(), versions_of_pods(&simulator));
    assert!(replica.violations().is_empty(), "{:?}", replica.violations());
    factory.shutdown().await;
}

#[tokio::test]
async fn i5_handler_of_a_live_informer_receives_all_objects() {
    let simulator = simulator().await;
    simulator.create(&pod("early", "n1")).expect("a new pod");
    let factory = factory(&simulator);
    let pods = factory.core().v1().pods();
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");
    let replica = Replica::<Pod>::new();
    let registration = pods.add_event_handler(replica.clone());
    within(registration.synced().wait()).await.expect("synced");
    assert_eq!(replica.objects().len(), 1);
    simulator.create(&pod("late", "n1")).expect("a new pod");
    within(replica.wait_until(|objects| objects.len() == 2)).await;
    factory.shutdown().await;
}

#[tokio::test]
async fn changes_of_a_compacted_history_come_from_a_list() {
    let simulator = simulator().await;
    for name in ["stays", "changes", "goes"] {
        simulator.create(&pod(name, "n1")).expect("a new pod");
    }
    let factory = factory(&simulator);
    let pods = factory.core().v1().pods();
    let replica = Replica::<Pod>::new();
    let (deleted_send, mut deleted) = tokio::sync::mpsc::unbounded_channel();
    let _replica = pods.add_event_handler(replica.clone());
    let _deleted = pods.add_handlers(|handlers| {
        handlers.on_delete(move |pod| _ = deleted_send.send((pod.name().to_owned(), pod.is_exact())))
    });
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");
    within(simulator.wait_for_watches(&watches(), 1)).await;
    let unchanged = pods.indexer().get_by_key("shop/stays").expect("the object is cached");

    // The history that the next watch needs is lost during the reflector's backoff.
    let failing = informer_testing::CannedResponse::failure(
        http::StatusCode::INTERNAL_SERVER_ERROR,
        "InternalError",
        "",
    );
    simulator.fail_next(1, watches(), failing);
    simulator.close_watches();
    let mut status = pods.status().clone();
    within(async { while status.health_changed().await.expect("the informer runs").error().is_none() {} })
        .await;
    simulator.delete::<Pod>("shop/goes").expect("the object exists");
    simulator.update(&pod("changes", "n2")).expect("the object exists");
    simulator.create(&pod("new", "n3")).expect("a new pod");
    simulator.compact();

    within(replica.wait_until(|objects| objects.len() == 3 && objects.keys().any(|key| key.name() == "new")))
        .await;
    assert_eq!(within(deleted.recv()).await, Some(("goes".into(), false)));
    assert!(unchanged.ptr_eq(&pods.indexer().get_by_key("shop/stays").expect("the object is cached")));
    within(replica.wait_until(|_| replica.versions() == versions_of_pods(&simulator))).await;
    assert!(replica.violations().is_empty(), "{:?}", replica.violations());
    factory.shutdown().await;
}

#[tokio::test]
async fn unseen_replacement_is_a_delete_and_an_add() {
    let simulator = simulator().await;
    simulator.create(&pod("p", "n1")).expect("a new pod");
    let factory = factory(&simulator);
    let pods = factory.core().v1().pods();
    let (send, mut recorded) = tokio::sync::mpsc::unbounded_channel();
    let deletes = send.clone();
    let _registration = pods.add_handlers(|handlers| {
        handlers.on_add(move |pod, _| _ = send.send(format!("+{}", pod.uid()))).on_delete(move |pod| {
            _ = deletes.send(format!("-{}", pod.uid().map(ToString::to_string).unwrap_or_default()));
        })
    });
    factory.start();
    let first = within(recorded.recv()).await.expect("the handler is registered");
    within(simulator.wait_for_watches(&watches(), 1)).await;
    simulator.delete::<Pod>("shop/p").expect("the object exists");
    simulator.create(&pod("p", "n1")).expect("a new pod");
    assert_eq!(within(recorded.recv()).await, Some(first.replace('+', "-")));
    assert_ne!(within(recorded.recv()).await, Some(first));
    factory.shutdown().await;
}

#[tokio::test]
async fn i9_write_is_readable_once_the_watermark_reaches_it() {
    let simulator = simulator().await;
    let factory = factory(&simulator);
    let pods = factory.core().v1().pods();
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");
    for n in 0..20 {
        let written = simulator.create(&pod(&format!("p{n}"), "n1")).expect("a new pod");
        let outcome = pods.wait_until(&written.resource_version().into(), TIMEOUT).await;
        assert_eq!(outcome, WaitOutcome::Reached);
        assert!(pods.indexer().get_by_key(&format!("shop/p{n}")).is_some());
    }
    let future = (simulator.resource_version() + 1_000).into();
    assert_eq!(pods.wait_until(&future, Duration::from_millis(1)).await, WaitOutcome::TimedOut);
    assert_eq!(pods.wait_until(&"abc".into(), TIMEOUT).await, WaitOutcome::NotComparable);
    factory.shutdown().await;
    assert_eq!(pods.wait_until(&future, TIMEOUT).await, WaitOutcome::Stopped);
}

/// A view of pods with a required field.
#[derive(Informer, Deserialize)]
#[informer(group = "", version = "v1", kind = "Pod", namespaced)]
struct PlacedPod {
    metadata: ObjectMeta,
    spec: Placement,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Placement {
    node_name: String,
}

#[tokio::test]
async fn i10_undecodable_pod_does_not_stop_the_stream() {
    let simulator = simulator().await;
    let mut broken = pod("broken", "n1");
    broken["spec"]["nodeName"] = Value::Null;
    simulator.create(&broken).expect("a new pod");
    simulator.create(&pod("good", "n1")).expect("a new pod");
    let factory = factory(&simulator);
    let pods = factory.core().v1().placed_pods();
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");
    assert_eq!(pods.indexer().len(), 1);
    let quarantined = pods.status().quarantined();
    assert_eq!(quarantined[0].key, Some(ObjectKey::namespaced("shop", "broken")));
    assert_eq!(quarantined[0].error, "missing field \"nodeName\" at spec");

    let mut worse = pod("good", "n1");
    worse["spec"]["nodeName"] = Value::Null;
    let worse = simulator.update(&worse).expect("the object exists");
    assert_eq!(pods.wait_until(&worse.resource_version().into(), TIMEOUT).await, WaitOutcome::Reached);
    assert_eq!(
        pods.indexer().get_by_key("shop/good").expect("the last valid version stays").spec.node_name,
        "n1"
    );
    assert_eq!((pods.status().quarantined().len(), pods.status().quarantined_total()), (2, 2));

    let valid = simulator.update(&pod("broken", "n9")).expect("the object exists");
    assert_eq!(pods.wait_until(&valid.resource_version().into(), TIMEOUT).await, WaitOutcome::Reached);
    assert_eq!(
        pods.indexer().get_by_key("shop/broken").expect("the object decodes now").spec.node_name,
        "n9"
    );
    simulator.delete::<Pod>("shop/good").expect("the object exists");
    within(async {
        while !pods.status().quarantined().is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    factory.shutdown().await;
}

#[tokio::test]
async fn truncated_watch_event_is_not_lost() {
    let simulator = simulator().await;
    let factory = factory(&simulator);
    let pods = factory.core().v1().pods();
    let replica = Replica::<Pod>::new();
    let _registration = pods.add_event_handler(replica.clone());
    factory.start();
    within(simulator.wait_for_watches(&watches(), 1)).await;
    let half = WatchInjection::bytes(r#"{"type":"ADDED","object":{"kind":"Pod","apiVe"#).then_abort();
    simulator.inject(&watches(), &half.instead_of_next_event());
    simulator.create(&pod("a", "n1")).expect("a new pod");
    within(replica.wait_until(|objects| objects.len() == 1)).await;
    assert_eq!(replica.versions(), versions_of_pods(&simulator));
    factory.shutdown().await;
}

#[tokio::test]
async fn i4_replicas_equal_the_server_after_churn() {
    let simulator = simulator().await;
    let spec = ClusterSpec { nodes: 5, pods: 100, namespaces: 4, seed: 7 };
    let mut churn = simulator.populate(&spec).expect("the simulator is empty").churn(1_000.0);
    let factory = factory(&simulator);
    let pods = factory.core().v1().pods();
    let mut replicas = vec![Replica::<Pod>::new()];
    let mut registrations = vec![pods.add_event_handler(replicas[0].clone())];
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");
    for round in 0..600 {
        churn.step().expect("the step succeeds");
        match round % 150 {
            40 => simulator.close_watches(),
            90 => simulator.compact(),
            120 => {
                // Some handlers join during the churn, with thresholds that they soon exceed.
                let late = Replica::<Pod>::new();
                let options = HandlerOptions::new().threshold(Some(round % 4));
                registrations.push(pods.add_event_handler_with(late.clone(), &options));
                replicas.push(late);
            }
            _ => tokio::task::yield_now().await,
        }
    }
    // Without this write, only a bookmark would advance the watermark, up to a minute later.
    let end = simulator.create(&pod("end", "n1")).expect("a new pod");
    let outcome = pods.wait_until(&end.resource_version().into(), TIMEOUT).await;
    assert_eq!(outcome, WaitOutcome::Reached);
    let end = ObjectKey::namespaced("shop", "end");
    for (replica, registration) in replicas.iter().zip(&registrations) {
        within(replica.wait_until(|objects| objects.contains_key(&end))).await;
        within(registration.synced().wait()).await.expect("synced");
        within(replica.wait_until(|_| replica.versions() == versions_of_pods(&simulator))).await;
        assert!(replica.violations().is_empty(), "{:?}", replica.violations());
    }
    assert_eq!(replicas.len(), 5);
    assert!(matches!(pods.health(), Health::Live { .. }));
    factory.shutdown().await;
}
