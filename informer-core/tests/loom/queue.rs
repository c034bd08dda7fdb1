//! Models of the queue: the consumer misses no item, `close` wakes waiters, and lists are compared
//! with the items in flight.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::FutureExt;
use informer_core::{
    Cached, Delta, DeltaFifo, KnownObjects, ObjectKey, ReflectorStore, Replacement, ResourceVersion, Uid,
};
use loom::future::block_on;
use loom::sync::Mutex;
use loom::thread;

use crate::model;

fn object(name: &str) -> Cached<u64> {
    Cached::from_parts(ObjectKey::cluster_scoped(name), 1.into(), Uid::default(), 0)
}

/// Pops batches until the queue is closed and empty. Returns the keys, sorted.
fn drain(queue: &DeltaFifo<u64>) -> Vec<String> {
    let mut keys = Vec::new();
    while let Some(batch) = block_on(queue.pop_batch()) {
        keys.extend(batch.items().iter().map(|pending| pending.key.to_string()));
    }
    keys.sort();
    keys
}

#[test]
fn items_of_two_producers_are_taken_and_close_ends_waits() {
    model(|| {
        let queue = DeltaFifo::new();
        let producers = ["a", "b"].map(|name| {
            let queue = queue.clone();
            thread::spawn(move || queue.add(object(name)))
        });
        let consumer = thread::spawn({
            let queue = queue.clone();
            move || drain(&queue)
        });
        for producer in producers {
            producer.join().expect("no panic");
        }
        queue.close();
        assert_eq!(consumer.join().expect("no panic"), ["a", "b"]);
    });
}

#[test]
fn close_wakes_a_waiting_consumer() {
    model(|| {
        let queue = DeltaFifo::<u64>::new();
        let consumers = [0, 1].map(|_| {
            let queue = queue.clone();
            thread::spawn(move || drain(&queue))
        });
        queue.close();
        for consumer in consumers {
            assert!(consumer.join().expect("no panic").is_empty());
        }
    });
}

#[test]
fn pop_of_one_key_wakes_the_next_waiter() {
    model(|| {
        let queue = DeltaFifo::new();
        let consumers = [0, 1].map(|_| {
            let queue = queue.clone();
            thread::spawn(move || block_on(queue.pop()).expect("not closed").items()[0].key.to_string())
        });
        queue.apply(vec![Delta::Added(object("a")), Delta::Added(object("b"))], &ResourceVersion::empty());
        let mut taken = consumers.map(|consumer| consumer.join().expect("no panic"));
        taken.sort();
        assert_eq!(taken, ["a", "b"]);
    });
}

#[test]
fn cancelled_pop_does_not_consume_the_wake_up() {
    model(|| {
        let queue = DeltaFifo::new();
        let cancelled = thread::spawn({
            let queue = queue.clone();
            // Polls the pop once and drops it if it would have to wait.
            move || queue.pop_batch().now_or_never().flatten().is_some()
        });
        let producer = thread::spawn({
            let queue = queue.clone();
            move || queue.add(object("a"))
        });
        if !cancelled.join().expect("no panic") {
            let batch = block_on(queue.pop_batch()).expect("not closed");
            assert_eq!(batch.items().len(), 1);
        }
        producer.join().expect("no panic");
    });
}

/// The objects that the consumer of the queue has stored.
#[derive(Default)]
struct Store(Mutex<BTreeMap<ObjectKey, Cached<u64>>>);

impl KnownObjects<u64> for Store {
    fn known(&self, key: &ObjectKey) -> Option<Cached<u64>> {
        self.0.lock().expect("no panic").get(key).cloned()
    }

    fn for_each_known(&self, visit: &mut dyn FnMut(&Cached<u64>)) -> Option<Box<dyn std::any::Any + Send>> {
        self.0.lock().expect("no panic").values().for_each(visit);
        None
    }
}

