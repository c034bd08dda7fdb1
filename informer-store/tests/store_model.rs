//! Compares a store with a model over random histories. The model is a map that each query scans.
//! The histories contain transactions, replaces, indexes that are added and removed, bursts that
//! grow and shrink tables, and long-lived snapshots.
//!
//! Runs 2,000 histories, or the number in `INFORMER_CASES`.

use std::collections::{BTreeMap, BTreeSet};

use informer_core::{Cached, ObjectKey, Uid};
use informer_store::{Change, Index, Indexer, Objects, Snapshot, StoreWriter, store};
use proptest::prelude::*;

/// An object with tags, which the tests index.
#[derive(Debug, Clone)]
struct Item {
    tags: Vec<u16>,
}

/// The tags for which the function of the strict index fails or panics.
const FAILS: u16 = 6;
const PANICS: u16 = 7;

/// The expected objects: version and tags by key.
type Model = BTreeMap<String, (u64, Vec<u16>)>;

#[derive(Debug, Clone)]
enum Step {
    /// One transaction: each key gets these tags or is removed.
    Change(Vec<(u8, Option<Vec<u16>>)>),
    /// A list: each key has these tags, or is unchanged if `None`. Keys that are not listed are
    /// removed.
    Replace(Vec<(u8, Option<Vec<u16>>)>),
    /// Adds this number of objects in one transaction. Then removes them in one transaction, or with
    /// a list if the flag is `true`.
    Burst(u16, bool),
    AddIndex(Kind),
    RemoveIndex(Kind),
    Snapshot,
}

