//! The queue compared with a naive model. With any sequence of producer and consumer steps, the
//! consumer's store ends up with the producer's state.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures::FutureExt;
use informer_core::{
    Batch, Cached, Deleted, Delta, DeltaFifo, KnownObjects, ObjectKey, Pending, ReflectorStore, Replacement,
    Uid,
};
use proptest::prelude::*;

type Objects = BTreeMap<ObjectKey, Cached<u64>>;

/// The objects that the consumer has processed.
#[derive(Default)]
struct Store(Mutex<Objects>);

impl Store {
    fn objects(&self) -> Objects {
        self.0.lock().expect("no panic while locked").clone()
    }
}

impl KnownObjects<u64> for Store {
    fn known(&self, key: &ObjectKey) -> Option<Cached<u64>> {
        self.objects().get(key).cloned()
    }

    fn for_each_known(&self, visit: &mut dyn FnMut(&Cached<u64>)) -> Option<Box<dyn std::any::Any + Send>> {
        self.objects().values().for_each(visit);
        None
    }
}

/// A step of a history. Numbers in `Put`, `Delete` and `Relist` are names of objects.
#[derive(Debug, Clone)]
enum Step {
    /// The watch reports an object, new or changed.
    Put(u8),
    /// The watch reports a deletion.
    Delete(u8),
    /// The watch is interrupted. The objects `changed` change and the objects `gone` are deleted
    /// without an event, and then a list arrives in parts of `part` objects. Between the parts the
    /// consumer works. After `breaks_after` parts, if set, the list is interrupted and starts
    /// again.
    Relist { changed: Vec<u8>, gone: Vec<u8>, part: usize, breaks_after: Option<usize> },
    /// All known objects are resynced.
    Resync,
    /// The consumer pops a batch: all keys or one.
    Take { all: bool },
    /// The consumer processes its batch, except for the item at this position, if any.
    Finish { fails: Option<u8> },
}

fn step() -> impl Strategy<Value = Step> {
    let names = || prop::collection::vec(0..12_u8, 0..6);
    prop_oneof![
        6 => (0..12_u8).prop_map(Step::Put),
        3 => (0..12_u8).prop_map(Step::Delete),
        2 => (names(), names(), 1..6_usize, prop::option::of(0..3_usize)).prop_map(
            |(changed, gone, part, breaks_after)| Step::Relist { changed, gone, part, breaks_after }
        ),
        1 => Just(Step::Resync),
        4 => any::<bool>().prop_map(|all| Step::Take { all }),
        4 => prop::option::weighted(0.2, 0..4_u8).prop_map(|fails| Step::Finish { fails }),
    ]
}

/// The producer's state, the queue, and the consumer.
struct World {
    truth: Objects,
    version: u64,
    queue: DeltaFifo<u64>,
    store: Arc<Store>,
    in_flight: Option<Batch<u64>>,
    was_synced: bool,
}

impl World {
    fn new() -> Self {
        let store = Arc::new(Store::default());
        let queue = DeltaFifo::with_known_objects(Arc::clone(&store) as Arc<dyn KnownObjects<u64>>);
        Self { truth: Objects::new(), version: 0, queue, store, in_flight: None, was_synced: false }
    }

    fn key(name: u8) -> ObjectKey {
        ObjectKey::namespaced("ns", &name.to_string())
    }

