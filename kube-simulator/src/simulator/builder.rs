//! [`SimulatorBuilder`]: configures and starts a simulator.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::api::Behavior;
use crate::api::first_objects;
use crate::api::list::LateLists;
use crate::http::{Listener, Service, Tls};
use crate::http::{Server, Settings};
use crate::http::{SlowWatches, StreamingLists, WatchRules};
use crate::kinds::{ResourceKind, built_in};
use crate::simulator::Error;
use crate::simulator::Simulator;
use crate::storage::Retention;

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
                behavior: Behavior {
                    retention: Retention::Fresh,
                    compaction_interval: Duration::from_secs(5 * 60),
                    first_revision: 1_000,
                    seed: 0,
                    start_date: SystemTime::now(),
                    controllers: true,
                    namespaces_required: false,
                    graceful_pods: false,
                },
                watch_rules: WatchRules {
                    slow_watches: SlowWatches::Counted(10_000),
                    streaming_lists: StreamingLists::default(),
                },
                bookmark_interval: Duration::from_secs(60),
                goaway_chance: 0.0,
                #[cfg(feature = "tls")]
                tls: false,
                compressed_streams: false,
                cbor: false,
                late_lists: LateLists::FromStorage,
            },
        }
    }
}

impl SimulatorBuilder {
    /// Serves the common built-in kinds: pods, nodes, services, deployments, jobs, leases and about
    /// thirty more.
    #[must_use]
    pub fn built_in_kinds(mut self) -> Self {
        self.kinds.extend(built_in());
        self
    }

    /// Serves one more kind of resource. If the same resource is added twice, the first description
    /// applies.
    #[must_use]
    pub fn resource(mut self, kind: ResourceKind) -> Self {
        self.kinds.push(kind);
        self
    }

    /// Serves the resource of a Rust type; see [`ResourceKind::of`].
    #[must_use]
    pub fn resource_of<K>(self) -> Self
    where
        K: kube::Resource<DynamicType = ()>,
        K::Scope: 'static,
    {
        self.resource(ResourceKind::of::<K>())
    }

    /// Sets the number of events that the simulator keeps per resource, at least 1. A watch can
    /// begin at any kept event, regardless of its age. An event is one change of one object, and
    /// has up to three versions of the object in memory.
    ///
    /// By default, the number is not fixed. As on a real server, a watch can begin at:
    ///
    /// - any of the resource's last 100 events;
    /// - any event of the last 75 seconds, but at most 102,400 events back.
    ///
    /// Two kinds of requests read history from etcd instead of the watch cache:
    ///
    /// - a list at an exact old resource version, for example with a continue token;
    /// - a watch of `Event` objects, which have no watch cache.
    ///
    /// Both can go back by at most the set number of events of the resource (by default, 102,400).
    /// They also fail if a [compaction](Self::compaction_interval) has removed the history that
    /// they need.
    #[doc(alias = "watch-cache-sizes")]
    #[must_use]
    pub fn history_limit(mut self, events: usize) -> Self {
        self.settings.behavior.retention = Retention::Latest(events);
        self
    }

    /// Sets the interval of etcd's compactions, which remove old history. Each compaction keeps the
    /// history since the previous compaction, so one to two intervals of history remain.
    ///
    /// If a compaction has removed the history that a request needs, the request fails with 410
    /// `Expired`. Only two kinds of requests need this history:
    ///
    /// - a list at an exact old resource version, for example with a continue token;
    /// - a new watch of `Event` objects (which have no watch cache) from an old resource version.
    ///
    /// Watches of other kinds use the watch cache; see [`history_limit`](Self::history_limit).
    ///
    /// Default: 5 minutes, as in the real server. Zero disables compactions; other values are
    /// limited to between one millisecond and one year.
    #[doc(alias = "etcd-compaction-interval")]
    #[must_use]
    pub fn compaction_interval(mut self, interval: Duration) -> Self {
        self.settings.behavior.compaction_interval = interval;
        self
    }

    /// Sets the maximum lag of a watch in events, at least 1. A watch with a larger lag is closed
    /// without an error. Events from before the watch was opened do not count, nor do events that
    /// the watch has fetched but not sent yet. Default: 10,000.
    ///
    /// A watch is also closed when the simulator no longer keeps the next event of the watch.
    #[must_use]
    pub fn watch_buffer(mut self, events: usize) -> Self {
        self.settings.watch_rules.slow_watches = SlowWatches::Counted(events.max(1) as u64);
        self
    }