#[test]
fn i2_list_without_an_object_deletes_it_in_every_state() {
    model(|| {
        let store = Arc::new(Store::default());
        let queue = DeltaFifo::with_known_objects(Arc::clone(&store) as Arc<dyn KnownObjects<u64>>);
        queue.add(object("a"));
        let consumer = thread::spawn({
            let (queue, store) = (queue.clone(), Arc::clone(&store));
            move || {
                while let Some(batch) = block_on(queue.pop_batch()) {
                    for delta in batch.items().iter().flat_map(|pending| &pending.deltas) {
                        let mut objects = store.0.lock().expect("no panic");
                        match delta {
                            Delta::Deleted(deleted) => _ = objects.remove(deleted.key()),
                            other => _ = objects.insert(other.key().clone(), object("a")),
                        }
                    }
                }
            }
        });
        queue.replace(Replacement {
            objects: Vec::new(),
            quarantined: Vec::new(),
            complete: true,
            resource_version: 2.into(),
        });
        queue.close();
        consumer.join().expect("no panic");
        assert!(store.0.lock().expect("no panic").is_empty());
    });
}

#[test]
fn i6_queue_syncs_when_the_initial_list_is_processed() {
    model(|| {
        let queue = DeltaFifo::new();
        let processed = Arc::new(Mutex::new(false));
        let consumer = thread::spawn({
            let (queue, processed) = (queue.clone(), Arc::clone(&processed));
            move || {
                let batch = block_on(queue.pop_batch()).expect("not closed");
                *processed.lock().expect("no panic") = true;
                drop(batch);
            }
        });
        queue.replace(Replacement {
            objects: vec![object("a")],
            quarantined: Vec::new(),
            complete: true,
            resource_version: 2.into(),
        });
        block_on(queue.synced().wait()).expect("the queue is not dropped");
        assert!(*processed.lock().expect("no panic"));
        consumer.join().expect("no panic");
    });
}

#[test]
fn i6_initial_list_in_parts_syncs_after_the_last_part() {
    model(|| {
        let store = Arc::new(Store::default());
        let queue = DeltaFifo::with_known_objects(Arc::clone(&store) as Arc<dyn KnownObjects<u64>>);
        let consumer = thread::spawn({
            let (queue, store) = (queue.clone(), Arc::clone(&store));
            move || {
                let mut deltas = 0;
                while let Some(batch) = block_on(queue.pop_batch()) {
                    for pending in batch.items() {
                        assert!(pending.is_in_initial_list());
                        deltas += pending.deltas.len();
                        store.0.lock().expect("no panic").insert(pending.key.clone(), object("a"));
                    }
                }
                deltas
            }
        });
        let objects = queue.list_part(vec![object("a")]);
        queue.replace(Replacement {
            objects,
            quarantined: Vec::new(),
            complete: true,
            resource_version: 2.into(),
        });
        block_on(queue.synced().wait()).expect("the queue is not dropped");
        assert_eq!(store.0.lock().expect("no panic").len(), 1);
        queue.close();
        assert_eq!(consumer.join().expect("no panic"), 1);
    });
}

#[test]
fn waiting_reflector_continues_after_a_pop_or_close() {
    model(|| {
        let queue = DeltaFifo::new();
        let (reflector, consumer) = (queue.clone(), queue.clone());
        let reflector = thread::spawn(move || {
            for _ in 0..2 {
                reflector.apply(vec![Delta::Added(object("a")), Delta::Updated(object("a"))], &1.into());
                if let Some(room) = reflector.wait_for_room() {
                    block_on(room);
                }
            }
        });
        let consumer = thread::spawn(move || drop(block_on(consumer.pop_batch())));
        consumer.join().expect("no panic");
        queue.close();
        reflector.join().expect("no panic");
    });
}

#[test]
fn consumer_waiting_for_more_is_woken_by_new_items() {
    model(|| {
        let queue = DeltaFifo::new();
        queue.add(object("a"));
        let consumer = thread::spawn({
            let queue = queue.clone();
            move || {
                let mut batch = block_on(queue.pop()).expect("not closed");
                batch.requeue(0);
                let more = batch.wait_for_more();
                drop(batch);
                block_on(more);
            }
        });
        queue.add(object("b"));
        consumer.join().expect("no panic");
    });
}
