//! The limits of history: the watch cache, compactions, and slow watches.

use std::time::Duration;

use http::StatusCode;
use http_body_util::BodyExt;
use kube_simulator::{Simulator, SimulatorBuilder};
use serde_json::Value;
use tokio::time::{Instant, advance};

use crate::support::{Lines, MAPS, config_map, event, get, names, pod, request, send};

const PODS: &str = "/api/v1/namespaces/default/pods";

/// A time after which the watch cache of a server can drop an event.
const LONG: Duration = Duration::from_secs(76);

fn start(configure: impl FnOnce(SimulatorBuilder) -> SimulatorBuilder) -> Simulator {
    configure(Simulator::builder().built_in_kinds()).start_in_process()
}

/// Changes one object `times` times, and returns the first and last resource version.
fn write(simulator: &Simulator, times: u64) -> (u64, u64) {
    let write = || simulator.apply(&config_map("a", "often")).unwrap().resource_version();
    let first = write();
    let last = (1..times).fold(first, |_, _| write());
    assert_eq!(last, first + times - 1, "the test must make no other writes");
    (first, last)
}

/// Returns whether a watch can start after this resource version, according to its first event.
async fn can_watch(simulator: &Simulator, path: &str, version: u64) -> bool {
    let mut watch = Lines::open(simulator, &format!("{path}?watch=1&resourceVersion={version}")).await;
    let first = watch.next().await.expect("an event");
    if first["type"] == "ERROR" {
        assert_eq!(first["object"]["code"], 410, "{first}");
        return false;
    }
    assert_eq!(first["object"]["metadata"]["resourceVersion"], (version + 1).to_string());
    true
}

async fn list_exactly(simulator: &Simulator, path: &str, version: u64) -> (StatusCode, Value) {
    get(simulator, &format!("{path}?resourceVersionMatch=Exact&resourceVersion={version}")).await
}

#[tokio::test(start_paused = true)]
async fn events_of_75_seconds_are_kept() {
    for (age, is_kept) in [(74, true), (76, false)] {
        let simulator = start(|builder| builder);
        let before = simulator.resource_version();
        write(&simulator, 5_000);
        advance(Duration::from_secs(age)).await;
        write(&simulator, 5_000);
        assert_eq!(can_watch(&simulator, MAPS, before).await, is_kept, "{age} s");
    }
}

#[tokio::test(start_paused = true)]
async fn quiet_resource_keeps_at_least_100_events() {
    let simulator = start(|builder| builder);
    let before = simulator.resource_version();
    let (first, _) = write(&simulator, 400);
    advance(LONG).await;
    let (_, last) = write(&simulator, 5);
    assert!(can_watch(&simulator, MAPS, last - 100).await);
    assert!(!can_watch(&simulator, MAPS, before).await);
    let (code, list) = list_exactly(&simulator, MAPS, first).await;
    assert_eq!((code, names(&list).len()), (StatusCode::OK, 1), "the storage must keep all versions");
}

#[tokio::test(start_paused = true)]
async fn storage_is_compacted_every_five_minutes() {
    let simulator = start(|builder| builder);
    let before = simulator.resource_version();
    let (first, _) = write(&simulator, 1);
    simulator.create(&event("happened")).unwrap();
    advance(Duration::from_secs(301)).await;
    let (second, _) = write(&simulator, 1);
    let events = "/api/v1/namespaces/a/events";
    assert_eq!(list_exactly(&simulator, MAPS, before).await.0, StatusCode::OK);
    assert!(can_watch(&simulator, events, first).await);

    advance(Duration::from_secs(300)).await;
    assert_eq!(list_exactly(&simulator, MAPS, before).await.0, StatusCode::GONE);
    assert_eq!(
        list_exactly(&simulator, MAPS, second - 1).await.0,
        StatusCode::OK,
        "the newest version of five minutes ago must be kept"
    );
    assert!(!can_watch(&simulator, events, before).await, "events have no watch cache");
    assert!(can_watch(&simulator, MAPS, before).await, "the watch cache must keep the version");
}

