//! The store's guarantees to readers and writer, one behavior per test; `store_model.rs` tests
//! random histories.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use informer_core::{
    AnyObject, Cached, Codec, DecodeBytes, DeltaFifo, Encoded, NamespaceFeed, ObjectKey, OwnedObject,
    ReflectorStore, Replacement, ResourceVersion, Storage, Uid,
};
use informer_store::{Change, Index, IndexError, Indexer, StoreWriter, store};

/// An object with tags, which the tests index.
#[derive(Debug, Clone, PartialEq)]
struct Item {
    tags: Vec<u8>,
}

fn item(name: &str, version: u64, tags: &[u8]) -> Cached<Item> {
    let key = match name.split_once('/') {
        Some((namespace, name)) => ObjectKey::namespaced(namespace, name),
        None => ObjectKey::cluster_scoped(name),
    };
    Cached::from_parts(key, version.into(), Uid::default(), Item { tags: tags.to_vec() })
}

fn put(writer: &mut StoreWriter<Item>, name: &str, version: u64, tags: &[u8]) {
    writer.transaction(vec![Change::Put(item(name, version, tags))], Some(&version.into()));
}

fn keys<'a>(objects: impl IntoIterator<Item = &'a Cached<Item>>) -> BTreeSet<String> {
    objects.into_iter().map(|object| object.key().to_string()).collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(ToString::to_string).collect()
}

#[test]
fn object_is_found_in_every_way_until_removed() {
    let (mut writer, indexer) = store::<Item>();
    let by_tag = indexer.add_index("tag", |item: &Item| item.tags.clone()).expect("a free name");
    put(&mut writer, "ns/a", 1, &[1, 2]);
    put(&mut writer, "ns/b", 2, &[2]);
    let key = ObjectKey::namespaced("ns", "a");
    assert_eq!(indexer.get(&key).expect("the object was added").tags, [1, 2]);
    assert!(
        indexer
            .get_by_key("ns/a")
            .expect("the object was added")
            .ptr_eq(&indexer.get(&key).expect("the object was added"))
    );
    assert_eq!(keys(&indexer.list()), set(&["ns/a", "ns/b"]));
    assert_eq!(keys(&by_tag.get(&2)), set(&["ns/a", "ns/b"]));
    assert_eq!(keys(&indexer.in_namespace("ns")), set(&["ns/a", "ns/b"]));
    assert_eq!((by_tag.count(&1), by_tag.count(&9)), (1, 0));

    writer.transaction(vec![Change::Remove(key.clone())], None);
    assert!(indexer.get(&key).is_none() && by_tag.get(&1).is_empty());
    assert_eq!(keys(&by_tag.get(&2)), set(&["ns/b"]));
    assert_eq!(by_tag.values(), [2], "a value without objects is removed");
}

#[test]
fn i7_snapshot_and_its_results_do_not_change() {
    let (mut writer, indexer) = store::<Item>();
    let by_tag = indexer.add_index("tag", |item: &Item| item.tags.clone()).expect("a free name");
    put(&mut writer, "a", 1, &[1]);
    let (snapshot, found) = (indexer.snapshot(), by_tag.get(&1));
    put(&mut writer, "a", 2, &[2]);
    put(&mut writer, "b", 3, &[1]);
    assert_eq!(snapshot.get_by_key("a").map(|object| object.tags.clone()), Some(vec![1]));
    assert_eq!(snapshot.watermark(), &1.into());
    assert_eq!(keys(&by_tag.get_in(&snapshot, &1)), set(&["a"]));
    assert_eq!(found.iter().map(|object| object.tags.clone()).collect::<Vec<_>>(), [[1]]);
    assert_eq!(keys(&by_tag.get(&1)), set(&["b"]));
}

#[test]
fn i3_readers_see_all_or_nothing_of_a_transaction() {
    let (mut writer, indexer) = store::<Item>();
    let by_tag = indexer.add_index("tag", |item: &Item| item.tags.clone()).expect("a free name");
    let stop = Arc::new(AtomicBool::new(false));
    let reader = std::thread::spawn({
        let (indexer, by_tag, stop) = (indexer.clone(), by_tag.clone(), Arc::clone(&stop));
        move || {
            let mut seen = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                let snapshot = indexer.snapshot();
                // Each transaction moves all objects to the next tag, so at any time all objects
                // share one tag.
                let tags: BTreeSet<u8> = snapshot.list().iter().map(|object| object.tags[0]).collect();
                assert!(tags.len() <= 1, "half a transaction is visible: {tags:?}");
                for tag in tags {
                    assert_eq!(by_tag.get_in(&snapshot, &tag).len(), snapshot.len());
                }
                seen += 1;
            }
            seen
        }
    });
    for round in 1..200_u64 {
        // A `replace` with 600 changes is applied to a copy of the state, and one with 10 changes to
        // the state itself.
        let count = if round % 4 < 2 { 10 } else { 600 };
        let objects = (0..count).map(|n| item(&n.to_string(), round, &[(round % 200) as u8])).collect();
        writer.replace(objects, &round.into());
    }
    stop.store(true, Ordering::Relaxed);
    assert!(reader.join().expect("the reader does not panic") > 0);
}

