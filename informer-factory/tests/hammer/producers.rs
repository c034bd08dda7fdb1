//! Tasks that change objects, read their own writes, and disturb the watch.

use std::sync::Arc;

use fastrand::Rng;
use informer_core::{Cached, ListWatchError, ObjectKey};
use informer_testing::Error;
use tokio::task::JoinSet;

use crate::item::{BUCKETS, Item};
use crate::world::{World, count, refusal, within};

/// The number of producers, the tasks that write objects.
const PRODUCERS: u64 = 8;

/// The number of objects of each producer that no other producer writes.
const OWN_KEYS: u64 = 24;

/// The number of objects that all producers write.
const SHARED_KEYS: u64 = 160;

/// The outcome of a write.
enum Written {
    Stored(Cached<Item>),
    Removed(Cached<Item>),
    /// Another producer changed the object first.
    Refused,
}

/// Whether open watches receive a write.
#[derive(Clone, Copy)]
enum Visibility {
    Seen,
    Unseen,
}

/// Spawns all producers, the tasks that write objects.
pub(crate) fn spawn_all(world: &Arc<World>) -> JoinSet<()> {
    (0..PRODUCERS).map(|number| produce(Arc::clone(world), number)).collect()
}

/// Writes objects until [`World::time_is_up`] returns `true`.
async fn produce(world: Arc<World>, number: u64) {
    let mut random = world.random(number);
    while !world.time_is_up() {
        for _ in 0..random.u8(1..16) {
            let key = shared_key(&mut random);
            write(&world, &mut random, &key, Visibility::Seen);
        }
        write_and_read(&world, &mut random, number).await;
        if random.u8(..64) == 0 {
            disturb_watch(&world, &mut random).await;
        }
        if random.u8(..32) == 0 {
            world.phase.send_modify(|phase| *phase += 1);
        }
        world.progress.send_modify(|progress| *progress += 1);
        // If the informer has stopped, no other await in this loop yields to other tasks.
        tokio::task::yield_now().await;
    }
}

fn shared_key(random: &mut Rng) -> ObjectKey {
    let number = random.u64(..SHARED_KEYS);
    ObjectKey::new(Some(&format!("shared-{}", number % 4)), &number.to_string())
}

/// Creates, changes or deletes an object; changes are the most frequent.
fn write(world: &World, random: &mut Rng, key: &ObjectKey, visibility: Visibility) -> Written {
    let source = &world.source;
    let item = Item::new(key.namespace().unwrap_or_default(), key.name(), random.u8(..BUCKETS), &world.items);
    let is_there = source.get(key).is_some();
    let removes = is_there && random.u8(..8) == 0;
    let outcome = match (visibility, is_there) {
        (Visibility::Seen, _) if removes => source.delete(key),
        (Visibility::Unseen, _) if removes => source.delete_unseen(key),
        (Visibility::Seen, true) => source.update(item),
        (Visibility::Unseen, true) => source.update_unseen(item),
        (Visibility::Seen, false) => source.create(item),
        (Visibility::Unseen, false) => source.create_unseen(item),
    };
    count(&world.tally.writes);
    match outcome {
        Ok(removed) if removes => Written::Removed(removed),
        Ok(stored) => Written::Stored(stored),
        Err(Error::Refused(_)) => {
            count(&world.tally.refused);
            Written::Refused
        }
        Err(other) => panic!("the write of {key} failed: {other}"),
    }
}

/// Checks invariant I9: writes an object, and checks that the store has the write once the store
/// has reached the version of the write.
async fn write_and_read(world: &World, random: &mut Rng, number: u64) {
    let key = ObjectKey::new(Some("own"), &format!("{number}-{}", random.u64(..OWN_KEYS)));
    let (version, expected) = match write(world, random, &key, Visibility::Seen) {
        Written::Stored(object) => {
            let version = object.resource_version().clone();
            (version.clone(), Some(version))
        }
        Written::Removed(object) => (object.resource_version().clone(), None),
        Written::Refused => panic!("no other producer writes {key}"),
    };
    if !world.reach(&version).await {
        return;
    }
    let stored = world.informer.get(&key).map(|object| object.resource_version().clone());
    assert_eq!(stored, expected, "{key} after version {version} was reached");
    count(&world.tally.own_writes_read);
}

/// Disturbs the open watch, unless another producer is disturbing it.
async fn disturb_watch(world: &World, random: &mut Rng) {
    let Ok(_alone) = world.fault.try_lock() else { return };
    let source = &world.source;
    let open = world.shutdown.run_until_cancelled(source.wait_for_watches(1));
    if within("the watch to be open", open).await.is_none() {
        return;
    }
    // Faults that cause a backoff of the reflector are rare, because all other tasks wait during the
    // backoff.
    match random.u8(..64) {
        0 => source.fail_watches(refusal(500, "InternalError")),
        1 => lose_events(world, random, Some(refusal(503, "ServiceUnavailable"))),
        2..=5 => source.bookmark(),
        6..=11 => source.fail_watches(ListWatchError::Interrupted("hammered".into())),
        12..=31 => source.disconnect(),
        _ => lose_events(world, random, None),
    }
    count(&world.tally.faults);
}

/// Hides some changes from the watch, and then ends the watch with an expired version. So only a
/// list can deliver these changes. `list_error` fails the first list.
fn lose_events(world: &World, random: &mut Rng, list_error: Option<ListWatchError>) {
    for _ in 0..random.u8(1..32) {
        let key = shared_key(random);
        write(world, random, &key, Visibility::Unseen);
    }
    list_error.into_iter().for_each(|error| world.source.fail_next_list(error));
    world.source.expire();
    world.source.fail_watches(refusal(410, "Expired"));
}
