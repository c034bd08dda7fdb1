//! A cache controller without an informer: it lists and watches, and calls the process function.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use informer_core::{Delta, DeltaFifo, ListerWatcher, Pending};
use informer_core::{ListOptions, ListStream, WatchOptions, WatchStream};
use informer_factory::cache_controller::{CacheController, CacheControllerConfig};
use informer_factory::{Cached, ListWatchError, ObjectKey};
use informer_store::{Change, store};
use informer_testing::MemorySource;
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{create, source, value_of};

/// Formats a queue item: the key, then a letter and the value of each delta.
fn shown(pending: &Pending<ConfigMap>) -> String {
    let delta = |delta: &Delta<ConfigMap>| {
        let letter = match delta {
            Delta::Added(_) => 'A',
            Delta::Updated(_) => 'U',
            Delta::Replaced(_) => 'R',
            Delta::Sync(_) => 'S',
            Delta::Deleted(_) => 'D',
            Delta::Released(_) => 'L',
        };
        format!("{letter}:{}", delta.object().map_or("?", |object| value_of(object)))
    };
    format!("{} {}", pending.key.name(), pending.deltas.iter().map(delta).collect::<Vec<_>>().join(","))
}

fn spawn(controller: CacheController<ConfigMap>) -> (CancellationToken, tokio::task::JoinHandle<()>) {
    let shutdown = CancellationToken::new();
    (shutdown.clone(), tokio::spawn(controller.run(shutdown)))
}

#[tokio::test(start_paused = true)]
async fn controller_passes_each_keys_changes_to_its_function() {
    let source = source();
    create(&source, "a", "1");
    let (calls, mut called) = unbounded_channel();
    let config = CacheControllerConfig::new(Arc::new(source.clone()));
    let controller = CacheController::new(config, move |pending| calls.send(shown(pending)));
    let (synced, status) = (controller.synced(), controller.status());
    assert!(!controller.has_synced() && controller.last_sync_resource_version().is_empty());
    let (shutdown, run) = spawn(controller);
    assert_eq!(called.recv().await.as_deref(), Some("a R:1"));
    synced.wait().await.expect("synced");
    let changed = create(&source, "b", "2");
    assert_eq!(called.recv().await.as_deref(), Some("b A:2"));
    source.delete(changed.key()).expect("the object exists");
    assert_eq!(called.recv().await.as_deref(), Some("b D:2"));
    assert_eq!(status.last_sync_resource_version(), source.resource_version());
    shutdown.cancel();
    run.await.expect("no panic");
}

#[tokio::test(start_paused = true)]
async fn failed_key_is_retried_before_the_controller_syncs() {
    let source = source();
    create(&source, "a", "1");
    let (calls, mut called) = unbounded_channel();
    let config = CacheControllerConfig::new(Arc::new(source.clone())).retry_on_error();
    let mut failures_left = 3;
    let controller = CacheController::new(config, move |pending: &Pending<ConfigMap>| {
        calls.send((shown(pending), Instant::now())).expect("the receiver is open");
        failures_left -= 1;
        if failures_left < 0 { Ok(()) } else { Err("not yet") }
    });
    let synced = controller.synced();
    let (shutdown, run) = spawn(controller);
    let mut times = Vec::new();
    for _ in 0..4 {
        assert!(!synced.has_synced());
        let (call, at) = called.recv().await.expect("the function is called again");
        assert_eq!(call, "a R:1");
        times.push(at);
    }
    synced.wait().await.expect("synced");
    let waits: Vec<_> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_millis()).collect();
    assert!(
        waits.iter().zip([5, 10, 20]).all(|(wait, least)| (least..least + 3).contains(wait)),
        "{waits:?}"
    );
    shutdown.cancel();
    run.await.expect("no panic");
}

#[tokio::test(start_paused = true)]
async fn failed_item_without_retries_waits_for_its_next_change() {
    let source = source();
    create(&source, "a", "1");
    let (calls, mut called) = unbounded_channel();
    let controller =
        CacheController::new(CacheControllerConfig::new(Arc::new(source.clone())), move |pending| {
            calls.send(shown(pending)).expect("the receiver is open");
            Err("never")
        });
    let synced = controller.synced();
    let (shutdown, run) = spawn(controller);
    assert_eq!(called.recv().await.as_deref(), Some("a R:1"));
    synced.wait().await.expect("a failed item counts as processed");
    source.modify(&ObjectKey::namespaced("shop", "a"), |_| {}).expect("the object exists");
    assert_eq!(called.recv().await.as_deref(), Some("a U:1"));
    shutdown.cancel();
    run.await.expect("no panic");
}

