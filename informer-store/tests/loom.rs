//! Loom models of a store's locks: a writer, readers, and threads that add and remove indexes.
//!
//! `RUSTFLAGS="--cfg informer_loom" CARGO_TARGET_DIR=target/loom cargo test -p informer-store --release --test loom`

#![cfg(informer_loom)]

use std::collections::BTreeSet;

use informer_core::{Cached, ObjectKey, ResourceVersion, Uid};
use informer_store::{Change, Index, IndexError, Indexer, Snapshot, StoreWriter, store};
use loom::thread;

/// The maximum number of changes that the store applies in place. A larger transaction is applied to
/// a copy of the state.
const IN_PLACE: u64 = 256;

fn object(n: u64, value: u64) -> Cached<u64> {
    Cached::from_parts(ObjectKey::cluster_scoped(&n.to_string()), value.into(), Uid::default(), value)
}

fn put_all(count: u64, value: u64) -> Vec<Change<u64>> {
    (0..count).map(|n| Change::Put(object(n, value))).collect()
}

/// Explores interleavings with at most three preemptions, which find nearly all bugs, in far less
/// time than an exhaustive search.
fn model(test: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(test);
}

/// A store whose `count` objects all have the value 1, and an index by value.
fn filled(count: u64) -> (StoreWriter<u64>, Indexer<u64>, Index<u64, u64>) {
    let (mut writer, indexer) = store::<u64>();
    writer.transaction(put_all(count, 1), Some(&1.into()));
    let by_value = indexer.add_index("value", |value: &u64| Some(*value)).expect("a free name");
    (writer, indexer, by_value)
}

/// Returns the value that all objects of a state share, and checks that index and watermark agree.
fn value_of(snapshot: &Snapshot<u64>, by_value: &Index<u64, u64>) -> u64 {
    let values: BTreeSet<u64> = snapshot.list().iter().map(|object| **object).collect();
    let value = *values.first().expect("there are objects");
    assert_eq!(values.len(), 1, "a mix of two states");
    assert_eq!(by_value.get_in(snapshot, &value).len(), snapshot.len());
    assert_eq!(snapshot.watermark(), &value.into());
    value
}

fn readers_see_either_state(before: u64, after: u64) {
    model(move || {
        let (mut writer, indexer, by_value) = filled(before);
        let reader = thread::spawn(move || {
            let first = indexer.snapshot();
            // The snapshot after the query must not be older than the state that the query read.
            let found = by_value.get(&2).len() as u64;
            let second = indexer.snapshot();
            let (first, second) = (value_of(&first, &by_value), value_of(&second, &by_value));
            assert!(found == 0 || found == after);
            assert!(first <= second && (found == 0 || second == 2) && (found != 0 || first == 1));
        });
        writer.replace((0..after).map(|n| object(n, 2)).collect(), &2.into());
        reader.join().expect("the reader saw no mixed states");
    });
}

#[test]
fn i7_reader_sees_all_or_nothing_of_a_transaction() {
    readers_see_either_state(2, 3);
}

#[test]
fn i7_reader_sees_all_or_nothing_of_a_large_replace() {
    readers_see_either_state(2, IN_PLACE + 1);
}

#[test]
fn i3_transaction_is_visible_only_once_published() {
    for count in [1, IN_PLACE + 1] {
        model(move || {
            let (mut writer, indexer, by_value) = filled(count);
            let published = loom::sync::Arc::new(loom::sync::atomic::AtomicU64::new(0));
            let reader = thread::spawn({
                let published = published.clone();
                move || {
                    let begun = published.load(loom::sync::atomic::Ordering::SeqCst);
                    let value = value_of(&indexer.snapshot(), &by_value);
                    let ended = published.load(loom::sync::atomic::Ordering::SeqCst);
                    assert!(
                        value == 2 || begun < 2,
                        "the old state is not visible after the publication began"
                    );
                    assert!(value == 1 || ended > 0, "the new state is not visible before the publication");
                }
            });
            let version = 2.into();
            let mut prepared = writer.prepare(put_all(count, 2), Some(&version), &[]);
            published.store(1, loom::sync::atomic::Ordering::SeqCst);
            prepared.commit();
            published.store(2, loom::sync::atomic::Ordering::SeqCst);
            drop(prepared);
            reader.join().expect("the reader saw the states in the right order");
        });
    }
}

#[test]
fn index_added_during_transactions_is_complete() {
    for count in [2, IN_PLACE + 1] {
        model(move || {
            let (mut writer, indexer) = store::<u64>();
            writer.transaction(put_all(count, 1), Some(&1.into()));
            let adding = thread::spawn({
                let indexer = indexer.clone();
                move || indexer.add_index("value", |value: &u64| Some(*value)).expect("a free name")
            });
            writer.transaction(vec![Change::Put(object(0, 2)), Change::Put(object(count, 2))], None);
            writer
                .transaction((1..=count).map(|n| Change::Remove(object(n, 0).key().clone())).collect(), None);
            let by_value = adding.join().expect("the index was added");
            assert_eq!((by_value.count(&1), by_value.count(&2)), (0, 1));
            writer.transaction(vec![Change::Put(object(0, 3))], None);
            assert_eq!((by_value.count(&2), by_value.count(&3)), (0, 1));
        });
    }
}

#[test]
fn removed_index_stays_removed_and_new_index_is_complete() {
    model(|| {
        let (mut writer, indexer, first) = filled(2);
        let kept = indexer.add_index("double", |value: &u64| Some(2 * *value)).expect("a free name");
        let removing = thread::spawn({
            let (indexer, first) = (indexer.clone(), first.clone());
            move || {
                indexer.remove_index("value").expect("the index exists");
                assert!(first.get(&1).is_empty() && first.get(&2).is_empty());
                let second = indexer.add_index("value", |value: &u64| Some(*value)).expect("a free name");
                assert!(first.get(&1).is_empty() && first.get(&2).is_empty());
                second
            }
        });
        writer.transaction(put_all(IN_PLACE + 1, 2), None);
        let second = removing.join().expect("the name is free again");
        assert_eq!((first.count(&2), second.count(&2) as u64), (0, IN_PLACE + 1));
        assert_eq!(
            (kept.count(&2), kept.count(&4) as u64),
            (0, IN_PLACE + 1),
            "the other index is unaffected"
        );
        assert_eq!(indexer.index_names(), ["namespace", "double", "value"]);
    });
}

#[test]
fn concurrent_adds_of_one_index_name_succeed_once() {
    model(|| {
        let (mut writer, indexer) = store::<u64>();
        writer.transaction(put_all(2, 1), None);
        let add = |indexer: Indexer<u64>| indexer.add_index("value", |value: &u64| Some(*value)).map(|_| ());
        let other = thread::spawn({
            let indexer = indexer.clone();
            move || add(indexer)
        });
        let outcomes = [add(indexer.clone()), other.join().expect("no panic")];
        let duplicate = IndexError::Duplicate { name: "value".into() };
        assert!(outcomes.contains(&Ok(())) && outcomes.contains(&Err(duplicate)));
        writer.put(object(7, 1));
        assert_eq!(indexer.index::<u64>("value").expect("the index was added").count(&1), 3);
        assert_eq!(indexer.watermark(), ResourceVersion::empty());
    });
}
