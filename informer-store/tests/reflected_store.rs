//! Tests the effect of each call on a store that a reflector fills directly, without a queue.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use informer_core::{Cached, Deleted, Delta, ObjectKey, ReflectorStore, Replacement, ResourceVersion, Uid};
use informer_store::{Indexer, ReflectedStore, store};
use tracing::Level;

use log::Log;

#[path = "../../informer-factory/tests/memory/log.rs"]
mod log;

fn item(name: &str, version: u64) -> Cached<u64> {
    Cached::from_parts(ObjectKey::cluster_scoped(name), version.into(), Uid::default(), version)
}

fn list(names: &[(&str, u64)], version: u64) -> Replacement<u64> {
    Replacement {
        objects: names.iter().map(|(name, version)| item(name, *version)).collect(),
        quarantined: Vec::new(),
        complete: true,
        resource_version: version.into(),
    }
}

fn content(indexer: &Indexer<u64>) -> BTreeSet<(String, u64)> {
    indexer.list().iter().map(|object| (object.key().to_string(), **object)).collect()
}

fn set(objects: &[(&str, u64)]) -> BTreeSet<(String, u64)> {
    objects.iter().map(|(name, version)| ((*name).to_owned(), *version)).collect()
}

fn reflected() -> (Arc<dyn ReflectorStore<u64>>, Indexer<u64>, informer_core::Completion) {
    let (writer, indexer) = store::<u64>();
    let store = ReflectedStore::new(writer);
    let synced = store.synced();
    (Arc::new(store), indexer, synced)
}

#[test]
fn i9_store_has_the_state_of_its_watermark_after_each_call() {
    let (store, indexer, synced) = reflected();
    assert!(!synced.has_synced());
    store.replace(list(&[("a", 1), ("b", 2)], 5));
    assert!(synced.has_synced());
    assert_eq!((content(&indexer), indexer.watermark()), (set(&[("a", 1), ("b", 2)]), 5.into()));

    let changes = vec![
        Delta::Updated(item("a", 6)),
        Delta::Added(item("c", 7)),
        Delta::Deleted(Deleted::exact(item("b", 8))),
        Delta::Updated(item("c", 9)),
    ];
    store.apply(changes, &9.into());
    assert_eq!((content(&indexer), indexer.watermark()), (set(&[("a", 6), ("c", 9)]), 9.into()));

    store.apply(vec![], &12.into());
    assert_eq!(indexer.watermark(), 12.into(), "a bookmark moves the watermark");
    store.apply(vec![Delta::Added(item("d", 13))], &ResourceVersion::empty());
    assert_eq!(indexer.watermark(), 12.into(), "an empty version does not move the watermark");

    let unchanged = indexer.get_by_key("d").expect("the object was added");
    store.replace(list(&[("d", 13), ("e", 14)], 20));
    assert_eq!((content(&indexer), indexer.watermark()), (set(&[("d", 13), ("e", 14)]), 20.into()));
    assert!(
        unchanged.ptr_eq(&indexer.get_by_key("d").expect("the object is listed")),
        "the store keeps the old allocation"
    );
}

#[test]
fn i12_dropped_store_ends_waits_for_its_initial_list() {
    let (store, _indexer, synced) = reflected();
    drop(store);
    let wait = pin!(synced.wait());
    let polled = wait.poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Ready(Err(_))), "{polled:?}");
}

#[test]
fn quarantined_object_of_a_list_keeps_its_last_state() {
    let (store, indexer, _) = reflected();
    store.replace(list(&[("a", 1), ("b", 2), ("c", 3)], 5));
    let quarantined = vec![ObjectKey::cluster_scoped("unknown"), ObjectKey::cluster_scoped("b")];
    store.replace(Replacement { quarantined, ..list(&[("a", 6)], 9) });
    assert_eq!(content(&indexer), set(&[("a", 6), ("b", 2)]), "c is gone, b is quarantined");
}

#[test]
fn list_with_a_nameless_object_removes_nothing() {
    let (store, indexer, _) = reflected();
    store.replace(list(&[("a", 1), ("b", 2)], 5));
    store.replace(Replacement { complete: false, ..list(&[("a", 6)], 9) });
    assert_eq!((content(&indexer), indexer.watermark()), (set(&[("a", 6), ("b", 2)]), 9.into()));
}

