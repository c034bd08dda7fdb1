//! Starting, stopping and connecting to the simulator.

use futures::{StreamExt, TryStreamExt};
use http::StatusCode;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use k8s_openapi::api::node::v1::RuntimeClass;
use kube::api::{Api, ListParams, PostParams, WatchParams};
use kube_simulator::{Error, ResourceKind, Simulator};

use crate::support::{config_map, get, simulator};

#[tokio::test(start_paused = true)]
async fn kubes_client_works_in_process_with_paused_time() {
    let simulator = simulator().await;
    let client = kube::Client::new(simulator.service(), "default");
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let one = serde_json::from_value(config_map("default", "one")).unwrap();
    maps.create(&PostParams::default(), &one).await.unwrap();
    assert_eq!(maps.list(&ListParams::default()).await.unwrap().items.len(), 1);
    let params = WatchParams::default().timeout(60);
    let events: Vec<_> = maps.watch(&params, "0").await.unwrap().try_collect().await.unwrap();
    assert_eq!(events.len(), 3, "the object, the end of the initial events, and the last bookmark");
}

#[tokio::test]
async fn only_registered_resources_are_served() {
    let simulator = Simulator::builder().resource_of::<Pod>().start().await.unwrap();
    assert_eq!(get(&simulator, "/api/v1/pods").await.0, StatusCode::OK);
    assert!(matches!(simulator.objects_of::<Node>(), Err(Error::UnknownResource { .. })));
    simulator.register(ResourceKind::of::<Node>());
    assert!(simulator.objects_of::<Node>().unwrap().is_empty());
}

#[test]
fn scope_of_a_resource_comes_from_its_rust_type() {
    assert!(ResourceKind::of::<Pod>().namespaced);
    assert!(!ResourceKind::of::<Node>().namespaced);
    let unlisted = ResourceKind::of::<RuntimeClass>();
    assert_eq!(unlisted.collection_path(), "/apis/node.k8s.io/v1/runtimeclasses");
    assert!(!unlisted.namespaced);
}

#[tokio::test]
async fn a_dropped_simulator_ends_its_watches_and_closes_its_port() {
    let simulator = simulator().await;
    let client = simulator.client().unwrap();
    let maps: Api<ConfigMap> = Api::all(client.clone());
    let mut events = maps.watch(&WatchParams::default(), "1000").await.unwrap().boxed();
    drop(simulator);
    assert!(events.try_next().await.unwrap().is_none());
    drop(events);
    // The connection of the watch is closed, and the port accepts no new connection.
    assert!(maps.list(&ListParams::default()).await.is_err());
}
