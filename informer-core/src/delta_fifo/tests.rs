//! The queue's guarantees to its producers and its consumer. Tests with a counterpart in
//! client-go's `delta_fifo_test.go` have similar names.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::FutureExt;
use parking_lot::Mutex;

use super::*;
use crate::{ObjectKey, Uid};

type Object = &'static str;

fn object(name: &str, version: u64, value: Object) -> Cached<Object> {
    Cached::from_parts(ObjectKey::cluster_scoped(name), version.into(), Uid::default(), value)
}

fn replacement<K>(objects: Vec<Cached<K>>, version: u64) -> Replacement<K> {
    Replacement { objects, quarantined: Vec::new(), complete: true, resource_version: version.into() }
}

#[derive(Default)]
struct Store<K = Object>(Mutex<BTreeMap<ObjectKey, Cached<K>>>);

impl Store {
    fn with(objects: Vec<Cached<Object>>) -> Arc<Self> {
        let map = objects.into_iter().map(|object| (object.key().clone(), object)).collect();
        Arc::new(Self(Mutex::new(map)))
    }
}

impl<K: 'static> KnownObjects<K> for Store<K> {
    fn known(&self, key: &ObjectKey) -> Option<Cached<K>> {
        self.0.lock().get(key).cloned()
    }

    fn for_each_known(&self, visit: &mut dyn FnMut(&Cached<K>)) -> Option<Box<dyn std::any::Any + Send>> {
        self.0.lock().values().for_each(visit);
        None
    }
}

/// Formats a change as a letter and its object: `A:new`, `D:last` (exact deletion), `d:last`
/// (tombstone).
fn shown(delta: &Delta<Object>) -> String {
    let letter = match delta {
        Delta::Added(_) => 'A',
        Delta::Updated(_) => 'U',
        Delta::Replaced(_) => 'R',
        Delta::Sync(_) => 'S',
        Delta::Deleted(deleted) if deleted.is_exact() => 'D',
        Delta::Deleted(_) => 'd',
        Delta::Released(_) => 'r',
    };
    format!("{letter}:{}", delta.object().map_or("?", |object| object))
}

fn pop_now(queue: &DeltaFifo<Object>) -> Batch<Object> {
    queue.pop_batch().now_or_never().expect("the queue is ready").expect("the queue is open")
}

fn contents(batch: &Batch<Object>) -> Vec<String> {
    let item = |pending: &Pending<Object>| {
        format!("{} {}", pending.key, pending.deltas.iter().map(shown).collect::<Vec<_>>().join(","))
    };
    batch.items().iter().map(item).collect()
}

fn drain(queue: &DeltaFifo<Object>) -> Vec<String> {
    contents(&pop_now(queue))
}

fn is_waiting(queue: &DeltaFifo<Object>) -> bool {
    queue.pop_batch().now_or_never().is_none()
}

#[test]
fn i2_changes_of_a_key_share_one_entry_in_order() {
    let queue = DeltaFifo::new();
    queue.add(object("a", 1, "a1"));
    queue.add(object("b", 2, "b1"));
    queue.update(object("a", 3, "a2"));
    assert_eq!(queue.len(), 2);
    assert_eq!(drain(&queue), ["a A:a1,U:a2", "b A:b1"]);
    assert!(queue.is_empty() && is_waiting(&queue));
}

#[test]
fn i2_second_pop_waits_until_the_batch_is_dropped() {
    let queue = DeltaFifo::new();
    queue.add(object("a", 1, "x"));
    let first = pop_now(&queue);
    queue.update(object("a", 2, "y"));
    let mut second = Box::pin(queue.pop_batch());
    assert!((&mut second).now_or_never().is_none());
    drop(first);
    assert_eq!(second.now_or_never().flatten().map(|batch| contents(&batch)), Some(vec!["a U:y".to_owned()]));
}

#[test]
fn i2_popped_key_can_be_queued_again() {
    let queue = DeltaFifo::new();
    for name in ["a", "b", "c"] {
        queue.add(object(name, 1, "x"));
    }
    let first = queue.pop().now_or_never().flatten().expect("the queue has an item");
    assert_eq!(contents(&first), ["a A:x"]);
    queue.update(object("c", 2, "y"));
    queue.update(object("a", 3, "z"));
    drop(first);
    assert_eq!(drain(&queue), ["b A:x", "c A:x,U:y", "a U:z"]);
}

#[test]
fn two_deletions_become_one_with_the_exact_state() {
    let missed = || Deleted::missed(ObjectKey::cluster_scoped("a"), Some(object("a", 1, "guess")));
    let queue = DeltaFifo::new();
    queue.delete(missed());
    queue.delete(Deleted::exact(object("a", 2, "last")));
    assert_eq!(drain(&queue), ["a D:last"]);
    queue.delete(Deleted::exact(object("a", 2, "last")));
    queue.delete(missed());
    assert_eq!(drain(&queue), ["a D:last"]);
}

#[test]
fn add_after_a_queued_deletion_is_kept() {
    let queue = DeltaFifo::new();
    queue.delete(Deleted::exact(object("a", 1, "old")));
    queue.add(object("a", 2, "new"));
    assert_eq!(drain(&queue), ["a D:old,A:new"]);
}

#[test]
fn replace_deletes_unlisted_objects_with_last_known_state() {
    let store = Store::with(vec![object("a", 1, "a1"), object("b", 1, "b1"), object("c", 1, "c1")]);
    let queue = DeltaFifo::with_known_objects(store);
    queue.replace(replacement(vec![object("a", 1, "copy"), object("b", 5, "b2")], 6));
    // The list has the stored version of "a".
    assert_eq!(drain(&queue), ["b R:b2", "c d:c1"]);
}

#[test]
fn list_of_known_versions_queues_nothing() {
    let queue = DeltaFifo::with_known_objects(Store::with(vec![object("a", 1, "a1"), object("b", 1, "b1")]));
    queue.update(object("a", 2, "a2"));
    let in_flight = pop_now(&queue);
    queue.update(object("b", 3, "b2"));
    queue.delete(Deleted::exact(object("c", 4, "c1")));
    let list = || vec![object("a", 2, "copy"), object("b", 3, "copy"), object("c", 4, "again")];
    queue.replace(replacement(list(), 5));
    // The list has the stored version of "a", but a newer version is in flight, so the list changes
    // "a".
    queue
        .replace(replacement(vec![object("a", 1, "a1"), object("b", 3, "copy"), object("c", 4, "again")], 6));
    drop(in_flight);
    assert_eq!(drain(&queue), ["b U:b2", "c D:c1,R:again", "a R:a1"]);
}

