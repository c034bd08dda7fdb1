//! The state of a simulated API server, shared by its HTTP side, its in-process side and its background tasks.

use std::sync::Arc;
use std::time::Duration;

use dashmap::DashMap;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::fault::FaultQueue;
use crate::request::RequestLog;
use crate::resource::ResourceKind;
use crate::storage::{Revision, Table};
use crate::watch::{WatchRegistry, WatchRules};
use crate::writes::Stamp;

/// What the builder decides.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) history_limit: usize,
    pub(crate) first_revision: u64,
    pub(crate) watch_rules: WatchRules,
    pub(crate) seed: u64,
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
    pub(crate) stop: CancellationToken,
    random: Mutex<fastrand::Rng>,
}

impl Server {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            tables: DashMap::new(),
            revision: Revision::starting_at(settings.first_revision),
            watches: Arc::default(),
            faults: FaultQueue::default(),
            requests: RequestLog::default(),
            stop: CancellationToken::new(),
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

    pub(crate) fn stamp(&self) -> Stamp {
        Stamp::new(&mut self.random.lock())
    }

    /// Draws how long a watch lasts that does not say: 30 to 60 minutes, so that watches do not end all at once.
    pub(crate) fn draw_watch_timeout(&self) -> Duration {
        Duration::from_secs(self.random.lock().u64(1800..3600))
    }
}
