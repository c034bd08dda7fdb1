//! Watches: how they start, their events, and how they end.

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, WatchEvent, WatchParams};
use kube_simulator::{RequestFilter, Simulator, StreamingLists, Verb};
use std::time::Duration;
use tokio::time::Instant;

use crate::support::{Lines, config_map, pod, simulator};

const WATCH: &str = "/api/v1/namespaces/a/configmaps?watch=1";

fn event(kind: &str, name: &str, version: u64) -> Option<(String, String, u64)> {
    Some((kind.to_owned(), name.to_owned(), version))
}

#[tokio::test]
async fn kubes_client_sees_every_change_over_the_socket() {
    let simulator = simulator().await;
    let maps: Api<ConfigMap> = Api::all(simulator.client().unwrap());
    let from = simulator.resource_version().to_string();
    let mut events = maps.watch(&WatchParams::default(), &from).await.unwrap().boxed();
    simulator.create(&config_map("a", "one")).unwrap();
    simulator.apply(&config_map("a", "one")).unwrap();
    simulator.delete::<ConfigMap>("a/one").unwrap();
    let mut seen = Vec::new();
    while seen.len() < 3 {
        seen.push(match events.try_next().await.unwrap().expect("an event") {
            WatchEvent::Added(_) => "added",
            WatchEvent::Modified(_) => "modified",
            WatchEvent::Deleted(_) => "deleted",
            other => panic!("{other:?}"),
        });
    }
    assert_eq!(seen, ["added", "modified", "deleted"]);
    drop(events);
    simulator.wait_for_watches(&RequestFilter::any(), 0).await;
    simulator.shutdown().await;
}

