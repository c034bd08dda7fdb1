//! Tasks that read from indexes and snapshots. They add and remove the indexes, and keep the
//! snapshots for a while.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::panic_any;
use std::sync::Arc;

use informer_core::{ObjectKey, ResourceVersion};
use informer_factory::Objects;
use informer_store::Snapshot;
use tokio::task::JoinSet;

use crate::Intended;
use crate::item::{BUCKETS, Item};
use crate::world::{World, count};

/// The number of snapshots kept at a time.
const KEPT: usize = 8;

/// Spawns the tasks that read the store.
pub(crate) fn spawn_all(world: &Arc<World>) -> JoinSet<()> {
    let mut readers: JoinSet<_> = (0..2).map(|number| index(Arc::clone(world), number)).collect();
    readers.spawn(keep_snapshots(Arc::clone(world)));
    readers
}

/// Adds indexes, compares their results with a full scan, and removes them.
async fn index(world: Arc<World>, number: u64) {
    let indexer = world.informer.indexer();
    let mut random = world.random(2000 + number);
    while world.progress().await {
        let name = format!("buckets-{number}");
        let buckets = indexer.add_index(&name, |item: &Item| values(item)).expect("a new index name");
        let fallible = format!("some-buckets-{number}");
        let some_buckets = indexer.try_add_index(&fallible, place).expect("a new index name");
        for _ in 0..random.u8(1..4) {
            // I7: all results of one snapshot are consistent.
            let snapshot = indexer.snapshot();
            for value in 0..=BUCKETS {
                let with_value = |item: &Item| values(item).contains(&value);
                assert_eq!(keys(&buckets.get_in(&snapshot, &value)), scan(&snapshot, with_value));
                let placed = |item: &Item| item.bucket > 1 && with_value(item);
                assert_eq!(keys(&some_buckets.get_in(&snapshot, &value)), scan(&snapshot, placed));
            }
            world.progress().await;
        }
        indexer.remove_index(&name).expect("the index exists");
        indexer.remove_index(&fallible).expect("the index exists");
        assert!(buckets.get(&0).is_empty() && some_buckets.get(&2).is_empty());
        count(&world.tally.indexes);
    }
}

/// Returns the two index values of an item: its bucket and the next bucket.
fn values(item: &Item) -> [u8; 2] {
    [item.bucket, item.bucket + 1]
}

/// An index function that fails for one bucket and panics for another.
fn place(item: &Item) -> Result<[u8; 2], &'static str> {
    match item.bucket {
        0 => panic_any(Intended),
        1 => Err("hammered"),
        _ => Ok(values(item)),
    }
}

fn keys(objects: &Objects<Item>) -> BTreeSet<ObjectKey> {
    objects.iter().map(|object| object.key().clone()).collect()
}

fn scan(snapshot: &Snapshot<Item>, wanted: impl Fn(&Item) -> bool) -> BTreeSet<ObjectKey> {
    snapshot.list().iter().filter(|item| wanted(item)).map(|item| item.key().clone()).collect()
}

/// Takes snapshots, keeps each for a while, and checks that its content stays the same and that
/// watermarks never go back.
async fn keep_snapshots(world: Arc<World>) {
    let mut kept: VecDeque<(Snapshot<Item>, BTreeMap<ObjectKey, ResourceVersion>)> = VecDeque::new();
    while world.progress().await {
        let snapshot = world.informer.indexer().snapshot();
        if let Some((before, _)) = kept.back() {
            assert!(snapshot.watermark().is_at_least(before.watermark()));
        }
        let namespaces = ["own", "shared-0", "shared-1", "shared-2", "shared-3"];
        let in_namespaces = namespaces.iter().map(|namespace| {
            let has = |object: &&informer_core::Cached<Item>| object.key().namespace() == Some(namespace);
            snapshot.list().iter().filter(has).count()
        });
        assert_eq!(in_namespaces.sum::<usize>(), snapshot.len());
        kept.push_back((snapshot.clone(), versions(&snapshot)));
        if kept.len() > KEPT
            && let Some((snapshot, before)) = kept.pop_front()
        {
            assert_eq!(versions(&snapshot), before);
        }
        count(&world.tally.snapshots);
    }
}

/// Returns the version of each object in a snapshot, by key.
pub(crate) fn versions(snapshot: &Snapshot<Item>) -> BTreeMap<ObjectKey, ResourceVersion> {
    let entry =
        |object: &informer_core::Cached<Item>| (object.key().clone(), object.resource_version().clone());
    snapshot.list().iter().map(entry).collect()
}
