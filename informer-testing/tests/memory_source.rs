//! Tests of the in-memory source: the results of lists and watches, and each kind of failure.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use informer_core::{
    ListOptions, ListPart, ListWatchError, ListerWatcher, ObjectKey, ResourceVersion, ResourceVersionMatch,
    WatchEvent, WatchOptions, WatchStream,
};
use informer_testing::{Error, MemorySource};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;

fn source() -> MemorySource<ConfigMap> {
    MemorySource::new("configmaps")
}

fn map(name: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.namespace = Some("a".into());
    map.metadata.name = Some(name.into());
    map
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("a", name)
}

fn from(version: impl Into<ResourceVersion>) -> WatchOptions {
    WatchOptions {
        resource_version: version.into(),
        timeout: Duration::from_secs(300),
        allow_bookmarks: true,
        send_initial_events: false,
    }
}

fn code(refused: Result<impl Sized, ListWatchError>) -> Option<u16> {
    refused.err().and_then(|error| error.status().map(|status| status.code))
}

async fn list(source: &MemorySource<ConfigMap>, options: ListOptions) -> (Vec<String>, ResourceVersion) {
    let mut parts = source.list(options).await.expect("a list");
    let mut names = Vec::new();
    loop {
        match parts.next().await.expect("an open stream").expect("no error") {
            ListPart::Items(items) => {
                names.extend(
                    items.into_iter().filter_map(|item| item.expect("well-formed").metadata.name.clone()),
                );
            }
            ListPart::End(end) => {
                assert_eq!(end.continue_token, None);
                return (names, end.resource_version);
            }
        }
    }
}

/// Returns the next batch of events in short form, such as `+one@2` for an added object. The batch must
/// be available.
fn batch(watch: &mut WatchStream<ConfigMap>) -> Vec<String> {
    let events = watch.next().now_or_never().expect("available events").expect("an open watch");
    let brief = |sign: &str, map: &ConfigMap| {
        let meta = &map.metadata;
        format!("{sign}{}@{}", meta.name.as_deref().unwrap(), meta.resource_version.as_deref().unwrap())
    };
    let event = |event: &WatchEvent<ConfigMap>| match event {
        WatchEvent::Added(map) => brief("+", map),
        WatchEvent::Modified(map) => brief("~", map),
        WatchEvent::Deleted(map) => brief("-", map),
        WatchEvent::Bookmark(mark) if mark.initial_events_end => format!("end@{}", mark.resource_version),
        WatchEvent::Bookmark(mark) => format!("mark@{}", mark.resource_version),
        other => panic!("{other:?}"),
    };
    events.expect("no error").iter().map(event).collect()
}

fn is_silent(watch: &mut WatchStream<ConfigMap>) -> bool {
    watch.next().now_or_never().is_none()
}

#[test]
fn change_gets_the_next_version_and_keeps_the_uid() {
    let source = source();
    let created = source.create(map("one")).unwrap();
    let updated = source.update(map("one")).unwrap();
    let modified = source.modify(&key("one"), |map| map.immutable = Some(true)).unwrap();
    let deleted = source.delete(&key("one")).unwrap();
    let versions: Vec<_> = [&created, &updated, &modified, &deleted]
        .map(|map| (map.resource_version().to_string(), map.metadata.resource_version.clone().unwrap()))
        .into();
    assert_eq!(versions, ["2", "3", "4", "5"].map(|version| (version.to_owned(), version.to_owned())));
    assert!(!created.uid().is_missing());
    assert!([&updated, &modified, &deleted].iter().all(|map| map.uid() == created.uid()));
    assert_eq!((deleted.immutable, source.get(&key("one")).is_none()), (Some(true), true));
    assert_eq!(source.resource_version(), 5.into());
    assert_ne!(source.create(map("one")).unwrap().uid(), created.uid());
}

#[test]
fn given_uid_is_kept() {
    let source = source();
    let mut with_uid = map("one");
    with_uid.metadata.uid = Some("mine".into());
    assert_eq!(source.create(with_uid).unwrap().uid(), &"mine".into());
    let mut another = map("one");
    another.metadata.uid = Some("another".into());
    assert_eq!(source.update(another).unwrap().uid(), &"another".into());
}

#[test]
fn impossible_changes_are_refused_and_change_nothing() {
    let source = source();
    source.create(map("one")).unwrap();
    let code = |refused: Result<_, Error>| match refused {
        Err(Error::Refused(status)) => status.code,
        other => panic!("{other:?}"),
    };
    assert_eq!(code(source.create(map("one"))), 409);
    assert_eq!(code(source.create(ConfigMap::default())), 422);
    assert_eq!(code(source.update(map("two"))), 404);
    assert_eq!(code(source.modify(&key("two"), |_| {})), 404);
    assert_eq!(code(source.delete(&key("two"))), 404);
    assert_eq!((source.objects().len(), source.resource_version()), (1, 2.into()));
}