    /// Closes slow watches by the rule of a real server, instead of at a fixed
    /// [lag](Self::watch_buffer).
    ///
    /// A watch is closed when it has more pending events than its buffer can hold, and the time
    /// budget of its resource is used up. The buffer holds 20 to 2,000 events, depending on the
    /// write rate, the resource and the watch's field selector. All watches of a resource share one
    /// budget. The budget decreases by the time that events wait for room in a buffer. It always
    /// grows again, by 50 milliseconds per second, to at most 100 milliseconds. `/metrics` counts
    /// the closed watches as `apiserver_terminated_watchers_total`.
    ///
    /// The rule does not apply to watches of [lagging replicas](crate::Simulator::lagging_replica)
    /// and of Event objects (which have no watch cache). It is not the default, because a test can
    /// write faster than a real server, without a pause in which watches can read.
    #[must_use]
    pub fn close_slow_watches_in_time(mut self) -> Self {
        self.settings.watch_rules.slow_watches = SlowWatches::Timed;
        self
    }

    /// Sets how the server answers watches with `sendInitialEvents`. Default:
    /// [`StreamingLists::Served`].
    #[must_use]
    pub fn streaming_lists(mut self, how: StreamingLists) -> Self {
        self.settings.watch_rules.streaming_lists = how;
        self
    }

    /// Sets the time between two bookmarks of a watch, limited to between one millisecond and one
    /// year. Default: one minute, as in the real server.
    #[must_use]
    pub fn bookmark_interval(mut self, interval: Duration) -> Self {
        self.settings.bookmark_interval = interval.max(Duration::from_millis(1));
        self
    }

    /// Sets the initial resource version, limited to between 1 and 9,223,372,036,854,775,807.
    /// Default: 1,000.
    ///
    /// The default is not 0, because a real server has used some versions before its first client
    /// connects.
    #[must_use]
    pub fn first_resource_version(mut self, version: u64) -> Self {
        // Without a limit, the next write could overflow the counter.
        self.settings.behavior.first_revision = version.clamp(1, i64::MAX.cast_unsigned());
        self
    }

