//! A mutation cache compared with the truth: a server with several writers, a store and a handler
//! that lag behind it, and writes that are recorded late. A read is never older than the store or
//! than this process's writes, and never returns a deleted object.

use informer_core::{Cached, Deleted, EventHandler, ObjectKey};
use informer_store::{Change, Index, Indexer, MutationCache, MutationCacheOptions, StoreWriter, store};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

const KEYS: u8 = 2;

/// The steps of a test case. Versions count the server's events. A UID is the version of the
/// creation.
#[derive(Debug, Clone)]
enum Step {
    /// This process creates or updates an object, and records the write now or later.
    Write {
        key: u8,
        record_now: bool,
    },
    /// Another client creates or updates an object.
    WriteOfOthers {
        key: u8,
    },
    Delete {
        key: u8,
    },
    /// The store receives this number of events, with or without moving its watermark.
    Deliver {
        count: usize,
        watermark: bool,
    },
    /// The handler receives this number of events; deletions can be missed and inferred later.
    Handle {
        count: usize,
        exact: bool,
    },
    /// Records the oldest write that has not been recorded yet.
    Record,
    /// Reads all objects, which evicts outdated writes.
    Read,
}

fn a_step() -> impl Strategy<Value = Step> {
    let key = || 0..KEYS;
    prop_oneof![
        4 => (key(), any::<bool>()).prop_map(|(key, record_now)| Step::Write { key, record_now }),
        2 => key().prop_map(|key| Step::WriteOfOthers { key }),
        2 => key().prop_map(|key| Step::Delete { key }),
        3 => (1..4_usize, prop::bool::weighted(0.2)).prop_map(|(count, watermark)| Step::Deliver { count, watermark }),
        3 => (1..4_usize, any::<bool>()).prop_map(|(count, exact)| Step::Handle { count, exact }),
        2 => Just(Step::Record),
        2 => Just(Step::Read),
    ]
}

/// An event on the server.
#[derive(Debug, Clone, Copy)]
struct ServerEvent {
    key: u8,
    version: u64,
    uid: u64,
    is_deletion: bool,
}

impl ServerEvent {
    fn object(&self, version: u64) -> Cached<()> {
        Cached::from_parts(key(self.key), version.into(), self.uid.to_string().as_str().into(), ())
    }
}

fn key(n: u8) -> ObjectKey {
    ObjectKey::cluster_scoped(&format!("o{n}"))
}

struct World {
    history: Vec<ServerEvent>,
    delivered: usize,
    handled: usize,
    to_be_recorded: Vec<ServerEvent>,
    recorded: Vec<ServerEvent>,
    writer: StoreWriter<()>,
    indexer: Indexer<()>,
    all: Index<(), String>,
    cache: MutationCache<()>,
}

impl World {
    fn new(include_adds: bool) -> Self {
        let (writer, indexer) = store();
        let all = indexer.add_index("all", |(): &()| ["all".to_owned()]).expect("a free name");
        let options = MutationCacheOptions::new().include_adds(include_adds).capacity(1_000);
        Self {
            history: Vec::new(),
            delivered: 0,
            handled: 0,
            to_be_recorded: Vec::new(),
            recorded: Vec::new(),
            cache: MutationCache::with_options(indexer.clone(), options),
            writer,
            indexer,
            all,
        }
    }

    fn last(&self, key: u8) -> Option<ServerEvent> {
        self.history.iter().rev().find(|event| event.key == key).copied()
    }

    fn write(&mut self, key: u8) -> ServerEvent {
        let version = self.history.len() as u64 + 1;
        let uid = self.last(key).filter(|last| !last.is_deletion).map_or(version, |last| last.uid);
        let event = ServerEvent { key, version, uid, is_deletion: false };
        self.history.push(event);
        event
    }

    fn record(&mut self, write: ServerEvent) {
        self.cache.record(write.object(write.version));
        self.recorded.push(write);
    }

