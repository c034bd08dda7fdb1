//! Configuring and starting a simulator.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::built_in;
use crate::error::Error;
use crate::first_objects;
use crate::list::LateLists;
use crate::resource::ResourceKind;
use crate::serve::{Listener, Service, Tls};
use crate::server::{Behavior, Server, Settings};
use crate::simulator::Simulator;
use crate::storage::Retention;
use crate::watch::{SlowWatches, StreamingLists, WatchRules};

/// Configures a [`Simulator`].
#[derive(Clone, Debug)]
pub struct SimulatorBuilder {
    kinds: Vec<ResourceKind>,
    settings: Settings,
}

impl Default for SimulatorBuilder {
    fn default() -> Self {
        Self {
            kinds: Vec::new(),
            settings: Settings {
                retention: Retention::Fresh,
                compaction_interval: Duration::from_secs(5 * 60),
                first_revision: 1_000,
                watch_rules: WatchRules {
                    slow_watches: SlowWatches::Counted(10_000),
                    streaming_lists: StreamingLists::default(),
                },
                bookmark_interval: Duration::from_secs(60),
                seed: 0,
                goaway_chance: 0.0,
                #[cfg(feature = "tls")]
                tls: false,
                habits: Behavior {
                    controllers: true,
                    namespaces_required: false,
                    graceful_pods: false,
                    compressed_streams: false,
                    cbor: false,
                    late_lists: LateLists::FromStorage,
                },
                begins_on: SystemTime::now(),
            },
        }
    }
}

impl SimulatorBuilder {
    /// Serves the common built-in kinds: pods, nodes, services, deployments, jobs, leases and some thirty more.
    #[must_use]
    pub fn built_in_kinds(mut self) -> Self {
        self.kinds.extend(built_in::kinds());
        self
    }

    /// Serves one more kind of resource. The first description of a resource counts.
    #[must_use]
    pub fn resource(mut self, kind: ResourceKind) -> Self {
        self.kinds.push(kind);
        self
    }

    /// Serves the resource behind a Rust type; see [`ResourceKind::of`].
    #[must_use]
    pub fn resource_of<K>(self) -> Self
    where
        K: kube::Resource<DynamicType = ()>,
        K::Scope: 'static,
    {
        self.resource(ResourceKind::of::<K>())
    }

    /// Keeps so many events of each resource for watches and lists of the past, at least 1, however old they are if nothing
    /// is [compacted](Self::compaction_interval).
    ///
    /// By default it is as in a real server: watches can begin with the last 100 events, and with more, up to 102,400, as long
    /// as those are not older than 75 seconds; exact lists, and watches of events, which are not in the watch cache, reach back
    /// to the last [compaction](Self::compaction_interval), over at most 102,400 events, of which each may hold two versions of
    /// its object.
    #[doc(alias = "watch-cache-sizes")]
    #[must_use]
    pub fn history_limit(mut self, events: usize) -> Self {
        self.settings.retention = Retention::Latest(events);
        self
    }

    /// Sets the time between two compactions of the storage, of which each forgets what was written before the last one: so
    /// one to two such times can be looked back on. Watches from the watch cache have their own
    /// [memory](Self::history_limit). Default: 5 minutes, as in the real server; zero for none, else from a millisecond to a
    /// year.
    #[doc(alias = "etcd-compaction-interval")]
    #[must_use]
    pub fn compaction_interval(mut self, interval: Duration) -> Self {
        self.settings.compaction_interval = interval;
        self
    }

    /// Sets how far, in events, a watch may fall behind before it is closed without a word; what had happened already when
    /// it was opened does not count. Default: 10,000.
    #[must_use]
    pub fn watch_buffer(mut self, events: usize) -> Self {
        self.settings.watch_rules.slow_watches = SlowWatches::Counted(events.max(1) as u64);
        self
    }

    /// Closes watches that are behind when a real server does: when more events wait than its channels hold, which are 20 to
    /// 2,000, depending on how much happens and what is watched, and they have done so for longer than there is patience: 50
    /// milliseconds for each second that has gone by, and never more than 100, for all watches of a resource together. Those of
    /// [lagging replicas](crate::Simulator::lagging_replica), and those of events, which have no watch cache, are not closed.
    /// `/metrics` counts those that are, as `apiserver_terminated_watchers_total`.
    ///
    /// It is not so by default, because a test can write faster than a server, without a break in which a watch could be read.
    #[must_use]
    pub fn close_slow_watches_in_time(mut self) -> Self {
        self.settings.watch_rules.slow_watches = SlowWatches::Timed;
        self
    }

    /// Sets how watches with `sendInitialEvents` are taken. Default: [`StreamingLists::Served`].
    #[must_use]
    pub fn streaming_lists(mut self, how: StreamingLists) -> Self {
        self.settings.watch_rules.streaming_lists = how;
        self
    }

    /// Sets the time between two bookmarks of a watch, at least a millisecond; what is longer than a year counts as one.
    /// Default: one minute, as in the real server.
    #[must_use]
    pub fn bookmark_interval(mut self, interval: Duration) -> Self {
        self.settings.bookmark_interval = interval.max(Duration::from_millis(1));
        self
    }

    /// Sets the resource version from which the simulator counts. Default: 1,000, at least 1.
    ///
    /// It is not 0 by default because no real server's is by the time one can talk to it.
    #[must_use]
    pub fn first_resource_version(mut self, version: u64) -> Self {
        self.settings.first_revision = version.max(1);
        self
    }

