//! Waits for a resource version, and for informers and handlers to sync.

use std::time::Duration;

use futures::FutureExt;
use informer_factory::{
    CacheSync, Completion, InformerOptions, SharedIndexInformer, WaitOutcome, wait_for_cache_sync,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::Status;

use crate::{Running, create, source};

const SOON: Duration = Duration::from_secs(5);

#[tokio::test(start_paused = true)]
async fn i9_version_wait_ends_reached_timed_out_or_stopped() {
    let source = source();
    create(&source, "a", "1");
    let running = Running::start(&source, InformerOptions::new()).synced().await;
    let informer = running.informer.clone();
    let written = create(&source, "b", "2");
    assert_eq!(informer.wait_until(written.resource_version(), SOON).await, WaitOutcome::Reached);
    assert!(informer.get(written.key()).is_some());
    assert_eq!(informer.wait_until(&1_000_000.into(), SOON).await, WaitOutcome::TimedOut);
    for version in ["", "0", "not-a-number"] {
        assert_eq!(informer.wait_until(&version.into(), SOON).await, WaitOutcome::NotComparable);
    }
    let wait = tokio::spawn({
        let informer = informer.clone();
        async move { informer.wait_until(&1_000_000.into(), SOON).await }
    });
    tokio::task::yield_now().await;
    running.stop().await;
    assert_eq!(wait.await.expect("no panic"), WaitOutcome::Stopped);
}

#[tokio::test(start_paused = true)]
async fn i9_bookmark_reaches_a_version() {
    let source = source();
    create(&source, "a", "1");
    let running = Running::start(&source, InformerOptions::new()).synced().await;
    source.wait_for_watches(1).await;
    let unseen = source
        .modify(&informer_factory::ObjectKey::namespaced("shop", "a"), |_| {})
        .expect("the object exists");
    source.bookmark();
    assert_eq!(running.informer.wait_until(unseen.resource_version(), SOON).await, WaitOutcome::Reached);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn i9_wait_for_write_takes_the_returned_object() {
    let source = source();
    let running = Running::start(&source, InformerOptions::new()).synced().await;
    let written = create(&source, "a", "1");
    assert_eq!(running.informer.wait_for_write(&written, SOON).await, WaitOutcome::Reached);
    assert!(running.informer.get(written.key()).is_some_and(|stored| stored.same_version(&written)));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn wait_for_informers_and_handlers_ends_when_all_are_synced() {
    let source = source();
    create(&source, "a", "1");
    let running = Running::start(&source, InformerOptions::new());
    let handler = running.informer.add_handlers(|handlers| handlers);
    wait_for_cache_sync(&[&running.informer, &handler], SOON).await.expect("synced");
    assert!(running.informer.has_synced() && handler.has_synced());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn failed_wait_names_unsynced_caches_and_reasons() {
    let refusing = source();
    let status = Status::failure("pods are not for you", "Forbidden").with_code(403);
    for _ in 0..20 {
        refusing.fail_next_list(Box::new(status.clone()).into());
    }
    let refused = Running::start(&refusing, InformerOptions::new());
    let good = source();
    let running = Running::start(&good, InformerOptions::new());
    let options = informer_factory::HandlerOptions::new().name("bookkeeper");
    let handler = refused.informer.add_event_handler_with(informer_factory::Handlers::new(), &options);
    let error = wait_for_cache_sync(&[&running.informer, &refused.informer, &handler], SOON)
        .await
        .expect_err("the list is refused");
    assert_eq!(error.pending.len(), 2, "{error}");
    for part in ["configmaps", "pods are not for you", "bookkeeper"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    running.stop().await;
    refused.stop().await;
}

#[tokio::test(start_paused = true)]
async fn i12_wait_ends_when_an_informer_has_stopped() {
    let (informer, task) = SharedIndexInformer::<ConfigMap>::new(
        std::sync::Arc::new(source()),
        informer_factory::InformerOptions::new(),
    );
    drop(task);
    let error = wait_for_cache_sync(&[&informer], Duration::MAX).await.expect_err("the informer has stopped");
    assert!(error.to_string().contains("configmaps"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn i12_sync_wait_ends_when_any_informer_stops() {
    let (refusing, _never_run) =
        SharedIndexInformer::<ConfigMap>::new(std::sync::Arc::new(source()), Default::default());
    let (stopped, task) =
        SharedIndexInformer::<ConfigMap>::new(std::sync::Arc::new(source()), Default::default());
    drop(task);
    let begin = tokio::time::Instant::now();
    let error =
        wait_for_cache_sync(&[&refusing, &stopped], 60 * SOON).await.expect_err("one informer has stopped");
    assert_eq!((error.pending.len(), begin.elapsed()), (2, Duration::ZERO), "{error}");
}

/// A cache whose completion the test sets.
struct OwnCache(Completion);

impl CacheSync for OwnCache {
    fn synced(&self) -> Completion {
        self.0.clone()
    }

    fn waiting_for(&self) -> String {
        "nothing".to_owned()
    }
}

#[tokio::test(start_paused = true)]
async fn cache_that_syncs_at_the_last_moment_is_synced() {
    let cache = OwnCache(Completion::new());
    let caches: [&dyn CacheSync; 1] = [&cache];
    let mut wait = std::pin::pin!(wait_for_cache_sync(&caches, SOON));
    assert!(wait.as_mut().now_or_never().is_none(), "the cache is not synced");
    tokio::time::advance(SOON).await;
    cache.0.set();
    wait.await.expect("every cache has synced");
}
