//! The state of a simulated API server, shared by its HTTP side, its in-process side and its background tasks.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use dashmap::DashMap;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::credentials::Credentials;
use crate::fault::FaultQueue;
use crate::request::RequestLog;
use crate::resource::ResourceKind;
use crate::storage::{Backup, Revision, Table};
use crate::watch::{WatchRegistry, WatchRules};
use crate::writes::Stamp;

/// What the builder decides.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) history_limit: usize,
    pub(crate) first_revision: u64,
    pub(crate) watch_rules: WatchRules,
    pub(crate) bookmark_interval: Duration,
    pub(crate) seed: u64,
    /// The date on which the clock begins.
    pub(crate) begins_on: SystemTime,
}

/// A simulated API server.
#[derive(Debug)]
pub(crate) struct Server {
    /// By collection path, such as `/api/v1/pods`. The entries are independent of one another.
    tables: DashMap<String, Arc<Table>>,
    pub(crate) settings: Settings,
    pub(crate) revision: Revision,
    pub(crate) watches: Arc<WatchRegistry>,
    pub(crate) faults: FaultQueue,
    pub(crate) requests: RequestLog,
    pub(crate) credentials: Credentials,
    pub(crate) stop: CancellationToken,
    /// Ends the watches when the server restarts; a new one is made then.
    life: Mutex<CancellationToken>,
    /// Other API servers in front of this storage.
    replicas: Mutex<Vec<Revision>>,
    clock: Clock,
    random: Mutex<fastrand::Rng>,
}

impl Server {
    pub(crate) fn new(settings: Settings) -> Self {
        let stop = CancellationToken::new();
        Self {
            tables: DashMap::new(),
            revision: Revision::starting_at(settings.first_revision),
            watches: Arc::new(WatchRegistry::new(settings.bookmark_interval)),
            faults: FaultQueue::default(),
            requests: RequestLog::default(),
            credentials: Credentials::default(),
            life: Mutex::new(stop.child_token()),
            stop,
            replicas: Mutex::default(),
            clock: Clock::starting_at(settings.begins_on),
            random: Mutex::new(fastrand::Rng::with_seed(settings.seed)),
            settings,
        }
    }

    /// Serves a resource; one that is served already stays as it is.
    pub(crate) fn register(&self, kind: ResourceKind) {
        let path = kind.collection_path();
        let table = || Arc::new(Table::new(kind, self.settings.history_limit, self.revision.clone()));
        self.tables.entry(path).or_insert_with(table);
    }

    pub(crate) fn table_at(&self, collection_path: &str) -> Option<Arc<Table>> {
        self.tables.get(collection_path).map(|table| table.clone())
    }

    pub(crate) fn table_of(&self, api_version: &str, kind: &str) -> Option<Arc<Table>> {
        let is_it = |table: &Table| table.kind.kind == kind && table.kind.api_version() == api_version;
        self.tables.iter().find(|entry| is_it(entry.value())).map(|entry| entry.value().clone())
    }

    /// Forgets the history of all resources.
    pub(crate) fn compact(&self) {
        for table in &self.tables {
            table.compact();
        }
    }

    /// Ends when the server stops or restarts.
    pub(crate) fn life(&self) -> CancellationToken {
        self.life.lock().clone()
    }

    /// Ends all watches, as a restart does.
    pub(crate) fn end_watches(&self) {
        let ended = std::mem::replace(&mut *self.life.lock(), self.stop.child_token());
        ended.cancel();
    }

    /// Forgets the history of all resources, also for the watches that are open.
    pub(crate) fn forget_history(&self) {
        for table in &self.tables {
            table.begin_anew(None);
        }
    }

    pub(crate) fn backup(&self) -> Backup {
        let tables = self.tables.iter().map(|table| (table.key().clone(), table.copy())).collect();
        Backup { revision: self.revision.current(), tables: Arc::new(tables) }
    }

    /// Puts what a backup holds in the place of everything, and counts on from `revision`.
    pub(crate) fn restore(&self, backup: &Backup, revision: u64) {
        self.revision.reset(revision);
        for table in &self.tables {
            table.begin_anew(Some(backup.tables.get(table.key()).cloned().unwrap_or_default()));
        }
    }

    /// Adds an API server that sees the storage with a delay.
    pub(crate) fn add_replica(&self) -> Revision {
        let revision = self.revision.of_replica();
        self.replicas.lock().push(revision.clone());
        revision
    }

    /// Sets how many revisions all other API servers are behind from now on.
    pub(crate) fn hold_replicas(&self, behind: u64) {
        for replica in &*self.replicas.lock() {
            replica.fall_behind(behind);
        }
    }

    pub(crate) fn stamp(&self) -> Stamp {
        Stamp::new(&mut self.random.lock(), self.clock.now())
    }

    /// Draws how long a watch lasts that does not say: 30 to 60 minutes, so that watches do not end all at once.
    pub(crate) fn draw_watch_timeout(&self) -> Duration {
        Duration::from_secs(self.random.lock().u64(1800..3600))
    }
}
