//! A queue with one feed per namespace, compared with a naive model. Namespaces are watched and
//! released, lists arrive, and the consumer works, in any order. In the end, the consumer's store
//! has exactly the objects of the watched namespaces.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use futures::FutureExt;
use informer_core::{
    Batch, Cached, Deleted, Delta, DeltaFifo, KnownObjects, NamespaceFeed, ObjectKey, ReflectorStore,
    Replacement, ResourceVersion, Uid, Watermarks,
};
use proptest::prelude::*;

const NAMESPACES: [&str; 3] = ["a", "b", "c"];

type Objects = BTreeMap<ObjectKey, Cached<u64>>;

/// The objects that the consumer has processed.
#[derive(Default)]
struct Store(Mutex<Objects>);

impl KnownObjects<u64> for Store {
    fn known(&self, key: &ObjectKey) -> Option<Cached<u64>> {
        self.0.lock().expect("no panic while locked").get(key).cloned()
    }

    fn for_each_known(&self, visit: &mut dyn FnMut(&Cached<u64>)) -> Option<Box<dyn std::any::Any + Send>> {
        let objects = self.0.lock().expect("no panic while locked").clone();
        objects.values().for_each(visit);
        None
    }
}

/// A step of a history. The first number of a step is an index into `NAMESPACES`.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// Fixes the namespaces whose first lists form the initial list of the queue.
    Start,
    Watch(usize),
    Release(usize),
    MakeOptional(usize),
    Put(usize, u8),
    Delete(usize, u8),
    /// A list of the current objects arrives in parts. The second field is their size. If the third
    /// field is set, the list is interrupted after that many parts and not repeated.
    List(usize, usize, Option<usize>),
    Resync,
    Take {
        all: bool,
    },
    /// The consumer processes its batch, except for the item at this position, if any.
    Finish {
        fails: Option<usize>,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let place = || 0..NAMESPACES.len();
    prop_oneof![
        1 => Just(Step::Start),
        2 => place().prop_map(Step::Watch),
        1 => place().prop_map(Step::Release),
        1 => place().prop_map(Step::MakeOptional),
        6 => (place(), 0..4_u8).prop_map(|(place, name)| Step::Put(place, name)),
        2 => (place(), 0..4_u8).prop_map(|(place, name)| Step::Delete(place, name)),
        3 => (place(), 1..4_usize, prop::option::weighted(0.3, 0..2_usize))
            .prop_map(|(place, part, breaks_after)| Step::List(place, part, breaks_after)),
        1 => Just(Step::Resync),
        5 => prop::bool::weighted(0.8).prop_map(|all| Step::Take { all }),
        5 => prop::option::weighted(0.2, 0..4_usize).prop_map(|fails| Step::Finish { fails }),
    ]
}

/// A namespace on the server, and the feed that watches it.
#[derive(Default)]
struct Place {
    truth: Objects,
    /// The objects of the namespace after each change, by resource version.
    history: BTreeMap<u64, Objects>,
    /// The feed, and the version that it has reached, if it has been listed.
    feed: Option<(NamespaceFeed<u64>, Option<u64>)>,
}

struct World {
    places: [Place; NAMESPACES.len()],
    version: u64,
    queue: DeltaFifo<u64>,
    store: Arc<Store>,
    in_flight: Option<Batch<u64>>,
    watermarks: Watermarks,
    /// The last watermark of a batch: the minimum of the watermarks of all namespaces.
    least: ResourceVersion,
    has_started: bool,
    was_synced: bool,
    /// Feeds of namespaces that are no longer watched.
    released: Vec<NamespaceFeed<u64>>,
    /// The keys of all objects that have ever been deleted.
    deleted: BTreeSet<ObjectKey>,
}

impl World {
    fn new() -> Self {
        let store = Arc::new(Store::default());
        Self {
            places: Default::default(),
            version: 0,
            queue: DeltaFifo::with_known_objects(Arc::clone(&store) as Arc<dyn KnownObjects<u64>>),
            store,
            in_flight: None,
            watermarks: Watermarks::default(),
            least: ResourceVersion::empty(),
            has_started: false,
            was_synced: false,
            released: Vec::new(),
            deleted: BTreeSet::new(),
        }
    }

    fn run(&mut self, step: Step) {
        self.perform(step);
        self.check_released();
    }

