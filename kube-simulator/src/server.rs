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

/// Between the ends of two watches, when they end one after another: two hundred a second.
const BETWEEN_ENDS: Duration = Duration::from_millis(5);

/// How long watches go on of a server that does not wait for them when it shuts down: its `--request-timeout`.
const LINGER: Duration = Duration::from_secs(60);

/// What the builder decides.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) retention: Retention,
    /// Between two compactions of etcd; none if zero.
    pub(crate) compaction_interval: Duration,
    pub(crate) first_revision: u64,
    pub(crate) watch_rules: WatchRules,
    pub(crate) bookmark_interval: Duration,
    pub(crate) seed: u64,
    /// How likely a request over HTTP/2 is to be the last of its connection.
    pub(crate) goaway_chance: f64,
    /// Whether the port is secured.
    #[cfg(feature = "tls")]
    pub(crate) tls: bool,
    /// The date on which the clock begins.
    pub(crate) begins_on: SystemTime,
    pub(crate) habits: Behavior,
}

/// What the builder decides on how writes and answers are treated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Behavior {
    /// Whether the simulator does what the garbage collector and the namespace controller do.
    pub(crate) controllers: bool,
    /// Whether a namespace must exist before objects can be created in it.
    pub(crate) namespaces_required: bool,
    /// Whether scheduled pods wait for a kubelet when they are deleted.
    pub(crate) graceful_pods: bool,
    /// Whether streaming lists are compressed for clients that take it.
    pub(crate) compressed_streams: bool,
    /// Whether CBOR is sent and taken.
    pub(crate) cbor: bool,
    /// What becomes of lists of the newest state that the memory of an API server does not have in time.
    pub(crate) late_lists: LateLists,
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
    pub(crate) credentials: Credentials,
    pub(crate) goaways: Goaways,
    pub(crate) tls: Option<Tls>,
    pub(crate) stop: CancellationToken,
    /// Ends the watches when the server restarts; a new one is made then.
    life: Mutex<CancellationToken>,
    /// How new requests are refused, if the server is shutting down; other API servers go on.
    shutdown: Mutex<Option<ShutdownAnswer>>,
    /// Other API servers in front of this storage.
    replicas: Mutex<Vec<Revision>>,
    /// What the garbage collector is at.
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
            life: Mutex::new(stop.child_token()),
            stop,
            shutdown: Mutex::default(),
            replicas: Mutex::default(),
            collecting: Collecting::default(),
            clock: Clock::starting_at(settings.begins_on),
            random: Mutex::new(fastrand::Rng::with_seed(settings.seed)),
            settings,
        }
    }

    /// Serves a resource; one that is served already stays as it is.
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

    /// Makes the storage of a resource, whose objects are kept in the version that `kind` says.
    pub(crate) fn new_table(&self, kind: ResourceKind) -> Arc<Table> {
        Arc::new(Table::new(kind, self.settings.retention, self.revision.clone()))
    }

    /// Forgets the history of all resources.
    pub(crate) fn compact(&self) {
        for served in self.catalogue.resources() {
            served.table.compact();
        }
    }

    /// Ends when the server stops or restarts.
    pub(crate) fn life(&self) -> CancellationToken {
        self.life.lock().clone()
    }

    /// Begins a new life: all watches end, and a server that was shutting down takes requests again.
    pub(crate) fn restart(&self) {
        *self.shutdown.lock() = None;
        self.watches.begin_anew();
        self.end_watches();
    }

    /// Refuses new requests from now on, until the server restarts.
    pub(crate) fn begin_shutdown(&self, answer: ShutdownAnswer) {
        *self.shutdown.lock() = Some(answer);
        match answer {
            ShutdownAnswer::Usual => {}
            ShutdownAnswer::TooManyRequests => self.watches.end_all(Duration::ZERO, BETWEEN_ENDS),
            ShutdownAnswer::ServiceUnavailable => {
                self.watches.end_all(LINGER, Duration::ZERO);
                self.goaways.to_all();
            }
        }
    }

    /// Returns whether it is shutting down, of which a server's health checks tell.
    pub(crate) fn is_shutting_down(&self) -> bool {
        self.stop.is_cancelled() || self.shutdown.lock().is_some()
    }

    /// How new requests are refused, if they are; some are exempt until the very end.
    pub(crate) fn shutdown(&self, exempt: bool) -> Option<ShutdownAnswer> {
        if self.stop.is_cancelled() {
            return Some(ShutdownAnswer::ServiceUnavailable);
        }
        self.shutdown.lock().filter(|_| !exempt)
    }

    /// Ends all watches, as a restart does.
    pub(crate) fn end_watches(&self) {
        let ended = std::mem::replace(&mut *self.life.lock(), self.stop.child_token());
        ended.cancel();
    }

    /// Forgets the history of all resources, also for the watches that are open.
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

    /// Puts what a backup holds in the place of everything, and counts on from `revision`.
    pub(crate) fn restore(&self, backup: &Backup, revision: u64) {
        self.revision.reset(revision);
        controllers::restore_definitions(self, backup.tables.get(custom::DEFINITIONS));
        for served in self.catalogue.resources() {
            let objects = backup.tables.get(&served.table.kind.collection_path());
            served.table.begin_anew(Some(objects.cloned().unwrap_or_default()));
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

    /// Returns the date as objects carry it.
    pub(crate) fn now(&self) -> String {
        in_seconds(self.clock.now())
    }

    /// What the server adds of its own to a new object.
    pub(crate) fn stamp(&self) -> Stamp {
        Stamp::new(&mut self.random.lock(), self.clock.now())
    }

    /// Returns a source of chance of its own to whoever draws later on.
    pub(crate) fn draw_random(&self) -> fastrand::Rng {
        self.random.lock().fork()
    }

    /// Draws how long a watch lasts that does not say: 30 to 60 minutes, so that watches do not end all at once.
    pub(crate) fn draw_watch_timeout(&self) -> Duration {
        Duration::from_secs(self.random.lock().u64(1800..3600))
    }
}