/// The indexes that may exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// An index by all tags of an item.
    Tags,
    /// An index by the first tag, with a function that may fail or panic.
    Strict,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Tags => "tags",
            Self::Strict => "strict",
        }
    }

    fn add(self, indexer: &Indexer<Item>) -> Index<Item, u16> {
        let added = match self {
            Self::Tags => indexer.add_index(self.name(), |item: &Item| item.tags.clone()),
            Self::Strict => indexer.try_add_index(self.name(), |item: &Item| match item.tags.first() {
                Some(&FAILS) => Err("test failure"),
                // A panic without a message on stderr.
                Some(&PANICS) => std::panic::resume_unwind(Box::new(())),
                first => Ok(first.copied()),
            }),
        };
        added.expect("a free name")
    }

    /// Returns the values of the index function, or `None` if the function fails.
    fn values(self, tags: &[u16]) -> Option<BTreeSet<u16>> {
        match (self, tags.first()) {
            (Self::Tags, _) => Some(tags.iter().copied().collect()),
            (Self::Strict, Some(&(FAILS | PANICS))) => None,
            (Self::Strict, first) => Some(first.into_iter().copied().collect()),
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let tags = || prop::collection::vec(0..8_u16, 0..3);
    let items = |range| prop::collection::vec((0..40_u8, prop::option::weighted(0.7, tags())), range);
    let kind = || prop_oneof![Just(Kind::Tags), Just(Kind::Strict)];
    prop_oneof![
        60 => items(1..8).prop_map(Step::Change),
        8 => items(0..30).prop_map(Step::Replace),
        1 => (0..5_000_u16, any::<bool>()).prop_map(|(count, listed)| Step::Burst(count, listed)),
        8 => kind().prop_map(Step::AddIndex),
        6 => kind().prop_map(Step::RemoveIndex),
        6 => Just(Step::Snapshot),
    ]
}

fn name(n: u8) -> String {
    match n % 3 {
        0 => format!("even/{n}"),
        1 => format!("odd/{n}"),
        _ => format!("{n}"),
    }
}

fn item(name: &str, version: u64, tags: &[u16]) -> Cached<Item> {
    let key = name.parse().expect("a valid key");
    Cached::from_parts(key, version.into(), Uid::default(), Item { tags: tags.to_vec() })
}

/// A snapshot, and the content that the snapshot must keep.
struct Held {
    snapshot: Snapshot<Item>,
    listed: Objects<Item>,
    model: Model,
    indexes: BTreeMap<Kind, Index<Item, u16>>,
}

/// The store and its expected content.
struct World {
    writer: StoreWriter<Item>,
    indexer: Indexer<Item>,
    model: Model,
    version: u64,
    indexes: BTreeMap<Kind, Index<Item, u16>>,
    removed: Vec<Index<Item, u16>>,
    held: Vec<Held>,
}

impl World {
    fn new() -> Self {
        let (writer, indexer) = store::<Item>();
        let (model, indexes) = (Model::new(), BTreeMap::new());
        Self { writer, indexer, model, version: 0, indexes, removed: Vec::new(), held: Vec::new() }
    }

    fn run(&mut self, step: Step) {
        self.version += 1;
        match step {
            Step::Change(items) => self.change(items),
            Step::Replace(items) => self.replace(items),
            Step::Burst(count, listed) => self.burst(count, listed),
            Step::AddIndex(kind) if self.indexes.contains_key(&kind) => {
                assert!(self.indexer.add_index(kind.name(), |_: &Item| None::<u16>).is_err());
            }
            Step::AddIndex(kind) => _ = self.indexes.insert(kind, kind.add(&self.indexer)),
            Step::RemoveIndex(kind) => {
                let removed = self.indexer.remove_index(kind.name());
                assert_eq!(removed.is_ok(), self.indexes.contains_key(&kind));
                self.removed.extend(self.indexes.remove(&kind));
            }
            Step::Snapshot => self.held.push(Held {
                snapshot: self.indexer.snapshot(),
                listed: self.indexer.list(),
                model: self.model.clone(),
                indexes: self.indexes.clone(),
            }),
        }
    }

    fn change(&mut self, items: Vec<(u8, Option<Vec<u16>>)>) {
        let mut changes = Vec::new();
        for (n, tags) in items {
            match tags {
                Some(tags) => {
                    changes.push(Change::Put(item(&name(n), self.version, &tags)));
                    self.model.insert(name(n), (self.version, tags));
                }
                None => {
                    changes.push(Change::Remove(name(n).parse().expect("a valid key")));
                    self.model.remove(&name(n));
                }
            }
        }
        self.writer.transaction(changes, Some(&self.version.into()));
    }

    fn replace(&mut self, items: Vec<(u8, Option<Vec<u16>>)>) {
        let mut model = Model::new();
        for (n, tags) in items {
            let unchanged = self.model.get(&name(n)).cloned();
            if let Some(entry) = tags.map(|tags| (self.version, tags)).or(unchanged) {
                model.insert(name(n), entry);
            }
        }
        let objects = model.iter().map(|(name, (version, tags))| item(name, *version, tags)).collect();
        let before = self.indexer.snapshot();
        self.writer.replace(objects, &self.version.into());
        for (name, entry) in &model {
            let same = before.get_by_key(name).zip(self.indexer.get_by_key(name));
            let kept = same.is_some_and(|(before, after)| before.ptr_eq(&after));
            assert_eq!(kept, self.model.get(name) == Some(entry), "{name} keeps its allocation if unchanged");
        }
        self.model = model;
    }

    fn burst(&mut self, count: u16, listed: bool) {
        let names: Vec<String> = (0..count).map(|n| format!("burst/{n}")).collect();
        // Each object has a unique value, so that the indexes grow too.
        let put = |(name, tag): (&String, u16)| Change::Put(item(name, self.version, &[tag]));
        self.writer.transaction(names.iter().zip(100..).map(put).collect(), None);
        assert_eq!(self.indexer.len(), self.model.len() + usize::from(count));
        assert_eq!(self.indexer.in_namespace("burst").iter().count(), usize::from(count));
        if listed {
            let objects =
                self.model.iter().map(|(name, (version, tags))| item(name, *version, tags)).collect();
            self.writer.replace(objects, &self.version.into());
        } else {
            let remove = |name: &String| Change::Remove(name.parse().expect("a valid key"));
            self.writer.transaction(names.iter().map(remove).collect(), Some(&self.version.into()));
        }
    }

    fn check(&self) {
        check_state(&self.indexer.snapshot(), &self.indexer.list(), &self.model, &self.indexes);
        assert!(self.removed.iter().all(|index| index.values().is_empty() && index.get(&0).is_empty()));
        // I10: exactly the objects that could not be indexed are reported.
        let failing = self.model.iter().filter(|(_, (_, tags))| Kind::Strict.values(tags).is_none());
        let expected: BTreeSet<(String, String)> = match self.indexes.get(&Kind::Strict) {
            Some(_) => failing.map(|(name, (version, _))| (name.clone(), version.to_string())).collect(),
            None => BTreeSet::new(),
        };
        let failures = self.indexer.index_failures();
        let found: BTreeSet<_> = failures
            .iter()
            .map(|failure| (failure.key.to_string(), failure.resource_version.to_string()))
            .collect();
        assert_eq!((failures.len(), found), (expected.len(), expected));
    }
}

fn keys<'a>(objects: impl IntoIterator<Item = &'a Cached<Item>>) -> Vec<String> {
    let mut keys: Vec<String> = objects.into_iter().map(|object| object.key().to_string()).collect();
    keys.sort_unstable();
    keys
}

