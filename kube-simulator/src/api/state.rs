//! [`Api`]: the served resources with their objects, and the state that all requests share.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::autoscaling;
use super::catalogue::{Catalogue, Served};
use super::clock::Clock;
use super::controllers;
use super::writes::{Stamp, in_seconds};
use crate::kinds::ResourceKind;
use crate::storage::{Backup, Retention, Revision, Table};

/// The options of a simulated server: the limits of its history, its first revision and date, its
/// random seed, and switches for controllers, namespaces and pods.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Behavior {
    pub(crate) retention: Retention,
    /// The time between compactions; zero disables them.
    pub(crate) compaction_interval: Duration,
    pub(crate) first_revision: u64,
    pub(crate) seed: u64,
    pub(crate) start_date: SystemTime,
    /// Whether the garbage collector and the namespace controller are simulated.
    pub(crate) controllers: bool,
    /// Whether a namespace must exist before clients can create objects in it.
    pub(crate) namespaces_required: bool,
    /// Whether scheduled pods wait for a kubelet when they are deleted.
    pub(crate) graceful_pods: bool,
}

#[derive(Debug)]
pub(crate) struct Api {
    pub(crate) catalogue: Catalogue,
    pub(crate) behavior: Behavior,
    pub(crate) revision: Revision,
    pub(crate) clock: Clock,
    /// Cancelled when the simulator stops.
    pub(crate) stop: CancellationToken,
    random: Mutex<fastrand::Rng>,
}

impl Api {
    pub(crate) fn new(behavior: Behavior) -> Self {
        Self {
            catalogue: Catalogue::default(),
            revision: Revision::starting_at(behavior.first_revision, behavior.compaction_interval),
            clock: Clock::starting_at(behavior.start_date),
            stop: CancellationToken::new(),
            random: Mutex::new(fastrand::Rng::with_seed(behavior.seed)),
            behavior,
        }
    }

    /// Serves a resource unless it is already served.
    pub(crate) fn register(&self, kind: ResourceKind) {
        // A restore must not miss the new table.
        let _serving = self.catalogue.serving.lock();
        let (path, v1_kind) = (kind.collection_path(), autoscaling::v1_kind(&kind));
        self.catalogue.add(path.clone(), || {
            let table = self.new_table(kind.clone());
            Served::new(kind, table, self.stop.child_token())
        });
        if let (Some(kind), Some(served)) = (v1_kind, self.catalogue.at(&path)) {
            let other = || Served::new(kind.clone(), Arc::clone(&served.table), served.gone.clone());
            self.catalogue.add(kind.collection_path(), other);
        }
    }

    /// Creates an empty table for objects of a resource. The table stores them in the API version
    /// of `kind`. The caller adds the table to the catalogue.
    pub(crate) fn new_table(&self, kind: ResourceKind) -> Arc<Table> {
        Arc::new(Table::new(kind, self.behavior.retention, self.revision.clone()))
    }

    /// Makes the history of all resources unavailable to new watches, and to lists at an exact
    /// version. Open watches continue.
    pub(crate) fn compact(&self) {
        for table in self.catalogue.tables() {
            table.compact();
        }
    }

    /// Removes the history of all resources. Open watches end cleanly.
    pub(crate) fn clear_history(&self) {
        for table in self.catalogue.tables() {
            table.clear_history();
        }
    }

    pub(crate) fn backup(&self) -> Backup {
        loop {
            let tables = self.catalogue.tables();
            let backup = Backup::of(&tables, &self.revision);
            let is_copied = |table: &Arc<Table>| tables.iter().any(|copied| Arc::ptr_eq(copied, table));
            // The copy lacks a resource that was added meanwhile, even if the resource has writes up
            // to the backup's revision.
            if self.catalogue.tables().iter().all(is_copied) {
                return backup;
            }
        }
    }

    /// Replaces all objects, and sets the newest resource version to the result of `version`. The
    /// argument of `version` is the newest resource version before the restore.
    pub(crate) fn restore(&self, backup: &Backup, version: impl FnOnce(u64) -> u64) {
        // Until the definitions are replaced, no other thread may serve the resource of a
        // definition that the backup lacks.
        let _serving = self.catalogue.serving.lock();
        controllers::restore_definitions(self, backup);
        backup.restore(&self.catalogue.tables(), &self.revision, version);
    }

    /// Returns the current time in the format of timestamps in objects.
    pub(crate) fn now(&self) -> String {
        in_seconds(self.clock.now())
    }

    pub(crate) fn stamp(&self) -> Stamp {
        Stamp::new(&mut self.random.lock(), self.clock.now())
    }

    /// Returns a new generator of random numbers, seeded by the simulator's generator. Later,
    /// neither generator affects the other.
    pub(crate) fn fork_random(&self) -> fastrand::Rng {
        self.random.lock().fork()
    }