    fn perform(&mut self, step: Step) {
        match step {
            Step::Start => {
                self.has_started = true;
                self.queue.start_feeds();
            }
            Step::Watch(place) if self.places[place].feed.is_none() => {
                self.places[place].feed = Some((self.queue.feed(NAMESPACES[place]), None));
            }
            Step::Watch(_) => {}
            Step::Release(place) => {
                if let Some((feed, _)) = self.places[place].feed.take() {
                    feed.release();
                    self.released.push(feed);
                }
            }
            Step::MakeOptional(place) => {
                if let Some((feed, reached_version)) = &self.places[place].feed {
                    assert!(
                        !(feed.make_optional() && reached_version.is_some()),
                        "a namespace that has been listed is not made optional"
                    );
                }
            }
            Step::Put(place, name) => self.put(place, name),
            Step::Delete(place, name) => self.delete(place, name),
            Step::List(place, part, breaks_after) => self.list(place, part, breaks_after),
            Step::Resync => self.queue.resync(),
            Step::Take { .. } if self.in_flight.is_some() => {}
            Step::Take { all: true } => self.in_flight = self.queue.pop_batch().now_or_never().flatten(),
            Step::Take { all: false } => self.in_flight = self.queue.pop().now_or_never().flatten(),
            Step::Finish { fails } => self.finish(fails),
        }
    }

    /// Checks that a namespace whose removal is complete has no objects until it is added again.
    fn check_released(&self) {
        for (name, place) in NAMESPACES.iter().zip(&self.places) {
            let last = self.released.iter().rfind(|feed| feed.namespace() == *name);
            if place.feed.is_none() && last.is_some_and(|feed| feed.released().has_synced()) {
                let store = self.store.0.lock().expect("no panic while locked");
                let left = store.keys().find(|key| key.namespace() == Some(name));
                assert_eq!(left, None, "{name} is reported as removed, but has objects");
            }
        }
    }

    fn put(&mut self, place: usize, name: u8) {
        self.version += 1;
        let key = ObjectKey::namespaced(NAMESPACES[place], &name.to_string());
        let object = Cached::from_parts(key.clone(), self.version.into(), Uid::default(), self.version);
        let is_new = self.places[place].truth.insert(key, object.clone()).is_none();
        self.record_change(place, if is_new { Delta::Added(object) } else { Delta::Updated(object) });
    }

    fn delete(&mut self, place: usize, name: u8) {
        let key = ObjectKey::namespaced(NAMESPACES[place], &name.to_string());
        if let Some(last) = self.places[place].truth.remove(&key) {
            self.version += 1;
            self.deleted.insert(key);
            self.record_change(place, Delta::Deleted(Deleted::exact(last)));
        }
    }

    /// Records a change in the history. If the feed of the namespace has been listed, also sends the
    /// change to the feed.
    fn record_change(&mut self, place: usize, delta: Delta<u64>) {
        let place = &mut self.places[place];
        place.history.insert(self.version, place.truth.clone());
        if let Some((feed, Some(reached_version))) = &mut place.feed {
            feed.apply(vec![delta], &self.version.into());
            *reached_version = self.version;
        }
    }

    fn list(&mut self, place: usize, size: usize, breaks_after: Option<usize>) {
        let Some((feed, reached_version)) = self.places[place].feed.take() else { return };
        let copy = |object: &Cached<u64>| {
            let version = object.resource_version().clone();
            Cached::from_parts(object.key().clone(), version, Uid::default(), **object)
        };
        let objects: Vec<_> = self.places[place].truth.values().map(copy).collect();
        let mut listed = Vec::new();
        for part in objects.chunks(size).take(breaks_after.unwrap_or(usize::MAX)) {
            listed.extend(feed.list_part(part.to_vec()));
            // Between the parts, the consumer works.
            self.perform(Step::Take { all: part.len() % 2 == 0 });
            self.perform(Step::Finish { fails: None });
        }
        self.places[place].feed = Some((feed, reached_version));
        if breaks_after.is_none() {
            self.version += 1;
            let (version, place) = (self.version, &mut self.places[place]);
            place.history.insert(version, place.truth.clone());
            let Some((feed, reached_version)) = &mut place.feed else { return };
            feed.replace(Replacement {
                objects: listed,
                quarantined: Vec::new(),
                complete: true,
                resource_version: version.into(),
            });
            *reached_version = Some(version);
        }
    }