/// Checks the invariants I3 and I7: objects, indexes and lengths all show the same state.
fn check_state(
    snapshot: &Snapshot<Item>,
    listed: &Objects<Item>,
    model: &Model,
    indexes: &BTreeMap<Kind, Index<Item, u16>>,
) {
    let listed: Vec<(String, (u64, Vec<u16>))> = listed
        .iter()
        .map(|object| {
            let version = object.resource_version().to_string().parse().expect("a number");
            (object.key().to_string(), (version, object.tags.clone()))
        })
        .collect();
    assert_eq!((listed.len(), snapshot.len()), (model.len(), model.len()));
    assert_eq!(&listed.into_iter().collect::<Model>(), model);
    for (name, (_, tags)) in model {
        assert_eq!(snapshot.get_by_key(name).map(|object| object.tags.clone()).as_ref(), Some(tags));
    }
    assert!((0..40).all(|n| snapshot.get_by_key(&name(n)).is_some() == model.contains_key(&name(n))));
    for namespace in ["even", "odd", "burst"] {
        let expected: Vec<&String> =
            model.keys().filter(|name| name.starts_with(namespace) && name.contains('/')).collect();
        assert!(keys(&snapshot.in_namespace(namespace)).iter().eq(expected));
    }
    for (kind, index) in indexes {
        for tag in 0..8 {
            let has = |tags: &[u16]| kind.values(tags).is_some_and(|values| values.contains(&tag));
            let expected: Vec<&String> =
                model.iter().filter(|(_, (_, tags))| has(tags)).map(|(name, _)| name).collect();
            let found = index.get_in(snapshot, &tag);
            assert_eq!(found.len(), expected.len(), "{kind:?} {tag}");
            assert!(keys(&found).iter().eq(expected), "{kind:?} {tag}");
        }
    }
}

/// Checks the queries that an index supports only for the current state.
fn check_queries(indexer: &Indexer<Item>, model: &Model, indexes: &BTreeMap<Kind, Index<Item, u16>>) {
    for (kind, index) in indexes {
        let all = model.values().filter_map(|(_, tags)| kind.values(tags));
        let mut values = index.values();
        values.sort_unstable();
        assert!(
            values.iter().eq(&all.flatten().collect::<BTreeSet<u16>>()),
            "each value once, and only values with objects"
        );
        for (name, (_, tags)) in model {
            let object = indexer.get_by_key(name).expect("the model has the object");
            let Some(values) = kind.values(tags) else {
                assert!(index.with_common_value(&object).is_err());
                continue;
            };
            let shares = |tags: &[u16]| kind.values(tags).is_some_and(|other| !other.is_disjoint(&values));
            let expected: Vec<&String> =
                model.iter().filter(|(_, (_, tags))| shares(tags)).map(|(name, _)| name).collect();
            assert!(
                keys(&index.with_common_value(&object).expect("the function succeeds")).iter().eq(expected)
            );
        }
        for value in index.values() {
            let keys: Vec<ObjectKey> = index.keys(&value);
            assert!(keys.is_sorted() && keys.len() == index.count(&value));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]
    #[test]
    fn i7_store_behaves_like_a_scanned_map(steps in prop::collection::vec(step(), 1..40)) {
        let mut world = World::new();
        for step in steps {
            world.run(step);
            world.check();
        }
        check_queries(&world.indexer, &world.model, &world.indexes);
        for Held { snapshot, listed, model, indexes } in &world.held {
            check_state(snapshot, listed, model, indexes);
        }
    }
}

/// Returns the number of histories to try: the environment variable `INFORMER_CASES`, or 2,000 by
/// default.
fn cases() -> u32 {
    std::env::var("INFORMER_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(2_000)
}
