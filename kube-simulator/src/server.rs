//! The state of a simulated API server, shared by its HTTP side, its in-process side and its background tasks.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::autoscaling;
use crate::catalogue::{Catalogue, Served};
use crate::clock::Clock;
use crate::controllers::{self, Collecting};
use crate::credentials::Credentials;
use crate::custom;
use crate::fault::{FaultQueue, ShutdownAnswer};
use crate::list::LateLists;
use crate::request::RequestLog;
use crate::resource::ResourceKind;
use crate::serve::{Goaways, Tls};
use crate::storage::{Backup, Retention, Revision, Table};
use crate::watch::{WatchRegistry, WatchRules};
use crate::writes::{Stamp, in_seconds};

/// The time between the ends of two watches if they end one after another: 200 per second.
const WATCH_END_INTERVAL: Duration = Duration::from_millis(5);

/// How long watches continue after a shutdown without a grace period: the server's `--request-timeout`.
const WATCH_GRACE_PERIOD: Duration = Duration::from_secs(60);

/// The configuration from the builder.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) retention: Retention,
    /// The time between two compactions of etcd; zero disables them.
    pub(crate) compaction_interval: Duration,
    pub(crate) first_revision: u64,
    pub(crate) watch_rules: WatchRules,
    pub(crate) bookmark_interval: Duration,
    pub(crate) seed: u64,
    /// The probability that an HTTP/2 request is the last of its connection.
    pub(crate) goaway_chance: f64,
    #[cfg(feature = "tls")]
    pub(crate) tls: bool,
    pub(crate) begins_on: SystemTime,
    pub(crate) behavior: Behavior,
}

/// The part of the configuration that concerns writes and answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Behavior {
    /// Whether the simulator does what the garbage collector and the namespace controller do.
    pub(crate) controllers: bool,
    /// Whether a namespace must exist before objects can be created in it.
    pub(crate) namespaces_required: bool,
    /// Whether scheduled pods wait for a kubelet when they are deleted.
    pub(crate) graceful_pods: bool,
    /// Whether streaming lists are compressed for clients that accept it.
    pub(crate) compressed_streams: bool,
    pub(crate) cbor: bool,
    /// The reaction to lists of the newest state that the watch cache does not reach in time.
    pub(crate) late_lists: LateLists,
}

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) catalogue: Catalogue,
    pub(crate) settings: Settings,
    pub(crate) revision: Revision,
    pub(crate) watches: Arc<WatchRegistry>,
    pub(crate) faults: FaultQueue,
    pub(crate) requests: RequestLog,
    pub(crate) credentials: Credentials,
    pub(crate) goaways: Goaways,
    pub(crate) tls: Option<Tls>,
    pub(crate) stop: CancellationToken,
    /// Cancelled to end the watches at a restart, and then replaced.
    until_restart: Mutex<CancellationToken>,
    /// The answer to new requests while the server is shutting down. Other API servers are not affected.
    shutdown: Mutex<Option<ShutdownAnswer>>,
    /// The other API servers on this storage.
    replicas: Mutex<Vec<Revision>>,
    /// The work in progress of the garbage collector.
    pub(crate) collecting: Collecting,
    pub(crate) clock: Clock,
    random: Mutex<fastrand::Rng>,
}

impl Server {
    pub(crate) fn new(settings: Settings, tls: Option<Tls>) -> Self {
        let stop = CancellationToken::new();
        Self {
            catalogue: Catalogue::default(),
            revision: Revision::starting_at(settings.first_revision, settings.compaction_interval),
            watches: Arc::new(WatchRegistry::new(settings.bookmark_interval)),
            faults: FaultQueue::default(),
            requests: RequestLog::default(),
            credentials: Credentials::default(),
            goaways: Goaways::new(settings.goaway_chance, settings.seed),
            tls,
            until_restart: Mutex::new(stop.child_token()),
            stop,
            shutdown: Mutex::default(),
            replicas: Mutex::default(),
            collecting: Collecting::default(),
            clock: Clock::starting_at(settings.begins_on),
            random: Mutex::new(fastrand::Rng::with_seed(settings.seed)),
            settings,
        }
    }

    /// Serves a resource. A resource that is already served does not change.
    pub(crate) fn register(&self, kind: ResourceKind) {
        let (path, first_version) = (kind.collection_path(), autoscaling::first_version(&kind));
        self.catalogue.add(path.clone(), || {
            let table = self.new_table(kind.clone());
            Served::new(kind, table, self.stop.child_token())
        });
        if let (Some(kind), Some(served)) = (first_version, self.catalogue.at(&path)) {
            let other = || Served::new(kind.clone(), Arc::clone(&served.table), served.gone.clone());
            self.catalogue.add(kind.collection_path(), other);
        }
    }

