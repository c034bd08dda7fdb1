//! What a mutation cache shows of this process's own writes, and when it stops.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use informer_core::{Cached, Deleted, EventHandler, ObjectKey, ResourceVersion};
use informer_store::{Change, Index, MutationCache, MutationCacheOptions, StoreWriter, store};

/// An object with one field that matters.
type Object = &'static str;

fn object(uid: &str, version: &str, node: Object) -> Cached<Object> {
    named("pod", uid, version, node)
}

fn named(name: &str, uid: &str, version: &str, node: Object) -> Cached<Object> {
    Cached::from_parts(ObjectKey::cluster_scoped(name), version.into(), uid.into(), node)
}

/// A clock that is set by hand.
#[derive(Clone, Default)]
struct Time(Arc<AtomicU64>);

impl Time {
    fn clock(&self) -> impl Fn() -> Instant + Send + Sync + 'static {
        let (start, seconds) = (Instant::now(), Arc::clone(&self.0));
        move || start + Duration::from_secs(seconds.load(Ordering::Relaxed))
    }

    fn pass(&self, seconds: u64) {
        self.0.fetch_add(seconds, Ordering::Relaxed);
    }
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
fn the_later_one_of_store_and_write_is_read() {
    let mut setup = defaults();
    setup.put(object("a", "1", "x"));
    assert!(setup.cache.record(object("a", "2", "x")));
    assert_eq!(setup.version().as_deref(), Some("2"));
    setup.put(object("a", "3", "x"));
    assert_eq!(setup.version().as_deref(), Some("3"));
    assert!(setup.cache.is_empty(), "a write that is out of date is forgotten when that is noticed");
}

#[test]
fn versions_are_compared_as_numbers() {
    let mut setup = defaults();
    setup.put(object("a", "999", "x"));
    setup.cache.record(object("a", "1000", "x"));
    assert_eq!(setup.version().as_deref(), Some("1000"));
}

#[test]
fn an_older_write_does_not_replace_a_newer_one() {
    let mut setup = defaults();
    setup.put(object("a", "1", "x"));
    assert!(setup.cache.record(object("a", "3", "x")));
    assert!(!setup.cache.record(object("a", "2", "x")));
    assert_eq!(setup.version().as_deref(), Some("3"));
}

#[test]
fn a_write_that_the_store_has_already_is_not_recorded() {
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
    assert_eq!(setup.on("x"), ["Cached(other@1)"], "no longer under its old value");
    assert_eq!(setup.on("y"), ["Cached(pod@2)"], "but under its new one");
    setup.put(object("a", "3", "z"));
    assert_eq!((setup.on("y").len(), setup.on("z").len()), (0, 1));
    assert!(setup.cache.is_empty());
}

#[test]
fn an_index_whose_function_fails_for_a_write_does_not_find_it() {
    let (_writer, indexer) = store::<Object>();
    let fails = |node: &Object| if node.is_empty() { Err("no node") } else { Ok([(*node).to_owned()]) };
    let by_node = indexer.try_add_index("node", fails).expect("a free name");
    let cache = MutationCache::with_options(indexer, MutationCacheOptions::new().include_adds(true));
    cache.record(object("a", "1", ""));
    assert!(cache.by_index(&by_node, "").is_empty());
    assert!(cache.get_by_key("pod").is_some());
}

#[test]
fn an_index_by_key_works_too_and_a_removed_one_finds_nothing() {
    let (_writer, indexer) = store::<Object>();
    let cache = MutationCache::with_options(indexer.clone(), MutationCacheOptions::new().include_adds(true));
    cache.record(named("shop/web", "a", "1", "x"));
    let by_namespace = indexer.index::<Arc<str>>(informer_store::NAMESPACE_INDEX).expect("always there");
    assert_eq!(cache.by_index(&by_namespace, "shop").len(), 1);
    let by_node = indexer.add_index("node", |node: &Object| Some((*node).to_owned())).expect("a free name");
    assert_eq!(cache.by_index(&by_node, "x").len(), 1);
    indexer.remove_index("node").expect("it is there");
    assert!(cache.by_index(&by_node, "x").is_empty());
}