#[tokio::test]
async fn list_has_all_objects_in_key_order() {
    let source = source();
    for name in ["b", "c", "a"] {
        source.create(map(name)).unwrap();
    }
    let limited = ListOptions { limit: Some(1), ..ListOptions::default() };
    assert_eq!(list(&source, limited).await, (["a", "b", "c"].map(str::to_owned).into(), 4.into()));
    assert_eq!(source.objects().iter().map(|map| map.name().to_owned()).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(source.list_count(), 1);
}

#[tokio::test]
async fn list_is_never_older_than_requested() {
    let source = source();
    source.create(map("one")).unwrap();
    let of = |version: u64, how| ListOptions {
        resource_version: Some(version.into()),
        resource_version_match: how,
        ..ListOptions::default()
    };
    let (not_older, exact) = (Some(ResourceVersionMatch::NotOlderThan), Some(ResourceVersionMatch::Exact));
    for version in [0, 1, 2] {
        assert_eq!(list(&source, of(version, not_older)).await.1, 2.into());
    }
    assert_eq!(list(&source, of(2, exact)).await.1, 2.into());
    let too_large = source.list(of(3, not_older)).await.err().expect("refused");
    assert!(too_large.is_too_large_resource_version());
    assert_eq!(code(source.list(of(1, exact)).await), Some(410));
    assert_eq!(code(source.list(ListOptions { limit: Some(9), ..of(1, None) }).await), Some(410));
    let token = ListOptions { continue_token: Some("t".into()), ..ListOptions::default() };
    assert_eq!(code(source.list(token).await), Some(410));
    let text = ListOptions { resource_version: Some("x".into()), ..ListOptions::default() };
    assert_eq!(code(source.list(text).await), Some(400));
}

#[tokio::test]
async fn watch_replays_history_in_one_batch() {
    let source = source();
    source.create(map("one")).unwrap();
    source.create(map("two")).unwrap();
    source.update(map("one")).unwrap();
    let mut watch = source.watch(from(2)).await.unwrap();
    assert_eq!(batch(&mut watch), ["+two@3", "~one@4"]);
    assert!(is_silent(&mut watch));
    source.delete(&key("two")).unwrap();
    source.create(map("two")).unwrap();
    assert_eq!(batch(&mut watch), ["-two@5", "+two@6"]);
}

#[tokio::test]
async fn waiting_watch_is_woken_by_a_change() {
    let source = source();
    let mut watch = source.watch(from(1)).await.unwrap();
    let writer = async { source.create(map("one")).unwrap() };
    let (events, _) = tokio::join!(watch.next(), writer);
    assert_eq!(events.unwrap().unwrap().len(), 1);
}

#[tokio::test]
async fn watch_from_future_version_starts_there() {
    let source = source();
    let mut watch = source.watch(from(3)).await.unwrap();
    for name in ["one", "two", "three"] {
        source.create(map(name)).unwrap();
    }
    assert_eq!(batch(&mut watch), ["+three@4"]);
}

#[tokio::test]
async fn watch_without_version_begins_with_existing_objects() {
    let source = source();
    source.create(map("two")).unwrap();
    source.create(map("one")).unwrap();
    source.update(map("two")).unwrap();
    for version in ["", "0"] {
        let mut watch = source.watch(from(version)).await.unwrap();
        assert_eq!(batch(&mut watch), ["+one@3", "+two@4"]);
        assert!(is_silent(&mut watch));
    }
}

#[tokio::test]
async fn streaming_list_ends_with_bookmark_and_continues_as_watch() {
    let source = source();
    source.create(map("one")).unwrap();
    let options = WatchOptions { send_initial_events: true, ..from(1) };
    let mut watch = source.watch(options.clone()).await.unwrap();
    assert_eq!(batch(&mut watch), ["+one@2", "end@2"]);
    source.delete(&key("one")).unwrap();
    assert_eq!(batch(&mut watch), ["-one@3"]);
    let too_large = source.watch(WatchOptions { resource_version: 9.into(), ..options.clone() }).await;
    assert!(too_large.err().expect("refused").is_too_large_resource_version());
    let mut empty = source.watch(options).await.unwrap();
    assert_eq!(batch(&mut empty), ["end@3"]);
}

#[tokio::test]
async fn unseen_change_reaches_lists_and_later_watches_only() {
    let source = source();
    source.create(map("one")).unwrap();
    let mut watch = source.watch(from(2)).await.unwrap();
    source.create_unseen(map("two")).unwrap();
    source.update_unseen(map("one")).unwrap();
    source.delete_unseen(&key("two")).unwrap();
    assert!(is_silent(&mut watch));
    source.update(map("one")).unwrap();
    assert_eq!(batch(&mut watch), ["~one@6"]);
    assert_eq!(list(&source, ListOptions::default()).await.0, ["one"]);
    let mut later = source.watch(from(2)).await.unwrap();
    assert_eq!(batch(&mut later), ["+two@3", "~one@4", "-two@5", "~one@6"]);
}

#[tokio::test]
async fn disconnected_watch_ends_after_its_events() {
    let source = source();
    let mut watch = source.watch(from(1)).await.unwrap();
    source.create(map("one")).unwrap();
    source.disconnect();
    let mut next = source.watch(from(1)).await.unwrap();
    source.create(map("two")).unwrap();
    assert_eq!(batch(&mut watch), ["+one@2"]);
    assert!(watch.next().await.is_none());
    assert_eq!(batch(&mut next), ["+one@2", "+two@3"]);
}

#[tokio::test]
async fn failed_watch_ends_with_error_after_its_events() {
    let source = source();
    let mut watches = [source.watch(from(1)).await.unwrap(), source.watch(from(1)).await.unwrap()];
    source.create(map("one")).unwrap();
    source.fail_watches(ListWatchError::Interrupted("cut".into()));
    for watch in &mut watches {
        assert_eq!(batch(watch), ["+one@2"]);
        let error = watch.next().await.unwrap().unwrap_err();
        assert!(matches!(&error, ListWatchError::Interrupted(_)) && error.to_string().contains("cut"));
        assert!(watch.next().await.is_none());
    }
    assert_eq!(source.open_watches(), 0);
}

#[tokio::test]
async fn expiry_refuses_old_versions_and_keeps_open_watches() {
    let source = source();
    source.create(map("one")).unwrap();
    let mut open = source.watch(from(1)).await.unwrap();
    source.create(map("two")).unwrap();
    source.expire();
    let refused = source.watch(from(2)).await;
    assert!(refused.err().expect("refused").is_expired());
    source.delete(&key("one")).unwrap();
    assert_eq!(batch(&mut open), ["+one@2", "+two@3", "-one@4"]);
    let mut current = source.watch(from(3)).await.unwrap();
    assert_eq!(batch(&mut current), ["-one@4"]);
    assert_eq!(source.watch_count(), 3);
}

/// An object whose clones can be counted: clones share `copies`.
#[derive(Clone, Default)]
struct Counted {
    metadata: ObjectMeta,
    copies: Arc<()>,
}

impl Resource for Counted {
    type DynamicType = ();
    type Scope = k8s_openapi::NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Counted".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "counted".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[tokio::test]
async fn expiry_drops_objects_without_open_watches() {
    let source = MemorySource::new("counted");
    let object = Counted {
        metadata: ObjectMeta { name: Some("one".into()), ..ObjectMeta::default() },
        ..Counted::default()
    };
    source.create(object.clone()).unwrap();
    let mut watch = source.watch(from(1)).await.unwrap();
    drop(watch.next().await);
    source.update(object.clone()).unwrap();
    source.update(object.clone()).unwrap();
    // Four clones are left: the object of this test, and three versions in the history.
    assert_eq!(Arc::strong_count(&object.copies), 4);
    source.expire();
    assert_eq!(Arc::strong_count(&object.copies), 3);
    assert_eq!(watch.next().await.unwrap().unwrap().len(), 2);
    source.expire();
    assert_eq!(Arc::strong_count(&object.copies), 2);
}

#[tokio::test]
async fn each_failed_list_request_uses_one_error() {
    let source = source();
    source.fail_next_list(ListWatchError::Unreachable("down".into()));
    source.fail_next_list(ListWatchError::Protocol("not JSON".into()));
    let mut refused = Vec::new();
    for _ in 0..2 {
        refused.push(source.list(ListOptions::default()).await.err().expect("refused").to_string());
    }
    assert!(refused[0].contains("down") && refused[1].contains("not JSON"), "{refused:?}");
    assert_eq!(list(&source, ListOptions::default()).await.1, 1.into());
    assert_eq!(source.list_count(), 3);
}

#[tokio::test]
async fn bookmark_with_new_version_reaches_open_watches() {
    let source = source();
    source.create(map("one")).unwrap();
    let mut with = source.watch(from(2)).await.unwrap();
    let mut without = source.watch(WatchOptions { allow_bookmarks: false, ..from(2) }).await.unwrap();
    source.bookmark();
    assert_eq!(source.resource_version(), 3.into());
    assert_eq!(batch(&mut with), ["mark@3"]);
    assert!(is_silent(&mut without));
    let mut later = source.watch(from(2)).await.unwrap();
    assert!(is_silent(&mut later));
}

#[tokio::test]
async fn wait_for_watches_counts_opened_and_closed_watches() {
    let source = source();
    let waited = source.wait_for_watches(1);
    let (watch, ()) = tokio::join!(source.watch(from(1)), waited);
    assert_eq!(source.open_watches(), 1);
    let closing = async { drop(watch) };
    tokio::join!(source.wait_for_watches(0), closing);
    assert_eq!((source.open_watches(), source.watch_count()), (0, 1));
}

#[tokio::test]
async fn source_streams_lists_on_request() {
    let source = source();
    assert!(!source.can_stream_lists());
    let clone = source.clone();
    let source = source.streaming_lists();
    assert!(source.can_stream_lists() && clone.can_stream_lists());
    source.fail_next_list(ListWatchError::Interrupted("reset".into()));
    let options = || WatchOptions { send_initial_events: true, ..from(1) };
    assert!(matches!(source.watch(options()).await, Err(ListWatchError::Interrupted(_))));
    assert!(source.watch(options()).await.is_ok());
    assert_eq!((source.list_count(), source.watch_count()), (0, 2));
}
