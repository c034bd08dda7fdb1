//! A namespace that is refused from the beginning: the others go on, and the refusal is reported.

use std::time::Duration;

use informer_factory::{HandlerOptions, Health, wait_for_cache_sync};
use tokio::time::Instant;

use super::trouble::refusal;
use super::{Server, stored};
use crate::listen;
use crate::log::Log;

/// Longer than a refusal must last.
const LONG: Duration = Duration::from_secs(60);

/// A server with an object in each of `a` and `b`, of which `b` is refused so many times.
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
    let (handler, mut heard) = listen(informer, &HandlerOptions::default());
    let begun = Instant::now();
    wait_for_cache_sync(&[informer, &handler], LONG).await.expect("one of them is listed");
    assert!(begun.elapsed() >= Duration::from_secs(10), "a short refusal is waited for");
    assert_eq!(heard.rest(), ["+one=1!"]);
    assert!(!informer.synced_in("b").has_synced() && informer.watermark().is_empty());
    assert!(matches!(informer.health(), Health::Forbidden { .. }));
    let lines = warnings.with("namespace refused");
    let [line] = lines.as_slice() else { panic!("it is said once: {lines:?}") };
    assert!(line.contains("configmaps of b") && line.contains("list and watch"), "{line}");

    // Once it is granted, the namespace is as one that was added later.
    assert_eq!(heard.next().await, "+two=1");
    assert!(informer.synced_in("b").has_synced());
    assert_eq!(stored(informer), ["a/one=1", "b/two=1"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn informer_with_all_namespaces_refused_does_not_sync() {
    let server = refusing(100);
    (0..100).for_each(|_| server.of("a").fail_next_list(refusal()));
    let running = server.start(&["a", "b"]);
    let error = wait_for_cache_sync(&[&running.informer], 10 * LONG).await.expect_err("nothing is listed");
    let said = error.to_string();
    assert!(
        said.contains("namespace \"a\": forbidden") && said.contains("namespace \"b\": forbidden"),
        "{said}"
    );
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn wait_for_refused_namespace_names_the_reason() {
    let server = refusing(100);
    let running = server.start(&["a", "b"]);
    let informer = &running.informer;
    wait_for_cache_sync(&[informer, &informer.cache_in("a")], LONG).await.expect("a is listed");
    let error = wait_for_cache_sync(&[informer, &informer.cache_in("b")], LONG).await.expect_err("b is not");
    let said = error.to_string();
    assert!(said.contains("namespace \"b\": forbidden") && !said.contains("namespace \"a\""), "{said}");
    running.stop().await;
}
