//! How an informer handles failures of its source, and objects whose transform fails.

use std::time::Duration;

use informer_factory::status::{Health, StopCause};
use informer_factory::{HandlerOptions, InformerOptions, ListWatchError, wait_for_cache_sync};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::time::Instant;

use crate::{Running, config_map, create, key, listen, source, update, value_of};

fn unreachable() -> ListWatchError {
    ListWatchError::Unreachable("no route to host".into())
}

#[tokio::test(start_paused = true)]
async fn list_error_is_in_the_health_until_the_next_list() {
    let source = source();
    create(&source, "a", "1");
    source.fail_next_list(unreachable());
    let running = Running::start(&source, InformerOptions::new());
    let mut status = running.informer.status().clone();
    let error = loop {
        match status.health_changed().await.expect("the informer runs") {
            Health::BackingOff { error, .. } => break error.to_string(),
            health => assert!(!health.is_live(), "{health}"),
        }
    };
    assert!(error.contains("no route to host"), "{error}");
    let health = running.informer.health().to_string();
    assert!(health.contains("no route to host"), "{health}");
    assert!(!running.informer.has_synced());
    wait_for_cache_sync(&[&running.informer], Duration::from_secs(60))
        .await
        .expect("the informer syncs after the failure");
    assert_eq!(source.list_count(), 2);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn i12_informer_in_backoff_stops_at_once() {
    let source = source();
    (0..10).for_each(|_| source.fail_next_list(unreachable()));
    let running = Running::start(&source, InformerOptions::new());
    let mut status = running.informer.status().clone();
    // The tenth backoff is between 30 and 60 seconds.
    while source.list_count() < 10 || !matches!(running.informer.health(), Health::BackingOff { .. }) {
        status.health_changed().await.expect("the informer runs");
    }
    let stopped = Instant::now();
    let informer = running.informer.clone();
    running.stop().await;
    assert_eq!(stopped.elapsed(), Duration::ZERO);
    assert_eq!(informer.stopped().await, StopCause::Shutdown);
    assert_eq!(source.list_count(), 10);
}

#[tokio::test(start_paused = true)]
async fn failed_watch_resumes_without_loss_or_repetition() {
    let source = source();
    create(&source, "a", "1");
    let running = Running::start(&source, InformerOptions::new()).synced().await;
    let (_registration, mut recorded) = listen(&running.informer, &HandlerOptions::new());
    assert_eq!(recorded.next().await, "+a=1!");
    source.wait_for_watches(1).await;
    update(&source, "a", "2");
    source.fail_watches(ListWatchError::Interrupted("connection reset".into()));
    source.update_unseen(config_map("a", "3")).expect("the object exists");
    let last = create(&source, "b", "1");
    running.reach(&last).await;
    let mut events = vec![recorded.next().await];
    while events.last().is_none_or(|event| event != "+b=1") {
        events.push(recorded.next().await);
    }
    assert!(events == ["a=1>2", "a=2>3", "+b=1"] || events == ["a=1>2", "+b=1", "a=2>3"], "{events:?}");
    assert_eq!(source.list_count(), 1);
    running.stop().await;
}

/// Options with a transform that fails for objects whose value is `bad`.
fn refusing_bad_values() -> InformerOptions<ConfigMap> {
    let transform =
        |object: &mut ConfigMap| if value_of(object) == "bad" { Err("bad value") } else { Ok(()) };
    InformerOptions::new().transform(transform)
}

#[tokio::test(start_paused = true)]
async fn i10_untransformable_object_arrives_once_valid() {
    let source = source();
    create(&source, "a", "bad");
    create(&source, "b", "1");
    let running = Running::start(&source, refusing_bad_values()).synced().await;
    let (_registration, mut recorded) = listen(&running.informer, &HandlerOptions::new());
    assert_eq!(recorded.next().await, "+b=1!");
    let quarantined = running.informer.status().quarantined();
    assert_eq!(quarantined.iter().map(|object| object.key.clone()).collect::<Vec<_>>(), [Some(key("a"))]);
    assert!(quarantined[0].error.contains("bad value"), "{}", quarantined[0].error);
    running.reach(&update(&source, "a", "2")).await;
    assert_eq!(recorded.next().await, "+a=2");
    assert!(running.informer.status().quarantined().is_empty());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn i10_untransformable_update_keeps_the_old_object() {
    let source = source();
    create(&source, "a", "1");
    let running = Running::start(&source, refusing_bad_values()).synced().await;
    let (_registration, mut recorded) = listen(&running.informer, &HandlerOptions::new());
    assert_eq!(recorded.next().await, "+a=1!");
    running.reach(&update(&source, "a", "bad")).await;
    let stored = || running.informer.get(&key("a")).map(|object| value_of(&object).to_owned());
    assert_eq!(stored().as_deref(), Some("1"));
    // The next list contains the object, so the informer must not delete it from the store.
    source.wait_for_watches(1).await;
    source.create_unseen(config_map("b", "1")).expect("a new object");
    source.expire();
    source.disconnect();
    assert_eq!(recorded.next().await, "+b=1");
    assert_eq!((stored().as_deref(), source.list_count()), (Some("1"), 2));
    running.reach(&source.delete(&key("a")).expect("the object exists")).await;
    assert_eq!(recorded.next().await, "-a=1", "the last valid state");
    assert!(running.informer.status().quarantined().is_empty());
    running.stop().await;
}