#[test]
fn a_resync_changes_nothing() {
    let (store, indexer, _) = reflected();
    store.replace(list(&[("a", 2)], 5));
    store.apply(
        vec![Delta::Sync(ObjectKey::cluster_scoped("a")), Delta::Sync(ObjectKey::cluster_scoped("gone"))],
        &ResourceVersion::empty(),
    );
    assert_eq!(content(&indexer), set(&[("a", 2)]));
}

#[test]
fn i10_index_failures_are_listed_until_they_succeed() {
    let (store, indexer, _) = reflected();
    let odd = indexer
        .try_add_index("odd", |version: &u64| if version % 2 == 1 { Ok(Some(*version)) } else { Err("even") })
        .expect("a free name");
    store.replace(list(&[("a", 1), ("b", 2)], 5));
    assert_eq!(indexer.index_failures().len(), 1);
    store.apply(vec![Delta::Updated(item("b", 7))], &7.into());
    assert!(indexer.index_failures().is_empty());
    assert_eq!(odd.count(&7), 1);
}

#[test]
fn i10_failures_of_a_late_index_are_logged_once() {
    let (warnings, _logging) = Log::keep(Level::WARN);
    let (store, indexer, _) = reflected();
    store.replace(list(&[("a", 1), ("b", 2), ("c", 4)], 5));
    let odd = |version: &u64| if version % 2 == 1 { Ok(Some(*version)) } else { Err("hunter2") };
    indexer.try_add_index("odd", odd).expect("a free name");
    // The index already lacks these objects.
    store.apply(vec![Delta::Updated(item("b", 6)), Delta::Updated(item("c", 8))], &8.into());
    let lines = warnings.with("index");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("indexing of some objects failed, so this index lacks them"), "{lines:?}");
    for field in ["index=\"odd\"", "failed=2", "example="] {
        assert!(lines[0].contains(field), "{lines:?}");
    }
    store.apply(vec![Delta::Added(item("d", 10))], &10.into());
    assert_eq!(warnings.with("index").len(), 2);
    assert!(warnings.with("hunter2").is_empty(), "an error can contain data of a Secret");
}

#[test]
fn i8_index_function_can_add_an_index_during_a_write() {
    let (store, indexer, _) = reflected();
    let same_store = indexer.clone();
    let _outer = indexer
        .add_index("outer", move |_: &u64| {
            // The first call of this function adds the index `inner`. Later calls fail to add it.
            Some(same_store.add_index("inner", |version: &u64| Some(*version)).is_ok())
        })
        .expect("a free name");
    store.replace(list(&[("a", 1), ("b", 2)], 5));
    let inner = indexer.index::<u64>("inner").expect("the index was added");
    assert_eq!((inner.count(&1), inner.count(&2)), (1, 1));
}

#[test]
fn initial_list_is_readable_before_it_has_a_version() {
    let (store, indexer, synced) = reflected();
    let first = store.list_part(list(&[("a", 1), ("b", 2)], 0).objects);
    assert_eq!(content(&indexer), set(&[("a", 1), ("b", 2)]));
    assert!(!synced.has_synced() && indexer.watermark().is_empty());
    // The first list was interrupted. This part belongs to the next attempt.
    let listed = store.list_part(list(&[("a", 1), ("c", 3)], 0).objects);
    assert!(listed[0].ptr_eq(&first[0]), "the list reuses the stored object");
    store.replace(Replacement { objects: listed, ..list(&[], 5) });
    assert!(synced.has_synced());
    assert_eq!((content(&indexer), indexer.watermark()), (set(&[("a", 1), ("c", 3)]), 5.into()));
}

#[test]
fn i9_a_later_list_changes_nothing_before_its_end() {
    let (store, indexer, _) = reflected();
    store.replace(list(&[("a", 1)], 5));
    let known = indexer.get_by_key("a").expect("the object is listed");
    let listed = store.list_part(list(&[("a", 1), ("b", 6)], 0).objects);
    assert!(listed[0].ptr_eq(&known));
    assert_eq!(content(&indexer), set(&[("a", 1)]));
    store.replace(Replacement { objects: listed, ..list(&[], 7) });
    assert_eq!(content(&indexer), set(&[("a", 1), ("b", 6)]));
}