#[test]
fn replace_keeps_unchanged_and_removes_unlisted_objects() {
    let (mut writer, indexer) = store::<Item>();
    put(&mut writer, "same", 1, &[]);
    put(&mut writer, "changed", 2, &[]);
    put(&mut writer, "gone", 3, &[]);
    let before = indexer.get_by_key("same").expect("the object was added");
    writer.replace(vec![item("same", 1, &[]), item("changed", 5, &[7]), item("new", 6, &[])], &9.into());
    assert_eq!(keys(&indexer.list()), set(&["same", "changed", "new"]));
    assert!(before.ptr_eq(&indexer.get_by_key("same").expect("the object exists")));
    assert_eq!(indexer.get_by_key("changed").expect("the object exists").tags, [7]);
    assert_eq!(indexer.watermark(), ResourceVersion::from("9"));
}

#[test]
fn late_index_covers_existing_and_new_objects() {
    let (mut writer, indexer) = store::<Item>();
    (0..5_000).for_each(|n| put(&mut writer, &n.to_string(), n + 1, &[(n % 10) as u8]));
    let by_tag = indexer.add_index("tag", |item: &Item| item.tags.clone()).expect("a free name");
    assert_eq!(by_tag.count(&3), 500);
    put(&mut writer, "late", 9_000, &[3]);
    assert_eq!(by_tag.count(&3), 501);
}

#[test]
fn index_can_be_added_while_the_writer_runs() {
    let (mut writer, indexer) = store::<Item>();
    (0..3_000).for_each(|n| put(&mut writer, &n.to_string(), n + 1, &[0]));
    let stop = Arc::new(AtomicBool::new(false));
    let writing = std::thread::spawn({
        let stop = Arc::clone(&stop);
        move || {
            let mut version = 10_000;
            while !stop.load(Ordering::Relaxed) {
                version += 1;
                put(&mut writer, &(version % 3_000).to_string(), version, &[(version % 7) as u8]);
            }
            writer
        }
    });
    let indexes: Vec<Index<Item, u8>> = (0..20)
        .map(|n| {
            indexer.add_index(&format!("tag-{n}"), |item: &Item| item.tags.clone()).expect("a free name")
        })
        .collect();
    stop.store(true, Ordering::Relaxed);
    let _writer = writing.join().expect("no panic");
    let snapshot = indexer.snapshot();
    for index in &indexes {
        for tag in 0..7 {
            let expected = snapshot.list().iter().filter(|object| object.tags == [tag]).count();
            assert_eq!(index.get_in(&snapshot, &tag).len(), expected, "{} {tag}", index.name());
        }
    }
}

#[test]
fn removed_index_finds_nothing_and_frees_its_name() {
    let (mut writer, indexer) = store::<Item>();
    let first = indexer.add_index("tag", |item: &Item| item.tags.clone()).expect("a free name");
    put(&mut writer, "a", 1, &[1]);
    assert_eq!(
        indexer.add_index("tag", |_: &Item| None::<u8>).map(|_| ()),
        Err(IndexError::Duplicate { name: "tag".into() })
    );
    indexer.remove_index("tag").expect("the index exists");
    let second = indexer.add_index("tag", |item: &Item| item.tags.first().copied()).expect("free again");
    assert_eq!((first.count(&1), second.count(&1)), (0, 1));
}

#[test]
fn removal_of_a_permanent_or_missing_index_is_an_error() {
    let (_writer, indexer) = store::<Item>();
    let refused = |name: &str| indexer.remove_index(name).expect_err("the index is not removed").to_string();
    let permanent = "the index \"namespace\" can't be removed, because every store needs it";
    assert_eq!(refused("namespace"), permanent);
    assert_eq!(refused("node"), "no index named \"node\" exists; existing indexes: namespace");
    assert!(matches!(indexer.remove_index("namespace"), Err(IndexError::Unknown { .. })));
}

#[test]
fn index_lookup_distinguishes_unknown_name_and_type() {
    let (_writer, indexer) = store::<Item>();
    let _tag = indexer.add_index("tag", |item: &Item| item.tags.clone()).expect("a free name");
    let unknown = indexer.by_index("node", "n1").map(|_| ()).expect_err("no such index");
    assert_eq!(unknown.to_string(), "no index named \"node\" exists; existing indexes: namespace, tag");
    assert!(matches!(indexer.by_index("tag", "1").map(|_| ()), Err(IndexError::WrongType { .. })));
    assert!(indexer.index::<u8>("tag").is_ok());
}

#[test]
fn i10_failed_index_function_affects_only_that_index() {
    let (mut writer, indexer) = store::<Item>();
    let by_tag = indexer
        .try_add_index("tag", |item: &Item| match item.tags.first() {
            Some(13) => panic!("test panic"),
            Some(tag) => Ok(Some(*tag)),
            None => Err("no tag"),
        })
        .expect("a free name");
    let failures = writer.transaction(
        vec![
            Change::Put(item("good", 1, &[1])),
            Change::Put(item("bad", 2, &[])),
            Change::Put(item("ugly", 3, &[13])),
        ],
        None,
    );
    assert_eq!(
        failures[0].to_string(),
        "index \"tag\" lacks object bad at resource version 2 because of a failure: no tag"
    );
    assert_eq!(failures[1].error, "the index function panicked: test panic");
    assert_eq!((indexer.len(), by_tag.values()), (3, vec![1]));
    assert_eq!(indexer.index_failures().len(), 2);

    let again = writer.transaction(vec![Change::Put(item("bad", 4, &[]))], None);
    assert!(again.is_empty(), "each failure is reported once, not for each version");
    put(&mut writer, "bad", 5, &[2]);
    put(&mut writer, "ugly", 6, &[2]);
    assert!(indexer.index_failures().is_empty());
    assert_eq!(by_tag.count(&2), 2, "the next valid version is indexed");
}

