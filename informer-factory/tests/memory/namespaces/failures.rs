//! Failures of one namespace: the others are not affected, and the status names the namespace and
//! the reason.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use informer_core::{ListOptions, ListStream, ListerWatcher, WatchOptions, WatchStream};
use informer_factory::status::{Health, VerifyError};
use informer_factory::{
    CacheSync, InformerOptions, ListWatchError, ObjectKey, SharedIndexInformer, wait_for_cache_sync,
};
use informer_testing::MemorySource;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::Status;

use super::{SOON, Server, stored};
use crate::{Running, config_map, value_of};

pub(super) fn refusal() -> ListWatchError {
    Box::new(Status::failure("not for you", "Forbidden").with_code(403)).into()
}

#[tokio::test(start_paused = true)]
async fn refused_namespace_is_named_and_delays_no_other() {
    let server = Server::new();
    server.put("a", "one", "1");
    for _ in 0..20 {
        server.of("b").fail_next_list(refusal());
    }
    let running = server.start(&["a", "b"]);
    let informer = &running.informer;
    let handler = informer.add_handlers(|handlers| handlers);
    let error = wait_for_cache_sync(&[informer, &handler], SOON).await.expect_err("namespace b is refused");
    let message = error.to_string();
    for part in ["configmaps of a", "namespace \"b\": forbidden", "not for you", "handler"] {
        assert!(message.contains(part), "{message}");
    }
    assert!(!message.contains("namespace \"a\""), "{message}");
    assert_eq!(stored(informer), ["a/one=1"]);
    assert!(matches!(informer.health(), Health::Forbidden { .. }), "the worst health of all namespaces");
    let each = informer.status().namespaces();
    assert!(each["a"].health().is_live() && each["b"].health().error().is_some());
    let later = server.put("a", "one", "2");
    assert_eq!(informer.wait_for_write(&later, SOON).await, informer_factory::WaitOutcome::Reached);

    // After the removal of `b`, all watched namespaces are synced.
    informer.remove_namespace("b").expect("a valid name").wait().await.expect("the removal completes");
    wait_for_cache_sync(&[informer, &handler], SOON).await.expect("all watched namespaces are synced");
    assert_eq!(informer.watermark(), server.of("a").resource_version());
    assert!(informer.health().is_live());
    assert!(informer.waiting_for().contains("live"), "{}", informer.waiting_for());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn health_changes_of_every_namespace_are_reported() {
    let server = Server::new();
    let running = server.start(&["a"]).synced().await;
    server.of("a").wait_for_watches(1).await;
    let mut status = running.informer.status().clone();
    server.of("b").fail_next_list(refusal());
    let added = running.informer.add_namespace("b").expect("a valid name");
    while !matches!(status.health_changed().await.expect("the informer runs"), Health::Forbidden { .. }) {}
    added.wait().await.expect("the list is retried");
    while !status.health_changed().await.expect("the informer runs").is_live() {}
    running.stop().await;
    let mut last = status.health();
    while let Some(health) = status.health_changed().await {
        last = health;
    }
    assert!(matches!(last, Health::Stopped), "{last}");
    assert!(status.health_changed().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn objects_of_other_namespaces_are_ignored() {
    let all = MemorySource::new("configmaps");
    for namespace in ["a", "b"] {
        let mut object = crate::config_map("one", "1");
        object.metadata.namespace = Some(namespace.into());
        all.create(object).expect("a new object");
    }
    let make = {
        let all = all.clone();
        move |_: &str| Arc::new(all.clone()) as Arc<_>
    };
    let made = SharedIndexInformer::new_in_namespaces(make, ["a"], InformerOptions::new());
    let running = Running::run(made.expect("a valid name")).synced().await;
    assert_eq!(stored(&running.informer), ["a/one=1"]);
    all.delete(&ObjectKey::namespaced("b", "one")).expect("the object exists");
    let written = all.modify(&ObjectKey::namespaced("a", "one"), |_| {}).expect("the object exists");
    assert_eq!(running.informer.wait_for_write(&written, SOON).await, informer_factory::WaitOutcome::Reached);
    assert_eq!(stored(&running.informer), ["a/one=1"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn i9_each_namespace_is_verified_and_corrected_separately() {
    let server = Server::new();
    server.put("a", "one", "1");
    server.put("b", "two", "1");
    server.put("b", "three", "1");
    let running = server.start(&["a", "b"]).synced().await;
    let informer = &running.informer;
    for name in ["a", "b"] {
        server.of(name).wait_for_watches(1).await;
    }
    let verification = informer.verify().await.expect("the informer is synced");
    assert!(verification.is_equal() && verification.objects == 3, "{verification:?}");
    server.of("b").delete_unseen(&ObjectKey::namespaced("b", "two")).expect("the object exists");
    let seen = server.put("b", "three", "2");
    assert_eq!(informer.wait_for_write(&seen, SOON).await, informer_factory::WaitOutcome::Reached);
    let verification = informer.verify().await.expect("the informer is synced");
    let differences: Vec<_> = verification.differences.iter().map(ToString::to_string).collect();
    assert_eq!(differences, ["b/two (version 2) is not on the server"]);
    assert_eq!(informer.last_verification().as_deref(), Some(&verification));
    while stored(informer) != server.objects(&["a", "b"]) {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        (server.of("a").list_count(), server.of("b").list_count()),
        (3, 4),
        "the initial list, one list per verification, and a relist of `b`"
    );

    for _ in 0..20 {
        server.of("c").fail_next_list(refusal());
    }
    _ = informer.add_namespace("c").expect("a valid name");
    let error = informer.verify().await.expect_err("namespace c is not listed");
    assert!(matches!(error, VerifyError::NotSynced { .. }), "{error}");
    assert!(error.to_string().contains("configmaps of c"), "{error}");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn i9_refused_namespace_does_not_stop_a_verification() {
    let server = Server::new();
    for _ in 0..100 {
        server.of("a").fail_next_list(refusal());
    }
    server.put("b", "two", "1");
    let running = server.start(&["a", "b"]).synced().await;
    let informer = &running.informer;
    server.of("b").wait_for_watches(1).await;
    server.of("b").delete_unseen(&ObjectKey::namespaced("b", "two")).expect("the object exists");
    let seen = server.put("b", "three", "1");
    assert_eq!(informer.wait_for_write(&seen, SOON).await, informer_factory::WaitOutcome::Reached);
    let error = informer.verify().await.expect_err("namespace a is refused");
    assert!(error.to_string().contains("configmaps of a"), "{error}");
    let verification = informer.last_verification().expect("namespace b was compared");
    let differences: Vec<_> = verification.differences.iter().map(ToString::to_string).collect();
    assert_eq!(differences, ["b/two (version 2) is not on the server"]);
    while stored(informer) != ["b/three=1"] {
        tokio::task::yield_now().await;
    }
    running.stop().await;
}

/// The source of namespace `a`. While a verification lists it, namespace `b` is removed, and added
/// again if `adds_again` is `true`.
struct RemovesOther {
    source: MemorySource<ConfigMap>,
    informer: OnceLock<SharedIndexInformer<ConfigMap>>,
    adds_again: bool,
}

#[async_trait]
impl ListerWatcher<ConfigMap> for RemovesOther {
    fn description(&self) -> &str {
        "configmaps of a"
    }

    async fn list(&self, options: ListOptions) -> Result<ListStream<ConfigMap>, ListWatchError> {
        if let Some(informer) = self.informer.get() {
            let removed = informer.remove_namespace("b").expect("a valid name");
            removed.wait().await.expect("the informer runs");
            if self.adds_again {
                let added = informer.add_namespace("b").expect("a valid name");
                added.wait().await.expect("the namespace is listed");
            }
        }
        self.source.list(options).await
    }

    async fn watch(&self, options: WatchOptions) -> Result<WatchStream<ConfigMap>, ListWatchError> {
        self.source.watch(options).await
    }
}

#[tokio::test(start_paused = true)]
async fn namespace_removed_during_verification_is_skipped() {
    for adds_again in [false, true] {
        let server = Server::new();
        server.put("a", "one", "1");
        server.put("b", "two", "1");
        let source = server.of("a").clone();
        let removes = Arc::new(RemovesOther { source, informer: OnceLock::new(), adds_again });
        let make = {
            let (server, removes) = (server.clone(), removes.clone());
            move |namespace: &str| -> Arc<dyn ListerWatcher<ConfigMap>> {
                match namespace {
                    "a" => removes.clone(),
                    _ => Arc::new(server.of(namespace).clone()),
                }
            }
        };
        let reject_bad = |object: &mut ConfigMap| match value_of(object) {
            "bad" => Err("a bad value"),
            _ => Ok(()),
        };
        let options = InformerOptions::new().transform(reject_bad);
        let made = SharedIndexInformer::new_in_namespaces(make, ["a", "b"], options);
        let running = Running::run(made.expect("valid names")).synced().await;
        for name in ["a", "b"] {
            server.of(name).wait_for_watches(1).await;
        }
        // Only the second reflector of `b` receives this version, and quarantines it.
        let mut bad = config_map("two", "bad");
        bad.metadata.namespace = Some("b".into());
        server.of("b").update_unseen(bad).expect("the object exists");
        removes.informer.set(running.informer.clone()).expect("the informer is set once");
        let verification = running.informer.verify().await.expect("the other namespace is verified");
        assert!(verification.is_equal() && verification.objects == 1, "{verification:?}");
        let expected: &[&str] = if adds_again { &["a", "b"] } else { &["a"] };
        assert_eq!(running.informer.namespaces(), expected);
        running.stop().await;
    }
}
