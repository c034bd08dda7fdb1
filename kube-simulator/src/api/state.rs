//! [`Api`]: the served resources with their objects, and the state that all rules share: clock,
//! random numbers and settings.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::autoscaling;
use super::catalogue::{Catalogue, Served};
use super::clock::Clock;
use super::controllers::{self, Collecting};
use super::writes::{Stamp, in_seconds};
use crate::kinds::ResourceKind;
use crate::storage::{Backup, Retention, Revision, Table};

/// The settings of the storage and of the API rules.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Behavior {
    pub(crate) retention: Retention,
    /// The time between two compactions of etcd; zero disables them.
    pub(crate) compaction_interval: Duration,
    pub(crate) first_revision: u64,
    pub(crate) seed: u64,
    pub(crate) start_date: SystemTime,
    /// Whether the simulator does the work of the garbage collector and the namespace controller.
    pub(crate) controllers: bool,
    /// Whether a namespace must exist before objects can be created in it.
    pub(crate) namespaces_required: bool,
    /// Whether scheduled pods wait for a kubelet when they are deleted.
    pub(crate) graceful_pods: bool,
}

#[derive(Debug)]
pub(crate) struct Api {
    pub(crate) catalogue: Catalogue,
    pub(crate) behavior: Behavior,
    pub(crate) revision: Revision,
    /// The work in progress of the garbage collector.
    pub(crate) collecting: Collecting,
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
            collecting: Collecting::default(),
            clock: Clock::starting_at(behavior.start_date),
            stop: CancellationToken::new(),
            random: Mutex::new(fastrand::Rng::with_seed(behavior.seed)),
            behavior,
        }
    }

    /// Serves a resource. A resource that is already served does not change.
    pub(crate) fn register(&self, kind: ResourceKind) {
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

    /// Creates the table of a resource, which stores objects in the version of `kind`.
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

    /// Removes the history of past events of all resources. Open watches end cleanly.
    pub(crate) fn clear_history(&self) {
        for table in self.catalogue.tables() {
            table.reset(None);
        }
    }

    pub(crate) fn backup(&self) -> Backup {
        Backup::of(&self.catalogue.tables(), &self.revision)
    }

    /// Replaces all objects with the objects of a backup, and sets the newest resource version to
    /// `revision`.
    pub(crate) fn restore(&self, backup: &Backup, revision: u64) {
        self.revision.reset(revision);
        controllers::restore_definitions(self, backup);
        for table in self.catalogue.tables() {
            table.reset(Some(backup.objects_of(&table.kind)));
        }
    }

    /// Returns the current time in the format of timestamps in objects.
    pub(crate) fn now(&self) -> String {
        in_seconds(self.clock.now())
    }

    /// Draws the values that the server generates for a new object.
    pub(crate) fn stamp(&self) -> Stamp {
        Stamp::new(&mut self.random.lock(), self.clock.now())
    }

    /// Returns a random generator whose values do not depend on later draws from the simulator's
    /// generator.
    pub(crate) fn fork_random(&self) -> fastrand::Rng {
        self.random.lock().fork()
    }

    /// Draws the duration of a watch without a timeout: 30 to 60 minutes, so that watches do not
    /// end all at once.
    pub(crate) fn draw_watch_timeout(&self) -> Duration {
        Duration::from_secs(self.random.lock().u64(1800..3600))
    }
}
