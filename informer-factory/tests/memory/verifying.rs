//! `verify()` finds and corrects differences between store and server.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt};
use informer_core::ListerWatcher;
use informer_factory::informer_core::{
    ListEnd, ListOptions, ListPart, ListStream, WatchOptions, WatchStream,
};
use informer_factory::status::{Difference, Verification, VerifyError};
use informer_factory::{HandlerOptions, InformerOptions, ListWatchError, SharedIndexInformer, WaitOutcome};
use informer_testing::MemorySource;
use k8s_openapi::api::core::v1::ConfigMap;

use crate::{Running, config_map, create, idle, key, listen, source, update, value_of};

fn differences(verification: &Verification) -> Vec<String> {
    verification.differences.iter().map(ToString::to_string).collect()
}

#[tokio::test(start_paused = true)]
async fn i9_verify_finds_and_corrects_missed_events() {
    let source = source();
    for name in ["stays", "changes", "goes"] {
        create(&source, name, "1");
    }
    let running = Running::start(&source, InformerOptions::new()).synced().await;
    let informer = &running.informer;
    source.wait_for_watches(1).await;
    assert_eq!(informer.last_verification(), None);
    let verification = informer.verify().await.expect("the informer is synced");
    assert!(verification.is_equal() && verification.objects == 3, "{verification:?}");
    let (_registration, mut recorded) = listen(informer, &HandlerOptions::default());
    assert_eq!(recorded.sorted(3).await, ["+changes=1!", "+goes=1!", "+stays=1!"]);

    source.create_unseen(config_map("new", "1")).expect("a new object");
    source.update_unseen(config_map("changes", "2")).expect("the object exists");
    source.delete_unseen(&key("goes")).expect("the object exists");
    running.reach(&create(&source, "seen", "1")).await;
    assert_eq!(recorded.next().await, "+seen=1");
    let verification = informer.verify().await.expect("the informer is synced");
    let expected = [
        "shop/changes has version 3 in the store and 6 on the server",
        "shop/goes (version 4) is not on the server",
        "shop/new (version 5) is missing from the store",
    ];
    assert_eq!(differences(&verification), expected);
    assert_eq!((verification.resource_version.to_string(), verification.objects), ("8".into(), 4));
    assert_eq!(informer.last_verification().as_deref(), Some(&verification));

    assert_eq!(recorded.sorted(3).await, ["+new=1", "-goes=1", "changes=1>2"]);
    assert!(informer.verify().await.expect("the informer is synced").is_equal());
    assert!(informer.last_verification().is_some_and(|last| last.is_equal()));
    assert!(recorded.rest().is_empty());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn verification_leaves_a_correct_store_unchanged() {
    let source = source();
    create(&source, "a", "1");
    let running = Running::start(&source, InformerOptions::new()).synced().await;
    source.wait_for_watches(1).await;
    let before = (source.list_count(), source.watch_count());
    assert!(running.informer.verify().await.expect("the informer is synced").is_equal());
    running.reach(&update(&source, "a", "2")).await;
    assert_eq!((source.list_count(), source.watch_count()), (before.0 + 1, before.1));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn verify_before_the_first_list_is_an_error() {
    let (informer, _task) = idle(&source());
    let error = informer.verify().await.expect_err("the informer has never listed");
    assert!(matches!(error, VerifyError::NotSynced { .. }), "{error}");
    assert!(error.to_string().starts_with("failed to verify configmaps: "), "{error}");
}

#[tokio::test(start_paused = true)]
async fn verify_of_a_compacted_state_is_expired() {
    let source = source();
    create(&source, "a", "1");
    let running = Running::start(&source, InformerOptions::new()).synced().await;
    source.wait_for_watches(1).await;
    let lists = source.list_count();
    source.create_unseen(config_map("b", "1")).expect("a new object");
    let error = running.informer.verify().await.expect_err("the state is compacted");
    assert!(matches!(error, VerifyError::Expired { .. }), "{error}");
    let message = "resource version 2 has expired on the server; verify again later";
    assert_eq!(error.to_string(), format!("failed to verify configmaps: {message}"));
    assert_eq!((running.informer.last_verification(), source.list_count()), (None, lists + 2));

    source.fail_next_list(ListWatchError::Unreachable("no route".into()));
    let error = running.informer.verify().await.expect_err("the server is unreachable");
    assert!(error.to_string().contains("no route"), "{error}");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn verify_of_a_compacted_state_waits_for_the_next_bookmark() {
    let source = source();
    create(&source, "a", "1");
    let running = Running::start(&source, InformerOptions::new()).synced().await;
    source.wait_for_watches(1).await;
    // The server's version increases, but the watch receives no event, and the server has the same
    // objects as before.
    source
        .delete_unseen(source.create_unseen(config_map("b", "1")).expect("a new object").key())
        .expect("the object exists");
    let lists = source.list_count();
    let verify = tokio::spawn({
        let informer = running.informer.clone();
        async move { informer.verify().await }
    });
    while source.list_count() < lists + 2 {
        tokio::task::yield_now().await;
    }
    tokio::time::advance(Duration::from_secs(50)).await;
    source.bookmark();
    let verification = verify.await.expect("no panic").expect("the second attempt succeeds");
    assert_eq!((verification.resource_version.to_string(), verification.objects), ("5".into(), 1));
    assert!(verification.is_equal());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn i10_quarantined_objects_are_not_reported_as_different() {
    let source = source();
    create(&source, "good", "1");
    create(&source, "bad", "refused");
    let transform = |object: &mut ConfigMap| match value_of(object) {
        "refused" => Err("refused value"),
        _ => Ok(()),
    };
    let options = InformerOptions::new().transform(transform);
    let running = Running::start(&source, options).synced().await;
    source.wait_for_watches(1).await;
    let last = update(&source, "good", "refused");
    running.reach(&last).await;
    let verification = running.informer.verify().await.expect("the informer is synced");
    assert!(verification.is_equal(), "{verification:?}");
    assert_eq!((verification.objects, verification.quarantined), (2, 2));
    running.stop().await;
}

/// A source whose informer receives a change during the first list of a verification.
struct ChangesDuringList {
    source: MemorySource<ConfigMap>,
    informer: OnceLock<SharedIndexInformer<ConfigMap>>,
    has_changed: OnceLock<()>,
}

#[async_trait]
impl ListerWatcher<ConfigMap> for ChangesDuringList {
    fn description(&self) -> &str {
        "configmaps"
    }

    async fn list(&self, options: ListOptions) -> Result<ListStream<ConfigMap>, ListWatchError> {
        if let Some(informer) = self.informer.get()
            && self.has_changed.set(()).is_ok()
        {
            let written = create(&self.source, "late", "1");
            let reached = informer.wait_until(written.resource_version(), Duration::from_secs(60)).await;
            assert_eq!(reached, WaitOutcome::Reached);
        }
        self.source.list(options).await
    }

    async fn watch(&self, options: WatchOptions) -> Result<WatchStream<ConfigMap>, ListWatchError> {
        self.source.watch(options).await
    }
}

#[tokio::test(start_paused = true)]
async fn store_changed_during_verification_is_compared_again() {
    let source = source();
    create(&source, "a", "1");
    let changing = Arc::new(ChangesDuringList {
        source: source.clone(),
        informer: OnceLock::new(),
        has_changed: OnceLock::new(),
    });
    let running = Running::over(Arc::clone(&changing) as _, InformerOptions::new()).synced().await;
    source.wait_for_watches(1).await;
    changing.informer.set(running.informer.clone()).expect("the informer is set once");
    let verification = running.informer.verify().await.expect("the second attempt succeeds");
    assert_eq!((verification.resource_version.to_string(), verification.objects), ("3".into(), 2));
    assert!(verification.is_equal());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn store_is_verified_at_the_configured_period() {
    let source = source();
    let options = InformerOptions::new().verify_every(Duration::from_secs(3600));
    let running = Running::start(&source, options).synced().await;
    source.wait_for_watches(1).await;
    let (_registration, mut recorded) = listen(&running.informer, &HandlerOptions::default());
    source.create_unseen(config_map("missed", "1")).expect("a new object");
    create(&source, "seen", "1");
    assert_eq!(recorded.next().await, "+seen=1");
    // The paused clock advances because nothing else happens.
    assert_eq!(recorded.next().await, "+missed=1");
    let last = running.informer.last_verification().expect("the store has been verified");
    assert!(matches!(&last.differences[..], [Difference::Missing { .. }]), "{last:?}");
    running.stop().await;

    let running = Running::start(&source, InformerOptions::new().verify_every(Duration::ZERO)).synced().await;
    source.wait_for_watches(1).await;
    tokio::time::advance(Duration::from_secs(24 * 3600)).await;
    assert_eq!(running.informer.last_verification(), None);
    running.stop().await;
}

/// A server that ignores the resource version that a list requests.
struct Imprecise(MemorySource<ConfigMap>);

#[async_trait]
impl ListerWatcher<ConfigMap> for Imprecise {
    fn description(&self) -> &str {
        "configmaps"
    }

    async fn list(&self, options: ListOptions) -> Result<ListStream<ConfigMap>, ListWatchError> {
        let any = ListOptions { resource_version: None, resource_version_match: None, ..options };
        self.0.list(any).await
    }

    async fn watch(&self, options: WatchOptions) -> Result<WatchStream<ConfigMap>, ListWatchError> {
        self.0.watch(options).await
    }
}

#[tokio::test(start_paused = true)]
async fn verify_fails_if_the_list_has_another_version() {
    let source = source();
    create(&source, "a", "1");
    let running = Running::over(Arc::new(Imprecise(source.clone())), InformerOptions::new()).synced().await;
    source.wait_for_watches(1).await;
    source.create_unseen(config_map("b", "1")).expect("a new object");
    let lists = source.list_count();
    let error = running.informer.verify().await.expect_err("the list has another version");
    let expected = "a list at resource version 3 instead of exactly 2";
    assert!(error.to_string().contains(expected), "{error}");
    assert_eq!((running.informer.last_verification(), source.list_count()), (None, lists + 1));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn verify_period_may_exceed_the_range_of_the_clock() {
    // Periods are randomized, so try many. None of them may cause an overflow.
    for _ in 0..50 {
        let options = InformerOptions::new().verify_every(Duration::MAX);
        let running = Running::start(&source(), options).synced().await;
        running.stop().await;
    }
}

/// A server whose pages of a list at an exact version form a cycle.
struct Circular {
    source: MemorySource<ConfigMap>,
    /// Returns the continue token of the page that a token requests; `None` requests the first
    /// page.
    next: fn(Option<&str>) -> &'static str,
}

#[async_trait]
impl ListerWatcher<ConfigMap> for Circular {
    fn description(&self) -> &str {
        "configmaps"
    }

    async fn list(&self, options: ListOptions) -> Result<ListStream<ConfigMap>, ListWatchError> {
        let is_exact = options.resource_version_match.is_some() || options.continue_token.is_some();
        let resource_version = self.source.resource_version();
        let next = (self.next)(options.continue_token.as_deref());
        let list = self.source.list(ListOptions { continue_token: None, ..options }).await?;
        Ok(list
            .map_ok(move |part| match part {
                ListPart::End(end) if is_exact => ListPart::End(ListEnd {
                    continue_token: Some(next.into()),
                    resource_version: resource_version.clone(),
                    ..end
                }),
                part => part,
            })
            .boxed())
    }

    async fn watch(&self, options: WatchOptions) -> Result<WatchStream<ConfigMap>, ListWatchError> {
        self.source.watch(options).await
    }
}

#[tokio::test(start_paused = true)]
async fn verify_with_circular_pages_is_an_error() {
    let one_page = |_: Option<&str>| "first";
    let two_pages = |token: Option<&str>| if token == Some("second") { "first" } else { "second" };
    for next in [one_page as fn(Option<&str>) -> &'static str, two_pages] {
        let source = source();
        create(&source, "a", "1");
        let circular = Circular { source: source.clone(), next };
        let running = Running::over(Arc::new(circular), InformerOptions::new()).synced().await;
        source.wait_for_watches(1).await;
        let error = running.informer.verify().await.expect_err("the pages repeat");
        assert!(error.to_string().contains("the same continue token"), "{error}");
        running.stop().await;
    }
}
