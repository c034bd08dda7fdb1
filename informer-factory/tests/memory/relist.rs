//! Relists: the events that handlers receive, and the store's content at each event.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt;
use informer_factory::{Event, HandlerOptions, InformerOptions, ResourceVersion, Resync, WaitOutcome};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::sync::mpsc::unbounded_channel;

use crate::{Running, config_map, create, key, source, update, value_of};

fn shown(event: &Event<ConfigMap>) -> String {
    match event {
        Event::Added { object, is_in_initial_list } => {
            format!("+{}={}{}", object.name(), value_of(object), if *is_in_initial_list { "!" } else { "" })
        }
        Event::Updated { old, new } => format!("{}={}>{}", new.name(), value_of(old), value_of(new)),
        Event::Resynced(object) => format!("{}={}", object.name(), value_of(object)),
        Event::Deleted(deleted) => {
            let last = deleted.last_known().map_or("?", |last| value_of(last));
            format!("-{}={last}{}", deleted.name(), if deleted.is_exact() { "" } else { "?" })
        }
        Event::Released(object) => format!("^{}={}", object.name(), value_of(object)),
    }
}

/// Adds a handler that records each event with the store's watermark at the time of the call.
fn listen(
    running: &Running,
) -> (informer_factory::HandlerRegistration, tokio::sync::mpsc::UnboundedReceiver<(String, ResourceVersion)>)
{
    let (send, recorded) = unbounded_channel();
    let (on_update, on_delete) = (send.clone(), send.clone());
    let [add, update, delete] = [(); 3].map(|()| running.informer.clone());
    let registration = running.informer.add_handlers(|handlers| {
        handlers
            .on_add(move |object, is_in_initial_list| {
                assert!(add.get(object.key()).is_some_and(|stored| stored.ptr_eq(object)));
                let event = Event::Added { object: object.clone(), is_in_initial_list };
                _ = send.send((shown(&event), add.watermark()));
            })
            .on_update(move |old, new| {
                assert!(update.get(new.key()).is_some_and(|stored| stored.ptr_eq(new)));
                let event = Event::Updated { old: old.clone(), new: new.clone() };
                _ = on_update.send((shown(&event), update.watermark()));
            })
            .on_delete(move |deleted| {
                assert!(delete.get(deleted.key()).is_none());
                _ = on_delete.send((shown(&Event::Deleted(deleted.clone())), delete.watermark()));
            })
    });
    (registration, recorded)
}