/// An index value whose `Hash` panics for numbers of at least [`HASH`], and whose `Eq` panics for
/// numbers of at least [`COMPARE`].
#[derive(Clone, Debug, PartialOrd, Ord, Eq)]
struct Explosive(u8);

const HASH: u8 = 200;
const COMPARE: u8 = 100;

impl std::hash::Hash for Explosive {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        assert!(self.0 < HASH, "test panic");
        // All values have the same hash, so that the index must compare them.
        0_u8.hash(state);
    }
}

impl PartialEq for Explosive {
    fn eq(&self, other: &Self) -> bool {
        assert!(self.0 < COMPARE && other.0 < COMPARE, "test panic");
        self.0 == other.0
    }
}

fn explosive(item: &Item) -> Vec<Explosive> {
    item.tags.iter().map(|tag| Explosive(*tag)).collect()
}

#[test]
fn i3_panic_of_an_index_value_keeps_the_store_consistent() {
    for bad in [HASH, COMPARE] {
        // Few changes are applied in place, and 1,000 changes are applied to a copy of the state.
        for count in [3, 1_000] {
            let (mut writer, indexer) = store::<Item>();
            let by_tag = indexer.add_index("tag", explosive).expect("a free name");
            let by_size =
                indexer.add_index("size", |item: &Item| Some(item.tags.len())).expect("a free name");
            put(&mut writer, "old", 1, &[1]);
            let others = (0..count).map(|n| Change::Put(item(&n.to_string(), 2, &[2])));
            let bad_one = Change::Put(item("old", 3, &[3, bad]));
            let changes = [bad_one].into_iter().chain(others).collect();
            let failures = writer.transaction(changes, Some(&7.into()));
            assert_eq!(failures.len(), 1);
            assert_eq!(
                failures[0].to_string(),
                "index \"tag\" lacks object old at resource version 3 because of a failure: `Hash` or `Eq` of a value panicked"
            );
            assert_eq!(indexer.index_failures().len(), 1);
            assert_eq!((indexer.len(), indexer.watermark()), (count + 1, 7.into()));
            assert_eq!((by_tag.values(), by_tag.count(&Explosive(2))), (vec![Explosive(2)], count));
            assert_eq!((by_size.count(&1), by_size.count(&2)), (count, 1));
            put(&mut writer, "old", 4, &[4]);
            assert!(indexer.index_failures().is_empty());
            assert_eq!(by_tag.count(&Explosive(4)), 1, "the next valid version is indexed");
            let late = indexer.add_index("late", explosive).expect("a free name");
            assert_eq!(late.count(&Explosive(2)), count);
        }
    }
}

/// Returns changes in which the values of `mended` and `gone` panic only before their last change,
/// and the values of `broken` panic in its last change.
fn changes_with_panics() -> Vec<Change<Item>> {
    vec![
        Change::Put(item("mended", 1, &[HASH])),
        Change::Put(item("mended", 2, &[1])),
        Change::Put(item("gone", 1, &[HASH])),
        Change::Remove(ObjectKey::cluster_scoped("gone")),
        Change::Put(item("broken", 1, &[HASH])),
        Change::Put(item("broken", 2, &[HASH])),
    ]
}

fn assert_only_broken_failed(indexer: &Indexer<Item>) {
    let failures = indexer.index_failures();
    let failed: Vec<_> = failures.iter().map(|it| (it.key.as_str(), &it.resource_version)).collect();
    assert_eq!(failed, [("broken", &ResourceVersion::from(2_u64))]);
}

#[test]
fn panic_for_a_replaced_change_leaves_no_failure() {
    let (mut writer, indexer) = store::<Item>();
    let by_tag = indexer.add_index("tag", explosive).expect("a free name");
    let failures = writer.transaction(changes_with_panics(), None);
    assert_eq!(failures, indexer.index_failures());
    assert_only_broken_failed(&indexer);
    assert_eq!(keys(&by_tag.get(&Explosive(1))), set(&["mended"]));
}

#[test]
fn panic_during_an_index_build_leaves_no_outdated_failure() {
    let (mut writer, indexer) = store::<Item>();
    put(&mut writer, "first", 1, &[10]);
    let writer = Mutex::new(writer);
    let by_tag = indexer
        .add_index("tag", move |item: &Item| {
            // The lock is not free during the writer's own calls of this function.
            if let Ok(mut writer) = writer.try_lock() {
                match item.tags.as_slice() {
                    // The change of another object is indexed after the writer has begun to call this
                    // function.
                    [10] => put(&mut writer, "second", 2, &[11]),
                    [11] => _ = writer.transaction(changes_with_panics(), None),
                    _ => {}
                }
            }
            explosive(item)
        })
        .expect("a free name");
    assert_only_broken_failed(&indexer);
    assert_eq!(keys(&by_tag.get(&Explosive(1))), set(&["mended"]));
}