#[test]
fn replace_deletes_queued_objects() {
    let queue = DeltaFifo::new();
    queue.add(object("added", 1, "x"));
    queue.delete(Deleted::exact(object("gone", 1, "x")));
    queue.add(object("listed", 1, "x"));
    queue.replace(replacement(vec![object("listed", 2, "y")], 2));
    assert_eq!(drain(&queue), ["added A:x,d:x", "gone D:x", "listed A:x,R:y"]);
}

#[test]
fn tombstone_has_the_newest_queued_state() {
    let known = || Store::with(vec![object("a", 1, "a1")]);
    let missing = |queue: &DeltaFifo<Object>| queue.replace(replacement(vec![], 9));
    let queue = DeltaFifo::with_known_objects(known());
    queue.update(object("a", 2, "a2"));
    missing(&queue);
    assert_eq!(drain(&queue), ["a U:a2,d:a2"]);
    let queue = DeltaFifo::with_known_objects(known());
    queue.delete(Deleted::exact(object("a", 2, "a2")));
    queue.add(object("a", 3, "a3"));
    missing(&queue);
    assert_eq!(drain(&queue), ["a D:a2,A:a3,d:a3"], "the recreated object is deleted too");
    let queue = DeltaFifo::with_known_objects(known());
    queue.resync();
    missing(&queue);
    assert_eq!(drain(&queue), ["a S:?,d:a1"], "an object with a queued resync is deleted too");
}

#[test]
fn add_then_delete_keeps_both_deltas() {
    let queue = DeltaFifo::with_known_objects(Store::with(vec![]));
    queue.add(object("a", 1, "x"));
    queue.delete(Deleted::exact(object("a", 2, "y")));
    assert_eq!(drain(&queue), ["a A:x,D:y"]);
}

#[test]
fn deletion_of_an_unknown_object_is_queued() {
    let queue = DeltaFifo::with_known_objects(Store::with(vec![]));
    queue.delete(Deleted::missed(ObjectKey::cluster_scoped("a"), None));
    assert_eq!(drain(&queue), ["a d:?"]);
}

#[test]
fn i2_object_listed_twice_has_one_entry() {
    let queue = DeltaFifo::new();
    queue.replace(replacement(vec![object("a", 1, "x"), object("b", 1, "x"), object("a", 2, "y")], 7));
    assert_eq!(queue.len(), 2);
    let batch = pop_now(&queue);
    // If a key is listed twice, the last object counts.
    assert_eq!(contents(&batch), ["b R:x", "a R:y"]);
    assert!(batch.completes_initial_list());
    drop(batch);
    assert!(queue.has_synced());
}

#[test]
fn two_replaces_in_a_row_leave_one_deletion() {
    let queue = DeltaFifo::new();
    queue.replace(replacement(vec![object("a", 1, "x")], 1));
    queue.replace(replacement(vec![], 2));
    queue.replace(replacement(vec![], 3));
    assert_eq!(drain(&queue), ["a R:x,d:x"]);
}

#[test]
fn replace_deletes_in_flight_objects_with_newest_state() {
    let store = Store::with(vec![object("a", 1, "a1")]);
    let queue = DeltaFifo::with_known_objects(store);
    queue.update(object("a", 2, "a2"));
    queue.add(object("b", 3, "b1"));
    queue.delete(Deleted::exact(object("c", 4, "c1")));
    let in_flight = pop_now(&queue);
    queue.replace(replacement(vec![], 5));
    assert_eq!(contents(&in_flight).len(), 3);
    drop(in_flight);
    assert_eq!(drain(&queue).into_iter().collect::<std::collections::BTreeSet<_>>(), {
        ["a d:a2", "b d:b1"].map(String::from).into()
    });
}

#[test]
fn i10_replace_keeps_quarantined_objects() {
    let store = Store::with(vec![object("broken", 1, "last good")]);
    let queue = DeltaFifo::with_known_objects(store);
    queue.add(object("queued", 2, "x"));
    let quarantined = ["broken", "queued"].map(ObjectKey::cluster_scoped).to_vec();
    queue.replace(Replacement { objects: vec![], quarantined, complete: true, resource_version: 3.into() });
    assert_eq!(drain(&queue), ["queued A:x"]);
}

#[test]
fn i10_replace_with_a_nameless_object_deletes_nothing() {
    let store = Store::with(vec![object("a", 1, "a1"), object("b", 1, "b1")]);
    let queue = DeltaFifo::with_known_objects(store);
    queue.replace(Replacement { complete: false, ..replacement(vec![object("a", 2, "a2")], 3) });
    assert_eq!(drain(&queue), ["a R:a2"]);
}

#[test]
fn resync_queues_known_objects_without_pending_changes() {
    let store = ["a", "b", "c", "d"].map(|name| object(name, 1, "known"));
    let queue = DeltaFifo::with_known_objects(Store::with(store.to_vec()));
    queue.update(object("b", 2, "b2"));
    let in_flight = pop_now(&queue);
    queue.update(object("c", 3, "c2"));
    queue.delete(Deleted::exact(object("d", 4, "d2")));
    queue.resync();
    drop(in_flight);
    assert_eq!(drain(&queue), ["c U:c2", "d D:d2", "a S:?"]);
}

#[test]
fn resync_during_the_initial_list_queues_nothing() {
    let (queue, store) = queue_with_store();
    let listed = queue.list_part(vec![object("a", 1, "a")]);
    store.0.lock().insert(listed[0].key().clone(), listed[0].clone());
    drop(pop_now(&queue));
    queue.resync();
    assert!(is_waiting(&queue));
    queue.replace(replacement(listed, 7));
    drop(pop_now(&queue));
    queue.resync();
    assert_eq!(drain(&queue), ["a S:?"]);
}