    /// Sets the seed of UIDs and generated names. The same seed gives the same values in each run.
    /// Default: 0.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.settings.behavior.seed = seed;
        self
    }

    /// Disables the simulated controllers, as in a bare API server. By default, the simulator
    /// deletes the dependants of a deleted object, waits for dependants if the client requests it,
    /// and empties deleted namespaces.
    ///
    /// Without controllers, an object that is deleted with the policy `Foreground` or `Orphan`
    /// remains until the test removes the finalizer `foregroundDeletion` or `orphan`. (`Orphan` is
    /// the default policy of Jobs and replication controllers.) A namespace remains `Terminating`
    /// until the test empties `spec.finalizers` through `/finalize`.
    #[must_use]
    pub fn without_controllers(mut self) -> Self {
        self.settings.behavior.controllers = false;
        self
    }

    /// Requires that a namespace exists before clients create objects in it, if the kind
    /// `Namespace` is served. By default, a namespace need not exist.
    ///
    /// This setting also creates the initial objects of every cluster, if their kinds are served:
    /// the namespaces `default`, `kube-system`, `kube-public` and `kube-node-lease`, and the
    /// service `kubernetes` in `default` with its endpoints.
    #[must_use]
    pub fn require_namespaces(mut self) -> Self {
        self.settings.behavior.namespaces_required = true;
        self
    }

    /// Makes scheduled pods wait for their kubelet when they are deleted. The first delete only
    /// sets the deletion timestamp, unless its grace period is 0 seconds. A second delete with a
    /// grace period of 0 seconds, which the test sends in place of the kubelet, removes the pod.
    ///
    /// Between the two deletes, the grace period can be shortened, but not extended. The first
    /// delete removes a pod if the grace period is 0 seconds, or if the pod is not scheduled or has
    /// finished. Watches then receive an update with the deletion timestamp before the removal. By
    /// default, all pods are removed at once. In any case, a pod with finalizers remains until its
    /// finalizers are removed.
    #[must_use]
    pub fn graceful_pod_deletion(mut self) -> Self {
        self.settings.behavior.graceful_pods = true;
        self
    }

    /// Compresses streaming lists for clients that accept gzip, as servers do since 1.37. Each
    /// chunk of the stream is a separate gzip member. Answers to lists and gets of more than
    /// 128 KiB are always compressed for such clients.
    #[must_use]
    pub fn compress_streaming_lists(mut self) -> Self {
        self.settings.compressed_streams = true;
        self
    }

    /// Sends and accepts CBOR, as servers with the feature gate `CBORServingAndStorage` do
    /// (KEP-4222). By default, clients that prefer CBOR get the next encoding that they accept, and
    /// bodies in CBOR are refused with 415. Requires the feature `cbor` of this crate.
    #[cfg(feature = "cbor")]
    #[doc(alias = "CBORServingAndStorage")]
    #[must_use]
    pub fn serve_cbor(mut self) -> Self {
        self.settings.cbor = true;
        self
    }

    /// Makes a [lagging replica](crate::Simulator::lagging_replica) refuse a list of the newest
    /// state if its watch cache does not reach that state within 3 seconds. By default, the replica
    /// then reads the list from the storage.
    ///
    /// The answer is 429 `TooManyRequests` with a `Retry-After` of 1 second, as from servers since
    /// 1.37 with the feature gate `ConsistentListFromCacheSkipTimeoutFallback`.
    #[doc(alias = "ConsistentListFromCacheSkipTimeoutFallback")]
    #[must_use]
    pub fn refuse_late_lists(mut self) -> Self {
        self.settings.late_lists = LateLists::Refused;
        self
    }

    /// Sets the probability that an HTTP/2 request is the last of its connection, from 0 to 1.
    /// Default: 0.
    ///
    /// The client receives a `GOAWAY`: requests in flight continue, and the next request needs
    /// another connection. The [seed](Self::seed) determines the random choices. This is
    /// kube-apiserver's `--goaway-chance` (at most 0.02 there), which lets a load balancer move
    /// clients to new servers.
    #[doc(alias = "goaway-chance")]
    #[must_use]
    pub fn goaway_chance(mut self, chance: f64) -> Self {
        self.settings.goaway_chance = chance;
        self
    }

    /// Serves TLS, as real servers do. The certificate for `127.0.0.1` and `localhost` is generated
    /// at the start. Requires the feature `tls` of this crate.
    ///
    /// Clients that negotiate HTTP/2, such as kubectl and client-go, then use HTTP/2.
    /// [`Simulator::kube_config`] and [`Simulator::kubeconfig`] contain the trusted certificate. By
    /// default, connections are not encrypted, and clients can use HTTP/2 only with prior
    /// knowledge.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls(mut self) -> Self {
        self.settings.tls = true;
        self
    }

    /// Sets the initial date of the simulator's clock, from which objects get their creation and
    /// deletion timestamps. The clock advances with tokio's clock, which a test can pause. Default:
    /// the time when the builder was created.
    #[must_use]
    pub fn start_date(mut self, date: SystemTime) -> Self {
        self.settings.behavior.start_date = date;
        self
    }

    /// Starts the simulator without a socket, for clients in this process: [`Simulator::service`]
    /// and [`Simulator::client`]. The port in [`Simulator::url`] is 0, so no client can connect to
    /// this URL.
    #[must_use]
    pub fn start_in_process(self) -> Simulator {
        let server = self.server(None);
        create_initial_objects(&server, None);
        Simulator::new(server, None)
    }

    /// Starts the simulator on a free loopback port. Must be called within a tokio runtime with I/O
    /// and time enabled.
    ///
    /// # Errors
    ///
    /// [`Error::Listen`] if no port can be bound, or no certificate can be generated.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves no task and no open port.
    pub async fn start(self) -> Result<Simulator, Error> {
        #[cfg(feature = "tls")]
        let tls = self.settings.tls.then(Tls::new).transpose().map_err(Error::Listen)?;
        #[cfg(not(feature = "tls"))]
        let tls = None;
        let server = self.server(tls);
        let listener = Listener::start(Service::new(server.clone())).await.map_err(Error::Listen)?;
        create_initial_objects(&server, Some(listener.address.port()));
        Ok(Simulator::new(server, Some(listener)))
    }

    fn server(self, tls: Option<Tls>) -> Arc<Server> {
        let server = Arc::new(Server::new(self.settings, tls));
        for kind in self.kinds {
            server.api.register(kind);
        }
        server
    }
}

/// Creates the objects that a new API server creates itself, such as the namespace `default`, if
/// [`SimulatorBuilder::require_namespaces`] was called.
fn create_initial_objects(server: &Server, port: Option<u16>) {
    if server.settings.behavior.namespaces_required {
        first_objects::create(&server.api, port);
    }
}
