//! Waits for a version, where each namespace has its own watermark.

use std::sync::mpsc;
use std::time::Duration;

use informer_factory::{InformerOptions, ObjectKey, WaitOutcome};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use parking_lot::Mutex;

use super::{SOON, Server};
use crate::Running;

#[tokio::test(start_paused = true)]
async fn i9_write_wait_needs_one_namespace_version_wait_needs_all() {
    let server = Server::new();
    // `b` has no changes, so its watermark stays low.
    server.put("b", "quiet", "1");
    let running = server.start(&["a", "b"]).synced().await;
    let informer = &running.informer;
    for value in 0..10 {
        server.put("a", "busy", &value.to_string());
    }
    let written = server.put("a", "busy", "last");
    assert_eq!(informer.wait_for_write(&written, SOON).await, WaitOutcome::Reached);
    assert_eq!(informer.wait_until(written.resource_version(), SOON).await, WaitOutcome::TimedOut);
    assert_eq!(
        informer.watermark(),
        server.of("b").resource_version(),
        "the lowest watermark of all namespaces"
    );
    for _ in 0..20 {
        server.of("b").bookmark();
    }
    assert_eq!(informer.wait_until(written.resource_version(), SOON).await, WaitOutcome::Reached);
    assert_eq!(informer.wait_until(&"".into(), SOON).await, WaitOutcome::NotComparable);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn write_in_an_unwatched_namespace_is_not_covered() {
    let server = Server::new();
    let running = server.start(&["a"]).synced().await;
    let informer = &running.informer;
    let elsewhere = server.put("b", "one", "1");
    assert_eq!(informer.wait_for_write(&elsewhere, SOON).await, WaitOutcome::NotCovered);
    server.of("a").wait_for_watches(1).await;
    let mut unseen = crate::config_map("unseen", "1");
    unseen.metadata.namespace = Some("a".into());
    let unseen = server.of("a").create_unseen(unseen).expect("a new object");
    let wait = tokio::spawn({
        let (informer, unseen) = (informer.clone(), unseen.clone());
        async move { informer.wait_for_write(&unseen, 60 * SOON).await }
    });
    tokio::task::yield_now().await;
    let begin = tokio::time::Instant::now();
    informer.remove_namespace("a").expect("a valid name").wait().await.expect("the informer runs");
    assert_eq!(wait.await.expect("no panic"), WaitOutcome::NotCovered);
    assert!(begin.elapsed().is_zero());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn stored_write_is_reached_after_the_informer_stops() {
    let server = Server::new();
    let running = server.start(&["a"]).synced().await;
    let informer = running.informer.clone();
    let written = server.put("a", "one", "1");
    assert_eq!(informer.wait_for_write(&written, SOON).await, WaitOutcome::Reached);
    running.stop().await;
    assert_eq!(informer.wait_for_write(&written, SOON).await, WaitOutcome::Reached);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i9_write_that_is_queued_at_the_stop_is_reached() {
    let server = Server::new();
    let running = server.start(&["a"]).synced().await;
    let informer = running.informer.clone();
    let ((storing, stored_early), (release, released)) = (mpsc::channel(), mpsc::channel::<()>());
    let released = Mutex::new(released);
    let index = informer.add_index("gate", move |map: &ConfigMap| {
        // Blocks until the reflector has ended, so that the later event is only queued.
        if map.name_any() == "early" {
            _ = storing.send(());
            _ = tokio::task::block_in_place(|| released.lock().recv_timeout(Duration::from_secs(60)));
        }
        None::<String>
    });
    index.expect("a free index name");
    server.put("a", "early", "1");
    tokio::task::block_in_place(|| stored_early.recv_timeout(Duration::from_secs(60))).expect("an event");
    let written = server.put("a", "late", "1");
    let mut status = informer.status().clone();
    while status.counts().events.added < 2 {
        tokio::task::yield_now().await;
    }
    let wait = tokio::spawn(async move { informer.wait_for_write(&written, 60 * SOON).await });
    running.shutdown.cancel();
    while status.health_changed().await.is_some() {}
    release.send(()).expect("the index function waits");
    assert_eq!(wait.await.expect("no panic"), WaitOutcome::Reached);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn i9_version_waits_for_an_added_namespace() {
    let server = Server::new();
    server.put("a", "one", "1");
    let running = server.start(&["a"]).synced().await;
    let informer = &running.informer;
    let reached = informer.watermark();
    assert_eq!(informer.wait_until(&reached, SOON).await, WaitOutcome::Reached);
    server
        .of("b")
        .fail_next_list(Box::new(kube::core::Status::failure("no", "Forbidden").with_code(403)).into());
    let written = server.put("b", "two", "1");
    let added = informer.add_namespace("b").expect("a valid name");
    assert_eq!(informer.wait_until(written.resource_version(), 60 * SOON).await, WaitOutcome::Reached);
    assert!(informer.get(&ObjectKey::namespaced("b", "two")).is_some() && added.has_synced());

    // A namespace that is removed and added again gets a new watermark. So the wait ends only after
    // the new list, even if the object is still in the store.
    let before = server.of("b").resource_version();
    _ = informer.remove_namespace("b").expect("a valid name");
    let again = informer.add_namespace("b").expect("a valid name");
    assert_eq!(informer.wait_for_write(&written, SOON).await, WaitOutcome::Reached);
    assert!(again.has_synced() && server.of("b").resource_version() == before);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn version_wait_without_namespaces_times_out() {
    let running = Running::run(Server::new().idle(&[], InformerOptions::new())).synced().await;
    assert_eq!(running.informer.wait_until(&1.into(), SOON).await, WaitOutcome::TimedOut);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn version_is_reached_when_its_last_namespace_is_removed() {
    let server = Server::new();
    server.put("a", "one", "1");
    let running = server.start(&["a"]).synced().await;
    let informer = &running.informer;
    let reached = informer.watermark();
    _ = informer.add_namespace("b").expect("a valid name");
    let mut wait = Box::pin(informer.wait_until(&reached, 60 * SOON));
    assert!(futures::poll!(&mut wait).is_pending(), "the wait needs a list of `b`");
    // `b` is removed before its list arrives.
    _ = informer.remove_namespace("b").expect("a valid name");
    let begin = tokio::time::Instant::now();
    assert_eq!(wait.await, WaitOutcome::Reached);
    assert!(begin.elapsed().is_zero());
    running.stop().await;
}