#[test]
fn initial_list_completes_with_its_last_processed_object() {
    let queue = DeltaFifo::new();
    assert!(!queue.has_synced());
    queue.replace(replacement(vec![object("a", 1, "x"), object("b", 1, "x")], 1));
    queue.add(object("c", 2, "x"));
    let first = queue.pop().now_or_never().flatten().expect("the queue has an item");
    assert!(first.items()[0].is_in_initial_list() && !first.completes_initial_list());
    drop(first);
    let second = pop_now(&queue);
    assert!(second.completes_initial_list());
    assert_eq!(
        (second.items()[0].is_in_initial_list(), second.items()[1].is_in_initial_list()),
        (true, false)
    );
    assert!(!queue.has_synced(), "the last batch has not been processed");
    drop(second);
    assert!(queue.has_synced());
}

#[test]
fn empty_initial_list_completes_with_its_batch() {
    let queue = DeltaFifo::<Object>::new();
    queue.replace(replacement(vec![], 7));
    assert!(!queue.has_synced());
    let batch = pop_now(&queue);
    assert!(batch.items().is_empty() && batch.completes_initial_list());
    assert_eq!(batch.watermark(), Some(&7.into()));
    assert!(is_waiting(&queue), "the end of the list is announced once");
    drop(batch);
    assert!(queue.has_synced());
}

/// Returns a queue and the empty store of its consumer.
fn queue_with_store() -> (DeltaFifo<Object>, Arc<Store>) {
    let store = Store::with(vec![]);
    (DeltaFifo::with_known_objects(Arc::clone(&store) as Arc<dyn KnownObjects<Object>>), store)
}

#[test]
fn i6_initial_list_completes_when_all_parts_are_processed() {
    let (queue, store) = queue_with_store();
    let first = queue.list_part(vec![object("a", 1, "a"), object("b", 1, "b")]);
    let batch = pop_now(&queue);
    assert_eq!(contents(&batch), ["a R:a", "b R:b"]);
    assert!(batch.items().iter().all(Pending::is_in_initial_list) && !batch.completes_initial_list());
    assert_eq!(batch.watermark(), None, "I9: a part of a list is not a state of the server");
    first.iter().for_each(|object| _ = store.0.lock().insert(object.key().clone(), object.clone()));
    drop(batch);
    assert!(is_waiting(&queue) && !queue.has_synced());
    let second = queue.list_part(vec![object("c", 1, "c")]);
    queue.replace(replacement([first, second].concat(), 7));
    let batch = pop_now(&queue);
    assert_eq!(contents(&batch), ["c R:c"]);
    assert!(batch.items()[0].is_in_initial_list() && batch.completes_initial_list());
    assert_eq!(batch.watermark(), Some(&7.into()));
    drop(batch);
    assert!(queue.has_synced());
}

#[test]
fn queue_without_a_store_returns_a_list_once() {
    let queue = DeltaFifo::new();
    let listed = queue.list_part(vec![object("a", 1, "a")]);
    assert!(is_waiting(&queue));
    queue.replace(replacement(listed, 7));
    assert_eq!(drain(&queue), ["a R:a"]);
}

#[test]
fn i6_processed_initial_list_completes_with_its_end() {
    let (queue, store) = queue_with_store();
    let listed = queue.list_part(vec![object("a", 1, "a")]);
    let batch = pop_now(&queue);
    store.0.lock().insert(listed[0].key().clone(), listed[0].clone());
    drop(batch);
    queue.replace(replacement(listed, 7));
    let batch = pop_now(&queue);
    assert!(batch.items().is_empty() && batch.completes_initial_list());
    assert_eq!(batch.watermark(), Some(&7.into()));
    drop(batch);
    assert!(queue.has_synced() && is_waiting(&queue));
}

#[test]
fn retried_initial_list_deletes_missing_objects() {
    let (queue, store) = queue_with_store();
    let interrupted = queue.list_part(vec![object("a", 1, "a"), object("b", 1, "b"), object("c", 1, "c")]);
    drop(pop_now(&queue));
    for object in &interrupted {
        store.0.lock().insert(object.key().clone(), object.clone());
    }
    let listed = queue.list_part(vec![object("a", 1, "copy"), object("b", 5, "b2")]);
    assert!(listed[0].ptr_eq(&interrupted[0]), "the known object replaces its copy");
    queue.replace(replacement(listed, 7));
    let batch = pop_now(&queue);
    assert_eq!(contents(&batch), ["b R:b2", "c d:c"]);
    assert!(batch.completes_initial_list());
}

#[test]
fn relist_changes_nothing_before_its_end() {
    let known = object("a", 1, "a1");
    let queue = DeltaFifo::with_known_objects(Store::with(vec![known.clone(), object("gone", 1, "g")]));
    queue.replace(replacement(vec![], 2));
    drop(pop_now(&queue));
    let listed = queue.list_part(vec![object("a", 1, "copy"), object("b", 3, "b1")]);
    assert!(listed[0].ptr_eq(&known));
    assert!(is_waiting(&queue));
    queue.replace(replacement(listed, 7));
    assert_eq!(drain(&queue), ["b R:b1", "gone d:g"]);
}

#[test]
fn list_part_is_compared_with_the_newest_state() {
    let queue = DeltaFifo::with_known_objects(Store::with(vec![object("a", 1, "a1"), object("b", 1, "b1")]));
    queue.replace(replacement(vec![object("a", 1, "a1"), object("b", 1, "b1")], 1));
    let (taken, queued) = (object("a", 2, "a2"), object("b", 3, "b2"));
    queue.update(taken.clone());
    let in_flight = pop_now(&queue);
    queue.update(queued.clone());
    queue.delete(Deleted::exact(object("c", 4, "c1")));
    let listed =
        queue.list_part(vec![object("a", 2, "copy"), object("b", 3, "copy"), object("c", 4, "copy")]);
    assert!(listed[0].ptr_eq(&taken) && listed[1].ptr_eq(&queued));
    assert_eq!(*listed[2], "copy", "the queued deletion has no object that could replace the copy");
    drop(in_flight);
}