#[test]
fn i8_index_function_can_read_its_store() {
    let (mut writer, indexer) = store::<Item>();
    let same_store: Indexer<Item> = indexer.clone();
    let by_size = indexer
        .add_index("size", move |_: &Item| {
            _ = same_store.index_names();
            Some(same_store.len())
        })
        .expect("a free name");
    put(&mut writer, "a", 1, &[]);
    put(&mut writer, "b", 2, &[]);
    assert_eq!((by_size.count(&0), by_size.count(&1)), (1, 1));
}

#[test]
fn index_added_during_constant_writes_is_complete() {
    let (mut writer, indexer) = store::<Item>();
    (0..3_000).for_each(|n| put(&mut writer, &n.to_string(), n + 1, &[0]));
    let writer = Arc::new(Mutex::new((writer, 3_000)));
    let change = {
        let writer = Arc::clone(&writer);
        // Other objects change whenever the index function runs, except during the writer's own
        // calls.
        move || {
            let Ok(mut guard) = writer.try_lock() else { return };
            let (writer, version) = &mut *guard;
            *version += 1;
            let (changed, gone) = ((*version * 7) % 3_000, (*version * 11) % 3_000);
            let failing = if *version % 5 == 0 { &[13][..] } else { &[(*version % 4) as u8] };
            writer.transaction(
                vec![
                    Change::Remove(ObjectKey::cluster_scoped(&gone.to_string())),
                    Change::Put(item(&changed.to_string(), *version, failing)),
                    Change::Put(item(&format!("new-{version}"), *version, &[5])),
                ],
                Some(&(*version).into()),
            );
        }
    };
    let by_tag = indexer
        .try_add_index("tag", move |item: &Item| {
            change();
            if item.tags == [13] { Err("test failure") } else { Ok(item.tags.clone()) }
        })
        .expect("a free name");
    let snapshot = indexer.snapshot();
    assert!(snapshot.watermark().is_newer_than(&3_100.into()), "the writer kept changing objects");
    for tag in 0..6 {
        let expected = keys(snapshot.list().iter().filter(|object| object.tags == [tag]));
        assert_eq!(keys(&by_tag.get_in(&snapshot, &tag)), expected, "tag {tag}");
    }
    let failing = keys(snapshot.list().iter().filter(|object| object.tags == [13]));
    let failures = indexer.index_failures();
    assert_eq!(failures.iter().map(|failure| failure.key.to_string()).collect::<BTreeSet<_>>(), failing);
    assert_eq!(failures.len(), failing.len());
}

#[test]
fn index_added_by_an_index_function_takes_the_name() {
    let (mut writer, indexer) = store::<Item>();
    put(&mut writer, "a", 1, &[1]);
    let (same_store, second) = (indexer.clone(), Arc::new(OnceLock::new()));
    let result = Arc::clone(&second);
    let first = indexer.add_index("tag", move |item: &Item| {
        thread_local!(static NESTED: Cell<bool> = const { Cell::new(false) });
        if !NESTED.replace(true) {
            _ = result.set(same_store.add_index("tag", |item: &Item| item.tags.clone()).is_ok());
        }
        item.tags.clone()
    });
    assert!(second.get().is_some_and(|added| *added), "the inner call added the index");
    assert_eq!(first.map(|_| ()), Err(IndexError::Duplicate { name: "tag".into() }));
    put(&mut writer, "b", 2, &[1]);
    assert_eq!(indexer.index::<u8>("tag").expect("the inner call's index").count(&1), 2);
}

#[test]
fn objects_with_a_common_value_are_found_once_each() {
    let (mut writer, indexer) = store::<Item>();
    let by_tag = indexer
        .try_add_index("tag", |item: &Item| match item.tags.as_slice() {
            [] => Err("no tags"),
            tags => Ok(tags.to_vec()),
        })
        .expect("a free name");
    put(&mut writer, "ns/a", 1, &[1, 2]);
    put(&mut writer, "ns/b", 2, &[2, 3]);
    put(&mut writer, "c", 3, &[1, 2]);
    put(&mut writer, "d", 4, &[4]);
    let sharing =
        |name: &str, tags: &[u8]| by_tag.with_common_value(&item(name, 9, tags)).map(|found| keys(&found));
    let a = indexer.get_by_key("ns/a").expect("the object was added");
    assert_eq!(
        keys(&by_tag.with_common_value(&a).expect("the function succeeds")),
        set(&["ns/a", "ns/b", "c"])
    );
    assert_eq!(by_tag.with_common_value(&a).expect("the function succeeds").len(), 3);
    assert_eq!(sharing("not-in-the-store", &[3, 4, 9]), Ok(set(&["ns/b", "d"])));
    assert_eq!(sharing("nothing-in-common", &[9]), Ok(set(&[])));
    let error = sharing("x", &[]).expect_err("the function fails");
    assert_eq!(error.to_string(), "the function of index \"tag\" failed for object x: no tags");

    assert_eq!(
        indexer.with_common_value("tag", &a).map(|found| found.len()),
        Ok(3),
        "by name, without the value's type"
    );
    assert_eq!(
        keys(&indexer.with_common_value("namespace", &a).expect("the index exists")),
        set(&["ns/a", "ns/b"])
    );
    assert!(matches!(indexer.with_common_value("node", &a), Err(IndexError::Unknown { .. })));
    indexer.remove_index("tag").expect("the index exists");
    assert!(by_tag.with_common_value(&a).expect("a removed index has no function").is_empty());
}