#[tokio::test]
async fn a_watch_from_before_history_gets_an_error_in_the_stream() {
    let simulator = Simulator::builder().built_in_kinds().history_limit(2).start().await.unwrap();
    let old = simulator.resource_version();
    for name in ["a", "b", "c"] {
        simulator.create(&config_map("a", name)).unwrap();
    }
    let mut watch = Lines::open(&simulator, &format!("{WATCH}&resourceVersion={old}")).await;
    let error = watch.next().await.unwrap();
    assert_eq!(error["type"], "ERROR");
    assert_eq!(error["object"]["code"], 410);
    assert_eq!(error["object"]["reason"], "Expired");
    assert_eq!(error["object"]["message"], format!("too old resource version: {old} ({})", old + 1));
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn compaction_keeps_open_watches_and_limits_new_ones() {
    let simulator = simulator().await;
    let old = simulator.resource_version();
    let mut open = Lines::open(&simulator, &format!("{WATCH}&resourceVersion={old}")).await;
    let version = simulator.create(&config_map("a", "one")).unwrap().resource_version();
    simulator.compact();
    assert_eq!(open.brief().await, event("ADDED", "one", version));
    let mut late = Lines::open(&simulator, &format!("{WATCH}&resourceVersion={old}")).await;
    assert_eq!(late.next().await.unwrap()["object"]["code"], 410);
}

#[tokio::test(start_paused = true)]
async fn watch_from_a_future_version_gets_no_early_bookmark() {
    let simulator = simulator().await;
    let version = simulator.resource_version() + 1;
    let path = format!("{WATCH}&allowWatchBookmarks=true&timeoutSeconds=3600&resourceVersion={version}");
    let mut watch = Lines::open(&simulator, &path).await;
    let a_while = Duration::from_secs(300);
    assert!(
        tokio::time::timeout(a_while, watch.next()).await.is_err(),
        "no bookmark must be sent before the version is reached"
    );
    simulator.create(&config_map("b", "elsewhere")).unwrap();
    let bookmark = watch.next().await.unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(bookmark["object"]["metadata"]["resourceVersion"], version.to_string());
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_at_its_deadline_after_a_last_bookmark() {
    let simulator = simulator().await;
    let started = Instant::now();
    let path = format!("{WATCH}&resourceVersion=1000&timeoutSeconds=90&allowWatchBookmarks=true");
    let mut watch = Lines::open(&simulator, &path).await;
    assert_eq!(watch.brief().await, event("BOOKMARK", "", 1000));
    assert_eq!(started.elapsed().as_secs(), 60);
    assert_eq!(watch.brief().await, event("BOOKMARK", "", 1000));
    assert_eq!(started.elapsed().as_secs(), 88);
    assert_eq!(watch.next().await, None);
    assert_eq!(started.elapsed().as_secs(), 90);
}

#[tokio::test(start_paused = true)]
async fn bookmarks_report_writes_to_other_resources() {
    let builder = Simulator::builder().built_in_kinds().bookmark_interval(Duration::from_secs(5));
    let simulator = builder.start().await.unwrap();
    let path = format!("{WATCH}&resourceVersion=1000&allowWatchBookmarks=true");
    let mut watch = Lines::open(&simulator, &path).await;
    let elsewhere = simulator.create(&pod("a", "n1", "web")).unwrap().resource_version();
    assert_eq!(watch.brief().await, event("BOOKMARK", "", elsewhere));
}

#[tokio::test]
async fn watch_that_lags_too_far_is_closed_without_error() {
    let simulator = Simulator::builder().built_in_kinds().watch_buffer(3).start().await.unwrap();
    let mut watch = Lines::open(&simulator, &format!("{WATCH}&resourceVersion=1000")).await;
    for name in ["a", "b", "c", "d"] {
        simulator.create(&config_map("a", name)).unwrap();
    }
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn watch_from_an_old_version_gets_all_events() {
    let simulator = Simulator::builder().built_in_kinds().watch_buffer(3).start().await.unwrap();
    for name in ["a", "b", "c", "d", "e"] {
        simulator.create(&config_map("a", name)).unwrap();
    }
    let mut watch = Lines::open(&simulator, &format!("{WATCH}&resourceVersion=1000")).await;
    simulator.create(&config_map("a", "f")).unwrap();
    for name in ["a", "b", "c", "d", "e", "f"] {
        assert_eq!(watch.brief().await.map(|(_, name, _)| name).as_deref(), Some(name));
    }
}

#[tokio::test]
async fn stopping_the_simulator_ends_its_watches() {
    let simulator = simulator().await;
    let maps: Api<ConfigMap> = Api::all(simulator.client().unwrap());
    let mut events = maps.watch(&WatchParams::default(), "1000").await.unwrap().boxed();
    simulator.shutdown().await;
    assert!(events.try_next().await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn server_without_streaming_lists_sends_no_end_bookmark() {
    let builder = Simulator::builder().built_in_kinds().streaming_lists(StreamingLists::Ignored);
    let simulator = builder.start().await.unwrap();
    let version = simulator.create(&config_map("a", "one")).unwrap().resource_version();
    let query = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = Lines::open(&simulator, &format!("{WATCH}{query}&timeoutSeconds=70")).await;
    assert_eq!(watch.brief().await, event("ADDED", "one", version));
    while let Some(event) = watch.next().await {
        assert_eq!(event["type"], "BOOKMARK");
        assert!(event["object"]["metadata"].get("annotations").is_none());
    }
}

#[tokio::test]
async fn many_watches_share_one_stream_of_events() {
    let simulator = simulator().await;
    let maps: Api<ConfigMap> = Api::all(simulator.client().unwrap());
    let mut watches = Vec::new();
    for _ in 0..40 {
        watches.push(maps.watch(&WatchParams::default(), "1000").await.unwrap().boxed());
    }
    assert_eq!(simulator.open_watches(&RequestFilter::verb(Verb::Watch)), 40);
    for index in 0..50 {
        simulator.create(&config_map("a", &format!("m{index}"))).unwrap();
    }
    simulator.close_watches();
    for watch in watches {
        assert_eq!(watch.try_collect::<Vec<_>>().await.unwrap().len(), 50);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_writes_reach_a_watch_in_order_and_without_loss() {
    let simulator = simulator().await;
    let maps: Api<ConfigMap> = Api::all(simulator.client().unwrap());
    let events = maps.watch(&WatchParams::default(), "1000").await.unwrap();
    let store = simulator.objects_of::<ConfigMap>().unwrap();
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let store = store.clone();
            tokio::task::spawn_blocking(move || {
                for _ in 0..250 {
                    store.apply(&config_map("a", &format!("m{writer}"))).unwrap();
                }
            })
        })
        .collect();
    let seen: Vec<WatchEvent<ConfigMap>> = events.take(1_000).try_collect().await.unwrap();
    for writer in writers {
        writer.await.unwrap();
    }
    let versions = seen.iter().map(|event| match event {
        WatchEvent::Added(map) | WatchEvent::Modified(map) => map.metadata.resource_version.clone().unwrap(),
        other => panic!("{other:?}"),
    });
    assert!(versions.eq((1_001..=2_000).map(|version: u64| version.to_string())));
}

/// Returns the remaining events of a watch, each as its type and the name of its object.
async fn rest(mut watch: Lines) -> Vec<String> {
    let mut rest = Vec::new();
    while let Some((event, name, _)) = watch.brief().await {
        rest.push(format!("{event} {name}"));
    }
    rest
}

#[tokio::test(start_paused = true)]
async fn without_periodic_bookmarks_the_last_one_is_sent() {
    let simulator = Simulator::builder().built_in_kinds().bookmark_interval(Duration::MAX).start_in_process();
    let from = simulator.resource_version();
    let path = format!("{WATCH}&resourceVersion={from}&allowWatchBookmarks=true&timeoutSeconds=30");
    assert_eq!(rest(Lines::open(&simulator, &path).await).await, ["BOOKMARK "]);
    simulator.set_bookmark_interval(Duration::MAX);
    assert_eq!(rest(Lines::open(&simulator, &path).await).await, ["BOOKMARK "]);
}

#[tokio::test(start_paused = true)]
async fn watch_without_timeout_lasts_30_to_60_minutes() {
    let simulator = Simulator::builder().built_in_kinds().start_in_process();
    let mut lasted = Vec::new();
    for _ in 0..5 {
        let began = Instant::now();
        assert_eq!(
            rest(Lines::open(&simulator, &format!("{WATCH}&resourceVersion=1000")).await).await,
            [""; 0]
        );
        lasted.push(began.elapsed());
    }
    let minute = Duration::from_secs(60);
    assert!(lasted.iter().all(|lasted| (30 * minute..=60 * minute).contains(lasted)), "{lasted:?}");
    assert!(
        lasted.iter().any(|other| *other != lasted[0]),
        "watches must end at different times: {lasted:?}"
    );
}