#[test]
fn unchanged_relist_keeps_one_copy_per_object() {
    const PARTS: u64 = 100;
    const PART: u64 = 10;
    // All objects are clones of one `Arc`, which counts the objects in memory.
    let alive = Arc::new(());
    let store = Arc::new(Store::<Arc<()>>::default());
    let queue = DeltaFifo::with_known_objects(Arc::clone(&store) as Arc<dyn KnownObjects<Arc<()>>>);
    let process = || {
        let batch = queue.pop_batch().now_or_never().flatten().expect("the queue is ready");
        for object in batch.items().iter().flat_map(|pending| &pending.deltas).filter_map(Delta::object) {
            store.0.lock().insert(object.key().clone(), object.clone());
        }
    };
    for list in 0..3_u64 {
        let mut listed = Vec::new();
        for part in 0..PARTS {
            let copy = |n: u64| {
                let key = ObjectKey::cluster_scoped(&n.to_string());
                Cached::from_parts(key, (n + 1).into(), Uid::default(), Arc::clone(&alive))
            };
            listed.extend(queue.list_part((part * PART..(part + 1) * PART).map(copy).collect()));
            if list == 0 {
                process();
            }
            let known = if list == 0 { (part + 1) * PART } else { PARTS * PART };
            assert_eq!(Arc::strong_count(&alive) as u64, known + 1, "part {part} of list {list}");
        }
        queue.replace(replacement(listed, list + 5_000));
        assert!(queue.is_empty(), "the list has no differences");
        process();
    }
    assert_eq!(Arc::strong_count(&alive) as u64, PARTS * PART + 1);
}

#[test]
fn i12_closed_queue_ends_waits_for_interrupted_initial_list() {
    let (queue, _) = queue_with_store();
    queue.list_part(vec![object("a", 1, "a")]);
    queue.close();
    assert_eq!(queue.synced().wait().now_or_never(), None, "queued changes can still be processed");
    drop(pop_now(&queue));
    assert_eq!(queue.synced().wait().now_or_never(), Some(Err(crate::NeverSynced)));
}

#[test]
fn i6_initial_list_waits_for_a_requeued_part() {
    let (queue, _) = queue_with_store();
    let listed = queue.list_part(vec![object("a", 1, "a")]);
    let mut batch = pop_now(&queue);
    queue.replace(replacement(listed, 7));
    batch.requeue(0);
    drop(batch);
    assert!(!queue.has_synced());
    let batch = pop_now(&queue);
    assert_eq!(contents(&batch), ["a R:a"]);
    assert!(batch.completes_initial_list() && batch.watermark() == Some(&7.into()));
    drop(batch);
    assert!(queue.has_synced());
}

#[test]
fn queue_filled_by_single_changes_is_synced() {
    let queue = DeltaFifo::new();
    queue.add(object("a", 1, "x"));
    assert!(queue.has_synced());
}

#[test]
fn any_first_change_syncs_a_queue_without_a_list() {
    let changes: [fn(&DeltaFifo<Object>); 3] = [
        |queue| queue.update(object("a", 1, "x")),
        |queue| queue.delete(Deleted::exact(object("a", 1, "x"))),
        |queue| queue.apply(vec![Delta::Added(object("a", 1, "x"))], &1.into()),
    ];
    for change in changes {
        let queue = DeltaFifo::new();
        change(&queue);
        assert!(queue.has_synced());
    }
}

#[test]
fn i6_object_missing_in_a_relist_counts_for_the_initial_list() {
    let queue = DeltaFifo::new();
    queue.replace(replacement(vec![object("a", 1, "x"), object("b", 1, "x")], 1));
    queue.replace(replacement(vec![object("b", 1, "x")], 2));
    let first = queue.pop().now_or_never().flatten().expect("the queue has an item");
    assert_eq!(contents(&first), ["a R:x,d:x"]);
    drop(first);
    assert!(!queue.has_synced());
    drop(queue.pop().now_or_never().flatten().expect("the queue has an item"));
    assert!(queue.has_synced() && queue.is_empty());
}

#[test]
fn requeued_item_is_popped_after_the_others() {
    let queue = DeltaFifo::new();
    queue.add(object("a", 1, "a"));
    queue.add(object("b", 1, "b"));
    let mut batch = queue.pop().now_or_never().flatten().expect("the queue is ready");
    batch.requeue(0);
    drop(batch);
    assert_eq!(drain(&queue), ["b A:b", "a A:a"]);
    assert!(is_waiting(&queue));
}

#[test]
fn i2_requeued_item_adds_its_last_delta_to_newer_ones() {
    let table = [
        (vec![Delta::Added(object("a", 1, "one"))], "a U:two"),
        (vec![Delta::Deleted(Deleted::exact(object("a", 1, "one")))], "a D:one,U:two"),
        (
            vec![
                Delta::Updated(object("a", 1, "zero")),
                Delta::Deleted(Deleted::exact(object("a", 2, "one"))),
                Delta::Added(object("a", 3, "new")),
            ],
            "a D:one,U:two",
        ),
    ];
    for ((failed, expected), is_requeued_first) in table.iter().flat_map(|row| [(row, false), (row, true)]) {
        let queue = DeltaFifo::new();
        queue.apply(failed.clone(), &ResourceVersion::empty());
        let mut batch = pop_now(&queue);
        if is_requeued_first {
            batch.requeue(0);
        }
        queue.update(object("a", 4, "two"));
        batch.requeue(0);
        drop(batch);
        assert_eq!(drain(&queue), [*expected]);
    }
}

#[test]
fn failing_key_keeps_only_a_removal_and_newer_changes() {
    let queue = DeltaFifo::new();
    queue.add(object("a", 1, "old"));
    let fail = || {
        let mut batch = pop_now(&queue);
        batch.requeue(0);
        contents(&batch)
    };
    for version in 2..100 {
        fail();
        queue.update(object("a", version, "old"));
    }
    assert_eq!(fail(), ["a U:old"]);
    queue.delete(Deleted::exact(object("a", 100, "last")));
    queue.add(object("a", 101, "new"));
    for version in 102..200 {
        fail();
        queue.update(object("a", version, "new"));
    }
    assert_eq!(fail(), ["a D:last,U:new"]);
    queue.delete(Deleted::missed(ObjectKey::cluster_scoped("a"), None));
    assert_eq!(drain(&queue), ["a D:last"]);
}

