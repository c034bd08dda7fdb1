//! The generated cluster: it looks realistic, changes over time, and depends only on its seed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::apps::v1::{ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube_simulator::{Change, ClusterSpec, Simulator};

use crate::support::simulator;

async fn populated(spec: &ClusterSpec) -> (Simulator, kube_simulator::Cluster) {
    let simulator = simulator().await;
    let cluster = simulator.populate(spec).unwrap();
    (simulator, cluster)
}

#[tokio::test]
async fn cluster_has_the_requested_size_and_decodes() {
    let spec = ClusterSpec { nodes: 5, pods: 60, namespaces: 20, seed: 7 };
    let (simulator, cluster) = populated(&spec).await;
    let nodes = simulator.list_all::<Node>().unwrap();
    let pods = simulator.list_all::<Pod>().unwrap();
    assert_eq!((nodes.len(), pods.len(), cluster.pods()), (5, 60, 60));
    let namespaces: BTreeSet<_> = pods.iter().filter_map(|pod| pod.metadata.namespace.as_deref()).collect();
    assert_eq!(namespaces.len(), 20);
    let names: BTreeSet<_> = nodes.iter().filter_map(|node| node.metadata.name.as_deref()).collect();
    for pod in &pods {
        assert!(names.contains(pod.spec.as_ref().unwrap().node_name.as_deref().unwrap()));
        assert!(pod.status.as_ref().unwrap().pod_ip.is_some());
    }
}

#[tokio::test]
async fn pods_have_a_realistic_size_and_managed_fields() {
    let (simulator, _) = populated(&ClusterSpec::default()).await;
    for pod in simulator.objects_of::<Pod>().unwrap().list() {
        let all = pod.json().len();
        let managed = pod.value()["metadata"]["managedFields"].to_string().len();
        assert!((7_500..10_500).contains(&all), "{all} bytes, {managed} of them managed fields");
        assert!((35..60).contains(&(managed * 100 / all)), "{managed} of {all} bytes");
    }
}

#[tokio::test]
async fn pods_are_owned_by_objects_that_exist() {
    let (simulator, _) = populated(&ClusterSpec::default()).await;
    let sets = simulator.list_all::<ReplicaSet>().unwrap().into_iter().map(|set| set.metadata);
    let stateful = simulator.list_all::<StatefulSet>().unwrap().into_iter().map(|set| set.metadata);
    let owners: BTreeMap<_, _> = sets.chain(stateful).map(|owner| (owner.uid, owner.name)).collect();
    for pod in simulator.list_all::<Pod>().unwrap() {
        let reference = pod.metadata.owner_references.unwrap().remove(0);
        assert_eq!(owners[&Some(reference.uid)], Some(reference.name));
    }
}

#[tokio::test]
async fn same_seed_gives_same_bytes_even_after_churn() {
    let mut contents = Vec::new();
    for seed in [1, 1, 2] {
        let (simulator, cluster) = populated(&ClusterSpec { seed, pods: 30, ..ClusterSpec::default() }).await;
        let mut churn = cluster.churn(1.0);
        for _ in 0..100 {
            churn.step().unwrap();
        }
        let pods = simulator.objects_of::<Pod>().unwrap().list();
        contents.push(pods.iter().map(kube_simulator::StoredObject::json).collect::<Vec<_>>());
    }
    assert_eq!(contents[0], contents[1]);
    assert_ne!(contents[0], contents[2]);
}

#[tokio::test]
async fn churn_makes_all_kinds_of_changes_and_keeps_the_size() {
    let (simulator, cluster) = populated(&ClusterSpec::default()).await;
    let mut churn = cluster.churn(1.0);
    let mut seen = BTreeMap::new();
    for _ in 0..400 {
        *seen.entry(format!("{:?}", churn.step().unwrap())).or_insert(0) += 1;
    }
    let kinds = [
        Change::PodCreated,
        Change::PodScheduled,
        Change::PodStarted,
        Change::PodFlapped,
        Change::PodDeleted,
        Change::NodeHeartbeat,
    ];
    for kind in kinds {
        assert!(seen.contains_key(&format!("{kind:?}")), "{kind:?} in {seen:?}");
    }
    assert!(!seen.contains_key("Missed"), "{seen:?}");
    let pods = simulator.list_all::<Pod>().unwrap().len();
    assert!((190..=210).contains(&pods), "{pods} pods");
}

#[tokio::test]
async fn churn_replaces_pods_with_a_grace_period() {
    let simulator = Simulator::builder().built_in_kinds().graceful_pod_deletion().start_in_process();
    let mut churn = simulator.populate(&ClusterSpec::default()).unwrap().churn(1.0);
    for _ in 0..400 {
        churn.step().unwrap();
    }
    let pods = simulator.list_all::<Pod>().unwrap();
    assert!((190..=210).contains(&pods.len()), "{} pods", pods.len());
    assert!(pods.iter().all(|pod| pod.metadata.deletion_timestamp.is_none()));
}

