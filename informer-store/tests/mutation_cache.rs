//! Tests which of this process's own writes a mutation cache returns, and until when.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use informer_core::{Cached, Deleted, EventHandler, ObjectKey, ResourceVersion};
use informer_store::{Change, Index, MutationCache, MutationCacheOptions, StoreWriter, store};

use clock::Time;

mod clock;

/// An object reduced to one field, its node.
type Object = &'static str;

fn object(uid: &str, version: &str, node: Object) -> Cached<Object> {
    named("pod", uid, version, node)
}

fn named(name: &str, uid: &str, version: &str, node: Object) -> Cached<Object> {
    Cached::from_parts(ObjectKey::cluster_scoped(name), version.into(), uid.into(), node)
}

struct Setup {
    writer: StoreWriter<Object>,
    by_node: Index<Object, String>,
    time: Time,
    cache: MutationCache<Object>,
}

impl Setup {
    fn new(options: MutationCacheOptions) -> Self {
        let (writer, indexer) = store::<Object>();
        let by_node =
            indexer.add_index("node", |node: &Object| Some((*node).to_owned())).expect("a free name");
        let time = Time::default();
        let cache = MutationCache::with_clock(indexer, options, time.clock());
        Self { writer, by_node, time, cache }
    }

    fn with_adds() -> Self {
        Self::new(MutationCacheOptions::new().include_adds(true))
    }

    fn put(&mut self, object: Cached<Object>) {
        self.writer.transaction(vec![Change::Put(object)], None);
    }

    fn remove(&mut self, name: &str) {
        self.writer.transaction(vec![Change::Remove(ObjectKey::cluster_scoped(name))], None);
    }

    fn version(&self) -> Option<String> {
        self.cache.get_by_key("pod").map(|object| object.resource_version().to_string())
    }

    fn on(&self, node: &str) -> Vec<String> {
        let mut found: Vec<_> =
            self.cache.by_index(&self.by_node, node).iter().map(|object| format!("{object:?}")).collect();
        found.sort();
        found
    }
}

fn defaults() -> Setup {
    Setup::new(MutationCacheOptions::default())
}

#[test]
fn get_returns_the_newer_of_stored_and_written_object() {
    let mut setup = defaults();
    setup.put(object("a", "1", "x"));
    assert!(setup.cache.record(object("a", "2", "x")));
    assert_eq!(setup.version().as_deref(), Some("2"));
    setup.put(object("a", "3", "x"));
    assert_eq!(setup.version().as_deref(), Some("3"));
    assert!(setup.cache.is_empty(), "a read evicts an outdated write");
}

#[test]
fn versions_are_compared_as_numbers() {
    let mut setup = defaults();
    setup.put(object("a", "999", "x"));
    setup.cache.record(object("a", "1000", "x"));
    assert_eq!(setup.version().as_deref(), Some("1000"));
}

#[test]
fn older_write_does_not_replace_a_newer_write() {
    let mut setup = defaults();
    setup.put(object("a", "1", "x"));
    assert!(setup.cache.record(object("a", "3", "x")));
    assert!(!setup.cache.record(object("a", "2", "x")));
    assert_eq!(setup.version().as_deref(), Some("3"));
}

#[test]
fn write_that_the_store_already_has_is_not_recorded() {
    let mut setup = defaults();
    setup.put(object("a", "2", "x"));
    assert!(!setup.cache.record(object("a", "2", "x")));
    assert!(!setup.cache.record(object("a", "1", "x")));
    assert!(setup.cache.is_empty());
}

#[test]
fn added_object_is_returned_only_if_configured() {
    for include_adds in [false, true] {
        let setup = Setup::new(MutationCacheOptions::new().include_adds(include_adds));
        setup.cache.record(object("a", "2", "x"));
        assert_eq!(setup.version().is_some(), include_adds);
        assert_eq!(setup.on("x").len(), usize::from(include_adds));
    }
}

#[test]
fn written_object_is_found_by_its_new_index_values() {
    let mut setup = defaults();
    setup.put(object("a", "1", "x"));
    setup.put(named("other", "b", "1", "x"));
    setup.cache.record(object("a", "2", "y"));
    assert_eq!(setup.on("x"), ["Cached(other@1)"], "the old value no longer finds the object");
    assert_eq!(setup.on("y"), ["Cached(pod@2)"], "the new value finds the object");
    setup.put(object("a", "3", "z"));
    assert_eq!((setup.on("y").len(), setup.on("z").len()), (0, 1));
    assert!(setup.cache.is_empty());
}