#[test]
fn requeue_keeps_the_deletion_of_the_consumer_s_object() {
    let object = |uid: &str, version: u64| {
        Cached::from_parts(ObjectKey::cluster_scoped("a"), version.into(), uid.into(), "x")
    };
    for is_requeued_first in [false, true] {
        let queue = DeltaFifo::new();
        queue.delete(Deleted::exact(object("first", 1)));
        queue.add(object("second", 2));
        let mut batch = pop_now(&queue);
        if is_requeued_first {
            batch.requeue(0);
        }
        queue.delete(Deleted::exact(object("second", 3)));
        if !is_requeued_first {
            batch.requeue(0);
        }
        drop(batch);
        let batch = pop_now(&queue);
        let [Delta::Deleted(deleted)] = &batch.items()[0].deltas[..] else { panic!("{batch:?}") };
        assert_eq!(deleted.uid(), Some(&"first".into()));
    }
    // The failed item has two deletions. The consumer has never received the second object.
    let queue = DeltaFifo::new();
    queue.delete(Deleted::exact(object("first", 1)));
    queue.add(object("second", 2));
    queue.delete(Deleted::exact(object("second", 3)));
    queue.add(object("third", 4));
    pop_now(&queue).requeue(0);
    queue.update(object("third", 5));
    let batch = pop_now(&queue);
    let [Delta::Deleted(deleted), Delta::Updated(_)] = &batch.items()[0].deltas[..] else {
        panic!("{batch:?}")
    };
    assert_eq!(deleted.uid(), Some(&"first".into()));
}

#[test]
fn requeued_deletion_is_merged_with_a_newer_deletion() {
    let queue = DeltaFifo::new();
    queue.delete(Deleted::exact(object("a", 1, "last")));
    let mut batch = pop_now(&queue);
    queue.delete(Deleted::missed(ObjectKey::cluster_scoped("a"), None));
    batch.requeue(0);
    drop(batch);
    assert_eq!(drain(&queue), ["a D:last"]);
}

#[test]
fn i6_initial_list_waits_for_requeued_objects() {
    let queue = DeltaFifo::new();
    queue.replace(replacement(vec![object("a", 1, "a"), object("b", 1, "b")], 7));
    let mut batch = pop_now(&queue);
    assert!(batch.completes_initial_list());
    batch.requeue(1);
    // A second call changes nothing.
    batch.requeue(1);
    assert!(!batch.completes_initial_list() && batch.watermark().is_none());
    drop(batch);
    assert!(!queue.has_synced());
    let batch = pop_now(&queue);
    assert_eq!(contents(&batch), ["b R:b"]);
    assert!(batch.items()[0].is_in_initial_list() && batch.completes_initial_list());
    // I9: the consumer has the whole list only after this batch.
    assert_eq!(batch.watermark(), Some(&7.into()));
    drop(batch);
    assert!(queue.has_synced());
}

#[test]
fn i6_item_requeued_twice_is_counted_once() {
    let queue = DeltaFifo::new();
    queue.replace(replacement(vec![object("a", 1, "a"), object("b", 1, "b")], 7));
    let mut batch = pop_now(&queue);
    batch.requeue(1);
    batch.requeue(1);
    assert!(!batch.is_all_requeued());
    batch.requeue(0);
    assert!(batch.is_all_requeued());
    drop(batch);
    let again = pop_now(&queue);
    assert_eq!(contents(&again), ["b R:b", "a R:a"]);
    assert!(again.items().iter().all(Pending::is_in_initial_list) && again.completes_initial_list());
    drop(again);
    assert!(queue.has_synced());
}

#[test]
fn i9_list_without_version_clears_the_watermark() {
    let queue = DeltaFifo::new();
    queue.replace(Replacement { resource_version: ResourceVersion::empty(), ..replacement(vec![], 0) });
    assert_eq!(pop_now(&queue).watermark(), None);
    queue.apply(vec![Delta::Updated(object("a", 7, "a"))], &7.into());
    assert_eq!(pop_now(&queue).watermark(), Some(&7.into()));
    let list = replacement(vec![object("b", 8, "b")], 0);
    queue.replace(Replacement { resource_version: ResourceVersion::empty(), ..list });
    assert_eq!(pop_now(&queue).watermark(), Some(&ResourceVersion::empty()));
    queue.apply(vec![Delta::Updated(object("b", 9, "b"))], &9.into());
    assert_eq!(pop_now(&queue).watermark(), Some(&9.into()));
}

#[test]
fn i9_newer_watermark_wins_over_a_requeued_one() {
    let queue = DeltaFifo::new();
    queue.apply(vec![Delta::Added(object("a", 1, "a"))], &1.into());
    let mut batch = pop_now(&queue);
    queue.apply(vec![], &2.into());
    batch.requeue(0);
    drop(batch);
    assert_eq!(pop_now(&queue).watermark(), Some(&2.into()));
}

#[test]
fn i9_failed_item_withholds_the_watermark_until_it_succeeds() {
    let queue = DeltaFifo::new();
    queue.apply(vec![Delta::Added(object("a", 1, "a"))], &1.into());
    let mut failing = pop_now(&queue);
    queue.apply(vec![Delta::Added(object("b", 2, "b"))], &2.into());
    failing.requeue(0);
    assert_eq!(failing.watermark(), None);
    drop(failing);
    let newer = queue.pop().now_or_never().flatten().expect("the queue has an item");
    assert_eq!((contents(&newer), newer.watermark()), (vec!["b A:b".to_owned()], None));
    drop(newer);
    let last = pop_now(&queue);
    assert_eq!((contents(&last), last.watermark()), (vec!["a A:a".to_owned()], Some(&2.into())));
}

/// An object whose destructor uses the queue that held the object.
struct QueueUser(DeltaFifo<QueueUser>);

impl Drop for QueueUser {
    fn drop(&mut self) {
        _ = self.0.len();
    }
}

