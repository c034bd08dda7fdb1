//! A second API server on the same storage, with a lagging watch cache.

use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams};
use kube_simulator::{LaggingReplica, ResponseBody, Simulator, StreamingLists};
use serde_json::Value;
use tokio::time::Instant;
use tower::Service as _;

use crate::support::{Lines, MAPS, body_of, config_map, event, names, request, simulator};

async fn send(replica: &LaggingReplica, path_and_query: &str) -> http::Response<ResponseBody> {
    let request: Request<Full<bytes::Bytes>> = request(Method::GET, path_and_query, &Value::Null);
    replica.service().call(request).await.expect("an answer")
}

async fn get(replica: &LaggingReplica, path_and_query: &str) -> (StatusCode, Value) {
    let response = send(replica, path_and_query).await;
    (response.status(), body_of(response).await)
}

/// Returns the object names in the next frame of a watch.
async fn next_names(body: &mut ResponseBody) -> Vec<String> {
    let frame = body.frame().await.expect("a frame").expect("no error").into_data().expect("data");
    let lines = serde_json::Deserializer::from_slice(&frame).into_iter::<Value>();
    lines.map(|line| line.unwrap()["object"]["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn held_replica_serves_the_past_only_for_any_version() {
    let simulator = simulator().await;
    let replica = simulator.lagging_replica();
    simulator.create(&config_map("a", "one")).unwrap();
    simulator.create(&config_map("a", "two")).unwrap();
    replica.hold();
    let held_at = replica.resource_version();
    simulator.delete::<ConfigMap>("a/one").unwrap();
    simulator.create(&config_map("a", "three")).unwrap();

    let (_, any) = get(&replica, &format!("{MAPS}?resourceVersion=0")).await;
    assert_eq!(names(&any), ["one", "two"]);
    assert_eq!(any["metadata"]["resourceVersion"], held_at.to_string());
    let began = Instant::now();
    let (_, newest) = get(&replica, MAPS).await;
    assert_eq!(names(&newest), ["three", "two"]);
    let waited = began.elapsed();
    assert!(
        (3_000..3_010).contains(&waited.as_millis()),
        "the list must wait for the watch cache: {waited:?}"
    );
    assert_eq!(get(&replica, &format!("{MAPS}/one?resourceVersion=0")).await.0, StatusCode::OK);
    assert_eq!(get(&replica, &format!("{MAPS}/one")).await.0, StatusCode::NOT_FOUND);
    replica.catch_up();
    assert_eq!(names(&get(&replica, &format!("{MAPS}?resourceVersion=0")).await.1), ["three", "two"]);
}

#[tokio::test(start_paused = true)]
async fn newest_list_waits_for_the_watch_cache() {
    let simulator = simulator().await;
    let replica = simulator.lagging_replica();
    replica.hold();
    simulator.create(&config_map("a", "one")).unwrap();
    let began = Instant::now();
    let list = async { (get(&replica, MAPS).await.1, began.elapsed()) };
    let ((newest, took), ()) = tokio::join!(list, async {
        tokio::time::advance(std::time::Duration::from_secs(1)).await;
        replica.catch_up();
    });
    assert_eq!(names(&newest), ["one"]);
    assert!((1_000..1_010).contains(&took.as_millis()), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn replica_without_storage_refuses_the_newest_list() {
    let simulator = Simulator::builder().built_in_kinds().refuse_late_lists().start_in_process();
    let replica = simulator.lagging_replica();
    simulator.create(&config_map("a", "one")).unwrap();
    simulator.create(&config_map("a", "two")).unwrap();
    let (_, page) = get(&replica, &format!("{MAPS}?limit=1")).await;
    let next = format!("{MAPS}?continue={}", page["metadata"]["continue"].as_str().unwrap());
    replica.hold();
    let held_at = replica.resource_version();
    let version = simulator.create(&config_map("a", "three")).unwrap().resource_version();
    let began = Instant::now();
    let response = send(&replica, MAPS).await;
    assert!((3_000..3_010).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
    assert_eq!(response.headers()["retry-after"], "1");
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    let status = body_of(response).await;
    assert_eq!(status["reason"], "TooManyRequests");
    let message = format!("Timeout: Too large resource version: {version}, current: {held_at}");
    assert_eq!(status["message"], message);

    assert_eq!(names(&get(&replica, &next).await.1), ["two"], "the watch cache has the page's state");
    simulator.create(&event("happened")).unwrap();
    assert_eq!(
        names(&get(&replica, "/api/v1/namespaces/a/events").await.1),
        ["happened"],
        "events have no watch cache"
    );
    replica.catch_up();
    assert_eq!(names(&get(&replica, MAPS).await.1), ["one", "three", "two"]);
}

#[tokio::test(start_paused = true)]
async fn watch_of_the_newest_begins_after_a_lagging_cache() {
    let simulator = simulator().await;
    let replica = simulator.lagging_replica();
    replica.hold();
    simulator.create(&config_map("a", "one")).unwrap();
    let path = format!("{MAPS}?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan");
    let mut from_the_newest = send(&replica, &path).await.into_body();
    let mut from_any = send(&replica, &format!("{path}&resourceVersion=0")).await.into_body();
    simulator.create(&config_map("a", "two")).unwrap();
    replica.catch_up();
    assert_eq!(next_names(&mut from_the_newest).await, ["two"]);
    assert_eq!(next_names(&mut from_any).await, ["one", "two"]);
}

#[tokio::test(start_paused = true)]
async fn lagging_cache_still_sends_bookmarks() {
    let simulator = Simulator::builder().built_in_kinds().watch_buffer(2).start_in_process();
    let replica = simulator.lagging_replica();
    replica.hold();
    let held_at = replica.resource_version();
    let path = format!("{MAPS}?watch=1&allowWatchBookmarks=true&resourceVersion={held_at}");
    let mut watch = Lines::of(send(&replica, &path).await);
    for name in ["one", "two", "three"] {
        simulator.create(&config_map("a", name)).unwrap();
    }
    let began = Instant::now();
    let bookmark = watch.next().await.unwrap();
    assert_eq!(bookmark["object"]["metadata"]["resourceVersion"], held_at.to_string());
    assert!(began.elapsed().as_secs() < 62, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn held_replica_refuses_versions_it_has_not_reached() {
    let simulator = simulator().await;
    let replica = simulator.lagging_replica();
    replica.hold();
    let version = simulator.create(&config_map("a", "one")).unwrap().resource_version();
    let not_older = format!("{MAPS}?resourceVersion={version}&resourceVersionMatch=NotOlderThan");
    let (code, status) = get(&replica, &not_older).await;
    assert_eq!(code, StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(status["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
    let streaming =
        "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let (_, error) = get(&replica, &format!("{MAPS}?{streaming}")).await;
    assert_eq!(error["object"]["code"], 504, "the watch cache lacks the newest state");

    let (listed, ()) = tokio::join!(get(&replica, &not_older), async {
        tokio::task::yield_now().await;
        replica.catch_up();
    });
    assert_eq!(names(&listed.1), ["one"], "the list must wait until the cache has caught up");
}

#[tokio::test]
async fn watch_of_a_lagging_replica_keeps_the_configured_lag() {
    let simulator = simulator().await;
    let replica = simulator.lagging_replica();
    replica.lag(2);
    let mut watch = send(&replica, &format!("{MAPS}?watch=1&resourceVersion=1000")).await.into_body();
    for name in ["one", "two", "three", "four"] {
        simulator.create(&config_map("a", name)).unwrap();
    }
    assert_eq!(next_names(&mut watch).await, ["one", "two"]);
    // The lag also counts writes that the watch does not select.
    simulator.create(&config_map("b", "elsewhere")).unwrap();
    assert_eq!(next_names(&mut watch).await, ["three"]);
    replica.hold();
    simulator.create(&config_map("a", "five")).unwrap();
    replica.catch_up();
    assert_eq!(next_names(&mut watch).await, ["four", "five"]);
}

#[tokio::test]
async fn held_replica_watches_from_its_newest_version_after_compact() {
    let simulator = simulator().await;
    let replica = simulator.lagging_replica();
    simulator.create(&config_map("a", "one")).unwrap();
    replica.hold();
    simulator.create(&config_map("a", "two")).unwrap();
    simulator.compact();
    let list = get(&replica, &format!("{MAPS}?resourceVersion=0")).await.1;
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    let path = format!("{MAPS}?watch=1&resourceVersion={version}");
    let mut watch = send(&replica, &path).await.into_body();
    replica.catch_up();
    assert_eq!(next_names(&mut watch).await, ["two"]);
}

#[tokio::test]
async fn replica_never_goes_back_in_time() {
    let simulator = simulator().await;
    let replica = simulator.lagging_replica();
    let version = simulator.create(&config_map("a", "one")).unwrap().resource_version();
    replica.lag(5);
    assert_eq!(replica.resource_version(), version);
    simulator.compact();
    assert_eq!(names(&get(&replica, &format!("{MAPS}?resourceVersion=0")).await.1), ["one"]);
}

#[tokio::test]
async fn restore_to_an_older_version_keeps_the_hold_of_a_replica() {
    let simulator = simulator().await;
    let replica = simulator.lagging_replica();
    let backup = simulator.backup();
    simulator.create(&config_map("a", "undone")).unwrap();
    replica.hold();
    simulator.restore(&backup);
    simulator.create(&config_map("a", "next")).unwrap();
    assert_eq!(replica.resource_version(), backup.resource_version());
    let any = get(&replica, &format!("{MAPS}?resourceVersion=0")).await.1;
    assert_eq!(names(&any), Vec::<String>::new());
}

#[tokio::test]
async fn each_replica_has_its_own_address() {
    let simulator = simulator().await;
    let replica = simulator.lagging_replica();
    replica.hold();
    let client = kube::Client::try_from(replica.listen().await.unwrap()).unwrap();
    simulator.create(&config_map("a", "one")).unwrap();
    let (late, current): (Api<ConfigMap>, Api<ConfigMap>) =
        (Api::all(client), Api::all(simulator.client().unwrap()));
    let any = ListParams::default().at("0");
    assert_eq!(late.list(&any).await.unwrap().items.len(), 0);
    assert_eq!(current.list(&any).await.unwrap().items.len(), 1);
    simulator.hold_replicas(0);
    assert_eq!(late.list(&any).await.unwrap().items.len(), 1);
}

#[tokio::test]
async fn events_do_not_lag_because_etcd_serves_them() {
    let simulator = simulator().await;
    let replica = simulator.lagging_replica();
    replica.hold();
    let created = simulator.create(&event("late")).unwrap();
    let events = "/api/v1/namespaces/a/events";
    for path in [format!("{events}?resourceVersion=0"), format!("{events}/late?resourceVersion=0")] {
        assert_eq!(get(&replica, &path).await.0, StatusCode::OK, "{path}");
    }
    let before = created.resource_version() - 1;
    for query in [
        format!("watch=1&resourceVersion={before}"),
        "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan".to_owned(),
    ] {
        let mut watch = send(&replica, &format!("{events}?{query}")).await.into_body();
        assert_eq!(next_names(&mut watch).await, ["late"], "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn held_replica_begins_unversioned_watches_with_its_state() {
    let builder = Simulator::builder().built_in_kinds().streaming_lists(StreamingLists::Refused);
    let simulator = builder.start_in_process();
    let replica = simulator.lagging_replica();
    simulator.create(&config_map("a", "one")).unwrap();
    replica.hold();
    simulator.create(&config_map("a", "two")).unwrap();
    let mut watch = send(&replica, &format!("{MAPS}?watch=1")).await.into_body();
    assert_eq!(next_names(&mut watch).await, ["one"]);
    replica.catch_up();
    assert_eq!(next_names(&mut watch).await, ["two"]);
}
