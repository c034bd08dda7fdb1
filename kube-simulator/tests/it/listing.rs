//! Lists: the wait for a future version, long lists in pieces, and past states.

use http::StatusCode;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams};
use kube_simulator::StoredObject;

use crate::support::{config_map, get, simulator};

#[tokio::test(start_paused = true)]
async fn list_of_a_future_version_fails_after_three_seconds() {
    let simulator = simulator().await;
    let started = tokio::time::Instant::now();
    let (code, _) = get(&simulator, "/api/v1/configmaps?resourceVersion=999999").await;
    assert_eq!((code, started.elapsed().as_secs()), (StatusCode::GATEWAY_TIMEOUT, 3));
}

#[tokio::test]
async fn long_lists_are_sent_in_pieces_and_complete() {
    let simulator = simulator().await;
    let maps = simulator.objects_of::<ConfigMap>().unwrap();
    for index in 0..300 {
        let mut map = config_map("a", &format!("m{index:03}"));
        map["data"]["filler"] = "x".repeat(1024).into();
        maps.create(&map).unwrap();
    }
    let listed: Api<ConfigMap> = Api::all(simulator.client().unwrap());
    assert_eq!(listed.list(&ListParams::default()).await.unwrap().items.len(), 300);
}

#[tokio::test]
async fn every_past_state_can_be_listed_exactly() {
    let simulator = simulator().await;
    let maps = simulator.objects_of::<ConfigMap>().unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    let mut states = Vec::new();
    for round in 0..200 {
        let (namespace, name) = (["a", "a-b", "b"][random.usize(..3)], format!("m{}", random.u8(..8)));
        let mut map = config_map(namespace, &name);
        map["data"]["round"] = round.to_string().into();
        if random.u8(..3) == 0 && maps.get(&format!("{namespace}/{name}")).is_ok() {
            maps.delete(&format!("{namespace}/{name}")).unwrap();
        } else {
            maps.apply(&map).unwrap();
        }
        let state: Vec<u64> = maps.list().iter().map(StoredObject::resource_version).collect();
        states.push((simulator.resource_version(), state));
    }
    for (version, state) in states {
        let path = format!("/api/v1/configmaps?resourceVersion={version}&resourceVersionMatch=Exact");
        let (_, list) = get(&simulator, &path).await;
        let items = list["items"].as_array().unwrap().iter();
        let listed: Vec<u64> = items
            .map(|item| item["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap())
            .collect();
        assert_eq!(listed, state, "at {version}");
    }
}