#[test]
fn index_keys_are_sorted() {
    let (mut writer, indexer) = store::<Item>();
    let by_tag = indexer.add_index("tag", |item: &Item| item.tags.clone()).expect("a free name");
    let by_word =
        indexer.add_index("word", |item: &Item| Some(format!("w{}", item.tags.len()))).expect("a free name");
    for name in ["ns/b", "z", "ns/a", "other"] {
        put(&mut writer, name, 1, &[1]);
    }
    put(&mut writer, "none", 1, &[]);
    let texts = |keys: Vec<ObjectKey>| keys.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(texts(by_tag.keys(&1)), ["ns/a", "ns/b", "other", "z"]);
    assert!(by_tag.keys(&2).is_empty());
    assert_eq!(texts(by_word.keys("w0")), ["none"]);
    assert_eq!(
        texts(indexer.index_keys("word", "w1").expect("the index exists")),
        ["ns/a", "ns/b", "other", "z"]
    );
    assert_eq!(texts(indexer.index_keys("namespace", "ns").expect("the index exists")), ["ns/a", "ns/b"]);
    let mut values = indexer.index_values("word").expect("its values are strings");
    values.sort_unstable();
    assert_eq!(values, ["w0", "w1"]);
    assert_eq!(indexer.index_values("namespace"), Ok(vec!["ns".to_owned()]));
    assert!(matches!(indexer.index_values("tag"), Err(IndexError::WrongType { .. })));
}

#[test]
fn index_value_is_removed_with_its_last_object() {
    let (mut writer, indexer) = store::<Item>();
    let by_tag = indexer.add_index("tag", |item: &Item| item.tags.clone()).expect("a free name");
    put(&mut writer, "a", 1, &[1]);
    put(&mut writer, "b", 2, &[1]);
    _ = writer.remove(&ObjectKey::cluster_scoped("a"));
    assert_eq!((by_tag.values(), by_tag.count(&1)), (vec![1], 1), "another object still has the value");
    _ = writer.remove(&ObjectKey::cluster_scoped("b"));
    assert_eq!((by_tag.values(), by_tag.count(&1)), (vec![], 0));
    put(&mut writer, "a", 3, &[1]);
    put(&mut writer, "a", 4, &[2]);
    assert_eq!(by_tag.values(), [2], "the object has the new value");
    writer.replace(vec![], &5.into());
    assert!(by_tag.values().is_empty());
}

#[test]
fn object_with_several_index_values_is_found_by_each() {
    let (mut writer, indexer) = store::<Item>();
    let by_tag = indexer.add_index("tag", |item: &Item| item.tags.clone()).expect("a free name");
    let histories: [&[&[u8]]; 6] = [
        &[&[1, 2], &[2, 3], &[3]],
        &[&[1], &[1, 1], &[1]],
        &[&[], &[1, 2, 3, 4, 5], &[]],
        &[&[1, 2], &[2, 1], &[3, 4]],
        &[&[5], &[6], &[5]],
        &[&[1, 2, 3], &[1, 2, 3], &[2]],
    ];
    for history in histories {
        for (version, tags) in history.iter().enumerate() {
            put(&mut writer, "a", version as u64, tags);
            for tag in 0..7 {
                assert_eq!(by_tag.count(&tag), usize::from(tags.contains(&tag)), "{tag} in {tags:?}");
            }
            assert_eq!(by_tag.values().into_iter().collect::<BTreeSet<_>>(), tags.iter().copied().collect());
        }
    }
}

#[test]
fn several_indices_find_the_same_objects_by_different_values() {
    let (mut writer, indexer) = store::<Item>();
    let by_tag = indexer.add_index("tag", |item: &Item| item.tags.clone()).expect("a free name");
    let by_count = indexer.add_index("count", |item: &Item| [item.tags.len()]).expect("a free name");
    let by_parity =
        indexer.add_index("parity", |item: &Item| item.tags.first().map(|tag| tag % 2 == 0)).expect("free");
    put(&mut writer, "ns/a", 1, &[1, 2]);
    put(&mut writer, "ns/b", 2, &[2]);
    put(&mut writer, "c", 3, &[]);
    assert_eq!(indexer.index_names(), ["namespace", "tag", "count", "parity"]);
    assert_eq!(keys(&by_tag.get(&2)), set(&["ns/a", "ns/b"]));
    assert_eq!(keys(&by_count.get(&1)), set(&["ns/b"]));
    assert_eq!(keys(&by_count.get(&0)), set(&["c"]));
    assert_eq!((keys(&by_parity.get(&true)), keys(&by_parity.get(&false))), (set(&["ns/b"]), set(&["ns/a"])));
    put(&mut writer, "ns/a", 4, &[4]);
    assert_eq!((by_tag.count(&2), by_tag.count(&4), by_count.count(&2)), (1, 1, 0));
    assert_eq!(keys(&by_parity.get(&true)), set(&["ns/a", "ns/b"]));
}

