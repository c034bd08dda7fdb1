//! What a store promises its readers and its writer, with a naive model beside it where the state space is large.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use informer_core::{Cached, ObjectKey, ResourceVersion, Uid};
use informer_store::{Change, Index, IndexError, Indexer, StoreWriter, store};
use proptest::prelude::*;

/// An object with tags to index it by.
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
fn an_object_is_found_by_key_text_index_and_list_until_it_is_removed() {
    let (mut writer, indexer) = store::<Item>();
    let by_tag = indexer.add_index("tag", |item: &Item| item.tags.clone()).expect("a free name");
    put(&mut writer, "ns/a", 1, &[1, 2]);
    put(&mut writer, "ns/b", 2, &[2]);
    let key = ObjectKey::namespaced("ns", "a");
    assert_eq!(indexer.get(&key).expect("it was put").tags, [1, 2]);
    assert!(indexer.get_by_key("ns/a").expect("it was put").ptr_eq(&indexer.get(&key).expect("it was put")));
    assert_eq!(keys(&indexer.list()), set(&["ns/a", "ns/b"]));
    assert_eq!(keys(&by_tag.get(&2)), set(&["ns/a", "ns/b"]));
    assert_eq!(keys(&indexer.in_namespace("ns")), set(&["ns/a", "ns/b"]));
    assert_eq!((by_tag.count(&1), by_tag.count(&9)), (1, 0));

    writer.transaction(vec![Change::Remove(key.clone())], None);
    assert!(indexer.get(&key).is_none() && by_tag.get(&1).is_empty());
    assert_eq!(keys(&by_tag.get(&2)), set(&["ns/b"]));
    assert_eq!(by_tag.values(), [2], "a value that nobody has is gone");
}