    /// Draws the duration of a watch whose request has no `timeoutSeconds`: 30 to 60 minutes. The
    /// duration is random, so that watches do not end all at once.
    pub(crate) fn draw_watch_timeout(&self) -> Duration {
        Duration::from_secs(self.random.lock().u64(1800..3600))
    }
}

#[cfg(test)]
mod tests {
    //! Tests of backups and of concurrent requests.

    use std::sync::Barrier;

    use serde_json::{Map, Value, json};

    use super::*;
    use crate::api::writes::{Body, DeleteOptions, WriteOptions, WriteSource, Writer};
    use crate::kinds::built_in;

    fn api() -> Api {
        Api::new(Behavior {
            retention: Retention::Fresh,
            compaction_interval: Duration::ZERO,
            first_revision: 1,
            seed: 0,
            start_date: SystemTime::UNIX_EPOCH,
            controllers: true,
            namespaces_required: false,
            graceful_pods: false,
        })
    }

    /// Serves a resource and returns its table.
    fn register(api: &Api, kind: &ResourceKind) -> Arc<Table> {
        api.register(kind.clone());
        api.catalogue.at(&kind.collection_path()).expect("the resource is served").table.clone()
    }

    /// Waits until another thread has a reference to the table, in addition to `references`. If
    /// this thread has locked the table, the other thread then waits for the lock.
    fn wait_for_another_reference(table: &Arc<Table>, references: usize) {
        while Arc::strong_count(table) == references {
            std::thread::yield_now();
        }
    }

    #[test]
    fn backup_contains_a_resource_added_during_the_copy() {
        let api = api();
        let old = ResourceKind::namespaced("example.com", "v1", "Old", "olds");
        let new = ResourceKind::namespaced("example.com", "v1", "New", "news");
        let table = register(&api, &old);
        let references = Arc::strong_count(&table);
        let backup = std::thread::scope(|scope| {
            let thread = table.write(|_| {
                let thread = scope.spawn(|| api.backup());
                wait_for_another_reference(&table, references);
                register(&api, &new).write(|transaction| transaction.put("a/b", Map::new()));
                thread
            });
            thread.join().expect("a backup")
        });
        assert!(backup.objects_of(&new).contains_key("a/b"));
    }

    #[test]
    fn restore_changes_no_version_before_all_tables_are_locked() {
        let api = api();
        let kind = ResourceKind::namespaced("example.com", "v1", "Example", "examples");
        let table = register(&api, &kind);
        let backup = api.backup();
        table.write(|transaction| transaction.put("a/one", Map::new()));
        let references = Arc::strong_count(&table);
        std::thread::scope(|scope| {
            let written = table.write(|transaction| {
                scope.spawn(|| api.restore(&backup, |_| backup.resource_version()));
                wait_for_another_reference(&table, references);
                transaction.put("a/two", Map::new())
            });
            assert_eq!(written.resource_version, 3, "the version of the first object must not be reused");
        });
        assert_eq!((table.len(), api.revision.stored()), (0, 1));
    }

    #[test]
    fn create_during_namespace_deletion_leaves_no_object() {
        let mut api = api();
        api.behavior.namespaces_required = true;
        for kind in built_in() {
            if matches!(kind.plural.as_str(), "namespaces" | "configmaps") {
                api.register(kind);
            }
        }
        let served = |path: &str| api.catalogue.at(path).expect("the resource is served");
        let (namespaces, maps) = (served("/api/v1/namespaces"), served("/api/v1/configmaps"));
        let options = WriteOptions::default;
        let namespaces = Writer { api: &api, served: &namespaces, namespace: None, options: options() };
        let maps = Writer { api: &api, served: &maps, namespace: Some("a"), options: options() };
        let body = |name: &str, data: Map<String, Value>| {
            Body::from_iter([
                ("metadata".to_owned(), json!({ "name": name })),
                ("data".to_owned(), data.into()),
            ])
        };
        // Many entries lengthen the time between the start of a create and its write, so that the
        // deletion often starts within this time.
        let entries: Map<String, Value> = (0..10_000).map(|at| (format!("key-{at}"), "".into())).collect();
        for _ in 0..20 {
            namespaces.create(body("a", Map::new()), WriteSource::Client).expect("a new namespace");
            let (barrier, map) = (Barrier::new(2), body("one", entries.clone()));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    barrier.wait();
                    // The create is refused if the deletion starts first.
                    _ = maps.create(map, WriteSource::Client);
                });
                barrier.wait();
                namespaces.delete("a", &DeleteOptions::default()).expect("a deleted namespace");
            });
            assert_eq!((namespaces.served.table.len(), maps.served.table.len()), (0, 0));
        }
    }
}