#[test]
fn failed_index_function_excludes_the_write_from_the_index() {
    let (_writer, indexer) = store::<Object>();
    let fails = |node: &Object| if node.is_empty() { Err("no node") } else { Ok([(*node).to_owned()]) };
    let by_node = indexer.try_add_index("node", fails).expect("a free name");
    let cache = MutationCache::with_options(indexer, MutationCacheOptions::new().include_adds(true));
    cache.record(object("a", "1", ""));
    assert!(cache.by_index(&by_node, "").is_empty());
    assert!(cache.get_by_key("pod").is_some());
}

#[test]
fn writes_are_found_by_namespace_but_not_by_removed_index() {
    let (_writer, indexer) = store::<Object>();
    let cache = MutationCache::with_options(indexer.clone(), MutationCacheOptions::new().include_adds(true));
    cache.record(named("shop/web", "a", "1", "x"));
    let by_namespace = indexer.index::<Arc<str>>(informer_store::NAMESPACE_INDEX).expect("always exists");
    assert_eq!(cache.by_index(&by_namespace, "shop").len(), 1);
    let by_node = indexer.add_index("node", |node: &Object| Some((*node).to_owned())).expect("a free name");
    assert_eq!(cache.by_index(&by_node, "x").len(), 1);
    indexer.remove_index("node").expect("the index exists");
    assert!(cache.by_index(&by_node, "x").is_empty());
}

// client-go: TestMutationCacheOnAddOrUpdate, three cases.
#[test]
fn write_is_dropped_once_handler_receives_its_version() {
    for (received, is_forgotten) in [("2", true), ("3", true), ("1", false)] {
        for as_update in [false, true] {
            let mut setup = defaults();
            setup.put(object("a", "1", "x"));
            setup.cache.record(object("a", "2", "x"));
            let received = object("a", received, "x");
            if as_update {
                setup.cache.on_update(&object("a", "1", "x"), &received);
            } else {
                setup.cache.on_add(&received, false);
            }
            assert_eq!(setup.cache.is_empty(), is_forgotten, "{received:?}");
            assert_eq!(setup.version().as_deref(), Some(if is_forgotten { "1" } else { "2" }));
        }
    }
}

// client-go: TestMutationCacheOnDelete, three cases.
#[test]
fn deletion_ends_writes_of_the_same_and_older_objects() {
    for (uid, version, is_shown) in [
        // If the watch missed the deletion, the last known state of the object can be this old.
        ("a", "1", false),
        ("b", "3", false),
        ("b", "4", false),
        ("b", "1", true),
    ] {
        let mut setup = Setup::with_adds();
        setup.put(object("a", "2", "x"));
        setup.cache.record(object("a", "3", "x"));
        setup.remove("pod");
        setup.cache.on_delete(&Deleted::exact(object(uid, version, "x")));
        assert_eq!(setup.version().is_some(), is_shown, "{uid} {version}");
    }
}

// client-go: TestMutationCacheUpdateConcurrentDelete.
#[test]
fn write_recorded_after_deletion_is_ignored() {
    // The version of the deletion is the written version, an older version (as if the watch missed
    // the deletion), or a newer version.
    for deleted in ["2", "1", "3"] {
        let mut setup = Setup::with_adds();
        setup.put(object("a", "2", "x"));
        setup.remove("pod");
        setup.cache.on_update(&object("a", "1", "x"), &object("a", "2", "x"));
        setup.cache.on_delete(&Deleted::exact(object("a", deleted, "x")));
        assert!(!setup.cache.record(object("a", "2", "x")));
        assert_eq!((setup.version(), setup.on("x").len()), (None, 0));
    }
}

// client-go: TestMutationCacheUpdateConcurrentRecreate.
#[test]
fn late_write_to_a_deleted_object_is_ignored() {
    let mut setup = Setup::with_adds();
    setup.put(object("b", "3", "x"));
    setup.cache.on_update(&object("a", "1", "x"), &object("a", "2", "x"));
    setup.cache.on_delete(&Deleted::exact(object("a", "2", "x")));
    setup.cache.on_add(&object("b", "3", "x"), false);
    assert!(!setup.cache.record(object("a", "2", "x")));
    assert_eq!(setup.version().as_deref(), Some("3"));
    assert!(setup.cache.is_empty());
}

#[test]
fn late_write_of_a_former_uid_is_ignored() {
    let setup = Setup::with_adds();
    setup.cache.on_delete(&Deleted::missed(ObjectKey::cluster_scoped("pod"), Some(object("a", "1", "x"))));
    setup.cache.on_add(&object("b", "3", "x"), false);
    // The store does not have the second object, as if that object had been deleted, too, and the
    // handler had not received the deletion yet.
    assert!(!setup.cache.record(object("a", "1", "x")));
    assert!(setup.cache.record(object("b", "4", "x")), "a write newer than every received event is accepted");
}