// client-go: TestMutationCacheOnAddOrUpdate, three cases.
#[test]
fn write_is_forgotten_when_handler_receives_newer() {
    for (told, is_forgotten) in [("2", true), ("3", true), ("1", false)] {
        for as_update in [false, true] {
            let mut setup = defaults();
            setup.put(object("a", "1", "x"));
            setup.cache.record(object("a", "2", "x"));
            let told = object("a", told, "x");
            if as_update {
                setup.cache.on_update(&object("a", "1", "x"), &told);
            } else {
                setup.cache.on_add(&told, false);
            }
            assert_eq!(setup.cache.is_empty(), is_forgotten, "{told:?}");
            assert_eq!(setup.version().as_deref(), Some(if is_forgotten { "1" } else { "2" }));
        }
    }
}

// client-go: TestMutationCacheOnDelete, three cases.
#[test]
fn deletion_ends_writes_of_the_same_and_older_objects() {
    for (uid, version, is_shown) in [
        // Could be the stale last state of an object whose deletion was missed.
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
    // Of the written version itself; of an older one, as when the deletion was missed; and of a
    // newer one.
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
    // The store has lost the second life by now, which the handler has not heard of yet.
    assert!(!setup.cache.record(object("a", "1", "x")));
    assert!(setup.cache.record(object("b", "4", "x")), "what is later than all that is known is believed");
}

// client-go: TestMutationCacheOnDeleteClearsStaleMutation.
#[test]
fn a_deletion_clears_an_added_object_from_the_indices() {
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
    assert!(!setup.cache.record(object("a", "2", "x")), "the former life stays dead");
    assert_eq!(setup.version().as_deref(), Some("3"));
}

#[test]
fn object_that_reenters_the_selector_is_accepted() {
    // To the informer it was deleted; but it is the same object, with the same UID.
    let mut setup = Setup::with_adds();
    setup.cache.on_delete(&Deleted::exact(object("a", "2", "x")));
    setup.put(object("a", "3", "x"));
    setup.cache.on_add(&object("a", "3", "x"), false);
    assert!(setup.cache.record(object("a", "4", "x")));
    assert_eq!(setup.version().as_deref(), Some("4"));
}

#[test]
fn a_deletion_of_which_no_state_is_known_changes_nothing() {
    let setup = Setup::with_adds();
    setup.cache.record(object("a", "2", "x"));
    setup.cache.on_delete(&Deleted::missed(ObjectKey::cluster_scoped("pod"), None));
    assert_eq!(setup.version().as_deref(), Some("2"));
}

#[test]
fn i9_an_added_object_is_gone_once_the_watermark_has_passed_it() {
    let mut setup = Setup::with_adds();
    setup.cache.record(object("a", "5", "x"));
    setup.writer.transaction(Vec::new(), Some(&ResourceVersion::from("4")));
    assert_eq!(setup.version().as_deref(), Some("5"));
    // Added and deleted so quickly that the watch told of neither, or told no handler.
    setup.writer.transaction(Vec::new(), Some(&ResourceVersion::from("6")));
    assert_eq!((setup.version(), setup.on("x").len()), (None, 0));
    assert!(setup.cache.is_empty());
    assert!(!setup.cache.record(object("a", "5", "x")), "nor is it believed later");
}

#[test]
fn incomparable_versions_never_hide_stored_objects() {
    let mut setup = Setup::with_adds();
    setup.put(object("a", "v1", "x"));
    assert!(!setup.cache.record(object("a", "v2", "x")));
    assert_eq!(setup.version().as_deref(), Some("v1"));
    setup.remove("pod");
    assert!(setup.cache.record(object("a", "v2", "x")), "nothing is known against it");
    assert_eq!(setup.version().as_deref(), Some("v2"));
    setup.put(object("a", "v3", "x"));
    assert_eq!(setup.version().as_deref(), Some("v3"));
}

#[test]
fn writes_and_deletions_are_remembered_for_five_minutes() {
    let mut setup = Setup::with_adds();
    setup.cache.record(named("written", "a", "2", "x"));
    setup.cache.on_delete(&Deleted::exact(object("b", "3", "x")));
    setup.time.pass(300);
    assert!(setup.cache.get_by_key("written").is_some());
    assert!(!setup.cache.record(object("b", "2", "x")));
    setup.time.pass(1);
    assert!(setup.cache.get_by_key("written").is_none());
    assert!(setup.on("x").is_empty());
    assert!(setup.cache.record(object("b", "2", "x")));
    // And an update no longer hides what the store has.
    setup.put(object("b", "1", "x"));
    assert_eq!(setup.version().as_deref(), Some("2"));
    setup.time.pass(301);
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
fn clones_are_handles_on_one_cache() {
    let setup = Setup::with_adds();
    let handler: Box<dyn EventHandler<Object>> = Box::new(setup.cache.clone());
    setup.cache.record(object("a", "2", "x"));
    handler.on_add(&object("a", "2", "x"), false);
    assert!(setup.cache.is_empty());
}

/// An object that writes to the cache when it is dropped.
struct Nosy {
    cache: Option<MutationCache<Nosy>>,
}

impl Drop for Nosy {
    fn drop(&mut self) {
        if let Some(cache) = &self.cache {
            cache.record(nosy("noted", "1", None));
        }
    }
}

fn nosy(name: &str, version: &str, cache: Option<&MutationCache<Nosy>>) -> Cached<Nosy> {
    let object = Nosy { cache: cache.cloned() };
    Cached::from_parts(ObjectKey::cluster_scoped(name), version.into(), "a".into(), object)
}

#[test]
fn i8_objects_are_dropped_with_no_lock_held() {
    let (done, finished) = mpsc::channel();
    std::thread::spawn(move || {
        let (mut writer, indexer) = store::<Nosy>();
        let cache = MutationCache::with_options(indexer, MutationCacheOptions::new().capacity(2));
        let record = |version| cache.record(nosy("pod", version, Some(&cache)));
        // Replaced, refused, pushed out, seen, deleted, and found to be out of date.
        assert!(record("5"));
        assert!(record("6"));
        assert!(!record("4"));
        cache.record(nosy("a", "1", None));
        cache.record(nosy("b", "1", None));
        assert!(record("7"));
        cache.on_add(&nosy("pod", "7", None), false);
        assert!(record("8"));
        cache.on_delete(&Deleted::exact(nosy("pod", "8", None)));
        writer.transaction(vec![Change::Put(nosy("pod", "9", None))], None);
        assert!(cache.get_by_key("pod").is_some());
        assert!(cache.len() <= 2);
        let _ = done.send(());
    });
    finished
        .recv_timeout(Duration::from_secs(30))
        .expect("a drop has met a lock, or the thread has panicked");
}

#[test]
fn i8_index_function_can_read_the_cache() {
    let (done, finished) = mpsc::channel();
    std::thread::spawn(move || {
        let (_writer, indexer) = store::<Object>();
        let cache =
            MutationCache::with_options(indexer.clone(), MutationCacheOptions::new().include_adds(true));
        let asked = cache.clone();
        let function = move |node: &Object| {
            asked.record(named("noted", "a", "1", "y"));
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
        .expect("the function has met a lock, or the thread has panicked");
}

#[test]
fn release_drops_recorded_writes() {
    let mut setup = Setup::with_adds();
    setup.put(object("a", "1", "x"));
    setup.cache.record(object("a", "9", "y"));
    setup.remove("pod");
    assert_eq!(setup.version().as_deref(), Some("9"), "the store alone does not say that it won't come");
    setup.cache.on_release(&object("a", "1", "x"));
    assert!(setup.version().is_none() && setup.cache.is_empty());
    assert!(setup.cache.record(object("a", "10", "z")), "it was not deleted, so it can be written again");
}