#[tokio::test(start_paused = true)]
async fn without_compaction_all_history_is_kept() {
    let simulator = start(|builder| builder.compaction_interval(Duration::ZERO));
    let before = simulator.resource_version();
    write(&simulator, 1);
    advance(Duration::from_secs(86_400)).await;
    assert_eq!(list_exactly(&simulator, MAPS, before).await.0, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn continue_token_expires_after_ten_minutes() {
    let simulator = start(|builder| builder);
    for name in ["one", "two"] {
        simulator.create(&config_map("a", name)).unwrap();
    }
    let (_, page) = get(&simulator, &format!("{MAPS}?limit=1")).await;
    let next = format!("{MAPS}?limit=1&continue={}", page["metadata"]["continue"].as_str().unwrap());
    advance(Duration::from_secs(299)).await;
    write(&simulator, 1);
    advance(Duration::from_secs(300)).await;
    assert_eq!(get(&simulator, &next).await.0, StatusCode::OK);
    advance(Duration::from_secs(2)).await;
    assert_eq!(get(&simulator, &next).await.0, StatusCode::GONE);
}

/// A number of events that is larger than the capacity of a watch's channels.
const TOO_MANY: u64 = 100;

/// Opens a watch on a server that has run for a while, and writes `events` times without reading.
async fn behind(simulator: &Simulator, events: u64) -> Lines {
    advance(Duration::from_secs(10)).await;
    let now = simulator.resource_version();
    let watch = Lines::open(simulator, &format!("{MAPS}?watch=1&resourceVersion={now}")).await;
    write(simulator, events);
    watch
}

#[tokio::test(start_paused = true)]
async fn slow_watch_within_its_channels_stays_open() {
    let simulator = start(SimulatorBuilder::close_slow_watches_in_time);
    let mut watch = behind(&simulator, 10).await;
    advance(Duration::from_secs(5)).await;
    assert!(watch.next().await.is_some());
}

#[tokio::test(start_paused = true)]
async fn watch_with_full_channels_is_closed_after_100_ms() {
    let simulator = start(SimulatorBuilder::close_slow_watches_in_time);
    let mut watch = behind(&simulator, TOO_MANY).await;
    advance(Duration::from_millis(101)).await;
    assert_eq!(watch.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn slow_watch_budget_is_spent_and_refilled() {
    let simulator = start(SimulatorBuilder::close_slow_watches_in_time);
    let mut first = behind(&simulator, TOO_MANY).await;
    advance(Duration::from_millis(60)).await;
    assert!(first.next().await.is_some());
    let now = simulator.resource_version();
    let path = format!("{MAPS}?watch=1&resourceVersion={now}");
    let open = || Lines::open(&simulator, &path);
    let (mut second, mut third) = (open().await, open().await);
    write(&simulator, TOO_MANY);
    advance(Duration::from_millis(60)).await;
    assert_eq!(second.next().await, None, "all slow watches share a budget of 100 milliseconds");
    assert_eq!(third.next().await, None);
    let mut fourth = behind(&simulator, TOO_MANY).await;
    advance(Duration::from_millis(60)).await;
    assert!(fourth.next().await.is_some(), "the budget must be refilled after ten seconds");
}

#[tokio::test(start_paused = true)]
async fn watch_of_one_node_has_shorter_channels() {
    let simulator = start(SimulatorBuilder::close_slow_watches_in_time);
    // For 6,000 recent events, the capacity of the watch cache grows to 6,400. A channel of an ordinary watch
    // holds 1/75 of this number, and a channel of a watch of one node holds fewer events.
    for _ in 0..6_000 {
        simulator.apply(&pod("a", "n1", "web")).unwrap();
    }
    advance(Duration::from_secs(10)).await;
    let now = simulator.resource_version();
    let open = |more: &str| format!("{PODS}?watch=1&resourceVersion={now}{more}");
    let mut all = Lines::open(&simulator, &open("")).await;
    let mut of_a_node = Lines::open(&simulator, &open("&fieldSelector=spec.nodeName%3Dn1")).await;
    for _ in 0..TOO_MANY {
        simulator.apply(&pod("a", "n1", "web")).unwrap();
    }
    advance(Duration::from_secs(1)).await;
    assert_eq!(of_a_node.next().await, None);
    assert!(all.next().await.is_some());
}

#[tokio::test(start_paused = true)]
async fn bookmarks_are_sent_about_every_minute_at_random_times() {
    let simulator = start(|builder| builder);
    let began = Instant::now();
    let mut delays = Vec::new();
    for _ in 0..20 {
        let since = Instant::now();
        let query = "watch=1&resourceVersion=1000&allowWatchBookmarks=true";
        let mut watch = Lines::open(&simulator, &format!("{MAPS}?{query}")).await;
        assert_eq!(watch.next().await.unwrap()["type"], "BOOKMARK");
        delays.push(since.elapsed());
    }
    // A server checks about once per second for due bookmarks, so each bookmark is a little early or late.
    let tolerated = Duration::from_secs(59)..Duration::from_millis(61_252);
    assert!(delays.iter().all(|delay| tolerated.contains(delay)), "{delays:?}");
    delays.sort_unstable();
    delays.dedup();
    assert!(delays.len() > 15, "{delays:?}");
    assert!(delays[0] < Duration::from_secs(60) && delays[19] > Duration::from_secs(60), "{delays:?}");
    let mean = began.elapsed() / 20;
    assert!((Duration::from_millis(59_700)..Duration::from_millis(60_700)).contains(&mean), "{mean:?}");
}

/// Leaves this many events unread for a minute, reads them, and returns the time until the next
/// bookmark. Returns `None` if the watch has ended.
async fn bookmark_wait(events: u64) -> Option<Duration> {
    let simulator = start(SimulatorBuilder::close_slow_watches_in_time);
    let now = simulator.resource_version();
    let query = format!("watch=1&allowWatchBookmarks=true&timeoutSeconds=3600&resourceVersion={now}");
    let mut watch = Lines::open(&simulator, &format!("{MAPS}?{query}")).await;
    write(&simulator, events);
    advance(Duration::from_secs(62)).await;
    for _ in 0..events {
        assert_ne!(watch.next().await?["type"], "BOOKMARK");
    }
    let read = Instant::now();
    assert_eq!(watch.next().await?["type"], "BOOKMARK");
    Some(read.elapsed())
}

#[tokio::test(start_paused = true)]
async fn bookmark_is_dropped_while_the_channels_are_full() {
    let mut last = bookmark_wait(5).await.expect("the channels hold five events");
    assert!(last < Duration::from_secs(50), "{last:?}");
    for events in 6..=TOO_MANY {
        match bookmark_wait(events).await {
            Some(wait) => last = wait,
            None => break,
        }
    }
    assert!(last > Duration::from_secs(50), "{last:?}");
    assert_eq!(bookmark_wait(TOO_MANY).await, None);
}

async fn metrics(simulator: &Simulator) -> String {
    let response = send(simulator, request(http::Method::GET, "/metrics", &Value::Null)).await;
    assert_eq!(
        response.headers()["content-type"],
        "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
    );
    let bytes = response.into_body().collect().await.expect("a body").to_bytes();
    String::from_utf8(bytes.to_vec()).expect("text")
}

#[tokio::test(start_paused = true)]
async fn slow_watches_are_counted_by_resource() {
    let simulator = start(SimulatorBuilder::close_slow_watches_in_time);
    assert_eq!(metrics(&simulator).await, "", "no watch was slow");
    let mut gone = behind(&simulator, 1).await;
    simulator.restart_without_history();
    assert!(
        gone.next().await.is_none_or(|event| event["type"] != "ERROR"),
        "the watch must end without an error"
    );
    assert_eq!(metrics(&simulator).await, "", "a restart must not be counted");
    for count in 1..=2 {
        let mut watch = behind(&simulator, TOO_MANY).await;
        advance(Duration::from_millis(101)).await;
        assert_eq!(watch.next().await, None);
        let line =
            format!("apiserver_terminated_watchers_total{{group=\"\",resource=\"configmaps\"}} {count}\n");
        let text = metrics(&simulator).await;
        assert!(text.starts_with("# HELP ") && text.ends_with(&line), "{text}");
    }
    simulator.restart();
    assert_eq!(metrics(&simulator).await, "", "the counters must start at zero after a restart");
}

#[tokio::test(start_paused = true)]
async fn early_last_bookmark_is_followed_by_one_more() {
    let mut numbers = [0; 4];
    for seed in 0..60 {
        let simulator = start(|builder| builder.seed(seed));
        let query = "watch=1&resourceVersion=1000&allowWatchBookmarks=true&timeoutSeconds=30";
        let mut watch = Lines::open(&simulator, &format!("{MAPS}?{query}")).await;
        let (mut number, mut last) = (0, Instant::now());
        while let Some(event) = watch.next().await {
            assert_eq!(event["type"], "BOOKMARK");
            assert!(last.elapsed() >= Duration::from_secs(1), "{:?}", last.elapsed());
            (number, last) = (number + 1, Instant::now());
        }
        numbers[number] += 1;
    }
    assert!(numbers[1] > 20 && numbers[2] > 10 && numbers[0] + numbers[3] == 0, "{numbers:?}");
}

#[tokio::test(start_paused = true)]
async fn unsent_events_do_not_delay_bookmarks() {
    let simulator = start(SimulatorBuilder::close_slow_watches_in_time);
    let now = simulator.resource_version();
    write(&simulator, 30);
    simulator.create(&config_map("b", "there")).unwrap();
    let elsewhere = MAPS.replace("/a/", "/b/");
    for (path, events) in [(MAPS, 30), (elsewhere.as_str(), 1)] {
        let query = format!("watch=1&allowWatchBookmarks=true&timeoutSeconds=3600&resourceVersion={now}");
        let mut watch = Lines::open(&simulator, &format!("{path}?{query}")).await;
        advance(Duration::from_secs(62)).await;
        for _ in 0..events {
            assert_ne!(watch.next().await.unwrap()["type"], "BOOKMARK");
        }
        let read = Instant::now();
        assert_eq!(watch.next().await.unwrap()["type"], "BOOKMARK");
        assert!(read.elapsed() < Duration::from_secs(1), "{:?}", read.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn slow_watch_of_events_is_not_ended() {
    let simulator = start(SimulatorBuilder::close_slow_watches_in_time);
    let now = simulator.resource_version();
    let events = "/api/v1/namespaces/a/events";
    let mut watch = Lines::open(&simulator, &format!("{events}?watch=1&resourceVersion={now}")).await;
    for _ in 0..100 {
        simulator.apply(&event("happened")).unwrap();
    }
    advance(Duration::from_secs(60)).await;
    for _ in 0..100 {
        assert!(watch.next().await.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn refilled_watch_cache_keeps_its_capacity() {
    let simulator = start(|builder| builder);
    write(&simulator, 150);
    simulator.create(&config_map("a", "unreadable")).unwrap();
    simulator.objects("v1", "ConfigMap").unwrap().delete_corrupt("a/unreadable").unwrap();
    let (first, _) = write(&simulator, 100);
    advance(LONG).await;
    write(&simulator, 50);
    assert!(can_watch(&simulator, MAPS, first - 1).await, "a new cache holds 100 events");
}

#[tokio::test(start_paused = true)]
async fn history_of_a_busy_resource_is_bounded() {
    let simulator = start(|builder| builder);
    let (first, last) = write(&simulator, 110_000);
    assert!(can_watch(&simulator, MAPS, last - 100_000).await);
    assert!(!can_watch(&simulator, MAPS, first - 1).await);
}

#[tokio::test(start_paused = true)]
async fn simultaneous_slow_watches_spend_the_budget_once() {
    let simulator = start(SimulatorBuilder::close_slow_watches_in_time);
    advance(Duration::from_secs(10)).await;
    let now = simulator.resource_version();
    let path = format!("{MAPS}?watch=1&resourceVersion={now}");
    let mut watches = Vec::new();
    for _ in 0..3 {
        watches.push(Lines::open(&simulator, &path).await);
    }
    write(&simulator, TOO_MANY);
    advance(Duration::from_millis(40)).await;
    for mut watch in watches {
        assert!(watch.next().await.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn unsent_events_do_not_fill_the_channels() {
    let simulator = start(SimulatorBuilder::close_slow_watches_in_time);
    advance(Duration::from_secs(10)).await;
    let now = simulator.resource_version();
    let elsewhere = format!("/api/v1/namespaces/b/configmaps?watch=1&resourceVersion={now}");
    let mut watch = Lines::open(&simulator, &elsewhere).await;
    write(&simulator, 100);
    simulator.create(&config_map("b", "at-last")).unwrap();
    advance(Duration::from_secs(1)).await;
    assert!(watch.next().await.is_some());
}

#[tokio::test(start_paused = true)]
async fn extreme_limits_and_intervals_are_accepted() {
    for (buffer, interval) in [(usize::MAX, Duration::MAX), (1, Duration::from_nanos(1))] {
        let simulator = start(|builder| builder.watch_buffer(buffer).compaction_interval(interval));
        let (first, _) = write(&simulator, 1);
        advance(Duration::from_secs(86_400 * 100)).await;
        assert!(can_watch(&simulator, MAPS, first - 1).await);
        write(&simulator, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn lagging_cache_keeps_events_that_newer_ones_displace() {
    let simulator = start(|builder| builder);
    let replica = simulator.lagging_replica();
    replica.hold();
    let held = replica.resource_version();
    write(&simulator, 100);
    advance(LONG).await;
    write(&simulator, 100);
    assert!(!can_watch(&simulator, MAPS, held).await);
    let path = format!("{MAPS}?watch=1&resourceVersion={held}");
    let request = request(http::Method::GET, &path, &Value::Null);
    let mut watch = Lines::of(tower::Service::call(&mut replica.service(), request).await.unwrap());
    replica.catch_up();
    assert_eq!(watch.brief().await, Some(("ADDED".to_owned(), "often".to_owned(), held + 1)));
}