// client-go: TestMutationCacheOnDeleteClearsStaleMutation.
#[test]
fn deletion_removes_an_added_object_from_the_indices() {
    let setup = Setup::with_adds();
    setup.cache.record(object("a", "2", "x"));
    assert_eq!(setup.on("x").len(), 1);
    setup.cache.on_delete(&Deleted::exact(object("a", "1", "x")));
    assert_eq!(setup.on("x").len(), 0);
}

#[test]
fn recreated_object_replaces_the_deleted_one() {
    let setup = Setup::with_adds();
    setup.cache.on_delete(&Deleted::exact(object("a", "2", "x")));
    assert!(setup.cache.record(object("b", "3", "x")));
    assert_eq!(setup.version().as_deref(), Some("3"));
    assert!(!setup.cache.record(object("a", "2", "x")), "a write to the deleted object is refused");
    assert_eq!(setup.version().as_deref(), Some("3"));
}

#[test]
fn object_that_reenters_the_selector_is_accepted() {
    // The object left the selector and entered it again, with the same UID. The informer reported a
    // deletion.
    let mut setup = Setup::with_adds();
    setup.cache.on_delete(&Deleted::exact(object("a", "2", "x")));
    setup.put(object("a", "3", "x"));
    setup.cache.on_add(&object("a", "3", "x"), false);
    assert!(setup.cache.record(object("a", "4", "x")));
    assert_eq!(setup.version().as_deref(), Some("4"));
}

#[test]
fn deletion_without_a_last_state_changes_nothing() {
    let setup = Setup::with_adds();
    setup.cache.record(object("a", "2", "x"));
    setup.cache.on_delete(&Deleted::missed(ObjectKey::cluster_scoped("pod"), None));
    assert_eq!(setup.version().as_deref(), Some("2"));
}

#[test]
fn i9_watermark_evicts_older_added_objects() {
    let mut setup = Setup::with_adds();
    setup.cache.record(object("a", "5", "x"));
    setup.writer.transaction(Vec::new(), Some(&ResourceVersion::from("4")));
    assert_eq!(setup.version().as_deref(), Some("5"));
    // The object was added and deleted so quickly that the watch reported neither.
    setup.writer.transaction(Vec::new(), Some(&ResourceVersion::from("6")));
    assert_eq!((setup.version(), setup.on("x").len()), (None, 0));
    assert!(setup.cache.is_empty());
    assert!(!setup.cache.record(object("a", "5", "x")), "a late write is refused too");
}

#[test]
fn write_that_the_store_has_quarantined_is_returned() {
    let mut setup = defaults();
    setup.put(object("a", "1", "x"));
    assert!(setup.cache.record(object("a", "2", "y")));
    // The informer received version 2, but could not decode it. So the store keeps version 1.
    setup.writer.transaction(Vec::new(), Some(&ResourceVersion::from("3")));
    assert_eq!((setup.version().as_deref(), setup.on("x").len(), setup.on("y").len()), (Some("2"), 0, 1));
    assert!(setup.cache.record(object("a", "2", "y")), "a late write is recorded too");
    setup.put(object("a", "4", "x"));
    assert_eq!((setup.version().as_deref(), setup.cache.is_empty()), (Some("4"), true));
}

#[test]
fn incomparable_versions_never_hide_stored_objects() {
    let mut setup = Setup::with_adds();
    setup.put(object("a", "v1", "x"));
    assert!(!setup.cache.record(object("a", "v2", "x")));
    assert_eq!(setup.version().as_deref(), Some("v1"));
    setup.remove("pod");
    assert!(setup.cache.record(object("a", "v2", "x")), "the store has no object to compare with");
    assert_eq!(setup.version().as_deref(), Some("v2"));
    setup.put(object("a", "v3", "x"));
    assert_eq!(setup.version().as_deref(), Some("v3"));
}

#[test]
fn writes_and_deletions_are_remembered_for_five_minutes() {
    let mut setup = Setup::with_adds();
    setup.cache.record(named("written", "a", "2", "x"));
    setup.cache.on_delete(&Deleted::exact(object("b", "3", "x")));
    setup.time.advance(300);
    assert!(setup.cache.get_by_key("written").is_some());
    assert!(!setup.cache.record(object("b", "2", "x")));
    setup.time.advance(1);
    assert!(setup.cache.get_by_key("written").is_none());
    assert!(setup.on("x").is_empty());
    assert!(setup.cache.record(object("b", "2", "x")));
    // After five more minutes, this write no longer hides the stored object.
    setup.put(object("b", "1", "x"));
    assert_eq!(setup.version().as_deref(), Some("2"));
    setup.time.advance(301);
    assert_eq!(setup.version().as_deref(), Some("1"));
}

