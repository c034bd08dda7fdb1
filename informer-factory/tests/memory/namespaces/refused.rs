//! A namespace that is refused from the start: the others sync, and the refusal is reported.

use std::time::Duration;

use informer_factory::status::Health;
use informer_factory::{HandlerOptions, ListWatchError, wait_for_cache_sync};
use kube::core::Status;
use tokio::time::Instant;

use super::failures::refusal;
use super::{Server, stored};
use crate::listen;
use crate::log::Log;

/// A time that is longer than the informer waits for a refused namespace before it syncs.
const LONG: Duration = Duration::from_secs(60);

/// A server with one object in each of `a` and `b` that refuses the first `times` lists of `b`.
fn refusing(times: usize) -> Server {
    let server = Server::new();
    server.put("a", "one", "1");
    server.put("b", "two", "1");
    (0..times).for_each(|_| server.of("b").fail_next_list(refusal()));
    server
}

#[tokio::test(start_paused = true)]
async fn i6_informer_syncs_without_refused_namespace() {
    let (warnings, _logging) = Log::keep(tracing::Level::WARN);
    let server = refusing(10);
    let running = server.start(&["a", "b"]);
    let informer = &running.informer;
    let (handler, mut recorded) = listen(informer, &HandlerOptions::default());
    let begun = Instant::now();
    wait_for_cache_sync(&[informer, &handler], LONG).await.expect("one namespace is listed");
    assert!(
        begun.elapsed() >= Duration::from_secs(10),
        "the sync waits ten seconds, because the refusal could be short"
    );
    assert_eq!(recorded.rest(), ["+one=1!"]);
    assert!(!informer.synced_in("b").has_synced() && informer.watermark().is_empty());
    assert!(matches!(informer.health(), Health::Forbidden { .. }));
    let lines = warnings.with("namespace refused");
    let [line] = lines.as_slice() else { panic!("the refusal must be logged once: {lines:?}") };
    assert!(line.contains("configmaps of b") && line.contains("list and watch"), "{line}");

    // Once access is granted, the namespace behaves like one that was added later.
    assert_eq!(recorded.next().await, "+two=1");
    assert!(informer.synced_in("b").has_synced());
    assert_eq!(stored(informer), ["a/one=1", "b/two=1"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn i6_informer_syncs_before_the_late_retry_of_a_refusal() {
    let server = refusing(0);
    let status = Box::new(Status::failure("not for you", "Forbidden").with_code(403));
    let retry_after = Some(Duration::from_secs(3_600));
    server.of("b").fail_next_list(ListWatchError::Status { status, retry_after });
    let running = server.start(&["a", "b"]);
    wait_for_cache_sync(&[&running.informer], LONG).await.expect("namespace a is listed");
    assert_eq!(stored(&running.informer), ["a/one=1"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn informer_with_all_namespaces_refused_does_not_sync() {
    let server = refusing(100);
    (0..100).for_each(|_| server.of("a").fail_next_list(refusal()));
    let running = server.start(&["a", "b"]);
    let error =
        wait_for_cache_sync(&[&running.informer], 10 * LONG).await.expect_err("no namespace is listed");
    let message = error.to_string();
    assert!(
        message.contains("namespace \"a\": forbidden") && message.contains("namespace \"b\": forbidden"),
        "{message}"
    );
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn wait_for_refused_namespace_fails_if_it_is_removed() {
    let running = refusing(100).start(&["a", "b"]).synced().await;
    let informer = &running.informer;
    let refused = informer.cache_in("b");
    let mut wait = Box::pin(async { wait_for_cache_sync(&[informer, &refused], LONG).await });
    assert!(futures::poll!(&mut wait).is_pending());
    _ = informer.remove_namespace("b").expect("a valid name");
    let error = wait.await.expect_err("namespace b was not listed");
    assert_eq!(error.pending.len(), 1, "{error}");
    assert!(error.to_string().contains("namespace \"b\""), "{error}");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn wait_for_refused_namespace_names_the_reason() {
    let server = refusing(100);
    let running = server.start(&["a", "b"]);
    let informer = &running.informer;
    wait_for_cache_sync(&[informer, &informer.cache_in("a")], LONG).await.expect("namespace a is listed");
    let error = wait_for_cache_sync(&[informer, &informer.cache_in("b")], LONG)
        .await
        .expect_err("namespace b is refused");
    let message = error.to_string();
    assert!(
        message.contains("namespace \"b\": forbidden") && !message.contains("namespace \"a\""),
        "{message}"
    );
    running.stop().await;
}