#[tokio::test(start_paused = true)]
async fn i12_controller_stops_while_every_item_fails() {
    let source = source();
    create(&source, "a", "1");
    let (calls, mut called) = unbounded_channel();
    let config = CacheControllerConfig::new(Arc::new(source.clone())).retry_on_error();
    let controller = CacheController::new(config, move |pending| {
        calls.send(shown(pending)).expect("the receiver is open");
        Err("never")
    });
    let synced = controller.synced();
    let (shutdown, run) = spawn(controller);
    for _ in 0..20 {
        called.recv().await.expect("the function is called again");
    }
    shutdown.cancel();
    run.await.expect("no panic");
    assert!(synced.wait().await.is_err(), "the controller never synced");
}

/// A source that cancels its controller when it delivers the first watch event.
struct StopsWithAnEvent {
    source: MemorySource<ConfigMap>,
    shutdown: CancellationToken,
}

#[async_trait]
impl ListerWatcher<ConfigMap> for StopsWithAnEvent {
    fn description(&self) -> &str {
        "configmaps"
    }

    async fn list(&self, options: ListOptions) -> Result<ListStream<ConfigMap>, ListWatchError> {
        self.source.list(options).await
    }

    async fn watch(&self, options: WatchOptions) -> Result<WatchStream<ConfigMap>, ListWatchError> {
        let shutdown = self.shutdown.clone();
        Ok(self.source.watch(options).await?.inspect(move |_| shutdown.cancel()).boxed())
    }
}

#[tokio::test(start_paused = true)]
async fn i12_items_at_the_stop_are_processed_despite_failures() {
    let (source, shutdown) = (source(), CancellationToken::new());
    create(&source, "bad", "1");
    let (calls, mut called) = unbounded_channel();
    let stops = StopsWithAnEvent { source: source.clone(), shutdown: shutdown.clone() };
    let config = CacheControllerConfig::new(Arc::new(stops)).retry_on_error();
    let controller = CacheController::new(config, move |pending| {
        let name = pending.key.name().to_owned();
        let outcome = if name == "bad" { Err("never") } else { Ok(()) };
        calls.send(name).expect("the receiver is open");
        outcome
    });
    let run = tokio::spawn(controller.run(shutdown));
    called.recv().await.expect("the function is called");
    source.wait_for_watches(1).await;
    create(&source, "good", "1");
    run.await.expect("no panic");
    let rest: Vec<String> = std::iter::from_fn(|| called.try_recv().ok()).collect();
    assert!(rest.iter().any(|name| name == "good"), "{rest:?}");
}

#[tokio::test(start_paused = true)]
async fn i12_panic_of_the_function_ends_run_and_all_waits() {
    let source = source();
    create(&source, "a", "1");
    let controller = CacheController::new(
        CacheControllerConfig::new(Arc::new(source.clone())),
        |_| -> Result<(), Infallible> { panic!("test panic") },
    );
    let synced = controller.synced();
    let (_shutdown, run) = spawn(controller);
    assert!(run.await.expect_err("a panic").is_panic());
    assert!(synced.wait().await.is_err());
    assert_eq!(source.open_watches(), 0);
}

