//! Those who look: at indices, which come and go, and at snapshots, which they keep.

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

/// How many snapshots are kept at a time.
const KEPT: usize = 8;

/// Sets all readers to work.
pub(crate) fn set_to_work(world: &Arc<World>) -> JoinSet<()> {
    let mut readers: JoinSet<_> = (0..2).map(|number| index(Arc::clone(world), number)).collect();
    readers.spawn(keep_snapshots(Arc::clone(world)));
    readers
}

/// Adds indices, compares what they find with a search from end to end, and removes them.
async fn index(world: Arc<World>, number: u64) {
    let indexer = world.informer.indexer();
    let mut random = world.random(2000 + number);
    while world.progress().await {
        let name = format!("buckets-{number}");
        let buckets = indexer.add_index(&name, |item: &Item| values(item)).expect("a new name");
        let fallible = format!("some-buckets-{number}");
        let some_buckets = indexer.try_add_index(&fallible, place).expect("a new name");
        for _ in 0..random.u8(1..4) {
            // I7: whatever is asked of a snapshot, the answers fit together.
            let snapshot = indexer.snapshot();
            for value in 0..=BUCKETS {
                let with_value = |item: &Item| values(item).contains(&value);
                assert_eq!(keys(&buckets.get_in(&snapshot, &value)), search(&snapshot, with_value));
                let placed = |item: &Item| item.bucket > 1 && with_value(item);
                assert_eq!(keys(&some_buckets.get_in(&snapshot, &value)), search(&snapshot, placed));
            }
            world.progress().await;
        }
        indexer.remove_index(&name).expect("it is there");
        indexer.remove_index(&fallible).expect("it is there");
        assert!(buckets.get(&0).is_empty() && some_buckets.get(&2).is_empty());
        count(&world.tally.indices);
    }
}

/// Each item has two: its bucket, and the next.
fn values(item: &Item) -> [u8; 2] {
    [item.bucket, item.bucket + 1]
}

/// An index function that fails for some, and panics for others.
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

fn search(snapshot: &Snapshot<Item>, wanted: impl Fn(&Item) -> bool) -> BTreeSet<ObjectKey> {
    snapshot.list().iter().filter(|item| wanted(item)).map(|item| item.key().clone()).collect()
}

/// Takes snapshots, keeps each for a while, and sees that they stay as they were, and the watermark
/// never goes back.
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

/// The version of each object.
pub(crate) fn versions(snapshot: &Snapshot<Item>) -> BTreeMap<ObjectKey, ResourceVersion> {
    let entry =
        |object: &informer_core::Cached<Item>| (object.key().clone(), object.resource_version().clone());
    snapshot.list().iter().map(entry).collect()
}
