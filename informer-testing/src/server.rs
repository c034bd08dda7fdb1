//! The state of a simulated API server, shared by its HTTP side, its in-process side and its background tasks.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::catalogue::{Catalogue, Served};
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
    pub(crate) habits: Habits,
}

/// What the builder decides on how writes and answers are treated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habits {
    /// Whether the simulator does what the garbage collector and the namespace controller do.
    pub(crate) controllers: bool,
    /// Whether a namespace must exist before objects can be created in it.
    pub(crate) namespaces_required: bool,
    /// Whether scheduled pods wait for a kubelet when they are deleted.
    pub(crate) graceful_pods: bool,
    /// Whether streaming lists are compressed for clients that take it.
    pub(crate) compressed_streams: bool,
}

/// A simulated API server.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) catalogue: Catalogue,
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
            catalogue: Catalogue::default(),
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
        self.catalogue.add(kind.collection_path(), || {
            let table = self.new_table(kind.clone());
            Served::new(kind, table, self.stop.child_token())
        });
    }

    /// Makes the storage of a resource, whose objects are kept in the version that `kind` says.
    pub(crate) fn new_table(&self, kind: ResourceKind) -> Arc<Table> {
        Arc::new(Table::new(kind, self.settings.history_limit, self.revision.clone()))
    }

    /// Forgets the history of all resources.
    pub(crate) fn compact(&self) {
        for served in self.catalogue.resources() {
            served.table.compact();
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