    fn handle(&self, event: &ServerEvent, exact: bool) {
        if !event.is_deletion {
            self.cache.on_add(&event.object(event.version), false);
        } else if exact {
            self.cache.on_delete(&Deleted::exact(event.object(event.version)));
        } else {
            let creation = event.object(event.uid);
            self.cache.on_delete(&Deleted::missed(key(event.key), Some(creation)));
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Write { key, record_now } => {
                let write = self.write(key);
                if record_now { self.record(write) } else { self.to_be_recorded.push(write) }
            }
            Step::WriteOfOthers { key } => drop(self.write(key)),
            Step::Delete { key } => {
                if let Some(last) = self.last(key).filter(|last| !last.is_deletion) {
                    let version = self.history.len() as u64 + 1;
                    self.history.push(ServerEvent { version, is_deletion: true, ..last });
                }
            }
            Step::Deliver { count, watermark } => {
                let end = (self.delivered + count).min(self.history.len());
                let change = |event: &ServerEvent| match event.is_deletion {
                    true => Change::Remove(key(event.key)),
                    false => Change::Put(event.object(event.version)),
                };
                let changes = self.history[self.delivered..end].iter().map(change).collect();
                let version = (end as u64).into();
                self.writer.transaction(changes, Some(&version).filter(|_| watermark && end > 0));
                self.delivered = end;
            }
            Step::Handle { count, exact } => {
                let end = (self.handled + count).min(self.delivered);
                self.history[self.handled..end].iter().for_each(|event| self.handle(event, exact));
                self.handled = end;
            }
            Step::Record if !self.to_be_recorded.is_empty() => {
                let write = self.to_be_recorded.remove(0);
                self.record(write);
            }
            Step::Record | Step::Read => {}
        }
    }

    fn was_deleted(&self, uid: &str, until: usize) -> bool {
        self.history[..until].iter().any(|event| event.is_deletion && event.uid.to_string() == uid)
    }

    fn check(&self, include_adds: bool) -> Result<(), TestCaseError> {
        let mut by_index = self.cache.by_index(&self.all, "all");
        by_index.sort_by_key(|object| object.key().clone());
        let mut by_key = Vec::new();
        for n in 0..KEYS {
            let (read, stored) = (self.cache.get(&key(n)), self.indexer.get(&key(n)));
            let is_at_least = |version: &informer_core::ResourceVersion| {
                read.as_ref().is_some_and(|read| read.resource_version().is_at_least(version))
            };
            match (&read, &stored) {
                (_, Some(stored)) => {
                    prop_assert!(is_at_least(stored.resource_version()), "{read:?} is older than {stored:?}");
                }
                (Some(read), None) => {
                    prop_assert!(include_adds, "{read:?} is not in the store");
                    prop_assert!(
                        !self.was_deleted(&read.uid().to_string(), self.handled),
                        "{read:?} is deleted"
                    );
                    prop_assert!(
                        !self.indexer.watermark().is_at_least(read.resource_version()),
                        "{read:?} is deleted"
                    );
                }
                (None, None) => {}
            }
            // The newest recorded write, unless the store has received the deletion of its object.
            let own = self.recorded.iter().filter(|write| write.key == n).max_by_key(|write| write.version);
            if let Some(own) = own.filter(|_| include_adds || stored.is_some())
                && !self.was_deleted(&own.uid.to_string(), self.delivered)
            {
                prop_assert!(is_at_least(&own.version.into()), "{read:?} is older than {own:?}");
            }
            by_key.extend(read);
        }
        prop_assert_eq!(format!("{by_index:?}"), format!("{by_key:?}"), "queries by index and by key differ");
        Ok(())
    }
}

#[test]
fn reads_are_never_older_than_store_or_own_writes() {
    // The number of histories to try: `INFORMER_CASES`; default: 2,000.
    let cases = std::env::var("INFORMER_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(2_000);
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let histories = (any::<bool>(), prop::collection::vec(a_step(), 0..60));
    let outcome = runner.run(&histories, |(include_adds, steps)| {
        let mut world = World::new(include_adds);
        for step in &steps {
            world.step(step);
            if matches!(step, Step::Read) {
                world.check(include_adds)?;
            }
        }
        world.check(include_adds)
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}