    /// Applies the batch in flight to the store and checks it; one item can fail and is requeued.
    fn finish(&mut self, fails: Option<usize>) {
        let Some(mut batch) = self.in_flight.take() else { return };
        self.was_synced |= self.queue.has_synced();
        let is_initial = batch.items().iter().any(informer_core::Pending::is_in_initial_list);
        assert!(
            !self.was_synced || !(is_initial || batch.completes_initial_list()),
            "I6: no batch of the initial list after the sync"
        );
        let fails = fails.filter(|position| *position < batch.items().len());
        if let Some(position) = fails {
            batch.requeue(position);
            assert!(
                batch.watermark().is_none() && batch.namespaces().is_empty(),
                "I9: no watermark while an item is requeued"
            );
        }
        for (position, pending) in batch.items().iter().enumerate() {
            if Some(position) != fails {
                pending.deltas.iter().for_each(|delta| self.apply(delta));
            }
        }
        self.watermarks.apply(batch.namespaces());
        if let Some(least) = batch.watermark() {
            self.least = least.clone();
        }
        for progress in batch.namespaces() {
            let of_place = |key: &ObjectKey| key.namespace() == Some(&*progress.namespace);
            let place =
                NAMESPACES.iter().position(|name| **name == *progress.namespace).expect("a known namespace");
            let Some(reached) = &progress.reached else { continue };
            // If the namespace was released and watched again meanwhile, only the newest feed
            // counts.
            if self.watermarks.of_feed(&progress.namespace, progress.feed) != Some(reached) {
                continue;
            }
            let version: u64 = reached.to_string().parse().expect("a number");
            let stored = self.store.0.lock().expect("no panic while locked");
            let stored: Vec<_> =
                stored.iter().filter(|(key, _)| of_place(key)).map(|(_, object)| **object).collect();
            let truth: Vec<_> =
                self.places[place].history[&version].values().map(|object| **object).collect();
            assert_eq!(stored, truth, "I9: {} at {version}", progress.namespace);
        }
    }

    /// Applies a change to the consumer's store, and checks that the change fits the history.
    fn apply(&self, delta: &Delta<u64>) {
        let mut objects = self.store.0.lock().expect("no panic while locked");
        match delta {
            Delta::Added(object) | Delta::Updated(object) | Delta::Replaced(object) => {
                let before = objects.insert(object.key().clone(), object.clone());
                assert!(before.is_none_or(|before| *before <= **object), "I1: {} goes back", object.key());
            }
            Delta::Sync(key) => {
                assert!(objects.contains_key(key), "only stored objects are resynced");
            }
            Delta::Deleted(deleted) => {
                assert!(self.deleted.contains(deleted.key()), "{} was not deleted", deleted.key());
                objects.remove(deleted.key());
            }
            Delta::Released(object) => {
                let was_released = |feed: &NamespaceFeed<u64>| Some(feed.namespace()) == object.namespace();
                assert!(self.released.iter().any(was_released), "{} was not released", object.key());
                objects.remove(object.key());
            }
        }
    }