    fn change(&mut self, name: u8) -> Cached<u64> {
        self.version += 1;
        let object = Cached::from_parts(Self::key(name), self.version.into(), Uid::default(), self.version);
        self.truth.insert(Self::key(name), object.clone());
        object
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::Put(name) if self.truth.contains_key(&Self::key(name)) => {
                let object = self.change(name);
                self.queue.apply(vec![Delta::Updated(object)], &self.version.into());
            }
            Step::Put(name) => {
                let object = self.change(name);
                self.queue.apply(vec![Delta::Added(object)], &self.version.into());
            }
            Step::Delete(name) => {
                if let Some(last) = self.truth.remove(&Self::key(name)) {
                    self.version += 1;
                    self.queue.apply(vec![Delta::Deleted(Deleted::exact(last))], &self.version.into());
                }
            }
            Step::Relist { changed, gone, part, breaks_after } => {
                changed.into_iter().for_each(|name| _ = self.change(name));
                self.truth.retain(|key, _| !gone.iter().any(|name| Self::key(*name) == *key));
                self.version += 1;
                if let Some(parts) = breaks_after {
                    self.list(part, parts);
                    // The next attempt is newer and lacks an object that the interrupted list had.
                    let vanishes = self.truth.keys().next().cloned();
                    vanishes.into_iter().for_each(|key| _ = self.truth.remove(&key));
                    self.version += 1;
                }
                let objects = self.list(part, usize::MAX);
                self.queue.replace(Replacement {
                    objects,
                    quarantined: Vec::new(),
                    complete: true,
                    resource_version: self.version.into(),
                });
            }
            Step::Resync => self.queue.resync(),
            Step::Take { .. } if self.in_flight.is_some() => {}
            Step::Take { all: true } => self.in_flight = self.queue.pop_batch().now_or_never().flatten(),
            Step::Take { all: false } => self.in_flight = self.queue.pop().now_or_never().flatten(),
            Step::Finish { fails } => self.finish(fails.map(usize::from)),
        }
    }

    /// Passes up to `parts` parts of a list to the queue, each of `size` objects. The listed
    /// objects are copies, as if decoded again.
    fn list(&mut self, size: usize, parts: usize) -> Vec<Cached<u64>> {
        let copy = |object: &Cached<u64>| {
            let version = object.resource_version().clone();
            Cached::from_parts(object.key().clone(), version, Uid::default(), **object)
        };
        let objects: Vec<_> = self.truth.values().map(copy).collect();
        let mut listed = Vec::new();
        for part in objects.chunks(size).take(parts) {
            listed.extend(self.queue.list_part(part.to_vec()));
            // Between the parts, the consumer works.
            self.run(Step::Take { all: part.len() % 2 == 0 });
            self.run(Step::Finish { fails: None });
        }
        listed
    }

    /// Applies the batch in flight to the store and checks it; one item can fail and is requeued.
    fn finish(&mut self, fails: Option<usize>) {
        let Some(mut batch) = self.in_flight.take() else { return };
        if self.queue.has_synced() {
            self.was_synced = true;
        }
        let (is_initial, completes) =
            (batch.items().iter().any(Pending::is_in_initial_list), batch.completes_initial_list());
        assert!(
            !self.was_synced || !(is_initial || completes),
            "I6: no batch of the initial list after the sync"
        );
        let fails = fails.filter(|position| *position < batch.items().len());
        if let Some(position) = fails {
            batch.requeue(position);
            assert!(batch.watermark().is_none(), "I9: no watermark while an item is requeued");
        }
        {
            let mut objects = self.store.0.lock().expect("no panic while locked");
            for (_, pending) in
                batch.items().iter().enumerate().filter(|(position, _)| Some(*position) != fails)
            {
                // I2: a key is never queued without a change.
                assert!(!pending.deltas.is_empty(), "{} without a change", pending.key);
                for delta in &pending.deltas {
                    assert_eq!(delta.key(), &pending.key);
                    apply(&mut objects, delta);
                }
            }
        }
        drop(batch);
    }
}

/// Applies a change to the objects of the consumer's store. Versions of an object must not go back
/// (I1).
fn apply(objects: &mut Objects, delta: &Delta<u64>) {
    match delta {
        Delta::Added(object) | Delta::Updated(object) | Delta::Replaced(object) => {
            let before = objects.insert(object.key().clone(), object.clone());
            assert!(before.is_none_or(|before| *before <= **object), "{} goes back", object.key());
        }
        Delta::Sync(key) => {
            assert!(objects.contains_key(key), "only stored objects are resynced");
        }
        Delta::Deleted(deleted) => {
            objects.remove(deleted.key());
        }
        Delta::Released(object) => panic!("{} is released, but the queue has no namespaces", object.key()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]
    #[test]
    fn i2_consumer_ends_with_the_state_of_the_producer(steps in prop::collection::vec(step(), 1..120)) {
        let mut world = World::new();
        for step in steps {
            world.run(step);
        }
        world.finish(None);
        world.run(Step::Take { all: true });
        let watermark = world.in_flight.as_ref().and_then(|batch| batch.watermark().cloned());
        world.finish(None);
        prop_assert!(world.queue.is_empty());
        // I6: all items have been processed, so the initial list is complete.
        prop_assert_eq!(world.queue.has_synced(), world.version > 0);
        // I9: the batch that empties the queue has the watermark, unless an earlier batch had it.
        prop_assert!(watermark.is_none_or(|watermark| watermark == world.version.into()));
        let versions = |objects: &Objects| objects.values().map(|object| (object.key().clone(), **object)).collect::<Vec<_>>();
        prop_assert_eq!(versions(&world.store.objects()), versions(&world.truth));
    }
}

/// Returns the number of random histories to try: the variable `INFORMER_CASES`, or 2,000.
fn cases() -> u32 {
    std::env::var("INFORMER_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(2_000)
}
