//! Servers that send invalid events: handlers still receive a valid sequence (I4).

use std::sync::Arc;

use async_trait::async_trait;
use futures::{StreamExt, stream};
use informer_core::ListerWatcher;
use informer_core::{
    Bookmark, ListEnd, ListOptions, ListPart, ListStream, WatchEvent, WatchOptions, WatchStream,
};
use informer_factory::{HandlerOptions, InformerOptions, ListWatchError, Resync};
use k8s_openapi::api::core::v1::ConfigMap;
use parking_lot::Mutex;

use crate::{Running, config_map, create, key, listen, source};

/// A server that lists the given objects and then sends the given events.
struct Odd {
    objects: Vec<ConfigMap>,
    events: Mutex<Vec<WatchEvent<ConfigMap>>>,
}

#[async_trait]
impl ListerWatcher<ConfigMap> for Odd {
    fn description(&self) -> &str {
        "configmaps"
    }

    async fn list(&self, _: ListOptions) -> Result<ListStream<ConfigMap>, ListWatchError> {
        let items = self.objects.iter().cloned().map(|object| Ok(object.into())).collect();
        let end = ListEnd { resource_version: "5".into(), ..ListEnd::default() };
        Ok(stream::iter([Ok(ListPart::Items(items)), Ok(ListPart::End(end))]).boxed())
    }

    async fn watch(&self, _: WatchOptions) -> Result<WatchStream<ConfigMap>, ListWatchError> {
        let events = std::mem::take(&mut *self.events.lock());
        Ok(stream::iter([Ok(events)]).chain(stream::pending()).boxed())
    }
}

fn at_version(name: &str, value: &str, version: &str) -> ConfigMap {
    let mut object = config_map(name, value);
    object.metadata.uid = Some(format!("uid-of-{name}"));
    object.metadata.resource_version = Some(version.into());
    object
}

fn odd(objects: Vec<ConfigMap>, mut events: Vec<WatchEvent<ConfigMap>>) -> Running {
    events.push(WatchEvent::Added(at_version("the-end", "", "99").into()));
    Running::over(Arc::new(Odd { objects, events: Mutex::new(events) }), InformerOptions::new())
}

/// Adds a handler, and returns the events that it receives before the add of `the-end`.
async fn events_of(running: &Running) -> Vec<String> {
    let options = HandlerOptions::new().resync(Resync::Never);
    let (_registration, mut recorded) = listen(&running.informer, &options);
    let mut events = Vec::new();
    loop {
        match recorded.next().await {
            event if event.starts_with("+the-end") => return events,
            event => events.push(event),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn i4_object_listed_twice_is_added_once() {
    let twice = vec![at_version("a", "1", "1"), at_version("b", "1", "2"), at_version("a", "1", "1")];
    let running = odd(twice, vec![]);
    assert_eq!(events_of(&running).await, ["+a=1!", "+b=1!"]);
    assert_eq!(running.informer.indexer().len(), 3);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn i4_two_listed_versions_are_an_add_and_an_update() {
    let versions = vec![at_version("a", "1", "1"), at_version("a", "2", "3")];
    let running = odd(versions, vec![]);
    assert_eq!(events_of(&running).await, ["+a=1!", "a=1>2"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn i4_events_of_wrong_type_are_delivered_as_the_right_type() {
    let events = vec![
        WatchEvent::Added(at_version("known", "2", "6").into()),
        WatchEvent::Modified(at_version("unknown", "1", "7").into()),
        WatchEvent::Deleted(at_version("never-added", "1", "8").into()),
        WatchEvent::Deleted(at_version("known", "3", "9").into()),
        WatchEvent::Deleted(at_version("known", "3", "9").into()),
    ];
    let running = odd(vec![at_version("known", "1", "1")], events);
    let mut events = events_of(&running).await;
    events.sort();
    assert_eq!(events, ["+known=1!", "+unknown=1", "-known=3", "known=1>2"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn deletion_of_an_unknown_object_is_not_delivered() {
    let source = source();
    create(&source, "a", "1");
    let running = Running::start(&source, InformerOptions::new()).synced().await;
    source.wait_for_watches(1).await;
    let (_registration, mut recorded) = listen(&running.informer, &HandlerOptions::new());
    source.create_unseen(config_map("ghost", "1")).expect("a new object");
    let gone = source.delete(&key("ghost")).expect("the object exists");
    running.reach(&gone).await;
    running.reach(&create(&source, "b", "1")).await;
    assert_eq!([recorded.next().await, recorded.next().await], ["+a=1!", "+b=1"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn i9_bookmark_without_version_keeps_the_watermark() {
    let bookmark = Bookmark { resource_version: "".into(), initial_events_end: false };
    let running = odd(
        vec![],
        vec![WatchEvent::Added(at_version("a", "1", "7").into()), WatchEvent::Bookmark(bookmark)],
    );
    events_of(&running).await;
    assert_eq!(running.informer.watermark(), "99".into());
    assert_eq!(running.informer.status().last_sync_resource_version(), "99".into());
    running.stop().await;
}