#[test]
fn i8_destructor_of_an_object_can_use_the_queue() {
    let queue = DeltaFifo::new();
    let end = |version: u64| {
        let key = ObjectKey::cluster_scoped("a");
        Deleted::exact(Cached::from_parts(key, version.into(), Uid::default(), QueueUser(queue.clone())))
    };
    queue.delete(end(1));
    queue.delete(end(2));
    let batch = queue.pop_batch().now_or_never().flatten().expect("the queue is ready");
    queue.delete(end(3));
    queue.delete(end(4));
    drop(batch);
    assert_eq!(queue.len(), 1);
    drop(queue.pop_batch().now_or_never());
    let copy = || {
        let key = ObjectKey::cluster_scoped("b");
        Cached::from_parts(key, 5.into(), Uid::default(), QueueUser(queue.clone()))
    };
    queue.add(copy());
    queue.list_part(vec![copy()]);
    queue.replace(replacement(vec![copy()], 6));
    drop(queue.pop_batch().now_or_never());
}

/// A store with the object `a`, which keeps no handle to the objects that it returns.
struct NonRetainingStore(Mutex<Option<DeltaFifo<QueueUser>>>);

impl KnownObjects<QueueUser> for NonRetainingStore {
    fn known(&self, key: &ObjectKey) -> Option<Cached<QueueUser>> {
        let queue = self.0.lock().clone()?;
        Some(Cached::from_parts(key.clone(), 1.into(), Uid::default(), QueueUser(queue)))
    }

    fn for_each_known(
        &self,
        visit: &mut dyn FnMut(&Cached<QueueUser>),
    ) -> Option<Box<dyn std::any::Any + Send>> {
        self.known(&ObjectKey::cluster_scoped("a")).iter().for_each(visit);
        None
    }
}

#[test]
fn i8_object_dropped_during_a_comparison_can_use_the_queue() {
    let store = Arc::new(NonRetainingStore(Mutex::default()));
    let queue = DeltaFifo::with_known_objects(Arc::clone(&store) as _);
    *store.0.lock() = Some(queue.clone());
    let newer = || {
        let key = ObjectKey::cluster_scoped("a");
        Cached::from_parts(key, 2.into(), Uid::default(), QueueUser(queue.clone()))
    };
    queue.list_part(vec![newer()]);
    assert_eq!(queue.len(), 1);
    queue.replace(replacement(vec![newer()], 3));
    drop(queue.pop_batch().now_or_never());
    queue.resync();
    assert_eq!(queue.len(), 1);
    // Breaks the cycle of references between store and queue.
    store.0.lock().take();
    drop(queue.pop_batch().now_or_never());
}

#[test]
fn i9_batch_that_empties_the_queue_has_the_watermark() {
    let queue = DeltaFifo::new();
    let changes = vec![Delta::Added(object("a", 10, "x")), Delta::Added(object("b", 11, "x"))];
    queue.apply(changes, &11.into());
    let first = queue.pop().now_or_never().flatten().expect("the queue has an item");
    assert_eq!(first.watermark(), None);
    drop(first);
    let second = queue.pop().now_or_never().flatten().expect("the queue has an item");
    assert_eq!(second.watermark(), Some(&11.into()));
    queue.apply(vec![], &12.into());
    drop(second);
    let bookmark = pop_now(&queue);
    assert!(bookmark.items().is_empty());
    assert_eq!(bookmark.watermark(), Some(&12.into()));
    drop(bookmark);
    assert!(is_waiting(&queue));
}

#[tokio::test]
async fn i12_close_wakes_waiters_and_keeps_queued_items() {
    let queue = DeltaFifo::<Object>::new();
    let waiters: Vec<_> = (0..3)
        .map(|_| {
            tokio::spawn({
                let queue = queue.clone();
                async move { queue.pop().await.is_none() }
            })
        })
        .collect();
    tokio::task::yield_now().await;
    queue.close();
    for waiter in waiters {
        assert!(waiter.await.expect("the task does not panic"));
    }
    queue.add(object("late", 1, "x"));
    assert_eq!(drain(&queue), ["late A:x"]);
    assert!(queue.pop_batch().await.is_none());
}