#[tokio::test(start_paused = true)]
async fn i3_relist_events_find_the_store_at_the_new_version() {
    let source = source();
    ["a", "b", "c"].into_iter().for_each(|name| _ = create(&source, name, "1"));
    let running = Running::start(&source, InformerOptions::new());
    let (_registration, mut recorded) = listen(&running);
    let first_list = source.resource_version();
    for expected in ["+a=1!", "+b=1!", "+c=1!"] {
        assert_eq!(recorded.recv().await, Some((expected.to_owned(), first_list.clone())));
    }
    // Only the next list reports these changes.
    source.delete_unseen(&key("a")).expect("the object exists");
    source.update_unseen(config_map("b", "2")).expect("the object exists");
    source.create_unseen(config_map("d", "1")).expect("a new object");
    source.expire();
    source.disconnect();
    let mut events = Vec::new();
    for _ in 0..3 {
        let (event, found_at) = recorded.recv().await.expect("the handler is registered");
        assert_eq!(found_at, source.resource_version(), "{event}");
        events.push(event);
    }
    events.sort();
    assert_eq!(events, ["+d=1", "-a=1?", "b=1>2"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn relist_of_an_empty_cluster_deletes_every_object() {
    let source = source();
    ["a", "b"].into_iter().for_each(|name| _ = create(&source, name, "1"));
    let running = Running::start(&source, InformerOptions::new());
    let (_registration, mut recorded) = listen(&running);
    for _ in 0..2 {
        recorded.recv().await.expect("the handler is registered");
    }
    ["a", "b"].into_iter().for_each(|name| _ = source.delete_unseen(&key(name)).expect("the object exists"));
    source.expire();
    source.disconnect();
    let mut events = [recorded.recv().await, recorded.recv().await]
        .map(|event| event.expect("the handler is registered").0);
    events.sort();
    assert_eq!(events, ["-a=1?", "-b=1?"]);
    assert!(running.informer.indexer().is_empty());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn changes_missed_by_a_watch_are_delivered_normally() {
    let source = source();
    create(&source, "a", "1");
    let running = Running::start(&source, InformerOptions::new()).synced().await;
    let (_registration, mut recorded) = listen(&running);
    assert_eq!(recorded.recv().await.map(|(event, _)| event).as_deref(), Some("+a=1!"));
    source.update_unseen(config_map("a", "2")).expect("the object exists");
    source.create_unseen(config_map("b", "1")).expect("a new object");
    source.disconnect();
    for expected in ["a=1>2", "+b=1"] {
        assert_eq!(recorded.recv().await.map(|(event, _)| event).as_deref(), Some(expected));
    }
    assert_eq!(source.list_count(), 1, "the watch resumes without a list");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn i4_unseen_recreation_is_a_delete_and_an_add() {
    let source = source();
    let first = create(&source, "a", "1");
    let running = Running::start(&source, InformerOptions::new()).synced().await;
    let mut events = running.informer.events(&HandlerOptions::new());
    assert_eq!(shown(&events.next().await.expect("the stream is open")), "+a=1!");
    source.delete_unseen(first.key()).expect("the object exists");
    source.create_unseen(config_map("a", "2")).expect("the name is free");
    source.expire();
    source.disconnect();
    for expected in ["-a=1?", "+a=2"] {
        assert_eq!(shown(&events.next().await.expect("the stream is open")), expected);
    }
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn i9_watermark_follows_updates_and_deletions() {
    let source = source();
    let object = create(&source, "a", "1");
    let running = Running::start(&source, InformerOptions::new()).synced().await;
    assert_eq!(&running.informer.watermark(), object.resource_version());
    let updated = source.modify(object.key(), |_| {}).expect("the object exists");
    let wait = running.informer.wait_until(updated.resource_version(), Duration::from_secs(1));
    assert_eq!(wait.await, WaitOutcome::Reached);
    assert_eq!(&running.informer.watermark(), updated.resource_version());
    let deleted = source.delete(object.key()).expect("the object exists");
    assert!(deleted.resource_version().is_newer_than(updated.resource_version()));
    let wait = running.informer.wait_until(deleted.resource_version(), Duration::from_secs(1));
    assert_eq!(wait.await, WaitOutcome::Reached);
    assert!(running.informer.indexer().is_empty());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn i10_object_is_transformed_once_per_version() {
    let source = source();
    ["a", "b"].into_iter().for_each(|name| _ = create(&source, name, "1"));
    let transformed = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&transformed);
    let options = InformerOptions::new().transform(move |object: &mut ConfigMap| {
        count.fetch_add(1, Ordering::Relaxed);
        object.data.get_or_insert_default().insert("seen".into(), "yes".into());
        Ok::<_, std::convert::Infallible>(())
    });
    let running = Running::start(&source, options);
    let (send, mut recorded) = unbounded_channel();
    let resyncing = HandlerOptions::new().resync(Resync::Every(Duration::from_secs(1)));
    let handlers =
        informer_factory::Handlers::new().on_update(move |_, new: &informer_factory::Cached<ConfigMap>| {
            _ = send.send(new.data.as_ref().is_some_and(|data| data.contains_key("seen")));
        });
    let _registration = running.informer.add_event_handler_with(handlers, &resyncing);
    let running = running.synced().await;
    source.modify(&key("a"), |object| object.immutable = Some(false)).expect("the object exists");
    for _ in 0..20 {
        assert_eq!(recorded.recv().await, Some(true));
    }
    assert_eq!(transformed.load(Ordering::Relaxed), 3);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn i10_relist_of_the_same_version_keeps_the_stored_object() {
    let source = source();
    ["a", "b"].into_iter().for_each(|name| _ = create(&source, name, "1"));
    let options = InformerOptions::new().transform(|object: &mut ConfigMap| {
        object.data.get_or_insert_default().entry("seen".into()).or_default().push('x');
        Ok::<_, std::convert::Infallible>(())
    });
    let running = Running::start(&source, options).synced().await;
    let seen = |name| running.informer.get(&key(name)).and_then(|it| it.data.as_ref()?.get("seen").cloned());
    let unchanged = running.informer.get(&key("a")).expect("the object exists");
    source.wait_for_watches(1).await;
    source.expire();
    source.disconnect();
    running.reach(&update(&source, "b", "2")).await;
    assert_eq!([seen("a"), seen("b")], [Some("x".to_owned()), Some("x".to_owned())]);
    assert!(
        running.informer.get(&key("a")).is_some_and(|it| it.ptr_eq(&unchanged)),
        "the stored object is kept"
    );
    running.stop().await;
}
