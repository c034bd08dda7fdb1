//! Resyncs of a running informer: client-go's `TestListenerResyncPeriods`. Relists and reconnects
//! are not resyncs.

use std::time::Duration;

use informer_factory::{HandlerOptions, InformerOptions, Resync};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::time::Instant;

use crate::{Running, config_map, create, idle, key, listen, source, update, value_of};

fn every(seconds: u64) -> HandlerOptions {
    HandlerOptions::new().resync(Resync::Every(Duration::from_secs(seconds)))
}

fn never() -> HandlerOptions {
    HandlerOptions::new().resync(Resync::Never)
}

#[tokio::test(start_paused = true)]
async fn each_handler_has_its_own_resync_period() {
    let source = source();
    create(&source, "a", "1");
    create(&source, "b", "1");
    let (informer, task) = idle(&source);
    let (_never, mut recorded_never) = listen(&informer, &never());
    let (_two, mut recorded_two) = listen(&informer, &every(2));
    let (_four, mut recorded_four) = listen(&informer, &every(4));
    let started = Instant::now();
    let running = Running::run((informer, task));
    for recorded in [&mut recorded_never, &mut recorded_two, &mut recorded_four] {
        assert_eq!(recorded.sorted(2).await, ["+a=1!", "+b=1!"]);
    }
    for seconds in [2, 4] {
        assert_eq!(recorded_two.sorted(2).await, ["a=1>1", "b=1>1"]);
        assert_eq!(started.elapsed().as_secs(), seconds);
    }
    assert_eq!(recorded_four.sorted(2).await, ["a=1>1", "b=1>1"]);
    assert_eq!(started.elapsed().as_secs(), 4);
    assert_eq!(
        (recorded_never.rest().len(), recorded_two.rest().len(), recorded_four.rest().len()),
        (0, 0, 0)
    );
    assert_eq!((source.list_count(), source.watch_count()), (1, 1), "a resync sends no request");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn disruption_delivers_changes_and_resyncs_stay_periodic() {
    let source = source();
    for name in ["kept", "changed", "gone"] {
        create(&source, name, "1");
    }
    // The period is so long that no resync occurs before the end of the test.
    let options = InformerOptions::new().resync_period(Duration::from_secs(3600));
    let running = Running::start(&source, options).synced().await;
    let (plain, mut recorded) = listen(&running.informer, &never());
    let (resynced, mut recorded_all) = listen(&running.informer, &HandlerOptions::new());
    for (registration, recorded) in [(&plain, &mut recorded), (&resynced, &mut recorded_all)] {
        registration.synced().wait().await.expect("synced");
        assert_eq!(recorded.rest().len(), 3);
    }
    source.update_unseen(config_map("changed", "2")).expect("the object exists");
    source.delete_unseen(&key("gone")).expect("the object exists");
    source.create_unseen(config_map("new", "1")).expect("a new object");
    source.expire();
    source.disconnect();
    assert_eq!(recorded.sorted(3).await, ["+new=1", "-gone=1", "changed=1>2"]);
    assert_eq!(recorded_all.sorted(3).await, ["+new=1", "-gone=1", "changed=1>2"]);
    running.reach(&update(&source, "kept", "2")).await;
    assert_eq!((recorded.next().await, recorded_all.next().await), ("kept=1>2".into(), "kept=1>2".into()));
    assert_eq!((recorded.rest().len(), recorded_all.rest().len()), (0, 0));
    assert_eq!(recorded_all.sorted(3).await, ["changed=2>2", "kept=2>2", "new=1>1"]);
    assert!(recorded.rest().is_empty());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn transform_applies_once_to_store_and_handlers() {
    let source = source();
    create(&source, "a", "1");
    let twice = |object: &mut ConfigMap| {
        object.data.iter_mut().flat_map(|data| data.values_mut()).for_each(|value| *value = value.repeat(2));
        Ok::<_, String>(())
    };
    let options = InformerOptions::new().resync_period(Duration::from_secs(2)).transform(twice);
    let running = Running::start(&source, options).synced().await;
    let (_registration, mut recorded) = listen(&running.informer, &HandlerOptions::new());
    for expected in ["+a=11!", "a=11>11", "a=11>11"] {
        assert_eq!(recorded.next().await, expected);
    }
    running.reach(&update(&source, "a", "2")).await;
    assert_eq!(recorded.next().await, "a=11>22");
    assert_eq!(running.informer.get(&key("a")).as_deref().map(value_of), Some("22"));
    running.reach(&source.delete(&key("a")).expect("the object exists")).await;
    assert_eq!(recorded.next().await, "-a=22");
    running.stop().await;
}