    /// Sets the seed of UIDs and generated names, which are the same in each run. Default: 0.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.settings.seed = seed;
        self
    }

    /// Leaves to the test what controllers do in a real cluster, as a bare API server does. By default the simulator
    /// itself deletes what a deleted object owned, waits for dependants where the client asks for it, and empties
    /// namespaces that are deleted.
    ///
    /// Without them an object that is deleted with a policy of `Foreground` or `Orphan` (the latter is the default of Jobs
    /// and replication controllers) stays until the test takes that finalizer off, and a namespace stays `Terminating`
    /// until the test empties `spec.finalizers` through `/finalize`.
    #[must_use]
    pub fn without_controllers(mut self) -> Self {
        self.settings.habits.controllers = false;
        self
    }

    /// Has clients create a namespace before what is to be in it, and creates at the start what every cluster has: the
    /// namespaces `default`, `kube-system`, `kube-public` and `kube-node-lease`, and the service `kubernetes` in the first,
    /// with its endpoints, as far as these kinds are served. By default a namespace need not exist.
    #[must_use]
    pub fn require_namespaces(mut self) -> Self {
        self.settings.habits.namespaces_required = true;
        self
    }

    /// Has scheduled pods wait for their kubelet when they are deleted: they are marked, and gone only after a second
    /// delete with a grace period of 0 seconds, which the test sends in the kubelet's place. In between the period can be
    /// shortened, but not made longer. Other pods are marked, too, before they go, which watches are told of. By default all
    /// are gone at once.
    #[must_use]
    pub fn graceful_pod_deletion(mut self) -> Self {
        self.settings.habits.graceful_pods = true;
        self
    }

    /// Compresses streaming lists for clients that take gzip, each piece as a gzip member of its own, as servers do
    /// from 1.37 on. Lists and single objects of more than 128 KiB are always compressed for such clients.
    #[must_use]
    pub fn compress_streaming_lists(mut self) -> Self {
        self.settings.habits.compressed_streams = true;
        self
    }

    /// Sends and takes CBOR, as servers do whose feature gate `CBORServingAndStorage` is on (KEP-4222). By default the
    /// simulator, as other servers, does not know it: clients that prefer it get the next encoding that they accept, and
    /// bodies in it are refused with 415.
    #[doc(alias = "CBORServingAndStorage")]
    #[must_use]
    pub fn serve_cbor(mut self) -> Self {
        self.settings.habits.cbor = true;
        self
    }

    /// Refuses lists of the newest state that a [lagging replica](crate::Simulator::lagging_replica) does not have within 3
    /// seconds, with 429 `TooManyRequests` and a `Retry-After` of 1 second, as servers from 1.37 on do whose feature gate
    /// `ConsistentListFromCacheSkipTimeoutFallback` is on. By default they are taken from the storage.
    #[doc(alias = "ConsistentListFromCacheSkipTimeoutFallback")]
    #[must_use]
    pub fn refuse_late_lists(mut self) -> Self {
        self.settings.habits.late_lists = LateLists::Refused;
        self
    }

    /// Sets how likely a request over HTTP/2 is to be the last of its connection: the client is sent a `GOAWAY`, what is
    /// under way over the connection goes on, and the next request needs another one. From 0 to 1. Default: 0.
    ///
    /// It is drawn from the [seed](Self::seed). From kube-apiserver's `--goaway-chance`, which is at most 0.02, and by which
    /// a load balancer gets to spread old clients over new servers.
    #[doc(alias = "goaway-chance")]
    #[must_use]
    pub fn goaway_chance(mut self, chance: f64) -> Self {
        self.settings.goaway_chance = chance;
        self
    }

    /// Serves TLS, as real servers do, with a certificate for `127.0.0.1` and `localhost` that is made when the simulator
    /// starts. Clients that speak HTTP/2 when it is offered, such as kubectl and client-go, then do so.
    /// [`Simulator::kube_config`] and [`Simulator::kubeconfig`] say whom to trust. By default connections are not secured,
    /// and HTTP/2 is for clients that begin with it. The feature `tls` of this crate.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls(mut self) -> Self {
        self.settings.tls = true;
        self
    }

    /// Sets the date on which the simulator's clock begins; it is put on what is created and deleted. From there it goes
    /// as tokio's clock does, so that it stands still while that is paused. Default: now.
    #[must_use]
    pub fn begins_on(mut self, date: SystemTime) -> Self {
        self.settings.begins_on = date;
        self
    }

    /// Starts the simulator without a socket, for clients in this process: [`Simulator::service`] and
    /// [`Simulator::client`]. Its address has port 0, where nobody listens.
    #[must_use]
    pub fn start_in_process(self) -> Simulator {
        let server = self.server(None);
        settle_in(&server, None);
        Simulator::new(server, None)
    }

    /// Starts the simulator on a free loopback port. It must be called within a tokio runtime with I/O and time.
    ///
    /// # Errors
    ///
    /// [`Error::Listen`] if no port can be bound, or no certificate made.
    ///
    /// # Cancel safety
    ///
    /// A dropped call leaves nothing behind.
    pub async fn start(self) -> Result<Simulator, Error> {
        #[cfg(feature = "tls")]
        let tls = self.settings.tls.then(Tls::new).transpose().map_err(Error::Listen)?;
        #[cfg(not(feature = "tls"))]
        let tls = None;
        let server = self.server(tls);
        let listener = Listener::start(Service::new(server.clone())).await.map_err(Error::Listen)?;
        settle_in(&server, Some(listener.address.port()));
        Ok(Simulator::new(server, Some(listener)))
    }

    fn server(self, tls: Option<Tls>) -> Arc<Server> {
        let server = Arc::new(Server::new(self.settings, tls));
        for kind in self.kinds {
            server.register(kind);
        }
        server
    }
}

/// Creates what is there from the start.
fn settle_in(server: &Server, port: Option<u16>) {
    if server.settings.habits.namespaces_required {
        first_objects::create(server, port);
    }
}