#[tokio::test]
async fn populate_draws_another_name_for_a_pod_that_exists() {
    let spec = ClusterSpec { pods: 1, ..ClusterSpec::default() };
    let (first, _) = populated(&spec).await;
    let existing = first.list_all::<Pod>().unwrap().remove(0).metadata;
    let second = simulator().await;
    let metadata = serde_json::json!({ "namespace": existing.namespace, "name": existing.name });
    let pod = serde_json::json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata });
    second.create(&pod).unwrap();
    second.populate(&spec).unwrap();
    assert_eq!(second.list_all::<Pod>().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn churn_with_the_highest_rate_stops() {
    let (_simulator, cluster) = populated(&ClusterSpec { pods: 5, ..ClusterSpec::default() }).await;
    let stop = tokio::time::sleep(Duration::from_millis(15));
    assert!(cluster.churn(f64::MAX).run_until(stop).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn churn_keeps_to_its_rate() {
    let (simulator, cluster) = populated(&ClusterSpec::default()).await;
    let before = simulator.resource_version();
    let churn = cluster.churn(50.0).run_until(tokio::time::sleep(Duration::from_secs(10))).await;
    assert!(churn.is_ok());
    let changes = simulator.resource_version() - before;
    assert!((490..=510).contains(&changes), "{changes} changes in 10 s");
}

#[tokio::test]
async fn churn_continues_when_others_delete_its_pods() {
    let (simulator, cluster) = populated(&ClusterSpec { pods: 5, ..ClusterSpec::default() }).await;
    for pod in simulator.objects_of::<Pod>().unwrap().list() {
        simulator.delete::<Pod>(&format!("{}/{}", pod.namespace().unwrap(), pod.name())).unwrap();
    }
    let mut churn = cluster.churn(1.0);
    for _ in 0..200 {
        churn.step().unwrap();
    }
    assert!(!simulator.objects_of::<Pod>().unwrap().is_empty());
}

#[tokio::test]
async fn churn_continues_when_others_store_invalid_objects() {
    let (simulator, cluster) = populated(&ClusterSpec { pods: 5, ..ClusterSpec::default() }).await;
    let mut churn = cluster.churn(1.0);
    // The new pod is pending, so the churn schedules it later.
    assert!((0..400).any(|_| churn.step().unwrap() == Change::PodCreated));
    for store in [simulator.objects_of::<Pod>().unwrap(), simulator.objects_of::<Node>().unwrap()] {
        for object in store.list() {
            let mut object = object.value();
            object["spec"] = "text".into();
            object["status"] = "text".into();
            simulator.update(&object).unwrap();
        }
    }
    let changes: Vec<Change> = (0..100).map(|_| churn.step().unwrap()).collect();
    assert!(changes.contains(&Change::PodScheduled), "{changes:?}");
    assert!(changes.contains(&Change::NodeHeartbeat), "{changes:?}");
}

#[tokio::test]
async fn churn_continues_when_others_remove_container_statuses() {
    let (simulator, cluster) = populated(&ClusterSpec { pods: 5, ..ClusterSpec::default() }).await;
    for pod in simulator.objects_of::<Pod>().unwrap().list() {
        let mut pod = pod.value();
        pod["status"]["containerStatuses"] = serde_json::Value::Null;
        simulator.update(&pod).unwrap();
    }
    let mut churn = cluster.churn(1.0);
    let changes: Vec<Change> = (0..50).map(|_| churn.step().unwrap()).collect();
    assert!(changes.contains(&Change::PodFlapped), "{changes:?}");
}

#[tokio::test]
async fn churn_continues_at_the_highest_count_of_restarts() {
    let (simulator, cluster) = populated(&ClusterSpec { pods: 5, ..ClusterSpec::default() }).await;
    let pods = simulator.objects_of::<Pod>().unwrap();
    for pod in pods.list() {
        let mut pod = pod.value();
        pod["status"]["containerStatuses"][0]["restartCount"] = u64::MAX.into();
        simulator.update(&pod).unwrap();
    }
    let mut churn = cluster.churn(1.0);
    assert!((0..50).any(|_| churn.step().unwrap() == Change::PodFlapped));
    let is_unready = |pod: &serde_json::Value| pod["status"]["containerStatuses"][0]["ready"] == false;
    let unready = pods.list().into_iter().map(|pod| pod.value()).find(is_unready).expect("a restarted pod");
    assert_eq!(unready["status"]["containerStatuses"][0]["restartCount"], u64::MAX);
}
