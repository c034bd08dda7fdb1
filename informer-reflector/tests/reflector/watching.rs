//! Watches: the changes that the store receives, and the version of the next watch.

use std::sync::Arc;
use std::time::Duration;

use informer_core::{ListWatchError, RejectedKind, WatchEvent};
use informer_reflector::ReflectorConfig;

use super::script::*;

#[tokio::test(start_paused = true)]
async fn initial_list_is_from_the_cache_and_the_watch_continues_it() {
    let (events, line) = watch();
    let mut run = Run::new(vec![page(vec![item("a", "3"), item("b", "4")], "7"), line]);
    run.expect_requests(&["list 0 500", "watch 7"]).await;
    run.expect_notes(&["[a b]@7"]).await;
    send(&events, vec![added("c", "8"), modified("a", "9")]);
    run.expect_notes(&["+c ~a@9"]).await;
    send(&events, vec![deleted("b", "10")]);
    run.expect_notes(&["-b@10"]).await;
    send(&events, vec![bookmark("20")]);
    run.expect_notes(&["@20"]).await;
    assert_eq!(run.status.last_sync_resource_version(), "20".into());
    assert!(run.status.health().is_live());
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_without_a_version_changes_nothing() {
    let (first, first_line) = watch();
    let (_second, second_line) = watch();
    let mut run = Run::new(vec![page(vec![], "7"), first_line, second_line]);
    send(&first, vec![bookmark("")]);
    drop(first);
    run.expect_requests(&["list 0 500", "watch 7", "watch 7"]).await;
}

#[tokio::test(start_paused = true)]
async fn version_zero_is_not_used_to_resume() {
    let gone = WatchEvent::RejectedObject { kind: RejectedKind::Deleted, object: malformed(Some("a"), "0") };
    let events = [bookmark("0"), added("a", "0"), modified("a", "0"), deleted("a", "0"), gone];
    for event in events {
        let (first, first_line) = watch();
        let mut run = Run::new(vec![page(vec![], "7"), first_line, watch().1]);
        send(&first, vec![event]);
        drop(first);
        run.expect_requests(&["list 0 500", "watch 7", "watch 7"]).await;
        assert_eq!(run.status.last_sync_resource_version(), "7".into());
    }
}

#[tokio::test(start_paused = true)]
async fn i9_zero_versions_lead_to_a_list_after_each_watch() {
    let (events, line) = watch();
    let mut run = Run::new(vec![page(vec![item("a", "0")], "0"), line, page(vec![], "0")]);
    run.expect_requests(&["list 0 500", "watch "]).await;
    send(&events, vec![added("a", "0"), modified("a", "0"), bookmark("0"), deleted("b", "0")]);
    run.expect_notes(&["[a]@", "+a ~a -b@"]).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    drop(events);
    run.expect_requests(&["list newest 500", "watch "]).await;
    run.expect_notes(&["[]@"]).await;
}

#[tokio::test(start_paused = true)]
async fn watch_closed_at_once_reopens_after_a_wait() {
    let (first, first_line) = watch();
    drop(first);
    let mut run = Run::new(vec![page(vec![], "7"), first_line, watch().1]);
    let started = tokio::time::Instant::now();
    run.expect_requests(&["list 0 500", "watch 7", "watch 7"]).await;
    assert!(started.elapsed() >= Duration::from_millis(800));
}

#[tokio::test(start_paused = true)]
async fn brief_watches_with_new_versions_do_not_lead_to_a_relist() {
    let version = |number: usize| (number + 8).to_string();
    let mut lines = vec![page(vec![], "7")];
    lines.extend((0..20).map(|number| brief_watch(vec![added("a", &version(number))])));
    let mut run = Run::new(lines);
    run.expect_requests(&["list 0 500", "watch 7"]).await;
    for number in 0..20 {
        run.expect_requests(&[&format!("watch {}", version(number))]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn watch_that_the_server_does_not_end_is_cancelled() {
    let (_silent, silent_line) = watch();
    let config = ReflectorConfig::new().watch_idle_timeout(Duration::from_secs(60 * 60));
    let mut run = Run::with(vec![page(vec![], "7"), silent_line, watch().1], config);
    let started = tokio::time::Instant::now();
    run.expect_requests(&["list 0 500", "watch 7", "watch 7"]).await;
    assert!((330..=630).contains(&started.elapsed().as_secs()), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn eventless_watch_closed_at_once_reopens_after_a_wait() {
    let mut run = Run::new(vec![page(vec![], "7"), brief_watch(vec![bookmark("7")]), watch().1]);
    run.expect_requests(&["list 0 500", "watch 7"]).await;
    run.expect_after(0.8..1.6, "watch 7").await;
}

#[tokio::test(start_paused = true)]
async fn quiet_watch_closed_after_a_second_reopens_at_once() {
    let (quiet, line) = watch();
    let mut run = Run::new(vec![page(vec![], "7"), line, watch().1]);
    run.expect_requests(&["list 0 500", "watch 7"]).await;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    drop(quiet);
    run.expect_after(0.0..0.1, "watch 7").await;
}

#[tokio::test(start_paused = true)]
async fn watch_timeout_is_five_to_ten_minutes_by_default() {
    let day = 24 * 60 * 60;
    let table = [(None, 300..=600), (Some(Duration::ZERO), 300..=600), (Some(Duration::MAX), day..=2 * day)];
    for (at_least, expected) in table {
        let config = at_least.into_iter().fold(ReflectorConfig::new(), ReflectorConfig::watch_timeout);
        let mut run = Run::with(vec![page(vec![], "7"), watch().1], config);
        run.expect_requests(&["list 0 500", "watch 7"]).await;
        let lifetime = run.lifetimes.lock()[0].as_secs();
        assert!(expected.contains(&lifetime), "{lifetime} s for {at_least:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn watch_timeouts_are_random() {
    let mut lifetimes = std::collections::BTreeSet::new();
    for _ in 0..20 {
        let mut run = Run::new(vec![page(vec![], "7"), watch().1]);
        run.expect_requests(&["list 0 500", "watch 7"]).await;
        lifetimes.insert(run.lifetimes.lock()[0]);
    }
    assert!(lifetimes.len() > 10, "{lifetimes:?}");
}

#[tokio::test(start_paused = true)]
async fn i9_watch_after_a_list_without_version_cannot_resume() {
    for unstated in ["", "0"] {
        let (events, line) = watch();
        let first = page(vec![item("a", "3"), item("gone", "4")], unstated);
        let mut run = Run::new(vec![first, line, page(vec![item("a", "91")], unstated)]);
        run.expect_requests(&["list 0 500", "watch "]).await;
        // "gone" was deleted before the watch began, so no event reports its deletion.
        send(&events, vec![added("c", "92"), added("a", "90"), modified("a", "91"), bookmark("93")]);
        run.expect_notes(&["[a gone]@", "+c +a ~a@"]).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        drop(events);
        // I1: a state from the server's cache can be older than the objects of the watch.
        run.expect_requests(&["list newest 500", "watch "]).await;
        run.expect_notes(&["[a]@"]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn watch_without_versions_is_followed_by_a_list() {
    let (events, line) = watch();
    let mut run = Run::new(vec![page(vec![], ""), line, page(vec![], "")]);
    run.expect_requests(&["list 0 500", "watch "]).await;
    send(&events, vec![added("a", "90"), added("b", "30")]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    drop(events);
    run.expect_requests(&["list newest 500", "watch "]).await;
}

#[tokio::test(start_paused = true)]
async fn available_events_are_delivered_together_up_to_100() {
    let (events, line) = watch();
    for n in 0..150 {
        send(&events, vec![modified("a", &(8 + n).to_string())]);
    }
    let mut run = Run::new(vec![page(vec![], "7"), line]);
    let in_one_go = |events: usize, version: &str| format!("{}@{version}", vec!["~a"; events].join(" "));
    run.expect_notes(&["[]@7", &in_one_go(100, "107"), &in_one_go(50, "157")]).await;
}

#[tokio::test(start_paused = true)]
async fn events_before_a_watch_failure_are_applied() {
    for how in ["breaks off", "is closed", "has expired"] {
        let (first, first_line) = watch();
        send(&first, vec![added("a", "8")]);
        send(&first, vec![added("b", "9")]);
        match how {
            "breaks off" => {
                let broken = Err(ListWatchError::Interrupted("reset".into()));
                first.unbounded_send(broken).expect("the receiver is open");
            }
            "is closed" => {}
            _ => send(&first, vec![added("c", "10"), error(410, "Expired")]),
        }
        drop(first);
        let mut run = Run::new(vec![page(vec![], "7"), first_line, watch().1]);
        let applied = if how == "has expired" { "+a +b +c@10" } else { "+a +b@9" };
        run.expect_notes(&["[]@7", applied]).await;
        let next = if how == "has expired" { "list 10 all" } else { "watch 9" };
        run.expect_requests(&["list 0 500", "watch 7", next]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn reflector_yields_within_a_burst_of_events() {
    const BATCH: usize = 250;
    let (events, line) = watch();
    for batch in 0..20 {
        let changed = |n: usize| modified("a", &(8 + batch * BATCH + n).to_string());
        send(&events, (0..BATCH).map(changed).collect());
    }
    let (reflect, mut notes) = unspawned(vec![page(vec![], "7"), line]);
    tokio::pin!(reflect);
    // A single poll must not consume all available events, so that other futures of the same task
    // are polled too.
    assert!(futures::poll!(reflect.as_mut()).is_pending());
    let mut taken = 0;
    while notes.try_recv().is_ok() {
        taken += 1;
    }
    // One note for the list, and four for the first 1,000 events.
    assert_eq!(taken, 1 + 4);
}

#[tokio::test(start_paused = true)]
async fn reflector_stops_reading_while_its_store_is_full() {
    let (events, line) = watch();
    for batch in 0..4_u64 {
        let changed = |n: u64| modified("a", &(8 + batch * 6_000 + n).to_string());
        send(&events, (0..6_000).map(changed).collect());
    }
    let queue = informer_core::DeltaFifo::new();
    let reflector = tokio::spawn(reflect_into(vec![page(vec![], "7"), line], Arc::new(queue.clone())));
    let mut taken = Vec::new();
    while taken.iter().sum::<usize>() < 24_000 {
        // Let the reflector do all that it can without a consumer.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let batch = queue.pop_batch().await.expect("not closed");
        taken.push(batch.items().iter().map(|pending| pending.deltas.len()).sum());
    }
    assert_eq!(taken, [12_000, 12_000]);
    reflector.abort();
}
