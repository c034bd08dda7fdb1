//! Restarts (with and without history), backups, bookmarks, and the clock.

use std::time::{Duration, SystemTime};

use http::StatusCode;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_simulator::{RequestFilter, Simulator, StreamingLists};
use serde_json::{Value, json};

use crate::support::{Lines, MAPS, config_map, get, names, simulator};

const WATCH: &str = "/api/v1/namespaces/a/configmaps?watch=1&resourceVersion=";

async fn watch_from(simulator: &Simulator, version: u64) -> Lines {
    Lines::open(simulator, &format!("{WATCH}{version}")).await
}

fn is_expired(event: &Value) -> bool {
    event["type"] == "ERROR" && event["object"]["code"] == 410
}

#[tokio::test]
async fn restart_ends_watches_that_can_be_resumed() {
    let simulator = simulator().await;
    let mut before = watch_from(&simulator, 1000).await;
    simulator.restart();
    assert_eq!(before.next().await, None);
    simulator.wait_for_watches(&RequestFilter::any(), 0).await;
    simulator.create(&config_map("a", "one")).unwrap();
    assert_eq!(watch_from(&simulator, 1000).await.brief().await.unwrap().1, "one");
}

#[tokio::test]
async fn restart_without_history_expires_earlier_versions() {
    let simulator = simulator().await;
    let mut before = watch_from(&simulator, 1000).await;
    let version = simulator.create(&config_map("a", "one")).unwrap().resource_version();
    simulator.restart_without_history();
    assert_eq!(before.next().await, None, "unsent events are lost with the connection");
    assert!(is_expired(&watch_from(&simulator, 1000).await.next().await.unwrap()));
    let exact = format!("{MAPS}?resourceVersion=1000&resourceVersionMatch=Exact");
    assert_eq!(get(&simulator, &exact).await.0, StatusCode::GONE);
    let mut after = watch_from(&simulator, version).await;
    simulator.create(&config_map("a", "two")).unwrap();
    assert_eq!(after.brief().await.unwrap().1, "two");
}

#[tokio::test]
async fn restored_backup_restores_objects_and_versions() {
    let simulator = simulator().await;
    let kept = simulator.create(&config_map("a", "kept")).unwrap().resource_version();
    let backup = simulator.backup();
    assert_eq!(backup.resource_version(), kept);
    simulator.create(&config_map("a", "undone")).unwrap();
    simulator.delete::<ConfigMap>("a/kept").unwrap();
    let mut before = watch_from(&simulator, kept).await;
    assert_eq!(before.brief().await.unwrap().1, "undone");
    assert_eq!(before.brief().await.unwrap().0, "DELETED");
    simulator.restore(&backup);
    assert_eq!(before.next().await, None);
    assert_eq!(simulator.resource_version(), kept);
    assert_eq!(names(&get(&simulator, MAPS).await.1), ["kept"]);

    // A watch from a version that the restore has undone is silent until this version is reached
    // again.
    let mut future = watch_from(&simulator, kept + 2).await;
    for name in ["x", "y", "z"] {
        simulator.create(&config_map("a", name)).unwrap();
    }
    assert_eq!(future.brief().await, Some(("ADDED".to_owned(), "z".to_owned(), kept + 3)));
}

#[tokio::test]
async fn backup_during_writes_has_all_writes_up_to_its_version() {
    let simulator = simulator().await;
    simulator.create(&config_map("a", "one")).unwrap();
    let maps = simulator.objects_of::<ConfigMap>().unwrap();
    let backups = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for _ in 0..2_000 {
                maps.apply(&config_map("a", "one")).unwrap();
            }
        });
        let mut backups = Vec::new();
        while !writer.is_finished() {
            backups.push(simulator.backup());
        }
        backups
    });
    for backup in backups {
        simulator.restore(&backup);
        assert_eq!(maps.get("a/one").unwrap().resource_version(), backup.resource_version());
    }
}

#[tokio::test]
async fn backup_restored_ahead_expires_all_earlier_versions() {
    let simulator = simulator().await;
    let kept = simulator.create(&config_map("a", "kept")).unwrap().resource_version();
    let backup = simulator.backup();
    let undone = simulator.create(&config_map("a", "undone")).unwrap().resource_version();
    simulator.restore_ahead(&backup, 500);
    assert_eq!(simulator.resource_version(), undone + 500);
    assert!(is_expired(&watch_from(&simulator, undone).await.next().await.unwrap()));
    let (_, list) = get(&simulator, MAPS).await;
    assert_eq!(list["metadata"]["resourceVersion"], (undone + 500).to_string());
    assert_eq!(list["items"][0]["metadata"]["resourceVersion"], kept.to_string(), "as in the backup");
    let next = simulator.create(&config_map("a", "next")).unwrap().resource_version();
    assert_eq!(next, undone + 501);
}