#[test]
fn i7_a_snapshot_and_what_it_found_stay_as_they_were() {
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
fn i3_readers_see_a_transaction_whole_or_not_at_all() {
    let (mut writer, indexer) = store::<Item>();
    let by_tag = indexer.add_index("tag", |item: &Item| item.tags.clone()).expect("a free name");
    let stop = Arc::new(AtomicBool::new(false));
    let reader = std::thread::spawn({
        let (indexer, by_tag, stop) = (indexer.clone(), by_tag.clone(), Arc::clone(&stop));
        move || {
            let mut seen = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                let snapshot = indexer.snapshot();
                // Each transaction moves all objects to the next tag; so at any time they share one.
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
        // Both ways of applying a transaction: in place, and beside the old state.
        let count = if round % 2 == 0 { 10 } else { 600 };
        let objects = (0..count).map(|n| item(&n.to_string(), round, &[(round % 200) as u8])).collect();
        writer.replace(objects, &round.into());
    }
    stop.store(true, Ordering::Relaxed);
    assert!(reader.join().expect("no torn read") > 0);
}

#[test]
fn replace_keeps_unchanged_objects_in_memory_and_removes_what_is_not_listed() {
    let (mut writer, indexer) = store::<Item>();
    put(&mut writer, "same", 1, &[]);
    put(&mut writer, "changed", 2, &[]);
    put(&mut writer, "gone", 3, &[]);
    let before = indexer.get_by_key("same").expect("it was put");
    writer.replace(vec![item("same", 1, &[]), item("changed", 5, &[7]), item("new", 6, &[])], &9.into());
    assert_eq!(keys(&indexer.list()), set(&["same", "changed", "new"]));
    assert!(before.ptr_eq(&indexer.get_by_key("same").expect("still there")));
    assert_eq!(indexer.get_by_key("changed").expect("still there").tags, [7]);
    assert_eq!(indexer.watermark(), ResourceVersion::from("9"));
}

#[test]
fn an_index_added_later_covers_what_is_there_and_what_comes() {
    let (mut writer, indexer) = store::<Item>();
    (0..5_000).for_each(|n| put(&mut writer, &n.to_string(), n + 1, &[(n % 10) as u8]));
    let by_tag = indexer.add_index("tag", |item: &Item| item.tags.clone()).expect("a free name");
    assert_eq!(by_tag.count(&3), 500);
    put(&mut writer, "late", 9_000, &[3]);
    assert_eq!(by_tag.count(&3), 501);
}

#[test]
fn an_index_can_be_added_while_the_writer_goes_on() {
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
    let indices: Vec<Index<Item, u8>> = (0..20)
        .map(|n| {
            indexer.add_index(&format!("tag-{n}"), |item: &Item| item.tags.clone()).expect("a free name")
        })
        .collect();
    stop.store(true, Ordering::Relaxed);
    let _writer = writing.join().expect("no panic");
    let snapshot = indexer.snapshot();
    for index in &indices {
        for tag in 0..7 {
            let expected = snapshot.list().iter().filter(|object| object.tags == [tag]).count();
            assert_eq!(index.get_in(&snapshot, &tag).len(), expected, "{} {tag}", index.name());
        }
    }
}

#[test]
fn a_removed_index_finds_nothing_and_its_name_is_free_again() {
    let (mut writer, indexer) = store::<Item>();
    let first = indexer.add_index("tag", |item: &Item| item.tags.clone()).expect("a free name");
    put(&mut writer, "a", 1, &[1]);
    assert_eq!(
        indexer.add_index("tag", |_: &Item| None::<u8>).map(|_| ()),
        Err(IndexError::Duplicate { name: "tag".into() })
    );
    indexer.remove_index("tag").expect("it exists");
    let second = indexer.add_index("tag", |item: &Item| item.tags.first().copied()).expect("free again");
    assert_eq!((first.count(&1), second.count(&1)), (0, 1));
    assert!(matches!(indexer.remove_index("namespace"), Err(IndexError::Unknown { .. })));
}

#[test]
fn asking_for_an_index_by_name_tells_unknown_names_from_wrong_types() {
    let (_writer, indexer) = store::<Item>();
    let _tag = indexer.add_index("tag", |item: &Item| item.tags.clone()).expect("a free name");
    let unknown = indexer.by_index("node", "n1").map(|_| ()).expect_err("no such index");
    assert_eq!(unknown.to_string(), "there is no index named \"node\"; there are: namespace, tag");
    assert!(matches!(indexer.by_index("tag", "1").map(|_| ()), Err(IndexError::WrongType { .. })));
    assert!(indexer.index::<u8>("tag").is_ok());
}

#[test]
fn i10_an_index_function_that_fails_or_panics_costs_the_object_that_index_and_nothing_else() {
    let (mut writer, indexer) = store::<Item>();
    let by_tag = indexer
        .try_add_index("tag", |item: &Item| match item.tags.first() {
            Some(13) => panic!("told to"),
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
    assert_eq!(failures[0].to_string(), "index \"tag\" can't place bad at resource version 2: no tag");
    assert_eq!(failures[1].error, "the index function panicked");
    assert_eq!((indexer.len(), by_tag.values()), (3, vec![1]));
    assert_eq!(indexer.index_failures().len(), 2);

    let again = writer.transaction(vec![Change::Put(item("bad", 4, &[]))], None);
    assert!(again.is_empty(), "it is reported once, not with each version");
    put(&mut writer, "bad", 5, &[2]);
    put(&mut writer, "ugly", 6, &[2]);
    assert!(indexer.index_failures().is_empty());
    assert_eq!(by_tag.count(&2), 2, "it comes back with a good version");
}

#[test]
fn i8_an_index_function_may_use_the_store_it_indexes() {
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

#[derive(Debug, Clone)]
enum Op {
    Put(u8, Vec<u8>),
    Remove(u8),
    Replace(Vec<(u8, Vec<u8>)>),
    Snapshot,
}

fn op() -> impl Strategy<Value = Op> {
    let tags = || prop::collection::vec(0..6_u8, 0..3);
    prop_oneof![
        6 => (0..60_u8, tags()).prop_map(|(name, tags)| Op::Put(name, tags)),
        3 => (0..60_u8).prop_map(Op::Remove),
        1 => prop::collection::vec((0..60_u8, tags()), 0..40).prop_map(Op::Replace),
        1 => Just(Op::Snapshot),
    ]
}

/// The naive store: a map, searched from end to end.
type Model = BTreeMap<String, Vec<u8>>;

fn check(indexer: &Indexer<Item>, by_tag: &Index<Item, u8>, model: &Model) {
    let listed: Model =
        indexer.list().into_iter().map(|object| (object.key().to_string(), object.tags.clone())).collect();
    assert_eq!((&listed, indexer.len()), (model, model.len()));
    for (name, tags) in model {
        assert_eq!(indexer.get_by_key(name).map(|object| object.tags.clone()).as_ref(), Some(tags));
    }
    for tag in 0..6 {
        let expected: BTreeSet<String> =
            model.iter().filter(|(_, tags)| tags.contains(&tag)).map(|(name, _)| name.clone()).collect();
        assert_eq!(keys(&by_tag.get(&tag)), expected);
        assert_eq!(by_tag.get(&tag).len(), expected.len());
    }
    for namespace in ["even", "odd"] {
        let expected = model.keys().filter(|name| name.starts_with(namespace)).count();
        assert_eq!(indexer.in_namespace(namespace).into_iter().count(), expected);
    }
}

fn name(n: u8) -> String {
    format!("{}/{n}", if n.is_multiple_of(2) { "even" } else { "odd" })
}

proptest! {
    #[test]
    fn a_store_with_an_index_behaves_like_a_map_searched_from_end_to_end(
        transactions in prop::collection::vec(prop::collection::vec(op(), 1..8), 1..40)
    ) {
        let (mut writer, indexer) = store::<Item>();
        let by_tag = indexer.add_index("tag", |item: &Item| item.tags.clone()).expect("a free name");
        let (mut model, mut version, mut snapshots) = (Model::new(), 0, Vec::new());
        for ops in transactions {
            let mut changes = Vec::new();
            for op in ops {
                version += 1;
                match op {
                    Op::Put(n, tags) => {
                        changes.push(Change::Put(item(&name(n), version, &tags)));
                        model.insert(name(n), tags);
                    }
                    Op::Remove(n) => {
                        changes.push(Change::Remove(name(n).parse().expect("a key")));
                        model.remove(&name(n));
                    }
                    Op::Replace(items) => {
                        writer.transaction(std::mem::take(&mut changes), None);
                        let items: BTreeMap<_, _> = items.into_iter().map(|(n, tags)| (name(n), tags)).collect();
                        let objects = items.iter().map(|(name, tags)| item(name, version, tags)).collect();
                        writer.replace(objects, &version.into());
                        model = items;
                    }
                    Op::Snapshot => {
                        writer.transaction(std::mem::take(&mut changes), None);
                        snapshots.push((indexer.list(), model.clone()));
                    }
                }
            }
            writer.transaction(changes, Some(&version.into()));
            check(&indexer, &by_tag, &model);
        }
        for (found, model) in snapshots {
            let listed: Model = found.iter().map(|object| (object.key().to_string(), object.tags.clone())).collect();
            prop_assert_eq!(listed, model);
        }
    }
}