#[tokio::test]
async fn i12_last_batch_of_a_closed_queue_wakes_all_waiters() {
    let queue = DeltaFifo::new();
    queue.add(object("first", 1, "x"));
    let first = pop_now(&queue);
    queue.add(object("last", 2, "x"));
    let pop = || async { queue.pop().await.is_some() };
    let (mut one, mut two) = (Box::pin(pop()), Box::pin(pop()));
    assert!(futures::poll!(&mut one).is_pending() && futures::poll!(&mut two).is_pending());
    queue.close();
    assert!(futures::poll!(&mut one).is_pending() && futures::poll!(&mut two).is_pending());
    drop(first);
    let (one, two) = tokio::join!(one, two);
    assert!(one && !two, "one takes the last item, and the other notices the end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_producers_lose_no_change() {
    const PRODUCERS: u64 = 4;
    const CHANGES: u64 = 2_000;
    let queue = DeltaFifo::<Object>::new();
    let producers: Vec<_> = (0..PRODUCERS)
        .map(|producer| {
            let queue = queue.clone();
            tokio::spawn(async move {
                for change in 0..CHANGES {
                    queue.update(object(&format!("{producer}-{}", change % 7), change + 1, "x"));
                    if change % 100 == 0 {
                        tokio::task::yield_now().await;
                    }
                }
            })
        })
        .collect();
    let consumer = tokio::spawn({
        let queue = queue.clone();
        async move {
            let mut seen = 0;
            while let Some(batch) = queue.pop_batch().await {
                for pending in batch.items() {
                    assert!(pending.deltas.windows(2).all(|pair| {
                        let versions = pair
                            .iter()
                            .filter_map(|delta| delta.object())
                            .map(super::super::cached::Cached::resource_version);
                        versions.clone().is_sorted_by(|a, b| b.is_newer_than(a))
                    }));
                    seen += pending.deltas.len() as u64;
                }
            }
            seen
        }
    });
    for producer in producers {
        producer.await.expect("the task does not panic");
    }
    queue.close();
    assert_eq!(consumer.await.expect("the task does not panic"), PRODUCERS * CHANGES);
}

#[tokio::test]
async fn queue_of_ten_thousand_changes_makes_the_reflector_wait() {
    let queue = DeltaFifo::new();
    let changes =
        |count: usize| -> Vec<_> { (0..count).map(|_| Delta::Updated(object("a", 1, "a"))).collect() };
    queue.apply(changes(9_999), &1.into());
    assert!(queue.wait_for_room().is_none());
    queue.apply(changes(1), &2.into());
    let room = tokio::spawn(queue.wait_for_room().expect("the queue is full"));
    tokio::task::yield_now().await;
    assert!(!room.is_finished());
    drop(queue.pop_batch().await);
    room.await.expect("the task does not panic");
    assert!(queue.wait_for_room().is_none());
}

#[tokio::test]
async fn i12_reflector_does_not_wait_for_a_closed_queue() {
    let queue = DeltaFifo::new();
    queue.apply((0..10_000).map(|_| Delta::Updated(object("a", 1, "a"))).collect(), &1.into());
    let room = tokio::spawn(queue.wait_for_room().expect("the queue is full"));
    tokio::task::yield_now().await;
    queue.close();
    room.await.expect("the task does not panic");
    assert!(queue.wait_for_room().is_none());
}

#[test]
fn i12_closed_or_dropped_queue_ends_waits_for_sync() {
    let queue = DeltaFifo::<Object>::new();
    let synced = queue.synced();
    assert_eq!(synced.wait().now_or_never(), None);
    drop(queue);
    assert_eq!(synced.wait().now_or_never(), Some(Err(crate::NeverSynced)));

    let queue = DeltaFifo::<Object>::new();
    queue.close();
    assert_eq!(queue.synced().wait().now_or_never(), Some(Err(crate::NeverSynced)));

    let queue = DeltaFifo::new();
    queue.replace(replacement(vec![object("a", 1, "a1")], 1));
    queue.close();
    assert_eq!(queue.synced().wait().now_or_never(), None, "queued changes can still be processed");
    let batch = pop_now(&queue);
    assert_eq!(queue.synced().wait().now_or_never(), None);
    drop(batch);
    assert_eq!(queue.synced().wait().now_or_never(), Some(Ok(())));
}

#[tokio::test]
async fn wait_for_more_ignores_requeued_items() {
    let queue = DeltaFifo::new();
    queue.add(object("a", 1, "a"));
    let mut batch = pop_now(&queue);
    batch.requeue(0);
    let more = tokio::spawn(batch.wait_for_more());
    drop(batch);
    tokio::task::yield_now().await;
    assert!(!more.is_finished());
    queue.add(object("b", 1, "b"));
    more.await.expect("the task does not panic");

    let batch = pop_now(&queue);
    queue.add(object("c", 1, "c"));
    assert_eq!(batch.wait_for_more().now_or_never(), Some(()), "a change was queued after the pop");
    drop(batch);
    let batch = pop_now(&queue);
    let more = tokio::spawn(batch.wait_for_more());
    tokio::task::yield_now().await;
    queue.close();
    more.await.expect("the task does not panic");
}

#[test]
fn empty_queue_has_room_after_merged_deletions() {
    let queue = DeltaFifo::new();
    for _ in 0..10_000 {
        queue.delete(Deleted::exact(object("a", 1, "a1")));
        queue.delete(Deleted::exact(object("a", 2, "a2")));
        drop(queue.pop().now_or_never().flatten().expect("the queue has a batch"));
    }
    assert!(queue.is_empty() && queue.wait_for_room().is_none());
}

#[test]
fn requeued_items_do_not_block_producers() {
    let queue = DeltaFifo::new();
    let objects = (0..10_000).map(|name| object(&name.to_string(), 1, "o")).collect();
    queue.replace(replacement(objects, 1));
    assert!(queue.wait_for_room().is_some());
    let mut batch = pop_now(&queue);
    (0..10_000).for_each(|position| batch.requeue(position));
    drop(batch);
    assert!(queue.len() == 10_000 && queue.wait_for_room().is_none());
}

/// A store that signals when all of its objects have been visited, and then waits for the test.
struct Gated {
    store: Arc<Store>,
    entered: std::sync::mpsc::SyncSender<()>,
    proceed: Mutex<std::sync::mpsc::Receiver<()>>,
}

impl KnownObjects<Object> for Gated {
    fn known(&self, key: &ObjectKey) -> Option<Cached<Object>> {
        self.store.known(key)
    }

    fn for_each_known(
        &self,
        visit: &mut dyn FnMut(&Cached<Object>),
    ) -> Option<Box<dyn std::any::Any + Send>> {
        let held = self.store.for_each_known(visit);
        self.entered.send(()).expect("the test waits");
        self.proceed.lock().recv().expect("the test continues");
        held
    }
}

/// Runs `visit`, which visits all known objects, in another thread, and calls `meanwhile` before
/// `visit` ends.
fn during_visit(
    store: &Arc<Store>,
    visit: impl FnOnce(&DeltaFifo<Object>) + Send + 'static,
    meanwhile: impl FnOnce(&DeltaFifo<Object>) + Send + 'static,
) -> DeltaFifo<Object> {
    let (entered, has_entered) = std::sync::mpsc::sync_channel(1);
    let (proceed, may_proceed) = std::sync::mpsc::channel();
    let gated = Gated { store: Arc::clone(store), entered, proceed: Mutex::new(may_proceed) };
    let queue = DeltaFifo::with_known_objects(Arc::new(gated));
    let visitor = std::thread::spawn({
        let queue = queue.clone();
        move || visit(&queue)
    });
    has_entered.recv().expect("`visit` visits the objects");
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn({
        let queue = queue.clone();
        move || {
            meanwhile(&queue);
            _ = done.send(());
        }
    });
    let outcome = is_done.recv_timeout(std::time::Duration::from_secs(10));
    proceed.send(()).expect("the store waits");
    visitor.join().expect("the task does not panic");
    outcome.expect("the queue is not locked while `visit` runs");
    queue
}

#[test]
fn replace_leaves_the_queue_unlocked_while_it_compares() {
    let store = Store::with(vec![object("a", 1, "a1"), object("b", 1, "b1")]);
    let list = |queue: &DeltaFifo<Object>| queue.replace(replacement(vec![object("a", 2, "a2")], 2));
    let queue = during_visit(&store, list, |queue| queue.update(object("c", 3, "c3")));
    assert_eq!(drain(&queue), ["c U:c3", "a R:a2", "b d:b1"]);
}

#[test]
fn resync_skips_objects_that_change_meanwhile() {
    let names = ["changed", "gone", "quiet"];
    let store = Store::with(names.map(|name| object(name, 1, "1")).to_vec());
    let meanwhile = {
        let store = Arc::clone(&store);
        move |queue: &DeltaFifo<Object>| {
            queue.update(object("changed", 2, "2"));
            store.0.lock().remove(&ObjectKey::cluster_scoped("gone"));
        }
    };
    let queue = during_visit(&store, DeltaFifo::resync, meanwhile);
    assert_eq!(drain(&queue), ["changed U:2", "quiet S:?"]);
}

/// A store without objects. Its first visit calls the function.
struct Interrupted(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl KnownObjects<Object> for Interrupted {
    fn known(&self, _: &ObjectKey) -> Option<Cached<Object>> {
        None
    }

    fn for_each_known(&self, _: &mut dyn FnMut(&Cached<Object>)) -> Option<Box<dyn std::any::Any + Send>> {
        let meanwhile = self.0.lock().take();
        if let Some(meanwhile) = meanwhile {
            meanwhile();
        }
        None
    }
}

#[test]
fn i6_initial_list_that_ends_during_a_comparison_stays_ended() {
    let store = Arc::new(Interrupted(Mutex::default()));
    let queue = DeltaFifo::with_known_objects(Arc::clone(&store) as Arc<dyn KnownObjects<Object>>);
    let (listed, late) = (queue.feed("listed"), Arc::new(queue.feed("late")));
    queue.start_feeds();
    listed.replace(replacement(vec![], 1));
    *store.0.lock() = Some(Box::new({
        let (queue, late) = (queue.clone(), Arc::clone(&late));
        move || {
            assert!(late.make_optional());
            assert!(pop_now(&queue).completes_initial_list());
            assert!(queue.has_synced());
        }
    }));
    let key = ObjectKey::namespaced("late", "a");
    late.replace(replacement(vec![Cached::from_parts(key, 2.into(), Uid::default(), "a")], 2));
    let batch = pop_now(&queue);
    assert!(!batch.items()[0].is_in_initial_list() && !batch.completes_initial_list());
}

#[test]
fn i9_half_queued_list_cannot_be_popped() {
    let queue = DeltaFifo::<Object>::new();
    queue.shared.change(State::block_takes);
    queue.add(object("a", 1, "a1"));
    assert!(is_waiting(&queue));
    queue.close();
    assert!(is_waiting(&queue), "the queue is closed, but takes are still blocked");
    queue.shared.change(State::unblock_takes);
    assert_eq!(drain(&queue), ["a A:a1"]);
    assert!(queue.pop_batch().now_or_never().expect("closed").is_none());
}

#[tokio::test]
async fn i9_watermark_of_a_long_list_covers_the_whole_state() {
    const LISTS: u64 = 16;
    const NAMES: u64 = 3 * state::SLICE as u64;
    let store = Arc::new(Store::<Object>::default());
    let queue = DeltaFifo::with_known_objects(Arc::clone(&store) as Arc<dyn KnownObjects<Object>>);
    let producer = std::thread::spawn({
        let queue = queue.clone();
        move || {
            for list in 1..=LISTS {
                // Each list lacks different objects than the previous list.
                let names = (0..NAMES).filter(|name| name % LISTS != list - 1);
                let objects = names.map(|name| object(&name.to_string(), list, "")).collect();
                queue.replace(replacement(objects, list));
                queue.resync();
            }
            queue.close();
        }
    });
    let mut last = ResourceVersion::empty();
    while let Some(batch) = queue.pop_batch().await {
        for pending in batch.items() {
            let delta = pending.last();
            match delta.object().filter(|_| !delta.is_end()) {
                Some(object) => _ = store.0.lock().insert(pending.key.clone(), object.clone()),
                None => _ = store.0.lock().remove(&pending.key),
            }
        }
        if let Some(watermark) = batch.watermark() {
            let objects = store.0.lock();
            assert!(objects.values().all(|object| object.resource_version() == watermark));
            assert_eq!(objects.len() as u64, NAMES - NAMES / LISTS);
            last = watermark.clone();
        }
    }
    assert_eq!(last, LISTS.into());
    producer.join().expect("the task does not panic");
}

#[test]
fn batch_dropped_by_a_panic_is_requeued() {
    let store = Arc::new(Store::<Object>::default());
    let queue = DeltaFifo::with_known_objects(Arc::clone(&store) as Arc<dyn KnownObjects<Object>>);
    queue.replace(replacement(vec![object("a", 1, "a1"), object("b", 1, "b1")], 1));
    for _ in 0..2 {
        let consumer = std::thread::spawn({
            let queue = queue.clone();
            move || {
                let batch = pop_now(&queue);
                assert!(batch.items().is_empty(), "the intended panic");
            }
        });
        assert!(consumer.join().is_err());
        assert!(!queue.has_synced());
    }
    queue.delete(Deleted::exact(object("b", 2, "b2")));
    let batch = pop_now(&queue);
    assert_eq!(contents(&batch), ["a R:a1", "b D:b2"]);
    assert!(batch.completes_initial_list());
    assert_eq!(batch.watermark(), Some(&1.into()));
    drop(batch);
    assert!(queue.has_synced(), "no batch is in flight");
}

#[test]
fn i9_progress_dropped_by_a_panic_is_repeated() {
    let queue = DeltaFifo::<Object>::new();
    queue.replace(replacement(Vec::new(), 7));
    let consumer = std::thread::spawn({
        let queue = queue.clone();
        move || {
            let batch = pop_now(&queue);
            assert!(batch.watermark().is_none(), "the intended panic");
        }
    });
    assert!(consumer.join().is_err());
    let batch = pop_now(&queue);
    assert!(batch.completes_initial_list());
    assert_eq!(batch.watermark(), Some(&7.into()));
    drop(batch);
    assert!(queue.has_synced());
}