#[tokio::test]
async fn highest_first_version_leaves_versions_for_writes() {
    let simulator = Simulator::builder().built_in_kinds().first_resource_version(u64::MAX).start_in_process();
    let first = simulator.resource_version();
    assert_eq!(simulator.create(&config_map("a", "one")).unwrap().resource_version(), first + 1);
}

#[tokio::test]
async fn restore_far_ahead_leaves_versions_for_writes() {
    let simulator = simulator().await;
    let before = simulator.resource_version();
    simulator.restore_ahead(&simulator.backup(), u64::MAX);
    let restored = simulator.resource_version();
    assert_eq!(restored, before + u64::from(u32::MAX));
    assert_eq!(simulator.create(&config_map("a", "one")).unwrap().resource_version(), restored + 1);
}

#[tokio::test(start_paused = true)]
async fn bookmarks_can_be_lost_and_delayed() {
    let simulator = simulator().await;
    let mut watch = watch_from(&simulator, 1000).await;
    drop(watch);
    let path = format!("{WATCH}1000&allowWatchBookmarks=true&timeoutSeconds=3600");
    simulator.lose_bookmarks(true);
    watch = Lines::open(&simulator, &path).await;
    let a_while = Duration::from_secs(600);
    assert!(tokio::time::timeout(a_while, watch.next()).await.is_err(), "bookmarks must be lost");
    simulator.lose_bookmarks(false);
    assert_eq!(watch.brief().await.unwrap().0, "BOOKMARK");
    simulator.set_bookmark_interval(Duration::from_secs(300));
    assert_eq!(watch.brief().await.unwrap().0, "BOOKMARK", "this bookmark was already due");
    let began = tokio::time::Instant::now();
    assert_eq!(watch.brief().await.unwrap().0, "BOOKMARK");
    let about_five_minutes = Duration::from_secs(299)..Duration::from_millis(301_252);
    assert!(about_five_minutes.contains(&began.elapsed()), "{:?}", began.elapsed());
    simulator.delay_bookmarks(true);
    assert_eq!(watch.brief().await.unwrap().0, "BOOKMARK", "this bookmark was already due");
    let began = tokio::time::Instant::now();
    assert_eq!(watch.brief().await.unwrap().0, "BOOKMARK");
    assert!(
        began.elapsed() > Duration::from_secs(1_000),
        "ten times the interval, or just before the end of the watch"
    );
}

#[tokio::test(start_paused = true)]
async fn older_server_sends_changes_before_the_list_end() {
    let builder = Simulator::builder().built_in_kinds().streaming_lists(StreamingLists::ServedLate);
    let simulator = builder.start().await.unwrap();
    simulator.create(&config_map("a", "one")).unwrap();
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = Lines::open(&simulator, &format!("{MAPS}?watch=1&{query}")).await;
    assert_eq!(watch.brief().await.unwrap().1, "one");
    let version = simulator.create(&config_map("a", "two")).unwrap().resource_version();
    assert_eq!(watch.brief().await.unwrap().1, "two");
    simulator.apply(&config_map("a", "two")).unwrap();
    let deleted = simulator.delete::<ConfigMap>("a/one").unwrap().resource_version();
    assert_eq!(watch.brief().await.unwrap(), ("MODIFIED".to_owned(), "two".to_owned(), version + 1));
    assert_eq!(watch.brief().await.unwrap(), ("DELETED".to_owned(), "one".to_owned(), deleted));
    let end = watch.next().await.unwrap();
    assert_eq!(end["object"]["metadata"]["resourceVersion"], deleted.to_string());
    assert_eq!(end["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
}

#[tokio::test(start_paused = true)]
async fn late_reader_gets_changes_before_the_late_list_end() {
    let builder = Simulator::builder().built_in_kinds().streaming_lists(StreamingLists::ServedLate);
    let simulator = builder.start_in_process();
    simulator.create(&config_map("a", "one")).unwrap();
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = Lines::open(&simulator, &format!("{MAPS}?watch=1&{query}")).await;
    assert_eq!(watch.brief().await.unwrap().1, "one");
    let version = simulator.create(&config_map("a", "two")).unwrap().resource_version();
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(watch.brief().await.unwrap(), ("ADDED".to_owned(), "two".to_owned(), version));
    assert_eq!(watch.brief().await.unwrap(), ("BOOKMARK".to_owned(), String::new(), version));
}

#[tokio::test(start_paused = true)]
async fn dates_follow_the_clock_of_the_test() {
    let start_date = SystemTime::UNIX_EPOCH + Duration::from_secs(86_400);
    let simulator = Simulator::builder().built_in_kinds().start_date(start_date).start_in_process();
    let mut held = config_map("a", "held");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let created = simulator.create(&held).unwrap().value();
    assert_eq!(created["metadata"]["creationTimestamp"], "1970-01-02T00:00:00Z");
    tokio::time::advance(Duration::from_secs(90)).await;
    let marked = simulator.delete::<ConfigMap>("a/held").unwrap().value();
    assert_eq!(marked["metadata"]["deletionTimestamp"], "1970-01-02T00:01:30Z");
}