    fn check(&self) {
        let watched = self.places.iter().filter_map(|place| place.feed.as_ref());
        let truth: Vec<_> = self
            .places
            .iter()
            .filter(|place| place.feed.is_some())
            .flat_map(|place| place.truth.values().map(|object| (object.key().clone(), **object)))
            .collect();
        let store = self.store.0.lock().expect("no panic while locked");
        let stored: Vec<_> = store.values().map(|object| (object.key().clone(), **object)).collect();
        assert_eq!(stored, truth);
        let reached_version: BTreeMap<_, _> = watched
            .clone()
            .map(|(feed, reached_version)| {
                (
                    feed.namespace(),
                    ResourceVersion::from(reached_version.expect("every feed has been listed")),
                )
            })
            .collect();
        let reached: BTreeMap<_, _> =
            self.watermarks.iter().map(|(namespace, version)| (namespace, version.clone())).collect();
        assert_eq!(reached, reached_version, "I9: the watermarks of the namespaces");
        let least = watched.clone().filter_map(|(_, reached_version)| *reached_version).min();
        assert_eq!(
            self.least,
            least.map_or_else(ResourceVersion::empty, ResourceVersion::from),
            "I9: the lowest watermark"
        );
        assert!(watched.clone().all(|(feed, _)| feed.synced().has_synced()));
        assert!(self.released.iter().all(|feed| feed.released().has_synced()));
        assert!(self.queue.has_synced() && self.queue.is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]
    #[test]
    fn i9_consumer_equals_the_watched_namespaces(
        steps in prop::collection::vec(step(), 1..120)
    ) {
        let mut world = World::new();
        for step in steps {
            world.run(step);
        }
        if !world.has_started {
            world.run(Step::Start);
        }
        for place in 0..NAMESPACES.len() {
            if world.places[place].feed.as_ref().is_some_and(|(_, reached_version)| reached_version.is_none()) {
                world.run(Step::List(place, 2, None));
            }
        }
        world.finish(None);
        world.run(Step::Take { all: true });
        world.finish(None);
        world.check();
    }
}

/// Returns the number of random histories to try: the variable `INFORMER_CASES`, or 2,000.
fn cases() -> u32 {
    std::env::var("INFORMER_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(2_000)
}

#[test]
fn namespace_added_and_removed_at_once_is_released_in_order() {
    let mut world = World::new();
    let steps = [
        Step::Start,
        Step::Watch(0),
        Step::Put(0, 1),
        Step::List(0, 1, None),
        Step::Take { all: true },
        Step::Finish { fails: None },
        Step::Release(0),
        // The second feed has not been listed, but the store has objects of the first feed.
        Step::Watch(0),
        Step::Release(0),
        Step::Take { all: true },
        Step::Finish { fails: None },
    ];
    steps.into_iter().for_each(|step| world.run(step));
    world.check();
}

#[test]
fn unused_feed_keeps_the_objects_of_another_feed() {
    let mut world = World::new();
    let process = |world: &mut World| {
        world.run(Step::Take { all: true });
        world.run(Step::Finish { fails: None });
    };
    for step in [Step::Start, Step::Watch(0), Step::Put(0, 1), Step::List(0, 1, None)] {
        world.run(step);
    }
    process(&mut world);
    // Two threads add the namespace at the same time: the second feed is released without a list.
    let unused = world.queue.feed(NAMESPACES[0]);
    unused.release();
    process(&mut world);
    world.check();
    assert!(!unused.released().has_synced(), "the namespace has the objects of the first feed");
    world.run(Step::Release(0));
    process(&mut world);
    world.check();
    assert!(unused.released().has_synced());
}

/// Returns a queue with a feed that has received a change, but no list.
fn feed_with_a_change() -> (DeltaFifo<u64>, NamespaceFeed<u64>) {
    let queue = DeltaFifo::new();
    let feed = queue.feed("a");
    let key = ObjectKey::namespaced("a", "1");
    let object = Cached::from_parts(key, 1.into(), Uid::default(), 1_u64);
    feed.apply(vec![Delta::Added(object)], &1.into());
    (queue, feed)
}

#[test]
fn objects_of_a_feed_without_a_list_are_released() {
    let (queue, feed) = feed_with_a_change();
    feed.release();
    assert!(!feed.released().has_synced(), "the consumer has not processed the release");
    let batch = queue.pop_batch().now_or_never().flatten().expect("the queue has a batch");
    let [item] = batch.items() else { panic!("{batch:?}") };
    assert!(matches!(item.deltas[..], [Delta::Added(_), Delta::Released(_)]));
    drop(batch);
    assert!(feed.released().has_synced());
}

#[test]
fn change_before_the_list_does_not_sync_a_feed() {
    let (queue, feed) = feed_with_a_change();
    let batch = queue.pop_batch().now_or_never().flatten().expect("the queue has a batch");
    assert!(batch.namespaces().is_empty(), "{batch:?}");
    drop(batch);
    assert!(!feed.synced().has_synced());
}

#[test]
fn first_list_is_complete_without_optional_namespaces() {
    let mut world = World::new();
    let is_synced = |world: &mut World| {
        world.run(Step::Take { all: true });
        world.run(Step::Finish { fails: None });
        world.queue.has_synced()
    };
    for step in [Step::Watch(0), Step::Watch(1), Step::Watch(2), Step::Start, Step::Put(2, 1)] {
        world.run(step);
    }
    world.run(Step::MakeOptional(1));
    world.run(Step::MakeOptional(2));
    assert!(!is_synced(&mut world), "the first namespace has not been listed");
    world.run(Step::MakeOptional(0));
    assert!(!is_synced(&mut world), "no namespace has been listed");
    world.run(Step::List(0, 1, None));
    assert!(is_synced(&mut world));
    // The initial list is complete, so the objects of this list do not belong to the initial list.
    // `World::finish` checks this.
    world.run(Step::List(2, 1, None));
    assert!(is_synced(&mut world));
    assert_eq!(world.store.0.lock().expect("no panic while locked").len(), 1);
}