#[tokio::test]
async fn i12_controller_that_never_ran_ends_all_waits() {
    let config = CacheControllerConfig::new(Arc::new(source()));
    let controller = CacheController::new(config, |_| Ok::<_, Infallible>(()));
    let synced = controller.synced();
    drop(controller);
    assert!(synced.wait().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn controller_with_store_processes_batches_and_resyncs() {
    let source = source();
    create(&source, "a", "1");
    create(&source, "b", "2");
    let (mut writer, indexer) = store::<ConfigMap>();
    let (calls, mut called) = unbounded_channel();
    let mut due = [false, true].into_iter();
    let config = CacheControllerConfig::new(Arc::new(source.clone()))
        .queue(DeltaFifo::with_known_objects(Arc::new(indexer.clone())))
        .resync_period(Duration::from_secs(10))
        .should_resync(move || due.next().unwrap_or(false));
    let controller = CacheController::with_batches(config, move |batch| {
        let mut changes = HashMap::new();
        for pending in batch.items() {
            calls.send(shown(pending)).expect("the receiver is open");
            let change = match &pending.deltas[pending.deltas.len() - 1] {
                Delta::Sync(_) => continue,
                Delta::Deleted(deleted) => Change::Remove(deleted.key().clone()),
                other => Change::Put(other.object().cloned().expect("the delta has an object")),
            };
            changes.insert(pending.key.clone(), change);
        }
        writer.transaction(changes.into_values().collect(), batch.watermark());
    });
    let synced = controller.synced();
    let started = Instant::now();
    let (shutdown, run) = spawn(controller);
    for expected in ["a R:1", "b R:2"] {
        assert_eq!(called.recv().await.as_deref(), Some(expected));
    }
    synced.wait().await.expect("synced");
    assert_eq!((indexer.len(), indexer.watermark()), (2, source.resource_version()));
    let mut resynced =
        [called.recv().await, called.recv().await].map(|call| call.expect("the objects are resynced"));
    resynced.sort();
    assert_eq!(resynced, ["a S:?", "b S:?"]);
    assert_eq!(started.elapsed().as_secs(), 20, "the second check resyncs");
    shutdown.cancel();
    run.await.expect("no panic");
}

#[tokio::test(start_paused = true)]
async fn queued_changes_are_processed_when_the_controller_stops() {
    let source = source();
    let (calls, mut called) = unbounded_channel();
    let shutdown = CancellationToken::new();
    let stop = shutdown.clone();
    let (mut seen, mut first) = (Vec::<Cached<ConfigMap>>::new(), true);
    let queue = DeltaFifo::new();
    let other_producer = queue.clone();
    let controller = CacheController::new(
        CacheControllerConfig::new(Arc::new(source.clone())).queue(queue),
        move |pending| {
            if std::mem::take(&mut first) {
                // Queue two more changes during this call, and stop the controller at the same
                // time.
                seen.iter().for_each(|object| other_producer.add(object.clone()));
                let extra = Cached::new(crate::config_map("z", "9")).expect("a valid name");
                other_producer.add(extra.clone());
                seen.push(extra);
                stop.cancel();
            }
            calls.send(shown(pending))
        },
    );
    create(&source, "a", "1");
    controller.run(shutdown).await;
    let mut processed = Vec::new();
    while let Ok(call) = called.try_recv() {
        processed.push(call);
    }
    assert_eq!(processed, ["a R:1", "z A:9"]);
}

#[tokio::test(start_paused = true)]
async fn good_keys_do_not_wait_for_failing_ones() {
    let source = source();
    create(&source, "bad", "1");
    let (calls, mut called) = unbounded_channel();
    let config = CacheControllerConfig::new(Arc::new(source.clone())).retry_on_error();
    let controller = CacheController::new(config, move |pending: &Pending<ConfigMap>| {
        _ = calls.send((pending.key.name().to_owned(), Instant::now()));
        if pending.key.name() == "bad" { Err("always") } else { Ok(()) }
    });
    let (shutdown, run) = spawn(controller);
    // The waits double from 5 ms to one second. A wait of one second follows the twelfth attempt.
    for _ in 0..12 {
        assert_eq!(called.recv().await.expect("the function is called").0, "bad");
    }
    let created = Instant::now();
    create(&source, "good", "1");
    let (_, at) = loop {
        let call = called.recv().await.expect("the good key is processed");
        if call.0 == "good" {
            break call;
        }
    };
    assert!(at - created < Duration::from_millis(5), "the good key waited {:?}", at - created);
    shutdown.cancel();
    run.await.expect("no panic");
}

#[tokio::test(start_paused = true)]
async fn failing_key_is_retried_with_waits_after_close() {
    let source = source();
    create(&source, "bad", "1");
    let queue = DeltaFifo::new();
    let config = CacheControllerConfig::new(Arc::new(source.clone())).queue(queue.clone()).retry_on_error();
    let (begin, mut tries) = (Instant::now(), 0);
    let controller = CacheController::new(config, move |_: &Pending<ConfigMap>| {
        queue.close();
        tries += 1;
        if tries < 100 { Err("not yet") } else { Ok(()) }
    });
    let synced = controller.synced();
    let (shutdown, run) = spawn(controller);
    synced.wait().await.expect("the key succeeds in the end");
    assert!(begin.elapsed() > Duration::from_secs(60), "100 tries in {:?}", begin.elapsed());
    shutdown.cancel();
    run.await.expect("no panic");
}

#[tokio::test(start_paused = true)]
async fn fully_failed_batch_does_not_delay_the_stop() {
    let source = source();
    create(&source, "bad", "1");
    let (sender, mut tries) = unbounded_channel();
    let config = CacheControllerConfig::new(Arc::new(source.clone()));
    let controller = CacheController::with_batches(config, move |batch| {
        (0..batch.items().len()).for_each(|position| batch.requeue(position));
        _ = sender.send(batch.items().len());
    });
    let (begin, status) = (Instant::now(), controller.synced());
    let (shutdown, run) = spawn(controller);
    for _ in 0..100 {
        tries.recv().await.expect("the batch is retried");
    }
    assert!(begin.elapsed() > Duration::from_secs(60), "100 tries in {:?}", begin.elapsed());
    assert!(!status.has_synced());
    shutdown.cancel();
    run.await.expect("no panic");
}