#[test]
fn single_put_and_remove_keep_the_watermark() {
    let (mut writer, indexer) = store::<Item>();
    assert!(writer.put(item("a", 5, &[1])).is_empty());
    assert!(writer.put(item("a", 7, &[2])).is_empty());
    assert_eq!(indexer.get_by_key("a").expect("the object was added").tags, [2]);
    assert!(indexer.watermark().is_empty(), "the version of one object is no watermark");
    put(&mut writer, "b", 8, &[]);
    let removed = writer.remove(&ObjectKey::cluster_scoped("a")).expect("the object existed");
    assert_eq!(removed.tags, [2]);
    assert!(writer.remove(&ObjectKey::cluster_scoped("a")).is_none());
    assert_eq!((indexer.len(), indexer.watermark()), (1, 8.into()));
}

#[test]
fn watermark_moves_only_with_transactions_and_lists() {
    let (mut writer, indexer) = store::<Item>();
    writer.transaction(vec![Change::Put(item("a", 5, &[]))], Some(&5.into()));
    assert_eq!(indexer.watermark(), 5.into());
    writer.transaction(vec![], Some(&9.into()));
    assert_eq!(indexer.watermark(), 9.into(), "a bookmark moves the watermark");
    writer.transaction(vec![Change::Remove(ObjectKey::cluster_scoped("a"))], None);
    assert_eq!(indexer.watermark(), 9.into());
    writer.replace(vec![], &12.into());
    assert_eq!(indexer.watermark(), 12.into());
    writer.replace(vec![], &"rev-1".into());
    assert_eq!(indexer.watermark(), "rev-1".into(), "the version need not be a number");
}

#[test]
fn last_change_of_a_key_in_a_transaction_counts() {
    let (mut writer, indexer) = store::<Item>();
    let by_tag = indexer
        .try_add_index("tag", |item: &Item| item.tags.first().copied().map(Some).ok_or("no tag"))
        .expect("a free name");
    let failures = writer.transaction(
        vec![
            Change::Put(item("mended", 1, &[])),
            Change::Put(item("mended", 2, &[1])),
            Change::Put(item("gone", 1, &[])),
            Change::Remove(ObjectKey::cluster_scoped("gone")),
            Change::Put(item("broken", 1, &[1])),
            Change::Put(item("broken", 2, &[])),
        ],
        None,
    );
    assert_eq!(failures.iter().map(|failure| failure.key.as_str()).collect::<Vec<_>>(), ["broken"]);
    assert_eq!(indexer.index_failures(), failures);
    assert_eq!(keys(&by_tag.get(&1)), set(&["mended"]));
    assert_eq!(keys(&indexer.list()), set(&["mended", "broken"]));
}

#[test]
fn prepared_transaction_dropped_by_a_panic_is_committed() {
    for count in [1, 1_000] {
        let (mut writer, indexer) = store::<Item>();
        let by_tag = indexer.add_index("tag", |item: &Item| item.tags.clone()).expect("a free name");
        let changes = (0..count).map(|n| Change::Put(item(&n.to_string(), 1, &[1]))).collect();
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _prepared = writer.prepare(changes, None, &[]);
            std::panic::resume_unwind(Box::new("test panic"));
        }));
        assert!(outcome.is_err());
        assert_eq!((indexer.len(), by_tag.count(&1)), (count, count));
        put(&mut writer, "0", 2, &[2]);
        assert_eq!((by_tag.count(&1), by_tag.count(&2)), (count - 1, 1), "writer and indexes agree");
    }
}

#[test]
fn store_accepts_any_object_and_key_type() {
    /// Not a Kubernetes object: the key is of a custom type and there are no versions.
    struct Session {
        user: &'static str,
        hits: u32,
    }
    let session = |id: u64, user, hits| {
        let key = ObjectKey::from_text(format!("session:{id:x}").into());
        Cached::from_parts(key, ResourceVersion::empty(), Uid::default(), Session { user, hits })
    };
    let (mut writer, sessions) = store::<Session>();
    let by_user = sessions.add_index("user", |session: &Session| Some(session.user)).expect("a free name");
    writer.replace(vec![session(1, "ann", 1), session(255, "bob", 1)], &ResourceVersion::empty());
    assert_eq!(sessions.get_by_key("session:ff").map(|session| session.user), Some("bob"));
    assert!(sessions.in_namespace("").is_empty() && sessions.watermark().is_empty());
    assert_eq!(by_user.count("ann"), 1);

    writer.replace(vec![session(1, "ann", 2), session(255, "ann", 1)], &ResourceVersion::empty());
    assert_eq!(
        sessions.get_by_key("session:1").map(|session| session.hits),
        Some(2),
        "every put is a change"
    );
    assert_eq!((by_user.count("ann"), by_user.values()), (2, vec!["ann"]));
}

