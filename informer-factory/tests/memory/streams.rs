//! Streaming lists through a whole informer: the store and the events, before and after the end of
//! the list.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::{StreamExt, stream};
use informer_core::ListerWatcher;
use informer_factory::informer_core::{
    Bookmark, ListOptions, ListStream, WatchEvent, WatchOptions, WatchStream,
};
use informer_factory::{HandlerOptions, InformerOptions, ListWatchError, wait_for_cache_sync};
use k8s_openapi::api::core::v1::ConfigMap;
use parking_lot::Mutex;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::{Running, config_map, create, key, listen, source, update, value_of};

#[tokio::test(start_paused = true)]
async fn streaming_informer_sends_one_request() {
    let source = source().streaming_lists();
    ["a", "b"].into_iter().for_each(|name| _ = create(&source, name, "1"));
    let running = Running::start(&source, InformerOptions::new()).synced().await;
    let (_registration, mut recorded) = listen(&running.informer, &HandlerOptions::new());
    assert_eq!(recorded.sorted(2).await, ["+a=1!", "+b=1!"]);
    running.reach(&update(&source, "a", "2")).await;
    assert_eq!(recorded.next().await, "a=1>2");
    assert_eq!((source.list_count(), source.watch_count()), (0, 1));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn i9_streaming_relist_queues_only_changes() {
    let source = source().streaming_lists();
    ["kept", "changed", "gone"].into_iter().for_each(|name| _ = create(&source, name, "1"));
    let running = Running::start(&source, InformerOptions::new()).synced().await;
    let (_registration, mut recorded) = listen(&running.informer, &HandlerOptions::new());
    recorded.sorted(3).await;
    let kept = running.informer.get(&key("kept")).expect("the object exists");
    source.update_unseen(config_map("changed", "2")).expect("the object exists");
    source.delete_unseen(&key("gone")).expect("the object exists");
    source.expire();
    source.disconnect();
    assert_eq!(recorded.sorted(2).await, ["-gone=1", "changed=1>2"]);
    assert_eq!(running.informer.watermark(), source.resource_version());
    assert!(running.informer.get(&key("kept")).is_some_and(|object| object.ptr_eq(&kept)));
    assert_eq!(source.list_count(), 0);
    running.stop().await;
}

/// A server whose streaming lists the test sends.
struct Streamed {
    batches: Mutex<Vec<tokio::sync::mpsc::UnboundedReceiver<Vec<WatchEvent<ConfigMap>>>>>,
}

impl Streamed {
    fn new() -> (Arc<Self>, UnboundedSender<Vec<WatchEvent<ConfigMap>>>) {
        let (send, receive) = unbounded_channel();
        (Arc::new(Self { batches: Mutex::new(vec![receive]) }), send)
    }
}

#[async_trait]
impl ListerWatcher<ConfigMap> for Streamed {
    fn description(&self) -> &str {
        "configmaps"
    }

    fn can_stream_lists(&self) -> bool {
        true
    }

    async fn list(&self, _: ListOptions) -> Result<ListStream<ConfigMap>, ListWatchError> {
        std::future::pending().await
    }

    async fn watch(&self, _: WatchOptions) -> Result<WatchStream<ConfigMap>, ListWatchError> {
        let Some(batches) = self.batches.lock().pop() else { std::future::pending().await };
        let next = |mut batches: tokio::sync::mpsc::UnboundedReceiver<_>| async move {
            batches.recv().await.map(|batch| (Ok(batch), batches))
        };
        Ok(stream::unfold(batches, next).boxed())
    }
}

fn added(name: &str, version: &str) -> WatchEvent<ConfigMap> {
    let mut object = config_map(name, version);
    object.metadata.resource_version = Some(version.into());
    object.metadata.uid = Some(name.into());
    WatchEvent::Added(object.into())
}

fn end(version: &str) -> WatchEvent<ConfigMap> {
    WatchEvent::Bookmark(Bookmark { resource_version: version.into(), initial_events_end: true })
}

#[tokio::test(start_paused = true)]
async fn i6_handlers_receive_a_streamed_list_before_its_end() {
    let (server, send) = Streamed::new();
    let running = Running::over(server, InformerOptions::new());
    let (registration, mut recorded) = listen(&running.informer, &HandlerOptions::new());
    for name in ["a", "b"] {
        send.send(vec![added(name, "1")]).expect("the reflector reads the stream");
        assert_eq!(recorded.next().await, format!("+{name}=1!"));
        assert!(running.informer.get(&key(name)).is_some());
        assert!(!running.informer.has_synced() && !registration.has_synced());
        assert!(running.informer.watermark().is_empty(), "I9: a partial list has no watermark");
    }
    let late = wait_for_cache_sync(&[&running.informer], Duration::from_secs(5))
        .await
        .expect_err("the list is not complete");
    assert!(late.to_string().contains("2 objects so far"), "{late}");
    // A handler that joins now receives the objects so far, and later the rest.
    let (late_registration, mut late_recorded) = listen(&running.informer, &HandlerOptions::new());
    assert_eq!(late_recorded.sorted(2).await, ["+a=1!", "+b=1!"]);
    assert!(!late_registration.has_synced());
    send.send(vec![added("c", "3"), end("7")]).expect("the reflector reads the stream");
    for recorded in [&mut recorded, &mut late_recorded] {
        assert_eq!(recorded.next().await, "+c=3!");
    }
    registration.synced().wait().await.expect("synced");
    late_registration.synced().wait().await.expect("synced");
    assert_eq!(running.informer.watermark(), "7".into());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn i10_failed_transform_of_a_streamed_object_does_not_block() {
    let source = source().streaming_lists();
    create(&source, "a", "bad");
    create(&source, "b", "1");
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let options = InformerOptions::new().transform(move |object: &mut ConfigMap| {
        count.fetch_add(1, Ordering::Relaxed);
        if value_of(object) == "bad" { Err("bad value") } else { Ok(()) }
    });
    let running = Running::start(&source, options).synced().await;
    assert_eq!(running.informer.indexer().len(), 1);
    assert_eq!(running.informer.status().quarantined().len(), 1);
    assert_eq!(calls.load(Ordering::Relaxed), 2, "one transform per object");
    running.reach(&update(&source, "a", "2")).await;
    assert_eq!(running.informer.indexer().len(), 2);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn failed_streaming_list_is_retried_without_repetition() {
    let source = source().streaming_lists();
    create(&source, "a", "1");
    source.fail_next_list(ListWatchError::Interrupted("connection reset".into()));
    let running = Running::start(&source, InformerOptions::new()).synced().await;
    let (_registration, mut recorded) = listen(&running.informer, &HandlerOptions::new());
    assert_eq!(recorded.next().await, "+a=1!");
    assert!(recorded.rest().is_empty());
    running.stop().await;
}
