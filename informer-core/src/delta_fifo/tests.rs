//! What the queue promises its producers and its consumer; the names follow client-go's `delta_fifo_test.go` where there
//! is a counterpart.

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

fn replacement(objects: Vec<Cached<Object>>, version: u64) -> Replacement<Object> {
    Replacement { objects, set_aside: Vec::new(), complete: true, resource_version: version.into() }
}

#[derive(Default)]
struct Store(Mutex<BTreeMap<ObjectKey, Cached<Object>>>);

impl Store {
    fn with(objects: Vec<Cached<Object>>) -> Arc<Self> {
        let map = objects.into_iter().map(|object| (object.key().clone(), object)).collect();
        Arc::new(Self(Mutex::new(map)))
    }
}

impl KnownObjects<Object> for Store {
    fn known(&self, key: &ObjectKey) -> Option<Cached<Object>> {
        self.0.lock().get(key).cloned()
    }

    fn for_each_known(&self, visit: &mut dyn FnMut(&Cached<Object>)) {
        self.0.lock().values().for_each(visit);
    }
}

/// One letter a change, with what it carries: `A:new`, `D:last` (exact), `d:last` (missed).
fn shown(delta: &Delta<Object>) -> String {
    let letter = match delta {
        Delta::Added(_) => 'A',
        Delta::Updated(_) => 'U',
        Delta::Replaced(_) => 'R',
        Delta::Sync(_) => 'S',
        Delta::Deleted(deleted) if deleted.is_exact() => 'D',
        Delta::Deleted(_) => 'd',
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
fn i2_changes_of_a_key_gather_in_one_entry_and_keys_keep_their_order() {
    let queue = DeltaFifo::new();
    queue.add(object("a", 1, "a1"));
    queue.add(object("b", 2, "b1"));
    queue.update(object("a", 3, "a2"));
    assert_eq!(queue.len(), 2);
    assert_eq!(drain(&queue), ["a A:a1,U:a2", "b A:b1"]);
    assert!(queue.is_empty() && is_waiting(&queue));
}

#[test]
fn i2_pop_takes_keys_one_by_one_and_a_taken_key_can_be_queued_again() {
    let queue = DeltaFifo::new();
    for name in ["a", "b", "c"] {
        queue.add(object(name, 1, "x"));
    }
    let first = queue.pop().now_or_never().flatten().expect("an item");
    assert_eq!(contents(&first), ["a A:x"]);
    queue.update(object("c", 2, "y"));
    queue.update(object("a", 3, "z"));
    assert_eq!(drain(&queue), ["b A:x", "c A:x,U:y", "a U:z"]);
}

#[test]
fn two_deletions_in_a_row_become_one_and_the_real_last_state_wins() {
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
fn a_creation_after_a_queued_deletion_is_not_lost() {
    let queue = DeltaFifo::new();
    queue.delete(Deleted::exact(object("a", 1, "old")));
    queue.add(object("a", 2, "new"));
    assert_eq!(drain(&queue), ["a D:old,A:new"]);
}

#[test]
fn replace_deletes_what_is_known_and_not_listed_with_its_last_known_state() {
    let store = Store::with(vec![object("a", 1, "a1"), object("b", 1, "b1"), object("c", 1, "c1")]);
    let queue = DeltaFifo::with_known_objects(store);
    queue.replace(replacement(vec![object("a", 1, "copy"), object("b", 5, "b2")], 6));
    // "a" is unchanged: the known object is handed on, not its copy.
    assert_eq!(drain(&queue), ["a R:a1", "b R:b2", "c d:c1"]);
}

#[test]
fn replace_deletes_what_is_only_queued() {
    let queue = DeltaFifo::new();
    queue.add(object("added", 1, "x"));
    queue.delete(Deleted::exact(object("gone", 1, "x")));
    queue.add(object("listed", 1, "x"));
    queue.replace(replacement(vec![object("listed", 1, "y")], 2));
    assert_eq!(drain(&queue), ["added A:x,d:x", "gone D:x", "listed A:x,R:y"]);
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
fn replace_deletes_what_is_just_being_processed_with_its_newest_state() {
    let store = Store::with(vec![object("a", 1, "a1")]);
    let queue = DeltaFifo::with_known_objects(store);
    queue.update(object("a", 2, "a2"));
    queue.add(object("b", 3, "b1"));
    queue.delete(Deleted::exact(object("c", 4, "c1")));
    let in_flight = pop_now(&queue);
    queue.replace(replacement(vec![], 5));
    assert_eq!(contents(&in_flight).len(), 3);
    assert_eq!(drain(&queue).into_iter().collect::<std::collections::BTreeSet<_>>(), {
        ["a d:a2", "b d:b1"].map(String::from).into()
    });
}

#[test]
fn i10_replace_leaves_alone_what_exists_but_was_set_aside() {
    let store = Store::with(vec![object("broken", 1, "last good")]);
    let queue = DeltaFifo::with_known_objects(store);
    queue.add(object("queued", 2, "x"));
    let set_aside = ["broken", "queued"].map(ObjectKey::cluster_scoped).to_vec();
    queue.replace(Replacement { objects: vec![], set_aside, complete: true, resource_version: 3.into() });
    assert_eq!(drain(&queue), ["queued A:x"]);
}

#[test]
fn i10_replace_deletes_nothing_where_an_object_exists_that_nobody_can_name() {
    let store = Store::with(vec![object("a", 1, "a1"), object("b", 1, "b1")]);
    let queue = DeltaFifo::with_known_objects(store);
    queue.replace(Replacement { complete: false, ..replacement(vec![object("a", 2, "a2")], 3) });
    assert_eq!(drain(&queue), ["a R:a2"]);
}

#[test]
fn resync_hands_out_known_objects_that_have_nothing_pending() {
    let store = Store::with(vec![object("a", 1, "a1"), object("b", 1, "b1"), object("c", 1, "c1")]);
    let queue = DeltaFifo::with_known_objects(store);
    queue.update(object("b", 2, "b2"));
    let in_flight = pop_now(&queue);
    queue.update(object("c", 3, "c2"));
    queue.resync();
    assert_eq!(drain(&queue), ["c U:c2", "a S:a1"]);
    drop(in_flight);
}

#[test]
fn the_first_list_is_complete_once_its_last_object_has_been_processed() {
    let queue = DeltaFifo::new();
    assert!(!queue.has_synced());
    queue.replace(replacement(vec![object("a", 1, "x"), object("b", 1, "x")], 1));
    queue.add(object("c", 2, "x"));
    let first = queue.pop().now_or_never().flatten().expect("an item");
    assert!(first.is_in_initial_list(0) && !first.completes_initial_list());
    drop(first);
    let second = pop_now(&queue);
    assert!(second.completes_initial_list());
    assert_eq!((second.is_in_initial_list(0), second.is_in_initial_list(1)), (true, false));
    assert!(!queue.has_synced(), "not before it has been processed");
    drop(second);
    assert!(queue.has_synced());
}

#[test]
fn an_empty_first_list_is_complete_once_the_consumer_has_heard_of_it() {
    let queue = DeltaFifo::<Object>::new();
    queue.replace(replacement(vec![], 7));
    assert!(!queue.has_synced());
    let batch = pop_now(&queue);
    assert!(batch.items().is_empty() && batch.completes_initial_list());
    assert_eq!(batch.watermark(), Some(&7.into()));
    assert!(is_waiting(&queue), "it is announced once");
    drop(batch);
    assert!(queue.has_synced());
}

#[test]
fn a_queue_that_is_filled_by_single_changes_is_synced_at_once() {
    let queue = DeltaFifo::new();
    queue.add(object("a", 1, "x"));
    assert!(queue.has_synced());
}

#[test]
fn i9_a_watermark_comes_with_the_batch_that_empties_the_queue() {
    let queue = DeltaFifo::new();
    let changes = vec![Delta::Added(object("a", 10, "x")), Delta::Added(object("b", 11, "x"))];
    queue.apply(changes, &11.into());
    let first = queue.pop().now_or_never().flatten().expect("an item");
    assert_eq!(first.watermark(), None);
    let second = queue.pop().now_or_never().flatten().expect("an item");
    assert_eq!(second.watermark(), Some(&11.into()));
    queue.apply(vec![], &12.into());
    let bookmark = pop_now(&queue);
    assert!(bookmark.items().is_empty());
    assert_eq!(bookmark.watermark(), Some(&12.into()));
    assert!(is_waiting(&queue));
}

#[tokio::test]
async fn i12_closing_wakes_every_waiter_and_what_is_queued_can_still_be_taken() {
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
        assert!(waiter.await.expect("no panic"));
    }
    queue.add(object("late", 1, "x"));
    assert_eq!(drain(&queue), ["late A:x"]);
    assert!(queue.pop_batch().await.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_between_many_producers_and_one_consumer() {
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
        producer.await.expect("no panic");
    }
    queue.close();
    assert_eq!(consumer.await.expect("no panic"), PRODUCERS * CHANGES);
}