    /// Creates the storage of a resource, which keeps its objects in the version of `kind`.
    pub(crate) fn new_table(&self, kind: ResourceKind) -> Arc<Table> {
        Arc::new(Table::new(kind, self.settings.retention, self.revision.clone()))
    }

    /// Removes the history of all resources.
    pub(crate) fn compact(&self) {
        for served in self.catalogue.resources() {
            served.table.compact();
        }
    }

    /// Returns the token that is cancelled when the server stops or restarts.
    pub(crate) fn until_restart(&self) -> CancellationToken {
        self.until_restart.lock().clone()
    }

    /// Restarts the server: all watches end, and a server that was shutting down accepts requests again.
    pub(crate) fn restart(&self) {
        *self.shutdown.lock() = None;
        self.watches.begin_anew();
        self.end_watches();
    }

    /// Starts the shutdown: refuses new requests until the server restarts.
    pub(crate) fn begin_shutdown(&self, answer: ShutdownAnswer) {
        *self.shutdown.lock() = Some(answer);
        match answer {
            ShutdownAnswer::Usual => {}
            ShutdownAnswer::TooManyRequests => self.watches.end_all(Duration::ZERO, WATCH_END_INTERVAL),
            ShutdownAnswer::ServiceUnavailable => {
                self.watches.end_all(WATCH_GRACE_PERIOD, Duration::ZERO);
                self.goaways.to_all();
            }
        }
    }

    /// Returns whether the server is shutting down, for health checks.
    pub(crate) fn is_shutting_down(&self) -> bool {
        self.stop.is_cancelled() || self.shutdown.lock().is_some()
    }

    /// Returns the answer to new requests if the server is shutting down. Exempt requests are served until the server
    /// stops.
    pub(crate) fn shutdown(&self, exempt: bool) -> Option<ShutdownAnswer> {
        if self.stop.is_cancelled() {
            return Some(ShutdownAnswer::ServiceUnavailable);
        }
        self.shutdown.lock().filter(|_| !exempt)
    }

    pub(crate) fn end_watches(&self) {
        let ended = std::mem::replace(&mut *self.until_restart.lock(), self.stop.child_token());
        ended.cancel();
    }

    /// Removes the history of all resources, also for open watches.
    pub(crate) fn forget_history(&self) {
        for served in self.catalogue.resources() {
            served.table.begin_anew(None);
        }
    }

    pub(crate) fn backup(&self) -> Backup {
        let resources = self.catalogue.resources();
        let tables =
            resources.iter().map(|served| (served.table.kind.collection_path(), served.table.copy()));
        Backup { revision: self.revision.current(), tables: Arc::new(tables.collect()) }
    }

    /// Replaces all objects with those of a backup, and continues from `revision`.
    pub(crate) fn restore(&self, backup: &Backup, revision: u64) {
        self.revision.reset(revision);
        controllers::restore_definitions(self, backup.tables.get(custom::DEFINITIONS));
        for served in self.catalogue.resources() {
            let objects = backup.tables.get(&served.table.kind.collection_path());
            served.table.begin_anew(Some(objects.cloned().unwrap_or_default()));
        }
    }

    /// Adds an API server that can lag behind the storage.
    pub(crate) fn add_replica(&self) -> Revision {
        let revision = self.revision.of_replica();
        self.replicas.lock().push(revision.clone());
        revision
    }

    /// Sets the lag of all other API servers, in revisions.
    pub(crate) fn hold_replicas(&self, behind: u64) {
        for replica in &*self.replicas.lock() {
            replica.fall_behind(behind);
        }
    }

    /// Returns the current date in the format of objects.
    pub(crate) fn now(&self) -> String {
        in_seconds(self.clock.now())
    }

    /// Returns the fields that the server adds to a new object.
    pub(crate) fn stamp(&self) -> Stamp {
        Stamp::new(&mut self.random.lock(), self.clock.now())
    }

    /// Returns a random generator that continues independently of the server's.
    pub(crate) fn fork_random(&self) -> fastrand::Rng {
        self.random.lock().fork()
    }

    /// Draws the duration of a watch without a timeout: 30 to 60 minutes, so that watches do not end all at once.
    pub(crate) fn draw_watch_timeout(&self) -> Duration {
        Duration::from_secs(self.random.lock().u64(1800..3600))
    }
}