/// Returns whether a lock of the store is held. If so, calls of the store's methods from another
/// thread do not return.
fn is_locked(indexer: &Indexer<Probe>) -> bool {
    let (done, answer) = mpsc::channel();
    let indexer = indexer.clone();
    std::thread::spawn(move || {
        _ = (indexer.len(), indexer.index_failures());
        _ = done.send(());
    });
    answer.recv_timeout(Duration::from_secs(20)).is_err()
}

/// Records its drop, and whether a lock of the store was held at that time.
#[derive(Clone, Default)]
struct OnDrop(Arc<OnceLock<Indexer<Probe>>>, Arc<Mutex<Vec<&'static str>>>, &'static str);

impl Drop for OnDrop {
    fn drop(&mut self) {
        if let Some(indexer) = self.0.get() {
            let what = if is_locked(indexer) { "locked" } else { self.2 };
            self.1.lock().expect("no panic while locked").push(what);
        }
    }
}

/// An object of the user, with a tag and a drop hook.
struct Probe {
    tag: u8,
    on_drop: OnDrop,
}

/// An index value of a user's type with a drop hook. Equal values can be separate allocations.
#[derive(Clone)]
struct Tag(u8, #[allow(dead_code, reason = "for its drop")] Arc<OnDrop>);

impl PartialEq for Tag {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Tag {}

impl std::hash::Hash for Tag {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

#[test]
fn i8_objects_values_and_functions_drop_without_lock() {
    let (mut writer, indexer) = store::<Probe>();
    let on_drop = OnDrop::default();
    let called = |what| OnDrop(Arc::clone(&on_drop.0), Arc::clone(&on_drop.1), what);
    let probe = |name: &str, tag| {
        let object = Probe { tag, on_drop: called("object") };
        Cached::from_parts(ObjectKey::cluster_scoped(name), ResourceVersion::empty(), Uid::default(), object)
    };
    let function = |what| {
        let in_function = called(what);
        move |probe: &Probe| {
            let _captured = &in_function;
            let OnDrop(indexer, drops, _) = &probe.on_drop;
            Some(Tag(probe.tag, Arc::new(OnDrop(Arc::clone(indexer), Arc::clone(drops), "value"))))
        }
    };
    _ = indexer.add_index("tag", function("function")).expect("a free name");
    _ = on_drop.0.set(indexer.clone());
    let probes = |tag| (0..300).map(|n| probe(&n.to_string(), tag)).collect::<Vec<_>>();
    let dropped = || std::mem::take(&mut *on_drop.1.lock().expect("no panic while locked"));

    writer.put(probe("0", 1));
    writer.put(probe("0", 1));
    assert_eq!(dropped(), ["value", "object"], "the equal value and the replaced object");
    writer.put(probe("0", 2));
    assert_eq!(dropped().len(), 2, "the object and the value without objects");
    writer.remove(&ObjectKey::cluster_scoped("0"));
    assert_eq!(dropped().len(), 2);
    writer.replace(probes(1), &ResourceVersion::empty());
    let snapshot = indexer.snapshot();
    writer.replace(probes(2), &ResourceVersion::empty());
    assert!(dropped().iter().all(|what| *what == "value"), "the snapshot keeps the objects");
    drop(snapshot);
    assert_eq!(dropped().iter().filter(|what| **what == "object").count(), 300);
    writer.replace(vec![], &ResourceVersion::empty());
    assert!(dropped().iter().all(|what| *what != "locked"));

    writer.put(probe("0", 1));
    indexer.remove_index("tag").expect("the index exists");
    assert_eq!(dropped(), ["value"]);
    writer.put(probe("0", 1));
    let drops = dropped();
    assert!(drops.contains(&"function") && !drops.contains(&"locked"), "{drops:?}");
    assert!(indexer.add_index("namespace", function("refused")).is_err());
    assert_eq!(dropped(), ["refused"]);
}

#[test]
fn i8_with_common_value_calls_the_function_without_lock() {
    let (mut writer, indexer) = store::<Item>();
    let same_store = indexer.clone();
    let by_size = indexer
        .add_index("size", move |_: &Item| {
            _ = (same_store.index_names(), same_store.index_failures());
            Some(same_store.len())
        })
        .expect("a free name");
    put(&mut writer, "a", 1, &[]);
    assert_eq!(
        by_size.with_common_value(&item("b", 2, &[])).map(|found| found.len()),
        Ok(0),
        "the store was empty when `a` was indexed, and is not empty now"
    );
}

#[test]
fn add_of_an_index_waits_for_another_threads_add() {
    let (mut writer, indexer) = store::<Item>();
    put(&mut writer, "a", 1, &[1]);
    let (started, starts) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let may_go_on = Mutex::new(may_go_on);
    let adding = std::thread::spawn({
        let indexer = indexer.clone();
        // The function waits at each object until the test lets it continue.
        let slow = move |item: &Item| {
            started.send(()).expect("the test receives");
            may_go_on.lock().expect("no panic").recv().expect("the test sends");
            Ok::<_, String>(item.tags.clone())
        };
        move || indexer.index_or_try_add("tag", slow).expect("a free name")
    });
    starts.recv().expect("the function runs for the first object");
    // The first pass misses object b. The second pass indexes b while the index is still incomplete.
    put(&mut writer, "b", 2, &[2]);
    go_on.send(()).expect("the function waits");
    starts.recv().expect("the function runs for the second object");
    let released = std::thread::spawn(move || {
        go_on.send(()).expect("the function waits");
        go_on
    });
    let unused = |_: &Item| -> Result<Vec<u8>, String> { unreachable!("the index exists already") };
    let by_tag = indexer.index_or_try_add("tag", unused).expect("the other thread adds the index");
    assert_eq!((by_tag.count(&1), by_tag.count(&2)), (1, 1));
    drop(released.join());
    assert_eq!(adding.join().expect("no panic").count(&1), 1);
    assert!(matches!(
        indexer.index_or_try_add("tag", |_: &Item| Ok::<_, String>(["text"])),
        Err(IndexError::WrongType { .. })
    ));
}

#[test]
fn i9_each_namespace_has_its_own_watermark() {
    let (mut writer, indexer) = store::<Item>();
    let queue = DeltaFifo::<Item>::new();
    let (a, b) = (queue.feed("a"), queue.feed("b"));
    let list = |feed: &NamespaceFeed<Item>, version: u64| {
        let nothing = Replacement {
            objects: Vec::new(),
            quarantined: Vec::new(),
            complete: true,
            resource_version: version.into(),
        };
        feed.replace(nothing);
    };
    let mut apply_next_batch = || {
        let mut next = std::pin::pin!(queue.pop_batch());
        let Poll::Ready(Some(batch)) = next.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
            panic!("the queue has no batch");
        };
        drop(writer.prepare(Vec::new(), batch.watermark(), batch.namespaces()));
    };
    list(&a, 7);
    apply_next_batch();
    let before = indexer.snapshot();
    assert_eq!(
        (indexer.watermarks().get("a"), indexer.watermark()),
        (Some(&7.into()), ResourceVersion::empty())
    );
    list(&b, 5);
    apply_next_batch();
    assert_eq!((indexer.watermarks().get("b"), indexer.watermark()), (Some(&5.into()), 5.into()));
    assert!(
        before.watermarks().get("b").is_none() && before.watermark().is_empty(),
        "I7: a snapshot does not change"
    );
    b.release();
    apply_next_batch();
    assert_eq!((indexer.watermarks().get("b"), indexer.watermark()), (None, 7.into()));
}

/// Decodes items with one tag. The reference count shows how many decoded items have not been freed.
struct Counting(Arc<()>);

/// An item that is counted until it is freed.
struct Counted {
    tag: u8,
    _count: Arc<()>,
}

impl DecodeBytes for Counting {
    fn object(&self, bytes: &[u8]) -> OwnedObject<AnyObject> {
        OwnedObject::new(Counted { tag: bytes[0], _count: Arc::clone(&self.0) }).cast()
    }

    fn metadata(&self, _: &[u8]) -> k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
        Default::default()
    }
}

#[test]
fn decoded_objects_are_freed_with_the_readers_of_a_store() {
    const OBJECTS: u8 = 100;
    let count = Arc::new(());
    let codec = Arc::new(Codec::new(Counting(Arc::clone(&count)), Storage::Encoded));
    let encoded = |tag: u8| {
        let (key, encoded) =
            (ObjectKey::cluster_scoped(&tag.to_string()), Encoded::new(&[tag], "", Arc::clone(&codec)));
        OwnedObject::<Counted>::encoded(key.clone(), 1.into(), Uid::default(), encoded).into_cached(
            key,
            1.into(),
            Uid::default(),
        )
    };
    let (mut writer, indexer) = store::<Counted>();
    let by_tag = indexer.add_index("tag", |item: &Counted| Some(item.tag)).expect("a free name");
    let key = ObjectKey::cluster_scoped("decoded");
    let decoded = Counted { tag: 0, _count: Arc::new(()) };
    writer.put(Cached::from_parts(key.clone(), 1.into(), Uid::default(), decoded));
    writer.transaction((1..=OBJECTS).map(|tag| Change::Put(encoded(tag))).collect(), None);

    let total = u64::from(OBJECTS) * (u64::from(OBJECTS) + 1) / 2;
    let sum = |tags: &mut dyn Iterator<Item = u8>| tags.map(u64::from).sum::<u64>();
    let all = indexer.list();
    let readers: [u64; 5] = [
        sum(&mut all.iter().map(|item| item.tag)),
        sum(&mut all.to_vec().iter().map(|item| item.tag)),
        sum(&mut all.clone().into_iter().map(|item| item.tag)),
        sum(&mut all.iter().map(|item| indexer.get(item.key()).expect("an item").tag)),
        sum(&mut (0..=OBJECTS).map(|tag| by_tag.get(&tag).iter().next().expect("an item").tag)),
    ];
    assert_eq!(readers, [total; 5]);
    assert_eq!(Arc::strong_count(&count), 2 + usize::from(OBJECTS), "`all` keeps the objects");
    drop(all);
    let kept = Arc::strong_count(&count) - 2;
    assert!(kept < usize::from(OBJECTS) / 2, "only recent objects stay decoded: {kept}");
}