#[test]
fn oldest_writes_are_evicted_first_and_deletions_kept() {
    let setup = Setup::with_adds();
    for n in 0..150 {
        setup.cache.record(named(&format!("pod-{n}"), "a", "2", "x"));
    }
    for n in 0..5_000 {
        setup.cache.on_delete(&Deleted::exact(named(&format!("gone-{n}"), "a", "2", "x")));
    }
    assert_eq!(setup.cache.len(), 100);
    assert!(setup.cache.get_by_key("pod-49").is_none());
    assert!(setup.cache.get_by_key("pod-50").is_some());
}

#[test]
fn cache_without_capacity_records_nothing() {
    let setup = Setup::new(MutationCacheOptions::new().include_adds(true).capacity(0));
    assert!(!setup.cache.record(object("a", "2", "x")));
    assert!(setup.cache.is_empty() && setup.version().is_none());
}

#[test]
fn clones_share_one_cache() {
    let setup = Setup::with_adds();
    let handler: Box<dyn EventHandler<Object>> = Box::new(setup.cache.clone());
    setup.cache.record(object("a", "2", "x"));
    handler.on_add(&object("a", "2", "x"), false);
    assert!(setup.cache.is_empty());
}

/// An object that writes to the cache when it is dropped.
struct CacheWriter {
    cache: Option<MutationCache<CacheWriter>>,
}

impl Drop for CacheWriter {
    fn drop(&mut self) {
        if let Some(cache) = &self.cache {
            cache.record(cache_writer("noted", "1", None));
        }
    }
}

fn cache_writer(
    name: &str,
    version: &str,
    cache: Option<&MutationCache<CacheWriter>>,
) -> Cached<CacheWriter> {
    let object = CacheWriter { cache: cache.cloned() };
    Cached::from_parts(ObjectKey::cluster_scoped(name), version.into(), "a".into(), object)
}

#[test]
fn i8_objects_are_dropped_with_no_lock_held() {
    let (done, finished) = mpsc::channel();
    std::thread::spawn(move || {
        let (mut writer, indexer) = store::<CacheWriter>();
        let cache = MutationCache::with_options(indexer, MutationCacheOptions::new().capacity(2));
        let record = |version| cache.record(cache_writer("pod", version, Some(&cache)));
        // The writes of `pod` are dropped because they are replaced, refused, evicted, received from
        // the watch, deleted, or outdated.
        assert!(record("5"));
        assert!(record("6"));
        assert!(!record("4"));
        cache.record(cache_writer("a", "1", None));
        cache.record(cache_writer("b", "1", None));
        assert!(record("7"));
        cache.on_add(&cache_writer("pod", "7", None), false);
        assert!(record("8"));
        // The store has a newer version than this write, so the read drops the write.
        writer.transaction(vec![Change::Put(cache_writer("pod", "9", None))], None);
        assert!(cache.get_by_key("pod").is_some());
        assert!(record("10"));
        cache.on_delete(&Deleted::exact(cache_writer("pod", "10", None)));
        writer.transaction(vec![Change::Put(cache_writer("pod", "11", None))], None);
        assert!(cache.get_by_key("pod").is_some());
        assert!(cache.len() <= 2);
        let _ = done.send(());
    });
    finished
        .recv_timeout(Duration::from_secs(30))
        .expect("a lock was held during a drop, or the thread panicked");
}

#[test]
fn i8_index_function_can_read_the_cache() {
    let (done, finished) = mpsc::channel();
    std::thread::spawn(move || {
        let (_writer, indexer) = store::<Object>();
        let cache =
            MutationCache::with_options(indexer.clone(), MutationCacheOptions::new().include_adds(true));
        let same_cache = cache.clone();
        let function = move |node: &Object| {
            same_cache.record(named("noted", "a", "1", "y"));
            Some((*node).to_owned())
        };
        let by_node = indexer.add_index("node", function).expect("a free name");
        cache.record(object("a", "2", "x"));
        assert_eq!(cache.by_index(&by_node, "x").len(), 1);
        assert!(cache.get_by_key("noted").is_some());
        let _ = done.send(());
    });
    finished
        .recv_timeout(Duration::from_secs(30))
        .expect("a lock was held during the function, or the thread panicked");
}

#[test]
fn release_drops_recorded_writes() {
    let mut setup = Setup::with_adds();
    setup.put(object("a", "1", "x"));
    setup.cache.record(object("a", "9", "y"));
    setup.remove("pod");
    assert_eq!(
        setup.version().as_deref(),
        Some("9"),
        "without an event, the store may still receive the write"
    );
    setup.cache.on_release(&object("a", "1", "x"));
    assert!(setup.version().is_none() && setup.cache.is_empty());
    assert!(
        setup.cache.record(object("a", "10", "z")),
        "a released object was not deleted, so writes to it are accepted"
    );
}
